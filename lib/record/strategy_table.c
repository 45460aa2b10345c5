#include "record/strategy_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "record/field.h"
#include "record/point_verdict.h"

#define CLEARLY 1.05 /* Step times whose ratio exceeds this count as different. */

/* Settings that distinguish runs of the same strategy and number of ranks. The seed is not among
 * them. `label` is printed before the value. */
static const struct {
    const char *label, *path;
} details[] = {
    /* The network and its training. */
    {"", "model"},
    {"", "dataset"},
    {"", "data.path"},
    {"images ", "train_images"},
    {"", "optimizer.name"},
    {"lr ", "optimizer.lr"},
    {"momentum ", "optimizer.momentum"},
    {"weight decay ", "optimizer.weight_decay"},
    {"init ", "sync.init"},
    {"init-sync ", "sync.init_sync"},
    {"partition ", "sync.partition"},
    /* The other settings that define the task. */
    {"batch ", "batch_per_rank"},
    {"max-steps ", "optimizer.max_steps"},
    /* How gradients are exchanged. */
    {"feedback ", "sync.feedback"},
    {"aggregate ", "sync.aggregate"},
    {"algorithm ", "sync.algorithm"},
    {"bucket-bytes ", "sync.bucket_bytes"},
    {"overlap ", "sync.overlap"},
};
#define NET_END      11
#define TASK_END     13
#define DETAILS      ((int)DDP_COUNT_OF(details))
#define DETAIL_BYTES (DDP_FIELD_TEXT_BYTES + 32)

static void print(const struct ddp_train_run *r, int which, char out[DETAIL_BYTES])
{
    const struct ddp_field *f = ddp_fields_find(&ddp_train_fields, details[which].path);
    const char *label = details[which].label;
    struct ddp_field_value v;
    ddp_field_get(f, r, &v);
    if (f->kind == DDP_FIELD_NUMBER || f->kind == DDP_FIELD_COUNT)
        snprintf(out, DETAIL_BYTES, "%s%.9g", label,
                 f->kind == DDP_FIELD_NUMBER ? v.number[0] : (double)v.count);
    else if (f->kind == DDP_FIELD_BOOL)
        snprintf(out, DETAIL_BYTES, "%s%s", label, v.count ? "on" : "off");
    else
        snprintf(out, DETAIL_BYTES, "%.31s%s", label, v.text);
}

static bool same(const struct ddp_train_run *a, const struct ddp_train_run *b, int which)
{
    char mine[DETAIL_BYTES], other[DETAIL_BYTES];
    print(a, which, mine);
    print(b, which, other);
    return strcmp(mine, other) == 0;
}

static bool same_before(const struct ddp_train_run *a, const struct ddp_train_run *b, int end)
{
    for (int i = 0; i < end; i++)
        if (!same(a, b, i))
            return false;
    return true;
}

/* True if the task (model, data, batch, optimiser and so on) is equal, so that accuracies and times
 * may be compared. */
static bool same_task(const struct ddp_train_run *a, const struct ddp_train_run *b)
{
    return same_before(a, b, TASK_END);
}

/* Like same_task, but ignores batch and steps, because a run and its baseline on one rank may
 * differ in these. */
static bool same_net(const struct ddp_train_run *a, const struct ddp_train_run *b)
{
    return same_before(a, b, NET_END);
}

/* True if task, ranks, strategy and its options are equal. Such runs differ only in seed and
 * repetition. */
static bool same_row(const struct ddp_train_run *a, const struct ddp_train_run *b)
{
    return a->ranks == b->ranks && strcmp(a->sync, b->sync) == 0 && same_before(a, b, DETAILS);
}

/* Appends the first difference between the runs to label, for example ", feedback off". Appends
 * nothing if the label already contains one of the differences. */
