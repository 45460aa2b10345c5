#include "report/plot_terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

/* Sizes of the canvas in cells. A cell is a character. */
#define MOST_COLUMNS  120
#define MOST_ROWS     40
#define LEAST_COLUMNS 24
#define LEAST_ROWS    6
/* Columns and rows that a tick with its label needs. */
#define TICK_COLUMNS 13
#define TICK_ROWS    3
#define NAME_BYTES   164

const char *const ddp_plot_choices[] = {"none", "busbw", "time", NULL};

/* Red, yellow and green are left out, because they mean bad, doubtful and good. */
static const char *const styles[] = {"\033[36m", "\033[35m", "\033[34m", "\033[96m",
                                     "\033[95m", "\033[94m", "\033[1m",  "\033[2m"};
static const char markers[] = "ox+*#@%&";

struct cell {
    unsigned char dots; /* Bit y * dots_x + x is the dot in column x and row y of the cell. */
    char marker;        /* 0: none */
    signed char style;  /* Index of styles, or -1. */
};

struct canvas {
    int columns, rows;
    bool utf8;
    int dots_x, dots_y; /* Number of dots in a cell, horizontally and vertically. */
    struct ddp_plot_scale x, y;
    struct cell cells[MOST_ROWS][MOST_COLUMNS];
};

static int style_of(const struct ddp_plot_series *s)
{
    return s->color < 0 ? -1 : s->color % (int)DDP_COUNT_OF(styles);
}

/* Returns the marker of a series, or 0 if the series is a line without markers. */
static char marker_of(const struct ddp_plot *plot, int index)
{
    int before = 0;
    for (int i = 0; i < index; i++)
        before += !plot->series[i].line;
    return plot->series[index].line ? 0 : markers[before % (int)(sizeof markers - 1)];
}

/* Returns the column and the row of the dot at a value. Row 0 is at the top. */
static int dot_x(const struct canvas *c, double x)
{
    return (int)lround(ddp_plot_position(&c->x, x) * (c->columns * c->dots_x - 1));
}

static int dot_y(const struct canvas *c, double y)
{
    return (int)lround((1 - ddp_plot_position(&c->y, y)) * (c->rows * c->dots_y - 1));
}

/* Returns the cell of a dot, or NULL outside the canvas. */
static struct cell *cell_at(struct canvas *c, int x, int y)
{
    const bool inside = x >= 0 && y >= 0 && x < c->columns * c->dots_x && y < c->rows * c->dots_y;
    return inside ? &c->cells[y / c->dots_y][x / c->dots_x] : NULL;
}

static void put_dot(struct canvas *c, int x, int y, int style)
{
    struct cell *cell = cell_at(c, x, y);
    if (!cell)
        return;
    cell->dots |= (unsigned char)(1u << (y % c->dots_y * c->dots_x + x % c->dots_x));
    if (!cell->marker)
        cell->style = (signed char)style;
}

static void put_marker(struct canvas *c, int x, int y, char marker, int style)
{
    struct cell *cell = cell_at(c, x, y);
    if (!cell)
        return;
    cell->marker = marker;
    cell->style = (signed char)style;
}

/* Draws a straight line of dots. gap: only every gap-th dot of the line is drawn. */
static void put_line(struct canvas *c, const struct ddp_plot_value *from,
                     const struct ddp_plot_value *to, int gap, int style)
{
    const int x = dot_x(c, from->x), y = dot_y(c, from->y);
    const int right = dot_x(c, to->x) - x, down = dot_y(c, to->y) - y;
    const int steps = DDP_MAX(DDP_MAX(abs(right), abs(down)), 1);
    for (int i = 0; i <= steps; i += gap)
        put_dot(c, x + (int)lround((double)right * i / steps),
                y + (int)lround((double)down * i / steps), style);
}

/* Draws the interval of a value as a vertical bar. */
static void put_interval(struct canvas *c, const struct ddp_plot_value *v, int style)
{
    const int x = dot_x(c, v->x);
    if (isnan(v->low))
        return;
    for (int y = dot_y(c, v->high); y <= dot_y(c, v->low); y++) {
        const struct cell *cell = cell_at(c, x, y);
        if (c->utf8)
            put_dot(c, x, y, style);
        else if (cell && !cell->marker)
            put_marker(c, x, y, '|', style);
    }
}

static void put_series(struct canvas *c, const struct ddp_plot *plot, int index)
{
    const struct ddp_plot_series *s = &plot->series[index];
    const int style = style_of(s), gap = !s->line ? 1 : c->utf8 ? 4 : 2;
    for (size_t i = 1; i < s->count && !s->cross; i++)
        put_line(c, &s->values[i - 1], &s->values[i], gap, style);
    for (size_t i = 0; i < s->count && !s->line; i++)
        put_interval(c, &s->values[i], style);
    for (size_t i = 0; i < s->count && !s->line; i++)
        put_marker(c, dot_x(c, s->values[i].x), dot_y(c, s->values[i].y), marker_of(plot, index),
                   style);
}

