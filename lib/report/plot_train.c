/* Plots of training runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "report/plot.h"

bool ddp_plot_same_model(const struct ddp_train_run *a, const struct ddp_train_run *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->dataset, b->dataset) == 0 &&
           a->train_images == b->train_images;
}

/* Names the strategies of all sources. If there are several sources, the name begins with the name
 * of the source. If the number of ranks varies, the name ends with this number. */
static void name_strategies(const struct ddp_plot_source *sources, struct ddp_plot_strategies *out)
{
    bool ranks_vary = false;
    for (size_t i = 1; i < out->count; i++)
        ranks_vary |= out->items[i].row->ranks != out->items[0].row->ranks;
    for (size_t i = 0; i < out->count; i++) {
        struct ddp_plot_strategy *s = &out->items[i];
        s->name[0] = '\0';
        if (out->source_count > 1)
            ddp_text_append(s->name, sizeof s->name, "%.100s: ", sources[s->source].name);
        ddp_text_append(s->name, sizeof s->name, "%s", s->row->sync);
        if (ranks_vary)
            ddp_text_append(s->name, sizeof s->name, ", %d rank%s", s->row->ranks,
                            s->row->ranks == 1 ? "" : "s");
    }
}

int ddp_plot_collect_strategies(const struct ddp_plot_source *sources, int count,
                                struct ddp_plot_strategies *out, struct ddp_err *err)
{
    int rc = 0;
    *out = (struct ddp_plot_strategies){.source_count = count};
    DDP_TRY(DDP_NEW(&out->rows, (size_t)count, err));
    for (int s = 0; s < count && rc == 0; s++) {
        int rows;
        DDP_TRY_GOTO(ddp_strategy_rows(sources[s].record, &out->rows[s], &rows, err), done);
        DDP_TRY_GOTO(DDP_RESIZE(&out->items, out->count + (size_t)rows + 1, err), done);
        for (int i = 0; i < rows; i++)
            out->items[out->count++] =
                (struct ddp_plot_strategy){.source = s, .row = &out->rows[s][i]};
    }
    name_strategies(sources, out);
done:
    if (rc != 0)
        ddp_plot_strategies_release(out);
    return rc;
}

void ddp_plot_strategies_release(struct ddp_plot_strategies *strategies)
{
    for (int s = 0; strategies->rows && s < strategies->source_count; s++)
        free(strategies->rows[s]);
    free(strategies->rows);
    free(strategies->items);
    *strategies = (struct ddp_plot_strategies){.count = 0};
}

/* A run of a strategy. x: the seconds or bytes that the run has spent until the current epoch. */
struct progress {
    const struct ddp_train_run *run;
    double x;
};

/* Adds the value after an epoch that all runs have reached. */
static int add_epoch(struct progress *runs, size_t count, int epoch, bool over_bytes,
                     struct ddp_plot *out, struct ddp_err *err)
{
    double x = 0, accuracy = 0, low = INFINITY, high = -INFINITY;
    int n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ddp_epoch *e = &runs[i].run->epochs[epoch];
        runs[i].x += over_bytes ? e->wire_bytes_per_rank : e->seconds;
        if (isnan(e->eval_accuracy) || isnan(runs[i].x))
            continue;
        x += runs[i].x;
        accuracy += e->eval_accuracy;
        low = fmin(low, e->eval_accuracy);
        high = fmax(high, e->eval_accuracy);
        n++;
    }
    if (n == 0)
        return 0;
    const struct ddp_plot_value v = {
        .x = x / n, .y = accuracy / n, .low = n > 1 ? low : NAN, .high = n > 1 ? high : NAN};
    return ddp_plot_add_value(out, v, err);
}

/* Adds a value for each epoch of a strategy. Only the runs with the most epochs count. If shorter
 * runs counted until their last epoch, the mean would jump there, and the line could run backwards.
 */
