#include "report/plot_svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/report_parts.h"

#define COLORS 8
#define SHAPES 8
/* A plot with more values than this has small markers. */
#define MANY_VALUES 120

/* Sizes in units of the drawing. A unit is a pixel if the drawing is not scaled. */
#define INLINE_WIDTH  520
#define INLINE_HEIGHT 310
#define FILE_WIDTH    760
#define FILE_HEIGHT   360
#define ROW_HEIGHT    34
#define LETTER        6.5 /* Estimate of the mean width of a letter. */

/* The area in which values are drawn. */
struct frame {
    double left, top, right, bottom;
    struct ddp_plot_scale x, y;
};

void ddp_markup_text(struct ddp_strbuf *out, const char *text)
{
    static const char *const by[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    ddp_escaped_text(out, text, "&<>\"'", by);
}

/* The colours of series are --s0 to --s7. They also differ for people with a colour vision
 * deficiency, and have a contrast ratio of at least 3 to the background (--surface). */
static const char light[] =
    "--page:#f6f7f9;--surface:#fff;--ink:#1b1f24;--ink2:#4a535e;--line:#d5dae0;--grid:#e6e9ed;"
    "--link:#1557b0;--good:#17693a;--bad:#b3261e;--warn:#855300;--tint:#fff6e0;"
    "--s0:#213dc4;--s1:#ed6007;--s2:#0b9b9d;--s3:#961261;--s4:#7f68be;--s5:#004b0e;--s6:#a75b5d;"
    "--s7:#6b5f01";
static const char dark[] =
    "--page:#101317;--surface:#181c21;--ink:#e8ebef;--ink2:#aab4c0;--line:#3a424c;--grid:#2a3038;"
    "--link:#8ab8ff;--good:#6fd598;--bad:#ff8f86;--warn:#f0c060;--tint:#2c2513;"
    "--s0:#3892fd;--s1:#ffa34a;--s2:#3ae6da;--s3:#c44583;--s4:#b2afee;--s5:#c9e582;--s6:#fc6983;"
    "--s7:#ae8425";

void ddp_svg_style(struct ddp_strbuf *out)
{
    static const char *const dashes[SHAPES] = {"none", "8 3",         "2 3",  "9 3 2 3",
                                               "5 5",  "9 3 2 3 2 3", "14 4", "1 5"};
    ddp_strbuf_addf(out, ":root{color-scheme:light dark;%s}\n", light);
    ddp_strbuf_addf(out, "@media(prefers-color-scheme:dark){:root{%s}}\n", dark);
    ddp_strbuf_addf(out, "@media print{:root{color-scheme:light;%s}}\n", light);
    for (int i = 0; i < COLORS; i++)
        ddp_strbuf_addf(out, ".c%d{color:var(--s%d)}", i, i);
    for (int i = 1; i < SHAPES; i++)
        ddp_strbuf_addf(out, ".d%d .l{stroke-dasharray:%s}", i, dashes[i]);
    ddp_strbuf_add(out, "\n.cn{color:var(--ink)}"
                        ".plot text{fill:var(--ink2);font:12px system-ui,sans-serif}"
                        ".l,.e,.b,.g,.k{fill:none;stroke:currentColor}"
                        ".l{stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
                        ".e{stroke-width:1.2}"
                        ".b{stroke-width:1.6;stroke-dasharray:1 4;stroke-linecap:round}"
                        ".m{fill:currentColor;stroke:currentColor;stroke-width:1.4}"
                        ".m .h{fill:var(--surface)}"
                        ".g{stroke:var(--grid)}.g.a{stroke:var(--line)}"
                        ".k{stroke:var(--ink2);stroke-dasharray:6 4}"
                        ".r{paint-order:stroke;stroke:var(--surface);stroke-width:5px}\n");
}

void ddp_svg_markers(struct ddp_strbuf *out)
{
    static const char *const shapes[SHAPES + 1] = {
        "M0-3.9a3.9 3.9 0 1 1-.01 0z",
        "M-3.5-3.5h7v7h-7z",
        "M0-4.6L4.5 3.4h-9z",
        "M0-4.9L4.9 0 0 4.9-4.9 0z",
        "M0 4.6L4.5-3.4h-9z",
        "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
        "M0-4.6L4.4-1.4 2.7 3.8h-5.4L-4.4-1.4z",
        "M0-5.2L1.5-1.7 5.2-1.4 2.4.9 3.2 4.6 0 2.6-3.2 4.6-2.4.9-5.2-1.4-1.5-1.7z",
        "M-4.5-4.5l9 9m0-9l-9 9",
    };
    ddp_strbuf_add(out, "<defs>");
    for (int i = 0; i <= SHAPES; i++)
        ddp_strbuf_addf(out, "<path id=\"m%d\" d=\"%s\"/>", i, shapes[i]);
    for (int i = 0; i < SHAPES; i++)
        ddp_strbuf_addf(out, "<path id=\"n%d\" transform=\"scale(.6)\" d=\"%s\"/>", i, shapes[i]);
    ddp_strbuf_add(out, "</defs>");
}

/* Opens a group with the colour and the line style of a series. */
static void open_series(const struct ddp_plot_series *s, struct ddp_strbuf *out)
{
    if (s->color < 0)
        ddp_strbuf_add(out, "<g class=\"cn d0\">");
    else
        ddp_strbuf_addf(out, "<g class=\"c%d d%d\">", s->color % COLORS,
                        (s->shape + s->color / COLORS) % SHAPES);
}

static int marker_of(const struct ddp_plot_series *s)
{
    return s->cross ? SHAPES : s->color < 0 ? 0 : (s->shape + s->color / COLORS) % SHAPES;
}

static double x_at(const struct frame *f, double value)
{
    return f->left + ddp_plot_position(&f->x, value) * (f->right - f->left);
}

static double y_at(const struct frame *f, double value)
{
    return f->bottom - ddp_plot_position(&f->y, value) * (f->bottom - f->top);
}

static void add_text(struct ddp_strbuf *out, double x, double y, const char *anchor,
                     const char *text)
{
    ddp_strbuf_addf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, anchor);
    ddp_markup_text(out, text);
    ddp_strbuf_add(out, "</text>");
}

