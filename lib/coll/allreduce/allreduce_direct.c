/* All-reduce "direct": zero-copy on registered memory.
 *
 * The message is cut into one *chunk* per rank, at cache lines. First, every rank announces that
 * its input is ready and its recv buffer may be overwritten. Each rank then combines its chunk of
 * all ranks' send buffers in rank order, and stores the result to all ranks' recv buffers. Last,
 * every rank announces that its chunk is complete everywhere. This also works in place, because
 * only one rank reads and writes the elements of a chunk, and it reads each element before writing
 * it.
 *
 * The stores are plain, because non-temporal stores and prefetching for ownership are not faster
 * (results/notes/collectives.md).
 *
 * Cost for S bytes on n ranks: 2 steps. Each rank reads S and writes S bytes, 2nS in total. No
 * messages are sent. */
#include "coll/coll_shm.h"

/* Scratch: the addresses of all ranks' buffers, which the first call of a plan looks up. */
struct direct_map {
    const void *send; /* the send buffer that was looked up; NULL before the first call */
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

/* Like ddp_direct_chunk_begin (coll_direct.h). All ranks compute the same value, because recv has
 * the same offset in all ranks' registered memory, which begins on a page boundary. */
static size_t chunk_begin(const void *base, size_t bytes, size_t elem, int r, int ranks)
{
    const size_t to_line = -(uintptr_t)base & (DDP_CACHE_LINE - 1);
    const size_t lead = to_line % elem == 0 ? to_line : 0;
    if (r == 0 || bytes <= lead)
        return r == 0 ? 0 : bytes;
    const size_t lines = (bytes - lead + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE;
    return DDP_MIN(bytes, lead + lines * (size_t)r / (size_t)ranks * DDP_CACHE_LINE);
}

/* The work of one rank: its chunk of all ranks' arrays. */
struct direct_chunk {
    const void *src[DDP_REDUCE_MAX];
    void *dst[DDP_REDUCE_MAX];
    struct ddp_reduce reduce; /* points to src and dst, so this struct is never copied */
};

static void direct_cut(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                       const struct direct_map *map, struct direct_chunk *out)
{
    const size_t elem = ddp_dtype_size(args->dtype);
    const size_t bytes = args->count * elem;
    const size_t begin = chunk_begin(args->recv, bytes, elem, comm->rank, comm->size);
    const size_t end = chunk_begin(args->recv, bytes, elem, comm->rank + 1, comm->size);

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
        .remote = ddp_rank_at(comm->rank, 1, comm->size),
    };
}

/* Number of bytes of the next rank's input that are prefetched even if that rank has not announced
 * its input yet. This number speeds up messages of about 1 KiB and does not slow down larger ones
 * (results/notes/collectives.md). */
#define PREFETCH_BYTES ((size_t)512)

static void direct_prefetch(const struct ddp_reduce *reduce)
{
    const size_t bytes = reduce->count * ddp_dtype_size(reduce->dtype);
    ddp_prefetch(reduce->src[reduce->remote], 0, DDP_MIN(bytes, PREFETCH_BYTES));
}

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    struct direct_map *map = scratch;
    uint64_t *sequence = &comm->shm->sequence[DDP_FLAGS_DIRECT];
    struct direct_chunk chunk;

    if (map->send != args->send || map->recv != args->recv)
        DDP_TRY(direct_lookup(comm, args, map, err));
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++*sequence);
    /* This work is done while the flags propagate. */
    direct_cut(comm, args, map, &chunk);
    if (!comm->shm->oversubscribed)
        direct_prefetch(&chunk.reduce);
    DDP_TRY(ddp_coll_wait_all(comm, DDP_FLAGS_DIRECT, *sequence, err));
    comm->device->reduce(&chunk.reduce);
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++*sequence);
    return ddp_coll_wait_all(comm, DDP_FLAGS_DIRECT, *sequence, err);
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
    .summary = "registered memory: each rank sums its chunk and stores it to all ranks, zero-copy",
    .supports = direct_supports,
    .scratch_bytes = direct_scratch_bytes,
    .run = direct_run,
    .cost = direct_cost,
};
