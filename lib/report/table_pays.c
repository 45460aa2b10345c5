/* The answer of `ddpbench pays` (record/pays_record.h) as lines of text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/unit.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

/* If there are more links, one table has the methods and the links. */
#define LINKS_WITH_TABLES 3

static void add_line(int width, const char *style, const char *text, struct ddp_strbuf *out)
{
    if (width > 0)
        ddp_terminal_line(out, width, style, "%s", text);
    else
        ddp_strbuf_addf(out, "# %s\n", text);
}

static const char *name_of(const struct ddp_pays_method *m)
{
    return strcmp(m->method, "none") == 0 ? "dense f32" : m->method;
}

/* The columns of the table of a link: two lines of a title, and a width. */
static const struct {
    const char *title, *unit;
    int width;
} columns[] = {{"#method", "#", -15},   {"step", "(ms)", 7},       {"interval", "(ms)", 12},
               {"times", "bf16", 5},    {"sent", "(MB)", 8},       {"Gbit/s", "below", 6},
               {"density", "below", 7}, {"accuracy", "change", 8}, {"pays", "?", 4}};

/* Adds a number, or '-' if it is not finite. */
static void add_number(int column, double value, struct ddp_strbuf *out)
{
    char text[24] = "-";
    if (isfinite(value))
        snprintf(text, sizeof text, value < 1000 ? "%.3g" : "%.0f", value);
    ddp_strbuf_addf(out, " %*s", columns[column].width, text);
}

static void add_method(const struct ddp_pays_method *m, struct ddp_strbuf *out)
{
    const double *ends = m->step_ci95_ns;
    char interval[40] = "-", accuracy[16] = "-";
    if (isfinite(ends[0]) && isfinite(ends[1]))
        snprintf(interval, sizeof interval, "%.4g-%.4g", ends[0] / 1e6, ends[1] / 1e6);
    if (isfinite(m->accuracy_change))
        snprintf(accuracy, sizeof accuracy, "%+.4f", m->accuracy_change);
    ddp_strbuf_addf(out, "%*.15s %*.4g %*s", columns[0].width, name_of(m), columns[1].width,
                    m->step_ns / 1e6, columns[2].width, interval);
    add_number(3, m->speedup, out);
    add_number(4, m->sent_bytes / 1e6, out);
    add_number(5, m->pays_below_GBps * 8, out);
    add_number(6, m->break_even_density, out);
    ddp_strbuf_addf(out, " %*s %*s\n", columns[7].width, accuracy, columns[8].width,
                    m->pays ? "yes" : "no");
}

static void add_link(const struct ddp_pays_record *p, int link, int width, struct ddp_strbuf *out)
{
    const size_t count = sizeof columns / sizeof *columns;
    for (int line = 0; line < 2; line++)
        for (size_t c = 0; c < count; c++)
            ddp_strbuf_addf(out, "%s%*s%s", c > 0 ? " " : "", columns[c].width,
                            line == 0 ? columns[c].title : columns[c].unit,
                            c == count - 1 ? "\n" : "");
    for (int m = 0; m < p->method_count; m++)
        add_method(ddp_pays_at(p, link, m), out);
    add_line(width, DDP_BOLD, p->links[link].answer, out);
}

/* Adds a table of all methods and links. A cell is the speed-up over the baseline. An asterisk
 * marks methods that pay. */
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
        ddp_strbuf_addf(out, "%-16.16s", name_of(ddp_pays_at(p, 0, m)));
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

void ddp_table_pays(const struct ddp_pays_record *p, int width, struct ddp_strbuf *out)
{
    char step[24], bucket[24], text[160];
    if (p->link_count == 0)
        return;
    ddp_format_ns(p->step_ns, step, sizeof step);
    ddp_format_size((uint64_t)p->bucket_bytes, bucket, sizeof bucket);
    snprintf(text, sizeof text, "%lld parameters in buckets of %s, step %s, %d ranks%s",
             (long long)p->parameters, bucket, step, p->ranks,
             p->overlap ? ", the exchange overlaps the backward pass" : "");
    add_line(width, NULL, text, out);
    if (p->link_count > LINKS_WITH_TABLES) {
        add_all(p, width, out);
        return;
    }
    for (int l = 0; l < p->link_count; l++)
        add_link(p, l, width, out);
}
