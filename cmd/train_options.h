/* The options of `ddpbench train`. */
#ifndef DDP_CMD_TRAIN_OPTIONS_H
#define DDP_CMD_TRAIN_OPTIONS_H

#include "cmd.h"
#include "run/training.h"

extern const struct ddp_opt ddp_train_rows[];
/* Fills the options that the user left out with the model's defaults. Returns DDP_EUSAGE if options
 * contradict each other. */
int ddp_train_values_complete(struct ddp_train_values *v, const struct ddp_opt_result *parsed,
                              struct ddp_err *err) DDP_MUST_CHECK;

#endif
