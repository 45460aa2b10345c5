/* The waiting loop of lib/comm. It spins for a short time. Then it yields, or sleeps if
 * comm->sleeps_in_waits is set or the rank is idle (ddp_comm_agree_idle). It checks the abort word
 * often and the clock rarely.
 *
 * Usage: check the condition. If it is not met, call ddp_waiter_init. Then call ddp_waiter_step and
 * check the condition again, until the condition is met or ddp_waiter_step does not return
 * DDP_WAIT_ON. The first check makes a wait fast if its condition is already met. */
#ifndef DDP_COMM_WAITER_H
#define DDP_COMM_WAITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "comm/comm.h"
#include "comm/shm/comm_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_wait { DDP_WAIT_ON, DDP_WAIT_ABORTED, DDP_WAIT_EXPIRED };

struct ddp_waiter {
    const _Atomic(uint32_t) *abort_word; /* NULL without a shm context */
    /* The member of this name in struct ddp_segment; NULL without a segment. */
    const _Atomic(int64_t) *collector_busy_ns;
    struct ddp_comm *watched; /* the member of this name in struct ddp_comm */
    int64_t timeout_ns, deadline_ns, last_ns;
    uint32_t spin, polls; /* spin: polls before the first yield */
    bool sleeps_in_waits;
};

/* Number of polls before the first yield. DDP_SPIN_ALONE is for ranks that have a core each.
 * DDP_SPIN_SHARED is for oversubscribed ranks. They must yield at once, because the awaited rank
 * may need this core (results/notes/shared-memory.md). */
#define DDP_SPIN_ALONE  4000
#define DDP_SPIN_SHARED 1

void ddp_waiter_init(struct ddp_waiter *w, const struct ddp_comm *comm);
enum ddp_wait ddp_waiter_step(struct ddp_waiter *w);
/* Calls ddp_waiter_step. Succeeds if the wait goes on. If not, ends the wait with ddp_wait_aborted
 * or ddp_wait_expired and returns their error. `peer` has the meaning that it has in
 * ddp_wait_expired. */
int ddp_wait_step(struct ddp_waiter *w, struct ddp_comm *comm, int peer, struct ddp_err *err);

/* Reads the flight recorders of this host and reports which rank waits for which other rank in this
 * rank's newest operation (flight_report.h). `peer` has the meaning that it has in
 * ddp_wait_expired. Returns false and does not change `out` if no report can be made. Any thread
 * may call this function. */
bool ddp_wait_report(const struct ddp_comm *comm, int peer, char *out, size_t out_bytes);
/* Ends a wait that found the abort word set, or that saw a failure of comm->watched. Returns
 * DDP_ELOST. If another rank caused the failure, the message names that rank. */
int ddp_wait_aborted(const struct ddp_comm *comm, struct ddp_err *err);
/* Fails as ddp_wait_aborted does if comm has a shm context whose abort word is set. */
static inline int ddp_wait_check(const struct ddp_comm *comm, struct ddp_err *err)
{
    const bool aborted =
        comm->shm != NULL && atomic_load_explicit(comm->shm->abort_word, memory_order_acquire) != 0;
    return aborted ? ddp_wait_aborted(comm, err) : 0;
}
/* Ends a wait whose deadline passed. Aborts the run and blames rank `peer` (-1: no rank). If the
 * communicator has a segment, `peer` is a rank of the segment. Otherwise it is a world rank.
 * Returns DDP_ELOST. The message contains the report of ddp_wait_report. If there is no report, or
 * if `peer` is -1, the message contains this rank's operation instead. */
int ddp_wait_expired(struct ddp_comm *comm, int peer, struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
