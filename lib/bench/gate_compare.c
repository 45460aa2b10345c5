#include "bench/gate_compare.h"

#include <math.h>
#include <stdio.h>
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
    else if (cell->lower > limit)
        cell->state = DDP_CELL_SLOWER;
    else if (cell->upper < 1 / limit)
        cell->state = DDP_CELL_FASTER;
    else
        cell->state = cell->upper < limit ? DDP_CELL_SAME : DDP_CELL_UNCERTAIN;
}

/* A base that was cut off does not say which cells there should be: no PASS rests on it. What lacks
 * in new is missing in any case. */
static void conclude(const struct ddp_result *base, const struct ddp_result *next,
                     struct ddp_verdict_record *v)
{
    const bool whole = strcmp(base->status, "complete") == 0;
    size_t states[DDP_CELL_MISSING + 1] = {0};
    for (size_t c = 0; c < v->count; c++)
        states[v->cells[c].cell.state]++;
    size_t unknown = states[DDP_CELL_UNCERTAIN] + states[DDP_CELL_MISSING];
    v->outcome = states[DDP_CELL_SLOWER] > 0              ? DDP_VERDICT_FAIL
                 : unknown > 0 || v->count == 0 || !whole ? DDP_VERDICT_INCONCLUSIVE
                                                          : DDP_VERDICT_PASS;
    snprintf(v->reason, sizeof v->reason,
             "stored results: %zu of %zu cells slower by more than %.3g %%, %zu cannot be told, "
             "%zu missing%s",
             states[DDP_CELL_SLOWER], v->count, v->min_effect * 100, states[DDP_CELL_UNCERTAIN],
             states[DDP_CELL_MISSING], whole ? "" : "; base was cut off and may lack cells");
    ddp_gate_note_only_new(ddp_result_lacking(base, next), v->reason, sizeof v->reason);
}

int ddp_compare_results(const struct ddp_result *base, const struct ddp_result *next,
                        double min_effect, struct ddp_verdict_record *out, struct ddp_err *err)
{
    if (strcmp(base->fingerprint, next->fingerprint) != 0) {
        ddp_fail(err, DDP_EMISMATCH,
                 "results of different machines or set-ups: '%.200s' and '%.200s'",
                 base->fingerprint, next->fingerprint);
        return ddp_hint(err, "times of different machines say nothing about a change");
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
    conclude(base, next, &v);
    memcpy(v.base_build, base->build, sizeof v.base_build);
    memcpy(v.next_build, next->build, sizeof v.next_build);
    memcpy(v.fingerprint, base->fingerprint, sizeof v.fingerprint);
    *out = v;
    return 0;
}
