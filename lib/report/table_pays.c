/* The answer of `ddpbench pays` (record/pays_record.h) as lines of text and as Markdown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "report/legend.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

/* With more links than this, one table shows all methods and links. */
#define LINKS_WITH_TABLES 3

/* Each of the following functions writes a figure of a method into a cell, or '-' if the figure is
 * not known. */

static void number(double value, char out[DDP_PAYS_CELL])
{
    snprintf(out, DDP_PAYS_CELL, value < 1000 ? "%.3g" : "%.0f", value);
    if (!isfinite(value))
        snprintf(out, DDP_PAYS_CELL, "-");
}

static void method_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    snprintf(out, DDP_PAYS_CELL, "%s", strcmp(m->method, "none") == 0 ? "dense f32" : m->method);
}

static void step_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    snprintf(out, DDP_PAYS_CELL, isfinite(m->step_ns) ? "%.4g" : "-", m->step_ns / 1e6);
}

static void interval_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    const double *ends = m->step_ci95_ns;
    snprintf(out, DDP_PAYS_CELL, isfinite(ends[0]) && isfinite(ends[1]) ? "%.4g-%.4g" : "-",
             ends[0] / 1e6, ends[1] / 1e6);
}

static void speedup_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    number(m->speedup, out);
}

static void sent_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    number(m->sent_bytes / 1e6, out);
}

static void below_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    number(m->pays_below_GBps * 8, out);
    if (isinf(m->pays_below_GBps) || m->pays_below_GBps == 0)
        snprintf(out, DDP_PAYS_CELL, isinf(m->pays_below_GBps) ? "all" : "none");
}

static void density_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    number(m->break_even_density, out);
}

static void accuracy_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    snprintf(out, DDP_PAYS_CELL, isfinite(m->accuracy_change) ? "%+.4f" : "-", m->accuracy_change);
}

static void pays_text(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL])
{
    snprintf(out, DDP_PAYS_CELL, m->pays ? "yes" : "no");
}

/* The columns of the table of a link. In a text table, a column has the two head lines `title` and
 * `unit`. In other tables, a column has the head `head`. A negative width means that the texts are
 * aligned left. */
static const struct {
    const char *title, *unit, *head;
    int width;
    void (*text)(const struct ddp_pays_method *m, char out[DDP_PAYS_CELL]);
} columns[] = {{"#method", "#", "method", -15, method_text},
               {"step", "(ms)", "step (ms)", 7, step_text},
               {"interval", "(ms)", "interval (ms)", 12, interval_text},
               {"times", "bf16", "times bf16", 5, speedup_text},
               {"sent", "(MB)", "sent (MB)", 8, sent_text},
               {"Gbit/s", "below", "below Gbit/s", 6, below_text},
               {"density", "below", "below density", 7, density_text},
               {"accuracy", "change", "accuracy change", 8, accuracy_text},
               {"pays", "?", "pays", 4, pays_text}};
#define COLUMNS DDP_COUNT_OF(columns)

bool ddp_pays_cell(const struct ddp_pays_method *m, size_t column, const char **head,
                   char out[DDP_PAYS_CELL])
{
    if (column >= COLUMNS)
        return false;
    *head = columns[column].head;
    columns[column].text(m, out);
    return true;
}

void ddp_pays_link_name(const struct ddp_pays_link *link, char *out, size_t out_bytes)
{
    if (isnan(link->GBps))
        snprintf(out, out_bytes, "between the ranks of this run");
    else
        snprintf(out, out_bytes, "%.3g Gbit/s, %.3g us", link->GBps * 8, link->latency_ns / 1e3);
}

void ddp_pays_training(const struct ddp_pays_record *p, char *out, size_t out_bytes)
{
    char step[24], bucket[24];
    ddp_format_ns(p->step_ns, step, sizeof step);
    ddp_format_size((uint64_t)p->bucket_bytes, bucket, sizeof bucket);
    snprintf(out, out_bytes, "%lld parameters in buckets of %s, step %s, %d ranks%s",
             (long long)p->parameters, bucket, step, p->ranks,
             p->overlap ? ", the exchange overlaps the backward pass" : "");
}

static void add_line(int width, const char *style, const char *text, struct ddp_strbuf *out)
{
    if (width > 0)
        ddp_terminal_line(out, width, style, "%s", text);
    else
        ddp_strbuf_addf(out, "# %s\n", text);
}

