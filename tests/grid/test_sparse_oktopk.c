/* oktopk: the calls that select exactly keep the k largest sums, ties to the lowest index. No call
 * loses anything. All ranks get the same bits, and no rank sends more than 6k words and 600 bytes
 * per peer, for any entries. The test runs many calls, because the estimates of oktopk age. */
#include "grid/sparse_lists.h"

/* Bytes that a rank may send in one call in addition to 24k(P - 1)/P: regions, counts, notes,
 * selection. */
#define SMALL_PRINT(ranks) (600.0 * ((ranks)-1))

struct expected {
    double sum[LISTS_N_MAX];
    int present[LISTS_N_MAX];
    float magnitude[LISTS_N_MAX];
};
static _Thread_local struct expected expected;

static int falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Returns the magnitude of the k-th largest sum; *ties: how many sums of that magnitude are among
 * the k. */
static float find_kth(const struct lists_case *c, size_t *ties)
{
    size_t count = 0, above = 0;
    for (size_t i = 0; i < c->n; i++)
        if (expected.present[i] != 0)
            expected.magnitude[count++] = (float)fabs(expected.sum[i]);
    *ties = SIZE_MAX;
    if (count <= c->k)
        return 0;
    qsort(expected.magnitude, count, sizeof(float), falling);
    const float kth = expected.magnitude[c->k - 1];
    while (expected.magnitude[above] > kth)
        above++;
    *ties = c->k - above;
    return kth;
}

/* The sums are small integers, so that everything is exact. */
static int check_exact(const struct lists_run *run, const struct lists_case *c, struct ddp_err *err)
{
    size_t ties;
    const float kth = find_kth(c, &ties);

    for (size_t i = 0; i < c->n; i++) {
        const float magnitude = (float)fabs(expected.sum[i]);
        bool kept = expected.present[i] != 0 && magnitude >= kth;
        if (kept && magnitude == kth)
            kept = ties != 0 && ties--;
        const double right = kept ? expected.sum[i] : 0;
        if (run->result[i] != right)
            return ddp_fail(err, DDP_EDATA, "k-th %g: result[%zu] is %g instead of %g", (double)kth,
                            i, (double)run->result[i], right);
    }
    return 0;
}

/* A sum is kept completely or not at all. Contributions to sums that are not kept are in the
 * residuals of the ranks that sent them, so result + residuals equals the input. */
static int check_conserved(const struct lists_run *run, struct ddp_err *err)
{
    const struct ddp_sparse *mine = &run->mine;
    size_t m = 0;
    for (size_t i = 0; m < mine->count; i++) {
        if (mine->index[m] != i) {
            if (run->rejected[i] != 0)
                return ddp_fail(err, DDP_EDATA, "rejected[%zu] was never given", i);
            continue;
        }
        const double sum = expected.sum[i];
        const bool kept = run->result[i] == sum && sum != 0;
        if (!kept && (run->result[i] != 0 || (sum != 0 && run->rejected[i] != mine->value[m])))
            return ddp_fail(err, DDP_EDATA, "entry %zu of %g is in the result as %g, rejected %g",
                            i, (double)mine->value[m], (double)run->result[i],
                            (double)run->rejected[i]);
        if (kept && run->rejected[i] != 0)
            return ddp_fail(err, DDP_EDATA, "entry %zu is kept and rejected", i);
        m++;
    }
    return 0;
}

static int check_bytes(const struct lists_run *run, const struct lists_case *c, uint64_t sent,
                       struct ddp_err *err)
{
    const double ranks = run->comm->size, bound = 24.0 * (double)c->k * (ranks - 1) / ranks;
    struct ddp_coll_cost cost;
    bool exact;

    run->alg->cost(run->comm->size, c->n, c->k, &cost, &exact);
    if ((double)sent <=
        DDP_MIN(cost.sent_bytes, bound + SMALL_PRINT(ranks)) + (c->uneven ? 4 * (ranks - 1) : 0))
        return 0;
    return ddp_fail(err, DDP_EDATA, "rank %d sent %llu bytes; 24k(P-1)/P is %.0f, cost says %.0f",
                    run->comm->rank, (unsigned long long)sent, bound, cost.sent_bytes);
}

static int one_call(struct lists_run *run, const struct lists_case *c, bool exact,
                    struct ddp_err *err)
{
    const uint64_t before = run->comm->wire_bytes;

    memset(run->rejected, 0, c->n * sizeof *run->rejected);
    DDP_TRY(lists_run(run, c, err));
    DDP_TRY(check_bytes(run, c, run->comm->wire_bytes - before, err));
    lists_sum(c, run->comm->size, expected.sum, expected.present);
    if (exact)
        DDP_TRY(check_exact(run, c, err));
    return check_conserved(run, err);
}

