/* A control: how fast all ranks of a launch, at the same time, copy and read memory of their own.
 * No change of ours moves it; a change of the machine or of its other users does. */
#ifndef DDP_BENCH_CONTROL_H
#define DDP_BENCH_CONTROL_H

#include "comm/comm.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes some 50 ms. Collective, the same on all ranks. A host that has no memory for it (at most
 * 256 MiB) is no error: both figures are NaN. */
int ddp_control_measure(struct ddp_comm *comm, struct ddp_control *out,
                        struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
