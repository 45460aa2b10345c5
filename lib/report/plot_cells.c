/* Makes plots from groups of cells. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "record/across.h"
#include "report/plot.h"

/* A plot with more series than this shows no bounds. */
#define BOUNDS_MAX 3

double ddp_plot_busbw(const struct ddp_plot_cell *cell, double ns)
{
    return ddp_point_busbw_GBps(cell->point, ns);
}

/* Sets *v to the value of the metric for a cell, with its interval. */
static void value_of(const struct ddp_plot_group *g, const struct ddp_plot_cell *cell,
                     enum ddp_plot_metric metric, struct ddp_plot_value *v)
{
    const double dense = cell->point->dense_ns[DDP_BASELINE_F32];
    *v = (struct ddp_plot_value){.x = ddp_plot_over_value(cell, g->over),
                                 .y = NAN,
                                 .low = NAN,
                                 .high = NAN,
                                 .doubtful = cell->quality != 0};
    if (cell->wrong)
        return;
    if (metric == DDP_PLOT_RATIO) {
        const struct ddp_result *base = g->sources[0].result;
        if (!base || !cell->merged || cell->source == 0)
            return;
        const struct ddp_ratio r =
            ddp_result_ratio(ddp_result_find(base, cell->merged->id), cell->merged);
        v->y = r.ratio;
        v->low = r.lower;
        v->high = r.upper;
    } else if (metric == DDP_PLOT_TIME) {
        v->y = cell->median_ns;
        v->low = cell->ci95_lo_ns;
        v->high = cell->ci95_hi_ns;
    } else if (metric == DDP_PLOT_SPEEDUP) {
        /* A longer time means a lower speed, so the ends of the interval are swapped. */
        v->y = dense / cell->median_ns;
        v->low = dense / cell->ci95_hi_ns;
        v->high = dense / cell->ci95_lo_ns;
    } else {
        v->y = ddp_plot_busbw(cell, cell->median_ns);
        v->low = ddp_plot_busbw(cell, cell->ci95_hi_ns);
        v->high = ddp_plot_busbw(cell, cell->ci95_lo_ns);
    }
}

/* Adds the bound of a series as a line. */
static int add_bound(const struct ddp_plot_group *g, int series, enum ddp_plot_metric metric,
                     struct ddp_plot *out, struct ddp_err *err)
{
    char name[200] = "bound";
    if (g->names[series][0])
        ddp_text_append(name, sizeof name, ", %s", g->names[series]);
    struct ddp_plot_series *s =
        ddp_plot_add_series(out, name, g->colors[series], g->shapes[series], err);
    if (!s)
        return DDP_ENOMEM;
    s->line = true;
    for (size_t i = 0; i < g->count; i++) {
        const struct ddp_plot_cell *cell = g->cells[i];
        const double ns = cell->point->bound_ns;
        if (g->series[i] != series || cell->wrong)
            continue;
        const struct ddp_plot_value v = {.x = ddp_plot_over_value(cell, g->over),
                                         .y = metric == DDP_PLOT_TIME ? ns
                                                                      : ddp_plot_busbw(cell, ns),
                                         .low = NAN,
                                         .high = NAN};
        DDP_TRY(ddp_plot_add_value(out, v, err));
    }
    return 0;
}

double ddp_plot_break_even(const struct ddp_plot_group *g, int series, bool *measured)
{
    double best = NAN, nearest = INFINITY;
    *measured = false;
    for (size_t i = 0; i < g->count; i++) {
        const struct ddp_break_even *even = &g->cells[i]->point->break_even[DDP_BASELINE_F32];
        const double distance =
            fabs(log(even->estimated / ddp_plot_over_value(g->cells[i], g->over)));
        if (g->series[i] != series)
            continue;
        if (!isnan(even->measured)) {
            *measured = true;
            return even->measured;
        }
        if (distance < nearest || isnan(best)) {
            nearest = distance;
            best = even->estimated;
        }
    }
    return best;
}

/* Adds a cross at the break-even density of a series, where the exchange is as fast as dense f32.
 */