static void add_difference(const struct ddp_train_run *run, const struct ddp_train_run *other,
                           char *label, size_t label_bytes)
{
    char text[DETAIL_BYTES + 2] = ", ";
    const size_t used = strlen(label);
    int first = DETAILS;
    for (int i = DETAILS - 1; i >= 0; i--) {
        if (same(run, other, i))
            continue;
        print(run, i, text + 2);
        if (strstr(label, text) != NULL)
            return;
        first = i;
    }
    if (first < DETAILS)
        snprintf(label + used, label_bytes - used, "%s", text);
}

/* Totals and means of one run. */
struct outcome {
    double accuracy, seconds, images, steps, exposed, wire, sent_density;
    double coding; /* Seconds of encode plus decode. 0 without a compressor. */
};

static struct outcome outcome_of(const struct ddp_train_run *run)
{
    struct outcome o = {.accuracy = NAN, .sent_density = NAN};
    const int first = DDP_MAX(0, run->epoch_count - DDP_STRATEGY_EPOCHS);
    double accuracy = 0.0, density = 0.0;
    for (int i = 0; i < run->epoch_count; i++) {
        const struct ddp_epoch *e = &run->epochs[i];
        o.seconds += e->seconds;
        o.images += e->images_per_second * e->seconds;
        o.steps += (double)e->steps;
        o.exposed += e->exposed_seconds;
        o.wire += e->wire_bytes_per_rank;
        if (!isnan(e->encode_seconds) && !isnan(e->decode_seconds))
            o.coding += e->encode_seconds + e->decode_seconds;
        density += e->achieved_density * (double)e->steps;
        if (i >= first)
            accuracy += e->eval_accuracy;
    }
    if (run->epoch_count > 0) {
        o.accuracy = accuracy / (run->epoch_count - first);
        o.sent_density = density / o.steps;
    }
    return o;
}

bool ddp_strategy_has_run(const struct ddp_strategy_row *row, const struct ddp_train_run *run)
{
    return !run->baseline && same_row(run, row->run);
}

/* Returns the run of the row's reference with the seed and repetition of `run`, or NULL. */
static const struct ddp_train_run *partner(const struct ddp_record *r,
                                           const struct ddp_strategy_row *row,
                                           const struct ddp_train_run *run)
{
    for (int i = 0; i < r->train_count; i++) {
        const struct ddp_train_run *other = &r->train[i];
        if (!other->baseline && other->seed == run->seed && other->launch == run->launch &&
            same_row(other, row->reference_run))
            return other;
    }
    return NULL;
}

/* Accumulates a mean and a range. */
struct gather {
    double sum, min, max;
    int n;
};

static void add(struct gather *g, double value)
{
    g->min = g->n == 0 ? value : fmin(g->min, value);
    g->max = g->n == 0 ? value : fmax(g->max, value);
    g->sum += value;
    g->n++;
}

static struct ddp_spread spread(const struct gather *g)
{
    if (g->n == 0)
        return (struct ddp_spread){NAN, NAN, NAN};
    return (struct ddp_spread){g->sum / g->n, g->min, g->max};
}

static enum ddp_pays judge(const struct gather *ratios)
{
    if (ratios->n == 0)
        return DDP_PAYS_UNKNOWN;
    if (ratios->min > CLEARLY)
        return DDP_PAYS_YES;
    return ratios->max < 1.0 / CLEARLY ? DDP_PAYS_NO : DDP_PAYS_UNCLEAR;
}

/* Returns the images per second of the row's model on one rank, from the baseline runs. */
static double one_rank_rate(const struct ddp_record *r, const struct ddp_strategy_row *row)
{
    double images = 0.0, seconds = 0.0;
    for (int i = 0; i < r->train_count; i++) {
        const struct outcome o = outcome_of(&r->train[i]);
        if (r->train[i].baseline && r->train[i].epoch_count > 0 &&
            same_net(&r->train[i], row->run)) {
            images += o.images;
            seconds += o.seconds;
        }
    }
    return seconds > 0.0 ? images / seconds : NAN;
}