static int check_case(const struct grid *grid, const struct lists_case *first, int calls,
                      struct ddp_err *err)
{
    const struct ddp_sparse_alg *alg = ddp_sparse_find("oktopk");
    struct lists_run run;
    int rc = 0;

    DDP_TRY(lists_run_init(&run, grid, alg, first->n, first->k, err));
    for (int call = 0; call < calls && rc == 0; call++) {
        struct lists_case c = *first;
        c.seed += (uint64_t)call;
        rc = one_call(&run, &c, call % 32 == 0 || grid->comm->size < 3, err);
        if (rc != 0 && err != NULL) {
            const size_t used = strlen(err->text);
            snprintf(err->text + used, sizeof err->text - used,
                     " [%d ranks, places %d values %d n %zu k %zu call %d]", grid->comm->size,
                     c.places, c.values, c.n, c.k, call);
        }
    }
    free(run.scratch);
    return rc;
}

static int check_all(const struct grid *grid, struct ddp_err *err)
{
    static const size_t sizes[][2] = {{1, 1},      {7, 1},       {1000, 0},    {1000, 10},
                                      {1000, 300}, {1000, 1000}, {20000, 200}, {20011, 5000}};
    uint64_t seed = 1;

    for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
        for (int p = 0; p < PLACES_COUNT; p++)
            for (int v = 0; v < 2; v++) {
                const struct lists_case c = {
                    (enum places)p, v ? VALUES_CONSTANT : VALUES_SMALL, sizes[s][0],
                    sizes[s][1],    (s + (size_t)p) % 2 != 0,           seed += 1000};
                DDP_TRY(check_case(grid, &c, sizes[s][0] > 1000 ? 2 : 3, err));
            }
    /* On 3 ranks, rank 2 sends all its entries and then owns all sums that are kept. */
    const struct lists_case loud = {PLACES_OTHER, VALUES_LOUD, LISTS_N_MAX, 600, false, 3};
    DDP_TRY(check_case(grid, &loud, 2, err));
    const struct lists_case lasting = {PLACES_RANDOM, VALUES_SMALL, 3000, 60, false, 5};
    return check_case(grid, &lasting, grid->depth == GRID_BRIEF ? 70 : 140, err);
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

/* NaN, infinities and denormals: all ranks get the same bits, and NaN is the largest. */
static int check_strange(const struct grid *grid, struct ddp_err *err)
{
    const struct lists_case c = {PLACES_RANDOM, VALUES_STRANGE, 5000, 500, false, 9};
    struct lists_run run;
    int rc = lists_run_init(&run, grid, ddp_sparse_find("oktopk"), c.n, c.k, err);

    if (rc == 0)
        rc = lists_run(&run, &c, err);
    lists_sum(&c, grid->comm->size, expected.sum, expected.present);
    for (size_t i = 0; rc == 0 && i < c.n; i++)
        if (isnan(expected.sum[i]) && !isnan(run.result[i]))
            rc = ddp_fail(err, DDP_EDATA, "NaN at %zu was not kept", i);
    free(run.scratch);
    return rc;
}

static void test_strange(void **state)
{
    (void)state;
    grid_launch(check_strange, DDP_LAUNCH_THREADS, GRID_BRIEF);
}

/* More ranks than exchange their words at once, and than sends in transit; not a power of two. */
static int check_many(const struct grid *grid, struct ddp_err *err)
{
    static const enum places places[] = {PLACES_RANDOM, PLACES_SAME, PLACES_DISJOINT};

    for (size_t p = 0; p < DDP_COUNT_OF(places); p++) {
        const struct lists_case c = {places[p], VALUES_SMALL, 5000, 300, p % 2 != 0, 700 + p};
        DDP_TRY(check_case(grid, &c, 3, err));
    }
    return 0;
}

static void test_many(void **state)
{
    (void)state;
    struct grid_job job = {.body = check_many, .depth = GRID_BRIEF};
    if (!GRID_TSAN)
        grid_start(&job, DDP_LAUNCH_PROCESSES, GRID_RANKS_MAX);
    grid_start(&job, DDP_LAUNCH_THREADS, GRID_RANKS_MAX);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strange),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_many),
    };
    if (argc == 3 && strcmp(argv[1], "--mpi") == 0)
        return grid_under_mpiexec(check_all, argv[2], NULL);
    return cmocka_run_group_tests_name("oktopk", tests, NULL, NULL);
}
