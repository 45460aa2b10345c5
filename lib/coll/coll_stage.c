/* Moves data of private memory through ring buffers in shared memory. */
#include "coll/coll_stage.h"

/* Number of rounds that a ring buffer holds. A slot should have left the reader's cache before it
 * is written again. Therefore a call continues after the slots of the previous call, and DEPTH is
 * not smaller (results/notes/collectives.md). */
#define DEPTH      8
#define RING_BYTES ((size_t)DDP_SHM_RING_SLOTS * DDP_SHM_RING_BYTES)
/* Largest fragment, the fastest size that was measured (results/notes/collectives.md). If data
 * moves only to or from a root, a chunk is cut into about OVERLAP fragments or more, so that
 * publishers and readers copy at the same time. A fragment does not become shorter than
 * FRAGMENT_MIN_BYTES for this reason. */
#define FRAGMENT_BYTES     ((size_t)64 << 10)
#define FRAGMENT_MIN_BYTES ((size_t)8 << 10)
#define OVERLAP            8

/* The state of one call on this rank. */
struct staging_call {
    struct ddp_comm *comm;
    const struct ddp_staging *stage;
    size_t fragment, rounds;     /* fragment: bytes of a fragment */
    uint64_t in_base, done_base; /* sequence numbers of the flags IN and DONE before round 0 */
    int chunks;                  /* number of chunks that a publisher publishes */
    bool publishes, reads;
};

/* True if `reader` takes a chunk from `writer`. */
static bool takes_from(const struct staging_call *call, int reader, int writer)
{
    const int root = call->stage->args->root;
    if (reader == writer)
        return false;
    switch (call->stage->flow) {
    case DDP_STAGING_ALL_TO_ALL:
        return true;
    case DDP_STAGING_ROOT_TO_ALL:
        return writer == root;
    case DDP_STAGING_ALL_TO_ROOT:
        return reader == root;
    case DDP_STAGING_RING:
        break;
    }
    return writer == ddp_rank_at(reader, -1, call->comm->size);
}

static size_t round_up_line(size_t bytes)
{
    return (bytes + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE;
}

/* Chooses the size of the fragments and the number of rounds. All fragments have about the same
 * size. */
static void staging_cut(struct staging_call *call)
{
    const size_t bytes = call->stage->chunk_bytes;
    const size_t room = RING_BYTES / (DEPTH * (size_t)DDP_MAX(call->chunks, 1));
    size_t fragment_max = DDP_MIN(FRAGMENT_BYTES, room) / DDP_CACHE_LINE * DDP_CACHE_LINE;

    if (call->stage->flow == DDP_STAGING_ROOT_TO_ALL ||
        call->stage->flow == DDP_STAGING_ALL_TO_ROOT)
        fragment_max =
            DDP_MIN(fragment_max, DDP_MAX(FRAGMENT_MIN_BYTES, round_up_line(bytes / OVERLAP)));
    call->rounds = (bytes + fragment_max - 1) / fragment_max;
    call->fragment = round_up_line((bytes + call->rounds - 1) / call->rounds);
    call->rounds = (bytes + call->fragment - 1) / call->fragment;
}

static size_t fragment_bytes(const struct staging_call *call, size_t t)
{
    return DDP_MIN(call->fragment, call->stage->chunk_bytes - t * call->fragment);
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
    const struct ddp_staging *stage = call->stage;
    struct ddp_comm *comm = call->comm;
    const unsigned char *fragment = stage->send + t * call->fragment;

    if (t >= DEPTH)
        DDP_TRY(wait_for_readers(call, call->done_base + t - DEPTH + 1, err));
    if (!stage->personal)
        ddp_coll_move(comm, slot_of(call, comm->rank, comm->rank, t), fragment,
                      fragment_bytes(call, t));
    for (int i = 1; stage->personal && i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        ddp_coll_move(comm, slot_of(call, comm->rank, peer, t),
                      fragment + (size_t)peer * stage->chunk_bytes, fragment_bytes(call, t));
    }
    ddp_shm_post(comm, DDP_FLAGS_STAGED_IN, call->in_base + t + 1);
    return 0;
}

static int take(const struct staging_call *call, size_t t, struct ddp_err *err)
{
    struct ddp_comm *comm = call->comm;
    const unsigned char *data[DDP_SHM_RANKS_MAX] = {NULL};

    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        if (!takes_from(call, comm->rank, peer))
            continue;
        DDP_TRY(ddp_shm_wait(comm, peer, DDP_FLAGS_STAGED_IN, call->in_base + t + 1, err));
        data[peer] = slot_of(call, peer, comm->rank, t);
    }
    call->stage->take(comm, call->stage, data, t * call->fragment, fragment_bytes(call, t));
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

int ddp_staging_run(struct ddp_comm *comm, const struct ddp_staging *stage, struct ddp_err *err)
{
    uint64_t *in = &comm->shm->sequence[DDP_FLAGS_STAGED_IN];
    uint64_t *done = &comm->shm->sequence[DDP_FLAGS_STAGED_DONE];
    struct staging_call call = {
        .comm = comm,
        .stage = stage,
        .in_base = *in + 1,
        .done_base = *done,
        .chunks = stage->personal ? comm->size - 1 : 1,
    };

    if (stage->chunk_bytes == 0 || comm->size == 1)
        return 0;
    for (int r = 0; r < comm->size; r++) {
        call.publishes |= takes_from(&call, r, comm->rank);
        call.reads |= takes_from(&call, comm->rank, r);
    }
    staging_cut(&call);
    ddp_shm_post(comm, DDP_FLAGS_STAGED_IN, call.in_base);
    DDP_TRY(ddp_coll_wait_all(comm, DDP_FLAGS_STAGED_IN, call.in_base, err));
    DDP_TRY(run_rounds(&call, err));
    *in = call.in_base + call.rounds;
    *done = call.done_base + call.rounds;
    if (!call.publishes)
        ddp_shm_post(comm, DDP_FLAGS_STAGED_IN, *in);
    if (!call.reads)
        ddp_shm_post(comm, DDP_FLAGS_STAGED_DONE, *done);
    return wait_for_readers(&call, *done, err);
}

int ddp_staging_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    if (shape->coll == DDP_SEND_RECV)
        DDP_TRY(ddp_coll_no_in_place(shape, err));
    return ddp_coll_needs_shm(comm, "staged", err);
}
