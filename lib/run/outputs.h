/* Turns the options --json and --format into the reporters that a command writes to. For gate and
 * compare, which end with a verdict, functions of this file also make the record and the exit
 * code. */
#ifndef DDP_RUN_OUTPUTS_H
#define DDP_RUN_OUTPUTS_H

#include "base/opt.h"
#include "record/verdict_record.h"
#include "report/report.h"
#include "run/command.h"

/* Finds the reporter with this name. If there is none, returns DDP_EUSAGE with the most similar
 * name as a hint. */
int ddp_outputs_find(const char *name, const struct ddp_reporter **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* The row of the option --plot, whose value is an int. */
extern const struct ddp_opt ddp_plot_rows[];
/* Returns DDP_EUSAGE if --plot is given, but no table is printed. */
int ddp_outputs_check_plot(int plot, bool has_table, struct ddp_err *err) DDP_MUST_CHECK;
/* Adds the outputs of --json (NULL if not given) and --format (NAME[=FILE]) to a set. Adds the
 * table on stdout if no format was given and no other output writes to stdout. Checks the targets
 * but does not create them. Returns 0, DDP_EUSAGE or DDP_ECREATE. */
int ddp_outputs_add(struct ddp_report_set *set, const char *json,
                    const struct ddp_string_list *formats, struct ddp_err *err) DDP_MUST_CHECK;

/* Returns DDP_EUSAGE if one of the formats NAME[=FILE] cannot show the figures `kind` (enum
 * ddp_record_kind). `what` names the figures in the message. */
int ddp_check_formats(const struct ddp_string_list *formats, unsigned kind, const char *what,
                      struct ddp_err *err) DDP_MUST_CHECK;

/* Checks the value of --label, which may be NULL. Returns DDP_EUSAGE if it is empty, too long for
 * the label of a record, not UTF-8, or has control characters. */
int ddp_outputs_check_label(const char *label, struct ddp_err *err) DDP_MUST_CHECK;

/* The output options of gate and compare, a member of their values. */
struct ddp_verdict_outputs {
    const char *json;
    struct ddp_string_list formats;
    const char *label; /* the user's name for the run, or NULL */
    bool wide;         /* show all columns of the table on a terminal */
};

/* The row of the option --vary of gate and compare, whose value is a struct ddp_int_list. */
extern const struct ddp_opt ddp_vary_rows[];
/* Returns the keys of the list as a set (record/vary.h). */
unsigned ddp_vary_set(const struct ddp_int_list *keys);

/* Checks the outputs and writes the first documents, so that a bad path fails before anything runs.
 * Refuses outputs that would overwrite one of protected_paths, a list that ends with NULL. After
 * success, ddp_verdict_finish must release *record and *reports. */
int ddp_verdict_begin(struct ddp_app *app, const struct ddp_verdict_outputs *outputs, int64_t seed,
                      const char *const *protected_paths, struct ddp_record *record,
                      struct ddp_report_set **reports, struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the last documents and releases record and reports. `rc` is the outcome of the command. If
 * rc is an error, the function returns rc, and `verdict` is NULL or the verdict of an interrupted
 * gate, which has no outcome. Otherwise the function returns the error of a failed write or, by the
 * verdict, 0 (PASS, or nothing was judged), DDP_EREGRESSION or DDP_EINCONCLUSIVE. */
int ddp_verdict_finish(struct ddp_record *record, struct ddp_report_set *reports,
                       const struct ddp_verdict_record *verdict, int rc, struct ddp_err *err);

#endif
