// The public header as C++17: all of it compiles, and a world of one works.
#include <ddp.h>
#include <ddp.h> // twice is once

#include <cstdio>
#include <vector>

int main()
{
    ddp *world = nullptr;
    ddp_err err = DDP_ERR_INIT;
    if (err.code != 0 || err.rank != -1 || err.text[0] != '\0')
        return 1;
    if (ddp_init(nullptr, &world, &err) != DDP_OK) {
        std::fprintf(stderr, "%s\n", err.text);
        return ddp_exit_code(err.code);
    }
    std::vector<float> grads(100, 2.5f);
    const ddp_array array{grads.data(), grads.size(), DDP_F32};
    const ddp_call average{nullptr, true, false};
    const int rc = ddp_all_reduce(world, &array, 1, &average, &err);
    ddp_finalize(world);
    return rc == DDP_OK && grads[99] == 2.5f ? 0 : 1;
}
