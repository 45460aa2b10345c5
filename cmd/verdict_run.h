/* Shared by gate and compare: the record, outputs and exit code of a verdict. */
#ifndef DDP_CMD_VERDICT_RUN_H
#define DDP_CMD_VERDICT_RUN_H

#include "cmd.h"
#include "record/verdict_record.h"
#include "report/report.h"

/* The output options of gate and compare, a member of their values. */
struct ddp_verdict_outputs {
    const char *json;
    struct ddp_string_list formats;
};

extern const struct ddp_opt ddp_verdict_rows[]; /* for a struct ddp_verdict_outputs */

/* Checks the outputs and writes the first documents, so that a bad path fails before anything runs.
 * Refuses outputs that would overwrite one of protected_paths, which ends with NULL.
 * ddp_verdict_finish releases *record and *reports. */
int ddp_verdict_begin(struct ddp_app *app, const struct ddp_verdict_outputs *outputs, int64_t seed,
                      const char *const *protected_paths, struct ddp_record *record,
                      struct ddp_report_set **reports, struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the last documents and releases record and reports. If rc is an error, verdict is NULL and
 * rc is returned. Otherwise returns an error of writing or, depending on the outcome, 0,
 * DDP_EREGRESSION or DDP_EINCONCLUSIVE. */
int ddp_verdict_finish(struct ddp_record *record, struct ddp_report_set *reports,
                       const struct ddp_verdict_record *verdict, int rc, struct ddp_err *err);

#endif
