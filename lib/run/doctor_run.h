/* Runs `ddpbench doctor`, which reports the problems of this machine or job. */
#ifndef DDP_RUN_DOCTOR_RUN_H
#define DDP_RUN_DOCTOR_RUN_H

#include "run/command.h"

/* Prints the findings as text or as JSON. Under an outside launcher, every process calls this
 * function, and rank 0 prints the findings of all of them if the ranks can be connected. Returns
 * DDP_EUNAVAIL if something must be fixed first. */
int ddp_doctor_run(const struct ddp_app *app, bool json, struct ddp_err *err) DDP_MUST_CHECK;

#endif
