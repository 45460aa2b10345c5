/* The complete compressed all-reduce: every compressor with every algorithm that supports it, on 1
 * to 8 ranks. All ranks end with the same bits. With small integers, the sent and the kept values
 * add up to the input exactly. Bytes are counted, and 16-bit averages do not overflow. */
#include <math.h>

#include "base/rng.h"
#include "coll/sparse/sparse_coll.h"
#include "exchange/compressed.h"
#include "grid/grid.h"
#include "names.h"

#define N_MAX 9001
/* Registered memory is allocated and freed each time, and must fit in the memory that the grid
 * left. */

static int equal_everywhere(struct ddp_comm *comm, const float *data, size_t n, struct ddp_err *err)
{
    uint64_t mine = 0, all[GRID_RANKS_MAX];
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &data[i], sizeof bits);
        mine = ddp_mix64(mine ^ bits);
    }
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        if (all[r] != mine)
            return ddp_fail(err, DDP_EDATA, "rank %d holds other bits than rank %d", comm->rank, r);
    return 0;
}

/* Returns the input of a rank in a step: small integers, so that sums over ranks and steps are
 * exact, or normal numbers. */
static float input(int rank, int step, size_t i, bool integers)
{
    const uint64_t x = ddp_mix64((uint64_t)rank << 40 ^ (uint64_t)step << 32 ^ i);
    if (integers)
        return (float)((int)(x % 17) - 8);
    return (float)(((double)(x >> 11) * 0x1p-53 - 0.5) * ((x & 63) == 0 ? 100 : 1));
}

static int open_one(struct ddp_comm *comm, float *data, size_t n, const char *text, bool average,
                    bool feedback, const char *algorithm, struct ddp_compressed **x,
                    struct ddp_err *err)
{
    struct ddp_compressed_setup setup = {.comm = comm,
                                         .data = data,
                                         .n = n,
                                         .feedback = feedback,
                                         .average = average,
                                         .algorithm = algorithm};
    DDP_TRY(ddp_compress_parse(text, &setup.spec, err));
    return ddp_compressed_create(&setup, x, err);
}

/* Adds the residuals of all ranks to total [n]. */
static int add_residuals(struct ddp_comm *comm, const float *residual, size_t n, double *total,
                         struct ddp_err *err)
{
    static _Thread_local float all[GRID_RANKS_MAX * 512];
    for (size_t i = 0; i < n; i += 512) {
        const size_t count = DDP_MIN((size_t)512, n - i);
        float block[512] = {0};
        if (residual != NULL)
            memcpy(block, residual + i, count * sizeof *block);
        DDP_TRY(ddp_comm_allgather_bytes(comm, block, all, sizeof block, err));
        for (int r = 0; r < comm->size; r++)
            for (size_t j = 0; j < count; j++)
                total[i + j] += all[(size_t)r * 512 + j];
    }
    return 0;
}

/* Over several steps, everything that was received (averages times the ranks), plus the residuals,
 * equals everything that was put in. */
static int check_conserved(const struct grid *grid, const char *text, const char *algorithm,
                           size_t n, bool average, struct ddp_err *err)
{
    static _Thread_local double got[N_MAX], given[N_MAX];
    struct ddp_comm *comm = grid->comm;
    float *data = (float *)(void *)grid->memory[1][0];
    struct ddp_compressed *x;
    int rc = 0;

    DDP_TRY(open_one(comm, data, n, text, average, true, algorithm, &x, err));
    memset(got, 0, sizeof got);
    memset(given, 0, sizeof given);
    for (int step = 0; step < 4; step++) {
        for (size_t i = 0; i < n; i++) {
            data[i] = input(comm->rank, step, i, true);
            for (int r = 0; r < comm->size; r++)
                given[i] += input(r, step, i, true);
        }
        DDP_TRY_GOTO(ddp_compressed_run(x, err), err_destroy);
        DDP_TRY_GOTO(equal_everywhere(comm, data, n, err), err_destroy);
        for (size_t i = 0; i < n; i++)
            got[i] += (double)data[i] * (average ? comm->size : 1);
    }
    DDP_TRY_GOTO(add_residuals(comm, ddp_compressed_residual(x), n, got, err), err_destroy);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (got[i] != given[i])
            rc = ddp_fail(err, DDP_EDATA, "%s/%s, %d ranks, n %zu: %g of %g at %zu", text,
                          ddp_compressed_algorithm(x), comm->size, n, got[i], given[i], i);
err_destroy:
    ddp_compressed_destroy(x);
    return rc;
}

