/* Code shared by all collective commands: the check of the options, and the dry run. run/points.h
 * measures the points. collectives.c has the option tables and the descriptors. */
#ifndef DDP_CMD_COLLECTIVE_H
#define DDP_CMD_COLLECTIVE_H

#include "cmd.h"
#include "run/points.h"

/* Functions for the descriptors of the commands. */
int ddp_collective_check(enum ddp_coll coll, struct ddp_app *app, void *values,
                         const struct ddp_opt_result *parsed, struct ddp_err *err) DDP_MUST_CHECK;
/* Prints the plan (--dry-run) or the choices of `auto` (--explain-auto). */
int ddp_collective_show(struct ddp_app *app, const void *values, const char *backend, int ranks,
                        struct ddp_err *err);

#endif