static int add_epochs(const struct ddp_record *record, const struct ddp_strategy_row *row,
                      bool over_bytes, struct ddp_plot *out, struct ddp_err *err)
{
    struct progress *runs;
    size_t count = 0;
    int epochs = 0, rc = 0;
    DDP_TRY(DDP_NEW(&runs, (size_t)record->train_count, err));
    for (int i = 0; i < record->train_count; i++)
        if (ddp_strategy_has_run(row, &record->train[i]))
            epochs = DDP_MAX(epochs, record->train[i].epoch_count);
    for (int i = 0; i < record->train_count; i++)
        if (ddp_strategy_has_run(row, &record->train[i]) && record->train[i].epoch_count == epochs)
            runs[count++].run = &record->train[i];
    for (int epoch = 0; epoch < epochs && rc == 0; epoch++)
        rc = add_epoch(runs, count, epoch, over_bytes, out, err);
    free(runs);
    return rc;
}

static void describe(const struct ddp_train_run *model, bool over_bytes, struct ddp_plot *out)
{
    char title[160];
    snprintf(title, sizeof title, "%s on %s: accuracy over %s", model->model, model->dataset,
             over_bytes ? "bytes" : "seconds");
    ddp_plot_set_title(out, title);
    out->x = over_bytes
                 ? (struct ddp_plot_axis){DDP_QUANTITY_TRAFFIC, true, "bytes sent per rank"}
                 : (struct ddp_plot_axis){DDP_QUANTITY_SECONDS, false, "seconds of training"};
    out->y = (struct ddp_plot_axis){DDP_QUANTITY_FRACTION, false, "accuracy on test images"};
    snprintf(out->note, sizeof out->note,
             "A point is the mean over the runs after an epoch, and its bar is their range");
}

/* Adds a horizontal line at the target accuracy, if all strategies that train the model have the
 * same target. */
static void add_target(const struct ddp_plot_strategies *strategies,
                       const struct ddp_train_run *model, struct ddp_plot *out)
{
    char label[64], text[24];
    const double target = model->target_accuracy;
    for (size_t i = 0; i < strategies->count; i++) {
        const struct ddp_train_run *run = strategies->items[i].row->run;
        if (ddp_plot_same_model(run, model) && run->target_accuracy != target)
            return;
    }
    ddp_quantity_text(DDP_QUANTITY_FRACTION, target, text, sizeof text);
    snprintf(label, sizeof label, "target %s", text);
    if (!isnan(target))
        ddp_plot_add_mark(out, false, target, label);
}

/* Returns whether the strategy trains the model and is the reference of its comparison. */
static bool is_reference(const struct ddp_plot_strategy *s, const struct ddp_train_run *model)
{
    return s->row->run == s->row->reference_run && ddp_plot_same_model(s->row->run, model);
}

int ddp_plot_accuracy(const struct ddp_plot_source *sources,
                      const struct ddp_plot_strategies *strategies,
                      const struct ddp_train_run *model, bool over_bytes, struct ddp_plot *out,
                      struct ddp_err *err)
{
    int rc = 0, color = 0, references = 0;
    *out = (struct ddp_plot){.count = 0};
    describe(model, over_bytes, out);
    for (size_t i = 0; i < strategies->count; i++)
        references += is_reference(&strategies->items[i], model);
    for (size_t i = 0; i < strategies->count; i++) {
        const struct ddp_plot_strategy *s = &strategies->items[i];
        if (!ddp_plot_same_model(s->row->run, model))
            continue;
        const bool neutral = references == 1 && strategies->count > 1 && is_reference(s, model);
        const int own = neutral ? -1 : color++;
        if (!ddp_plot_add_series(out, s->name, own, DDP_MAX(own, 0), err))
            DDP_TRY_GOTO(DDP_ENOMEM, err_plot);
        DDP_TRY_GOTO(add_epochs(sources[s->source].record, s->row, over_bytes, out, err), err_plot);
    }
    add_target(strategies, model, out);
    ddp_plot_finish(out);
    return 0;

err_plot:
    ddp_plot_release(out);
    return rc;
}