/* Checks the first average against doubles. Sparse: an element is the average of the ranks that
 * sent it. */
static int check_average(const struct grid *grid, const char *text, const char *algorithm, size_t n,
                         struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    float *data = (float *)(void *)grid->memory[1][0];
    struct ddp_compressed *x;
    int rc = 0;

    DDP_TRY(open_one(comm, data, n, text, true, false, algorithm, &x, err));
    const bool dense = strchr(text, ':') == NULL || strcmp(text, "topk:1") == 0;
    for (size_t i = 0; i < n; i++)
        data[i] = input(comm->rank, 0, i, false);
    DDP_TRY_GOTO(ddp_compressed_run(x, err), err_destroy);
    DDP_TRY_GOTO(equal_everywhere(comm, data, n, err), err_destroy);
    for (size_t i = 0; i < n && rc == 0 && dense; i++) {
        double sum = 0, size = 0;
        for (int r = 0; r < comm->size; r++) {
            sum += input(r, 0, i, false);
            size += fabs(input(r, 0, i, false));
        }
        const double precision = text_names(text, "16") ? 0x1p-6 : 0x1p-20;
        if (fabs(data[i] - sum / comm->size) > size / comm->size * precision + 1e-6)
            rc = ddp_fail(err, DDP_EDATA, "%s, %d ranks: average %g instead of %g at %zu", text,
                          comm->size, (double)data[i], sum / comm->size, i);
    }
    if (rc == 0 && ddp_compressed_residual(x) != NULL)
        rc = ddp_fail(err, DDP_EDATA, "%s keeps something though feedback is off", text);
err_destroy:
    ddp_compressed_destroy(x);
    return rc;
}

static const char *const sparse_specs[] = {"topk:0.01",   "topk:0.3",      "topk:1",
                                           "threshold:5", "threshold:100", "topk:0.00001"};
static const char *const dense_specs[] = {"none", "fp16", "bf16"};

static int check_sparse(const struct grid *grid, size_t n, struct ddp_err *err)
{
    for (size_t s = 0; s < DDP_COUNT_OF(sparse_specs); s++) {
        if (grid->depth == GRID_BRIEF && (s + n) % 2 != 0)
            continue;
        for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++)
            if (!(*a)->selects)
                DDP_TRY(check_conserved(grid, sparse_specs[s], (*a)->name, n, false, err));
        DDP_TRY(check_conserved(grid, sparse_specs[s], NULL, n, false, err));
        DDP_TRY(check_average(grid, sparse_specs[s], "auto", n, err));
    }
    DDP_TRY(check_conserved(grid, "oktopk:0.01", "oktopk", n, false, err));
    DDP_TRY(check_conserved(grid, "oktopk:0.2", NULL, n, false, err));
    if ((grid->comm->size & (grid->comm->size - 1)) == 0) { /* the division is exact */
        DDP_TRY(check_conserved(grid, "topk:0.1", NULL, n, true, err));
        DDP_TRY(check_conserved(grid, "oktopk:0.1", NULL, n, true, err));
    }
    return check_average(grid, "oktopk:0.2", NULL, n, err);
}

static int check_all(const struct grid *grid, struct ddp_err *err)
{
    static const size_t lengths[] = {0, 1, 77, N_MAX};
    for (size_t l = 0; l < DDP_COUNT_OF(lengths); l++) {
        if (grid->depth == GRID_BRIEF && lengths[l] <= 1)
            continue;
        DDP_TRY(check_sparse(grid, lengths[l], err));
        for (size_t d = 0; d < DDP_COUNT_OF(dense_specs); d++) {
            DDP_TRY(check_conserved(grid, dense_specs[d], "ring", lengths[l], false, err));
            DDP_TRY(check_conserved(grid, dense_specs[d], NULL, lengths[l], false, err));
            DDP_TRY(check_average(grid, dense_specs[d], NULL, lengths[l], err));
        }
    }
    return 0;
}

