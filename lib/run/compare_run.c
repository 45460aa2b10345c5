#include "run/compare_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "record/accuracy.h"
#include "record/across.h"
#include "record/result_machine.h"
#include "run/noise_floor.h"

static void compare_cell(const struct ddp_result_point *a, const struct ddp_result_point *b,
                         double limit, struct ddp_verdict_cell *out)
{
    struct ddp_cell *cell = &out->cell;
    memcpy(out->id, a->id, sizeof out->id);
    out->base_ns = a->median_ns;
    out->next_ns = b ? b->median_ns : NAN;
    *cell = (struct ddp_cell){0, NAN, NAN, NAN, NAN, NAN, DDP_CELL_MISSING};
    const struct ddp_ratio r = ddp_result_ratio(a, b);
    if (isnan(r.ratio))
        return;
    cell->pairs = 1;
    cell->ratio = r.ratio;
    cell->lower = r.lower;
    cell->upper = r.upper;
    if (isnan(cell->lower) || isnan(cell->upper))
        cell->state = DDP_CELL_UNCERTAIN; /* too few iterations for an interval */
    else if (ddp_result_delays_differ(a, b))
        cell->state = DDP_CELL_UNCERTAIN; /* the ratio shows the injected delay */
    else if (cell->lower > limit)
        cell->state = DDP_CELL_SLOWER;
    else if (cell->upper < 1 / limit)
        cell->state = DDP_CELL_FASTER;
    else
        cell->state = cell->upper < limit ? DDP_CELL_SAME : DDP_CELL_UNCERTAIN;
}

static int find_unjudged(const struct ddp_result *base, const struct ddp_result *next,
                         struct ddp_unjudged_list *list, struct ddp_err *err)
{
    for (size_t i = 0; i < base->run_count; i++)
        if (!base->runs[i].timed)
            DDP_TRY(ddp_unjudged_add(list, base->runs[i].name, true, true, err));
    for (size_t i = 0; i < next->count; i++)
        if (!ddp_result_find(base, next->points[i].id))
            DDP_TRY(ddp_unjudged_add(list, next->points[i].id, false, false, err));
    for (size_t i = 0; i < next->run_count; i++)
        if (!next->runs[i].timed)
            DDP_TRY(ddp_unjudged_add(list, next->runs[i].name, true, false, err));
    ddp_unjudged_merge(list); /* a training run may be in both results */
    return 0;
}

static bool is_whole(const struct ddp_result *r)
{
    return strcmp(r->status, "complete") == 0;
}

static int judge_accuracy(const struct ddp_result *base, const struct ddp_result *next,
                          double margin, struct ddp_verdict_record *v, struct ddp_err *err)
{
    struct ddp_accuracy_list list = {.count = 0};
    int rc = ddp_accuracy_add(&list, base, 0, err);
    if (rc == 0)
        rc = ddp_accuracy_add(&list, next, 1, err);
    if (rc == 0)
        rc = ddp_accuracy_judge(&list, margin, v, err);
    free(list.items);
    return rc;
}

/* Decides the verdict. margin: the largest loss of accuracy that is accepted. The verdict is not
 * PASS if a result is incomplete, because the cells that an incomplete base lacks are unknown. */
static int conclude(const struct ddp_result *base, const struct ddp_result *next, double margin,
                    struct ddp_verdict_record *v, struct ddp_err *err)
{
    size_t states[DDP_CELL_MISSING + 1];
    char delays[320];
    ddp_verdict_count_states(v, states);
    const bool known = states[DDP_CELL_UNCERTAIN] == 0 && v->count > 0;
    v->outcome = states[DDP_CELL_SLOWER] > 0                 ? DDP_VERDICT_FAIL
                 : known && is_whole(base) && is_whole(next) ? DDP_VERDICT_PASS
                                                             : DDP_VERDICT_INCONCLUSIVE;
    snprintf(
        v->reason, sizeof v->reason,
        "stored results: %zu of %zu cells are slower by more than %.3g %%, %zu are undecided%s%s",
        states[DDP_CELL_SLOWER], v->count, v->min_effect * 100, states[DDP_CELL_UNCERTAIN],
        is_whole(base) ? "" : "; base was cut off and may lack cells",
        is_whole(next) ? "" : "; new was cut off");
    if (ddp_result_find_delays(base, next, delays, sizeof delays))
        ddp_verdict_append(v, "; ", delays);
    if (base->edited || next->edited)
        ddp_verdict_append(v,
                           base->edited && next->edited ? "; base and new were"
                           : base->edited               ? "; base was"
                                                        : "; new was",
                           " changed after the measurement (--edited)");
    DDP_TRY(judge_accuracy(base, next, margin, v, err));
    ddp_verdict_check_unjudged(v);
    return 0;
}

