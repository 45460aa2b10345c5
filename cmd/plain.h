/* What the plain commands (help, explain, list, doctor, completion) share. Private to them. */
#ifndef DDP_CMD_PLAIN_H
#define DDP_CMD_PLAIN_H

#include "base/json.h"
#include "cmd.h"

/* DDP_EUSAGE: "no <what> 'text'", with the nearest candidate and all legal ones as the hint. text
 * NULL: none was given. */
int ddp_refuse_word(const char *what, const char *text,
                    const char *(*candidate)(const void *ctx, int i), const void *ctx,
                    struct ddp_err *err);

/* The i-th legal operand of a command, then NULL: candidate functions (ctx is not used). */
const char *ddp_explain_topic(const void *ctx, int i);
const char *ddp_help_topic(const void *ctx, int i);
const char *ddp_list_kind(const void *ctx, int i);
const char *ddp_kernels_flag(const void *ctx, int i);

/* Prints doc and releases it; NULL and an unfinished one are DDP_ENOMEM. */
int ddp_print_json(cJSON *doc, FILE *out, struct ddp_err *err) DDP_MUST_CHECK;

/* Where the backend modules and the kernels' helper lie: DDPBENCH_MODULE_DIR, else the binary's
 * folder, else
 * ../lib/ddpbench as `make install` lays it out. */
void ddp_module_dir(const struct ddp_app *app, char *out, size_t out_bytes);

/* Every exit code and what it says, ascending; ends with meaning NULL. */
struct ddp_exit_row {
    int code;
    const char *meaning;
};
const struct ddp_exit_row *ddp_exit_rows(void);
/* The same for people. */
void ddp_exit_print(FILE *out);

/* How sizes and bandwidths are written: paragraphs of wrapped lines. */
extern const char ddp_units_text[];

/* The whole manual page, ddpbench.1, in man(7) macros. */
void ddp_help_man(FILE *out);

#endif
