/* A point in the JSON document, key by key. */
#include "report/json_point.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/json_values.h"

#define NS_PER_US 1e3

static void add_compress(cJSON *point, const struct ddp_point *p)
{
    char method[sizeof p->spec.compress];
    snprintf(method, sizeof method, "%s", p->spec.compress);
    method[strcspn(method, ":")] = '\0';
    cJSON *compress = ddp_json_obj(point, "compress");
    ddp_json_str(compress, "method", method);
    ddp_json_num(compress, "density", p->density);
    ddp_json_num(compress, "threshold", p->threshold);
    ddp_json_str(compress, "feedback", p->feedback);
    ddp_json_num(compress, "achieved_density", p->achieved_density);
}

static void add_times(cJSON *point, const struct ddp_point *p)
{
    const struct ddp_summary *t = &p->time_ns;
    cJSON *time = ddp_json_obj(point, "time_us");
    ddp_json_us(time, "median", t->median);
    ddp_json_pair(time, "ci95", t->ci95_lo / NS_PER_US, t->ci95_hi / NS_PER_US);
    ddp_json_us(time, "mean", t->mean);
    ddp_json_us(time, "stddev", t->stddev);
    ddp_json_us(time, "min", t->min);
    ddp_json_us(time, "p25", t->p25);
    ddp_json_us(time, "p75", t->p75);
    ddp_json_us(time, "p95", t->p95);
    ddp_json_us(time, "p99", t->p99);
    ddp_json_us(time, "max", t->max);
    cJSON *means = ddp_json_obj(point, "rank_mean_us");
    ddp_json_us(means, "min", p->rank_mean_ns[0]);
    ddp_json_us(means, "avg", p->rank_mean_ns[1]);
    ddp_json_us(means, "max", p->rank_mean_ns[2]);
}

/* A longer time means a lower bandwidth, so the ends of the interval swap. */
static void add_bandwidths(cJSON *point, const struct ddp_point *p)
{
    const struct ddp_summary *t = &p->time_ns;
    ddp_json_num(point, "algbw_GBps", ddp_point_algbw_GBps(p, t->median));
    ddp_json_num(point, "busbw_GBps", ddp_point_busbw_GBps(p, t->median));
    ddp_json_pair(point, "busbw_ci95_GBps", ddp_point_busbw_GBps(p, t->ci95_hi),
                  ddp_point_busbw_GBps(p, t->ci95_lo));
    ddp_json_num(point, "effective_GBps", ddp_point_effective_GBps(p, t->median));
    ddp_json_num(point, "wire_bytes_per_rank", p->wire_bytes_per_rank);
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
    ddp_json_num(bound, "GBps", p->bound_GBps);
    ddp_json_us(bound, "us", p->bound_ns);
    ddp_json_num(bound, "fraction", p->bound_fraction);
}

/* Adds whether the iterations satisfy the assumptions of the confidence interval. */
static void add_series(cJSON *point, const struct ddp_series *s)
{
    if (isnan(s->trend)) {
        ddp_json_null(point, "series");
        return;
    }
    cJSON *series = ddp_json_obj(point, "series");
    ddp_json_bool(series, "drifting", s->drifting);
    ddp_json_bool(series, "autocorrelated", s->autocorrelated);
    ddp_json_num(series, "trend", s->trend);
    ddp_json_num(series, "autocorrelation", s->autocorrelation);
}

static void add_interference(cJSON *point, const struct ddp_interference *i)
{
    cJSON *conditions = ddp_json_obj(point, "conditions");
    ddp_json_num(conditions, "steal_ms", i->steal_ms);
    ddp_json_num(conditions, "throttled_ms", i->throttled_ms);
    ddp_json_count(conditions, "involuntary_switches", i->involuntary_switches);
}

/* Adds how the iterations were run. */
static void add_iterations(cJSON *point, const struct ddp_point *p)
{
    ddp_json_count(point, "launch", p->launch > 0 ? p->launch : -1);
    ddp_json_count(point, "order", p->of > 0 ? p->order : -1);
    ddp_json_count(point, "iterations", p->iterations);
    ddp_json_count(point, "warmup", p->warmup);
    ddp_json_count(point, "invalid", p->invalid);
    ddp_json_str(point, "start", ddp_start_name(p->start));
    ddp_json_str(point, "stop", ddp_stop_name(p->stop));
    ddp_json_count(point, "block", p->block > 1 ? p->block : -1);
    ddp_json_num(point, "injected_percent", p->injected_percent);
}

