/* All-reduce "direct": zero-copy on registered memory.
 *
 * The message is cut into one *slice* a rank, on cache-line boundaries. *Enter*: every rank says
 * that its input is ready and its recv may be overwritten. Each rank combines its slice from all
 * ranks' send buffers in rank order and stores it into all ranks' recv buffers. *Exit*: every rank
 * says that its slice is everywhere. In place and out of place alike: an element is read by its
 * slice's owner only, before it is written.
 *
 * Plain stores: measured against non-temporal ones and against prefetching for ownership they were
 * never slower on a shared L3 (64 KiB: 2.6 us against 14 and 3.2; 64 MiB: 2.7 ms against 7.3 and
 * 2.7).
 *
 * One stretch a rank: an input written front to back leaves its front in the second-level cache,
 * and rank 0, whose slice that is, takes 10 to 20 % longer for 16 KiB. Two stretches, the ends for
 * one rank and the middle for the other, take 1.07 to 1.56 of the time up to 8 KiB, 0.94 to 0.99 at
 * 16 KiB, 1.06 to 1.14 at 32 and 64 KiB, 1.01 at 256 KiB (EPYC, 27 to 59 launches whose every 25
 * calls took another cut in turn); strewn in pieces of 1 KiB, three times as long.
 *
 * Cost, S bytes, n ranks: 2 steps; each rank reads nS/n and writes nS/n: 2nS in all. Nothing is
 * sent. */
#include "coll/coll_shm.h"

/* Scratch: the addresses of all ranks' buffers, looked up in the first call of a plan. */
struct direct_map {
    const void *send; /* of the args that were looked up; NULL: not yet */
    void *recv;
    const void *src[DDP_REDUCE_MAX];
    void *dst[DDP_REDUCE_MAX];
};

static int direct_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                           struct ddp_err *err)
{
    DDP_TRY(ddp_coll_needs_shm(comm, "direct", err));
    if (!shape->registered) {
        ddp_fail(err, DDP_EUNAVAIL, "algorithm 'direct' needs registered memory");
        ddp_hint(err, "use --memory registered, or --algorithm staged");
        return DDP_EUNAVAIL;
    }
    return 0;
}

static size_t direct_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    (void)comm;
    (void)shape;
    return sizeof(struct direct_map);
}

static int direct_lookup(struct ddp_comm *comm, const struct ddp_coll_args *args,
                         struct direct_map *map, struct ddp_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        map->src[r] = ddp_comm_map(comm, r, args->send);
        map->dst[r] = ddp_comm_map(comm, r, args->recv);
        if (map->src[r] == NULL || map->dst[r] == NULL)
            return ddp_fail(err, DDP_EINTERNAL, "a buffer of 'direct' is not registered memory");
    }
    map->send = args->send;
    map->recv = args->recv;
    return 0;
}

/* First byte of rank r's slice of `bytes` bytes at address `base`: 0 for rank 0, `bytes` for rank
 * n, else a cache-line boundary of memory (of the array, should base not be a multiple of the
 * element size). All ranks agree, for registered blocks begin on pages. */
static size_t slice_begin(const void *base, size_t bytes, size_t elem, int r, int ranks)
{
    const size_t to_line = -(uintptr_t)base & (DDP_CACHE_LINE - 1);
    const size_t lead = to_line % elem == 0 ? to_line : 0;
    if (r == 0 || bytes <= lead)
        return r == 0 ? 0 : bytes;
    const size_t lines = (bytes - lead + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE;
    return DDP_MIN(bytes, lead + lines * (size_t)r / (size_t)ranks * DDP_CACHE_LINE);
}

/* A rank's share of the work: its slice of all ranks' arrays. */
struct direct_slice {
    const void *src[DDP_REDUCE_MAX];
    void *dst[DDP_REDUCE_MAX];
    struct ddp_reduce reduce; /* points to the two: never copied */
};

static void direct_cut(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                       const struct direct_map *map, struct direct_slice *out)
{
    const size_t elem = ddp_dtype_size(args->dtype);
    const size_t bytes = args->count * elem;
    const size_t begin = slice_begin(args->recv, bytes, elem, comm->rank, comm->size);
    const size_t end = slice_begin(args->recv, bytes, elem, comm->rank + 1, comm->size);

    for (int r = 0; r < comm->size; r++) {
        out->src[r] = (const unsigned char *)map->src[r] + begin;
        out->dst[r] = (unsigned char *)map->dst[r] + begin;
    }
    out->reduce = (struct ddp_reduce){
        .dst = out->dst,
        .dst_count = comm->size,
        .src = out->src,
        .src_count = comm->size,
        .count = (end - begin) / elem,
        .dtype = args->dtype,
        .op = args->op,
        .divisor = ddp_coll_divisor(comm, args->op),
        .far = ddp_rank_at(comm->rank, 1, comm->size),
    };
}

/* The first bytes of a neighbour's slice are asked for before that rank has said that they are
 * ready; what it still writes of them it takes back. f32 in place, 2 ranks, of the time without
 * (EPYC, means of 30 to 43 launches whose every 25 calls took another count in turn):
 *               1 KiB  2 KiB  4 KiB  8 KiB  16 KiB  64 KiB
 *   256 bytes   0.92   0.99   1.00   1.00   1.00    1.00
 *   512         0.90   0.98   1.00   0.99   0.99    1.00
 *   1024        0.90   1.03   1.02   1.01   1.01    1.00
 * Four other runs of 16 KiB, 60 to 120 launches: 0.976 to 0.987 with 512. Unmeasured: Xeons. */
#define ASK_BYTES ((size_t)512)

static void direct_ask(const struct ddp_reduce *reduce)
{
    const size_t bytes = reduce->count * ddp_dtype_size(reduce->dtype);
    ddp_prefetch(reduce->src[reduce->far], 0, DDP_MIN(bytes, ASK_BYTES));
}

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    struct direct_map *map = scratch;
    uint64_t *epoch = &comm->shm->epoch[DDP_LANE_DIRECT];
    struct direct_slice slice;

    if (map->send != args->send || map->recv != args->recv)
        DDP_TRY(direct_lookup(comm, args, map, err));
    ddp_shm_post(comm, DDP_LANE_DIRECT, ++*epoch);
    /* While the flags are under way. */
    direct_cut(comm, args, map, &slice);
    if (!comm->shm->crowded)
        direct_ask(&slice.reduce);
    DDP_TRY(ddp_coll_wait_all(comm, DDP_LANE_DIRECT, *epoch, err));
    comm->device->reduce(&slice.reduce);
    ddp_shm_post(comm, DDP_LANE_DIRECT, ++*epoch);
    return ddp_coll_wait_all(comm, DDP_LANE_DIRECT, *epoch, err);
}

static void direct_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes =
        (double)ddp_coll_message_bytes(shape->coll, ranks, shape->count, shape->dtype);
    *cost = (struct ddp_coll_cost){
        .steps = 2,
        .memory_bytes = 2.0 * ranks * bytes,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_allreduce_direct = {
    .name = "direct",
    .coll = DDP_ALLREDUCE,
    .summary = "registered memory: each rank sums its slice and stores it to all, zero-copy",
    .supports = direct_supports,
    .scratch_bytes = direct_scratch_bytes,
    .run = direct_run,
    .cost = direct_cost,
};
