/* No wake-up is lost: barriers of 8 ranks on 2 cores, alone and while another process keeps both
 * cores busy. A lost wake-up would end the run at the deadline. 500 barriers; 10,000 with --full
 * (`make torture`). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm_ranks.h"

#define RANKS 8
#define CORES 2

static int barriers = 500;

/* round [RANKS]: the number of the barrier that each rank enters. */
struct rounds {
    _Atomic(int) round[RANKS];
};

static int body(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg, struct ddp_err *err)
{
    struct rounds *shared = arg;
    for (int i = 1; i <= barriers; i++) {
        atomic_store(&shared->round[comm->rank], i);
        DDP_TRY(ddp_comm_barrier(comm, err));
        for (int r = 0; r < comm->size; r++) {
            int at = atomic_load(&shared->round[r]);
            CHECK(at == i || at == i + 1);
        }
    }
    return 0;
}

static void *spin(void *arg)
{
    for (volatile unsigned i = 0;; i++)
        ;
    return arg;
}

/* Starts a process that tries to use all cores. */
static pid_t start_load(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_t thread;
    for (int i = 1; i < CORES; i++)
        (void)pthread_create(&thread, NULL, spin, NULL);
    spin(NULL);
    _exit(0);
}

static void run(const char *how)
{
    struct rounds *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ranks_job job = {.body = body, .arg = shared};
    const int64_t start = ddp_now_ns();
    assert_int_equal(ranks_run(RANKS, DDP_LAUNCH_PROCESSES, job, &outcome, &err), 0);
    const double us = (double)(ddp_now_ns() - start) / 1e3;
    print_message("# %s: %d barriers, %.0f us each\n", how, barriers, us / barriers);
    if (outcome.code != 0)
        fail_msg("%s: %s", outcome.report_text, err.text);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(shared->round[r], barriers);
    munmap(shared, sizeof *shared);
}

static void test_alone(void **state)
{
    (void)state;
    run("alone");
}

static void test_loaded(void **state)
{
    (void)state;
    pid_t load = start_load();
    run("beside a load on every core");
    kill(load, SIGKILL);
    assert_int_equal(waitpid(load, NULL, 0), load);
}

/* Restricts this process and its children to the first CORES cores. */
static void keep_to_cores(void)
{
    cpu_set_t all, few;
    CPU_ZERO(&few);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&few) < CORES; cpu++) {
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &few);
    }
    (void)sched_setaffinity(0, sizeof few, &few);
}

int main(int argc, char **argv)
{
    if (RANKS_TSAN) {
        print_message("1..0 # SKIP ranks as processes say nothing to ThreadSanitizer\n");
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--full") == 0)
        barriers = 10000;
    keep_to_cores();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
