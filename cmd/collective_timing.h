/* The options of the collective commands that set the number, the start and the order of
 * measurements. Private to collective*.c. */
#ifndef DDP_CMD_COLLECTIVE_TIMING_H
#define DDP_CMD_COLLECTIVE_TIMING_H

#include "collective.h"

/* Turns the parsed options into bench options. With -n or --block the number of iterations is
 * exact, unless --precision or --max-time is given as well. Without -n and --block, --precision and
 * --max-time apply with their defaults. Labels the record if a delay is injected or blocks are
 * timed. Returns DDP_EUSAGE for a malformed --inject-delay, and for --precision with blocks. */
int ddp_collective_timing(struct ddp_collective_values *v, const struct ddp_opt *rows,
                          const struct ddp_opt_result *parsed, struct ddp_err *err) DDP_MUST_CHECK;
/* Writes a description for people, such as "20 iterations" or "iterations until 2 % precise, at
 * most 5 s and 10000". */
void ddp_collective_describe_timing(const struct ddp_bench_options *o, char *out, size_t out_bytes);

#endif
