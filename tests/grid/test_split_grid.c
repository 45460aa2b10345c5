/* The grid of the collectives with a split: random split tables with every algorithm of the
 * registry and with `auto`, in registered and private memory, on 1 to 8 ranks of the shm backend.
 * Many parts, rows and columns of the tables are empty. Every byte of both buffers is checked, and
 * also the bytes behind the received parts. --full: 1,000 tables for each number of ranks (make
 * grid). */
#include "base/rng.h"
#include "coll/coll_split.h"
#include "grid/grid.h"
#include "grid/grid_values.h"

#define GUARD       0xa5
#define GUARD_BYTES 64
#define TABLES      30
#define TABLES_FULL 1000
#define RANKS_MAX   8

/* One table, as one rank sees it. */
struct row {
    const struct grid *grid;
    enum ddp_coll coll;
    int number;
    enum ddp_dtype dtype;
    enum ddp_op op;
    size_t split[RANKS_MAX * RANKS_MAX];
    size_t send_bytes, recv_bytes;
    unsigned char *sent, *expected; /* [GRID_ARRAY_BYTES] */
};

static bool is_full; /* --full */

/* Returns a size of a part in elements. Some sizes take several rounds of a pipeline. */
static size_t random_part(struct ddp_rng *rng)
{
    static const uint64_t below[] = {1, 1, 4, 40, 40, 700, 5000, 40000};
    return (size_t)ddp_rng_below(rng, below[ddp_rng_below(rng, DDP_COUNT_OF(below))]);
}

/* Fills the table. Small tables are as frequent as large ones, because they take other paths. */
static void random_table(struct row *row, int ranks)
{
    const size_t n = (size_t)ranks;
    struct ddp_rng rng;
    ddp_rng_init(&rng, (uint64_t)row->number, (uint64_t)ranks);
    const bool is_small = ddp_rng_below(&rng, 2) == 0;
    const size_t empty_row = (size_t)ddp_rng_below(&rng, 2 * n);
    const size_t empty_column = (size_t)ddp_rng_below(&rng, 2 * n);
    const bool is_diagonal = ddp_rng_below(&rng, 20) == 0;

    row->dtype = (enum ddp_dtype)ddp_rng_below(&rng, DDP_DTYPE_COUNT);
    row->op = (enum ddp_op)(row->number % DDP_OP_COUNT);
    for (size_t i = 0; i < n * n; i++) {
        const size_t part = is_small ? (size_t)ddp_rng_below(&rng, 9) : random_part(&rng);
        const bool empty = i / n == empty_row || i % n == empty_column ||
                           (is_diagonal && i / n != i % n) || ddp_rng_below(&rng, 4) == 0;
        row->split[i] = empty ? 0 : part;
    }
    if (row->number == 0)
        memset(row->split, 0, sizeof row->split);
}

/* Returns byte i of the send array of a rank, if the collective only moves data. */
static unsigned char value(int rank, size_t i)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)rank * 57 + 1);
}

static size_t part_bytes(const struct row *row, int from, int to)
{
    const int n = row->grid->comm->size;
    const int entry = row->coll == DDP_ALL_GATHER_V       ? from
                      : row->coll == DDP_REDUCE_SCATTER_V ? to
                                                          : from * n + to;
    return row->split[entry] * ddp_dtype_size(row->dtype);
}

/* Returns the offset in bytes of the part for rank `to` in the send array of rank `from`. */
static size_t part_at(const struct row *row, int from, int to)
{
    size_t at = 0;
    for (int r = 0; r < to && row->coll != DDP_ALL_GATHER_V; r++)
        at += part_bytes(row, from, r);
    return at;
}

/* Sets the send array and the expected recv array of a collective that only moves data. */
static void expect_moved(struct row *row)
{
    const int me = row->grid->comm->rank, n = row->grid->comm->size;
    unsigned char *at = row->expected;

    for (size_t i = 0; i < row->send_bytes; i++)
        row->sent[i] = value(me, i);
    for (int from = 0; from < n; from++)
        for (size_t i = 0; i < part_bytes(row, from, me); i++)
            *at++ = value(from, part_at(row, from, me) + i);
}

/* Sets the send array and the expected recv array of a reduce-scatter-v. */
static void expect_reduced(struct row *row)
{
    const int me = row->grid->comm->rank, n = row->grid->comm->size;
    const size_t elem = ddp_dtype_size(row->dtype), first = part_at(row, me, me) / elem;

    for (size_t i = 0; i < row->send_bytes / elem; i++)
        grid_store(row->sent + i * elem, row->dtype,
                   (double)grid_input(row->dtype, row->op, me, n, i));
    for (size_t i = 0; i < row->recv_bytes / elem; i++)
        grid_store(row->expected + i * elem, row->dtype,
                   grid_reduced(row->dtype, row->op, n, first + i));
}

static int report(const struct row *row, const struct ddp_coll_alg *alg, bool registered,
                  const char *what, struct ddp_err *err)
{
    return ddp_fail(err, DDP_EDATA, "rank %d of %d: %s, table %d, %s, %s memory, %s: %s",
                    row->grid->comm->rank, row->grid->comm->size, ddp_coll_name(row->coll),
                    row->number, alg != NULL ? alg->name : "auto",
                    registered ? "registered" : "private", ddp_dtype_name(row->dtype), what);
}

