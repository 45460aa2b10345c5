/* Fault points: places where a build with FAULTS=1 can be told to fail, so that tests reach every
 * error path and every moment of a death.
 *
 *   DDPBENCH_FAULT=point:n:action[=value][@rank][,...]
 *
 * At its n-th passage of the point, counted for each rank, the process is killed (kill9, segv,
 * abort), stopped (stop), delayed (sleep=ms, 100), gets one wrong bit into its data (flip), or an
 * error of the point's own (errno=NAME, EIO). Without @rank every rank is meant. Points are the
 * lines of fault_list.h; `ddpbench list fault` shows them.
 *
 * A point is a line DDP_FAULT(...) where it lies. In a normal build (DDP_FAULTS 0) that line is a
 * constant, fault.c and fault_parse.c are not compiled, and DDPBENCH_FAULT is an error (conf.h).
 * Counts lie in memory that ranks inherit, so that the home can tell what was hit and when. */
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
#define DDP_FAULT_POINT(symbol, name, home, code, data, help) DDP_AT_##symbol,
#include "base/fault_list.h"
#undef DDP_FAULT_POINT
    DDP_AT_COUNT
};

struct ddp_fault_row {
    const char *name, *help;
    int code; /* of action errno */
    bool home, data;
};

/* The point `DDP_AT_<symbol>` is passed by a rank of the world (-1: by the home): 0, or the error
 * to return from there, errno set. An expression; err as for ddp_fail. */
#define DDP_FAULT(symbol, rank, err) DDP_FAULT_DATA(symbol, rank, NULL, 0, err)
/* The same with data[bytes] that flip may change; a passage without bytes is none for flip. */
#define DDP_FAULT_DATA(symbol, rank, data, bytes, err)                                             \
    (DDP_FAULTS ? ddp_fault_pass(DDP_AT_##symbol, rank, data, bytes, err) : 0)

/* All below: only in a build with FAULTS=1. */

int ddp_fault_pass(enum ddp_fault_at point, int rank, const void *data, size_t bytes,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Sets the faults of this process and of those it will fork; text NULL: none; the text that holds
 * already: nothing changes. Not while other threads pass points. DDP_EUSAGE names what is wrong in
 * the text, the legal ones and the nearest. */
int ddp_fault_arm(const char *text, struct ddp_err *err) DDP_MUST_CHECK;
const struct ddp_fault_row *ddp_fault_rows(void); /* [DDP_AT_COUNT] */

/* The last fault that hit a rank (-1: the home): its text, and when (ddp_now_ns). */
bool ddp_fault_last(int rank, const char **text, int64_t *hit_ns);
/* The first armed fault that has hit nobody; NULL: all did. */
const char *ddp_fault_missed(void);

#ifdef __cplusplus
}
#endif
#endif
