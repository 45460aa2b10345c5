/* Algorithm "staged" of all collectives except barrier and all-reduce (allreduce_staged.c). Data in
 * private memory moves through ring buffers in shared memory.
 *
 * Each publishing rank cuts its chunks of data into fragments and copies them to its own ring
 * buffer. Each reading rank copies or combines (*takes*) the fragments in the ring buffers of the
 * publishers. A rank may both publish and read. All chunks are cut at the same offsets. In a
 * collective with a split (coll.h), chunks may have different lengths, and a chunk that has ended
 * is skipped in the remaining rounds. In the other collectives all chunks have the same length. In
 * round t every publisher copies fragment t of each of its chunks into its ring buffer and posts
 * its flag IN. Every reader waits for the flag IN of each publisher from which it reads, takes
 * fragment t of each chunk that it reads, and posts its flag DONE. A ring buffer holds the slots of
 * DEPTH rounds. A publisher writes a slot again only when all readers are done with it.
 *
 * Reduce-scatter, reduce-scatter-v and reduce combine the taken fragments and the rank's own
 * fragment in rank order. The other collectives copy the taken fragments to recv.
 *
 * A rank writes only to its own ring buffer, and returns when no other rank reads that ring buffer
 * any more. At the start of a call each rank waits until all ranks have entered, because all-reduce
 * "staged" uses the same ring buffers and flags, and returns while other ranks may still read them.
 * Every call raises each of the two flags by the same amount on all ranks. */
#include "coll/coll_shm.h"
#include "coll/coll_split.h"

/* The ranks that take chunks, and the ranks from which they take chunks. */
enum flow {
    ALL_TO_ALL,  /* every rank takes from every other rank */
    ROOT_TO_ALL, /* every rank except the root takes from the root */
    ALL_TO_ROOT, /* the root takes from every other rank */
    RING         /* every rank takes from the rank before it */
};

/* The properties of one collective. */
struct staging {
    enum flow flow;
    /* `personal`: `send` of a publisher holds one chunk for each rank, in rank order. The publisher
     * does not publish the chunk for itself. If `personal` is false, `send` holds one chunk for all
     * readers. `recv_chunks`: `recv` holds one chunk from each rank, in rank order. If it is false,
     * `recv` holds one chunk. `combines`: readers combine the chunks. */
    bool personal, recv_chunks, combines;
};

static const struct staging stagings[DDP_COLL_COUNT] = {
    [DDP_REDUCE_SCATTER] = {ALL_TO_ALL, true, false, true},
    [DDP_ALL_GATHER] = {ALL_TO_ALL, false, true, false},
    [DDP_BROADCAST] = {ROOT_TO_ALL, false, false, false},
    [DDP_REDUCE] = {ALL_TO_ROOT, false, false, true},
    [DDP_ALL_TO_ALL] = {ALL_TO_ALL, true, true, false},
    [DDP_ALL_TO_ALL_V] = {ALL_TO_ALL, true, true, false},
    [DDP_ALL_GATHER_V] = {ALL_TO_ALL, false, true, false},
    [DDP_REDUCE_SCATTER_V] = {ALL_TO_ALL, true, false, true},
    [DDP_GATHER] = {ALL_TO_ROOT, false, true, false},
    [DDP_SCATTER] = {ROOT_TO_ALL, true, false, false},
    [DDP_SEND_RECV] = {RING, false, false, false},
};

/* Number of rounds that a ring buffer holds. Writing a slot is slow while the slot is in the
 * reader's cache. Therefore a ring buffer holds this many rounds, and a call begins with the slots
 * after those of the previous call (results/notes/collectives.md). */
#define DEPTH      8
#define RING_BYTES ((size_t)DDP_SHM_RING_SLOTS * DDP_SHM_RING_BYTES)
/* Largest fragment, the fastest size that was measured (results/notes/collectives.md). If data
 * moves only to or from a root, a chunk is cut into at least about OVERLAP fragments, so that
 * publishers and readers copy at the same time. This rule makes no fragment shorter than
 * FRAGMENT_MIN_BYTES. */
#define FRAGMENT_BYTES     ((size_t)64 << 10)
#define FRAGMENT_MIN_BYTES ((size_t)8 << 10)
#define OVERLAP            8

