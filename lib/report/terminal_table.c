#include "report/terminal_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "record/field.h"
#include "record/point_keys.h"
#include "record/point_verdict.h"
#include "record/quality.h"
#include "record/straggler_text.h"
#include "report/legend.h"
#include "report/report_parts.h"

#define TEXT_BYTES 640
/* Screen rows that are reserved for the heads and the progress line. The other rows of the screen
 * show points that may still move, because points before them in the plan are not known yet. */
#define OTHER_ROWS 6

void ddp_terminal_table_init(struct ddp_terminal_table *t, bool legend)
{
    *t = (struct ddp_terminal_table){.legend = legend};
}

void ddp_terminal_table_release(struct ddp_terminal_table *t)
{
    ddp_screen_release(&t->screen);
}

void ddp_terminal_line(struct ddp_strbuf *out, int width, const char *style, const char *fmt, ...)
{
    char text[2400], clean[2400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ddp_printable(text, clean, sizeof clean);
    if (style)
        ddp_strbuf_add(out, style);
    ddp_strbuf_wrap(out, clean, 0, width, 2);
    if (style)
        ddp_strbuf_add(out, DDP_PLAIN);
    ddp_strbuf_add(out, "\n");
}

/* Each of the following functions writes a figure of a point into a cell. */

static void time_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->time_ns.median);
}

static void interval_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_percent(cell, ddp_quality_interval(&p->time_ns));
}

static void min_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->time_ns.min);
}

static void p95_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->time_ns.p95);
}

static void iterations_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    snprintf(cell->text, sizeof cell->text, "%lld", (long long)p->iterations);
}

static void algbw_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_rate(cell, ddp_point_algbw_GBps(p, p->time_ns.median));
}

static void busbw_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_rate(cell, ddp_point_busbw_GBps(p, p->time_ns.median));
    cell->style = DDP_BOLD;
}

static void imbalance_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_factor(cell, p->spec.imbalance);
}

static void bound_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_percent(cell, p->bound_fraction);
}

static void pingpong_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->pingpong_ns[1]);
}

static void algorithm_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    snprintf(cell->text, sizeof cell->text, "%s", p->algorithm_used);
}

static void encode_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->phase_ns[0]);
}

static void exchange_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->phase_ns[1]);
}

static void decode_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->phase_ns[2]);
}

static void sent_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_bytes(cell, p->wire_bytes_per_rank);
}

static void density_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_percent(cell, p->achieved_density);
}

static void effective_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_rate(cell, ddp_point_effective_GBps(p, p->time_ns.median));
}

static void speedup_of(const struct ddp_point *p, enum ddp_baseline baseline,
                       struct ddp_column_text *cell)
{
    const double speedup = ddp_point_speedup(p, baseline);
    ddp_column_factor(cell, speedup);
    cell->style = speedup > 1 ? DDP_GREEN : NULL;
}

static void f32_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    speedup_of(p, DDP_BASELINE_F32, cell);
}

static void f16_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    speedup_of(p, DDP_BASELINE_F16, cell);
}

static void overflow_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    if (p->overflow_count < 0)
        snprintf(cell->text, sizeof cell->text, "-");
    else
        snprintf(cell->text, sizeof cell->text, "%lld", (long long)p->overflow_count);
    cell->style = p->overflow_count > 0 ? DDP_YELLOW : NULL;
}

static void compute_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->overlap.compute_ns);
}

static void total_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_time(cell, p->overlap.total_ns);
}

static void overlap_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    ddp_column_percent(cell, p->overlap.percent / 100);
    cell->style = DDP_BOLD;
}

/* If values are wrong, "WRONG" stands before the quality codes. Commas separate the codes. */
static void quality_of(const struct ddp_point *p, struct ddp_column_text *cell)
{
    cell->style = p->check_wrong > 0 ? DDP_RED : DDP_YELLOW;
    if (p->check_wrong > 0)
        snprintf(cell->text, sizeof cell->text, "WRONG%s", p->quality ? "," : "");
    const size_t n = strlen(cell->text);
    ddp_quality_list(p->quality, ",", cell->text + n, sizeof cell->text - n);
}

