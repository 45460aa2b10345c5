/* The check of an algorithm before ranks are started gives the same answer as the algorithm
 * itself on running ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/plan.h"
#include "coll/coll.h"
#include "comm_ranks.h"

static int compare(struct ddp_comm *comm, const struct ddp_coll_alg *alg, struct ddp_err *err)
{
    static const size_t counts[] = {0, 1, 4096, 1 << 20};
    for (unsigned i = 0; i < 4 * 2 * 2; i++) {
        const struct ddp_coll_shape shape = {
            .coll = alg->coll,
            .count = counts[i / 4],
            .dtype = DDP_F32,
            .op = DDP_SUM,
            .in_place = i & 1,
            .registered = i >> 1 & 1,
            .hosts = 1,
        };
        struct ddp_err said = DDP_ERR_INIT, foreseen = DDP_ERR_INIT;
        int rc = ddp_coll_supports(alg, comm, &shape, &said);
        if (ddp_coll_check_offline(alg, comm->backend, comm->size, &shape, &foreseen) != rc ||
            strcmp(said.text, foreseen.text) != 0)
            return ddp_fail(err, DDP_EDATA, "%s %s: said '%s', foreseen '%s'",
                            ddp_coll_name(alg->coll), alg->name, said.text, foreseen.text);
    }
    return 0;
}

static int body_compare(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++)
        DDP_TRY(compare(comm, *a, err));
    return 0;
}

static void test_as_checked_offline(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        struct ranks_job job = {.body = body_compare};
        assert_int_equal(ranks_run(ranks, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
        if (outcome.code != 0)
            print_error("%s\n", outcome.report_text);
        assert_int_equal(outcome.code, 0);
    }
}

/* Checks an all-reduce of f32 with one algorithm and one kind of memory. */
static int check_offline(const char *backend, const char *algorithm, int memory, uint64_t bytes,
                         struct ddp_err *err)
{
    struct ddp_bench_options *o = calloc(1, sizeof *o);
    struct ddp_bench_plan plan;
    *err = DDP_ERR_INIT;
    assert_non_null(o);
    o->coll = DDP_ALLREDUCE;
    o->sizes.n = o->algorithms.n = 1;
    o->sizes.v[0] = bytes;
    strcpy(o->algorithms.v[0], algorithm);
    o->placement = 2;
    o->memory = memory;
    o->iters = 1;
    assert_int_equal(ddp_plan_make(o, backend, 2, -1, &plan, err), 0);
    int rc = ddp_plan_check_offline(&plan, ddp_backend_find(backend), err);
    ddp_plan_release(&plan);
    free(o);
    return rc;
}

static void test_contradictions(void **state)
{
    struct ddp_err err;
    assert_int_equal(check_offline("shm", "direct", DDP_MEMORY_PRIVATE, 4, &err), DDP_EUSAGE);
    assert_non_null(strstr(err.text, "registered"));
    assert_non_null(strstr(err.hint, "--memory registered"));
    assert_int_equal(check_offline("shm", "direct", DDP_MEMORY_REGISTERED, 4, &err), 0);
    assert_int_equal(check_offline("shm", "staged", DDP_MEMORY_PRIVATE, 4, &err), 0);
    assert_int_equal(check_offline("shm", "native", -1, 4, &err), DDP_EUSAGE);
    assert_int_equal(check_offline("shm", "flat", -1, 1 << 20, &err), DDP_EUSAGE);
    assert_int_equal(check_offline("shm", "all", DDP_MEMORY_PRIVATE, 1 << 20, &err), 0);
    assert_int_equal(check_offline("shm", "auto", DDP_MEMORY_PRIVATE, 4, &err), 0);
    /* The abilities of an MPI are unknown before it runs, but unregistered memory is known. */
    assert_int_equal(check_offline("mpi", "direct", DDP_MEMORY_PRIVATE, 4, &err), DDP_EUSAGE);
    assert_int_equal(check_offline("mpi", "native", DDP_MEMORY_PRIVATE, 4, &err), 0);
    assert_int_equal(check_offline("mpi", "hier", DDP_MEMORY_PRIVATE, 4, &err), 0);
    assert_int_equal(check_offline("mpi", "staged", DDP_MEMORY_PRIVATE, 1 << 20, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_checked_offline),
        cmocka_unit_test(test_contradictions),
    };
    unsetenv("DDPBENCH_SIMULATE_HOSTS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