/* The state of one call on this rank. */
struct staging_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    const struct staging *stage;
    size_t chunk; /* bytes of a chunk (of the longest one), a multiple of the element size */
    const struct ddp_split_map *map; /* the chunks of a collective with a split, else NULL */
    size_t fragment, rounds;         /* fragment: bytes of a fragment */
    uint64_t in_base, done_base;     /* sequence numbers of the flags IN and DONE before round 0 */
    int chunks;                      /* number of chunks that a publisher publishes */
    bool publishes, reads;
};

/* True if `reader` takes a chunk from `writer`. */
static bool takes_from(const struct staging_call *call, int reader, int writer)
{
    const int root = call->args->root;
    if (reader == writer)
        return false;
    switch (call->stage->flow) {
    case ALL_TO_ALL:
        return true;
    case ROOT_TO_ALL:
        return writer == root;
    case ALL_TO_ROOT:
        return reader == root;
    case RING:
        break;
    }
    return writer == ddp_rank_at(reader, -1, call->comm->size);
}

/* Chooses the size of the fragments and the number of rounds. All fragments have about the same
 * size. */
static void staging_cut(struct staging_call *call)
{
    const size_t bytes = call->chunk;
    const size_t room = RING_BYTES / (DEPTH * (size_t)DDP_MAX(call->chunks, 1));
    size_t fragment_max = DDP_MIN(FRAGMENT_BYTES, room) / DDP_CACHE_LINE * DDP_CACHE_LINE;

    if (bytes == 0) /* ranks send only to themselves */
        return;
    if (call->stage->flow == ROOT_TO_ALL || call->stage->flow == ALL_TO_ROOT)
        fragment_max =
            DDP_MIN(fragment_max, DDP_MAX(FRAGMENT_MIN_BYTES, ddp_round_to_line(bytes / OVERLAP)));
    call->rounds = (bytes + fragment_max - 1) / fragment_max;
    call->fragment = ddp_round_to_line((bytes + call->rounds - 1) / call->rounds);
    call->rounds = (bytes + call->fragment - 1) / call->fragment;
}

/* Returns the size of fragment t of a chunk of `chunk` bytes. It is 0 if the chunk has ended. */
static size_t fragment_of(const struct staging_call *call, size_t chunk, size_t t)
{
    const size_t at = t * call->fragment;
    return at < chunk ? DDP_MIN(call->fragment, chunk - at) : 0;
}

/* A chunk in the send or recv array of this rank. */
struct place {
    size_t at, bytes;
};

/* Return the chunk that this rank has for `peer`, and the chunk that it receives from `peer`. */
static struct place chunk_for(const struct staging_call *call, int peer)
{
    if (call->map != NULL)
        return (struct place){call->map->peer[peer].send_at, call->map->peer[peer].send_bytes};
    return (struct place){call->stage->personal ? (size_t)peer * call->chunk : 0, call->chunk};
}
static struct place chunk_from(const struct staging_call *call, int peer)
{
    if (call->map != NULL)
        return (struct place){call->map->peer[peer].recv_at, call->map->peer[peer].recv_bytes};
    return (struct place){call->stage->recv_chunks ? (size_t)peer * call->chunk : 0, call->chunk};
}

/* Returns the slot where `writer` stores fragment t of its chunk for `reader`. */
static unsigned char *slot_of(const struct staging_call *call, int writer, int reader, size_t t)
{
    const int chunk =
        call->stage->personal ? ddp_rank_at(reader, -1 - writer, call->comm->size) : 0;
    return ddp_shm_ring_of(call->comm->shm, writer, 0) +
           ((call->in_base + t) % DEPTH * (size_t)call->chunks + (size_t)chunk) * call->fragment;
}

/* Waits until the flag DONE of all readers of this rank's ring buffer has reached `sequence`. */
static int wait_for_readers(const struct staging_call *call, uint64_t sequence, struct ddp_err *err)
{
    struct ddp_comm *comm = call->comm;
    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        if (takes_from(call, peer, comm->rank))
            DDP_TRY(ddp_shm_wait(comm, peer, DDP_FLAGS_STAGED_DONE, sequence, err));
    }
    return 0;
}