/* The condition for showing a figure. NOTHING: always. RANKS: a point has several ranks. BUSBW: a
 * point has a bus bandwidth. SPLIT: a point has a split. AUTO: `auto` chose the algorithm,
 * or several algorithms were requested. */
enum needs { NOTHING, RANKS, BUSBW, SPLIT, AUTO };

/* The columns of each kind of point. If a line is too long, the columns with the largest `drop` are
 * left out first. Columns whose `drop` is 0 are never left out. */
static const struct figure {
    const char *head;
    int width, drop;
    enum needs needs;
    bool left;
    void (*text)(const struct ddp_point *p, struct ddp_column_text *cell);
} dense[] =
    {
        {"time", 7, 0, NOTHING, false, time_of},
        {"+-", 6, 2, NOTHING, false, interval_of},
        {"min", 7, 6, NOTHING, false, min_of},
        {"p95", 7, 6, NOTHING, false, p95_of},
        {"n", 5, 7, NOTHING, false, iterations_of},
        {"algbw", 9, 8, BUSBW, false, algbw_of},
        {"busbw", 9, 1, BUSBW, false, busbw_of},
        {"imbalance", 5, 5, SPLIT, false, imbalance_of},
        {"bound", 5, 3, RANKS, false, bound_of},
        {"ping-pong", 7, 9, RANKS, false, pingpong_of},
        {"algorithm", 9, 4, AUTO, true, algorithm_of},
        {"quality", 20, 0, NOTHING, true, quality_of},
},
  reduced[] =
      {
          {"time", 7, 0, NOTHING, false, time_of},
          {"+-", 6, 4, NOTHING, false, interval_of},
          {"encode", 7, 6, NOTHING, false, encode_of},
          {"exchange", 7, 6, NOTHING, false, exchange_of},
          {"decode", 7, 6, NOTHING, false, decode_of},
          {"sent", 9, 3, NOTHING, false, sent_of},
          {"density", 6, 5, NOTHING, false, density_of},
          {"eff", 9, 7, RANKS, false, effective_of},
          {"x f32", 5, 1, RANKS, false, f32_of},
          {"x f16", 5, 2, RANKS, false, f16_of},
          {"overflow", 5, 9, NOTHING, false, overflow_of},
          {"algorithm", 9, 8, AUTO, true, algorithm_of},
          {"quality", 20, 0, NOTHING, true, quality_of},
},
  overlapped[] = {
      {"pure", 7, 0, NOTHING, false, time_of},       {"+-", 6, 5, NOTHING, false, interval_of},
      {"compute", 7, 3, NOTHING, false, compute_of}, {"total", 7, 2, NOTHING, false, total_of},
      {"overlap", 6, 1, NOTHING, false, overlap_of}, {"busbw", 9, 4, BUSBW, false, busbw_of},
      {"algorithm", 9, 6, AUTO, true, algorithm_of}, {"quality", 20, 0, NOTHING, true, quality_of},
};

static const struct {
    const struct figure *figures;
    int count;
} kinds[DDP_POINT_KIND_COUNT] = {
    [DDP_POINT_DENSE] = {dense, DDP_COUNT_OF(dense)},
    [DDP_POINT_REDUCED] = {reduced, DDP_COUNT_OF(reduced)},
    [DDP_POINT_OVERLAPPED] = {overlapped, DDP_COUNT_OF(overlapped)},
};

/* The columns of the points of a kind: index, repetition (launch), keys and figures. Columns
 * without information are hidden. */
struct layout {
    struct ddp_point_range range;
    enum ddp_point_kind kind;
    struct ddp_column columns[DDP_TERMINAL_COLUMNS];
    int count, room; /* room: width of the last column. */
};

/* Sets *out to the range of the planned points or, if no plan is known, of the measured points. */
static void find_range(const struct ddp_record *r, enum ddp_point_kind kind,
                       struct ddp_point_range *out)
{
    *out = r->planned[kind];
    for (int i = 0; i < r->point_count && r->planned[kind].count == 0; i++)
        if (ddp_point_kind(&r->points[i].spec) == kind)
            ddp_point_range_add(out, &r->points[i].spec);
}

static void add_column(struct layout *l, struct ddp_column column)
{
    l->columns[l->count++] = column;
}

