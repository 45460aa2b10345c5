/* Algorithm "direct": zero-copy on registered memory. Data moves straight from the buffer of one
 * rank to the buffer of another rank.
 *
 * A call has two *steps*, enter and leave. In each step a rank posts its flag in slot
 * DDP_FLAGS_DIRECT. *Enter* announces that the rank's send buffer is ready and that its recv buffer
 * may be overwritten. Except in all-reduce, a rank stores the offsets of both buffers beside its
 * flag, so the offsets may differ between ranks. Between the steps, ranks copy or combine data
 * straight from send buffers to recv buffers. *Leave* announces that the rank no longer accesses
 * the memory of other ranks.
 *
 * Two rules make these accesses safe. A rank accesses the memory of a peer only after the peer has
 * entered. A rank returns only after every rank that accesses its memory or reads its offsets has
 * left. Each call raises the flag of every rank by two.
 *
 * Inputs are combined in rank order, and only one rank combines each element. In place, the rank
 * that combines an element reads the element before it writes it, and no other rank accesses this
 * element. */
#include <string.h>

#include "coll/coll_shm.h"
#include "coll/coll_split.h"

/* Offsets of a rank's send and recv buffers in the shared segment. If the rank does not need a
 * buffer, that offset is ignored. */
struct place {
    uint64_t send, recv;
};

static struct place place_of(const struct ddp_comm *comm, int rank)
{
    struct place place;
    memcpy(&place, ddp_shm_flag_slot_of(comm->shm, rank, DDP_FLAGS_DIRECT)->inline_data,
           sizeof place);
    return place;
}

/* Return the addresses of the send and recv buffers of `rank` in this process. The rank must have
 * entered. For its own buffers, a rank uses the pointers in `args`, because reading its own offsets
 * just after it wrote them would take longer. */
static const unsigned char *send_of(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                                    int rank)
{
    if (rank == comm->rank)
        return args->send;
    return (const unsigned char *)comm->rank_info.segment + place_of(comm, rank).send;
}
static unsigned char *recv_of(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                              int rank)
{
    if (rank == comm->rank)
        return args->recv;
    return (unsigned char *)comm->rank_info.segment + place_of(comm, rank).recv;
}

/* Announces that this rank has reached the next step. */
static void post(struct ddp_comm *comm)
{
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++comm->shm->sequence[DDP_FLAGS_DIRECT]);
}

static void enter(struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    const uintptr_t base = (uintptr_t)comm->rank_info.segment;
    const struct place place = {(uintptr_t)args->send - base, (uintptr_t)args->recv - base};
    memcpy(ddp_shm_flag_slot_of(comm->shm, comm->rank, DDP_FLAGS_DIRECT)->inline_data, &place,
           sizeof place);
    post(comm);
}

/* Waits until `peer` has reached the step that this rank is in (enter or leave). */
static int wait_for(struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    return ddp_shm_wait(comm, peer, DDP_FLAGS_DIRECT, comm->shm->sequence[DDP_FLAGS_DIRECT], err);
}
static int wait_all(struct ddp_comm *comm, struct ddp_err *err)
{
    return ddp_shm_wait_all(comm, DDP_FLAGS_DIRECT, comm->shm->sequence[DDP_FLAGS_DIRECT], err);
}

/* Copies a part of an array of the call. */
static void move(const struct ddp_comm *comm, const struct ddp_coll_args *args, void *dst,
                 const void *src, size_t bytes)
{
    /* The approximate number of arrays of args->count elements that a rank accesses. A root, or a
     * rank of a call in place, may access another number. */
    static const unsigned char arrays[DDP_COLL_COUNT] = {
        [DDP_BROADCAST] = 1, [DDP_GATHER] = 2, [DDP_SCATTER] = 2, [DDP_SEND_RECV] = 2};
    const size_t all = (size_t)comm->size;
    const size_t touched = args->coll == DDP_ALL_GATHER   ? all + 1
                           : args->coll == DDP_ALL_TO_ALL ? 2 * all
                                                          : arrays[args->coll];
    ddp_coll_copy(comm, dst, src, bytes,
                  ddp_coll_past_cache(comm, bytes, touched * ddp_coll_array_bytes(args)));
}

/* Runs all-gather, and all-to-all out of place. Each rank copies its chunk of every rank's send
 * buffer, as soon as that rank has entered. In an all-gather the chunk is the whole send buffer. */
static int pull(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const size_t chunk = ddp_coll_array_bytes(args), own = chunk * (size_t)comm->rank;
    const size_t from = args->coll == DDP_ALL_TO_ALL ? own : 0;
    unsigned char *recv = args->recv;

    move(comm, args, recv + own, (const unsigned char *)args->send + from, chunk);
    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        DDP_TRY(wait_for(comm, peer, err));
        move(comm, args, recv + chunk * (size_t)peer, send_of(comm, args, peer) + from, chunk);
    }
    return 0;
}