/* Draws bounds first, and the first series last, so that the first series lies above the others. */
static void put_plot(struct canvas *c, const struct ddp_plot *plot)
{
    for (int lines = 1; lines >= 0; lines--)
        for (int i = plot->count - 1; i >= 0; i--)
            if (plot->series[i].line == lines)
                put_series(c, plot, i);
}

/* Writes the character for the dots of a cell. */
static void dots_text(const struct canvas *c, unsigned dots, char out[4])
{
    /* braille[i] is the number of the bit that stands for bit i of cell.dots in the code of a
     * braille character. */
    static const unsigned char braille[] = {0, 3, 1, 4, 2, 5, 6, 7};
    static const char ascii[] = {' ', '\'', '.', ':'};
    unsigned code = 0x2800;
    if (!c->utf8 || dots == 0) {
        snprintf(out, 4, "%c", ascii[dots & 3]);
        return;
    }
    for (unsigned i = 0; i < DDP_COUNT_OF(braille); i++)
        code |= (dots >> i & 1) << braille[i];
    snprintf(out, 4, "%c%c%c", (char)(0xe0 | code >> 12), (char)(0x80 | (code >> 6 & 63)),
             (char)(0x80 | (code & 63)));
}

/* Changes the style of the text that follows from *now to `style`. */
static void change_style(int *now, int style, struct ddp_strbuf *out)
{
    if (*now == style)
        return;
    if (*now >= 0)
        ddp_strbuf_add(out, DDP_PLAIN);
    if (style >= 0)
        ddp_strbuf_add(out, styles[style]);
    *now = style;
}

/* Adds the cells of a row, without blanks at the end. */
static void add_cells(const struct canvas *c, int row, struct ddp_strbuf *out)
{
    const struct cell *cells = c->cells[row];
    int end = c->columns, style = -1;
    while (end > 0 && !cells[end - 1].dots && !cells[end - 1].marker)
        end--;
    for (int i = 0; i < end; i++) {
        char text[4] = {cells[i].marker, '\0'};
        if (!cells[i].marker)
            dots_text(c, cells[i].dots, text);
        if (text[0] != ' ')
            change_style(&style, cells[i].style, out);
        ddp_strbuf_add(out, text);
    }
    change_style(&style, -1, out);
    ddp_strbuf_add(out, "\n");
}

/* Adds the rows with the y axis. left: width of the labels. */
static void add_rows(const struct canvas *c, const struct ddp_plot *plot, int left,
                     struct ddp_strbuf *out)
{
    for (int row = 0; row < c->rows; row++) {
        char text[24] = "";
        for (int i = c->y.count - 1; i >= 0; i--)
            if (dot_y(c, c->y.ticks[i]) / c->dots_y == row)
                ddp_quantity_tick(plot->y.quantity, c->y.ticks[i], text, sizeof text);
        const bool tick = text[0] != '\0';
        ddp_strbuf_addf(out, "%*s %s", left, text,
                        c->utf8 ? tick ? "\u2524" : "\u2502"
                        : tick  ? "+"
                                : "|");
        add_cells(c, row, out);
    }
}

/* Adds the x axis. Labels below the axis that have no room are left out. */
static void add_x_axis(const struct canvas *c, const struct ddp_plot *plot, int left,
                       struct ddp_strbuf *out)
{
    char labels[MOST_COLUMNS + 64] = "";
    bool ticks[MOST_COLUMNS] = {false};
    const int width = left + 2 + c->columns;
    int used = 0;
    for (int i = 0; i < c->x.count; i++) {
        char text[24];
        ddp_quantity_tick(plot->x.quantity, c->x.ticks[i], text, sizeof text);
        const int column = dot_x(c, c->x.ticks[i]) / c->dots_x, length = (int)strlen(text);
        const int at = DDP_MIN(left + 2 + column - length / 2, width - length);
        ticks[column] = true;
        if (at < used + (used > 0))
            continue;
        snprintf(labels + used, sizeof labels - (size_t)used, "%*s%s", at - used, "", text);
        used = at + length;
    }
    ddp_strbuf_pad(out, (size_t)left + 1);
    ddp_strbuf_add(out, c->utf8 ? "\u2514" : "+");
    for (int i = 0; i < c->columns; i++)
        ddp_strbuf_add(out, c->utf8 ? ticks[i] ? "\u252c" : "\u2500" : ticks[i] ? "+" : "-");
    ddp_strbuf_addf(out, "\n%s\n", labels);
}

/* Adds an item of the legend. The item begins a new line if the current line has no room. *used:
 * width of the current line so far. */
