/* All-gather, broadcast, all-to-all, gather, scatter and send-recv "staged". Data of private memory
 * moves through ring buffers in shared memory (coll_stage.h). A table holds the differences between
 * these collectives.
 *
 * Cost: 3 steps. Each published byte is read and written once by its publisher, and once by each
 * rank that takes it. Out of place, a rank also copies the chunk that it has for itself. No
 * messages are sent. */
#include "coll/coll_stage.h"

/* The properties of one collective. */
struct move {
    enum ddp_staging_flow flow;
    /* If personal, send holds one chunk for each rank in rank order, otherwise one chunk. If
     * recv_chunks, recv holds one chunk from each rank in rank order, otherwise one chunk. */
    bool personal, recv_chunks;
};

static const struct move moves[DDP_COLL_COUNT] = {
    [DDP_ALL_GATHER] = {DDP_STAGING_ALL_TO_ALL, false, true},
    [DDP_BROADCAST] = {DDP_STAGING_ROOT_TO_ALL, false, false},
    [DDP_ALL_TO_ALL] = {DDP_STAGING_ALL_TO_ALL, true, true},
    [DDP_GATHER] = {DDP_STAGING_ALL_TO_ROOT, false, true},
    [DDP_SCATTER] = {DDP_STAGING_ROOT_TO_ALL, true, false},
    [DDP_SEND_RECV] = {DDP_STAGING_RING, false, false},
};

/* Copies the fragments to recv. Long chunks are copied with non-temporal stores. All-to-all in
 * place is an exception, because recv has just been read and is in the cache. */
static void take(struct ddp_comm *comm, const struct ddp_staging *stage,
                 const unsigned char *const *data, size_t offset, size_t bytes)
{
    const struct ddp_coll_args *args = stage->args;
    const bool in_cache = args->coll == DDP_ALL_TO_ALL && args->send == args->recv;
    const bool past_cache = stage->chunk_bytes >= DDP_PAST_CACHE_BYTES && !in_cache;
    unsigned char *recv = args->recv;

    for (int r = 0; r < comm->size; r++) {
        const size_t chunk = moves[args->coll].recv_chunks ? (size_t)r : 0;
        unsigned char *fragment = recv + chunk * stage->chunk_bytes + offset;
        if (data[r] != NULL && past_cache)
            comm->device->copy_nt(fragment, data[r], bytes);
        else if (data[r] != NULL)
            comm->device->copy(fragment, data[r], bytes);
    }
}

/* True if the rank has a chunk for itself. */
static bool keeps_own(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    switch (moves[args->coll].flow) {
    case DDP_STAGING_ALL_TO_ALL:
        return true;
    case DDP_STAGING_RING:
        return comm->size == 1;
    default:
        return comm->rank == args->root;
    }
}

static void move_own(struct ddp_comm *comm, const struct ddp_coll_args *args, size_t bytes)
{
    const struct move *move = &moves[args->coll];
    const size_t own = bytes * (size_t)comm->rank;
    ddp_coll_move(comm, (unsigned char *)args->recv + (move->recv_chunks ? own : 0),
                  (const unsigned char *)args->send + (move->personal ? own : 0), bytes);
}

static int staged_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const struct ddp_staging stage = {
        .args = args,
        .flow = moves[args->coll].flow,
        .personal = moves[args->coll].personal,
        .chunk_bytes = ddp_coll_array_bytes(args),
        .send = args->send,
        .take = take,
    };

    if (keeps_own(comm, args))
        move_own(comm, args, stage.chunk_bytes);
    return ddp_staging_run(comm, &stage, err);
}

static void staged_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct move *move = &moves[shape->coll];
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const double others = ranks - 1.0;
    double published = 1, read = others, own = 1; /* chunks, all ranks */

    if (move->flow == DDP_STAGING_ALL_TO_ALL) {
        published = move->personal ? ranks * others : ranks;
        read = ranks * others;
        own = ranks;
    } else if (move->flow == DDP_STAGING_RING) {
        published = read = ranks;
        own = 0;
    } else if (move->personal || move->flow == DDP_STAGING_ALL_TO_ROOT) {
        published = others;
    }
    if (ranks == 1) {
        published = read = 0;
        own = 1;
    }
    *cost = (struct ddp_coll_cost){
        .steps = ranks == 1 ? 0 : 3,
        .memory_bytes = 2 * chunk * (published + read + (shape->in_place ? 0 : own)),
        .modelled = true,
    };
}

#define MOVE(symbol, kind, text)                                                                   \
    extern const struct ddp_coll_alg ddp_alg_##symbol;                                             \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "staged",                                                                          \
        .coll = kind,                                                                              \
        .summary = "private memory: " text ", pipelined",                                          \
        .supports = ddp_staging_supports,                                                          \
        .run = staged_run,                                                                         \
        .cost = staged_cost,                                                                       \
    }
MOVE(all_gather_staged, DDP_ALL_GATHER,
     "each rank's chunk goes through its ring buffer to all other ranks");
MOVE(broadcast_staged, DDP_BROADCAST, "goes through the root's ring buffer to all other ranks");
MOVE(all_to_all_staged, DDP_ALL_TO_ALL,
     "a chunk for each other rank goes through every ring buffer");
MOVE(gather_staged, DDP_GATHER, "each rank's chunk goes through its ring buffer to the root");
MOVE(scatter_staged, DDP_SCATTER, "a chunk for each rank goes through the root's ring buffer");
MOVE(send_recv_staged, DDP_SEND_RECV, "goes through each rank's ring buffer to the next rank");
