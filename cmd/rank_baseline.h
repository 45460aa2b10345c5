/* Measures the memory-copy speed of the ranks (bench/memory_baseline.h) and sends it to the
 * collector. */
#ifndef DDP_CMD_RANK_BASELINE_H
#define DDP_CMD_RANK_BASELINE_H

#include "cmd.h"

/* Does nothing if rank->has_control says that the speed was measured already. Collective. */
int ddp_rank_baseline(struct ddp_rank *rank, struct ddp_err *err) DDP_MUST_CHECK;

#endif
