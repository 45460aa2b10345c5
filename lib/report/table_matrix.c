/* The matrix of pairs (record/matrix_record.h) as lines of text, and as a heat map on a terminal.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

/* If the bandwidth of a direction is below this fraction of the median, the direction is shown as
 * doubtful or as bad. */
#define DOUBTFUL 0.8
#define BAD      0.5

#define CELL_COLUMNS 6

void ddp_matrix_end_name(const struct ddp_record *r, int end, char *out, size_t out_bytes)
{
    const int rank = r->matrix.rank[end];
    const char *host = ddp_record_host_of(r, rank);
    if (r->matrix.by_host && host[0])
        snprintf(out, out_bytes, "host %s", host);
    else
        snprintf(out, out_bytes, "rank %d%s%s%s", rank, host[0] ? " (host " : "", host,
                 host[0] ? ")" : "");
}

static void add_pipe(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_matrix *m = &r->matrix;
    ddp_strbuf_add(out, "#from    to latency   alone   ci95    both  host\n"
                        "#             (us)  (GB/s)   +-%  (GB/s)  from > to\n");
    for (int from = 0; from < m->ends; from++)
        for (int to = 0; to < m->ends; to++) {
            const struct ddp_matrix_cell *c = ddp_matrix_cell_of(m, from, to);
            if (isnan(c->GBps))
                continue;
            ddp_strbuf_addf(out, "%5d %5d", m->rank[from], m->rank[to]);
            ddp_table_cell(out, 7, c->latency_ns / 1e3);
            ddp_table_cell(out, 7, c->GBps);
            ddp_table_fixed(out, 6, 1, c->ci95_fraction * 100);
            ddp_table_cell(out, 7, c->both_GBps);
            ddp_strbuf_add(out, "  ");
            ddp_table_text(out, ddp_record_host_of(r, m->rank[from]));
            ddp_strbuf_add(out, " > ");
            ddp_table_text(out, ddp_record_host_of(r, m->rank[to]));
            ddp_strbuf_add(out, "\n");
        }
}

static const char *style_of(double GBps, double median)
{
    return GBps < BAD * median ? DDP_RED : GBps < DOUBTFUL * median ? DDP_YELLOW : "";
}

/* Adds a row of numbers. The label takes `label` columns. */
static void add_numbers(const struct ddp_matrix *m, int from, int label, double median,
                        struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%*d", label, m->rank[from]);
    for (int to = 0; to < m->ends; to++) {
        const double GBps = ddp_matrix_cell_of(m, from, to)->GBps;
        if (isnan(GBps)) {
            ddp_strbuf_addf(out, "%*s", CELL_COLUMNS, from == to ? "." : "-");
            continue;
        }
        const char *style = style_of(GBps, median);
        ddp_strbuf_addf(out, "%s%*.*f%s", style, CELL_COLUMNS,
                        GBps < 9.995   ? 2
                        : GBps < 99.95 ? 1
                                       : 0,
                        GBps, style[0] ? DDP_PLAIN : "");
    }
    ddp_strbuf_add(out, "\n");
}

/* Adds a row with one character per direction: the bandwidth in tenths of the bandwidth of the
 * fastest direction. */
static void add_digits(const struct ddp_matrix *m, int from, int label, int shown, double most,
                       double median, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%*d ", label, m->rank[from]);
    for (int to = 0; to < shown; to++) {
        const double GBps = ddp_matrix_cell_of(m, from, to)->GBps;
        if (isnan(GBps)) {
            ddp_strbuf_add(out, from == to ? "." : " ");
            continue;
        }
        const char *style = style_of(GBps, median);
        ddp_strbuf_addf(out, "%s%d%s", style, (int)DDP_MIN(GBps / most * 10, 9),
                        style[0] ? DDP_PLAIN : "");
    }
    ddp_strbuf_add(out, "\n");
}

