/* The JSON document, schema ddpbench/1: results/schema/ddpbench-1.schema.json is the contract.
 *
 * Every key is always present; what does not exist is null. Times leave the record in ns and become
 * us here, under keys that say so. Adding a key: record.h, here, the schema; the schema test fails
 * until the three agree. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "record/provenance.h"
#include "report/report.h"

#define NS_PER_US 1e3

static const char *status_name(enum ddp_status status)
{
    return status == DDP_STATUS_COMPLETE ? "complete"
           : status == DDP_STATUS_FAILED ? "failed"
                                         : "partial";
}

/* A number with as many digits as bring the same bits back, null when it does not exist. cJSON's
 * own printing takes 15 digits for enough when they are nearly right, so two runs that differ in
 * the last bit would look alike, and seeds above 10^15 would change. */
static cJSON *make_num(double value)
{
    char text[32];
    if (!isfinite(value))
        return cJSON_CreateNull();
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return cJSON_CreateRaw(text);
}

static void add_num(cJSON *obj, const char *key, double value)
{
    cJSON_AddItemToObject(obj, key, make_num(value));
}

static void add_count(cJSON *obj, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    cJSON_AddItemToObject(obj, key, value < 0 ? cJSON_CreateNull() : cJSON_CreateRaw(text));
}

static void add_us(cJSON *obj, const char *key, double ns)
{
    add_num(obj, key, ns / NS_PER_US);
}

/* obj[key] = [lo, hi], or null when either does not exist. */
static void add_pair(cJSON *obj, const char *key, double lo, double hi)
{
    if (!isfinite(lo) || !isfinite(hi)) {
        ddp_json_null(obj, key);
        return;
    }
    cJSON *pair = ddp_json_arr(obj, key);
    cJSON_AddItemToArray(pair, make_num(lo));
    cJSON_AddItemToArray(pair, make_num(hi));
}

static void add_tool(cJSON *doc, const struct ddp_record *r)
{
    const struct ddp_build *build = ddp_build_info();
    cJSON *tool = ddp_json_obj(doc, "tool");
    ddp_json_str(tool, "version", build->version);
    ddp_json_str(tool, "commit", build->commit);
    ddp_json_bool(tool, "dirty", build->dirty);
    ddp_json_str(tool, "compiler", build->compiler);
    ddp_json_str(tool, "cflags", build->cflags);
    ddp_json_str(tool, "simd", r->simd);
    cJSON *features = ddp_json_obj(tool, "features");
    ddp_json_str(features, "mpi", r->feature_mpi);
    ddp_json_str(features, "nccl", r->feature_nccl);
    ddp_json_str(features, "cuda", r->feature_cuda);
    ddp_json_str(features, "blas", r->feature_blas);
}

/* The text of an argument as JSON can hold it; ddp_json_str is the one place that knows how. */
static void add_string_item(cJSON *array, const char *text)
{
    cJSON *holder = cJSON_CreateObject();
    ddp_json_str(holder, "s", text);
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(holder, "s");
    if (item && cJSON_IsNull(item)) {
        cJSON_Delete(item);
        item = cJSON_CreateString("");
    }
    cJSON_AddItemToArray(array, item);
    cJSON_Delete(holder);
}

static void add_world(cJSON *doc, const struct ddp_record *r)
{
    cJSON *world = ddp_json_obj(doc, "world");
    add_count(world, "ranks", r->world_ranks);
    ddp_json_str(world, "backend", r->world_backend);
    ddp_json_str(world, "launcher", r->launcher);
    cJSON *hosts = ddp_json_arr(world, "hosts");
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        cJSON *host = cJSON_CreateObject();
        ddp_json_str(host, "name", h->name);
        add_count(host, "ranks", h->ranks);
        ddp_json_str(host, "cpu", h->cpu);
        add_count(host, "cores", h->cores);
        add_count(host, "memory_bytes", h->memory_bytes);
        ddp_json_str(host, "kernel", h->kernel);
        ddp_json_str(host, "governor", h->governor);
        add_num(host, "load", h->load);
        cJSON_AddItemToArray(hosts, host);
    }
}