/* Chooses the columns for the points that have the kind of `p`. */
static void choose_columns(const struct ddp_terminal_table *t, const struct ddp_record *r,
                           const struct ddp_point *p, struct layout *l)
{
    memset(l, 0, sizeof *l);
    l->kind = ddp_point_kind(&p->spec);
    find_range(r, l->kind, &l->range);
    add_column(l, (struct ddp_column){.head = "index", .width = 5, .hidden = t->terminal.moves});
    add_column(l, (struct ddp_column){.head = "launch", .hidden = p->launch == 0});
    for (int k = 0; k < DDP_KEY_COUNT; k++) {
        const bool varies = ddp_point_range_varies(&l->range, (enum ddp_point_key)k);
        add_column(l, (struct ddp_column){.head = ddp_point_key_name((enum ddp_point_key)k),
                                          .width = l->range.width[k],
                                          .left = k != DDP_KEY_SIZE && k != DDP_KEY_RANKS,
                                          .hidden = !varies || k == DDP_KEY_ALGORITHM});
    }
    const bool algorithm = ddp_point_range_varies(&l->range, DDP_KEY_ALGORITHM);
    const bool exists[] = {[NOTHING] = true,
                           [RANKS] = l->range.has_ranks,
                           [BUSBW] = l->range.has_busbw,
                           [SPLIT] = l->range.has_split,
                           [AUTO] = algorithm || strcmp(l->range.first.algorithm, "auto") == 0};
    for (int i = 0; i < kinds[l->kind].count; i++) {
        const struct figure *f = &kinds[l->kind].figures[i];
        add_column(l, (struct ddp_column){.head = f->head,
                                          .width = f->width,
                                          .drop = f->needs == AUTO && algorithm ? 0 : f->drop,
                                          .left = f->left,
                                          .hidden = !exists[f->needs]});
    }
    l->room = ddp_columns_fit(l->columns, l->count, t->terminal.columns);
}

/* If the quality codes do not fit, keeps the first code and writes the number of the others: "busy
 * +2". */
static void shorten(struct ddp_column_text *cell, int room)
{
    int others = 0;
    if ((int)strlen(cell->text) <= room)
        return;
    char *comma = strchr(cell->text, ',');
    for (const char *c = comma; c; c = strchr(c + 1, ','))
        others++;
    if (comma)
        snprintf(comma, 8, " +%d", others);
}

static void add_row(const struct layout *l, const struct ddp_record *r, int index,
                    struct ddp_strbuf *out)
{
    const struct ddp_point *p = &r->points[index];
    struct ddp_column_text row[DDP_TERMINAL_COLUMNS] = {{"", NULL}};
    int c = 0;
    snprintf(row[c].text, sizeof row[c].text, "%d", ddp_record_plan_index(r, index));
    snprintf(row[++c].text, sizeof row[c].text, "%d", p->launch);
    for (int k = 0; k < DDP_KEY_COUNT; k++)
        ddp_point_key_text(&p->spec, (enum ddp_point_key)k, row[++c].text);
    for (int i = 0; i < kinds[l->kind].count; i++)
        kinds[l->kind].figures[i].text(p, &row[++c]);
    shorten(&row[c], l->room);
    ddp_columns_row(l->columns, row, l->count, out);
}

/* Adds a line with the settings that are equal in all rows, then the meanings of the columns if
 * `legend` is true, and then the heads of the columns. */
static void add_head(const struct ddp_terminal_table *t, const struct layout *l,
                     const struct ddp_point *p, bool legend, struct ddp_strbuf *out)
{
    char text[TEXT_BYTES];
    ddp_point_range_constants(&l->range, &p->spec, text, sizeof text);
    ddp_terminal_line(out, t->terminal.columns, DDP_BOLD, "%s", text);
    if (legend) {
        ddp_legend_add(DDP_LEGEND_POINTS, l->columns, l->count, "  ", t->terminal.columns, out);
        ddp_legend_add(ddp_legend_of(l->kind), l->columns, l->count, "  ", t->terminal.columns,
                       out);
    }
    ddp_columns_head(l->columns, l->count, out);
}

/* The table to which the last row belongs. */
struct place {
    enum ddp_terminal_section section;
    enum ddp_point_kind kind;
};

