/* How every wait of lib/comm waits: spin a little, then yield (a patient communicator's then
 * sleeps); look at the abort word often and at the clock rarely.
 *
 * Use: init, then `step` after each failed look at the condition, until it says something else than
 * DDP_WAIT_ON. A first look that succeeds costs no clock read. Not for conditions that need a
 * system call to look at. */
#ifndef DDP_COMM_WAITER_H
#define DDP_COMM_WAITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_wait { DDP_WAIT_ON, DDP_WAIT_ABORTED, DDP_WAIT_EXPIRED };

/* spin: polls before the first yield. abort_word: NULL where the backend has none. */
struct ddp_waiter {
    const _Atomic(uint32_t) *abort_word;
    const _Atomic(int64_t) *home_ns; /* of the segment; NULL as above */
    int64_t timeout_ns, deadline_ns, last_ns;
    uint32_t spin, polls;
    bool patient;
};

/* Polls before the first yield when every rank has a core (some 100 us), and when not (a fast path
 * may look as often before): a peer that waits for this core does not come while one polls. 4 (8)
 * ranks on 2 cores of an EPYC, all-reduce in registered memory, us: of 4 B 3.4 (7.2), 84 polls 8.8
 * (16.7); of 4 KiB 6.9 (15), 10.9 (37). */
#define DDP_SPIN_ALONE  4000
#define DDP_SPIN_SHARED 1

void ddp_waiter_init(struct ddp_waiter *w, const struct ddp_comm *comm);
enum ddp_wait ddp_waiter_step(struct ddp_waiter *w);

/* Who waits for whom in this rank's newest operation, as far as the recorders of this host tell
 * (flight_story.h); peer: as below. False, out untouched: they do not. Any thread may ask. */
bool ddp_wait_story(const struct ddp_comm *comm, int peer, char *out, size_t out_bytes);
/* Ends a wait that saw the abort word: DDP_ELOST, saying who ended the run. */
int ddp_wait_aborted(const struct ddp_comm *comm, struct ddp_err *err);
/* Ends a wait that outlasted its deadline: sets the abort word, naming rank `peer` (of the segment,
 * where there is one; -1: nobody in particular) as the one waited for; DDP_ELOST, with who waits
 * for whom, or what it was doing. */
int ddp_wait_expired(struct ddp_comm *comm, int peer, struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
