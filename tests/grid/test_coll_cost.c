/* Compares the counted costs with the real number of messages and bytes. The communicator counts
 * both while every algorithm of the registry runs, over numbers of ranks, sizes, types, roots and
 * placements. The largest of all ranks must equal ddp_coll_cost_of() exactly. Algorithms that share
 * memory must send nothing. */
#include "comm/hosts.h"
#include "grid/grid.h"
#include "grid/grid_values.h"

struct counted {
    uint64_t messages, bytes;
};

/* Sets each counter to the largest of all ranks. */
static int largest(struct ddp_comm *comm, struct counted *c, struct ddp_err *err)
{
    struct counted all[GRID_RANKS_MAX];
    DDP_TRY(ddp_comm_allgather_bytes(comm, c, all, sizeof(*c), err));
    for (int r = 0; r < comm->size; r++) {
        c->messages = DDP_MAX(c->messages, all[r].messages);
        c->bytes = DDP_MAX(c->bytes, all[r].bytes);
    }
    return 0;
}

static int check_point(const struct grid *grid, const struct ddp_coll_alg *alg,
                       const struct ddp_coll_shape *s, struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    const size_t own = (size_t)comm->rank * s->count * ddp_dtype_size(s->dtype);
    const bool send_inside = s->coll == DDP_ALL_GATHER || s->coll == DDP_GATHER;
    const bool recv_inside = s->coll == DDP_REDUCE_SCATTER || s->coll == DDP_SCATTER;
    unsigned char *buf = grid->memory[1][1];
    const struct ddp_coll_args args = {
        .coll = s->coll,
        .send = !s->in_place  ? grid->memory[1][0]
                : send_inside ? buf + own
                              : buf,
        .recv = s->in_place && recv_inside ? buf + own : buf,
        .count = s->count,
        .dtype = s->dtype,
        .op = s->op,
        .root = s->root,
    };
    struct counted c = {comm->wire_messages, comm->wire_bytes};
    struct ddp_coll_cost cost;

    DDP_TRY(grid_run(grid, alg, &args, err));
    c.messages = comm->wire_messages - c.messages;
    c.bytes = comm->wire_bytes - c.bytes;
    DDP_TRY(largest(comm, &c, err));
    ddp_coll_cost_of(alg, comm->size, s, &cost);
    if (!cost.modelled ||
        (cost.messages == (double)c.messages && cost.sent_bytes == (double)c.bytes))
        return 0;
    return ddp_fail(err, DDP_EDATA,
                    "%s/%s, %d ranks, %s %s count %zu root %d %s: cost says %.0f messages of %.0f "
                    "bytes, counted were %llu of %llu",
                    ddp_coll_name(s->coll), alg->name, comm->size, ddp_dtype_name(s->dtype),
                    ddp_op_name(s->op), s->count, s->root,
                    s->in_place ? "in place" : "out of place", cost.messages, cost.sent_bytes,
                    (unsigned long long)c.messages, (unsigned long long)c.bytes);
}

static int check_algorithm(const struct grid *grid, const struct ddp_coll_alg *alg,
                           struct ddp_err *err)
{
    static const struct {
        enum ddp_dtype dtype;
        enum ddp_op op;
    } types[] = {{DDP_F32, DDP_SUM}, {DDP_F16, DDP_AVG}, {DDP_I32, DDP_AVG}, {DDP_U8, DDP_AVG}};
    const int hosts = grid->comm->hosts != NULL ? grid->comm->hosts->count : 1;
    const size_t n = (size_t)grid->comm->size;
    const size_t counts[] = {0, 1, 2, n - 1, n, n + 1, 1000, 10007, 300001 / n};

    for (size_t t = 0; t < DDP_COUNT_OF(types); t++)
        for (size_t c = 0; c < DDP_COUNT_OF(counts); c++)
            for (size_t v = 0; v < 6; v++) {
                const struct ddp_coll_shape shape = {.coll = alg->coll,
                                                     .count = counts[c],
                                                     .dtype = types[t].dtype,
                                                     .op = types[t].op,
                                                     .root = (int)((v / 2) * (n - 1) / 2),
                                                     .in_place = v % 2,
                                                     .registered = true,
                                                     .hosts = hosts};
                if (v >= 2 && !grid_has_root(alg->coll))
                    break;
                if (grid_supports(grid, alg, &shape))
                    DDP_TRY(check_point(grid, alg, &shape, err));
            }
    return 0;
}

static int check_costs(const struct grid *grid, struct ddp_err *err)
{
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++)
        if (grid->only == NULL || strcmp((*a)->name, grid->only) == 0)
            DDP_TRY(check_algorithm(grid, *a, err));
    return 0;
}

static void test_counted_is_cost(void **state)
{
    (void)state;
    grid_launch(check_costs, DDP_LAUNCH_PROCESSES, GRID_CHECK);
    grid_launch_hosts(check_costs, DDP_LAUNCH_PROCESSES, GRID_CHECK, "hier");
}

