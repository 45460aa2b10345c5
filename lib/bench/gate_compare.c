#include "bench/gate_compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/gate.h"

static void compare_cell(const struct ddp_result_point *a, const struct ddp_result_point *b,
                         double limit, struct ddp_verdict_cell *out)
{
    struct ddp_cell *cell = &out->cell;
    memcpy(out->id, a->id, sizeof out->id);
    out->base_ns = a->median_ns;
    out->next_ns = b ? b->median_ns : NAN;
    *cell = (struct ddp_cell){0, NAN, NAN, NAN, NAN, NAN, DDP_CELL_MISSING};
    if (!b || !(a->median_ns > 0) || !(b->median_ns > 0))
        return;
    cell->pairs = 1;
    cell->ratio = b->median_ns / a->median_ns;
    cell->lower = a->ci95_hi_ns > 0 ? b->ci95_lo_ns / a->ci95_hi_ns : NAN;
    cell->upper = a->ci95_lo_ns > 0 ? b->ci95_hi_ns / a->ci95_lo_ns : NAN;
    if (isnan(cell->lower) || isnan(cell->upper))
        cell->state = DDP_CELL_UNCERTAIN; /* too few iterations for an interval */
    else if (ddp_result_delays_differ(a, b))
        cell->state = DDP_CELL_UNCERTAIN; /* the ratio would show the injected delay */
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
        DDP_TRY(ddp_unjudged_add(list, base->runs[i], true, true, err));
    for (size_t i = 0; i < next->count; i++)
        if (!ddp_result_find(base, next->points[i].id))
            DDP_TRY(ddp_unjudged_add(list, next->points[i].id, false, false, err));
    for (size_t i = 0; i < next->run_count; i++)
        DDP_TRY(ddp_unjudged_add(list, next->runs[i], true, false, err));
    ddp_unjudged_merge(list); /* a training run may be in both results */
    return 0;
}

/* Appends to v->reason the first cell whose injected delays differ. */
static void name_delay(const struct ddp_result *base, const struct ddp_result *next,
                       struct ddp_verdict_record *v)
{
    const size_t at = strlen(v->reason);
    char delays[80];
    for (size_t i = 0; i < base->count; i++) {
        const struct ddp_result_point *p = ddp_result_find(next, base->points[i].id);
        if (!p || !ddp_result_delays_differ(&base->points[i], p))
            continue;
        ddp_result_name_delays(&base->points[i], p, delays, sizeof delays);
        snprintf(v->reason + at, sizeof v->reason - at,
                 "; the delays injected into '%s' differ: %s", p->id, delays);
        return;
    }
}

static bool is_whole(const struct ddp_result *r)
{
    return strcmp(r->status, "complete") == 0;
}

/* Decides the verdict. There is no PASS if a result was cut off. If base was cut off, its remaining
 * cells are not known. */
static void conclude(const struct ddp_result *base, const struct ddp_result *next,
                     struct ddp_verdict_record *v)
{
    size_t states[DDP_CELL_MISSING + 1] = {0};
    for (size_t c = 0; c < v->count; c++)
        states[v->cells[c].cell.state]++;
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
    name_delay(base, next, v);
    ddp_gate_check_unjudged(v);
}

int ddp_compare_results(const struct ddp_result *base, const struct ddp_result *next,
                        double min_effect, struct ddp_verdict_record *out, struct ddp_err *err)
{
    if (strcmp(base->fingerprint, next->fingerprint) != 0) {
        ddp_fail(err, DDP_EMISMATCH,
                 "the results have different machines or set-ups: '%.200s' and '%.200s'",
                 base->fingerprint, next->fingerprint);
        return ddp_hint(err,
                        "compare results that were measured on one machine with the same ranks");
    }
    struct ddp_verdict_record v = {.kind = "compare",
                                   .level = 0.05,
                                   .min_effect = fmax(min_effect, DDP_COMPARE_EFFECT),
                                   .noise_floor = NAN,
                                   .pingpong_ratio = NAN,
                                   .pingpong_p = NAN,
                                   .memory_ratio = NAN,
                                   .memory_p = NAN,
                                   .count = base->count};
    v.cells = ddp_calloc(base->count, sizeof *v.cells);
    if (!v.cells)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu cells", base->count);
    for (size_t c = 0; c < base->count; c++)
        compare_cell(&base->points[c], ddp_result_find(next, base->points[c].id), 1 + v.min_effect,
                     &v.cells[c]);
    int rc = find_unjudged(base, next, &v.unjudged, err);
    if (rc != 0) {
        free(v.unjudged.items);
        free(v.cells);
        return rc;
    }
    conclude(base, next, &v);
    memcpy(v.base_build, base->build, sizeof v.base_build);
    memcpy(v.next_build, next->build, sizeof v.next_build);
    memcpy(v.fingerprint, base->fingerprint, sizeof v.fingerprint);
    *out = v;
    return 0;
}
