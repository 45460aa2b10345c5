/* Measures a ping-pong between ranks 0 and 1.
 *
 * Round trips are timed in *batches*, because a single round trip takes little longer than reading
 * the clock. The first batch wakes both ranks, and its time is not used. Rank 0 divides the budget
 * by the time of the second batch, which gives the number of batches. Ranks above 1 run no batch.
 * They receive this number and the result. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/pingpong.h"
#include "coll/coll_shm.h"
#include "comm/backend.h"
#include "comm/shm/comm_shm.h"
#include "stats/summary.h"

/* No algorithm uses this tag. MPI guarantees tags up to 32767. */
#define TAG         29999
#define TRIPS       8
#define BATCHES_MAX 128
/* Oversubscribed ranks take turns on a core. Their ping-pong then depends on the scheduler and not
 * on the distance of the cores, so a few batches are enough. */
#define OVERSUBSCRIBED_NS 200000
/* Number of polls without a pause instruction. On some processors a pause takes as long as the
 * round trip. */
#define POLLS 4096

/* Runs one round trip over flags in shared memory: rank 0 posts and then waits, rank 1 waits and
 * then posts. */
static int trip_flags(struct ddp_comm *comm, struct ddp_err *err)
{
    int peer = 1 - comm->rank;
    uint64_t sequence = ++comm->shm->sequence[DDP_FLAGS_PINGPONG];
    _Atomic(uint64_t) *flag = &ddp_shm_flag_slot_of(comm->shm, peer, DDP_FLAGS_PINGPONG)->sequence;
    if (comm->rank == 0)
        ddp_shm_post(comm, DDP_FLAGS_PINGPONG, sequence);
    int polls = 0;
    while (polls < POLLS && atomic_load_explicit(flag, memory_order_acquire) < sequence)
        polls++;
    if (polls == POLLS)
        DDP_TRY(ddp_shm_wait(comm, peer, DDP_FLAGS_PINGPONG, sequence, err));
    if (comm->rank == 1)
        ddp_shm_post(comm, DDP_FLAGS_PINGPONG, sequence);
    return 0;
}

static int trip_messages(struct ddp_comm *comm, struct ddp_err *err)
{
    int peer = 1 - comm->rank;
    uint64_t out = 0, in = 0;
    struct ddp_request request;
    for (int half = 0; half < 2; half++) {
        if (half == comm->rank)
            DDP_TRY(ddp_comm_isend(comm, peer, TAG, &out, sizeof out, &request, err));
        else
            DDP_TRY(ddp_comm_irecv(comm, peer, TAG, &in, sizeof in, &request, err));
        DDP_TRY(ddp_comm_wait(comm, &request, 1, err));
    }
    return 0;
}

/* Runs a batch and sets *ns to the time of one round trip. Called on ranks 0 and 1. */
static int batch(struct ddp_comm *comm, double *ns, struct ddp_err *err)
{
    int64_t begin = ddp_now_ns();
    for (int i = 0; i < TRIPS; i++)
        DDP_TRY(comm->shm ? trip_flags(comm, err) : trip_messages(comm, err));
    *ns = (double)(ddp_now_ns() - begin) / TRIPS;
    return 0;
}

/* Sets *value on all ranks to the value of rank 0. */
static int from_rank_0(struct ddp_comm *comm, double *value, struct ddp_err *err)
{
    double all[DDP_SHM_RANKS_MAX], *room = all;
    if (comm->size > DDP_SHM_RANKS_MAX)
        DDP_TRY(DDP_NEW(&room, (size_t)comm->size, err));
    int rc = ddp_comm_allgather_bytes(comm, value, room, sizeof *value, err);
    if (rc == 0)
        *value = room[0];
    if (room != all)
        free(room);
    return rc;
}

int ddp_pingpong(struct ddp_comm *comm, int64_t budget_ns, double *round_trip_ns,
                 struct ddp_err *err)
{
    double ns[BATCHES_MAX] = {0};
    double batches = 1, result = NAN;
    bool plays = comm->rank < 2;
    *round_trip_ns = NAN;
    /* The ping-pong measures the path between the CPUs of the ranks. If the backend connects GPUs,
     * only the side channel takes this path (comm.h). */
    if (comm->control)
        return ddp_pingpong(comm->control, budget_ns, round_trip_ns, err);
    if (comm->size < 2 || (!comm->shm && !(comm->backend->caps & DDP_CAP_P2P)))
        return 0;
    DDP_TRY(ddp_comm_barrier(comm, err));
    for (int i = 0; plays && i < 2; i++)
        DDP_TRY(batch(comm, &ns[0], err));
    if (comm->rank_info.oversubscribed)
        budget_ns = DDP_MIN(budget_ns, OVERSUBSCRIBED_NS);
    if (ns[0] > 0)
        batches = (double)budget_ns / (ns[0] * TRIPS);
    DDP_TRY(from_rank_0(comm, &batches, err));
    int n = batches < 1 ? 1 : batches > BATCHES_MAX ? BATCHES_MAX : (int)batches;
    for (int i = 1; plays && i < n; i++)
        DDP_TRY(batch(comm, &ns[i], err));
    if (comm->rank == 0)
        result = ddp_median(ns, (size_t)n);
    DDP_TRY(from_rank_0(comm, &result, err));
    /* The sequence number must be equal on all ranks, so ranks above 1 advance their number,
     * too. */
    if (!plays && comm->shm)
        comm->shm->sequence[DDP_FLAGS_PINGPONG] += (uint64_t)TRIPS * (uint64_t)(n + 1);
    *round_trip_ns = result;
    return 0;
}
