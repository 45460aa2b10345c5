/* Training runs and the comparison of strategies on a terminal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "record/field.h"
#include "record/strategy_table.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

static void number(struct ddp_column_text *cell, int digits, double value)
{
    if (isfinite(value))
        snprintf(cell->text, sizeof cell->text, "%.*f", digits, value);
    else
        snprintf(cell->text, sizeof cell->text, "-");
}

static void seconds(struct ddp_column_text *cell, double value)
{
    ddp_column_time(cell, value * 1e9);
}

static const struct ddp_column epoch_columns[] = {
    {"epoch", 5, 0, false, false},     {"train loss", 8, 2, false, false},
    {"train acc", 6, 8, false, false}, {"eval loss", 8, 7, false, false},
    {"eval acc", 6, 0, false, false},  {"time", 7, 0, false, false},
    {"images/s", 8, 1, false, false},  {"exchange", 7, 4, false, false},
    {"exposed", 7, 3, false, false},   {"sent", 9, 5, false, false},
    {"peak", 9, 6, false, false},
};
#define EPOCH_COLUMNS ((int)DDP_COUNT_OF(epoch_columns))

void ddp_terminal_train_head(const struct ddp_train_run *run, int width, char task[512],
                             struct ddp_strbuf *out)
{
    char text[512];
    struct ddp_column columns[EPOCH_COLUMNS];
    snprintf(text, sizeof text,
             "train %s (%lld parameters) on %s (%lld + %lld images), %d rank%s x batch %lld, %s lr "
             "%g",
             run->model, (long long)run->parameters, run->dataset, (long long)run->train_images,
             (long long)run->eval_images, run->ranks, run->ranks == 1 ? "" : "s",
             (long long)run->batch_per_rank, run->optimizer, run->lr);
    if (isfinite(run->momentum) && run->momentum > 0)
        ddp_text_append(text, sizeof text, ", momentum %g", run->momentum);
    if (run->baseline)
        return;
    const bool begins = strcmp(text, task) != 0;
    if (begins)
        ddp_terminal_line(out, width, DDP_BOLD, "%s", text);
    memcpy(task, text, sizeof text);
    ddp_terminal_line(out, width, NULL, "%s%s%s, seed %llu", run->sync,
                      strcmp(run->feedback, "off") == 0 ? ", feedback off" : "",
                      run->overlap ? ", overlapped" : "", (unsigned long long)run->seed);
    memcpy(columns, epoch_columns, sizeof columns);
    ddp_columns_fit(columns, EPOCH_COLUMNS, width);
    ddp_columns_head(columns, EPOCH_COLUMNS, out);
}

void ddp_terminal_train_row(const struct ddp_train_run *run, int index, int width,
                            struct ddp_strbuf *out)
{
    const struct ddp_epoch *e = &run->epochs[index];
    struct ddp_column columns[EPOCH_COLUMNS];
    struct ddp_column_text row[EPOCH_COLUMNS] = {{"", NULL}};
    if (run->baseline) {
        ddp_terminal_line(out, width, DDP_DIM, "1 rank alone, seed %llu: %.0f images/s",
                          (unsigned long long)run->seed, e->images_per_second);
        return;
    }
    memcpy(columns, epoch_columns, sizeof columns);
    ddp_columns_fit(columns, EPOCH_COLUMNS, width);
    snprintf(row[0].text, sizeof row[0].text, "%d", e->epoch);
    number(&row[1], 4, e->train_loss);
    number(&row[2], 4, e->train_accuracy);
    number(&row[3], 4, e->eval_loss);
    number(&row[4], 4, e->eval_accuracy);
    row[4].style = DDP_BOLD;
    seconds(&row[5], e->seconds);
    number(&row[6], 0, e->images_per_second);
    seconds(&row[7], e->exchange_seconds);
    seconds(&row[8], e->exposed_seconds);
    ddp_column_bytes(&row[9], e->wire_bytes_per_rank);
    ddp_column_bytes(&row[10], e->peak_memory_bytes < 0 ? NAN : (double)e->peak_memory_bytes);
    ddp_columns_row(columns, row, EPOCH_COLUMNS, out);
}

static const struct ddp_column strategy_columns[] = {
    {"sync", 0, 0, true, false},        {"ranks", 0, 7, false, false},
    {"runs", 0, 10, false, false},      {"accuracy", 0, 0, false, false},
    {"lowest", 0, 12, false, false},    {"highest", 0, 12, false, false},
    {"differs", 0, 1, false, false},    {"images/s", 0, 8, false, false},
    {"speed-up", 0, 9, false, false},   {"eff", 0, 13, false, false},
    {"step", 0, 0, false, false},       {"x faster", 0, 0, false, false},
    {"pays below", 0, 3, false, false}, {"exposed", 0, 5, false, false},
    {"sent", 0, 2, false, false},       {"density", 0, 6, false, false},
    {"target", 0, 4, false, false},     {"to target", 0, 11, false, false},
    {"peak", 0, 14, false, false},
};
#define STRATEGY_COLUMNS ((int)DDP_COUNT_OF(strategy_columns))

static void strategy_row(const struct ddp_strategy_row *s, struct ddp_column_text *row)
{
    memset(row, 0, STRATEGY_COLUMNS * sizeof *row);
    snprintf(row[0].text, sizeof row[0].text, "%s", s->sync);
    snprintf(row[1].text, sizeof row[1].text, "%d", s->ranks);
    snprintf(row[2].text, sizeof row[2].text, "%d", s->runs);
    number(&row[3], 4, s->accuracy.mean);
    number(&row[4], 4, s->accuracy.min);
    number(&row[5], 4, s->accuracy.max);
    if (isfinite(s->difference.mean))
        snprintf(row[6].text, sizeof row[6].text, "%+.4f", s->difference.mean);
    else
        snprintf(row[6].text, sizeof row[6].text, "-");
    number(&row[7], 0, s->images_per_second);
    ddp_column_factor(&row[8], s->speedup);
    ddp_column_percent(&row[9], s->efficiency);
    seconds(&row[10], s->step_seconds);
    ddp_column_factor(&row[11], s->reference_speedup.mean);
    row[11].style = s->pays == DDP_PAYS_YES ? DDP_GREEN : s->pays == DDP_PAYS_NO ? DDP_RED : NULL;
    if (isinf(s->pays_below_GBps))
        snprintf(row[12].text, sizeof row[12].text, "any");
    else
        ddp_column_rate(&row[12], s->pays_below_GBps);
    seconds(&row[13], s->exposed_step_seconds);
    ddp_column_bytes(&row[14], s->wire_bytes_per_step);
    ddp_column_percent(&row[15], s->achieved_density);
    seconds(&row[16], s->target_seconds);
    ddp_column_bytes(&row[17], s->target_wire_bytes);
    ddp_column_bytes(&row[18], s->peak_memory_bytes < 0 ? NAN : (double)s->peak_memory_bytes);
}

/* Hides the columns about the target accuracy if no run has a target. */
static void hide_target(const struct ddp_strategy_row *rows, int count, struct ddp_column *columns)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        any |= isfinite(rows[i].target_accuracy);
    columns[16].hidden = columns[17].hidden = !any;
}