#define AT_END    " text-anchor=\"end\""
#define AT_MIDDLE " text-anchor=\"middle\""

/* Writes a value with its unit for the tooltip of a marker. */
static void value_text(enum ddp_quantity quantity, double value, char out[32])
{
    ddp_quantity_text(quantity, value, out, 24);
    if (quantity == DDP_QUANTITY_GBPS && isfinite(value))
        ddp_text_append(out, 32, " GB/s");
}

/* Adds the tooltip of a marker. */
static void add_tip(const struct ddp_plot *plot, const struct ddp_plot_series *s,
                    const struct ddp_plot_value *v, struct ddp_strbuf *out)
{
    const bool rows = plot->row_count > 0;
    char x[32], y[32], low[32], high[32];
    value_text(plot->x.quantity, v->x, x);
    value_text(plot->y.quantity, v->y, y);
    value_text(rows ? plot->x.quantity : plot->y.quantity, v->low, low);
    value_text(rows ? plot->x.quantity : plot->y.quantity, v->high, high);
    ddp_strbuf_add(out, "<title>");
    ddp_markup_text(out, rows ? plot->rows[(size_t)v->y] : s->name);
    if (rows)
        ddp_strbuf_addf(out, ": %s", x);
    else
        ddp_strbuf_addf(out, "%s%s: %s", s->name[0] ? ", " : "", x, y);
    if (!isnan(v->low))
        ddp_strbuf_addf(out, " (%s to %s)", low, high);
    ddp_strbuf_addf(out, "%s</title>", v->doubtful ? ", doubtful" : "");
}

/* Adds the intervals of a series as one path. */
static void add_intervals(const struct frame *f, const struct ddp_plot *plot,
                          const struct ddp_plot_series *s, struct ddp_strbuf *out)
{
    const bool rows = plot->row_count > 0;
    bool any = false;
    for (size_t i = 0; i < s->count; i++) {
        const struct ddp_plot_value *v = &s->values[i];
        if (isnan(v->low))
            continue;
        const double x = x_at(f, v->x), y = y_at(f, v->y);
        const double low = rows ? x_at(f, v->low) : y_at(f, v->low);
        const double high = rows ? x_at(f, v->high) : y_at(f, v->high);
        ddp_strbuf_add(out, any ? "" : "<path class=\"e\" d=\"");
        any = true;
        if (fabs(high - low) < 1) /* The marker covers the interval. */
            continue;
        if (rows)
            ddp_strbuf_addf(out, "M%.1f %.1fv7m0-3.5H%.1fm0-3.5v7", low, y - 3.5, high);
        else
            ddp_strbuf_addf(out, "M%.1f %.1fh5m-2.5 0V%.1fm-2.5 0h5", x - 2.5, low, high);
    }
    ddp_strbuf_add(out, any ? "\"/>" : "");
}

