/* The control of every run (bench/control.h): measured, and sent home. */
#ifndef DDP_CMD_RANK_CONTROL_H
#define DDP_CMD_RANK_CONTROL_H

#include "cmd.h"

/* Collective. Nothing where the launch has a control already. */
int ddp_rank_control(struct ddp_rank *rank, struct ddp_err *err) DDP_MUST_CHECK;

#endif
