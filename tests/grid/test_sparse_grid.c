/* Sparse all-reduce: every exact algorithm over positions, values, lengths and densities. Sums of
 * small integers are exact, all ranks get the same bits, and the counted bytes equal cost(). 1 to 8
 * ranks, as processes and as threads. */
#include "grid/sparse_lists.h"

static int check_sums(const struct lists_run *run, const struct lists_case *c, struct ddp_err *err)
{
    static _Thread_local double sum[LISTS_N_MAX];
    static _Thread_local int present[LISTS_N_MAX];

    lists_sum(c, run->comm->size, sum, present);
    for (size_t i = 0; i < c->n; i++) {
        const double got = run->result[i];
        const bool exact = c->values == VALUES_SMALL || c->values == VALUES_CONSTANT ||
                           c->values == VALUES_DENORMAL || present[i] <= 1;
        const bool right = isnan(sum[i]) ? isnan(got)
                           : exact || isinf(sum[i])
                               ? got == sum[i]
                               : fabs(got - sum[i]) <= 1e-5 * (1 + fabs(sum[i]));
        if (!right)
            return ddp_fail(err, DDP_EDATA,
                            "%s, %d ranks, places %d values %d n %zu k %zu: result[%zu] is %.9g "
                            "instead of %.9g",
                            run->alg->name, run->comm->size, c->places, c->values, c->n, c->k, i,
                            got, sum[i]);
    }
    return 0;
}

/* Compares the largest of all ranks with cost(): equal if exact, else a bound. Counts that are not
 * fixed add 4(P - 1) bytes, or (rd) 4 bytes a round. */
static int check_counted(const struct lists_run *run, const struct lists_case *c, uint64_t sent,
                         struct ddp_err *err)
{
    const int ranks = run->comm->size;
    uint64_t all[GRID_RANKS_MAX], most = 0;
    struct ddp_coll_cost cost;
    bool exact;

    DDP_TRY(ddp_comm_allgather_bytes(run->comm, &sent, all, sizeof sent, err));
    for (int r = 0; r < ranks; r++)
        most = DDP_MAX(most, all[r]);
    run->alg->cost(ranks, c->n, c->k, &cost, &exact);
    if (c->uneven ? (double)most <= cost.sent_bytes + 4 * (ranks - 1)
        : exact   ? (double)most == cost.sent_bytes
                  : (double)most <= cost.sent_bytes)
        return 0;
    return ddp_fail(err, DDP_EDATA, "%s, %d ranks, n %zu k %zu: %llu bytes counted, cost says %.0f",
                    run->alg->name, ranks, c->n, c->k, (unsigned long long)most, cost.sent_bytes);
}

static int check_case(const struct grid *grid, const struct ddp_sparse_alg *alg,
                      const struct lists_case *c, struct ddp_err *err)
{
    struct ddp_err reason = DDP_ERR_INIT;
    struct lists_run run;
    int rc;

    if (alg->selects || ddp_sparse_supports(alg, grid->comm, c->n, &reason) != 0)
        return 0;
    DDP_TRY(lists_run_init(&run, grid, alg, c->n, c->k, err));
    for (int twice = 0; twice < 2; twice++) {
        const uint64_t before = grid->comm->wire_bytes;
        DDP_TRY_GOTO(lists_run(&run, c, err), err_free);
        const uint64_t sent = grid->comm->wire_bytes - before;
        DDP_TRY_GOTO(check_sums(&run, c, err), err_free);
        DDP_TRY_GOTO(check_counted(&run, c, sent, err), err_free);
    }
err_free:
    free(run.scratch);
    return rc;
}

/* Checks all positions at all densities, with the kinds of values in turn. */
static int check_length(const struct grid *grid, const struct ddp_sparse_alg *alg, size_t n,
                        struct ddp_err *err)
{
    static const double densities[] = {0, 1e-9, 0.01, 0.03, 0.1, 0.5, 0.98, 1};
    const size_t rows = DDP_COUNT_OF(densities) * PLACES_COUNT;
    const size_t stride = n > 1000 ? 7 : grid->depth == GRID_BRIEF ? 3 : 1; /* 7, 3: no divisors */

    for (size_t row = n % stride; row < rows; row += stride) {
        const double density = densities[row / PLACES_COUNT];
        const int values = (int)(row * 2 + n) % VALUES_COUNT;
        const struct lists_case c = {
            .places = (enum places)(row % PLACES_COUNT),
            .values = (enum values)values,
            .n = n,
            .k = (size_t)ceil(density * (double)n),
            .uneven = (row + row / PLACES_COUNT) % 2 != 0,
            .seed = row * 100 + n,
        };
        DDP_TRY(check_case(grid, alg, &c, err));
    }
    return 0;
}

