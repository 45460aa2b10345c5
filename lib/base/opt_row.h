/* Rows of an option table, for the files opt_*.c only: finding one, setting one, and the error for
 * one that is not there. Users include opt.h. */
#ifndef DDP_BASE_OPT_ROW_H
#define DDP_BASE_OPT_ROW_H

#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By long name or alias, name[n]; NULL when there is none. */
const struct ddp_opt *ddp_opt_row_find(const struct ddp_opt *rows, const char *name, size_t n);
/* Sets one field; text NULL for a flag. Errors begin with the option's name. */
int ddp_opt_row_set(const struct ddp_opt *row, void *values, const char *text,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_EUSAGE for the unknown name[n], with the nearest and all legal names. dashes: as the user
 * typed them ("--", or "" in a file). */
int ddp_opt_row_unknown(const struct ddp_opt *rows, const char *dashes, const char *name, size_t n,
                        struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
