/* Turns the medians of all child processes into a verdict. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/gate.h"
#include "stats/signflip.h"
#include "stats/summary.h"

/* Significance level of the test of one covariate: 0.01, divided by two because there are two
 * covariates (Bonferroni). The level is stricter than that of cells, because the Holm correction
 * does not include covariates. */
#define COVARIATE_LEVEL (0.01 / 2)
/* Largest number of items of a kind that the reason of a verdict names. */
#define NAMES_MAX 4

/* Returns the median over the child processes that have the cell, or NaN if none has it. */
static double median_over_launches(const double *medians, int pairs)
{
    double known[DDP_SIGNFLIP_MAX];
    struct ddp_summary s;
    size_t n = 0;
    for (int i = 0; i < pairs; i++)
        if (!isnan(medians[i]))
            known[n++] = medians[i];
    return ddp_summarize(known, n, &s) == 0 ? s.median : NAN;
}

/* Tests a covariate [pairs] like a cell, for a slow-down and for a speed-up. *p: two-sided
 * p-value. */
static int judge_covariate(double *const covariate[2], int pairs, double *ratio, double *p,
                           struct ddp_err *err)
{
    struct ddp_cell slower, faster;
    enum ddp_verdict ignored;
    const double *base = covariate[DDP_BASE], *next = covariate[DDP_NEXT];
    if (ddp_verdict_decide(base, next, 1, (size_t)pairs, 0, &slower, &ignored) != 0 ||
        ddp_verdict_decide(next, base, 1, (size_t)pairs, 0, &faster, &ignored) != 0)
        return ddp_fail(err, DDP_ENOMEM, "no memory to judge a covariate");
    *ratio = slower.ratio;
    *p = slower.pairs ? fmin(1, 2 * fmin(slower.p, faster.p)) : NAN;
    return 0;
}

/* Turns a verdict into INCONCLUSIVE if a covariate shows that the host drifted. The drift may be
 * the cause of a FAIL. It may also be the cause of a PASS if the host was faster for new. */
static void check_drift(const char *what, double ratio, double p, struct ddp_verdict_record *v)
{
    const double least = 2 * ddp_signflip_least_p((size_t)v->pairs);
    const bool explained =
        v->outcome == DDP_VERDICT_FAIL || (v->outcome == DDP_VERDICT_PASS && ratio < 1);
    if (!explained || !(p <= fmax(COVARIATE_LEVEL, least)) ||
        !(fabs(log(ratio)) > log1p(v->min_effect)))
        return;
    v->outcome = DDP_VERDICT_INCONCLUSIVE;
    snprintf(v->reason, sizeof v->reason,
             "the host drifted: its own %s differs by %+.1f %% between the two sides", what,
             (ratio - 1) * 100);
}

static void name_reason(const struct ddp_verdict_record *v, char *out, size_t bytes)
{
    size_t states[DDP_CELL_MISSING + 1] = {0};
    for (size_t c = 0; c < v->count; c++)
        states[v->cells[c].cell.state]++;
    if (v->outcome == DDP_VERDICT_FAIL)
        snprintf(out, bytes, "%zu of %zu cells are slower by more than %.3g %%",
                 states[DDP_CELL_SLOWER], v->count, v->min_effect * 100);
    else if (states[DDP_CELL_MISSING] == v->count)
        snprintf(out, bytes, "no cell was judged");
    else if (states[DDP_CELL_UNCERTAIN] == 0)
        snprintf(out, bytes, "no cell is slower by %.3g %% or more", v->min_effect * 100);
    else
        snprintf(out, bytes,
                 "%zu of %zu cells are undecided: slower by %.3g %% or not; use more --pairs",
                 states[DDP_CELL_UNCERTAIN], v->count, v->min_effect * 100);
}

static void append(struct ddp_verdict_record *v, const char *before, const char *text)
{
    const size_t at = strlen(v->reason);
    snprintf(v->reason + at, sizeof v->reason - at, "%s%s", before, text);
}

/* Appends name number nth of `all`, counted from 0. Instead of name number NAMES_MAX, appends how
 * many names are left. Ignores later names. */
static void append_name(struct ddp_verdict_record *v, size_t nth, size_t all, const char *name)
{
    char more[40];
    snprintf(more, sizeof more, "and %zu more", all - nth);
    if (nth <= NAMES_MAX)
        append(v, nth ? ", " : ": ", nth < NAMES_MAX ? name : more);
}

