/* Channels of the shm backend. A channel is the part of the segment that holds the flag slots,
 * message slots and rings of one group (segment.h).
 *
 * Channel 0 belongs to the world. The lowest rank of a new group claims a channel and sends the
 * channel's number to the other members by messages over the parent. Only members take part, so
 * disjoint groups can be opened at the same time. All flags of a free channel are zero. The last
 * member to leave a channel clears the flags. At that time no other rank reads the flags, so no
 * rank sees a sequence number decrease. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/shm/shm_impl.h"
#include "comm/waiter.h"

#define GROUPS (DDP_SEGMENT_CHANNELS - 1)

/* The message that the lowest rank sends to the other members. */
struct offer {
    int32_t channel;
    uint64_t generation;
    uint64_t id; /* the group's id; the receiver fails if it opens a group with another id */
};

void ddp_shm_channel_attach(struct ddp_comm *comm, int channel, uint64_t generation)
{
    struct ddp_shm_state *state = ddp_shm_state_of(comm);
    const struct ddp_segment *segment = state->world->segment;
    unsigned char *start = ddp_segment_channel_of(segment, channel);
    size_t ranks = (size_t)segment->ranks;
    state->channel = channel;
    state->context = (uint64_t)channel | generation << 8;
    state->shm.areas = start;
    state->shm.area_bytes = ddp_segment_area_bytes(segment->ranks);
    state->shm.flag_slots = (struct ddp_shm_flag_slot *)start;
    state->shm.slots = start + DDP_SHM_FLAG_AREAS * state->shm.area_bytes;
    state->shm.rings = state->shm.slots + ranks * 2 * DDP_SHM_SLOT_BYTES;
    state->shm.abort_word = (_Atomic(uint32_t) *)(uintptr_t)&segment->abort_word;
    state->shm.spin = comm->rank_info.oversubscribed ? DDP_SPIN_SHARED : DDP_SPIN_ALONE;
    state->shm.oversubscribed = segment->oversubscribed;
    comm->shm = &state->shm;
}

/* Sets shm->flag_slots to the area that the group uses after `moves` calls of
 * ddp_shm_move_flags. */
static void use_area(struct ddp_comm_shm *shm, unsigned moves)
{
    shm->flag_slots =
        (struct ddp_shm_flag_slot *)(shm->areas + moves % DDP_SHM_FLAG_AREAS * shm->area_bytes);
}

int ddp_shm_move_flags(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_comm_shm *shm = comm->shm;
    /* After this barrier, no rank waits for a flag of an earlier operation in the current area, or
     * reads data of such an operation. */
    DDP_TRY(ddp_shm_barrier(comm, 0, err));
    const struct ddp_shm_flag_slot *from = ddp_shm_flag_slot_of(shm, comm->rank, 0);
    use_area(shm, ++shm->moves);
    struct ddp_shm_flag_slot *to = ddp_shm_flag_slot_of(shm, comm->rank, 0);
    /* Copy the numbers, because later operations may wait for numbers that were posted before the
     * move. */
    for (int i = 0; i < DDP_SHM_FLAG_SLOTS; i++)
        atomic_store_explicit(&to[i].sequence,
                              atomic_load_explicit(&from[i].sequence, memory_order_relaxed),
                              memory_order_release);
    return 0;
}

