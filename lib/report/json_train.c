#include "report/json_train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "record/strategy_table.h"

void ddp_json_epoch_into(cJSON *epoch, const struct ddp_epoch *e)
{
    ddp_json_count(epoch, "epoch", e->epoch);
    ddp_json_count(epoch, "steps", e->steps);
    ddp_json_num(epoch, "train_loss", e->train_loss);
    ddp_json_num(epoch, "train_accuracy", e->train_accuracy);
    ddp_json_num(epoch, "eval_loss", e->eval_loss);
    ddp_json_num(epoch, "eval_accuracy", e->eval_accuracy);
    ddp_json_num(epoch, "seconds", e->seconds);
    ddp_json_num(epoch, "compute_seconds", e->compute_seconds);
    ddp_json_num(epoch, "exchange_seconds", e->exchange_seconds);
    ddp_json_num(epoch, "exposed_seconds", e->exposed_seconds);
    ddp_json_num(epoch, "images_per_second", e->images_per_second);
    ddp_json_num(epoch, "encode_seconds", e->encode_seconds);
    ddp_json_num(epoch, "decode_seconds", e->decode_seconds);
    ddp_json_num(epoch, "wire_bytes_per_rank", e->wire_bytes_per_rank);
    ddp_json_str(epoch, "wire_bytes_source",
                 isnan(e->wire_bytes_per_rank) ? NULL
                 : e->wire_counted             ? "counted"
                                               : "model");
    ddp_json_num(epoch, "achieved_density", e->achieved_density);
    ddp_json_count(epoch, "overflow_count", e->overflow_count);
    ddp_json_count(epoch, "peak_memory_bytes", e->peak_memory_bytes);
}

static void add_epochs(cJSON *train, const struct ddp_train_run *r)
{
    cJSON *epochs = ddp_json_arr(train, "epochs");
    for (int i = 0; i < r->epoch_count; i++)
        ddp_json_epoch_into(ddp_json_append(epochs), &r->epochs[i]);
}

/* Adds "final", which is null until the run has ended, and "target". The final accuracy is that of
 * the last epoch. */
static void add_outcome(cJSON *train, const struct ddp_train_run *r)
{
    if (isnan(r->total_seconds)) {
        ddp_json_null(train, "final");
    } else {
        cJSON *final = ddp_json_obj(train, "final");
        ddp_json_num(final, "eval_accuracy",
                     r->epoch_count > 0 ? r->epochs[r->epoch_count - 1].eval_accuracy : NAN);
        ddp_json_num(final, "seconds", r->total_seconds);
        ddp_json_num(final, "wire_bytes_per_rank", r->total_wire_bytes);
    }
    if (isnan(r->target_accuracy)) {
        ddp_json_null(train, "target");
        return;
    }
    cJSON *target = ddp_json_obj(train, "target");
    ddp_json_num(target, "accuracy", r->target_accuracy);
    ddp_json_count(target, "epoch", r->target_epoch);
    ddp_json_num(target, "seconds", r->target_seconds);
    ddp_json_num(target, "wire_bytes_per_rank", r->target_wire_bytes);
}