static void add_map(const struct ddp_record *r, const struct ddp_matrix_summary *s, int width,
                    struct ddp_strbuf *out)
{
    const struct ddp_matrix *m = &r->matrix;
    const int label = 6, shown = DDP_MIN(m->ends, width - label - 1);
    const bool numbers = label + CELL_COLUMNS * m->ends <= width;
    const double most = ddp_matrix_cell_of(m, s->fastest[0], s->fastest[1])->GBps;
    ddp_terminal_line(out, width, DDP_BOLD,
                      numbers ? "bandwidth in GB/s, from the rank of the row to that of the column"
                              : "bandwidth in tenths of the fastest direction (9: 90 %% or more), "
                                "from the rank of the row to that of the column");
    if (numbers) {
        ddp_strbuf_addf(out, "%*s", label, "");
        for (int to = 0; to < m->ends; to++)
            ddp_strbuf_addf(out, "%*d", CELL_COLUMNS, m->rank[to]);
        ddp_strbuf_add(out, "\n");
    }
    for (int from = 0; from < shown; from++)
        if (numbers)
            add_numbers(m, from, label, s->median_GBps, out);
        else
            add_digits(m, from, label, shown, most, s->median_GBps, out);
    if (shown < m->ends)
        ddp_terminal_line(out, width, NULL, "this map has %d of %d rows; --json FILE stores all",
                          shown, m->ends);
}

/* Writes, for example, "slowest: rank 2 (host c) to rank 0 (host a): 0.12 GB/s, 0.11 times the
 * median". */
static void describe_extreme(const struct ddp_record *r, const char *what, const int ends[2],
                             double median, char *out, size_t out_bytes)
{
    char from[96], to[96];
    const struct ddp_matrix_cell *c = ddp_matrix_cell_of(&r->matrix, ends[0], ends[1]);
    ddp_matrix_end_name(r, ends[0], from, sizeof from);
    ddp_matrix_end_name(r, ends[1], to, sizeof to);
    snprintf(out, out_bytes, "%s: %s to %s: %.3g GB/s, %.2g times the median", what, from, to,
             c->GBps, c->GBps / median);
}

static void describe_median(const struct ddp_matrix *m, const struct ddp_matrix_summary *s,
                            char *out, size_t out_bytes)
{
    const char *end = m->by_host ? "host" : "rank";
    char size[24], latency[24];
    ddp_format_size(m->bytes, size, sizeof size);
    ddp_format_ns(s->median_latency_ns, latency, sizeof latency);
    snprintf(out, out_bytes,
             "median of %d directions between %d %ss: %.3g GB/s with messages of %s, latency %s",
             s->measured, m->ends, end, s->median_GBps, size, latency);
    if (s->measured == 0)
        snprintf(out, out_bytes, "there is no pair: %d %s", m->ends, end);
    if (m->rounds < m->all_rounds)
        ddp_text_append(out, out_bytes, "; %d of %d rounds were measured", m->rounds,
                        m->all_rounds);
}

bool ddp_matrix_sentence(const struct ddp_record *r, char *out, size_t out_bytes)
{
    struct ddp_matrix_summary s;
    struct ddp_err ignored = DDP_ERR_INIT;
    char slowest[320];
    if (r->matrix.ends == 0 || ddp_matrix_summarize(&r->matrix, &s, &ignored) != 0 ||
        s.measured == 0)
        return false;
    describe_median(&r->matrix, &s, out, out_bytes);
    describe_extreme(r, "slowest", s.slowest, s.median_GBps, slowest, sizeof slowest);
    ddp_text_append(out, out_bytes, "; %s", slowest);
    return true;
}

static void add_sentence(const char *text, int width, struct ddp_strbuf *out)
{
    if (width > 0)
        ddp_terminal_line(out, width, NULL, "%s", text);
    else
        ddp_strbuf_addf(out, "# %s\n", text);
}

void ddp_table_matrix(const struct ddp_record *r, int width, struct ddp_strbuf *out)
{
    const struct ddp_matrix *m = &r->matrix;
    struct ddp_matrix_summary s;
    struct ddp_err ignored = DDP_ERR_INIT;
    char text[400];
    if (m->ends == 0)
        return;
    if (ddp_matrix_summarize(m, &s, &ignored) != 0) {
        out->failed = true;
        return;
    }
    if (width == 0)
        add_pipe(r, out);
    else if (s.measured > 0)
        add_map(r, &s, width, out);
    describe_median(m, &s, text, sizeof text);
    add_sentence(text, width, out);
    if (s.measured == 0)
        return;
    describe_extreme(r, "slowest", s.slowest, s.median_GBps, text, sizeof text);
    add_sentence(text, width, out);
    describe_extreme(r, "fastest", s.fastest, s.median_GBps, text, sizeof text);
    add_sentence(text, width, out);
}