/* Adds the break-even densities, or null if none is known, as for exchanges that are not sparse. */
static void add_break_even(cJSON *point, const struct ddp_point *p)
{
    static const char *const key[DDP_BASELINE_COUNT] = {"f32", "f16"};
    cJSON *dense = ddp_json_obj(point, "dense_us"), *even = NULL;
    cJSON *algorithm = ddp_json_obj(point, "dense_algorithm");
    if (isnan(p->break_even[0].predicted) && isnan(p->break_even[0].estimated))
        ddp_json_null(point, "break_even");
    else
        even = ddp_json_obj(point, "break_even");
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        ddp_json_us(dense, key[i], p->dense_ns[i]);
        ddp_json_str(algorithm, key[i], p->dense_algorithm[i]);
        cJSON *against = even ? ddp_json_obj(even, key[i]) : NULL;
        if (!against)
            continue;
        ddp_json_num(against, "predicted", p->break_even[i].predicted);
        ddp_json_num(against, "estimated", p->break_even[i].estimated);
        ddp_json_num(against, "measured", p->break_even[i].measured);
    }
}

static void add_overlap(cJSON *point, const struct ddp_point *p)
{
    if (isnan(p->overlap.percent)) {
        ddp_json_null(point, "overlap");
        return;
    }
    cJSON *overlap = ddp_json_obj(point, "overlap");
    ddp_json_us(overlap, "pure_us", p->time_ns.median);
    ddp_json_us(overlap, "compute_us", p->overlap.compute_ns);
    ddp_json_us(overlap, "total_us", p->overlap.total_ns);
    ddp_json_num(overlap, "percent", p->overlap.percent);
}

static void add_conditions(cJSON *point, const struct ddp_point *p)
{
    cJSON *phase = ddp_json_obj(point, "phase_us");
    ddp_json_us(phase, "encode", p->phase_ns[0]);
    ddp_json_us(phase, "exchange", p->phase_ns[1]);
    ddp_json_us(phase, "decode", p->phase_ns[2]);
    add_break_even(point, p);
    ddp_json_count(point, "overflow_count", p->overflow_count);
    add_overlap(point, p);
    ddp_json_us(point, "device_us", p->device_ns);
    cJSON *skew = ddp_json_obj(point, "skew_us");
    ddp_json_us(skew, "start", p->skew_start_ns);
    ddp_json_us(skew, "exit", p->skew_exit_ns);
    cJSON *pingpong = ddp_json_obj(point, "pingpong_ns");
    ddp_json_num(pingpong, "before", p->pingpong_ns[0]);
    ddp_json_num(pingpong, "after", p->pingpong_ns[1]);
    ddp_json_count(point, "page_bytes", p->page_bytes);
    add_interference(point, &p->interference);
    add_bound(point, p);
    cJSON *check = ddp_json_obj(point, "check");
    ddp_json_str(check, "mode", ddp_check_name(p->check));
    ddp_json_count(check, "elements", p->check_elements);
    ddp_json_count(check, "wrong", p->check_wrong);
}

cJSON *ddp_json_point(const struct ddp_point *p, const double *samples)
{
    cJSON *point = cJSON_CreateObject();
    ddp_json_point_into(point, p, samples);
    return point;
}

void ddp_json_point_into(cJSON *point, const struct ddp_point *p, const double *samples)
{
    const struct ddp_point_spec *s = &p->spec;
    char id[192];
    ddp_point_id(s, id, sizeof id);
    ddp_json_str(point, "id", id);
    ddp_json_str(point, "collective", ddp_coll_name(s->coll));
    ddp_json_str(point, "backend", s->backend);
    ddp_json_str(point, "algorithm", s->algorithm);
    ddp_json_str(point, "algorithm_used", p->algorithm_used);
    ddp_json_str(point, "dtype", s->coll == DDP_BARRIER ? NULL : ddp_dtype_name(s->dtype));
    ddp_json_str(point, "op", ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : NULL);
    ddp_json_count(point, "root", ddp_coll_has_root(s->coll) ? s->root : -1);
    ddp_json_str(point, "placement", ddp_placement_name(s->placement));
    ddp_json_str(point, "memory", ddp_memory_name(s->memory));
    ddp_json_count(point, "ranks", s->ranks);
    ddp_json_count(point, "groups", s->groups > 1 ? s->groups : 1);
    ddp_json_count(point, "requested_bytes", (int64_t)s->requested_bytes);
    ddp_json_count(point, "size_bytes", (int64_t)s->size_bytes);
    ddp_json_count(point, "count", (int64_t)s->count);
    add_compress(point, p);
    ddp_json_bool(point, "graph", s->graph);
    ddp_json_count(point, "partial", s->partial > 0 ? s->partial : -1);
    add_iterations(point, p);
    add_times(point, p);
    add_series(point, &p->series);
    add_bandwidths(point, p);
    add_conditions(point, p);
    if (!samples) {
        ddp_json_null(point, "samples_us");
        return;
    }
    cJSON *array = ddp_json_arr(point, "samples_us");
    for (int64_t i = 0; i < p->sample_count; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(samples[i] / NS_PER_US));
}