static double pays_below_GBps(const struct ddp_strategy_row *row, double saved_bytes,
                              double more_seconds)
{
    if (row->ranks < 2 || row->run->overlap || row->reference_run->overlap || isnan(saved_bytes) ||
        isnan(more_seconds))
        return NAN;
    if (saved_bytes <= 0)
        return 0;
    return more_seconds > 0 ? saved_bytes / more_seconds / 1e9 : INFINITY;
}

/* Compares the runs of a row with those of its reference, paired by seed and repetition. */
static void pair_up(const struct ddp_record *r, struct ddp_strategy_row *row)
{
    struct gather differences = {0}, ratios = {0}, saved = {0}, more = {0};
    const bool itself = row->run == row->reference_run;
    const bool shared = ddp_record_shares_memory(r->world_backend);
    for (int i = 0; i < r->train_count && !itself; i++) {
        const struct ddp_train_run *run = &r->train[i];
        const struct ddp_train_run *other =
            ddp_strategy_has_run(row, run) ? partner(r, row, run) : NULL;
        if (other == NULL || run->epoch_count == 0 || other->epoch_count == 0)
            continue;
        const struct outcome mine = outcome_of(run), theirs = outcome_of(other);
        add(&differences, mine.accuracy - theirs.accuracy);
        if (!(mine.seconds > 0.0 && theirs.steps > 0.0))
            continue;
        add(&ratios, theirs.seconds / theirs.steps * mine.steps / mine.seconds);
        add(&saved, theirs.wire / theirs.steps - mine.wire / mine.steps);
        add(&more, shared ? mine.seconds / mine.steps - theirs.seconds / theirs.steps
                          : mine.coding / mine.steps - theirs.coding / theirs.steps);
    }
    row->difference = spread(&differences);
    row->reference_speedup = spread(&ratios);
    row->pays = judge(&ratios);
    row->pays_below_GBps = pays_below_GBps(row, spread(&saved).mean, spread(&more).mean);
}

static void fill(const struct ddp_record *r, struct ddp_strategy_row *row)
{
    struct gather accuracy = {0}, density = {0}, target_seconds = {0}, target_bytes = {0};
    struct outcome all = {0};
    row->target_accuracy = NAN;
    row->peak_memory_bytes = -1;
    for (int i = 0; i < r->train_count; i++) {
        const struct ddp_train_run *run = &r->train[i];
        if (!ddp_strategy_has_run(row, run) || run->epoch_count == 0)
            continue;
        const struct outcome o = outcome_of(run);
        row->runs++;
        add(&accuracy, o.accuracy);
        add(&density, o.sent_density);
        all.seconds += o.seconds;
        all.images += o.images;
        all.steps += o.steps;
        all.exposed += o.exposed;
        all.wire += o.wire;
        row->target_accuracy = run->target_accuracy;
        if (run->target_epoch > 0) {
            add(&target_seconds, run->target_seconds);
            add(&target_bytes, run->target_wire_bytes);
        }
        for (int e = 0; e < run->epoch_count; e++)
            row->peak_memory_bytes =
                DDP_MAX(row->peak_memory_bytes, run->epochs[e].peak_memory_bytes);
    }
    const double alone = one_rank_rate(r, row), steps = all.steps > 0.0 ? all.steps : NAN;
    row->accuracy = spread(&accuracy);
    row->achieved_density = spread(&density).mean;
    row->images_per_second = all.seconds > 0.0 ? all.images / all.seconds : NAN;
    row->step_seconds = all.seconds / steps;
    row->exposed_step_seconds = all.exposed / steps;
    row->wire_bytes_per_step = all.wire / steps;
    row->speedup = row->ranks > 1 ? row->images_per_second / alone : NAN;
    row->efficiency = row->speedup / row->ranks;
    row->target_reached = target_seconds.n;
    row->target_seconds = spread(&target_seconds).mean;
    row->target_wire_bytes = spread(&target_bytes).mean;
    pair_up(r, row);
}

/* Adds a row for the run unless the run belongs to an existing row. Returns the new number of rows.
 */
