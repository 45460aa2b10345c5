#include "verdict_run.h"

#include <stdio.h>

#include "base/clock.h"
#include "outputs.h"
#include "record/provenance.h"

#define AT(field) offsetof(struct ddp_verdict_outputs, field)

const struct ddp_opt ddp_verdict_rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(STRING, "json", 0, AT(json), "FILE", NULL,
            "write the verdict as JSON (- for stdout, instead of the table)"),
    DDP_OPT(STRING_LIST, "format", 0, AT(formats), "NAME[=FILE]", NULL,
            "one or more output formats: junit, markdown, github, ...; see `ddpbench list`"),
    DDP_OPT_END,
};

int ddp_verdict_begin(struct ddp_app *app, const struct ddp_verdict_outputs *outputs, int64_t seed,
                      const char *const *protected_paths, struct ddp_record *record,
                      struct ddp_report_set **reports, struct ddp_err *err)
{
    int rc;
    ddp_record_init(record);
    DDP_TRY(ddp_report_open(reports, err));
    DDP_TRY_GOTO(ddp_outputs_add(*reports, outputs->json, &outputs->formats, app->log.color, err),
                 err_reports);
    for (; *protected_paths; protected_paths++)
        DDP_TRY_GOTO(ddp_report_protect(*reports, *protected_paths, err), err_reports);
    DDP_TRY_GOTO(ddp_provenance_fill(record, app->cmd->name, app->argc, app->argv, 1, err),
                 err_reports);
    record->seed = seed;
    record->world_ranks = 1;
    snprintf(record->world_backend, sizeof record->world_backend, "none");
    snprintf(record->launcher, sizeof record->launcher, "none");
    snprintf(record->reason, sizeof record->reason, "still running");
    DDP_TRY_GOTO(ddp_report_begin(*reports, record, err), err_reports);
    return 0;

err_reports:
    ddp_report_close(*reports);
    ddp_record_release(record);
    return rc;
}

int ddp_verdict_finish(struct ddp_record *record, struct ddp_report_set *reports,
                       const struct ddp_verdict_record *verdict, int rc, struct ddp_err *err)
{
    record->verdict = verdict;
    record->status = rc == 0 ? DDP_STATUS_COMPLETE : DDP_STATUS_PARTIAL;
    record->reason[0] = '\0';
    if (rc != 0)
        snprintf(record->reason, sizeof record->reason, "%s", err->text);
    ddp_clock_iso8601(record->finished, sizeof record->finished);
    int written = ddp_report_end(reports, record, err);
    ddp_report_close(reports);
    ddp_record_release(record);
    if (rc != 0)
        return rc;
    if (written != 0)
        return written;
    return verdict->outcome == DDP_VERDICT_PASS   ? 0
           : verdict->outcome == DDP_VERDICT_FAIL ? DDP_EREGRESSION
                                                  : DDP_EINCONCLUSIVE;
}
