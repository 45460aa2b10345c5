/* Turns the options --json and --format into the reporters that a command writes to. */
#ifndef DDP_CMD_OUTPUTS_H
#define DDP_CMD_OUTPUTS_H

#include "base/opt.h"
#include "report/report.h"

/* Adds the outputs of --json (NULL if not given) and --format (NAME[=FILE]) to a set. Adds the
 * table on stdout if no format was given and stdout is free. Checks the targets but does not create
 * them. Returns DDP_EUSAGE or DDP_ECREATE. */
int ddp_outputs_add(struct ddp_report_set *set, const char *json,
                    const struct ddp_string_list *formats, bool color,
                    struct ddp_err *err) DDP_MUST_CHECK;

#endif