/* Adds the rows of the points from index `from` to `to` - 1, and a head where a table begins. If
 * `legend` is true, the head explains the columns. */
static void add_rows(const struct ddp_terminal_table *t, const struct ddp_record *r, int from,
                     int to, bool legend, struct place *place, struct ddp_strbuf *out)
{
    struct layout layout;
    for (int i = from; i < to; i++) {
        const struct ddp_point *p = &r->points[i];
        const enum ddp_point_kind kind = ddp_point_kind(&p->spec);
        const bool begins = place->section != DDP_SECTION_POINTS || place->kind != kind;
        if (begins || i == from)
            choose_columns(t, r, p, &layout);
        if (begins)
            add_head(t, &layout, p, legend, out);
        *place = (struct place){DDP_SECTION_POINTS, kind};
        add_row(&layout, r, i, out);
    }
}

/* Adds the head above rows that may still move, if all planned points are of one kind. This head is
 * correct for every row that may follow, so it is a finished line and is not drawn again. */
static void add_first_head(const struct ddp_terminal_table *t, const struct ddp_record *r,
                           struct place *place, struct ddp_strbuf *out)
{
    struct layout layout;
    int planned = 0;
    for (int k = 0; k < DDP_POINT_KIND_COUNT; k++)
        planned += r->planned[k].count > 0;
    if (place->section == DDP_SECTION_POINTS || planned != 1 || t->finished == r->point_count)
        return;
    const struct ddp_point *p = &r->points[t->finished];
    choose_columns(t, r, p, &layout);
    add_head(t, &layout, p, t->legend, out);
    *place = (struct place){DDP_SECTION_POINTS, layout.kind};
}

/* Adds the rows that may still move. If these rows do not fit on the screen, adds the rows around
 * the newest row, and the number of the other rows. */
static void add_open_rows(const struct ddp_terminal_table *t, const struct ddp_record *r,
                          struct place place, struct ddp_strbuf *out)
{
    const int count = r->point_count - t->finished;
    const int most = DDP_MAX(t->terminal.rows - OTHER_ROWS, 1), shown = DDP_MIN(count, most);
    const int middle = r->newest - shown / 2;
    const int from = DDP_MAX(DDP_MIN(middle, r->point_count - shown), t->finished);
    add_rows(t, r, from, from + shown, false, &place, out);
    if (shown < count)
        ddp_strbuf_addf(out, DDP_DIM "(%d more rows)" DDP_PLAIN "\n", count - shown);
}

/* Shows the rows of the first `finished` points, which do not change any more. Then shows the text
 * `more` (NULL: none), and then the rows that may still move. */
static void draw(struct ddp_terminal_table *t, const struct ddp_record *r, int finished,
                 const struct ddp_strbuf *more, struct ddp_strbuf *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT, open = DDP_STRBUF_INIT;
    struct place place = {t->section, t->kind};
    add_rows(t, r, t->finished, finished, t->legend, &place, &text);
    t->finished = DDP_MAX(t->finished, finished);
    if (more && more->length > 0)
        ddp_strbuf_add_n(&text, more->text, more->length);
    add_first_head(t, r, &place, &text);
    t->section = place.section;
    t->kind = place.kind;
    if (t->finished < r->point_count)
        add_open_rows(t, r, place, &open);
    if (text.failed || open.failed)
        out->failed = true;
    else
        ddp_screen_draw(&t->screen, &t->terminal, text.text, open.text, out);
    ddp_strbuf_release(&text);
    ddp_strbuf_release(&open);
}

void ddp_terminal_entry(FILE *out, const char *head, const char *mark, const char *style,
                        int column, const char *text)
{
    struct ddp_terminal terminal;
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    ddp_terminal_read(fileno(out), &terminal);
    ddp_strbuf_addf(&line, "%s%s%-4s%s ", head, terminal.color ? style : "", mark,
                    terminal.color ? DDP_PLAIN : "");
    const int used = ddp_text_columns(head, strlen(head)) + 5;
    ddp_strbuf_pad(&line, column > used ? (size_t)(column - used) : 0);
    ddp_strbuf_wrap(&line, text, DDP_MAX(used, column), terminal.columns, column);
    fprintf(out, "%s\n", line.failed ? text : line.text);
    ddp_strbuf_release(&line);
}