static void add_strategies(const struct ddp_strategy_row *rows, int count, int width,
                           struct ddp_strbuf *out)
{
    struct ddp_column columns[STRATEGY_COLUMNS];
    struct ddp_column_text row[STRATEGY_COLUMNS];
    memcpy(columns, strategy_columns, sizeof columns);
    for (int i = 0; i < count; i++) {
        strategy_row(&rows[i], row);
        ddp_columns_measure(columns, row, STRATEGY_COLUMNS);
    }
    hide_target(rows, count, columns);
    ddp_columns_fit(columns, STRATEGY_COLUMNS, width);
    ddp_terminal_line(out, width, DDP_BOLD, "strategies");
    ddp_columns_head(columns, STRATEGY_COLUMNS, out);
    for (int i = 0; i < count; i++) {
        strategy_row(&rows[i], row);
        ddp_columns_row(columns, row, STRATEGY_COLUMNS, out);
    }
    for (int i = 0; i < count; i++) {
        char text[DDP_FIELD_TEXT_BYTES];
        ddp_strategy_verdict(&rows[i], text, sizeof text);
        if (text[0])
            ddp_terminal_line(out, width, rows[i].pays == DDP_PAYS_YES ? DDP_GREEN : NULL, "%s",
                              text);
    }
}

/* Adds the result of a training run that is not part of a comparison. */
static void add_result(const struct ddp_train_run *t, int width, struct ddp_strbuf *out)
{
    char text[512];
    if (!isfinite(t->total_seconds) || t->epoch_count == 0)
        return;
    snprintf(text, sizeof text, "%s: eval accuracy %.4f after %d epoch%s, %.1f s", t->sync,
             t->epochs[t->epoch_count - 1].eval_accuracy, t->epoch_count,
             t->epoch_count == 1 ? "" : "s", t->total_seconds);
    if (isfinite(t->total_wire_bytes))
        ddp_text_append(text, sizeof text, ", %.2f MB sent per rank", t->total_wire_bytes / 1e6);
    ddp_terminal_line(out, width, DDP_BOLD, "%s", text);
    if (isfinite(t->target_accuracy) && t->target_epoch > 0)
        ddp_terminal_line(out, width, DDP_GREEN,
                          "target accuracy %g reached in epoch %d, after %.1f s",
                          t->target_accuracy, t->target_epoch, t->target_seconds);
    else if (isfinite(t->target_accuracy))
        ddp_terminal_line(out, width, DDP_YELLOW, "target accuracy %g was not reached",
                          t->target_accuracy);
}

void ddp_terminal_train_end(const struct ddp_record *r, int width, struct ddp_strbuf *out)
{
    struct ddp_strategy_row *rows;
    int count;
    if (ddp_strategy_table(r, &rows, &count, NULL) != 0)
        out->failed = true;
    if (count > 0)
        add_strategies(rows, count, width, out);
    for (int i = 0; i < r->train_count && count == 0; i++)
        if (!r->train[i].baseline)
            add_result(&r->train[i], width, out);
    free(rows);
}