static void add_head(cJSON *doc, const struct ddp_record *r)
{
    ddp_json_str(doc, "schema", "ddpbench/1");
    ddp_json_str(doc, "status", status_name(r->status));
    ddp_json_str(doc, "reason", r->reason);
    ddp_json_str(doc, "label", r->label);
    add_tool(doc, r);
    cJSON *command = ddp_json_obj(doc, "command");
    ddp_json_str(command, "name", r->command);
    cJSON *argv = ddp_json_arr(command, "argv");
    for (int i = 0; i < r->argc; i++)
        add_string_item(argv, r->argv[i]);
    ddp_json_str(doc, "started", r->started);
    ddp_json_str(doc, "finished", r->finished);
    add_count(doc, "seed", r->seed);
    add_world(doc, r);
    cJSON *environment = ddp_json_obj(doc, "environment");
    for (int i = 0; i < r->environment_count; i++) {
        const struct ddp_env_entry *e = &r->environment[i];
        if (e->value[0] == '\0') /* set, but empty: that is a value */
            cJSON_AddStringToObject(environment, e->key, "");
        else
            ddp_json_str(environment, e->key, e->value);
    }
}

static void add_compress(cJSON *point, const struct ddp_point *p)
{
    char method[sizeof p->spec.compress];
    snprintf(method, sizeof method, "%s", p->spec.compress);
    method[strcspn(method, ":")] = '\0';
    cJSON *compress = ddp_json_obj(point, "compress");
    ddp_json_str(compress, "method", method);
    add_num(compress, "density", p->density);
    add_num(compress, "threshold", p->threshold);
    ddp_json_str(compress, "feedback", p->feedback);
    add_num(compress, "achieved_density", p->achieved_density);
}

static void add_times(cJSON *point, const struct ddp_point *p)
{
    const struct ddp_summary *t = &p->time_ns;
    cJSON *time = ddp_json_obj(point, "time_us");
    add_us(time, "median", t->median);
    add_pair(time, "ci95", t->ci95_lo / NS_PER_US, t->ci95_hi / NS_PER_US);
    add_us(time, "mean", t->mean);
    add_us(time, "stddev", t->stddev);
    add_us(time, "min", t->min);
    add_us(time, "p25", t->p25);
    add_us(time, "p75", t->p75);
    add_us(time, "p95", t->p95);
    add_us(time, "p99", t->p99);
    add_us(time, "max", t->max);
    cJSON *means = ddp_json_obj(point, "rank_mean_us");
    add_us(means, "min", p->rank_mean_ns[0]);
    add_us(means, "avg", p->rank_mean_ns[1]);
    add_us(means, "max", p->rank_mean_ns[2]);
}

/* A longer time is a lower bandwidth: the ends of the interval change places. */
static void add_bandwidths(cJSON *point, const struct ddp_point *p)
{
    const struct ddp_summary *t = &p->time_ns;
    add_num(point, "algbw_GBps", ddp_point_algbw_GBps(p, t->median));
    add_num(point, "busbw_GBps", ddp_point_busbw_GBps(p, t->median));
    add_pair(point, "busbw_ci95_GBps", ddp_point_busbw_GBps(p, t->ci95_hi),
             ddp_point_busbw_GBps(p, t->ci95_lo));
    add_num(point, "effective_GBps", ddp_point_effective_GBps(p, t->median));
    add_num(point, "wire_bytes_per_rank", p->wire_bytes_per_rank);
    ddp_json_str(point, "wire_bytes_source",
                 isnan(p->wire_bytes_per_rank) ? NULL
                 : p->wire_counted             ? "counted"
                                               : "model");
}

