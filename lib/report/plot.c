/* Plots as data: memory, scales, and the text of values. plot_cells.c, plot_train.c and the files
 * page_*.c make the plots. */
#include "report/plot.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/unit.h"

void ddp_plot_release(struct ddp_plot *plot)
{
    for (int i = 0; i < plot->count; i++)
        free(plot->series[i].values);
    free(plot->series);
    free(plot->rows);
    *plot = (struct ddp_plot){.count = 0};
}

void ddp_plot_set_title(struct ddp_plot *plot, const char *title)
{
    size_t n = 0;
    snprintf(plot->title, sizeof plot->title, "%s", title);
    for (; *title && n + 1 < sizeof plot->name; title++) {
        const char c = *title;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain || (c >= 'A' && c <= 'Z'))
            plot->name[n++] = plain ? c : (char)(c - 'A' + 'a');
        else if (n > 0 && plot->name[n - 1] != '-')
            plot->name[n++] = '-';
    }
    while (n > 0 && plot->name[n - 1] == '-')
        n--;
    plot->name[n] = '\0';
}

struct ddp_plot_series *ddp_plot_add_series(struct ddp_plot *plot, const char *name, int color,
                                            int shape, struct ddp_err *err)
{
    if (plot->count == plot->room) {
        const int room = DDP_MAX(2 * plot->room, 8);
        if (DDP_RESIZE(&plot->series, (size_t)room, err) != 0)
            return NULL;
        plot->room = room;
    }
    struct ddp_plot_series *s = &plot->series[plot->count++];
    *s = (struct ddp_plot_series){.color = color, .shape = shape};
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

/* Returns true if the axis can show the value. */
static bool has_place(const struct ddp_plot_axis *axis, double value)
{
    return isfinite(value) && (!axis->log || value > 0);
}

int ddp_plot_add_value(struct ddp_plot *plot, struct ddp_plot_value value, struct ddp_err *err)
{
    struct ddp_plot_series *s = &plot->series[plot->count - 1];
    const struct ddp_plot_axis *axis = plot->row_count > 0 ? &plot->x : &plot->y;
    if (!has_place(&plot->x, value.x) || !has_place(&plot->y, value.y))
        return 0;
    if (!has_place(axis, value.low) || !has_place(axis, value.high))
        value.low = value.high = NAN;
    if (s->count == s->room) {
        const size_t room = DDP_MAX(2 * s->room, (size_t)16);
        DDP_TRY(DDP_RESIZE(&s->values, room, err));
        s->room = room;
    }
    s->values[s->count++] = value;
    return 0;
}

int ddp_plot_add_row(struct ddp_plot *plot, const char *label, struct ddp_plot_value value,
                     struct ddp_err *err)
{
    if (!has_place(&plot->x, value.x))
        return 0;
    DDP_TRY(DDP_RESIZE(&plot->rows, plot->row_count + 1, err));
    ddp_printable(label, plot->rows[plot->row_count], sizeof plot->rows[0]);
    value.y = (double)plot->row_count++;
    return ddp_plot_add_value(plot, value, err);
}

void ddp_plot_add_mark(struct ddp_plot *plot, bool on_x, double at, const char *label)
{
    if (plot->mark_count == DDP_PLOT_MARKS_MAX)
        return;
    struct ddp_plot_mark *m = &plot->marks[plot->mark_count++];
    *m = (struct ddp_plot_mark){.on_x = on_x, .at = at};
    snprintf(m->label, sizeof m->label, "%s", label);
}

size_t ddp_plot_values(const struct ddp_plot *plot)
{
    size_t count = 0;
    for (int i = 0; i < plot->count; i++)
        count += plot->series[i].line || plot->series[i].cross ? 0 : plot->series[i].count;
    return count;
}

bool ddp_plot_has_doubtful(const struct ddp_plot *plot)
{
    for (int i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++)
            if (plot->series[i].values[k].doubtful)
                return true;
    return false;
}

bool ddp_plot_is_useful(const struct ddp_plot *plot)
{
    double first = NAN;
    if (plot->row_count > 0)
        return ddp_plot_values(plot) > 0;
    for (int i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count && !plot->series[i].cross; k++) {
            if (isnan(first))
                first = plot->series[i].values[k].x;
            if (plot->series[i].values[k].x != first)
                return ddp_plot_values(plot) > 0;
        }
    return false;
}

void ddp_plot_finish(struct ddp_plot *plot)
{
    int kept = 0;
    for (int i = 0; i < plot->count; i++)
        if (plot->series[i].count > 0)
            plot->series[kept++] = plot->series[i];
        else
            free(plot->series[i].values);
    plot->count = kept;
}

/* Widens the range so that it contains the value. */
static void widen(struct ddp_plot_scale *s, double value)
{
    if (!isfinite(value) || (s->log && value <= 0))
        return;
    s->low = isnan(s->low) ? value : fmin(s->low, value);
    s->high = isnan(s->high) ? value : fmax(s->high, value);
}

/* Adds a tick at each value in the range that is a power of ten times one of the factors. Returns
 * false if there are more than `most` such values. */
static bool add_powers(struct ddp_plot_scale *s, const double *factors, int most)
{
    s->count = 0;
    for (int e = (int)floor(log10(s->low)); e <= (int)ceil(log10(s->high)); e++)
        for (int i = 0; factors[i] > 0; i++) {
            const double tick = factors[i] * pow(10, e);
            if (tick < s->low * (1 - 1e-9) || tick > s->high * (1 + 1e-9))
                continue;
            if (s->count == most)
                return false;
            s->ticks[s->count++] = tick;
        }
    return true;
}

/* Adds a tick at every n-th power of `base`, where n is so large that there are at most `most`
 * ticks. */
static void add_spaced_powers(struct ddp_plot_scale *s, double base, int most)
{
    const double unit = log(base);
    const int first = (int)ceil(log(s->low) / unit - 1e-9);
    const int last = (int)floor(log(s->high) / unit + 1e-9);
    const int step = DDP_MAX(1, (last - first) / most + 1);
    s->count = 0;
    for (int e = (int)ceil((double)first / step) * step; e <= last && s->count < most; e += step)
        s->ticks[s->count++] = pow(base, e);
}

/* Adds ticks at equal distances. The distance is 1, 2 or 5 times a power of ten. */
static void add_steps(struct ddp_plot_scale *s, int most)
{
    const double least = (s->high - s->low) / most, power = pow(10, floor(log10(least)));
    const double step = least <= power       ? power
                        : least <= 2 * power ? 2 * power
                        : least <= 5 * power ? 5 * power
                                             : 10 * power;
    s->count = 0;
    for (double i = ceil(s->low / step - 1e-9) + 0.0; i * step <= s->high + 1e-9 * step; i++)
        if (s->count < most)
            s->ticks[s->count++] = i * step;
}

/* Adds at most `most` ticks to a logarithmic axis. Sizes and counts have ticks at powers of 2. For
 * other quantities, the ticks are round numbers such as 1, 2 and 5 times a power of ten. If the
 * range covers less than a factor of 2, these ticks have equal distances. */
static void add_log_ticks(struct ddp_plot_scale *s, enum ddp_quantity quantity, int most)
{
    static const double one[] = {1, 0}, two[] = {1, 3, 0}, three[] = {1, 2, 5, 0};
    static const double five[] = {1, 1.5, 2, 3, 5, 7, 0};
    const double *const sets[] = {five, three, two, one};
    if (quantity == DDP_QUANTITY_SIZE || quantity == DDP_QUANTITY_COUNT) {
        add_spaced_powers(s, 2, most);
        return;
    }
    if (s->high / s->low < 2) {
        add_steps(s, most);
        return;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(sets); i++)
        if (add_powers(s, sets[i], most))
            return;
    add_spaced_powers(s, 10, most);
}

/* Sets the range so that it contains all values, intervals and marks of the axis. */
static void find_range(const struct ddp_plot *plot, bool of_x, struct ddp_plot_scale *s)
{
    const bool rows = plot->row_count > 0;
    for (int i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++) {
            const struct ddp_plot_value *v = &plot->series[i].values[k];
            widen(s, of_x ? v->x : v->y);
            if (of_x == rows) {
                widen(s, v->low);
                widen(s, v->high);
            }
        }
    for (int i = 0; i < plot->mark_count; i++)
        if (plot->marks[i].on_x == of_x)
            widen(s, plot->marks[i].at);
}

void ddp_plot_scale(const struct ddp_plot *plot, bool of_x, int most, struct ddp_plot_scale *out)
{
    const struct ddp_plot_axis *axis = of_x ? &plot->x : &plot->y;
    struct ddp_plot_scale s = {.low = NAN, .high = NAN, .log = axis->log};
    most = DDP_MIN(most, DDP_PLOT_TICKS_MAX);
    find_range(plot, of_x, &s);
    if (isnan(s.low))
        s.low = s.high = 1;
    if (s.log) { /* Leave some room on both sides. */
        const double room = fmax(pow(s.high / s.low, 0.04), 1.02);
        s.low /= room;
        s.high *= room;
        add_log_ticks(&s, axis->quantity, most);
    } else {
        const double room = fmax(0.04 * (s.high - s.low), 0.01 * fmax(fabs(s.high), 1e-9));
        s.low = s.low >= 0 && s.low < 0.2 * s.high ? 0 : s.low - room;
        s.high += room;
        add_steps(&s, most);
    }
    *out = s;
}

double ddp_plot_position(const struct ddp_plot_scale *s, double value)
{
    return s->log ? log(value / s->low) / log(s->high / s->low)
                  : (value - s->low) / (s->high - s->low);
}

/* Writes bytes with a unit that is a power of 1000. */
static void traffic_text(double bytes, char *out, size_t out_bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    for (; unit + 1 < DDP_COUNT_OF(units) && fabs(bytes) >= 999.5; unit++)
        bytes /= 1000;
    snprintf(out, out_bytes, "%.3g %s", bytes, units[unit]);
}

/* Writes a number, usually with three significant digits. If `trim` is true, leaves out zeros at
 * the end. */
static void number_text(double value, bool trim, char *out, size_t out_bytes)
{
    const double size = fabs(value);
    const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    if (size >= 999.5 && size < 1e6)
        snprintf(out, out_bytes, "%.0f", value);
    else if (trim || size < 0.09995 || size >= 1e6)
        snprintf(out, out_bytes, "%.3g", value);
    else
        snprintf(out, out_bytes, "%.*f", decimals, value);
}

static void quantity_text(enum ddp_quantity quantity, double value, bool trim, char *out,
                          size_t out_bytes)
{
    const bool is_size = value >= 0 && value < 18e18;
    if (!isfinite(value)) {
        snprintf(out, out_bytes, "-");
        return;
    }
    switch (quantity) {
    case DDP_QUANTITY_SIZE:
        ddp_format_size(is_size ? (uint64_t)value : 0, out, out_bytes);
        return;
    case DDP_QUANTITY_TRAFFIC:
        traffic_text(value, out, out_bytes);
        return;
    case DDP_QUANTITY_NS:
        if (value == 0)
            snprintf(out, out_bytes, "0 s");
        else
            ddp_format_ns(value, out, out_bytes);
        return;
    case DDP_QUANTITY_SECONDS:
        quantity_text(DDP_QUANTITY_NS, value * 1e9, trim, out, out_bytes);
        return;
    case DDP_QUANTITY_COUNT:
        snprintf(out, out_bytes, "%.15g", value);
        return;
    case DDP_QUANTITY_FRACTION:
        number_text(value * 100, trim, out, out_bytes);
        ddp_text_append(out, out_bytes, " %%");
        return;
    default:
        number_text(value, trim, out, out_bytes);
    }
}

void ddp_quantity_text(enum ddp_quantity quantity, double value, char *out, size_t out_bytes)
{
    quantity_text(quantity, value, false, out, out_bytes);
}

void ddp_quantity_tick(enum ddp_quantity quantity, double value, char *out, size_t out_bytes)
{
    quantity_text(quantity, value, true, out, out_bytes);
}