cJSON *ddp_json_train(const struct ddp_train_run *r)
{
    cJSON *train = cJSON_CreateObject();
    ddp_json_str(train, "model", r->model);
    ddp_json_count(train, "parameters", r->parameters);
    ddp_json_str(train, "dataset", r->dataset);
    cJSON *data = ddp_json_obj(train, "data");
    char hash[32];
    snprintf(hash, sizeof hash, "fnv1a64:%016llx", (unsigned long long)r->data_hash);
    ddp_json_str(data, "path", r->data_path);
    ddp_json_str(data, "hash", hash);
    ddp_json_bool(train, "synthetic", r->synthetic);
    ddp_json_count(train, "train_images", r->train_images);
    ddp_json_count(train, "eval_images", r->eval_images);
    ddp_json_count(train, "ranks", r->ranks);
    ddp_json_bool(train, "baseline", r->baseline);
    ddp_json_count(train, "launch", r->launch > 0 ? r->launch : -1);
    ddp_json_count(train, "batch_per_rank", r->batch_per_rank);
    cJSON *compute = ddp_json_obj(train, "compute");
    ddp_json_str(compute, "device", r->device);
    ddp_json_str(compute, "library", r->blas);
    ddp_json_bool(compute, "graph", r->graph);
    ddp_json_bool(compute, "tf32", r->tf32);
    cJSON *optimizer = ddp_json_obj(train, "optimizer");
    ddp_json_str(optimizer, "name", r->optimizer);
    ddp_json_num(optimizer, "lr", r->lr);
    ddp_json_num(optimizer, "momentum", r->momentum);
    ddp_json_num(optimizer, "weight_decay", r->weight_decay);
    ddp_json_count(optimizer, "max_steps", r->max_steps);
    cJSON *sync = ddp_json_obj(train, "sync");
    ddp_json_str(sync, "strategy", r->sync);
    ddp_json_str(sync, "feedback", r->feedback);
    ddp_json_str(sync, "aggregate", r->aggregate);
    ddp_json_str(sync, "algorithm", r->algorithm);
    ddp_json_count(sync, "bucket_bytes", r->bucket_bytes);
    ddp_json_bool(sync, "overlap", r->overlap);
    ddp_json_str(sync, "partition", r->partition);
    ddp_json_str(sync, "init", r->init);
    ddp_json_str(sync, "init_sync", r->init_sync);
    ddp_json_count(train, "seed", (int64_t)r->seed);
    add_epochs(train, r);
    add_outcome(train, r);
    return train;
}

/* Adds {"mean", "min", "max"}, or null. */
static void add_spread(cJSON *obj, const char *key, const struct ddp_spread *spread)
{
    if (isnan(spread->mean)) {
        ddp_json_null(obj, key);
        return;
    }
    cJSON *item = ddp_json_obj(obj, key);
    ddp_json_num(item, "mean", spread->mean);
    ddp_json_num(item, "min", spread->min);
    ddp_json_num(item, "max", spread->max);
}

static cJSON *make_row(const struct ddp_strategy_row *row)
{
    char verdict[320];
    cJSON *item = cJSON_CreateObject();
    ddp_strategy_verdict(row, verdict, sizeof verdict);
    ddp_json_str(item, "strategy", row->sync);
    ddp_json_str(item, "reference", row->reference);
    ddp_json_count(item, "ranks", row->ranks);
    ddp_json_count(item, "runs", row->runs);
    add_spread(item, "accuracy", &row->accuracy);
    add_spread(item, "difference", &row->difference);
    ddp_json_num(item, "images_per_second", row->images_per_second);
    ddp_json_num(item, "speedup", row->speedup);
    ddp_json_num(item, "efficiency", row->efficiency);
    ddp_json_num(item, "step_seconds", row->step_seconds);
    ddp_json_num(item, "exposed_seconds_per_step", row->exposed_step_seconds);
    ddp_json_num(item, "wire_bytes_per_step", row->wire_bytes_per_step);
    ddp_json_num(item, "achieved_density", row->achieved_density);
    ddp_json_num(item, "reference_speedup", row->reference_speedup.mean);
    if (row->pays == DDP_PAYS_UNKNOWN)
        ddp_json_null(item, "pays");
    else
        ddp_json_bool(item, "pays", row->pays == DDP_PAYS_YES);
    ddp_json_str(item, "verdict", verdict);
    ddp_json_count(item, "peak_memory_bytes", row->peak_memory_bytes);
    if (isnan(row->target_accuracy)) {
        ddp_json_null(item, "target");
        return item;
    }
    cJSON *target = ddp_json_obj(item, "target");
    ddp_json_num(target, "accuracy", row->target_accuracy);
    ddp_json_count(target, "reached", row->target_reached);
    ddp_json_num(target, "seconds", row->target_seconds);
    ddp_json_num(target, "wire_bytes_per_rank", row->target_wire_bytes);
    return item;
}

int ddp_json_comparison(cJSON *doc, const struct ddp_record *r, struct ddp_err *err)
{
    struct ddp_strategy_row *rows;
    int count;
    DDP_TRY(ddp_strategy_table(r, &rows, &count, err));
    if (count == 0) {
        ddp_json_null(doc, "comparison");
        return 0;
    }
    cJSON *items = ddp_json_arr(doc, "comparison");
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(items, make_row(&rows[i]));
    free(rows);
    return 0;
}