#define BLOCK_BYTES ((size_t)4 << 10)

/* Swaps the arrays `a` [bytes] and `b` [bytes], which must not overlap. The block is small enough
 * for the first-level cache. */
static void swap_bytes(unsigned char *a, unsigned char *b, size_t bytes)
{
    unsigned char block[BLOCK_BYTES];

    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        const size_t n = DDP_MIN(BLOCK_BYTES, bytes - at);
        memcpy(block, a + at, n);
        memcpy(a + at, b + at, n);
        memcpy(b + at, block, n);
    }
}

/* Runs all-to-all in place. Two ranks *swap* the chunks that they have for each other. The lower
 * rank swaps the first half of both chunks, and the higher rank swaps the second half. */
static int swap(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const size_t chunk = ddp_coll_array_bytes(args);
    const size_t half = chunk / 2 / DDP_CACHE_LINE * DDP_CACHE_LINE;

    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        const size_t begin = comm->rank < peer ? 0 : half;
        const size_t end = comm->rank < peer ? half : chunk;
        DDP_TRY(wait_for(comm, peer, err));
        swap_bytes((unsigned char *)args->recv + chunk * (size_t)peer + begin,
                   recv_of(comm, args, peer) + chunk * (size_t)comm->rank + begin, end - begin);
    }
    return 0;
}

static int exchange_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                        struct ddp_err *err)
{
    (void)scratch;
    const bool in_place = args->coll == DDP_ALL_TO_ALL && args->send == args->recv;
    enter(comm, args);
    DDP_TRY(in_place ? swap(comm, args, err) : pull(comm, args, err));
    post(comm);
    return wait_all(comm, err);
}

/* Copies the part that `peer` has for this rank. */
static void take_part(struct ddp_comm *comm, const struct ddp_coll_args *args,
                      const struct ddp_split_map *map, int peer)
{
    const struct ddp_split_peer *part = &map->peer[peer];
    ddp_coll_copy(comm, (unsigned char *)args->recv + part->recv_at,
                  send_of(comm, args, peer) + part->remote_at, part->recv_bytes,
                  ddp_coll_past_cache(comm, part->recv_bytes, map->touched));
}

/* Runs all-to-all-v and all-gather-v. Each rank copies its parts of all ranks' send buffers. It
 * skips ranks that have no part for it. */
static int split_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                     struct ddp_err *err)
{
    const struct ddp_split_map *map = ddp_split_map_in(comm, args, scratch);

    enter(comm, args);
    take_part(comm, args, map, comm->rank);
    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        if (map->peer[peer].recv_bytes == 0)
            continue;
        DDP_TRY(wait_for(comm, peer, err));
        take_part(comm, args, map, peer);
    }
    post(comm);
    return wait_all(comm, err);
}

/* Runs send-recv. Each rank copies the send buffer of the rank before it. Only neighbours wait for
 * each other. */
static int send_recv_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                         struct ddp_err *err)
{
    (void)scratch;
    const int after = ddp_rank_at(comm->rank, 1, comm->size);
    const int before = ddp_rank_at(comm->rank, -1, comm->size);

    enter(comm, args);
    DDP_TRY(wait_for(comm, before, err));
    move(comm, args, args->recv, send_of(comm, args, before), ddp_coll_array_bytes(args));
    post(comm);
    return wait_for(comm, after, err);
}

/* Broadcast, gather and scatter move one chunk between the root and each rank. chunk_from returns
 * the chunk's address in the sender's buffer, and chunk_to returns its address in the receiver's
 * buffer. `rank` is the rank that is not the root, or the root for the root's own chunk. */
static const unsigned char *chunk_from(struct ddp_comm *comm, const struct ddp_coll_args *args,
                                       int rank)
{
    if (args->coll == DDP_GATHER)
        return send_of(comm, args, rank);
    return send_of(comm, args, args->root) +
           (args->coll == DDP_SCATTER ? ddp_coll_array_bytes(args) * (size_t)rank : 0);
}
static unsigned char *chunk_to(struct ddp_comm *comm, const struct ddp_coll_args *args, int rank)
{
    if (args->coll == DDP_GATHER)
        return recv_of(comm, args, args->root) + ddp_coll_array_bytes(args) * (size_t)rank;
    return recv_of(comm, args, rank);
}

