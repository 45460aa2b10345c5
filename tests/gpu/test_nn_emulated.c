/* Runs the shipped kernels of device cuda's layers on the processor (tests/gpu/emulated). */
#include "gpu/emulated/emulated_names.h"

#include "gpu/nn_cases.h"

#include "device/cuda/dev_cuda.h"

void ddp_cuda_note(struct ddp_stream *s, int code, const char *place)
{
    if (code != 0)
        fail_msg("%s: error %d", place, code);
}

static int wait_for(struct ddp_stream *s, struct ddp_err *err)
{
    return 0;
}

static void copy(struct ddp_stream *s, void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void kernels(void **state)
{
    static const struct ddp_stream_ops ops = {.wait = wait_for, .copy = copy};
    struct ddp_stream stream = {.processors = 1};
    const struct lab lab = {
        .device = ddp_device_cpu(DDP_SIMD_SCALAR), .ops = &ops, .stream = &stream};
    nn_cases(&lab, &ddp_nn_stream_cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels)};
    return cmocka_run_group_tests_name("emulated layers", tests, NULL, NULL);
}
