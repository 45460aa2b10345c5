/* Computes the noise floor of a machine from the gates of a self-test. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/selftest.h"

/* Quantile of the gates that gives noise_floor and detectable (record/noise.h). */
#define MOST 0.9
/* Number of halvings of (0, 100 %]. The resolution is 0.02 %. */
#define HALVINGS 12

void ddp_selftest_data(struct ddp_noise_gate *gate, struct ddp_gate_data *out)
{
    const size_t pairs = (size_t)gate->pairs, cells = (size_t)gate->cells;
    double *at = (double *)(void *)(gate + 1);
    *out = (struct ddp_gate_data){
        .count = cells, .pairs = gate->pairs, .rerun = gate->rerun, .mixed = gate->mixed};
    for (int side = 0; side < 2; side++, at += cells * pairs)
        out->median[side] = at;
    for (int side = 0; side < 2; side++, at += pairs)
        out->pingpong[side] = at;
    for (int side = 0; side < 2; side++, at += pairs)
        out->memory[side] = at;
    out->id = (char(*)[DDP_NOISE_ID_BYTES])(void *)at;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts v[n] and returns its MOST quantile: the smallest element that at least this fraction of the
 * elements does not exceed. n >= 1. */
static double most_of(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    size_t rank = (size_t)ceil(MOST * (double)n);
    return v[DDP_MIN(DDP_MAX(rank, 1), n) - 1];
}

/* Scratch memory for one gate, and the values collected from all gates. */
struct work {
    const struct ddp_selftest_setup *setup;
    struct ddp_cell *cells;
    double *next;   /* medians of new, with one cell slowed */
    double *values; /* [n] */
    size_t n;
};

/* Returns 1 if the gate would find cell c slower with new's medians of this cell multiplied by 1 +
 * effect, else 0. A slow-down of the cell has this effect on the medians. Returns -1 if there is no
 * memory. */
static int finds(struct work *w, const struct ddp_gate_data *data, size_t c, double effect,
                 double min_effect)
{
    const size_t pairs = (size_t)data->pairs;
    enum ddp_verdict verdict;
    memcpy(w->next, data->median[DDP_NEXT], data->count * pairs * sizeof *w->next);
    for (size_t i = 0; i < pairs; i++)
        w->next[c * pairs + i] *= 1 + effect;
    if (ddp_verdict_decide(data->median[DDP_BASE], w->next, data->count, pairs, min_effect,
                           w->cells, &verdict) != 0)
        return -1;
    return w->cells[c].state == DDP_CELL_SLOWER;
}

/* Sets *out to the smallest slow-down of cell c that this gate would find, or to INFINITY if it
 * finds none up to 100 %. Returns -1 if there is no memory. */
static int least_found(struct work *w, const struct ddp_gate_data *data, size_t c,
                       double min_effect, double *out)
{
    double low = 0, high = 1;
    int found = finds(w, data, c, high, min_effect);
    *out = INFINITY;
    if (found != 1)
        return found;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        found = finds(w, data, c, middle, min_effect);
        if (found < 0)
            return -1;
        *(found ? &high : &low) = middle;
    }
    *out = high;
    return 0;
}

/* Returns the smallest min_effect with which this gate would pass: the largest upper bound of its
 * cells' slow-downs. */
static double floor_of(const struct ddp_verdict_record *v)
{
    double most = 0;
    for (size_t c = 0; c < v->count; c++)
        most = fmax(most, isnan(v->cells[c].cell.upper) ? INFINITY : v->cells[c].cell.upper - 1);
    return most;
}

static void count_gate(const struct ddp_verdict_record *v, int injected, struct ddp_noise *out)
{
    const bool fail = v->outcome == DDP_VERDICT_FAIL;
    bool other = false;
    for (size_t c = 0; c < v->count; c++)
        other |= (int)c != injected && v->cells[c].cell.state == DDP_CELL_SLOWER;
    if (injected < 0) {
        out->same++;
        out->false_alarms += fail;
        out->inconclusive += v->outcome == DDP_VERDICT_INCONCLUSIVE;
    } else {
        out->injected++;
        out->found += fail && v->cells[injected].cell.state == DDP_CELL_SLOWER;
        out->elsewhere += fail && other;
    }
}