static void add_bound(cJSON *point, const struct ddp_point *p)
{
    if (p->bound_kind[0] == '\0') {
        ddp_json_null(point, "bound");
        return;
    }
    cJSON *bound = ddp_json_obj(point, "bound");
    ddp_json_str(bound, "kind", p->bound_kind);
    if (isnan(p->bound_GBps))
        add_us(bound, "us", p->bound_ns);
    else
        add_num(bound, "GBps", p->bound_GBps);
    add_num(bound, "fraction", p->bound_fraction);
}

static void add_conditions(cJSON *point, const struct ddp_point *p)
{
    cJSON *phase = ddp_json_obj(point, "phase_us");
    add_us(phase, "encode", p->phase_ns[0]);
    add_us(phase, "exchange", p->phase_ns[1]);
    add_us(phase, "decode", p->phase_ns[2]);
    ddp_json_null(point, "break_even");
    add_count(point, "overflow_count", p->overflow_count);
    cJSON *skew = ddp_json_obj(point, "skew_us");
    add_us(skew, "start", p->skew_start_ns);
    add_us(skew, "exit", p->skew_exit_ns);
    cJSON *pingpong = ddp_json_obj(point, "pingpong_ns");
    add_num(pingpong, "before", p->pingpong_ns[0]);
    add_num(pingpong, "after", p->pingpong_ns[1]);
    add_count(point, "page_bytes", p->page_bytes);
    add_bound(point, p);
    cJSON *check = ddp_json_obj(point, "check");
    ddp_json_str(check, "mode", ddp_check_name(p->check));
    add_count(check, "elements", p->check_elements);
    add_count(check, "wrong", p->check_wrong);
}

static cJSON *make_point(const struct ddp_point *p, const double *samples)
{
    const struct ddp_point_spec *s = &p->spec;
    char id[192];
    cJSON *point = cJSON_CreateObject();
    ddp_point_id(s, id, sizeof id);
    ddp_json_str(point, "id", id);
    ddp_json_str(point, "collective", ddp_coll_name(s->coll));
    ddp_json_str(point, "backend", s->backend);
    ddp_json_str(point, "algorithm", s->algorithm);
    ddp_json_str(point, "algorithm_used", p->algorithm_used);
    ddp_json_str(point, "dtype", s->coll == DDP_BARRIER ? NULL : ddp_dtype_name(s->dtype));
    ddp_json_str(point, "op", ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : NULL);
    add_count(point, "root", ddp_coll_has_root(s->coll) ? s->root : -1);
    ddp_json_str(point, "placement", ddp_placement_name(s->placement));
    ddp_json_str(point, "memory", ddp_memory_name(s->memory));
    add_count(point, "ranks", s->ranks);
    add_count(point, "groups", s->groups > 1 ? s->groups : 1);
    add_count(point, "requested_bytes", (int64_t)s->requested_bytes);
    add_count(point, "size_bytes", (int64_t)s->size_bytes);
    add_count(point, "count", (int64_t)s->count);
    add_compress(point, p);
    add_count(point, "partial", s->partial > 0 ? s->partial : -1);
    add_count(point, "iterations", p->iterations);
    add_count(point, "warmup", p->warmup);
    add_count(point, "invalid", p->invalid);
    add_times(point, p);
    add_bandwidths(point, p);
    add_conditions(point, p);
    if (!samples) {
        ddp_json_null(point, "samples_us");
        return point;
    }
    cJSON *array = ddp_json_arr(point, "samples_us");
    for (int64_t i = 0; i < p->sample_count; i++)
        cJSON_AddItemToArray(array, make_num(samples[i] / NS_PER_US));
    return point;
}

