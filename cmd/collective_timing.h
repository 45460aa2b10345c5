/* The options of collective commands that say how often, how and in which order they measure.
 * Private to collective*.c. */
#ifndef DDP_CMD_COLLECTIVE_TIMING_H
#define DDP_CMD_COLLECTIVE_TIMING_H

#include "collective.h"

/* From options as parsed to bench options: -n alone means exactly so many; without it the other
 * two have their defaults. Marks the record where its figures are not what they seem. */
int ddp_collective_timing(struct ddp_collective_values *v, const struct ddp_opt *rows,
                          const struct ddp_opt_result *parsed, struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_EUSAGE when --inject-delay names no point of any rank count. ranks: that of plan. */
int ddp_collective_check_inject(const struct ddp_collective_values *v, const char *backend,
                                int ranks, struct ddp_err *err) DDP_MUST_CHECK;
/* "20 iterations", "iterations until 2 % precise, at most 5 s and 10000". */
void ddp_collective_describe_timing(const struct ddp_bench_options *o, char *out, size_t out_bytes);

#endif