static void add_markers(const struct frame *f, const struct ddp_plot *plot,
                        const struct ddp_plot_series *s, struct ddp_strbuf *out)
{
    const char size = s->cross || ddp_plot_values(plot) <= MANY_VALUES ? 'm' : 'n';
    ddp_strbuf_add(out, "<g class=\"m\">");
    for (size_t i = 0; i < s->count; i++) {
        const struct ddp_plot_value *v = &s->values[i];
        ddp_strbuf_addf(out, "<use href=\"#%c%d\" x=\"%.1f\" y=\"%.1f\"%s>", size, marker_of(s),
                        x_at(f, v->x), y_at(f, v->y), v->doubtful ? " class=\"h\"" : "");
        add_tip(plot, s, v, out);
        ddp_strbuf_add(out, "</use>");
    }
    ddp_strbuf_add(out, "</g>");
}

static void add_line(const struct frame *f, const struct ddp_plot_series *s, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "<path class=\"%s\" d=\"", s->line ? "b" : "l");
    for (size_t i = 0; i < s->count; i++)
        ddp_strbuf_addf(out, "%s%.1f %.1f",
                        i == 0   ? "M"
                        : i == 1 ? "L"
                                 : " ",
                        x_at(f, s->values[i].x), y_at(f, s->values[i].y));
    ddp_strbuf_add(out, "\"/>");
}

static void add_series(const struct frame *f, const struct ddp_plot *plot, int index,
                       struct ddp_strbuf *out)
{
    const struct ddp_plot_series *s = &plot->series[index];
    open_series(s, out);
    for (size_t i = 0; i < s->count && plot->stems; i++)
        ddp_strbuf_addf(out, "<path class=\"l\" d=\"M%.1f %.1fH%.1f\"/>", f->left,
                        y_at(f, s->values[i].y), x_at(f, s->values[i].x));
    if (s->count > 1 && !s->cross && plot->row_count == 0)
        add_line(f, s, out);
    if (!s->line) {
        add_intervals(f, plot, s, out);
        add_markers(f, plot, s, out);
    }
    ddp_strbuf_add(out, "</g>\n");
}

/* Adds the grid, the labels of the ticks and the names of the axes. */
static void add_axes(const struct frame *f, const struct ddp_plot *plot, struct ddp_strbuf *out)
{
    const bool rows = plot->row_count > 0;
    char text[24];
    ddp_strbuf_add(out, "<path class=\"g\" d=\"");
    for (int i = 0; i < f->y.count && !rows; i++)
        ddp_strbuf_addf(out, "M%.1f %.1fH%.1f", f->left, y_at(f, f->y.ticks[i]), f->right);
    for (int i = 0; i < f->x.count; i++)
        ddp_strbuf_addf(out, "M%.1f %.1fV%.1f", x_at(f, f->x.ticks[i]), f->top, f->bottom);
    ddp_strbuf_addf(out, "\"/><path class=\"g a\" d=\"M%.1f %.1fH%.1f\"/>\n", f->left, f->bottom,
                    f->right);
    for (int i = 0; i < f->y.count && !rows; i++) {
        ddp_quantity_tick(plot->y.quantity, f->y.ticks[i], text, sizeof text);
        add_text(out, f->left - 7, y_at(f, f->y.ticks[i]) + 4, AT_END, text);
    }
    for (int i = 0; i < f->x.count; i++) {
        ddp_quantity_tick(plot->x.quantity, f->x.ticks[i], text, sizeof text);
        add_text(out, x_at(f, f->x.ticks[i]), f->bottom + 17, AT_MIDDLE, text);
    }
    if (!rows)
        add_text(out, 4, f->top - 12, "", plot->y.label);
    add_text(out, f->right, f->bottom + 35, AT_END, plot->x.label);
    ddp_strbuf_add(out, "\n");
}