/* Notes the size of the terminal. If its width has changed, the next row begins a new table. */
static void resize(struct ddp_terminal_table *t, const struct ddp_terminal *terminal)
{
    if (terminal->columns != t->terminal.columns) {
        t->section = DDP_SECTION_NONE;
        t->task[0] = '\0';
    }
    t->terminal = *terminal;
}

void ddp_terminal_table_begin(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, struct ddp_strbuf *out)
{
    resize(t, terminal);
    if (r->label[0])
        ddp_terminal_line(out, terminal->columns, DDP_BOLD, "label: %s", r->label);
    if (t->legend) {
        struct ddp_strbuf facts = DDP_STRBUF_INIT;
        ddp_table_facts(r, &facts);
        for (char *line = facts.text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            ddp_terminal_line(out, terminal->columns, DDP_DIM, "%s", line);
        }
        out->failed |= facts.failed;
        ddp_strbuf_release(&facts);
    }
    if (r->note[0])
        ddp_terminal_line(out, terminal->columns, DDP_YELLOW, "NOTE: %s", r->note);
    if (r->point_count > 0)
        draw(t, r, terminal->moves ? ddp_record_settled(r) : r->point_count, NULL, out);
}

void ddp_terminal_table_point(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, struct ddp_strbuf *out)
{
    resize(t, terminal);
    if (terminal->moves) {
        draw(t, r, ddp_record_settled(r), NULL, out);
        return;
    }
    struct place place = {t->section, t->kind};
    add_rows(t, r, r->newest, r->newest + 1, t->legend, &place, out);
    t->section = place.section;
    t->kind = place.kind;
    t->finished = r->point_count;
}

void ddp_terminal_table_epoch(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, int run, int index,
                              struct ddp_strbuf *out)
{
    const struct ddp_train_run *train = &r->train[run];
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    resize(t, terminal);
    if (index == 0 || t->section != DDP_SECTION_TRAIN)
        ddp_terminal_train_head(train, terminal->columns, t->task, &text);
    ddp_terminal_train_row(train, index, terminal->columns, &text);
    t->section = DDP_SECTION_TRAIN;
    draw(t, r, t->finished, &text, out);
    out->failed |= text.failed;
    ddp_strbuf_release(&text);
}

void ddp_terminal_table_pause(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              struct ddp_strbuf *out)
{
    resize(t, terminal);
    ddp_screen_draw(&t->screen, &t->terminal, NULL, NULL, out);
}

static void add_best(const struct ddp_record *r, int width, struct ddp_strbuf *out)
{
    const int best = ddp_record_best_busbw(r);
    struct ddp_column_text rate;
    struct ddp_point_range range;
    char label[256], size[24];
    if (best < 0)
        return;
    const struct ddp_point *p = &r->points[best];
    find_range(r, ddp_point_kind(&p->spec), &range);
    ddp_point_range_label(&range, &p->spec, label, sizeof label);
    ddp_format_size(p->spec.size_bytes, size, sizeof size);
    ddp_column_rate(&rate, ddp_point_busbw_GBps(p, p->time_ns.median));
    ddp_terminal_line(out, width, DDP_BOLD, "best busbw: %s (%s)", rate.text,
                      label[0] ? label : size);
}

static void add_density(const char **before, const char *what, double density, char *out,
                        size_t bytes)
{
    if (!isfinite(density))
        return;
    ddp_text_append(out, bytes, "%s%.2g %s", *before, density, what);
    *before = ", ";
}

