/* All-reduce "flat": every rank stores its input in shared memory, and every rank combines all
 * inputs.
 *
 * The algorithm is for small messages in any memory. A rank copies its input into its *data slot*
 * in shared memory, posts its flag and waits for all flags. It then combines all inputs in rank
 * order into its own recv buffer. An input of at most DDP_SHM_INLINE bytes is stored beside the
 * flag instead, so that input and flag move in one cache line.
 *
 * Calls alternate between two data slots and two flags (a double buffer), so one synchronisation
 * per call is enough. A rank that writes its data slot in call k overwrites the data of call k-2.
 * All readers have left call k-2, because this rank has seen all of them enter call k-1. Only
 * coll_flat.c also uses these slots, in the same way.
 *
 * Cost for S bytes on n ranks: 1 step. On each rank, copying the input reads and writes S bytes,
 * and combining reads nS and writes S bytes. The total is n(n+3)S bytes. No messages are sent. */
#include <string.h>

#include "coll/coll_shm.h"

static int flat_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    DDP_TRY(ddp_coll_needs_shm(comm, "flat", err));
    const size_t bytes =
        ddp_coll_message_bytes(shape->coll, comm->size, shape->count, shape->dtype);
    if (bytes > DDP_SHM_SLOT_BYTES)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm 'flat' takes at most %u bytes, but the message has %zu",
                        DDP_SHM_SLOT_BYTES, bytes);
    return 0;
}

/* Returns the address of a rank's input of this call, which is beside the rank's flag or in its
 * data slot. */
static unsigned char *flat_input(const struct ddp_comm_shm *shm, int rank, int parity, size_t bytes)
{
    return bytes <= DDP_SHM_INLINE
               ? ddp_shm_flag_slot_of(shm, rank, DDP_FLAGS_FLAT + parity)->inline_data
               : ddp_shm_slot_of(shm, rank, parity);
}

static int flat_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    (void)scratch;
    struct ddp_comm_shm *shm = comm->shm;
    const size_t bytes = ddp_coll_array_bytes(args);
    const uint64_t sequence = ++shm->sequence[DDP_FLAGS_FLAT];
    const int parity = (int)(sequence & 1);
    const int flag_slot = DDP_FLAGS_FLAT + parity;
    const void *src[DDP_REDUCE_MAX];

    if (bytes != 0)
        memcpy(flat_input(shm, comm->rank, parity, bytes), args->send, bytes);
    ddp_shm_post(comm, flag_slot, sequence);
    /* This work is done while the flags propagate. */
    for (int r = 0; r < comm->size; r++)
        src[r] = r == comm->rank ? args->send : flat_input(shm, r, parity, bytes);
    const struct ddp_reduce reduce = {
        .dst = &args->recv,
        .dst_count = 1,
        .src = src,
        .src_count = comm->size,
        .count = args->count,
        .dtype = args->dtype,
        .op = args->op,
        .divisor = ddp_coll_divisor(comm, args->op),
    };
    DDP_TRY(ddp_coll_wait_all(comm, flag_slot, sequence, err));
    comm->device->reduce(&reduce);
    return 0;
}

static void flat_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes =
        (double)ddp_coll_message_bytes(shape->coll, ranks, shape->count, shape->dtype);
    *cost = (struct ddp_coll_cost){
        .steps = 1,
        .memory_bytes = (double)ranks * (ranks + 3) * bytes,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_allreduce_flat = {
    .name = "flat",
    .coll = DDP_ALLREDUCE,
    .summary = "shared memory, small messages: every rank reads all inputs, one step",
    .supports = flat_supports,
    .run = flat_run,
    .cost = flat_cost,
};