static void add_epochs(cJSON *train, const struct ddp_train_run *r)
{
    cJSON *epochs = ddp_json_arr(train, "epochs");
    for (int i = 0; i < r->epoch_count; i++) {
        const struct ddp_epoch *e = &r->epochs[i];
        cJSON *epoch = cJSON_CreateObject();
        add_count(epoch, "epoch", e->epoch);
        add_num(epoch, "train_loss", e->train_loss);
        add_num(epoch, "train_accuracy", e->train_accuracy);
        add_num(epoch, "eval_loss", e->eval_loss);
        add_num(epoch, "eval_accuracy", e->eval_accuracy);
        add_num(epoch, "seconds", e->seconds);
        add_num(epoch, "compute_seconds", e->compute_seconds);
        add_num(epoch, "exchange_seconds", e->exchange_seconds);
        add_num(epoch, "exposed_seconds", e->exposed_seconds);
        add_num(epoch, "images_per_second", e->images_per_second);
        add_num(epoch, "wire_bytes_per_rank", e->wire_bytes_per_rank);
        add_num(epoch, "achieved_density", e->achieved_density);
        add_count(epoch, "peak_memory_bytes", e->peak_memory_bytes);
        cJSON_AddItemToArray(epochs, epoch);
    }
}

/* final: null until the run has ended; its accuracy is the last epoch's. */
static void add_outcome(cJSON *train, const struct ddp_train_run *r)
{
    if (isnan(r->total_seconds)) {
        ddp_json_null(train, "final");
    } else {
        cJSON *final = ddp_json_obj(train, "final");
        add_num(final, "eval_accuracy",
                r->epoch_count > 0 ? r->epochs[r->epoch_count - 1].eval_accuracy : NAN);
        add_num(final, "seconds", r->total_seconds);
        add_num(final, "wire_bytes_per_rank", r->total_wire_bytes);
    }
    if (isnan(r->target_accuracy)) {
        ddp_json_null(train, "target");
        return;
    }
    cJSON *target = ddp_json_obj(train, "target");
    add_num(target, "accuracy", r->target_accuracy);
    add_count(target, "epoch", r->target_epoch);
    add_num(target, "seconds", r->target_seconds);
    add_num(target, "wire_bytes_per_rank", r->target_wire_bytes);
}

static cJSON *make_train(const struct ddp_train_run *r)
{
    cJSON *train = cJSON_CreateObject();
    ddp_json_str(train, "model", r->model);
    add_count(train, "parameters", r->parameters);
    ddp_json_str(train, "dataset", r->dataset);
    add_count(train, "train_images", r->train_images);
    add_count(train, "eval_images", r->eval_images);
    add_count(train, "ranks", r->ranks);
    add_count(train, "batch_per_rank", r->batch_per_rank);
    cJSON *optimizer = ddp_json_obj(train, "optimizer");
    ddp_json_str(optimizer, "name", r->optimizer);
    add_num(optimizer, "lr", r->lr);
    add_num(optimizer, "momentum", r->momentum);
    add_num(optimizer, "weight_decay", r->weight_decay);
    add_count(optimizer, "max_steps", r->max_steps);
    cJSON *sync = ddp_json_obj(train, "sync");
    ddp_json_str(sync, "strategy", r->sync);
    ddp_json_str(sync, "feedback", r->feedback);
    add_count(sync, "bucket_bytes", r->bucket_bytes);
    ddp_json_bool(sync, "overlap", r->overlap);
    ddp_json_str(sync, "partition", r->partition);
    ddp_json_str(sync, "init", r->init);
    ddp_json_str(sync, "init_sync", r->init_sync);
    add_count(train, "seed", (int64_t)r->seed);
    add_epochs(train, r);
    add_outcome(train, r);
    return train;
}

static int render(const struct ddp_record *record, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the JSON document");
    add_head(doc, record);
    cJSON *points = ddp_json_arr(doc, "points");
    for (int i = 0; i < record->point_count; i++)
        cJSON_AddItemToArray(points, make_point(&record->points[i], record->samples[i]));
    cJSON *train = ddp_json_arr(doc, "train");
    for (int i = 0; i < record->train_count; i++)
        cJSON_AddItemToArray(train, make_train(&record->train[i]));
    ddp_json_null(doc, "verdict");
    int rc = ddp_json_print_digest(doc, out, err);
    cJSON_Delete(doc);
    return rc;
}

const struct ddp_reporter ddp_reporter_json = {
    .name = "json",
    .summary = "one document, schema ddpbench/1; valid after every point",
    .document = true,
    .render = render,
};
