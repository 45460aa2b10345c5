/* Measures the memory baseline: the speed at which all ranks together copy and read their own
 * memory. The baseline depends on the machine and its load, and not on the measured program. */
#ifndef DDP_BENCH_MEMORY_BASELINE_H
#define DDP_BENCH_MEMORY_BASELINE_H

#include "comm/comm.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures the baseline. Each rank copies at most 4 MiB six times, and then reads the copied bytes
 * six times. The buffers of a host take at most 256 MiB. If a host has too little memory for them,
 * both figures are NaN and the call succeeds. Collective; all ranks get the same figures. */
int ddp_memory_baseline_measure(struct ddp_comm *comm, struct ddp_control *out,
                                struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
