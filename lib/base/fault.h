/* Fault points: places in the code where a build with FAULTS=1 can inject a failure.
 *
 *   DDPBENCH_FAULT=point:n:action[=value][@rank][,...]
 *
 * Each rank counts how often it passes the point. Some points lie outside the work of the ranks.
 * The parent of the ranks counts its passages of these points. Under an outside launcher, each
 * process counts them. At the n-th passage one of these actions happens:
 *
 *   kill9, segv, abort  the process sends itself this signal
 *   stop                the process is stopped
 *   sleep=ms            the process sleeps (default 100)
 *   flip                one bit of the point's data is flipped
 *   errno=NAME          the point returns an error (default EIO)
 *
 * Without @rank the fault applies to every rank. fault_list.h lists the points, and `ddpbench list
 * fault` shows them.
 *
 * A fault point is a line DDP_FAULT(...) in the code. In a normal build (DDP_FAULTS is 0) this line
 * is the constant 0. fault.c is then not compiled, and setting DDPBENCH_FAULT is an error
 * (conf.h). */
#ifndef DDP_BASE_FAULT_H
#define DDP_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_fault_at {
#define DDP_FAULT_POINT(symbol, name, collector, code, data, help) DDP_AT_##symbol,
#include "base/fault_list.h"
#undef DDP_FAULT_POINT
    DDP_AT_COUNT
};

struct ddp_fault_row {
    const char *name, *help;
    int code;       /* the return code of the action errno */
    bool collector; /* this point lies outside the work of the ranks */
    bool data;      /* the point has data for the action flip */
};

/* The value of `rank` with which a caller passes a point without a count or a fault. */
#define DDP_FAULT_NOBODY (-2)

/* Passes the point DDP_AT_<symbol>. `rank` is the world rank, -1 for a point outside the work of
 * the ranks, or DDP_FAULT_NOBODY. The value of the macro is 0, or an error code that the caller
 * must return. In case of an error, errno is set, and *err is filled as by ddp_fail_errno. */
#define DDP_FAULT(symbol, rank, err) DDP_FAULT_DATA(symbol, rank, NULL, 0, err)
/* Like DDP_FAULT, with data [bytes] that the action flip may change. For the action flip, a passage
 * with 0 bytes does not count. */
#define DDP_FAULT_DATA(symbol, rank, data, bytes, err)                                             \
    (DDP_FAULTS ? ddp_fault_pass(DDP_AT_##symbol, rank, data, bytes, err) : 0)

/* The functions below exist only in a build with FAULTS=1. */

int ddp_fault_pass(enum ddp_fault_at point, int rank, const void *data, size_t bytes,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Arms the faults in `text`, a value of DDPBENCH_FAULT, for this process and the processes that it
 * forks later. NULL disarms all faults. If `text` is armed already, nothing changes. Must not be
 * called while other threads pass points. Returns DDP_EUSAGE if the text is illegal, and DDP_ENOMEM
 * if memory is exhausted. */
int ddp_fault_arm(const char *text, struct ddp_err *err) DDP_MUST_CHECK;
const struct ddp_fault_row *ddp_fault_rows(void); /* [DDP_AT_COUNT] */

/* Finds the fault that hit `rank` last (-1: points outside the work of the ranks). Sets *text to
 * the fault as the user wrote it, and *hit_ns to the time of the hit (ddp_now_ns). Returns false if
 * no fault has hit the rank. */
bool ddp_fault_last(int rank, const char **text, int64_t *hit_ns);
/* Returns the text of the first armed fault that has not hit yet, or NULL if there is none. */
const char *ddp_fault_missed(void);

#ifdef __cplusplus
}
#endif
#endif