/* The formulas of the opening comments, worked out by hand for 1000 f32 on 4 ranks and 8 MB on 8
 * ranks. */
static void test_by_hand(void **state)
{
    (void)state;
    static const struct {
        enum ddp_coll coll;
        const char *name;
        int ranks;
        size_t count;
        double steps, messages, sent_bytes, memory_bytes;
    } rows[] = {
        /* 2 x 3 chunks of 1000 bytes. Each of the 4000 bytes is moved and combined 3 times, then
         * moved 3 times. */
        {DDP_ALLREDUCE, "ring", 4, 1000, 6, 6, 6000, 3 * 7 * 4000},
        /* Chunks of 1 MB: 7 in 8 fragments of 128 KiB, 7 as one message. */
        {DDP_ALLREDUCE, "ring", 8, 2000000, 14, 63, 14e6, 7 * 7 * 8e6},
        /* Halving sends 2000 and 1000 bytes, doubling 1000 and 2000. */
        {DDP_ALLREDUCE, "rhd", 4, 1000, 4, 4, 6000, 3 * 7 * 4000},
        /* With a folded rank: its odd neighbour sends 2000 and 2000 bytes, then all 4000 to it. */
        {DDP_ALLREDUCE, "rhd", 3, 1000, 4, 3, 8000, 2 * 7 * 4000},
        {DDP_REDUCE_SCATTER, "ring", 4, 1000, 3, 3, 12000, 3 * 5 * 16000},
        {DDP_ALL_GATHER, "ring", 4, 1000, 3, 3, 12000, 4 * 2 * 4000 + 3 * 2 * 16000},
        {DDP_BROADCAST, "binomial", 5, 1000, 3, 3, 12000, 2 * 4000 + 4 * 2 * 4000},
        /* 8 chunks of 1000 bytes: the root sends 1, 2 and 4 of them, then one chunk 7 times. 12
         * chunks move down the tree, 7 x 8 around the ring. */
        {DDP_BROADCAST, "scatter-ring", 8, 2000, 10, 10, 14000, 2 * 8000 + 2000 * (12 + 56)},
        {DDP_REDUCE, "binomial", 5, 1000, 3, 1, 4000, 4 * 5 * 4000},
        {DDP_ALL_TO_ALL, "pairwise", 4, 1000, 3, 3, 12000, 4 * (2 * 12000 + 2 * 4000)},
        {DDP_ALL_TO_ALL_V, "pairwise", 4, 1000, 3, 3, 12000, 4 * (2 * 12000 + 2 * 4000)},
        {DDP_ALL_GATHER_V, "pairwise", 4, 1000, 3, 3, 12000, 4 * (2 * 12000 + 2 * 4000)},
        {DDP_REDUCE_SCATTER_V, "pairwise", 4, 1000, 3, 3, 12000, 3 * 5 * 16000},
        /* Ranks 1, 2, 4 send 1, 2, 4 chunks to the root, ranks 3, 5, 7 send one each, rank 6 two.
         */
        {DDP_GATHER, "binomial", 8, 1000, 3, 1, 16000, 2 * 4000 * (1 + 12 + 3)},
        {DDP_SCATTER, "binomial", 8, 1000, 3, 3, 28000, 2 * 4000 * (1 + 12 + 3)},
        {DDP_SEND_RECV, "p2p", 4, 1000, 1, 1, 4000, 4 * 2 * 4000},
        {DDP_BARRIER, "dissemination", 5, 0, 3, 3, 0, 0},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        const struct ddp_coll_shape shape = {
            .coll = rows[i].coll, .count = rows[i].count, .dtype = DDP_F32};
        const struct ddp_coll_alg *alg = ddp_coll_find(rows[i].coll, rows[i].name);
        struct ddp_coll_cost cost;
        assert_non_null(alg);
        ddp_coll_cost_of(alg, rows[i].ranks, &shape, &cost);
        assert_true(cost.modelled);
        if (cost.steps != rows[i].steps || cost.messages != rows[i].messages ||
            cost.sent_bytes != rows[i].sent_bytes || cost.memory_bytes != rows[i].memory_bytes)
            fail_msg("%s/%s on %d ranks: %g steps, %g messages, %g bytes sent, %g in memory",
                     ddp_coll_name(rows[i].coll), alg->name, rows[i].ranks, cost.steps,
                     cost.messages, cost.sent_bytes, cost.memory_bytes);
    }
}

/* Calls with a table, f32 on 3 ranks. In the all-to-all-v, ranks exchange 60 elements and keep 6.
 * In the all-gather-v, they have 0, 10 and 30 elements, and each of them moves to 3 ranks. In the
 * reduce-scatter-v, they receive 0, 10 and 30 elements, and each of them is a sum of 3. */