/* Adds the verdicts and the break-even densities of compressed and partial exchanges. */
static void add_verdicts(const struct ddp_record *r, int width, struct ddp_strbuf *out)
{
    for (int i = 0; i < r->point_count; i++) {
        char text[DDP_FIELD_TEXT_BYTES];
        if (!ddp_point_verdict_in_summary(r, i))
            continue;
        ddp_point_verdict(&r->points[i], text, sizeof text);
        ddp_terminal_line(out, width, NULL, "%s", text);
        for (int b = 0; b < DDP_BASELINE_COUNT; b++) {
            const struct ddp_break_even *even = &r->points[i].break_even[b];
            const char *before = ": ";
            if (!isfinite(even->predicted) && !isfinite(even->estimated))
                continue;
            snprintf(text, sizeof text, "  break-even density against %s",
                     ddp_baseline_name((enum ddp_baseline)b));
            add_density(&before, "from the bytes alone", even->predicted, text, sizeof text);
            add_density(&before, "estimated from the times above", even->estimated, text,
                        sizeof text);
            add_density(&before, "measured", even->measured, text, sizeof text);
            ddp_terminal_line(out, width, NULL, "%s", text);
        }
    }
}

/* Adds the number of verified points and elements, and the number of wrong elements. */
static void add_verified(const struct ddp_record *r, int width, struct ddp_strbuf *out)
{
    double elements = 0, wrong = 0;
    int checked = 0, bad = 0;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        if (p->check_elements < 0)
            continue;
        checked++;
        bad += p->check_wrong > 0;
        elements += (double)p->check_elements;
        wrong += (double)p->check_wrong;
    }
    if (checked == 0 && r->points[0].spec.coll != DDP_BARRIER)
        ddp_terminal_line(out, width, DDP_YELLOW, "verified: nothing");
    else if (checked > 0)
        ddp_terminal_line(out, width, NULL, "verified: %d of %d points, %.0f elements, %.0f wrong",
                          checked, r->point_count, elements, wrong);
    if (bad > 0)
        ddp_terminal_line(out, width, DDP_RED, "WRONG DATA: %.0f wrong elements in %d point%s",
                          wrong, bad, bad == 1 ? "" : "s");
}

/* Adds a line for each thing that needs attention. */
static void add_attention(const struct ddp_record *r, int width, struct ddp_strbuf *out)
{
    char text[512];
    ddp_quality_summary(r, text, sizeof text);
    if (text[0])
        ddp_terminal_line(out, width, DDP_YELLOW, "%s; `ddpbench explain quality`", text);
    for (int next = 0; ddp_arrival_line(r, &next, text, sizeof text);)
        ddp_terminal_line(out, width, NULL, "%s", text);
    for (int next = 0; ddp_straggler_line(r, &next, text, sizeof text);)
        ddp_terminal_line(out, width, DDP_YELLOW, "%s; `ddpbench explain straggler`", text);
    for (int i = 0; i < r->left_out_count; i++) {
        const struct ddp_left_out *l = &r->left_out[i];
        char points[32] = "";
        if (l->points >= 0)
            snprintf(points, sizeof points, ", %d point%s", l->points, l->points == 1 ? "" : "s");
        ddp_terminal_line(out, width, DDP_YELLOW, "left out: %s%s, %d rank%s: %s", l->what, points,
                          l->ranks, l->ranks == 1 ? "" : "s", l->reason);
    }
}

void ddp_terminal_table_end(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                            const struct ddp_record *r, struct ddp_strbuf *out)
{
    const int width = terminal->columns;
    struct ddp_strbuf foot = DDP_STRBUF_INIT;
    resize(t, terminal);
    if (r->point_count > 0) {
        add_best(r, width, &foot);
        add_verdicts(r, width, &foot);
        add_verified(r, width, &foot);
    }
    ddp_terminal_train_end(r, width, &foot);
    ddp_table_matrix(r, width, &foot);
    ddp_table_health(r, width, &foot);
    ddp_table_pays(&r->pays, t->legend, width, &foot);
    if (r->verdict)
        ddp_terminal_verdict(r->verdict, width, &foot);
    add_attention(r, width, &foot);
    if (r->status != DDP_STATUS_COMPLETE)
        ddp_terminal_line(&foot, width, DDP_RED, "%s: %s",
                          r->status == DDP_STATUS_FAILED ? "FAILED" : "partial", r->reason);
    else if (!t->legend && (r->point_count > 0 || r->train_count > 0))
        ddp_terminal_line(&foot, width, DDP_DIM,
                          "more columns: --wide; their meaning: ddpbench explain columns");
    draw(t, r, r->point_count, &foot, out);
    out->failed |= foot.failed;
    ddp_strbuf_release(&foot);
}