static int add_break_even(const struct ddp_plot_group *g, int series, struct ddp_plot *out,
                          struct ddp_err *err)
{
    bool measured;
    char name[200];
    const double density = ddp_plot_break_even(g, series, &measured);
    if (!(density > 0 && density < 1))
        return 0;
    snprintf(name, sizeof name, "break-even density%s", measured ? "" : ", estimated");
    if (g->names[series][0])
        ddp_text_append(name, sizeof name, ", %s", g->names[series]);
    struct ddp_plot_series *s =
        ddp_plot_add_series(out, name, g->colors[series], g->shapes[series], err);
    if (!s)
        return DDP_ENOMEM;
    s->cross = true;
    return ddp_plot_add_value(
        out, (struct ddp_plot_value){.x = density, .y = 1, .low = NAN, .high = NAN}, err);
}

/* Sets title, axes and marks. */
static void describe(const struct ddp_plot_group *g, enum ddp_plot_metric metric,
                     struct ddp_plot *out)
{
    static const struct {
        const char *what, *axis;
        enum ddp_quantity quantity;
    } metrics[] = {
        [DDP_PLOT_BUSBW] = {"bus bandwidth", "bus bandwidth (GB/s)", DDP_QUANTITY_GBPS},
        [DDP_PLOT_TIME] = {"time", "time", DDP_QUANTITY_NS},
        [DDP_PLOT_SPEEDUP] = {"speed relative to dense f32", "times as fast as dense f32",
                              DDP_QUANTITY_NUMBER},
        [DDP_PLOT_RATIO] = {"time ratio", "time ratio", DDP_QUANTITY_NUMBER},
    };
    static const struct ddp_plot_axis over[] = {
        [DDP_PLOT_OVER_SIZE] = {DDP_QUANTITY_SIZE, true, "size"},
        [DDP_PLOT_OVER_RANKS] = {DDP_QUANTITY_COUNT, true, "ranks"},
        [DDP_PLOT_OVER_DENSITY] = {DDP_QUANTITY_FRACTION, true, "density"},
    };
    char title[256];
    snprintf(title, sizeof title, "%s: %s over %s", g->title, metrics[metric].what,
             over[g->over].label);
    ddp_plot_set_title(out, title);
    snprintf(out->note, sizeof out->note, "%s", g->note);
    out->x = over[g->over];
    out->y = (struct ddp_plot_axis){.quantity = metrics[metric].quantity, .log = true};
    snprintf(out->y.label, sizeof out->y.label, "%s", metrics[metric].axis);
    if (metric == DDP_PLOT_SPEEDUP)
        ddp_plot_add_mark(out, false, 1, "as fast as dense f32");
    if (metric == DDP_PLOT_RATIO) {
        snprintf(out->y.label, sizeof out->y.label, "time relative to %.40s", g->sources[0].name);
        ddp_plot_add_mark(out, false, 1, "");
    }
}

int ddp_plot_cells_over(const struct ddp_plot_group *g, enum ddp_plot_metric metric,
                        struct ddp_plot *out, struct ddp_err *err)
{
    const bool has_bounds = metric == DDP_PLOT_BUSBW || metric == DDP_PLOT_TIME;
    int rc = 0;
    *out = (struct ddp_plot){.count = 0};
    describe(g, metric, out);
    for (int s = 0; s < g->series_count; s++) {
        const char *name = g->names[s][0] == '\0' && has_bounds ? "median" : g->names[s];
        if (!ddp_plot_add_series(out, name, g->colors[s], g->shapes[s], err))
            DDP_TRY_GOTO(DDP_ENOMEM, err_plot);
        for (size_t i = 0; i < g->count; i++) {
            struct ddp_plot_value v;
            value_of(g, g->cells[i], metric, &v);
            if (g->series[i] == s)
                DDP_TRY_GOTO(ddp_plot_add_value(out, v, err), err_plot);
        }
    }
    for (int s = 0; s < g->series_count && g->series_count <= BOUNDS_MAX && has_bounds; s++)
        DDP_TRY_GOTO(add_bound(g, s, metric, out, err), err_plot);
    for (int s = 0; s < g->series_count && metric == DDP_PLOT_SPEEDUP; s++)
        DDP_TRY_GOTO(add_break_even(g, s, out, err), err_plot);
    ddp_plot_finish(out);
    return 0;

err_plot:
    ddp_plot_release(out);
    return rc;
}
