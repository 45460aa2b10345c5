#include "stats/verdict.h"

#include <math.h>
#include <stdlib.h>

#include "stats/signflip.h"

const char *const ddp_verdict_names[] = {"PASS", "FAIL", "INCONCLUSIVE", "no verdict"};
const char *const ddp_cell_state_names[] = {"same", "faster", "slower", "uncertain", "missing"};

const char *ddp_cell_state_text(enum ddp_cell_state state)
{
    return state == DDP_CELL_SAME ? "not slower" : ddp_cell_state_names[state];
}

/* Tests one cell. `base` and `next` point to the times of the cell in the first pair. The time in
 * pair i lies `i * cells` values later. log_ratio [pairs] is scratch space. */
static int judge_cell(const double *base, const double *next, size_t cells, size_t pairs,
                      double level, double *log_ratio, struct ddp_cell *cell)
{
    double centre, lower, upper;
    *cell = (struct ddp_cell){0, NAN, NAN, NAN, 1, 1, DDP_CELL_MISSING};
    for (size_t i = 0; i < pairs; i++)
        if (base[i * cells] > 0 && next[i * cells] > 0) /* false for NaN */
            log_ratio[cell->pairs++] = log(next[i * cells] / base[i * cells]);
    if (cell->pairs == 0)
        return 0;
    if (ddp_signflip_p(log_ratio, cell->pairs, &cell->p) != 0 ||
        ddp_hodges_lehmann(log_ratio, cell->pairs, level, &centre, &lower, &upper) != 0)
        return -1;
    cell->ratio = exp(centre);
    cell->lower = exp(lower);
    cell->upper = exp(upper);
    return 0;
}

static enum ddp_cell_state state_of(const struct ddp_cell *cell,
                                    const struct ddp_verdict_rule *rule)
{
    const double limit = 1 + rule->min_effect;
    if (cell->pairs == 0)
        return DDP_CELL_MISSING;
    if (cell->p_holm <= rule->level && cell->lower > limit)
        return DDP_CELL_SLOWER;
    if (cell->upper < 1 / limit)
        return DDP_CELL_FASTER;
    return cell->upper < limit ? DDP_CELL_SAME : DDP_CELL_UNCERTAIN;
}

int ddp_verdict_decide(const double *base, const double *next, size_t cells, size_t pairs,
                       const struct ddp_verdict_rule *rule, struct ddp_cell *out,
                       enum ddp_verdict *verdict)
{
    double *scratch = calloc(pairs + 2 * cells + 1, sizeof *scratch);
    if (!scratch)
        return -1;
    double *p = scratch + pairs, *adjusted = p + cells;
    int rc = 0;
    for (size_t c = 0; c < cells && rc == 0; c++) {
        rc = judge_cell(base + c, next + c, cells, pairs, rule->level, scratch, &out[c]);
        p[c] = out[c].p;
    }
    if (rc == 0)
        rc = ddp_holm(p, cells, adjusted);
    if (rc == 0) {
        *verdict = cells > 0 ? DDP_VERDICT_PASS : DDP_VERDICT_INCONCLUSIVE;
        for (size_t c = 0; c < cells; c++) {
            out[c].p_holm = adjusted[c];
            out[c].state = state_of(&out[c], rule);
            if (out[c].state == DDP_CELL_MISSING) /* Holm's correction used p = 1 for this cell */
                out[c].p = out[c].p_holm = NAN;
            if (out[c].state == DDP_CELL_SLOWER)
                *verdict = DDP_VERDICT_FAIL;
            else if (*verdict == DDP_VERDICT_PASS &&
                     (out[c].state == DDP_CELL_UNCERTAIN || out[c].state == DDP_CELL_MISSING))
                *verdict = DDP_VERDICT_INCONCLUSIVE;
        }
    }
    free(scratch);
    return rc;
}