static int check_all(const struct grid *grid, struct ddp_err *err)
{
    static const size_t lengths[] = {1, 31, 999, 1000, 20011};

    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++)
        for (size_t l = 0; l < DDP_COUNT_OF(lengths); l++)
            DDP_TRY(check_length(grid, *a, lengths[l], err));
    return 0;
}

static void test_processes(void **state)
{
    (void)state;
    grid_launch(check_all, DDP_LAUNCH_PROCESSES, GRID_CHECK);
}

static void test_threads(void **state)
{
    (void)state;
    grid_launch(check_all, DDP_LAUNCH_THREADS, GRID_BRIEF);
}

/* 'direct' checks both arrays of a list, in every call. */
static int check_registered(const struct grid *grid, struct ddp_err *err)
{
    static _Thread_local float private[8];
    static _Thread_local float result[8];
    const struct ddp_sparse_alg *alg = ddp_sparse_find("direct");
    struct ddp_err expected = DDP_ERR_INIT;
    void *memory, *scratch;
    int rc;

    DDP_TRY(ddp_comm_alloc(grid->comm, 8 * (sizeof(uint32_t) + sizeof(float)), &memory, err));
    struct ddp_sparse_args args = {
        .mine = {.index = memory, .value = (float *)memory + 8, .count = 0},
        .result = result,
        .n = 8,
        .most = 8};
    scratch = calloc(1, alg->scratch_bytes(grid->comm, args.n, args.most));
    rc = scratch == NULL ? DDP_ENOMEM : ddp_sparse_run(grid->comm, alg, &args, scratch, err);
    args.mine.value = private;
    if (rc == 0 && ddp_sparse_run(grid->comm, alg, &args, scratch, &expected) != DDP_EINTERNAL)
        rc = ddp_fail(err, DDP_EDATA, "private values were taken");
    free(scratch);
    ddp_comm_free(grid->comm, memory);
    return rc;
}

static void test_registered(void **state)
{
    (void)state;
    grid_launch(check_registered, DDP_LAUNCH_PROCESSES, GRID_BRIEF);
}

/* The formulas, worked out by hand. */
static void test_cost(void **state)
{
    (void)state;
    struct ddp_coll_cost cost;
    bool exact;
    ddp_sparse_find("allgather")->cost(8, 1000000, 1000, &cost, &exact);
    assert_true(exact);
    assert_true(cost.sent_bytes == 8.0 * 1000 * 7);
    ddp_sparse_find("allgather")->cost(4, 3200, 1000, &cost, &exact); /* a bitmap: 100 words */
    assert_true(cost.sent_bytes == 4.0 * (100 + 1000) * 3);
    ddp_sparse_find("allgather")
        ->cost(4, 1000, 1000, &cost, &exact); /* all elements: no indices at all */
    assert_true(cost.sent_bytes == 4.0 * 1000 * 3);
    ddp_sparse_find("rd")->cost(8, 1000000, 1000, &cost, &exact);
    assert_false(exact);
    assert_true(cost.sent_bytes == 8.0 * 1000 * 7 + 4 * 2); /* and two counts */
    ddp_sparse_find("direct")->cost(8, 1000000, 1000, &cost, &exact);
    assert_true(cost.sent_bytes == 0);
    ddp_sparse_find("oktopk")->cost(4, 1000000, 1000, &cost, &exact);
    assert_true(cost.sent_bytes >= 24.0 * 1000 * 3 / 4);
    assert_true(cost.sent_bytes <= 24.0 * 1000 * 3 / 4 + 1000 * 3);
}

/* found: NULL if several algorithms fit. */
static void expect_named(const char *name, bool selects, bool on_device, int rc, const char *found)
{
    const struct ddp_sparse_alg *alg;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_sparse_named(name, selects, on_device, &alg, &err), rc);
    if (rc == 0)
        assert_ptr_equal(alg, found != NULL ? ddp_sparse_find(found) : NULL);
}

static void test_named(void **state)
{
    (void)state;
    expect_named(NULL, false, false, 0, NULL);
    expect_named("auto", false, false, 0, NULL);
    expect_named("auto", true, false, 0, "oktopk");
    expect_named("auto", false, true, 0, "allgather");
    expect_named(NULL, true, true, 0, "oktopk");
    expect_named("rd", false, false, 0, "rd");
    expect_named("allgather", false, true, 0, "allgather");
    expect_named("rd", false, true, DDP_EUNAVAIL, NULL);
    expect_named("oktopk", false, false, DDP_EUSAGE, NULL);
    expect_named("direct", true, true, DDP_EUSAGE, NULL);
    expect_named("nonsense", false, true, DDP_EUSAGE, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost),       cmocka_unit_test(test_named),
        cmocka_unit_test(test_processes),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_registered),
    };
    if (argc == 3 && strcmp(argv[1], "--mpi") == 0)
        return grid_under_mpiexec(check_all, argv[2], NULL);
    return cmocka_run_group_tests_name("sparse all-reduce", tests, NULL, NULL);
}
