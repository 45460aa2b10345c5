/* The comparison of strategies, as a text table and in Markdown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/strategy_table.h"
#include "report/report_parts.h"

/* The columns of the text table and of the Markdown table. */
#define CELL_BYTES 32
struct column {
    const char *head;
    int width;
    int digits;
    double (*value)(const struct ddp_strategy_row *row);
    bool sign;
};

#define VALUE(name, expression)                                                                    \
    static double name(const struct ddp_strategy_row *row)                                         \
    {                                                                                              \
        return expression;                                                                         \
    }
VALUE(runs, row->runs)
VALUE(accuracy, row->accuracy.mean)
VALUE(lowest, row->accuracy.min)
VALUE(highest, row->accuracy.max)
VALUE(difference, row->difference.mean)
VALUE(rate, row->images_per_second)
VALUE(speedup, row->speedup)
VALUE(efficiency, row->efficiency * 100.0)
VALUE(step_ms, row->step_seconds * 1e3)
VALUE(faster, row->reference_speedup.mean)
VALUE(exposed_ms, row->exposed_step_seconds * 1e3)
VALUE(sent_kB, row->wire_bytes_per_step / 1e3)
VALUE(density, row->achieved_density * 100.0)
VALUE(target_s, row->target_seconds)
VALUE(target_MB, row->target_wire_bytes / 1e6)
VALUE(peak_MB, row->peak_memory_bytes < 0 ? NAN : (double)row->peak_memory_bytes / 1e6)
#undef VALUE

static const struct column columns[] = {
    {"runs", 4, 0, runs, false},
    {"accuracy", 8, 4, accuracy, false},
    {"lowest", 6, 4, lowest, false},
    {"highest", 7, 4, highest, false},
    {"differs", 8, 4, difference, true},
    {"images/s", 8, 0, rate, false},
    {"speed-up", 8, 2, speedup, false},
    {"eff(%)", 6, 1, efficiency, false},
    {"step(ms)", 9, 3, step_ms, false},
    {"x faster", 8, 2, faster, false},
    {"exposed(ms)", 11, 3, exposed_ms, false},
    {"sent/step(kB)", 13, 2, sent_kB, false},
    {"density(%)", 10, 3, density, false},
    {"target(s)", 9, 1, target_s, false},
    {"target(MB)", 10, 2, target_MB, false},
    {"peak(MB)", 8, 1, peak_MB, false},
};

static const char legend[] = "accuracy: mean over seeds of the last 3 epochs of a run, with the "
                             "lowest and highest; differs: "
                             "accuracy minus the reference's; speed-up, eff: relative to one rank; "
                             "x faster: step time of the "
                             "reference over that of this row; exposed: wait for the exchange per "
                             "step; sent: per rank and step; target: until "
                             "the target accuracy was reached";

static void format(const struct column *column, const struct ddp_strategy_row *row, char *out)
{
    const double value = column->value(row);
    if (!isfinite(value))
        snprintf(out, CELL_BYTES, "-");
    else
        snprintf(out, CELL_BYTES, column->sign ? "%+.*f" : "%.*f", column->digits, value);
}

/* Computes the rows. Returns false if there are none. If memory runs out, marks *out as failed and
 * returns false. */
static bool rows_of(const struct ddp_record *r, struct ddp_strategy_row **rows, int *count,
                    struct ddp_strbuf *out)
{
    if (ddp_strategy_table(r, rows, count, NULL) != 0)
        out->failed = true;
    return *count > 0;
}

/* Adds a name in which a path may have any characters. */
static void markdown_text(struct ddp_strbuf *out, const char *text)
{
    for (; *text; text++)
        ddp_strbuf_add_n(out, strchr("|`<[]!@", *text) ? "?" : text, 1);
}

/* Adds a sentence per strategy (ddp_strategy_verdict), after a mark: "# ", or "- " in Markdown. */
static void verdicts(const struct ddp_strategy_row *rows, int count, const char *mark,
                     struct ddp_strbuf *out)
{
    for (int i = 0; i < count; i++) {
        char text[320];
        ddp_strategy_verdict(&rows[i], text, sizeof text);
        if (text[0] == '\0')
            continue;
        ddp_strbuf_add(out, mark);
        if (mark[0] == '#')
            ddp_strbuf_add(out, text);
        else
            markdown_text(out, text);
        ddp_strbuf_add(out, "\n");
    }
}

/* Returns the width of the first column, which fits the longest name. */
static int name_width(const struct ddp_strategy_row *rows, int count)
{
    int width = 16;
    for (int i = 0; i < count; i++)
        width = DDP_MAX(width, (int)strlen(rows[i].sync));
    return width;
}

void ddp_table_strategies(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_strategy_row *rows;
    int count;
    if (!rows_of(r, &rows, &count, out))
        return;
    ddp_table_dim(out);
    const int width = name_width(rows, count);
    ddp_strbuf_addf(out, "# %s\n# %-*s %5s", legend, width, "sync", "ranks");
    for (size_t c = 0; c < DDP_COUNT_OF(columns); c++)
        ddp_strbuf_addf(out, " %*s", columns[c].width, columns[c].head);
    ddp_strbuf_add(out, "\n");
    ddp_table_plain(out);
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
        markdown_text(out, rows[i].sync);
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