/* Adds the lines at fixed values. The label of a vertical line stands above the frame. */
static void add_marks(const struct frame *f, const struct ddp_plot *plot, struct ddp_strbuf *out)
{
    double taken = f->left; /* End of the last label above the frame. */
    for (int i = 0; i < plot->mark_count; i++) {
        const struct ddp_plot_mark *m = &plot->marks[i];
        if (!m->on_x) {
            const double y = y_at(f, m->at);
            ddp_strbuf_addf(out, "<path class=\"k\" d=\"M%.1f %.1fH%.1f\"/>", f->left, y, f->right);
            if (m->label[0])
                add_text(out, f->right - 4, y - 5, AT_END " class=\"r\"", m->label);
            continue;
        }
        const double x = x_at(f, m->at), width = LETTER * (double)strlen(m->label);
        ddp_strbuf_addf(out, "<path class=\"k\" d=\"M%.1f %.1fV%.1f\"/>", x, f->top, f->bottom);
        /* If the previous label overlaps, the label moves to the right. The label is left out if it
         * would be too far from its line or outside the drawing. */
        double middle = fmin(fmax(x, f->left + width / 2), f->right - width / 2);
        middle = i > 0 ? fmax(middle, taken + width / 2) : middle;
        if (middle > x + width || middle + width / 2 > f->right + 10)
            continue;
        add_text(out, middle, f->top - 5, AT_MIDDLE, m->label);
        taken = middle + width / 2 + 6;
    }
    ddp_strbuf_add(out, "\n");
}

/* Adds the label of each row above the row. Labels that are too long are cut off. */
static void add_rows(const struct frame *f, const struct ddp_plot *plot, struct ddp_strbuf *out)
{
    const size_t most = (size_t)((f->right - f->left) / LETTER);
    for (size_t i = 0; i < plot->row_count; i++) {
        char text[sizeof plot->rows[0] + 4];
        ddp_printable(plot->rows[i], text, DDP_MIN(most, sizeof text - 4));
        if (strlen(text) < strlen(plot->rows[i]))
            ddp_text_append(text, sizeof text, "...");
        add_text(out, f->left, y_at(f, (double)i) - 9, " class=\"r\"", text);
    }
    ddp_strbuf_add(out, "\n");
}

/* Adds everything inside the frame, and the axes around it. */
static void add_drawing(struct frame *f, const struct ddp_plot *plot, struct ddp_strbuf *out)
{
    ddp_plot_scale(plot, true, (int)((f->right - f->left) / 70), &f->x);
    ddp_plot_scale(plot, false, 6, &f->y);
    if (plot->row_count > 0) /* The first row is at the top, and its label needs room above it. */
        f->y = (struct ddp_plot_scale){.low = (double)plot->row_count - 0.6, .high = -0.9};
    add_axes(f, plot, out);
    add_marks(f, plot, out);
    if (plot->row_count > 0)
        add_rows(f, plot, out);
    for (int i = 0; i < plot->count; i++)
        if (plot->series[i].line)
            add_series(f, plot, i, out);
    for (int i = plot->count - 1; i >= 0; i--) /* The first series lies above the others. */
        if (!plot->series[i].line)
            add_series(f, plot, i, out);
}

static double inner_height(const struct ddp_plot *plot, double height)
{
    return plot->row_count > 0 ? ROW_HEIGHT * ((double)plot->row_count + 0.3) : height;
}

void ddp_svg_inline(const struct ddp_plot *plot, const char *label, struct ddp_strbuf *out)
{
    const bool rows = plot->row_count > 0;
    struct frame f = {.left = rows ? 14 : 62, .top = 30, .right = INLINE_WIDTH - 14};
    f.bottom = f.top + inner_height(plot, INLINE_HEIGHT - 30 - 44);
    ddp_strbuf_addf(out, "<svg class=\"plot\" viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"",
                    INLINE_WIDTH, f.bottom + 44);
    ddp_markup_text(out, label);
    ddp_strbuf_add(out, "\">\n");
    add_drawing(&f, plot, out);
    ddp_strbuf_add(out, "</svg>\n");
}

