/* libddp: MPI starts only once in a process, so no world can follow a world over MPI. Here the
 * backend of one rank stands for MPI. tests/api/api.bats tests the same under mpiexec. */
#include <sys/wait.h>
#include <unistd.h>

#include "comm/backend.h"
#include "ddp_ranks.h"
#include "exchange/ddp_impl.h"
#include "names.h"

static int have_a_launched_world(void)
{
    struct ddp_backend launched = *ddp_backend_find("self");
    const struct ddp_rank_info rank_info = {.size = 1, .local_size = 1, .segment_fd = -1};
    struct ddp_settings settings;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp *d;
    launched.caps |= DDP_CAP_LAUNCHED;
    if (ddp_settings_fill(NULL, &settings, &err) != 0 ||
        ddp_open(&launched, &rank_info, &settings, DDP_SLOT_PROCESS, &d, &err) != 0)
        return 1;
    ddp_finalize(d);
    if (ddp_init(NULL, &d, &err) != DDP_EUSAGE)
        return 2;
    return text_names(err.text, "MPI") ? 0 : 3;
}

/* Runs in a process of its own, because that process can have no world afterwards. */
static void test_spent(void **state)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(have_a_launched_world());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