static void test_split_by_hand(void **state)
{
    static const size_t table[] = {0, 10, 0, 20, 1, 30, 0, 0, 5}, parts[] = {0, 10, 30};
    static const struct {
        enum ddp_coll coll;
        const char *name;
        double steps, messages, sent_bytes, path_bytes, memory_bytes;
    } rows[] = {
        /* Rank 1 sends 120 bytes to rank 2, and then 80 bytes to rank 0. */
        {DDP_ALL_TO_ALL_V, "pairwise", 2, 2, 200, 200, 2 * 4 * 66},
        {DDP_ALL_TO_ALL_V, "direct", 2, 0, 0, 0, 2 * 4 * 66},
        {DDP_ALL_TO_ALL_V, "flat", 1, 0, 0, 0, 2 * 4 * (66 + 66)},
        {DDP_ALL_TO_ALL_V, "staged", 3, 0, 0, 0, 2 * 4 * (66 + 60)},
        /* Rank 2 sends 120 bytes twice. */
        {DDP_ALL_GATHER_V, "pairwise", 2, 2, 240, 240, 2 * 4 * 120},
        {DDP_ALL_GATHER_V, "direct", 2, 0, 0, 0, 2 * 4 * 120},
        {DDP_ALL_GATHER_V, "staged", 3, 0, 0, 0, 2 * 4 * (120 + 40)},
        /* Rank 0 sends 40 and 120 bytes. In step 2, rank 2 still receives its second 120 bytes. */
        {DDP_REDUCE_SCATTER_V, "pairwise", 2, 2, 160, 240, (2 + 3) * 4 * 80},
        {DDP_REDUCE_SCATTER_V, "direct", 2, 0, 0, 0, 4 * (120 + 40)},
        {DDP_REDUCE_SCATTER_V, "flat", 1, 0, 0, 0, 4 * (120 + 40 + 2 * 120)},
        {DDP_REDUCE_SCATTER_V, "staged", 3, 0, 0, 0, 4 * (120 + 40 + 2 * 80)},
    };
    (void)state;
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        const struct ddp_coll_shape shape = {.coll = rows[i].coll,
                                             .count = 17,
                                             .dtype = DDP_F32,
                                             .split =
                                                 rows[i].coll == DDP_ALL_TO_ALL_V ? table : parts};
        struct ddp_coll_cost cost;
        ddp_coll_cost_of(ddp_coll_find(rows[i].coll, rows[i].name), 3, &shape, &cost);
        if (cost.steps != rows[i].steps || cost.messages != rows[i].messages ||
            cost.sent_bytes != rows[i].sent_bytes || cost.path_bytes != rows[i].path_bytes ||
            cost.memory_bytes != rows[i].memory_bytes)
            fail_msg("%s %s: %g steps, %g messages, %g bytes sent, %g on the path, %g in memory",
                     ddp_coll_name(rows[i].coll), rows[i].name, cost.steps, cost.messages,
                     cost.sent_bytes, cost.path_bytes, cost.memory_bytes);
    }
}

/* hier, f32 sums on registered memory: the messages of the leaders of H hosts, and the memory
 * traffic of all ranks. */
static void test_hosts_by_hand(void **state)
{
    (void)state;
    static const struct {
        int ranks, hosts;
        size_t count;
        double steps, messages, sent_bytes, memory_bytes;
    } rows[] = {
        /* Spread: each leader sends 4000 bytes to the other. Memory: sums 6, out on 2 ranks 4,
         * between hosts 4 + 6. */
        {4, 2, 1000, 4, 1, 4000, (6 + 4 + 10) * 4000},
        /* 10 fragments, each 2 messages of half of it. Between hosts: moved 2 x 2 times, combined
         * once. */
        {4, 2, 600000, 14, 20, 2400000, (6 + 4 + 7) * 2400000.0},
        /* One host: one fragment is summed and copied out. */
        {3, 1, 1000, 2, 0, 0, (4 + 4) * 4000},
        /* 3 hosts, one fragment of 64 KiB: 4 messages of a third of it. */
        {6, 3, 16384, 7, 4, 87384, (9 + 6 + 14) * 65536},
    };
    const struct ddp_coll_alg *hier = ddp_coll_find(DDP_ALLREDUCE, "hier");
    assert_non_null(hier);
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        const struct ddp_coll_shape shape = {.coll = DDP_ALLREDUCE,
                                             .count = rows[i].count,
                                             .dtype = DDP_F32,
                                             .registered = true,
                                             .hosts = rows[i].hosts};
        struct ddp_coll_cost cost;
        ddp_coll_cost_of(hier, rows[i].ranks, &shape, &cost);
        if (cost.steps != rows[i].steps || cost.messages != rows[i].messages ||
            cost.sent_bytes != rows[i].sent_bytes || cost.memory_bytes != rows[i].memory_bytes)
            fail_msg("row %zu: %g steps, %g messages, %g bytes sent, %g in memory", i, cost.steps,
                     cost.messages, cost.sent_bytes, cost.memory_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counted_is_cost),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_split_by_hand),
        cmocka_unit_test(test_hosts_by_hand),
    };
    return cmocka_run_group_tests_name("coll cost", tests, NULL, NULL);
}