static int publish(const struct staging_call *call, size_t t, struct ddp_err *err)
{
    const struct staging *stage = call->stage;
    struct ddp_comm *comm = call->comm;
    const unsigned char *fragment = (const unsigned char *)call->args->send + t * call->fragment;

    if (t >= DEPTH)
        DDP_TRY(wait_for_readers(call, call->done_base + t - DEPTH + 1, err));
    if (!stage->personal)
        ddp_coll_copy(comm, slot_of(call, comm->rank, comm->rank, t), fragment,
                      fragment_of(call, chunk_for(call, comm->rank).bytes, t), false);
    for (int i = 1; stage->personal && i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        const struct place chunk = chunk_for(call, peer);
        ddp_coll_copy(comm, slot_of(call, comm->rank, peer, t), fragment + chunk.at,
                      fragment_of(call, chunk.bytes, t), false);
    }
    ddp_shm_post(comm, DDP_FLAGS_STAGED_IN, call->in_base + t + 1);
    return 0;
}

/* For each rank r from which this rank reads, copies the fragment data[r] to recv. All-to-all in
 * place has just read recv, so recv is in the cache, and plain stores are faster. */
static void take_copies(const struct staging_call *call, const unsigned char *const *data, size_t t)
{
    const struct ddp_coll_args *args = call->args;
    const bool in_cache = args->coll == DDP_ALL_TO_ALL && args->send == args->recv;
    const bool past_cache = !in_cache && ddp_coll_past_cache(call->comm, call->chunk, 0);
    unsigned char *recv = (unsigned char *)args->recv + t * call->fragment;

    for (int r = 0; r < call->comm->size; r++) {
        const struct place chunk = chunk_from(call, r);
        if (data[r] != NULL)
            ddp_coll_copy(call->comm, recv + chunk.at, data[r], fragment_of(call, chunk.bytes, t),
                          past_cache);
    }
}

/* Combines the fragments data[r] of all other ranks r with this rank's fragment. */
static void take_sum(const struct staging_call *call, const unsigned char **data, size_t t)
{
    const struct ddp_coll_args *args = call->args;
    const int rank = call->comm->rank;
    const size_t at = t * call->fragment;
    const struct place own = chunk_for(call, rank);
    const size_t bytes = fragment_of(call, own.bytes, t);
    void *dst = (unsigned char *)args->recv + at;

    if (bytes == 0)
        return;
    data[rank] = (const unsigned char *)args->send + own.at + at;
    struct ddp_reduce reduce;
    ddp_reduce_all(&reduce, call->comm, args, &dst, (const void *const *)data,
                   bytes / ddp_dtype_size(args->dtype));
    call->comm->device->reduce(&reduce);
}

static int take(const struct staging_call *call, size_t t, struct ddp_err *err)
{
    struct ddp_comm *comm = call->comm;
    const unsigned char *data[DDP_SHM_RANKS_MAX] = {NULL};

    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        if (!takes_from(call, comm->rank, peer) ||
            fragment_of(call, chunk_from(call, peer).bytes, t) == 0)
            continue;
        DDP_TRY(ddp_shm_wait(comm, peer, DDP_FLAGS_STAGED_IN, call->in_base + t + 1, err));
        data[peer] = slot_of(call, peer, comm->rank, t);
    }
    if (call->stage->combines)
        take_sum(call, data, t);
    else
        take_copies(call, data, t);
    ddp_shm_post(comm, DDP_FLAGS_STAGED_DONE, call->done_base + t + 1);
    return 0;
}

static int run_rounds(const struct staging_call *call, struct ddp_err *err)
{
    for (size_t i = 0; i <= call->rounds; i++) {
        if (call->publishes && i < call->rounds)
            DDP_TRY(publish(call, i, err));
        if (call->reads && i >= 1)
            DDP_TRY(take(call, i - 1, err));
    }
    return 0;
}

/* Copies the chunk that this rank has for itself, if there is such a chunk and it is not combined
 * with other chunks. */