static int check_machines(const struct ddp_result *base, const struct ddp_result *next,
                          unsigned vary, struct ddp_err *err)
{
    char differences[440];
    if (strcmp(base->fingerprint, next->fingerprint) == 0)
        return 0;
    ddp_result_name_differences(base, next, vary, differences, sizeof differences);
    ddp_fail(err, DDP_EMISMATCH, "base and new differ in %s", differences);
    return ddp_hint(err, "compare results of equal machines with the same ranks and backend; "
                         "--vary ranks,backend allows these to differ, and --across shows ratios "
                         "without a verdict");
}

int ddp_compare_results(const struct ddp_result *base, const struct ddp_result *next, unsigned vary,
                        double min_effect, double accuracy_margin, struct ddp_verdict_record *out,
                        struct ddp_err *err)
{
    struct ddp_verdict_record v;
    DDP_TRY(check_machines(base, next, vary, err));
    ddp_verdict_record_init(&v);
    v.vary = vary;
    v.edited[0] = base->edited;
    v.edited[1] = next->edited;
    v.kind = DDP_BY_COMPARE;
    v.level = 0.05;
    v.min_effect = fmax(min_effect, DDP_COMPARE_EFFECT);
    v.count = base->count;
    DDP_TRY(DDP_NEW(&v.cells, base->count, err));
    for (size_t c = 0; c < base->count; c++)
        compare_cell(&base->points[c], ddp_result_find(next, base->points[c].id), 1 + v.min_effect,
                     &v.cells[c]);
    int rc = find_unjudged(base, next, &v.unjudged, err);
    if (rc == 0)
        rc = conclude(base, next, accuracy_margin, &v, err);
    if (rc != 0) {
        ddp_verdict_record_release(&v);
        return rc;
    }
    memcpy(v.base_build, base->build, sizeof v.base_build);
    memcpy(v.next_build, next->build, sizeof v.next_build);
    memcpy(v.fingerprint, base->fingerprint, sizeof v.fingerprint);
    *out = v;
    return 0;
}

/* Chooses the smallest effect that counts. The stored noise floor is that of this machine, so it
 * applies only if the results come from this machine. */
static int choose_effect(double asked, const char *noise_file, const struct ddp_result *base,
                         struct ddp_min_effect *out, struct ddp_err *err)
{
    static const char smallest[] = "the smallest effect that counts for stored results";
    struct ddp_noise_machine machine;
    ddp_noise_machine_read(&machine);
    DDP_TRY(ddp_min_effect_choose(asked, DDP_COMPARE_EFFECT, "", noise_file, out, err));
    if (asked < DDP_COMPARE_EFFECT) {
        out->effect = DDP_COMPARE_EFFECT;
        snprintf(out->from, sizeof out->from, "%s", smallest);
    }
    if (isnan(out->noise_floor) ||
        (strcmp(base->cpu, machine.cpu) == 0 && base->cores == machine.cores))
        return 0;
    *out = (struct ddp_min_effect){.effect = fmax(isnan(asked) ? 0 : asked, DDP_COMPARE_EFFECT),
                                   .noise_floor = NAN};
    snprintf(out->from, sizeof out->from,
             "%s; the results come from another machine, whose noise floor is unknown",
             isnan(asked)                 ? "the default"
             : asked < DDP_COMPARE_EFFECT ? smallest
                                          : "as asked");
    return 0;
}

/* Writes the path and up to four marks: the label, a status other than "complete", whether the
 * result was edited, and the note. Example: "a.json (new build, partial, edited, injected delay of
 * 10 %)". */
static void name_result(const char *path, const struct ddp_result *r, char *out, size_t bytes)
{
    const char *const marks[] = {r->label, strcmp(r->status, "complete") != 0 ? r->status : "",
                                 r->edited ? "edited" : "", r->note};
    const char *before = " (";
    snprintf(out, bytes, "%s", path);
    for (size_t i = 0; i < DDP_COUNT_OF(marks); i++)
        if (marks[i][0]) {
            ddp_text_append(out, bytes, "%s%s", before, marks[i]);
            before = ", ";
        }
    if (before[0] == ',')
        ddp_text_append(out, bytes, ")");
}

/* Reads a result. Fails if its figures must not be judged. */
static int read_stored(const struct ddp_compare *c, const char *path, struct ddp_result *out,
                       struct ddp_err *err)
{
    const struct ddp_result_rules rules = {.vary = c->vary, .accept_edited = c->edited};
    DDP_TRY(ddp_result_read(path, &rules, out, err));
    if (out->flaw[0])
        return ddp_fail(err, DDP_EINPUT, "'%s' cannot be compared: %s", path, out->flaw);
    return 0;
}