static int counted(const struct grid *grid, const char *text, const char *algorithm,
                   double expected, double values, struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    float *data = (float *)(void *)grid->memory[1][0];
    struct ddp_compressed_counters c;
    struct ddp_compressed *x;

    DDP_TRY(open_one(comm, data, 8000, text, true, true, algorithm, &x, err));
    for (size_t i = 0; i < 8000; i++)
        data[i] = input(comm->rank, 0, i, false);
    int rc = ddp_compressed_run(x, err);
    ddp_compressed_counters(x, &c);
    if (rc == 0 && (c.runs != 1 || c.values_total != 8000 || c.values_sent != values ||
                    c.wire_bytes != expected || !c.wire_counted || c.encode_ns < 0 ||
                    c.exchange_ns <= 0 || c.overflow_count != 0))
        rc = ddp_fail(err, DDP_EDATA, "%s/%s, %d ranks: %g bytes of %g values, %g of %g expected",
                      text, ddp_compressed_algorithm(x), comm->size, c.wire_bytes, c.values_sent,
                      expected, values);
    ddp_compressed_destroy(x);
    return rc;
}

static int check_counters(const struct grid *grid, struct ddp_err *err)
{
    const double p = grid->comm->size, ring = 2 * (p - 1) / p;
    DDP_TRY(counted(grid, "topk:0.01", "allgather", 8 * 80 * (p - 1), 80, err));
    DDP_TRY(counted(grid, "topk:0.01", "direct", 8 * 80 * (p - 1), 80, err));
    DDP_TRY(counted(grid, "topk:0.5", "allgather", (4 * 4000 + 1000) * (p - 1), 4000, err));
    if (8000 % grid->comm->size != 0) /* the chunks are then not equal */
        return 0;
    DDP_TRY(counted(grid, "fp16", "ring", ring * 16000, 8000, err));
    DDP_TRY(counted(grid, "bf16", "direct", ring * 16000, 8000, err));
    return counted(grid, "none", "ring", ring * 32000, 8000, err);
}

/* Each rank's 16-bit value overflows when summed, but not when divided first. A value that one rank
 * cannot express is counted on all ranks. */
static int check_overflow(const struct grid *grid, struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    float *data = (float *)(void *)grid->memory[1][0];

    for (int average = 0; average < 2; average++) {
        struct ddp_compressed_counters c;
        struct ddp_compressed *x;
        DDP_TRY(open_one(comm, data, 5000, "fp16", average, false, NULL, &x, err));
        memset(data, 0, 5000 * sizeof *data);
        data[4999] = 60000;
        data[17] = comm->rank == 0 ? 1e9f : 1;
        data[18] = NAN; /* not a finite number to begin with */
        int rc = ddp_compressed_run(x, err);
        ddp_compressed_counters(x, &c);
        ddp_compressed_destroy(x);
        DDP_TRY(rc);
        const bool sum_overflows = !average && comm->size > 1;
        if (c.overflow_count != 1 + (uint64_t)sum_overflows || !isnan(data[18]) ||
            !isinf(data[17]) || (isinf(data[4999]) != 0) != sum_overflows)
            return ddp_fail(err, DDP_EDATA, "%d ranks: %llu overflows, %g", comm->size,
                            (unsigned long long)c.overflow_count, (double)data[4999]);
    }
    return 0;
}

/* A NaN, or a sum that overflows, makes its whole quantised block NaN. All other elements of the
 * block are counted. */
static int check_block_overflow(const struct grid *grid, struct ddp_err *err)
{
    enum { N = 5000, LAST = N % 128 }; /* LAST: elements of the last block */
    struct ddp_comm *comm = grid->comm;
    float *data = (float *)(void *)grid->memory[1][0];
    struct ddp_compressed_counters c;
    struct ddp_compressed *x;

    DDP_TRY(open_one(comm, data, N, "q8:128", false, false, NULL, &x, err));
    memset(data, 0, N * sizeof *data);
    data[N - 1] = 2e38f;
    data[18] = NAN;
    int rc = ddp_compressed_run(x, err);
    ddp_compressed_counters(x, &c);
    ddp_compressed_destroy(x);
    DDP_TRY(rc);
    const bool sum_overflows = comm->size > 1;
    if (c.overflow_count != (uint64_t)(127 + (sum_overflows ? LAST : 0)) || !isnan(data[0]) ||
        data[128] != 0 || (isnan(data[N - 1]) != 0) != sum_overflows)
        return ddp_fail(err, DDP_EDATA, "%d ranks: %llu overflows, %g", comm->size,
                        (unsigned long long)c.overflow_count, (double)data[N - 1]);
    return 0;
}

