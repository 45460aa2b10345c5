/* Functions on single rows of an option table, private to opt_*.c. */
#ifndef DDP_BASE_OPT_ROW_H
#define DDP_BASE_OPT_ROW_H

#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the row with the long name or alias name [n], or NULL if there is none. */
const struct ddp_opt *ddp_opt_row_find(const struct ddp_opt *rows, const char *name, size_t n);
/* Sets the field of a row from text, which is NULL for a flag. Error messages contain the option's
 * name. */
int ddp_opt_row_set(const struct ddp_opt *row, void *values, const char *text,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Reports that name [n] is unknown, and returns DDP_EUSAGE. dashes: "--" on the command line, "" in
 * a configuration file. */
int ddp_opt_row_unknown(const struct ddp_opt *rows, const char *dashes, const char *name, size_t n,
                        struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