/* Fills the verdict of --across, which judges nothing. */
static void describe_across(const struct ddp_compare *c, const struct ddp_result *results,
                            const struct ddp_across *across, struct ddp_verdict_record *v)
{
    char text[400];
    size_t edited = 0, runs = 0;
    ddp_verdict_record_init(v);
    v->kind = DDP_BY_ACROSS;
    v->outcome = DDP_VERDICT_NONE;
    v->level = NAN;
    v->min_effect = NAN;
    v->vary = c->vary;
    v->across = across;
    v->edited[0] = results[0].edited;
    memcpy(v->base_command, across->documents[0].name, sizeof v->base_command);
    memcpy(v->base_build, results[0].build, sizeof v->base_build);
    memcpy(v->fingerprint, results[0].fingerprint, sizeof v->fingerprint);
    snprintf(v->reason, sizeof v->reason, "--across shows ratios of %zu documents to the first",
             across->document_count - 1);
    for (size_t d = 0; d < across->document_count; d++) {
        edited += results[d].edited;
        runs += results[d].run_count;
        if (d > 0 && ddp_result_find_delays(&results[0], &results[d], text, sizeof text))
            ddp_verdict_append(v, "; ", text);
    }
    snprintf(text, sizeof text, "; %zu edited after the measurement (--edited)", edited);
    ddp_verdict_append(v, "", edited ? text : "");
    snprintf(text, sizeof text, "; %zu training runs have no ratio", runs);
    ddp_verdict_append(v, "", runs ? text : "");
}

static int across_results(struct ddp_app *app, const struct ddp_compare *c,
                          struct ddp_result *results, char (*names)[512], struct ddp_err *err)
{
    const char *protected_paths[DDP_COMPARE_MAX + 1];
    struct ddp_verdict_record verdict;
    struct ddp_across across;
    struct ddp_record record;
    struct ddp_report_set *reports;
    for (size_t d = 0; d < c->count; d++) {
        DDP_TRY(read_stored(c, c->path[d], &results[d], err));
        name_result(c->path[d], &results[d], names[d], sizeof names[d]);
        protected_paths[d] = c->path[d];
    }
    protected_paths[c->count] = NULL;
    DDP_TRY(ddp_across_build(results, names, c->count, &across, err));
    int rc = ddp_verdict_begin(app, c->outputs, -1, protected_paths, &record, &reports, err);
    if (rc == 0) {
        describe_across(c, results, &across, &verdict);
        rc = ddp_verdict_finish(&record, reports, &verdict, 0, err);
    }
    ddp_across_release(&across);
    return rc;
}

static int compare_across(struct ddp_app *app, const struct ddp_compare *c, struct ddp_err *err)
{
    struct ddp_result *results = NULL;
    char(*names)[512] = NULL;
    int rc;
    DDP_TRY_GOTO(DDP_NEW(&results, c->count, err), out);
    DDP_TRY_GOTO(DDP_NEW(&names, c->count, err), out);
    rc = across_results(app, c, results, names, err);
out:
    for (size_t d = 0; results && d < c->count; d++)
        ddp_result_release(&results[d]);
    free(results);
    free(names);
    return rc;
}

int ddp_compare_run(struct ddp_app *app, const struct ddp_compare *c, struct ddp_err *err)
{
    struct ddp_result base = {.count = 0}, next = {.count = 0};
    struct ddp_verdict_record verdict = {.count = 0};
    struct ddp_min_effect min_effect;
    struct ddp_record record;
    struct ddp_report_set *reports;
    int rc;
    const char *const protected_paths[] = {c->path[0], c->path[1], c->noise_file, NULL};
    if (c->across)
        return compare_across(app, c, err);
    DDP_TRY_GOTO(read_stored(c, c->path[0], &base, err), out);
    DDP_TRY_GOTO(read_stored(c, c->path[1], &next, err), out);
    DDP_TRY_GOTO(choose_effect(c->min_effect, c->noise_file, &base, &min_effect, err), out);
    DDP_TRY_GOTO(ddp_verdict_begin(app, c->outputs, -1, protected_paths, &record, &reports, err),
                 out);
    rc = ddp_compare_results(&base, &next, c->vary, min_effect.effect, c->accuracy_margin, &verdict,
                             err);
    verdict.noise_floor = min_effect.noise_floor;
    memcpy(verdict.effect_from, min_effect.from, sizeof verdict.effect_from);
    name_result(c->path[0], &base, verdict.base_command, sizeof verdict.base_command);
    name_result(c->path[1], &next, verdict.next_command, sizeof verdict.next_command);
    rc = ddp_verdict_finish(&record, reports, rc == 0 ? &verdict : NULL, rc, err);
out:
    ddp_verdict_record_release(&verdict);
    ddp_result_release(&next);
    ddp_result_release(&base);
    return rc;
}