static int add_row(const struct ddp_train_run *run, struct ddp_strategy_row *rows, int count)
{
    for (int i = 0; i < count; i++)
        if (ddp_strategy_has_run(&rows[i], run))
            return count;
    rows[count] = (struct ddp_strategy_row){.ranks = run->ranks, .run = run};
    return count + 1;
}

static bool is_dense(const struct ddp_strategy_row *row)
{
    return strcmp(row->run->sync, "dense") == 0;
}

/* Returns the first dense row of the same task and number of ranks. If there is no such row,
 * returns the first row of this task and number of ranks. */
static const struct ddp_strategy_row *reference_of(const struct ddp_strategy_row *row,
                                                   const struct ddp_strategy_row *rows, int count)
{
    const struct ddp_strategy_row *best = NULL;
    for (int i = 0; i < count; i++)
        if (rows[i].ranks == row->ranks && same_task(rows[i].run, row->run) &&
            (best == NULL || (is_dense(&rows[i]) && !is_dense(best))))
            best = &rows[i];
    return best;
}

/* Names each row after its strategy. Then appends the first difference from each other row with the
 * same strategy and number of ranks. */
static void name_rows(struct ddp_strategy_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        struct ddp_strategy_row *row = &rows[i];
        snprintf(row->sync, sizeof row->sync, "%s", row->run->sync);
        for (int other = 0; other < count; other++)
            if (rows[other].ranks == row->ranks &&
                strcmp(rows[other].run->sync, row->run->sync) == 0)
                add_difference(row->run, rows[other].run, row->sync, sizeof row->sync);
    }
}

static void choose_references(struct ddp_strategy_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        const struct ddp_strategy_row *best = reference_of(&rows[i], rows, count);
        rows[i].reference_run = best->run;
        memcpy(rows[i].reference, best->sync, sizeof best->sync);
    }
}

static int count_runs(const struct ddp_record *record)
{
    int runs = 0;
    for (int i = 0; i < record->train_count; i++)
        runs += !record->train[i].baseline;
    return runs;
}

int ddp_strategy_table(const struct ddp_record *record, struct ddp_strategy_row **rows, int *count,
                       struct ddp_err *err)
{
    *rows = NULL;
    *count = 0;
    return count_runs(record) < 2 ? 0 : ddp_strategy_rows(record, rows, count, err);
}

int ddp_strategy_rows(const struct ddp_record *record, struct ddp_strategy_row **rows, int *count,
                      struct ddp_err *err)
{
    struct ddp_strategy_row *table;
    int n = 0;
    *rows = NULL;
    *count = 0;
    DDP_TRY(DDP_NEW(&table, (size_t)count_runs(record), err));
    for (int i = 0; i < record->train_count; i++)
        if (!record->train[i].baseline)
            n = add_row(&record->train[i], table, n);
    name_rows(table, n);
    choose_references(table, n);
    for (int i = 0; i < n; i++)
        fill(record, &table[i]);
    *rows = table;
    *count = n;
    return 0;
}

void ddp_strategy_verdict(const struct ddp_strategy_row *row, char *out, unsigned long out_bytes)
{
    const double ratio = row->reference_speedup.mean;
    const bool agree =
        row->reference_speedup.min >= 1.0 / CLEARLY && row->reference_speedup.max <= CLEARLY;
    out[0] = '\0';
    if (row->pays == DDP_PAYS_YES)
        snprintf(out, out_bytes, "%s pays here: a step is %.2f times as fast as with %s", row->sync,
                 ratio, row->reference);
    else if (row->pays == DDP_PAYS_NO)
        snprintf(out, out_bytes, "%s does not pay here: a step takes %.2f times as long as with %s",
                 row->sync, 1.0 / ratio, row->reference);
    else if (row->pays == DDP_PAYS_UNCLEAR && !agree)
        snprintf(out, out_bytes,
                 "cannot tell whether %s pays here: depending on the seed, a step is %.2f to %.2f "
                 "times as fast "
                 "as with %s",
                 row->sync, row->reference_speedup.min, row->reference_speedup.max, row->reference);
    else if (row->pays == DDP_PAYS_UNCLEAR)
        snprintf(out, out_bytes,
                 "%s does not pay here: a step takes about as long as with %s (%.2f times)",
                 row->sync, row->reference, 1.0 / ratio);
    if (row->pays == DDP_PAYS_NO || (row->pays == DDP_PAYS_UNCLEAR && agree))
        ddp_verdict_add_link(row->pays_below_GBps, row->reference, out, out_bytes);
}

