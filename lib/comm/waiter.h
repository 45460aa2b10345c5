/* The waiting loop of lib/comm: spin a little, then yield (or sleep, if comm->sleeps_in_waits is
 * set). It checks the abort word often and the clock rarely.
 *
 * Usage: init, then `step` after each failed check of the condition until it returns something
 * other than DDP_WAIT_ON. Check the condition once before init: then a wait that ends at once reads
 * no clock. Not for conditions whose check needs a system call. */
#ifndef DDP_COMM_WAITER_H
#define DDP_COMM_WAITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_wait { DDP_WAIT_ON, DDP_WAIT_ABORTED, DDP_WAIT_EXPIRED };

/* State of one wait. */
struct ddp_waiter {
    const _Atomic(uint32_t) *abort_word; /* NULL if the backend has none */
    /* When the collector was busy (segment.h); NULL without a segment. */
    const _Atomic(int64_t) *collector_busy_ns;
    int64_t timeout_ns, deadline_ns, last_ns;
    uint32_t spin, polls; /* spin: polls before the first yield */
    bool sleeps_in_waits;
};

/* Polls before the first yield. DDP_SPIN_ALONE is for ranks that have a core each and spins for
 * some 100 us. DDP_SPIN_SHARED is for oversubscribed ranks, which must yield at once because the
 * awaited rank may need this core: 84 polls made all-reduces two to three times slower
 * (results/notes/shared-memory.md). A fast path may poll as often before. */
#define DDP_SPIN_ALONE  4000
#define DDP_SPIN_SHARED 1

void ddp_waiter_init(struct ddp_waiter *w, const struct ddp_comm *comm);
enum ddp_wait ddp_waiter_step(struct ddp_waiter *w);

/* Writes a report of which ranks wait for which in this rank's newest operation, from the recorders
 * of this host (flight_report.h). peer: as below. Returns false and leaves `out` alone if the
 * recorders do not show it. Any thread may call it. */
bool ddp_wait_report(const struct ddp_comm *comm, int peer, char *out, size_t out_bytes);
/* Ends a wait that saw the abort word. Returns DDP_ELOST; the message names the rank that ended the
 * run. */
int ddp_wait_aborted(const struct ddp_comm *comm, struct ddp_err *err);
/* Ends a wait whose deadline passed: sets the abort word with rank `peer` as the cause (a rank of
 * the segment if there is one; -1: none). Returns DDP_ELOST; the message reports which ranks wait
 * for which, or this rank's operation. */
int ddp_wait_expired(struct ddp_comm *comm, int peer, struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
