/* The grid: every collective, with every algorithm of the registry and with `auto`, on the shm
 * backend: ranks x counts x dtypes x operations x roots x placement x memory, with ranks as
 * processes and as threads. Every bit of every buffer is checked: the result, the parts that must
 * not be touched, and the memory beyond the end. Algorithms for several hosts run on simulated
 * hosts. --full: every combination (make grid). */
#include <stdlib.h>

#include "grid/grid.h"
#include "grid/grid_values.h"

#define GUARD       0xa5
#define GUARD_BYTES 64

/* The arrays of a row, each of GRID_ARRAY_BYTES. INPUT and WANT: the elements that this rank sends,
 * and the result that it receives. The images are the expected contents of whole buffers, GUARD
 * included: of the send buffer, of the receive buffer, and of the buffer of an operation in place.
 */
enum { INPUT, WANT, SEND_IMAGE, RECV_IMAGE, IN_PLACE_IMAGE, ROW_ARRAYS };

/* One row of the grid: the settings that are the same for all algorithms, placements and memories.
 * The send buffers of both memories hold SEND_IMAGE, which no operation may change. */
struct row {
    const struct grid *grid;
    struct ddp_coll_shape shape;
    size_t elem, send_bytes, recv_bytes;
    size_t send_at, recv_at; /* offsets in the buffer of an operation in place */
    unsigned char *array[ROW_ARRAYS];
};

static size_t full_bytes(const struct row *row)
{
    return ddp_coll_message_bytes(row->shape.coll, row->grid->comm->size, row->shape.count,
                                  row->shape.dtype);
}

/* Writes an image: GUARD everywhere but in the elements. */
static void draw(const struct row *row, int image, size_t at, int elements, size_t bytes)
{
    memset(row->array[image], GUARD, full_bytes(row) + GUARD_BYTES);
    memcpy(row->array[image] + at, row->array[elements], bytes);
}

static int row_init(struct row *row, const struct grid *grid, const struct ddp_coll_shape *shape,
                    struct ddp_err *err)
{
    const int me = grid->comm->rank, n = grid->comm->size;
    const size_t elem = ddp_dtype_size(shape->dtype);
    const size_t sends = grid_send_count(shape->coll, shape->count, me, n, shape->root);
    const size_t gets = grid_recv_count(shape->coll, shape->count, me, n, shape->root);

    row->grid = grid;
    row->shape = *shape;
    row->elem = elem;
    row->send_bytes = sends * elem;
    row->recv_bytes = gets * elem;
    if (full_bytes(row) + GUARD_BYTES > GRID_ARRAY_BYTES)
        return ddp_fail(err, DDP_EINTERNAL, "the grid's buffers are too small");
    for (size_t i = 0; i < sends; i++)
        grid_store(row->array[INPUT] + i * elem, shape->dtype,
                   (double)grid_input(shape->dtype, shape->op, me, n, i));
    for (size_t i = 0; i < gets; i++)
        grid_store(row->array[WANT] + i * elem, shape->dtype,
                   grid_expected(shape->coll, shape->dtype, shape->op, shape->count, me, n,
                                 shape->root, i));
    const size_t own = (size_t)me * shape->count * elem;
    const enum ddp_coll coll = shape->coll;
    row->send_at = coll == DDP_ALL_GATHER || coll == DDP_GATHER ? own : 0;
    row->recv_at = coll == DDP_REDUCE_SCATTER || coll == DDP_SCATTER ? own : 0;
    draw(row, SEND_IMAGE, 0, INPUT, row->send_bytes);
    draw(row, RECV_IMAGE, 0, WANT, row->recv_bytes);
    draw(row, IN_PLACE_IMAGE, row->send_at, INPUT, row->send_bytes);
    memcpy(row->array[IN_PLACE_IMAGE] + row->recv_at, row->array[WANT], row->recv_bytes);
    for (int registered = 0; registered < 2; registered++)
        memcpy(grid->memory[registered][0], row->array[SEND_IMAGE], full_bytes(row) + GUARD_BYTES);
    return 0;
}

static int report(const struct row *row, const struct ddp_coll_alg *alg, const char *what,
                  size_t at, struct ddp_err *err)
{
    const struct ddp_coll_shape *s = &row->shape;
    return ddp_fail(err, DDP_EDATA,
                    "rank %d of %d: %s/%s %s %s count %zu root %d %s %s: %s, byte %zu",
                    row->grid->comm->rank, row->grid->comm->size, ddp_coll_name(s->coll),
                    alg != NULL ? alg->name : "auto", ddp_dtype_name(s->dtype), ddp_op_name(s->op),
                    s->count, s->root, s->in_place ? "in place" : "out of place",
                    s->registered ? "registered" : "private", what, at);
}

