/* --json and --format: the reporters a command writes to. */
#ifndef DDP_CMD_OUTPUTS_H
#define DDP_CMD_OUTPUTS_H

#include "base/opt.h"
#include "report/report.h"

/* Adds json (NULL: none) and formats (NAME[=FILE]) to a set; the table on stdout when nothing else
 * was asked for and stdout is free. Checks, creates nothing. DDP_EUSAGE, DDP_ECREATE. */
int ddp_outputs_add(struct ddp_report_set *set, const char *json,
                    const struct ddp_string_list *formats, bool color,
                    struct ddp_err *err) DDP_MUST_CHECK;

#endif
