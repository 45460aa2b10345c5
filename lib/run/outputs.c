#include "run/outputs.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "record/provenance.h"
#include "record/vary.h"
#include "report/plot_terminal.h"

static const char *reporter_name(const void *ctx, int i)
{
    (void)ctx;
    const struct ddp_reporter *const *all = ddp_reporter_all();
    return all[i] ? all[i]->name : NULL;
}

int ddp_outputs_find(const char *name, const struct ddp_reporter **out, struct ddp_err *err)
{
    *out = ddp_reporter_find(name);
    if (*out)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "unknown format '%s' in --format", name);
    return ddp_hint_nearest(err, name, reporter_name, NULL, "`ddpbench list reporters` shows them");
}

/* Adds the reporter of one --format NAME[=FILE]. */
static int add_format(struct ddp_report_set *set, const char *text, struct ddp_err *err)
{
    char name[64];
    const char *equals = strchr(text, '=');
    const struct ddp_reporter *reporter;
    snprintf(name, sizeof name, "%.*s", (int)(equals ? (size_t)(equals - text) : strlen(text)),
             text);
    DDP_TRY(ddp_outputs_find(name, &reporter, err));
    return ddp_report_add(set, reporter, equals ? equals + 1 : "-", err);
}

int ddp_outputs_add(struct ddp_report_set *set, const char *json,
                    const struct ddp_string_list *formats, struct ddp_err *err)
{
    if (json)
        DDP_TRY(ddp_report_add(set, ddp_reporter_find("json"), json, err));
    for (int i = 0; i < formats->n; i++)
        DDP_TRY(add_format(set, formats->v[i], err));
    if (formats->n == 0 && !ddp_report_has_stdout(set))
        DDP_TRY(ddp_report_add(set, ddp_reporter_find("table"), "-", err));
    return 0;
}

const struct ddp_opt ddp_plot_rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(ENUM, "plot", 0, 0, "WHAT", "none",
            "draw bus bandwidth or time over size below the table; each collective and number of "
            "ranks has a plot",
            .choices = ddp_plot_choices, .brief = "draw busbw or time over size below the table"),
    DDP_OPT_END,
};

int ddp_outputs_check_plot(int plot, bool has_table, struct ddp_err *err)
{
    if (plot == 0 || has_table)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "--plot %s draws below the table, which is not printed",
             ddp_plot_choices[plot]);
    return ddp_hint(err, "--format table prints it");
}

int ddp_check_formats(const struct ddp_string_list *formats, unsigned kind, const char *what,
                      struct ddp_err *err)
{
    for (int i = 0; i < formats->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(formats->v[i], "="), formats->v[i]);
        const struct ddp_reporter *reporter = ddp_reporter_find(name);
        if (reporter != NULL && !(reporter->shows & kind)) {
            ddp_fail(err, DDP_EUSAGE, "the format '%s' cannot show %s", name, what);
            return ddp_hint(err, "use table, json or jsonl");
        }
    }
    return 0;
}

int ddp_outputs_check_label(const char *label, struct ddp_err *err)
{
    char clean[sizeof((struct ddp_record *)NULL)->label];
    if (!label)
        return 0;
    const size_t bytes = strlen(label);
    if (bytes == 0 || bytes >= sizeof clean)
        return ddp_fail(err, DDP_EUSAGE, "--label takes 1 to %zu bytes, not %zu", sizeof clean - 1,
                        bytes);
    ddp_printable(label, clean, sizeof clean);
    if (strcmp(clean, label) != 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "--label '%s' has a control character, or is not valid UTF-8", clean);
    return 0;
}

const struct ddp_opt ddp_vary_rows[] = {
    DDP_OPT(ENUM_LIST, "vary", 0, 0, "KEY[,KEY]", NULL,
            "match cells that differ in these keys, which are then no part of a cell's id",
            .choices = ddp_vary_names),
    DDP_OPT_END,
};

unsigned ddp_vary_set(const struct ddp_int_list *keys)
{
    unsigned set = 0;
    for (int i = 0; i < keys->n; i++)
        set |= 1u << keys->v[i];
    return set;
}

int ddp_verdict_begin(struct ddp_app *app, const struct ddp_verdict_outputs *outputs, int64_t seed,
                      const char *const *protected_paths, struct ddp_record *record,
                      struct ddp_report_set **reports, struct ddp_err *err)
{
    int rc;
    DDP_TRY(ddp_outputs_check_label(outputs->label, err));
    ddp_record_init(record);
    DDP_TRY(ddp_report_open(reports, err));
    ddp_report_set_table(*reports, &(struct ddp_table_options){.wide = outputs->wide});
    DDP_TRY_GOTO(ddp_outputs_add(*reports, outputs->json, &outputs->formats, err), err_reports);
    for (; *protected_paths; protected_paths++)
        DDP_TRY_GOTO(ddp_report_protect(*reports, *protected_paths, err), err_reports);
    DDP_TRY_GOTO(ddp_provenance_fill(record, app->cmd->name, app->argc, app->argv, 1, err),
                 err_reports);
    if (outputs->label)
        ddp_printable(outputs->label, record->label, sizeof record->label);
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
    return verdict->outcome == DDP_VERDICT_FAIL           ? DDP_EREGRESSION
           : verdict->outcome == DDP_VERDICT_INCONCLUSIVE ? DDP_EINCONCLUSIVE
                                                          : 0;
}
