/* All-gather of chunks of different length: many kinds of lengths, in and out of place, exact to
 * the byte; the cost equals the counted messages and bytes; ranks as processes and as threads. */
#include "coll/all_gather_v.h"
#include "grid/grid.h"

#define GUARD 0xa5

/* Returns the length of a rank's chunk: all empty, only one rank, some ranks, all ranks, falling,
 * large. */
static size_t part_count(int kind, int rank, int ranks)
{
    switch (kind) {
    case 0:
        return 0;
    case 1:
        return rank == ranks - 1 ? 1000 : 0;
    case 2:
        return rank % 2 != 0 ? (size_t)rank * 77 + 1 : 0;
    case 3:
        return (size_t)rank + 1;
    case 4:
        return (size_t)(ranks - rank) * 1001;
    default:
        return rank == 0 ? 150001 : 10;
    }
}
#define KINDS 6

static unsigned char value(int rank, size_t i)
{
    return (unsigned char)((size_t)rank * 31 + i * 7 + i / 256);
}

static int check_counted(const struct ddp_comm *before, struct ddp_comm *comm, const size_t *offset,
                         enum ddp_dtype dtype, struct ddp_err *err)
{
    uint64_t mine[2] = {comm->wire_messages - before->wire_messages,
                        comm->wire_bytes - before->wire_bytes};
    uint64_t all[GRID_RANKS_MAX][2], most[2] = {0, 0};
    struct ddp_coll_cost cost;

    DDP_TRY(ddp_comm_allgather_bytes(comm, mine, all, sizeof(mine), err));
    for (int r = 0; r < comm->size; r++)
        for (int k = 0; k < 2; k++)
            most[k] = DDP_MAX(most[k], all[r][k]);
    ddp_all_gather_v_cost(comm->size, offset, dtype, &cost);
    if (cost.messages != (double)most[0] || cost.sent_bytes != (double)most[1])
        return ddp_fail(err, DDP_EDATA, "counted %llu messages of %llu bytes, cost says %g of %g",
                        (unsigned long long)most[0], (unsigned long long)most[1], cost.messages,
                        cost.sent_bytes);
    return 0;
}

static int check_point(const struct grid *grid, int kind, enum ddp_dtype dtype, bool in_place,
                       struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    const struct ddp_comm before = *comm;
    const size_t elem = ddp_dtype_size(dtype);
    size_t counts[GRID_RANKS_MAX], offset[GRID_RANKS_MAX + 1];
    unsigned char *recv = grid->memory[0][1];

    for (int r = 0; r < comm->size; r++)
        counts[r] = part_count(kind, r, comm->size);
    const size_t total = ddp_all_gather_v_offsets(counts, comm->size, offset);
    unsigned char *send = in_place ? recv + offset[comm->rank] * elem : grid->memory[0][0];
    memset(recv, GUARD, total * elem + 1);
    for (size_t i = 0; i < counts[comm->rank] * elem; i++)
        send[i] = value(comm->rank, i);
    DDP_TRY(ddp_all_gather_v(comm, send, recv, offset, dtype, err));
    for (int r = 0; r < comm->size; r++)
        for (size_t i = 0; i < counts[r] * elem; i++)
            if (recv[offset[r] * elem + i] != value(r, i))
                return ddp_fail(err, DDP_EDATA, "kind %d, part %d: byte %zu is wrong", kind, r, i);
    if (recv[total * elem] != GUARD)
        return ddp_fail(err, DDP_EDATA, "kind %d wrote beyond its end", kind);
    return check_counted(&before, comm, offset, dtype, err);
}

static int check_all(const struct grid *grid, struct ddp_err *err)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
            for (int in_place = 0; in_place < 2; in_place++)
                DDP_TRY(check_point(grid, kind, (enum ddp_dtype)dtype, in_place, err));
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
    grid_launch(check_all, DDP_LAUNCH_THREADS, GRID_CHECK);
}

static void test_offsets(void **state)
{
    (void)state;
    const size_t counts[] = {3, 0, 5}, huge[] = {SIZE_MAX, 1};
    size_t offset[4];
    assert_int_equal(ddp_all_gather_v_offsets(counts, 3, offset), 8);
    assert_int_equal(offset[0], 0);
    assert_int_equal(offset[1], 3);
    assert_int_equal(offset[2], 3);
    assert_int_equal(offset[3], 8);
    assert_int_equal(ddp_all_gather_v_offsets(huge, 2, offset), SIZE_MAX);
}

/* A backend without messages is refused with a reason, unless there is only one rank. */
static void test_unavailable(void **state)
{
    (void)state;
    static const struct ddp_backend bare = {.name = "bare"};
    struct ddp_comm comm = {.backend = &bare, .size = 2, .device = ddp_device_cpu(DDP_SIMD_SCALAR)};
    const size_t offset[] = {0, 1, 2};
    unsigned char data[2] = {7, 8};
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_all_gather_v(&comm, data, data, offset, DDP_U8, &err), DDP_EUNAVAIL);
    assert_non_null(strstr(err.text, "'bare'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_unavailable),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("all-gather-v", tests, NULL, NULL);
}