/* Appends the cells of base that new lacks. Returns how many there are. */
static size_t name_missing(struct ddp_verdict_record *v)
{
    size_t all = 0, n = 0;
    char head[80];
    for (size_t c = 0; c < v->count; c++)
        all += v->cells[c].cell.state == DDP_CELL_MISSING;
    snprintf(head, sizeof head, "%zu of %zu cells of base are missing in new", all, v->count);
    if (all > 0)
        append(v, "; ", head);
    for (size_t c = 0; c < v->count; c++)
        if (v->cells[c].cell.state == DDP_CELL_MISSING)
            append_name(v, n++, all, v->cells[c].id);
    return all;
}

/* Appends the unjudged items of one kind. Returns how many there are. */
static size_t name_unjudged(struct ddp_verdict_record *v, bool train, bool base)
{
    const struct ddp_unjudged_list *list = &v->unjudged;
    size_t all = 0, n = 0;
    char head[80];
    for (size_t i = 0; i < list->count; i++)
        all += list->items[i].train == train && list->items[i].base == base;
    snprintf(head, sizeof head, "%zu %s%s of %s, not judged", all, train ? "training run" : "cell",
             all == 1 ? "" : "s", base ? "base" : "new only");
    if (all > 0)
        append(v, "; ", head);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].train == train && list->items[i].base == base)
            append_name(v, n++, all, list->items[i].name);
    return all;
}

void ddp_gate_check_unjudged(struct ddp_verdict_record *v)
{
    size_t of_base = name_missing(v);
    of_base += name_unjudged(v, false, true);
    of_base += name_unjudged(v, true, true);
    name_unjudged(v, false, false);
    name_unjudged(v, true, false);
    if (of_base > 0 && v->outcome == DDP_VERDICT_PASS)
        v->outcome = DDP_VERDICT_INCONCLUSIVE;
}

int ddp_gate_judge(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                   struct ddp_verdict_record *out, struct ddp_err *err)
{
    size_t pairs = (size_t)data->pairs;
    struct ddp_verdict_record v = {.kind = "gate",
                                   .level = DDP_VERDICT_LEVEL,
                                   .min_effect = setup->min_effect,
                                   .noise_floor = NAN,
                                   .pairs = data->pairs,
                                   .rerun = data->rerun,
                                   .mixed = data->mixed,
                                   .count = data->count};
    struct ddp_cell *cells = ddp_calloc(data->count, sizeof *cells);
    int rc = 0;
    v.cells = ddp_calloc(data->count, sizeof *v.cells);
    if (!cells || !v.cells ||
        ddp_verdict_decide(data->median[DDP_BASE], data->median[DDP_NEXT], data->count, pairs,
                           setup->min_effect, cells, &v.outcome) != 0) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to judge %zu cells", data->count);
        goto err_cells;
    }
    for (size_t i = 0; i < data->unjudged.count; i++) {
        const struct ddp_unjudged *item = &data->unjudged.items[i];
        DDP_TRY_GOTO(ddp_unjudged_add(&v.unjudged, item->name, item->train, item->base, err),
                     err_cells);
    }
    for (size_t c = 0; c < data->count; c++) {
        memcpy(v.cells[c].id, data->id[c], sizeof v.cells[c].id);
        v.cells[c].cell = cells[c];
        v.cells[c].base_ns = median_over_launches(data->median[DDP_BASE] + c * pairs, data->pairs);
        v.cells[c].next_ns = median_over_launches(data->median[DDP_NEXT] + c * pairs, data->pairs);
    }
    DDP_TRY_GOTO(
        judge_covariate(data->pingpong, data->pairs, &v.pingpong_ratio, &v.pingpong_p, err),
        err_cells);
    DDP_TRY_GOTO(judge_covariate(data->memory, data->pairs, &v.memory_ratio, &v.memory_p, err),
                 err_cells);
    name_reason(&v, v.reason, sizeof v.reason);
    check_drift("ping-pong", v.pingpong_ratio, v.pingpong_p, &v);
    check_drift("memory copy time", v.memory_ratio, v.memory_p, &v);
    ddp_gate_check_unjudged(&v);
    snprintf(v.base_command, sizeof v.base_command, "%s", setup->side[DDP_BASE].text);
    snprintf(v.next_command, sizeof v.next_command, "%s", setup->side[DDP_NEXT].text);
    memcpy(v.base_build, data->build[DDP_BASE], sizeof v.base_build);
    memcpy(v.next_build, data->build[DDP_NEXT], sizeof v.next_build);
    memcpy(v.fingerprint, data->fingerprint, sizeof v.fingerprint);
    *out = v;
    free(cells);
    return 0;

err_cells:
    free(v.unjudged.items);
    free(v.cells);
    free(cells);
    return rc;
}