static bool is_paired(const void *row)
{
    return ((const struct ddp_strategy_row *)row)->pays != DDP_PAYS_UNKNOWN;
}

static bool has_target(const void *row)
{
    return !isnan(((const struct ddp_strategy_row *)row)->target_accuracy);
}

static const char *const pays_names[] = {"no", "yes", "unclear"};

static void verdict_of(const void *row, char *out)
{
    ddp_strategy_verdict(row, out, DDP_FIELD_TEXT_BYTES);
}

#define NUMBER      DDP_FIELD_NUMBER
#define COUNT       DDP_FIELD_COUNT
#define ROW(member) DDP_FIELD_AT(ddp_strategy_row, member)
static const struct ddp_field row_fields[] = {
    {ROW(sync), DDP_FIELD_PATH, "strategy", "strategy"},
    {ROW(reference), DDP_FIELD_PATH, "reference", "reference"},
    {ROW(ranks), COUNT, "ranks", "ranks"},
    {ROW(runs), COUNT, "runs", "runs"},
    {ROW(accuracy.mean), DDP_FIELD_OBJECT, "accuracy"},
    {ROW(accuracy.mean), NUMBER, "accuracy.mean", "accuracy_mean"},
    {ROW(accuracy.min), NUMBER, "accuracy.min", "accuracy_min"},
    {ROW(accuracy.max), NUMBER, "accuracy.max", "accuracy_max"},
    {ROW(difference.mean), DDP_FIELD_OBJECT, "difference"},
    {ROW(difference.mean), NUMBER, "difference.mean", "difference_mean"},
    {ROW(difference.min), NUMBER, "difference.min", "difference_min"},
    {ROW(difference.max), NUMBER, "difference.max", "difference_max"},
    {ROW(images_per_second), NUMBER, "images_per_second", "images_per_second"},
    {ROW(speedup), NUMBER, "speedup", "speedup"},
    {ROW(efficiency), NUMBER, "efficiency", "efficiency"},
    {ROW(step_seconds), NUMBER, "step_seconds", "step_seconds"},
    {ROW(exposed_step_seconds), NUMBER, "exposed_seconds_per_step", "exposed_seconds_per_step"},
    {ROW(wire_bytes_per_step), NUMBER, "wire_bytes_per_step", "wire_bytes_per_step"},
    {ROW(achieved_density), NUMBER, "achieved_density", "achieved_density"},
    {ROW(reference_speedup.mean), NUMBER, "reference_speedup", "reference_speedup"},
    {ROW(pays), DDP_FIELD_ENUM, "pays", "pays", .most = DDP_PAYS_UNCLEAR, .choices = pays_names,
     .applies = is_paired},
    {ROW(pays_below_GBps), NUMBER, "pays_below_GBps", "pays_below_GBps"},
    {.kind = DDP_FIELD_PATH, .path = "verdict", .column = "verdict", .text = verdict_of},
    {ROW(peak_memory_bytes), COUNT, "peak_memory_bytes", "peak_memory_bytes", .least = -1},
    {ROW(target_accuracy), DDP_FIELD_OBJECT, "target"},
    {ROW(target_accuracy), NUMBER, "target.accuracy", "target_accuracy"},
    {ROW(target_reached), COUNT, "target.reached", "target_reached", .applies = has_target},
    {ROW(target_seconds), NUMBER, "target.seconds", "target_seconds"},
    {ROW(target_wire_bytes), NUMBER, "target.wire_bytes_per_rank", "target_wire_bytes_per_rank"},
};
const struct ddp_fields ddp_strategy_fields = {row_fields, DDP_COUNT_OF(row_fields)};