static void copy_own(const struct staging_call *call)
{
    const struct ddp_coll_args *args = call->args;
    const struct place from = chunk_for(call, call->comm->rank);
    const struct place to = chunk_from(call, call->comm->rank);
    const bool has_own = call->stage->flow == RING         ? call->comm->size == 1
                         : call->stage->flow == ALL_TO_ALL ? true
                                                           : call->comm->rank == args->root;
    if (has_own && (!call->stage->combines || call->comm->size == 1))
        ddp_coll_copy(call->comm, (unsigned char *)args->recv + to.at,
                      (const unsigned char *)args->send + from.at, to.bytes,
                      ddp_coll_past_cache(call->comm, to.bytes, 0));
}

static int staged_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    uint64_t *in = &comm->shm->sequence[DDP_FLAGS_STAGED_IN];
    uint64_t *done = &comm->shm->sequence[DDP_FLAGS_STAGED_DONE];
    const struct staging *stage = &stagings[args->coll];
    struct staging_call call = {
        .comm = comm,
        .args = args,
        .stage = stage,
        .chunk = ddp_coll_array_bytes(args),
        .in_base = *in + 1,
        .done_base = *done,
        .chunks = stage->personal ? comm->size - 1 : 1,
    };

    if (ddp_coll_has_split(args->coll)) {
        call.map = ddp_split_map_in(comm, args, scratch);
        call.chunk = call.map->most_part;
    }
    copy_own(&call);
    if (comm->size == 1)
        return 0;
    for (int r = 0; r < comm->size; r++) {
        call.publishes |= takes_from(&call, r, comm->rank);
        call.reads |= takes_from(&call, comm->rank, r);
    }
    staging_cut(&call);
    ddp_shm_post(comm, DDP_FLAGS_STAGED_IN, call.in_base);
    DDP_TRY(ddp_shm_wait_all(comm, DDP_FLAGS_STAGED_IN, call.in_base, err));
    DDP_TRY(run_rounds(&call, err));
    *in = call.in_base + call.rounds;
    *done = call.done_base + call.rounds;
    if (!call.publishes)
        ddp_shm_post(comm, DDP_FLAGS_STAGED_IN, *in);
    if (!call.reads)
        ddp_shm_post(comm, DDP_FLAGS_STAGED_DONE, *done);
    return wait_for_readers(&call, *done, err);
}

#define STAGED(symbol, kind, text, ...)                                                            \
    const struct ddp_coll_alg ddp_alg_##symbol = {.name = "staged",                                \
                                                  .coll = kind,                                    \
                                                  .summary =                                       \
                                                      "private memory: " text ", pipelined",       \
                                                  .needs = DDP_NEEDS_SHARED,                       \
                                                  .run = staged_run,                               \
                                                  .cost_model = DDP_COST_STAGED,                   \
                                                  __VA_ARGS__}
STAGED(reduce_scatter_staged, DDP_REDUCE_SCATTER,
       "chunks go through ring buffers in shared memory");
STAGED(all_gather_staged, DDP_ALL_GATHER,
       "each rank's chunk goes through its ring buffer to all other ranks");
STAGED(broadcast_staged, DDP_BROADCAST,
       "the root's ring buffer carries the data to all other ranks");
STAGED(reduce_staged, DDP_REDUCE,
       "ring buffers in shared memory carry the inputs to the root, which sums");
STAGED(all_to_all_staged, DDP_ALL_TO_ALL, "every ring buffer carries a chunk for each other rank");
STAGED(all_to_all_v_staged, DDP_ALL_TO_ALL_V,
       "every ring buffer carries a part for each other rank",
       .scratch_bytes = ddp_split_map_bytes);
STAGED(all_gather_v_staged, DDP_ALL_GATHER_V,
       "each rank's part goes through its ring buffer to all other ranks",
       .scratch_bytes = ddp_split_map_bytes);
STAGED(reduce_scatter_v_staged, DDP_REDUCE_SCATTER_V,
       "parts go through ring buffers in shared memory", .scratch_bytes = ddp_split_map_bytes);
STAGED(gather_staged, DDP_GATHER, "each rank's chunk goes through its ring buffer to the root");
STAGED(scatter_staged, DDP_SCATTER, "a chunk for each rank goes through the root's ring buffer");
STAGED(send_recv_staged, DDP_SEND_RECV,
       "each rank's ring buffer carries the data to the next rank");