/* Copies the bytes [begin, end) of the chunk of `rank`. */
static void move_chunk(struct ddp_comm *comm, const struct ddp_coll_args *args, int rank,
                       size_t begin, size_t end)
{
    move(comm, args, chunk_to(comm, args, rank) + begin, chunk_from(comm, args, rank) + begin,
         end - begin);
}

/* The root copies a part of each chunk if chunks have at least this size (root_begin). With two
 * ranks, this part is half the chunk, and copying half a chunk of this size takes about as long as
 * the additional wait. */
#define ROOT_COPIES_FROM_BYTES ((size_t)16 << 10)

/* Returns the offset at which the root's part of each peer's chunk begins. bytes: size of a chunk.
 * In place, the root has nothing to copy for itself, so it copies the last 1/n of each other rank's
 * chunk. The other ranks must then wait for the root once more. Returns `bytes` if the root copies
 * no part. This is the case out of place, and for short chunks, for which this wait would take
 * longer than the copy. */
static size_t root_begin(struct ddp_comm *comm, const struct ddp_coll_args *args, size_t bytes)
{
    if (bytes < ROOT_COPIES_FROM_BYTES ||
        chunk_to(comm, args, args->root) != chunk_from(comm, args, args->root))
        return bytes;
    return bytes - bytes / (size_t)comm->size / DDP_CACHE_LINE * DDP_CACHE_LINE;
}

/* Runs broadcast, gather and scatter. Every rank copies its chunk from or to the root's buffer. */
static int rooted_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const size_t bytes = ddp_coll_array_bytes(args);

    enter(comm, args);
    if (comm->rank != args->root) {
        DDP_TRY(wait_for(comm, args->root, err));
        const size_t end = root_begin(comm, args, bytes);
        move_chunk(comm, args, comm->rank, 0, end);
        post(comm);
        return end < bytes ? wait_for(comm, args->root, err) : 0;
    }
    const size_t begin = root_begin(comm, args, bytes);
    move_chunk(comm, args, comm->rank, 0, bytes);
    for (int i = 1; begin < bytes && i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        DDP_TRY(wait_for(comm, peer, err));
        move_chunk(comm, args, peer, begin, bytes);
    }
    post(comm);
    return wait_all(comm, err);
}

/* Runs reduce, reduce-scatter and reduce-scatter-v. Reduce: the message is cut into one *chunk* per
 * rank, at cache lines of the root's recv buffer. Each rank combines its chunk of all send buffers
 * into the root's recv buffer. In the other two collectives, each rank combines its chunk into its
 * own recv buffer. */
static int reduce_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const size_t elem = ddp_dtype_size(args->dtype), bytes = ddp_coll_array_bytes(args);
    const void *src[DDP_REDUCE_MAX];
    size_t begin = ddp_split_send_at(args, comm->size, comm->rank, comm->rank) * elem;
    size_t end = begin + ddp_split_part(args, comm->size, comm->rank, comm->rank) * elem;
    void *dst = args->recv;

    enter(comm, args);
    DDP_TRY(wait_all(comm, err));
    if (args->coll == DDP_REDUCE) {
        unsigned char *recv = recv_of(comm, args, args->root);
        begin = ddp_direct_chunk_begin(recv, bytes, elem, comm->rank, comm->size);
        end = ddp_direct_chunk_begin(recv, bytes, elem, comm->rank + 1, comm->size);
        dst = recv + begin;
    }
    for (int r = 0; r < comm->size; r++)
        src[r] = send_of(comm, args, r) + begin;
    struct ddp_reduce reduce;
    ddp_reduce_all(&reduce, comm, args, &dst, src, (end - begin) / elem);
    comm->device->reduce(&reduce);
    post(comm);
    return wait_all(comm, err);
}

/* All-reduce. The message is cut into one chunk per rank, as in reduce. Each rank combines its
 * chunk of all ranks' send buffers and stores the result in all ranks' recv buffers.
 *
 * The buffers have the same offset on all ranks, so a rank computes all addresses in the first call
 * of a plan and stores no offsets beside its flag. The stores are plain, because neither
 * non-temporal stores nor prefetches that request ownership of the lines are faster
 * (results/notes/collectives.md). */

/* Scratch: this rank's chunk of the arrays of all ranks. */
struct direct_chunk {
    const void *src[DDP_REDUCE_MAX];
    void *dst[DDP_REDUCE_MAX];
    struct ddp_reduce reduce; /* points to src and dst; reduce.src is NULL before the first call */
    size_t prefetch_bytes;    /* bytes of the next rank's input to prefetch */
};

static size_t allreduce_scratch_bytes(const struct ddp_comm *comm,
                                      const struct ddp_coll_shape *shape)
{
    (void)comm;
    (void)shape;
    return sizeof(struct direct_chunk);
}