static int check_same(const struct row *row, const struct ddp_coll_alg *alg, const char *what,
                      const unsigned char *is, const unsigned char *should, size_t bytes,
                      struct ddp_err *err)
{
    if (memcmp(is, should, bytes) == 0)
        return 0;
    size_t at = 0;
    while (is[at] == should[at])
        at++;
    return report(row, alg, what, at, err);
}

/* Checks one point. out: the result buffer, which also holds the input if in place. A rank that
 * finds a wrong value returns an error; the other ranks see it when the job ends. */
static int check_point(const struct row *row, const struct ddp_coll_alg *alg, struct ddp_err *err)
{
    const struct ddp_coll_shape *s = &row->shape;
    const size_t whole = full_bytes(row) + GUARD_BYTES;
    unsigned char *out = row->grid->memory[s->registered][1];
    unsigned char *in = row->grid->memory[s->registered][0];
    unsigned char *send = s->in_place ? out + row->send_at : in;
    unsigned char *recv = s->in_place ? out + row->recv_at : out;
    const struct ddp_coll_args args = {.coll = s->coll,
                                       .send = send,
                                       .recv = recv,
                                       .count = s->count,
                                       .dtype = s->dtype,
                                       .op = s->op,
                                       .root = s->root};

    memset(out, GUARD, whole);
    if (s->in_place)
        memcpy(send, row->array[INPUT], row->send_bytes);
    DDP_TRY(grid_run(row->grid, alg, &args, err));
    DDP_TRY(check_same(row, alg, "result or its surroundings", out,
                       row->array[s->in_place ? IN_PLACE_IMAGE : RECV_IMAGE], whole, err));
    return s->in_place ? 0
                       : check_same(row, alg, "send was written to", in, row->array[SEND_IMAGE],
                                    whole, err);
}

/* Checks one algorithm (NULL: auto) in all placements and memories. */
static int check_algorithm(struct row *row, const struct ddp_coll_alg *alg, struct ddp_err *err)
{
    const bool native = alg != NULL && strcmp(alg->name, "native") == 0;
    const bool memory_matters =
        row->grid->depth == GRID_FULL || alg == NULL || (!grid_sends(alg) && !native);
    for (int v = 0; v < 4; v++) {
        row->shape.in_place = v & 1;
        row->shape.registered = v & 2;
        if (!memory_matters && row->shape.in_place != row->shape.registered)
            continue;
        if (grid_supports(row->grid, alg, &row->shape))
            DDP_TRY(check_point(row, alg, err));
        else if (alg == NULL && (ddp_coll_has_in_place(row->shape.coll) || !row->shape.in_place))
            return report(row, alg, "finds no algorithm", 0, err);
    }
    return 0;
}

static int check_row(struct row *row, const struct grid *grid, const struct ddp_coll_shape *shape,
                     struct ddp_err *err)
{
    DDP_TRY(row_init(row, grid, shape, err));
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++)
        if ((*a)->coll == shape->coll &&
            (grid->only == NULL || strcmp((*a)->name, grid->only) == 0))
            DDP_TRY(check_algorithm(row, *a, err));
    return check_algorithm(row, NULL, err);
}

/* Returns whether the list of counts has counts[c] before c, as it has for few ranks. */
static bool is_repeated(const size_t *counts, size_t c)
{
    for (size_t i = 0; i < c; i++)
        if (counts[i] == counts[c])
            return true;
    return false;
}

/* Returns whether this row is left out of a grid that is not full. */
static bool left_out(const struct grid *grid, const struct ddp_coll_shape *s)
{
    const int mix = (int)s->dtype + (int)s->op;
    if (grid->depth == GRID_FULL)
        return false;
    /* test_split_grid combines types and operations of a reduction with a split. */
    if (ddp_coll_has_split(s->coll) && mix % DDP_OP_COUNT != 0 && grid_reduces(s->coll))
        return true;
    if (s->count > 100 && grid->depth == GRID_BRIEF)
        return mix % 5 != 0;
    if (s->count > 1000 && s->dtype != DDP_F32)
        return mix % 2 != 0;
    /* A brief grid combines each type and operation with every second count. */
    if (grid->depth == GRID_BRIEF && s->dtype != DDP_F32 && (mix + (int)s->count) % 2 != 0)
        return true;
    /* Roots other than the first are not combined with every type. */
    return grid_has_root(s->coll) && s->root != 0 && mix % 2 != 0;
}