void ddp_shm_channel_leave(struct ddp_comm *comm)
{
    struct ddp_shm_state *state = ddp_shm_state_of(comm);
    struct ddp_segment *segment = state->world->segment;
    struct ddp_segment_channel *channel = &segment->channel[state->channel];
    uint32_t before = atomic_fetch_add_explicit(&channel->left, 1, memory_order_acq_rel);
    if (before + 1 < (uint32_t)comm->size)
        return;
    for (unsigned area = 0; area <= DDP_MIN(state->shm.moves, DDP_SHM_FLAG_AREAS - 1u); area++) {
        use_area(&state->shm, area);
        for (int i = 0; i < comm->size * DDP_SHM_FLAG_SLOTS; i++)
            atomic_store_explicit(&state->shm.flag_slots[i].sequence, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&channel->left, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&channel->generation, 1, memory_order_release);
    if (state->channel > 0)
        atomic_fetch_and_explicit(&segment->channels_used, ~(UINT64_C(1) << (state->channel - 1)),
                                  memory_order_release);
}

/* Claims a free channel. Returns its number, or -1 if there is none. */
static int claim_channel(struct ddp_segment *segment)
{
    uint64_t used = atomic_load_explicit(&segment->channels_used, memory_order_relaxed);
    while (~used != 0) {
        int bit = __builtin_ctzll(~used);
        if (atomic_compare_exchange_weak_explicit(&segment->channels_used, &used,
                                                  used | UINT64_C(1) << bit, memory_order_acquire,
                                                  memory_order_relaxed))
            return bit + 1;
    }
    return -1;
}

/* Runs on the lowest rank. Claims a channel and sends its number to all other members. */
static int send_channel(struct ddp_comm *parent, const struct ddp_comm *child, struct offer *offer,
                        struct ddp_err *err)
{
    const struct ddp_shm_state *state = ddp_shm_state_of(parent);
    struct ddp_segment *segment = state->world->segment;
    size_t others = (size_t)child->size - 1;
    struct ddp_request *req;
    DDP_TRY(ddp_comm_abort_if(parent, DDP_NEW(&req, others, err)));
    offer->channel = claim_channel(segment);
    offer->id = child->id;
    offer->generation = 0;
    if (offer->channel > 0)
        offer->generation = atomic_load_explicit(&segment->channel[offer->channel].generation,
                                                 memory_order_relaxed);
    for (size_t i = 0; i < others; i++) {
        /* comm_p2p.c expects that u[7] holds the peer's rank in the parent. */
        req[i].u[7] = (uint64_t)ddp_comm_rank_of(parent, child->world_rank[i + 1]);
        ddp_shm_p2p_send(state->world, child->world_rank[i + 1], state->context | DDP_SHM_CONTROL,
                         0, offer, sizeof *offer, &req[i]);
    }
    int rc = ddp_comm_wait(parent, req, (int)others, err);
    free(req);
    return rc;
}

static int receive_channel(struct ddp_comm *parent, const struct ddp_comm *child,
                           struct offer *offer, struct ddp_err *err)
{
    const struct ddp_shm_state *state = ddp_shm_state_of(parent);
    struct ddp_request req = {0};
    req.u[7] = (uint64_t)ddp_comm_rank_of(parent, child->world_rank[0]);
    ddp_shm_p2p_recv(state->world, child->world_rank[0], state->context | DDP_SHM_CONTROL, 0, offer,
                     sizeof *offer, &req);
    DDP_TRY(ddp_comm_wait(parent, &req, 1, err));
    if (offer->id != child->id) {
        ddp_comm_abort(parent, DDP_EMISMATCH);
        return ddp_fail(err, DDP_EMISMATCH, "ranks %d and %d open different groups",
                        child->world_rank[0], child->world_rank[child->rank]);
    }
    return 0;
}

int ddp_shm_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct ddp_shm_state *state;
    DDP_TRY(ddp_comm_abort_if(parent, DDP_NEW(&state, 1, err)));
    struct offer offer = {0};
    int rc = child->rank == 0 ? send_channel(parent, child, &offer, err)
                              : receive_channel(parent, child, &offer, err);
    if (rc == 0 && offer.channel < 0)
        rc = ddp_fail(err, DDP_EUNAVAIL, "at most %d groups can be open at a time", GROUPS);
    if (rc != 0) {
        free(state);
        return rc;
    }
    state->world = ddp_shm_state_of(parent)->world;
    child->state = state;
    ddp_shm_channel_attach(child, offer.channel, offer.generation);
    return 0;
}