static int check_point(struct row *row, const struct ddp_coll_alg *alg, bool registered,
                       struct ddp_err *err)
{
    unsigned char *send = row->grid->memory[registered][0];
    unsigned char *recv = row->grid->memory[registered][1];
    const struct ddp_coll_args args = {.coll = row->coll,
                                       .send = send,
                                       .recv = recv,
                                       .count = 1, /* the plan replaces it */
                                       .dtype = row->dtype,
                                       .op = row->op,
                                       .split = row->split};

    memcpy(send, row->sent, row->send_bytes);
    memset(recv, GUARD, row->recv_bytes + GUARD_BYTES);
    DDP_TRY(grid_run(row->grid, alg, &args, err));
    if (memcmp(recv, row->expected, row->recv_bytes + GUARD_BYTES) != 0)
        return report(row, alg, registered, "the result or its surroundings are wrong", err);
    if (memcmp(send, row->sent, row->send_bytes) != 0)
        return report(row, alg, registered, "the send buffer was written to", err);
    return 0;
}

/* Runs the table with one algorithm (NULL: auto). Adds 1 to *ran for each run. */
static int check_algorithm(struct row *row, const struct ddp_coll_alg *alg, int *ran,
                           struct ddp_err *err)
{
    for (int registered = 0; registered < 2; registered++) {
        struct ddp_coll_shape shape = {.coll = row->coll,
                                       .dtype = row->dtype,
                                       .op = row->op,
                                       .registered = registered,
                                       .split = row->split};
        const struct ddp_coll_args args = ddp_split_args(&shape);
        if (!ddp_split_chunk(&args, row->grid->comm->size, &shape.count))
            return ddp_fail(err, DDP_EINTERNAL, "the table is too large");
        if (grid_supports(row->grid, alg, &shape)) {
            DDP_TRY(check_point(row, alg, registered, err));
            ++*ran;
        } else if (alg == NULL) {
            return report(row, alg, registered, "finds no algorithm", err);
        }
    }
    return 0;
}

static int check_table(struct row *row, struct ddp_err *err)
{
    const int n = row->grid->comm->size, me = row->grid->comm->rank;
    int ran = 0;

    row->send_bytes = row->recv_bytes = 0;
    for (int r = 0; r < n; r++) {
        if (row->coll != DDP_ALL_GATHER_V || r == 0)
            row->send_bytes += part_bytes(row, me, r);
        if (row->coll != DDP_REDUCE_SCATTER_V || r == 0)
            row->recv_bytes += part_bytes(row, r, me);
    }
    if (DDP_MAX(row->send_bytes, row->recv_bytes) + GUARD_BYTES > GRID_ARRAY_BYTES)
        return ddp_fail(err, DDP_EINTERNAL, "the grid's buffers are too small");
    memset(row->expected, GUARD, row->recv_bytes + GUARD_BYTES);
    if (row->coll == DDP_REDUCE_SCATTER_V)
        expect_reduced(row);
    else
        expect_moved(row);
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++)
        if ((*a)->coll == row->coll)
            DDP_TRY(check_algorithm(row, *a, &ran, err));
    DDP_TRY(check_algorithm(row, NULL, &ran, err));
    return ran >= 4 ? 0 : ddp_fail(err, DDP_EINTERNAL, "only %d runs of a table", ran);
}

static int walk_tables(const struct grid *grid, struct ddp_err *err)
{
    /* The split of a collective whose table is one row is the first row. */
    static const enum ddp_coll colls[] = {DDP_ALL_TO_ALL_V, DDP_ALL_GATHER_V, DDP_REDUCE_SCATTER_V};
    struct row row = {
        .grid = grid, .sent = malloc(GRID_ARRAY_BYTES), .expected = malloc(GRID_ARRAY_BYTES)};
    int rc = row.sent != NULL && row.expected != NULL
                 ? 0
                 : ddp_fail(err, DDP_ENOMEM, "no memory for the grid");

    for (; rc == 0 && row.number < (is_full ? TABLES_FULL : TABLES); row.number++) {
        random_table(&row, grid->comm->size);
        for (size_t i = 0; rc == 0 && i < DDP_COUNT_OF(colls); i++) {
            row.coll = colls[i];
            rc = check_table(&row, err);
        }
    }
    free(row.sent);
    free(row.expected);
    return rc;
}

static void launch(enum ddp_launch_mode mode)
{
    struct grid_job job = {.body = walk_tables, .depth = GRID_BRIEF};
    for (int ranks = 1; ranks <= (GRID_TSAN && mode == DDP_LAUNCH_PROCESSES ? 2 : RANKS_MAX);
         ranks++)
        grid_start(&job, mode, ranks);
}

static void test_processes(void **state)
{
    (void)state;
    launch(DDP_LAUNCH_PROCESSES);
}

static void test_threads(void **state)
{
    (void)state;
    launch(DDP_LAUNCH_THREADS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
    };
    is_full = argc > 1 && strcmp(argv[argc - 1], "--full") == 0;
    if (argc > 2 && strcmp(argv[1], "--mpi") == 0)
        return grid_under_mpiexec(walk_tables, argv[2], NULL);
    return cmocka_run_group_tests_name("split grid", tests, NULL, NULL);
}