static int walk_collective(struct row *row, const struct grid *grid, enum ddp_coll coll,
                           struct ddp_err *err)
{
    const size_t n = (size_t)grid->comm->size;
    const size_t counts[] = {0, 1, 2, n - 1, n, n + 1, 1000, 10007};
    const int roots = grid_has_root(coll) && n > 1 ? 2 : 1;
    const int ops = grid_reduces(coll) ? DDP_OP_COUNT : 1;

    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
        for (int op = 0; op < ops; op++)
            for (size_t c = 0; c < DDP_COUNT_OF(counts); c++)
                for (int root = 0; root < roots; root++) {
                    const struct ddp_coll_shape shape = {.coll = coll,
                                                         .count = counts[c],
                                                         .dtype = (enum ddp_dtype)dtype,
                                                         .op = (enum ddp_op)op,
                                                         .root = root * (int)(n - 1)};
                    if (!is_repeated(counts, c) && !left_out(grid, &shape))
                        DDP_TRY(check_row(row, grid, &shape, err));
                }
    /* Several rounds of a pipeline, of which the last is not full. */
    const bool parts = ddp_coll_message_bytes(coll, (int)n, 1, DDP_U8) != 1;
    const struct ddp_coll_shape large = {
        .coll = coll, .count = parts ? 600007 / n : 600007, .dtype = DDP_F32, .root = (int)(n / 2)};
    return check_row(row, grid, &large, err);
}

/* Walks the collectives [first, end). */
static int walk(const struct grid *grid, int first, int end, struct ddp_err *err)
{
    struct row row = {.grid = grid};
    int rc = 0;

    for (int i = 0; i < ROW_ARRAYS; i++) {
        row.array[i] = malloc(GRID_ARRAY_BYTES);
        if (row.array[i] == NULL)
            rc = ddp_fail(err, DDP_ENOMEM, "no memory for the grid");
    }
    for (int coll = first; rc == 0 && coll < end; coll++)
        rc = walk_collective(&row, grid, (enum ddp_coll)coll, err);
    for (int i = 0; i < ROW_ARRAYS; i++)
        free(row.array[i]);
    return rc;
}

static int walk_grid(const struct grid *grid, struct ddp_err *err)
{
    return walk(grid, 0, DDP_BARRIER, err);
}

static void test_processes(void **state)
{
    grid_launch(walk_grid, DDP_LAUNCH_PROCESSES, *(enum grid_depth *)*state);
}

static void test_threads(void **state)
{
    const enum grid_depth depth = *(enum grid_depth *)*state;
    grid_launch(walk_grid, DDP_LAUNCH_THREADS, depth == GRID_FULL ? GRID_FULL : GRID_BRIEF);
}

/* Only all-reduce has an algorithm for several hosts. */
static int walk_hosts(const struct grid *grid, struct ddp_err *err)
{
    return walk(grid, DDP_ALLREDUCE, DDP_ALLREDUCE + 1, err);
}

static void test_hosts_processes(void **state)
{
    grid_launch_hosts(walk_hosts, DDP_LAUNCH_PROCESSES, *(enum grid_depth *)*state, "hier");
}

static void test_hosts_threads(void **state)
{
    grid_launch_hosts(walk_hosts, DDP_LAUNCH_THREADS, *(enum grid_depth *)*state, "hier");
}

int main(int argc, char **argv)
{
    enum grid_depth depth = argc > 1 && strcmp(argv[1], "--full") == 0 ? GRID_FULL : GRID_CHECK;
    /* --mpi FOLDER, or --mpi FOLDER hier for the algorithm for several hosts */
    if (argc > 3 && strcmp(argv[1], "--mpi") == 0)
        return grid_under_mpiexec(walk_hosts, argv[2], argv[3]);
    if (argc > 2 && strcmp(argv[1], "--mpi") == 0)
        return grid_under_mpiexec(walk_grid, argv[2], NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_processes, &depth),
        cmocka_unit_test_prestate(test_threads, &depth),
        cmocka_unit_test_prestate(test_hosts_processes, &depth),
        cmocka_unit_test_prestate(test_hosts_threads, &depth),
    };
    return cmocka_run_group_tests_name("coll grid", tests, NULL, NULL);
}