static void add_key(const struct ddp_plot_series *s, struct ddp_strbuf *out)
{
    open_series(s, out);
    if (!s->cross)
        ddp_strbuf_addf(out, "<path class=\"%s\" d=\"M1 7h28\"/>", s->line ? "b" : "l");
    if (!s->line)
        ddp_strbuf_addf(out, "<g class=\"m\"><use href=\"#m%d\" x=\"15\" y=\"7\"/></g>",
                        marker_of(s));
    ddp_strbuf_add(out, "</g>");
}

void ddp_svg_key(const struct ddp_plot_series *series, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "<svg class=\"key\" viewBox=\"0 0 30 14\" width=\"30\" height=\"14\" "
                        "aria-hidden=\"true\">");
    add_key(series, out);
    ddp_strbuf_add(out, "</svg>");
}

/* Adds the legend of a file in as many lines as needed. `y` is the position of the first line.
 * Returns the position of the line below the legend. */
static double add_legend(const struct ddp_plot *plot, double y, struct ddp_strbuf *out)
{
    double x = 16;
    for (int i = 0; i < plot->count; i++) {
        const double width = 36 + LETTER * (double)strlen(plot->series[i].name) + 22;
        if (plot->series[i].name[0] == '\0')
            continue;
        if (x > 16 && x + width > FILE_WIDTH) {
            x = 16;
            y += 20;
        }
        ddp_strbuf_addf(out, "<g transform=\"translate(%.0f %.0f)\">", x, y - 11);
        add_key(&plot->series[i], out);
        add_text(out, 36, 11, "", plot->series[i].name);
        ddp_strbuf_add(out, "</g>\n");
        x += width;
    }
    if (ddp_plot_has_doubtful(plot)) {
        if (x > FILE_WIDTH - 130) {
            x = 16;
            y += 20;
        }
        add_text(out, x, y, "", "hollow: doubtful");
        x += 130;
    }
    return x > 16 ? y + 20 : y;
}

/* Adds a text in lines that fit the width of the file. `y` is the position of the first line.
 * Returns the position of the line below the text. */
static double add_paragraph(const char *text, double y, struct ddp_strbuf *out)
{
    const size_t most = (size_t)((FILE_WIDTH - 32) / LETTER);
    while (*text) {
        size_t n = strlen(text);
        char line[sizeof((struct ddp_plot *)0)->note];
        if (n > most)
            for (n = most; n > 1 && text[n] != ' ';)
                n--;
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        add_text(out, 16, y, "", line);
        text += n;
        text += *text == ' ';
        y += 18;
    }
    return y;
}

void ddp_svg_file(const struct ddp_plot *plot, struct ddp_strbuf *out)
{
    const bool rows = plot->row_count > 0;
    struct ddp_strbuf head = DDP_STRBUF_INIT;
    double y = add_paragraph(plot->note, 48, &head);
    y = add_legend(plot, y + 4, &head);
    struct frame f = {.left = rows ? 16 : 72, .top = y + 20, .right = FILE_WIDTH - 20};
    f.bottom = f.top + inner_height(plot, FILE_HEIGHT);
    ddp_strbuf_addf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 %d "
                    "%.0f\" width=\"%d\" height=\"%.0f\" role=\"img\">\n<title>",
                    FILE_WIDTH, f.bottom + 48, FILE_WIDTH, f.bottom + 48);
    ddp_markup_text(out, plot->title);
    ddp_strbuf_add(out, "</title>\n<style>\n");
    ddp_svg_style(out);
    ddp_strbuf_add(out, ".plot .title{font-size:16px;font-weight:600;fill:var(--ink)}\n</style>\n");
    ddp_svg_markers(out);
    ddp_strbuf_add(out,
                   "\n<rect width=\"100%\" height=\"100%\" rx=\"6\" "
                   "style=\"fill:var(--surface)\"/>\n<text class=\"title\" x=\"16\" y=\"27\">");
    ddp_markup_text(out, plot->title);
    ddp_strbuf_add(out, "</text>\n");
    ddp_strbuf_add(out, head.text ? head.text : "");
    out->failed |= head.failed;
    ddp_strbuf_release(&head);
    add_drawing(&f, plot, out);
    ddp_strbuf_add(out, "</svg>\n");
}
