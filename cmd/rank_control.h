/* Measures the memory-copy baseline of a run (bench/control.h) and sends it to the collector. */
#ifndef DDP_CMD_RANK_CONTROL_H
#define DDP_CMD_RANK_CONTROL_H

#include "cmd.h"

/* Does nothing if the baseline was measured since the ranks were started. Collective. */
int ddp_rank_control(struct ddp_rank *rank, struct ddp_err *err) DDP_MUST_CHECK;

#endif