static void add_item(const char *key, int style, const char *name, int columns, int *used,
                     struct ddp_strbuf *out)
{
    char text[NAME_BYTES];
    int now = -1;
    const int most = columns - 8;
    ddp_printable(name, text, (size_t)DDP_MIN(most, NAME_BYTES - 4));
    if (strlen(text) < strlen(name))
        ddp_text_append(text, sizeof text, "...");
    const int width = ddp_text_columns(key, strlen(key)) + 1 + ddp_text_columns(text, strlen(text));
    if (*used > 0 && *used + 3 + width > columns) {
        ddp_strbuf_add(out, "\n");
        *used = 0;
    }
    ddp_strbuf_add(out, *used > 0 ? "   " : "  ");
    change_style(&now, style, out);
    ddp_strbuf_add(out, key);
    change_style(&now, -1, out);
    ddp_strbuf_addf(out, " %s", text);
    *used += (*used > 0 ? 3 : 2) + width;
}

static bool has_intervals(const struct ddp_plot *plot)
{
    for (int i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++)
            if (!isnan(plot->series[i].values[k].low))
                return true;
    return false;
}

static void add_legend(const struct ddp_plot *plot, const struct ddp_plot_look *look,
                       struct ddp_strbuf *out)
{
    int used = 0;
    for (int i = 0; i < plot->count; i++) {
        const struct ddp_plot_series *s = &plot->series[i];
        const char marker[2] = {marker_of(plot, i), '\0'};
        const char *line = look->utf8 ? "\u2804\u2804" : "..";
        if (s->name[0])
            add_item(s->line ? line : marker, style_of(s), s->name, look->columns, &used, out);
    }
    if (has_intervals(plot))
        add_item(look->utf8 ? "\u2847" : "|", -1, "95 % interval", look->columns, &used, out);
    if (used > 0)
        ddp_strbuf_add(out, "\n");
}

/* Sets the scale of the y axis, and returns the width of its labels. */
static int fit_y(struct canvas *c, const struct ddp_plot *plot)
{
    int most = 0;
    ddp_plot_scale(plot, false, DDP_MAX(c->rows / TICK_ROWS, 2), &c->y);
    for (int i = 0; i < c->y.count; i++) {
        char text[24];
        ddp_quantity_tick(plot->y.quantity, c->y.ticks[i], text, sizeof text);
        most = DDP_MAX(most, (int)strlen(text));
    }
    return most;
}

void ddp_plot_text(const struct ddp_plot *plot, const struct ddp_plot_look *look,
                   struct ddp_strbuf *out)
{
    struct ddp_strbuf head = DDP_STRBUF_INIT, legend = DDP_STRBUF_INIT;
    struct canvas c = {
        .utf8 = look->utf8, .dots_x = look->utf8 ? 2 : 1, .dots_y = look->utf8 ? 4 : 2};
    ddp_terminal_line(&head, look->columns, DDP_BOLD, "%s", plot->title);
    if (plot->note[0])
        ddp_terminal_line(&head, look->columns, DDP_DIM, "%s", plot->note);
    ddp_terminal_line(&head, look->columns, NULL, "%s", plot->y.label);
    add_legend(plot, look, &legend);
    if (head.failed || legend.failed) {
        out->failed = true;
    } else {
        /* The axis, its labels, and the line of the cursor need a row each. */
        const int others = ddp_screen_rows(head.text, head.length, look->columns) +
                           ddp_screen_rows(legend.text, legend.length, look->columns) + 3;
        c.rows = DDP_MIN(look->rows - others, DDP_MIN(look->columns / 3, MOST_ROWS));
        c.rows = DDP_MAX(c.rows, LEAST_ROWS);
        const int left = fit_y(&c, plot);
        c.columns = DDP_MAX(DDP_MIN(look->columns - left - 2, MOST_COLUMNS), LEAST_COLUMNS);
        ddp_plot_scale(plot, true, DDP_MAX(c.columns / TICK_COLUMNS, 2), &c.x);
        put_plot(&c, plot);
        ddp_strbuf_add(out, head.text);
        add_rows(&c, plot, left, out);
        add_x_axis(&c, plot, left, out);
        ddp_strbuf_add(out, legend.length > 0 ? legend.text : "");
    }
    ddp_strbuf_release(&legend);
    ddp_strbuf_release(&head);
}

int ddp_plot_text_over_size(const struct ddp_plot_source *sources, int count,
                            enum ddp_plot_metric metric, const struct ddp_plot_look *look,
                            struct ddp_strbuf *out, struct ddp_err *err)
{
    struct ddp_plot_cells cells;
    struct ddp_plot_groups groups;
    DDP_TRY(ddp_plot_collect(sources, count, &cells, err));
    int rc = ddp_plot_group_cells(sources, &cells, DDP_PLOT_OVER_SIZE, &groups, err);
    for (size_t i = 0; rc == 0 && i < groups.count; i++) {
        struct ddp_plot plot;
        rc = ddp_plot_cells_over(&groups.items[i], metric, &plot, err);
        if (rc != 0)
            break;
        if (ddp_plot_is_useful(&plot)) {
            ddp_strbuf_add(out, "\n");
            ddp_plot_text(&plot, look, out);
        }
        ddp_plot_release(&plot);
    }
    ddp_plot_groups_release(&groups);
    free(cells.items);
    return rc;
}