static bool counts(const struct ddp_selftest_setup *setup, const struct ddp_noise_gate *gate)
{
    return gate->index < (gate->injected < 0 ? setup->same : setup->injected);
}

static int judge_gates(struct work *w, const struct ddp_selftest *test, struct ddp_noise *out,
                       struct ddp_err *err)
{
    struct ddp_gate_setup gate = w->setup->gate;
    gate.side[DDP_BASE].text = gate.side[DDP_NEXT].text = w->setup->command;
    w->n = 0;
    for (int i = 0; i < test->count; i++) {
        struct ddp_gate_data data;
        struct ddp_verdict_record v;
        if (!counts(w->setup, test->gates[i]))
            continue;
        ddp_selftest_data(test->gates[i], &data);
        DDP_TRY(ddp_gate_judge(&gate, &data, &v, err));
        count_gate(&v, test->gates[i]->injected, out);
        if (test->gates[i]->injected < 0)
            w->values[w->n++] = floor_of(&v);
        free(v.unjudged.items);
        free(v.cells);
    }
    out->noise_floor = most_of(w->values, w->n);
    return 0;
}

static int find_detectable(struct work *w, const struct ddp_selftest *test, struct ddp_noise *out,
                           struct ddp_err *err)
{
    const double min_effect = fmax(out->min_effect, out->noise_floor);
    w->n = 0;
    for (int i = 0; i < test->count; i++) {
        struct ddp_gate_data data;
        if (test->gates[i]->injected >= 0 || !counts(w->setup, test->gates[i]))
            continue;
        ddp_selftest_data(test->gates[i], &data);
        for (size_t c = 0; c < data.count; c++)
            if (least_found(w, &data, c, min_effect, &w->values[w->n++]) != 0)
                return ddp_fail(err, DDP_ENOMEM, "no memory to judge the self-test");
    }
    const double least = most_of(w->values, w->n);
    out->detectable = isfinite(least) ? least : NAN;
    return 0;
}

int ddp_selftest_judge(const struct ddp_selftest_setup *setup, const struct ddp_selftest *test,
                       struct ddp_noise *out, struct ddp_err *err)
{
    const size_t cells = (size_t)test->gates[0]->cells, pairs = (size_t)test->gates[0]->pairs;
    struct work w = {.setup = setup};
    struct ddp_noise noise = {.pairs = (int)pairs,
                              .cells = (int)cells,
                              .injected_effect = setup->effect,
                              .min_effect = setup->gate.min_effect};
    int rc = 0;
    ddp_noise_machine_read(&noise.machine);
    ddp_printable(setup->command, noise.command, sizeof noise.command);
    ddp_clock_iso8601(noise.measured, sizeof noise.measured);
    w.cells = ddp_calloc(cells, sizeof *w.cells);
    w.next = ddp_calloc(cells * pairs, sizeof *w.next);
    w.values = ddp_calloc((size_t)test->count * cells, sizeof *w.values);
    if (!w.cells || !w.next || !w.values)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to judge the self-test");
    if (rc == 0)
        rc = judge_gates(&w, test, &noise, err);
    if (rc == 0)
        rc = find_detectable(&w, test, &noise, err);
    free(w.values);
    free(w.next);
    free(w.cells);
    if (rc == 0)
        *out = noise;
    return rc;
}

int ddp_selftest_least_gates(void)
{
    return (int)ceil(log(DDP_VERDICT_LEVEL) / log(MOST));
}

bool ddp_selftest_holds(const struct ddp_noise *noise)
{
    return noise->false_alarms <= (noise->same + 59) / 60 &&
           noise->found * 10 >= noise->injected * 9 && noise->elsewhere == 0;
}
