/* The memory baseline: how fast all ranks together copy and read memory of their own. A change of
 * the measured program does not affect it; a change of the machine or its load does. */
#ifndef DDP_BENCH_MEMORY_BASELINE_H
#define DDP_BENCH_MEMORY_BASELINE_H

#include "comm/comm.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures the baseline, which takes about 50 ms. A host without enough memory (at most 256 MiB) is
 * not an error: both figures are then NaN. Collective, with the same result on all ranks. */
int ddp_memory_baseline_measure(struct ddp_comm *comm, struct ddp_control *out,
                                struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
