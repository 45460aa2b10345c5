/* Fault points: places where a build with FAULTS=1 can be made to fail, so that tests reach every
 * error path and every moment at which a rank can die.
 *
 *   DDPBENCH_FAULT=point:n:action[=value][@rank][,...]
 *
 * Each rank counts its passages of the point. At the n-th passage the action happens: the process
 * is killed (kill9, segv, abort), stopped (stop) or delayed (sleep=ms, default 100), one bit of its
 * data is flipped (flip), or the point returns an error (errno=NAME, default EIO). Without @rank
 * the fault applies to every rank. fault_list.h lists the points; `ddpbench list fault` shows them.
 *
 * A point is a line DDP_FAULT(...) in the code. In a normal build (DDP_FAULTS 0) that line is a
 * constant, fault.c and fault_parse.c are not compiled, and DDPBENCH_FAULT is an error (conf.h).
 * The counters lie in memory that ranks inherit, so the collector can report which faults hit, and
 * when. */
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
    int code;       /* the code that action errno returns */
    bool collector; /* the collector passes this point, not ranks */
    bool data;      /* action flip is possible here */
};

/* Passes the point `DDP_AT_<symbol>` as a rank of the world, or as the collector (-1). The value is
 * 0, or the error that the caller must return; errno is set. err is used as in ddp_fail. */
#define DDP_FAULT(symbol, rank, err) DDP_FAULT_DATA(symbol, rank, NULL, 0, err)
/* The same with data[bytes] that flip may change. flip ignores passages without bytes. */
#define DDP_FAULT_DATA(symbol, rank, data, bytes, err)                                             \
    (DDP_FAULTS ? ddp_fault_pass(DDP_AT_##symbol, rank, data, bytes, err) : 0)

/* The following exist only in a build with FAULTS=1. */

int ddp_fault_pass(enum ddp_fault_at point, int rank, const void *data, size_t bytes,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Sets the faults of this process and of its future children. A NULL text disarms all faults; a
 * text that is already armed changes nothing. Must not be called while other threads pass points.
 * DDP_EUSAGE: the message names the illegal part of the text and suggests the nearest legal one. */
int ddp_fault_arm(const char *text, struct ddp_err *err) DDP_MUST_CHECK;
const struct ddp_fault_row *ddp_fault_rows(void); /* [DDP_AT_COUNT] */

/* Finds the last fault that hit a rank (-1: the collector): sets *text and the time *hit_ns
 * (ddp_now_ns). Returns false if none did. */
bool ddp_fault_last(int rank, const char **text, int64_t *hit_ns);
/* Returns the first armed fault that has not hit yet, or NULL if all have. */
const char *ddp_fault_missed(void);

#ifdef __cplusplus
}
#endif
#endif