/* Number of bytes of the next rank's input that are prefetched, even if that rank has not entered
 * yet. This prefetch speeds up messages of about 1 KiB and does not slow down larger messages
 * (results/notes/collectives.md). */
#define PREFETCH_BYTES ((size_t)512)

/* Computes *chunk. Only the first call of a plan does so, because the divisions take about 20 ns.
 */
static int direct_cut(struct ddp_comm *comm, const struct ddp_coll_args *args,
                      struct direct_chunk *chunk, struct ddp_err *err)
{
    const size_t elem = ddp_dtype_size(args->dtype);
    const size_t bytes = args->count * elem;
    const size_t begin = ddp_direct_chunk_begin(args->recv, bytes, elem, comm->rank, comm->size);
    const size_t end = ddp_direct_chunk_begin(args->recv, bytes, elem, comm->rank + 1, comm->size);

    for (int r = 0; r < comm->size; r++) {
        const unsigned char *send = ddp_comm_map(comm, r, args->send);
        unsigned char *recv = ddp_comm_map(comm, r, args->recv);
        if (send == NULL || recv == NULL)
            return ddp_fail(err, DDP_EINTERNAL, "a buffer of 'direct' is not registered memory");
        chunk->src[r] = send + begin;
        chunk->dst[r] = recv + begin;
    }
    ddp_reduce_all(&chunk->reduce, comm, args, chunk->dst, chunk->src, (end - begin) / elem);
    chunk->reduce.dst_count = comm->size;
    chunk->reduce.remote = ddp_rank_at(comm->rank, 1, comm->size);
    chunk->prefetch_bytes = comm->shm->oversubscribed ? 0 : DDP_MIN(end - begin, PREFETCH_BYTES);
    return 0;
}

static int allreduce_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                         struct ddp_err *err)
{
    struct direct_chunk *chunk = scratch;
    uint64_t *sequence = &comm->shm->sequence[DDP_FLAGS_DIRECT];

    if (chunk->reduce.src == NULL)
        DDP_TRY(direct_cut(comm, args, chunk, err));
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++*sequence);
    ddp_prefetch(chunk->src[chunk->reduce.remote], 0, chunk->prefetch_bytes);
    DDP_TRY(ddp_shm_wait_all(comm, DDP_FLAGS_DIRECT, *sequence, err));
    comm->device->reduce(&chunk->reduce);
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++*sequence);
    return ddp_shm_wait_all(comm, DDP_FLAGS_DIRECT, *sequence, err);
}

#define DIRECT(symbol, kind, run_, text, ...)                                                      \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "direct",                                                                          \
        .coll = kind,                                                                              \
        .summary = "registered memory: each rank " text ", zero-copy",                             \
        .needs = DDP_NEEDS_SHARED | DDP_NEEDS_REGISTERED,                                          \
        .run = run_,                                                                               \
        .cost_model = DDP_COST_DIRECT,                                                             \
        __VA_ARGS__}
DIRECT(allreduce_direct, DDP_ALLREDUCE, allreduce_run, "sums its chunk and stores it to all ranks",
       .scratch_bytes = allreduce_scratch_bytes);
DIRECT(reduce_scatter_direct, DDP_REDUCE_SCATTER, reduce_run,
       "sums its chunk of all ranks' send buffers");
DIRECT(all_gather_direct, DDP_ALL_GATHER, exchange_run, "copies all ranks' send buffers");
DIRECT(broadcast_direct, DDP_BROADCAST, rooted_run, "copies the root's send buffer");
DIRECT(reduce_direct, DDP_REDUCE, reduce_run, "sums a chunk into the root's recv buffer");
DIRECT(all_to_all_direct, DDP_ALL_TO_ALL, exchange_run,
       "copies its chunk of all ranks' send buffers");
DIRECT(all_to_all_v_direct, DDP_ALL_TO_ALL_V, split_run,
       "copies its part of all ranks' send buffers", .scratch_bytes = ddp_split_map_bytes);
DIRECT(all_gather_v_direct, DDP_ALL_GATHER_V, split_run, "copies all ranks' send buffers",
       .scratch_bytes = ddp_split_map_bytes);
DIRECT(reduce_scatter_v_direct, DDP_REDUCE_SCATTER_V, reduce_run,
       "sums its part of all ranks' send buffers");
DIRECT(gather_direct, DDP_GATHER, rooted_run, "writes its chunk to the root's recv buffer");
DIRECT(scatter_direct, DDP_SCATTER, rooted_run, "copies its chunk of the root's send buffer");
DIRECT(send_recv_direct, DDP_SEND_RECV, send_recv_run, "reads its predecessor's buffer");
