/* The comparison of strategies, as a text table and in Markdown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/strategy_table.h"
#include "report/legend.h"
#include "report/report_parts.h"

/* The columns of the text table and of the Markdown table. */
#define CELL_BYTES 32
static const struct column {
    const char *head;
    int width, digits;
    const char *path; /* Path of the field in ddp_strategy_fields. */
    double unit;      /* The value is divided by this unit. */
    bool sign;
} columns[] = {
    {"runs", 4, 0, "runs", 1, false},
    {"accuracy", 8, 4, "accuracy.mean", 1, false},
    {"lowest", 6, 4, "accuracy.min", 1, false},
    {"highest", 7, 4, "accuracy.max", 1, false},
    {"differs", 8, 4, "difference.mean", 1, true},
    {"images/s", 8, 0, "images_per_second", 1, false},
    {"speed-up", 8, 2, "speedup", 1, false},
    {"eff(%)", 6, 1, "efficiency", 0.01, false},
    {"step(ms)", 9, 3, "step_seconds", 1e-3, false},
    {"x faster", 8, 2, "reference_speedup", 1, false},
    {"pays (GB/s)", 11, 3, "pays_below_GBps", 1, false},
    {"exposed(ms)", 11, 3, "exposed_seconds_per_step", 1e-3, false},
    {"sent/step(kB)", 13, 2, "wire_bytes_per_step", 1e3, false},
    {"density(%)", 10, 3, "achieved_density", 0.01, false},
    {"target(s)", 9, 1, "target.seconds", 1, false},
    {"target(MB)", 10, 2, "target.wire_bytes_per_rank", 1e6, false},
    {"peak(MB)", 8, 1, "peak_memory_bytes", 1e6, false},
};

static const char legend[] =
    "accuracy: the mean over a run's last 3 epochs, averaged over the "
    "runs; lowest, highest: accuracy of the worst and of the best run; reference: "
    "the row with dense, or else the first row, of this task and number of ranks; differs: "
    "accuracy minus the reference's; speed-up, eff: relative to one rank; "
    "x faster: step time of the "
    "reference over that of this row; pays: if a rank's link is slower "
    "than this, a step takes less time than with the reference; exposed: "
    "wait for the exchange per "
    "step; sent: per rank and step; target: seconds, "
    "and MB per rank, until the target accuracy was reached";

static void format(const struct column *column, const struct ddp_strategy_row *row, char *out)
{
    const struct ddp_field *field = ddp_fields_find(&ddp_strategy_fields, column->path);
    struct ddp_field_value v;
    ddp_field_get(field, row, &v);
    const double value = v.count >= 0 ? (double)v.count : v.number[0];
    if (!isfinite(value))
        snprintf(out, CELL_BYTES, "-");
    else
        snprintf(out, CELL_BYTES, column->sign ? "%+.*f" : "%.*f", column->digits,
                 value / column->unit);
}

/* Computes the rows. Returns false if there are no rows or if memory runs out. If memory runs out,
 * also marks *out as failed. */
static bool rows_of(const struct ddp_record *r, struct ddp_strategy_row **rows, int *count,
                    struct ddp_strbuf *out)
{
    if (ddp_strategy_table(r, rows, count, NULL) != 0)
        out->failed = true;
    return *count > 0;
}

void ddp_markdown_text(struct ddp_strbuf *out, const char *text)
{
    for (; *text; text++)
        ddp_strbuf_add_n(out, strchr("|`<[]!@", *text) ? "?" : text, 1);
}

/* Adds the verdicts of the strategies that have one (ddp_strategy_verdict), each after `mark`. A
 * mark that begins with '#' means plain text, and any other mark means Markdown. */
static void verdicts(const struct ddp_strategy_row *rows, int count, const char *mark,
                     struct ddp_strbuf *out)
{
    for (int i = 0; i < count; i++) {
        char text[DDP_FIELD_TEXT_BYTES];
        ddp_strategy_verdict(&rows[i], text, sizeof text);
        if (text[0] == '\0')
            continue;
        ddp_strbuf_add(out, mark);
        if (mark[0] == '#')
            ddp_strbuf_add(out, text);
        else
            ddp_markdown_text(out, text);
        ddp_strbuf_add(out, "\n");
    }
}

/* Returns the width of the first column, which has the names of the strategies. */
static int name_width(const struct ddp_strategy_row *rows, int count)
{
    int width = 16;
    for (int i = 0; i < count; i++)
        width = DDP_MAX(width, (int)strlen(rows[i].sync));
    return width;
}

void ddp_table_strategies(const struct ddp_record *r, bool with_legend, struct ddp_strbuf *out)
{
    struct ddp_strategy_row *rows;
    int count;
    if (!rows_of(r, &rows, &count, out))
        return;
    const int width = name_width(rows, count);
    ddp_strbuf_add(out, DDP_DIM);
    if (with_legend)
        ddp_legend_add(DDP_LEGEND_STRATEGIES, NULL, 0, "# ", DDP_LEGEND_COLUMNS, out);
    ddp_strbuf_addf(out, "# %-*s %5s", width, "sync", "ranks");
    for (size_t c = 0; c < DDP_COUNT_OF(columns); c++)
        ddp_strbuf_addf(out, " %*s", columns[c].width, columns[c].head);
    ddp_strbuf_add(out, "\n" DDP_PLAIN);
    for (int i = 0; i < count; i++) {
        ddp_strbuf_addf(out, "  %-*s %5d", width, rows[i].sync, rows[i].ranks);
        for (size_t c = 0; c < DDP_COUNT_OF(columns); c++) {
            char text[CELL_BYTES];
            format(&columns[c], &rows[i], text);
            ddp_strbuf_addf(out, " %*s", columns[c].width, text);
        }
        ddp_strbuf_add(out, "\n");
    }
    verdicts(rows, count, "# ", out);
    free(rows);
}

void ddp_markdown_strategies(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_strategy_row *rows;
    int count;
    if (!rows_of(r, &rows, &count, out))
        return;
    ddp_strbuf_add(out, "## Strategies\n\n| sync | ranks |");
    for (size_t c = 0; c < DDP_COUNT_OF(columns); c++)
        ddp_strbuf_addf(out, " %s |", columns[c].head);
    ddp_strbuf_add(out, "\n|:--|--:|");
    for (size_t c = 0; c < DDP_COUNT_OF(columns); c++)
        ddp_strbuf_add(out, "--:|");
    ddp_strbuf_add(out, "\n");
    for (int i = 0; i < count; i++) {
        ddp_strbuf_add(out, "| ");
        ddp_markdown_text(out, rows[i].sync);
        ddp_strbuf_addf(out, " | %d |", rows[i].ranks);
        for (size_t c = 0; c < DDP_COUNT_OF(columns); c++) {
            char text[CELL_BYTES];
            format(&columns[c], &rows[i], text);
            ddp_strbuf_addf(out, " %s |", text);
        }
        ddp_strbuf_add(out, "\n");
    }
    ddp_strbuf_addf(out, "\n%s.\n\n", legend);
    verdicts(rows, count, "- ", out);
    ddp_strbuf_add(out, "\n");
    free(rows);
}
