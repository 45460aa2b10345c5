/* Backend shm: connects the ranks of one host through a shared segment. It provides flags and slots
 * for algorithms (comm_shm.h), point-to-point messages (shm_p2p.c, shm_pipe.c) and registered
 * memory that every rank can access (shm_heap.c). */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "comm/shm/shm_impl.h"
#include "comm/waiter.h"

static int shm_probe(const char *module_dir, struct ddp_err *err)
{
    return 0;
}

/* Waits until all ranks have left the previous world in this segment. Returns at once if this is
 * the segment's first world. */
static int wait_for_world(struct ddp_comm *comm, uint64_t generation, struct ddp_err *err)
{
    const struct ddp_segment *segment = ddp_shm_state_of(comm)->world->segment;
    struct ddp_waiter waiter;
    ddp_waiter_init(&waiter, comm);
    while (atomic_load_explicit(&segment->channel[0].generation, memory_order_acquire) !=
           generation)
        DDP_TRY(ddp_wait_step(&waiter, comm, -1, err));
    return 0;
}

static void world_destroy(struct ddp_shm_world *world)
{
    ddp_shm_pipe_release(world);
    ddp_shm_heap_release(&world->heap);
    pthread_mutex_destroy(&world->lock);
    free(world);
}

static int shm_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                    struct ddp_err *err)
{
    struct ddp_segment *segment = comm->rank_info.segment;
    DDP_TRY(DDP_FAULT(ATTACH, comm->rank_info.rank, err));
    if (segment == NULL || segment->magic != DDP_SEGMENT_MAGIC) {
        ddp_fail(err, DDP_EUNAVAIL, "backend 'shm' needs ranks started by ddpbench's own launcher");
        return ddp_hint(err,
                        "start ddpbench without mpiexec or srun, or use --backend mpi under them");
    }
    if (segment->ranks != comm->size)
        return ddp_fail(err, DDP_EMISMATCH, "the shared segment has %d ranks, but the world has %d",
                        segment->ranks, comm->size);
    if (options->heap_bytes > segment->heap_stride)
        return ddp_fail(err, DDP_EINTERNAL,
                        "the launcher reserved less registered memory than the rank needs");

    int rc = 0;
    struct ddp_shm_state *state = NULL;
    struct ddp_shm_world *world = NULL;
    DDP_TRY_GOTO(DDP_NEW(&state, 1, err), err_state);
    DDP_TRY_GOTO(DDP_NEW(&world, 1, err), err_state);
    world->segment = segment;
    world->me = comm->rank;
    world->ranks = comm->size;
    world->threads = options->threads;
    pthread_mutex_init(&world->lock, NULL);
    ddp_shm_heap_init(&world->heap, ddp_segment_heap_of(segment, comm->rank), segment->heap_stride);
    state->world = world;
    comm->state = state;
    uint64_t generation = ddp_segment_rank_of(segment, comm->rank)->opens++;
    ddp_shm_channel_attach(comm, 0, generation);
    DDP_TRY_GOTO(wait_for_world(comm, generation, err), err_lock);
    DDP_TRY_GOTO(ddp_shm_pipe_init(world, err), err_lock);
    DDP_TRY_GOTO(ddp_shm_barrier(comm, 0, err), err_p2p);
    return 0;

err_p2p:
    ddp_shm_pipe_release(world);
err_lock:
    pthread_mutex_destroy(&world->lock);
err_state:
    ddp_segment_abort(segment, comm->rank, comm->rank, rc);
    comm->shm = NULL;
    comm->state = NULL;
    free(world);
    free(state);
    return rc;
}

static void shm_finalize(struct ddp_comm *comm)
{
    struct ddp_shm_state *state = ddp_shm_state_of(comm);
    struct ddp_shm_world *world = state->world;
    /* The last rank that leaves resets the flags of the channel. After a failure, other ranks may
     * still use the channel, and no rank opens it again. Therefore this rank does not leave it. */
    if (!ddp_segment_aborted(world->segment, NULL, NULL, NULL))
        ddp_shm_channel_leave(comm);
    if (comm->parent == NULL)
        world_destroy(world);
    free(state);
}

static void shm_abort(struct ddp_comm *comm, int code)
{
    int me = comm->world_rank[comm->rank];
    ddp_segment_abort(comm->rank_info.segment, me, me, code);
}

int ddp_shm_wait_slow(struct ddp_comm *comm, int peer, int flag_slot, uint64_t sequence,
                      struct ddp_err *err)
{
    _Atomic(uint64_t) *flag = &ddp_shm_flag_slot_of(comm->shm, peer, flag_slot)->sequence;
    struct ddp_waiter waiter;
    ddp_waiter_init(&waiter, comm);
    do
        DDP_TRY(ddp_wait_step(&waiter, comm, comm->world_rank[peer], err));
    while (atomic_load_explicit(flag, memory_order_acquire) < sequence);
    return 0;
}

int ddp_shm_barrier(struct ddp_comm *comm, int flag_slot, struct ddp_err *err)
{
    uint64_t sequence = ++comm->shm->sequence[flag_slot];
    ddp_shm_post(comm, flag_slot, sequence);
    return ddp_shm_wait_all(comm, flag_slot, sequence, err);
}

static int shm_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    return ddp_shm_barrier(comm, 0, err);
}

/* All-gather through the two slots of each rank (comm_shm.h), in fragments of DDP_SHM_SLOT_BYTES.
 * Fragments alternate between the slots. A rank overwrites the slot of fragment i only after the
 * barrier of fragment i + 1. Every rank has read fragment i before it enters this barrier. The
 * first and the last barrier separate this call from algorithms that use the slots before and after
 * this call. */
static int shm_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                               struct ddp_err *err)
{
    const struct ddp_comm_shm *shm = comm->shm;
    DDP_TRY(ddp_shm_barrier(comm, 0, err));
    int slot = 0;
    for (size_t done = 0; done < bytes; done += DDP_SHM_SLOT_BYTES, slot ^= 1) {
        size_t piece = DDP_MIN(bytes - done, (size_t)DDP_SHM_SLOT_BYTES);
        memcpy(ddp_shm_slot_of(shm, comm->rank, slot), (const char *)mine + done, piece);
        DDP_TRY(ddp_shm_barrier(comm, 0, err));
        for (int r = 0; r < comm->size; r++)
            memcpy((char *)all + (size_t)r * bytes + done, ddp_shm_slot_of(shm, r, slot), piece);
    }
    return ddp_shm_barrier(comm, 0, err);
}

extern const struct ddp_backend ddp_backend_shm;
const struct ddp_backend ddp_backend_shm = {
    .name = "shm",
    .summary = "ranks of this host over shared memory, started by ddpbench itself",
    .caps = DDP_CAP_P2P | DDP_CAP_MAP | DDP_CAP_REGISTERED,
    .probe = shm_probe,
    .init = shm_init,
    .finalize = shm_finalize,
    .abort = shm_abort,
    .group = ddp_shm_group,
    .barrier = shm_barrier,
    .exchange = shm_allgather_bytes,
    .alloc = ddp_shm_alloc,
    .free = ddp_shm_free,
    .map = ddp_shm_map,
    .isend = ddp_shm_isend,
    .irecv = ddp_shm_irecv,
    .test = ddp_shm_test,
};