static int refused(const struct grid *grid, const char *text, const char *algorithm,
                   const char *says, struct ddp_err *err)
{
    struct ddp_err why = DDP_ERR_INIT;
    struct ddp_compressed *x;
    float *data = (float *)(void *)grid->memory[1][0];
    const int rc = open_one(grid->comm, data, 100, text, true, true, algorithm, &x, &why);
    if (rc == 0)
        ddp_compressed_destroy(x);
    if (rc != DDP_EUSAGE || !text_names(why.text, says))
        return ddp_fail(err, DDP_EDATA, "%s with %s: %d %s", text, algorithm, rc, why.text);
    return 0;
}

static int check_refused(const struct grid *grid, struct ddp_err *err)
{
    DDP_TRY(refused(grid, "topk:0.1", "ring", "auto, direct, allgather, rd", err));
    DDP_TRY(refused(grid, "topk:0.1", "oktopk", "auto, direct, allgather, rd", err));
    DDP_TRY(refused(grid, "oktopk:0.1", "rd", "auto, oktopk", err));
    return refused(grid, "fp16", "allgather", "ring", err);
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
static void test_counters(void **state)
{
    (void)state;
    grid_launch(check_counters, DDP_LAUNCH_THREADS, GRID_CHECK);
}
static void test_overflow(void **state)
{
    (void)state;
    grid_launch(check_overflow, DDP_LAUNCH_THREADS, GRID_CHECK);
    grid_launch(check_block_overflow, DDP_LAUNCH_THREADS, GRID_CHECK);
}
static void test_refused(void **state)
{
    (void)state;
    grid_launch(check_refused, DDP_LAUNCH_THREADS, GRID_CHECK);
}

static void test_bytes(void **state)
{
    (void)state;
    struct ddp_compressed_setup setup = {.n = 1000000, .feedback = true};
    struct ddp_compress_spec *spec = &setup.spec;
    struct ddp_err err = DDP_ERR_INIT;
    uint64_t registered, private_bytes;
    assert_int_equal(ddp_compress_parse("topk:0.01", spec, &err), 0);
    ddp_compressed_bytes(&setup, 4, &registered, &private_bytes);
    assert_true(registered >= 80000 && registered <= 80000 + 128);
    assert_true(private_bytes >= 12 * 1000000);
    assert_true(private_bytes <= 16 * 1000000);
    assert_int_equal(ddp_compress_parse("none", spec, &err), 0);
    ddp_compressed_bytes(&setup, 4, &registered, &private_bytes);
    assert_int_equal(registered + private_bytes, 0);
    assert_int_equal(ddp_compress_parse("fp16", spec, &err), 0);
    ddp_compressed_bytes(&setup, 4, &registered, &private_bytes);
    assert_int_equal(registered, 2000000);
    assert_int_equal(private_bytes, 4000000);
    /* A matrix of 1,000 x 1,000: Q, P and the next Q have 3 columns each. */
    assert_int_equal(ddp_compress_parse("powersgd:3", spec, &err), 0);
    ddp_compressed_bytes(&setup, 4, &registered, &private_bytes);
    assert_int_equal(registered, 3 * 3 * 1000 * 4);
    assert_int_equal(private_bytes, 4000000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),     cmocka_unit_test(test_counters),
        cmocka_unit_test(test_overflow),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_processes), cmocka_unit_test(test_threads),
    };
    if (argc == 3 && strcmp(argv[1], "--mpi") == 0)
        return grid_under_mpiexec(check_all, argv[2], NULL);
    return cmocka_run_group_tests_name("compressed all-reduce", tests, NULL, NULL);
}