static void add_link(const struct ddp_pays_record *p, int link, int width, struct ddp_strbuf *out)
{
    for (int line = 0; line < 2; line++)
        for (size_t c = 0; c < COLUMNS; c++)
            ddp_strbuf_addf(out, "%s%*s%s", c > 0 ? " " : "", columns[c].width,
                            line == 0 ? columns[c].title : columns[c].unit,
                            c == COLUMNS - 1 ? "\n" : "");
    for (int m = 0; m < p->method_count; m++)
        for (size_t c = 0; c < COLUMNS; c++) {
            char text[DDP_PAYS_CELL];
            columns[c].text(ddp_pays_at(p, link, m), text);
            ddp_strbuf_addf(out, c == 0 ? "%*.15s" : " %*s", columns[c].width, text);
            if (c == COLUMNS - 1)
                ddp_strbuf_add(out, "\n");
        }
    add_line(width, DDP_BOLD, p->links[link].answer, out);
}

/* Adds a table of all methods and links. A cell is the step time with bf16 divided by that of the
 * method. An asterisk marks methods that pay. */
static void add_all(const struct ddp_pays_record *p, int width, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "#%-15s", "Gbit/s:");
    for (int l = 0; l < p->link_count; l++)
        if (isnan(p->links[l].GBps))
            ddp_strbuf_addf(out, " %6s", "here");
        else
            ddp_strbuf_addf(out, " %6.3g", p->links[l].GBps * 8);
    ddp_strbuf_add(out, "\n");
    for (int m = 0; m < p->method_count; m++) {
        char name[DDP_PAYS_CELL];
        method_text(ddp_pays_at(p, 0, m), name);
        ddp_strbuf_addf(out, "%-16.16s", name);
        for (int l = 0; l < p->link_count; l++) {
            const struct ddp_pays_method *at = ddp_pays_at(p, l, m);
            ddp_table_cell(out, 5, at->speedup);
            ddp_strbuf_add(out, at->pays ? "*" : " ");
        }
        ddp_strbuf_add(out, "\n");
    }
    add_line(width, NULL, "times as fast as bf16; *: pays", out);
    for (int l = 0; l < p->link_count; l++)
        add_line(width, DDP_BOLD, p->links[l].answer, out);
}

void ddp_table_pays(const struct ddp_pays_record *p, bool with_legend, int width,
                    struct ddp_strbuf *out)
{
    char text[160];
    if (p->link_count == 0)
        return;
    ddp_pays_training(p, text, sizeof text);
    add_line(width, NULL, text, out);
    if (p->link_count > LINKS_WITH_TABLES) {
        add_all(p, width, out);
        return;
    }
    if (with_legend)
        ddp_legend_add(DDP_LEGEND_PAYS, NULL, 0, width > 0 ? "  " : "# ",
                       width > 0 ? width : DDP_LEGEND_COLUMNS, out);
    for (int l = 0; l < p->link_count; l++)
        add_link(p, l, width, out);
}

static void add_markdown_link(const struct ddp_pays_record *p, int link, struct ddp_strbuf *out)
{
    char text[DDP_PAYS_CELL];
    ddp_pays_link_name(&p->links[link], text, sizeof text);
    ddp_strbuf_addf(out, "%s:\n\n|", text);
    for (size_t c = 0; c < COLUMNS; c++)
        ddp_strbuf_addf(out, " %s |", columns[c].head);
    ddp_strbuf_add(out, "\n|");
    for (size_t c = 0; c < COLUMNS; c++)
        ddp_strbuf_add(out, columns[c].width < 0 ? ":--|" : "--:|");
    for (int m = 0; m < p->method_count; m++) {
        ddp_strbuf_add(out, "\n|");
        for (size_t c = 0; c < COLUMNS; c++) {
            columns[c].text(ddp_pays_at(p, link, m), text);
            ddp_strbuf_add(out, " ");
            ddp_markdown_text(out, text);
            ddp_strbuf_add(out, " |");
        }
    }
    ddp_strbuf_add(out, "\n\n");
}

void ddp_markdown_pays(const struct ddp_pays_record *p, struct ddp_strbuf *out)
{
    const bool folded = p->link_count > LINKS_WITH_TABLES;
    char text[160];
    if (p->link_count == 0)
        return;
    ddp_pays_training(p, text, sizeof text);
    ddp_strbuf_addf(out, "## Does compression pay?\n\n%s.\n\n", text);
    for (int l = 0; l < p->link_count; l++) {
        ddp_strbuf_add(out, "- ");
        ddp_markdown_text(out, p->links[l].answer);
        ddp_strbuf_add(out, ".\n");
    }
    ddp_strbuf_add(out, "\n");
    if (folded)
        ddp_markdown_fold(out, "The methods on each link");
    for (int l = 0; l < p->link_count; l++)
        add_markdown_link(p, l, out);
    if (folded)
        ddp_markdown_unfold(out);
    ddp_strbuf_add(out, DDP_PAYS_NOTE "\n\n");
}
