/* Tables of the members of the structs of record.h. They say where documents and CSV show a member,
 * and which values it may have. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/point_verdict.h"
#include "record/quality.h"
#include "record/record.h"

#define MANY               1000000
#define TEXT               DDP_FIELD_TEXT
#define BOOL               DDP_FIELD_BOOL
#define ENUM               DDP_FIELD_ENUM
#define COUNT              DDP_FIELD_COUNT
#define HASH               DDP_FIELD_HASH
#define NUMBER             DDP_FIELD_NUMBER
#define TIME               DDP_FIELD_TIME
#define OBJECT             DDP_FIELD_OBJECT
#define PATH               DDP_FIELD_PATH
#define BORROWED           DDP_FIELD_BORROWED
#define P(member)          DDP_FIELD_AT(ddp_point, member)
#define E(member)          DDP_FIELD_AT(ddp_epoch, member)
#define T(member)          DDP_FIELD_AT(ddp_train_run, member)
#define C(member)          DDP_FIELD_AT(ddp_control, member)
#define L(member)          DDP_FIELD_AT(ddp_left_out, member)
#define D(member)          DDP_FIELD_AT(ddp_record, member)
#define DERIVED            .name = NULL, .offset = 0, .bytes = 0
#define CHOICE(names, end) .most = (end)-1, .choices = names

static const char *const stop_names[] = {"count", "precision", "max-time", "iters"};

/* Defines a function that takes a point and returns `expression`, for the rows below. */
#define POINT(type, name, expression)                                                              \
    static type name(const void *object)                                                           \
    {                                                                                              \
        const struct ddp_point *p = object;                                                        \
        return expression;                                                                         \
    }
POINT(bool, has_dtype, p->spec.coll != DDP_BARRIER)
POINT(bool, has_op, ddp_coll_reduces(p->spec.coll))
POINT(bool, has_root, ddp_coll_has_root(p->spec.coll))
POINT(bool, has_order, p->of > 0)
POINT(bool, has_series, !isnan(p->series.trend))
/* False for exchanges that are not sparse, because they have no break-even density. */
POINT(bool, has_even, !isnan(p->break_even[0].predicted) || !isnan(p->break_even[0].estimated))
POINT(bool, has_overlap, !isnan(p->overlap.percent))
POINT(bool, has_bound, p->bound_kind[0] != '\0')
POINT(bool, has_straggler, p->straggler.rank >= 0)
POINT(bool, has_arrival, p->spec.arrival[0] != '\0')
POINT(bool, has_samples, p->sample_count > 0)
POINT(double, stochastic_of, strstr(p->spec.compress, "+sr") != NULL)
POINT(double, groups_of, DDP_MAX(p->spec.groups, 1))
POINT(double, median_of, p->time_ns.median)
POINT(double, algbw_of, ddp_point_algbw_GBps(p, p->time_ns.median))
POINT(double, busbw_of, ddp_point_busbw_GBps(p, p->time_ns.median))
POINT(double, effective_of, ddp_point_effective_GBps(p, p->time_ns.median))
POINT(double, pays_below_of, ddp_point_pays_below_GBps(p, DDP_BASELINE_F32))
/* A longer time means a lower bandwidth, so the ends of the interval swap. */
POINT(double, busbw_lo, ddp_point_busbw_GBps(p, p->time_ns.ci95_hi))
POINT(double, busbw_hi, ddp_point_busbw_GBps(p, p->time_ns.ci95_lo))

static void id_of(const void *point, char *out)
{
    ddp_point_id(&((const struct ddp_point *)point)->spec, out, DDP_FIELD_TEXT_BYTES);
}

/* Writes the name of the compressor without its argument and modifiers. */
static void method_of(const void *point, char *out)
{
    snprintf(out, DDP_FIELD_TEXT_BYTES, "%s", ((const struct ddp_point *)point)->spec.compress);
    out[strcspn(out, ":+")] = '\0';
}

static void verdict_of(const void *point, char *out)
{
    ddp_point_verdict(point, out, DDP_FIELD_TEXT_BYTES);
}

static void source_of(double wire_bytes, bool counted, char *out)
{
    snprintf(out, DDP_FIELD_TEXT_BYTES, "%s", counted ? "counted" : "model");
    if (isnan(wire_bytes))
        out[0] = '\0';
}

static void point_source(const void *point, char *out)
{
    const struct ddp_point *p = point;
    source_of(p->wire_bytes_per_rank, p->wire_counted, out);
}

static void epoch_source(const void *epoch, char *out)
{
    const struct ddp_epoch *e = epoch;
    source_of(e->wire_bytes_per_rank, e->wire_counted, out);
}

/* The rows of a straggler. AT is P, E or T. COLUMN is CSV or NO_CSV. */
#define CSV(column)    column
#define NO_CSV(column) NULL
#define STRAGGLER(AT, has, COLUMN)                                                                 \
    {DERIVED, OBJECT, "straggler", .applies = has},                                                \
        {AT(straggler.rank), COUNT, "straggler.rank", COLUMN("straggler_rank"), .least = -1},      \
        {AT(straggler.host), TEXT, "straggler.host", COLUMN("straggler_host")},                    \
        {AT(straggler.cause),                                                                      \
         ENUM,                                                                                     \
         "straggler.cause",                                                                        \
         COLUMN("straggler_cause"),                                                                \
         CHOICE(ddp_straggler_cause_names, DDP_STRAGGLER_CAUSES),                                  \
         .applies = has},                                                                          \
        {AT(straggler.share), NUMBER, "straggler.share", COLUMN("straggler_share")},               \
        {AT(straggler.cost), NUMBER, "straggler.cost", COLUMN("straggler_cost")},                  \
    {                                                                                              \
        AT(straggler.late_ns), DDP_FIELD_TIME_RANGE, "straggler.late_us",                          \
            COLUMN("straggler_late_lo_us,straggler_late_hi_us")                                    \
    }

static bool run_has_straggler(const void *run)
{
    return ((const struct ddp_train_run *)run)->straggler.rank >= 0;
}

static bool epoch_has_straggler(const void *epoch)
{
    return ((const struct ddp_epoch *)epoch)->straggler.rank >= 0;
}

static const struct ddp_field point_fields[] = {
    {DERIVED, TEXT, "id", "id", .text = id_of},
    {P(spec.coll), ENUM, "collective", "collective", CHOICE(ddp_coll_names, DDP_COLL_COUNT)},
    {P(spec.backend), TEXT, "backend", "backend"},
    {P(spec.algorithm), TEXT, "algorithm", "algorithm"},
    {P(algorithm_used), TEXT, "algorithm_used", "algorithm_used"},
    {P(spec.dtype), ENUM, "dtype", "dtype", CHOICE(ddp_dtype_names, DDP_DTYPE_COUNT),
     .applies = has_dtype},
    {P(spec.op), ENUM, "op", "op", CHOICE(ddp_op_names, DDP_OP_COUNT), .applies = has_op},
    {P(spec.root), COUNT, "root", "root", .most = MANY, .applies = has_root},
    {P(spec.placement), ENUM, "placement", "placement",
     CHOICE(ddp_placement_names, DDP_PLACEMENT_COUNT)},
    {P(spec.memory), ENUM, "memory", "memory", CHOICE(ddp_memory_names, DDP_MEMORY_COUNT)},
    {P(spec.ranks), COUNT, "ranks", "ranks", .least = 1, .most = MANY},
    {P(spec.groups), COUNT, .most = MANY},
    {DERIVED, COUNT, "groups", "groups", .least = 1, .number = groups_of},
    {P(spec.group_list), TEXT, "group_list", "group_list"},
    {P(spec.requested_bytes), COUNT, "requested_bytes", "requested_bytes"},
    {P(spec.size_bytes), COUNT, "size_bytes", "size_bytes"},
    {P(spec.count), COUNT, "count", "count"},
    {P(spec.compress), TEXT, NULL, "compress"},
    {DERIVED, TEXT, "compress.method", .text = method_of},
    {P(density), NUMBER, "compress.density", "density"},
    {P(threshold), NUMBER, "compress.threshold", "threshold"},
    {P(compress_block), COUNT, "compress.block", "compress_block", .from = 1},
    {P(compress_rank), COUNT, "compress.rank", "compress_rank", .from = 1},
    {DERIVED, BOOL, "compress.stochastic", "stochastic", .number = stochastic_of},
    {P(feedback), TEXT, "compress.feedback", "feedback"},
    {P(achieved_density), NUMBER, "compress.achieved_density", "achieved_density"},
    {P(spec.graph), BOOL, "graph", "graph"},
    {P(spec.split), TEXT, "split", "split"},
    {P(spec.busiest_bytes), COUNT, "busiest_bytes", "busiest_bytes", .from = 1},
    {P(spec.imbalance), NUMBER, "imbalance", "imbalance"},
    {P(spec.partial), COUNT, "partial", "partial", .most = MANY, .from = 1},
    {P(spec.overlap), BOOL},
    {P(launch), COUNT, "launch", "launch", .most = MANY, .from = 1},
    {P(order), COUNT, "order", "order", .applies = has_order},
    {P(place), COUNT},
    {P(of), COUNT},
    {P(iterations), COUNT, "iterations", "iterations"},
    {P(warmup), COUNT, "warmup", "warmup"},
    {P(invalid), COUNT, "invalid", "invalid"},
    {P(start), ENUM, "start", "start", CHOICE(ddp_start_names, DDP_START_COUNT)},
    {P(stop), ENUM, "stop", "stop", CHOICE(stop_names, DDP_STOP_ITERS + 1)},
    {P(block), COUNT, "block", "block", .from = 2},
    {P(injected_percent), NUMBER, "injected_percent", "injected_percent"},
    {P(time_ns.n), COUNT},
    {P(time_ns.median), TIME, "time_us.median", "time_median_us"},
    {P(time_ns.ci95_lo), DDP_FIELD_TIME_RANGE, "time_us.ci95", "time_ci95_lo_us,time_ci95_hi_us"},
    {P(time_ns.mean), TIME, "time_us.mean", "time_mean_us"},
    {P(time_ns.stddev), TIME, "time_us.stddev", "time_stddev_us"},
    {P(time_ns.min), TIME, "time_us.min", "time_min_us"},
    {P(time_ns.p25), TIME, "time_us.p25", "time_p25_us"},
    {P(time_ns.p75), TIME, "time_us.p75", "time_p75_us"},
    {P(time_ns.p95), TIME, "time_us.p95", "time_p95_us"},
    {P(time_ns.p99), TIME, "time_us.p99", "time_p99_us"},
    {P(time_ns.max), TIME, "time_us.max", "time_max_us"},
    {P(rank_mean_ns[0]), TIME, "rank_mean_us.min", "rank_mean_min_us"},
    {P(rank_mean_ns[1]), TIME, "rank_mean_us.avg", "rank_mean_avg_us"},
    {P(rank_mean_ns[2]), TIME, "rank_mean_us.max", "rank_mean_max_us"},
    {DERIVED, OBJECT, "series", .applies = has_series},
    {P(series.drifting), BOOL, "series.drifting", "drifting", .applies = has_series},
    {P(series.autocorrelated), BOOL, "series.autocorrelated", "autocorrelated",
     .applies = has_series},
    {P(series.trend), NUMBER, "series.trend", "trend"},
    {P(series.autocorrelation), NUMBER, "series.autocorrelation", "autocorrelation",
     .applies = has_series},
    {P(series.shift), NUMBER, "series.shift", "shift", .applies = has_series},
    {DERIVED, NUMBER, "algbw_GBps", "algbw_GBps", .number = algbw_of},
    {DERIVED, NUMBER, "busbw_GBps", "busbw_GBps", .number = busbw_of},
    {DERIVED, DDP_FIELD_RANGE, "busbw_ci95_GBps", "busbw_ci95_lo_GBps,busbw_ci95_hi_GBps",
     .number = busbw_lo, .upper = busbw_hi},
    {DERIVED, NUMBER, "effective_GBps", "effective_GBps", .number = effective_of},
    {P(wire_bytes_per_rank), NUMBER, "wire_bytes_per_rank", "wire_bytes_per_rank"},
    {P(wire_counted), BOOL},
    {DERIVED, TEXT, "wire_bytes_source", "wire_bytes_source", .text = point_source},
    {P(phase_ns[0]), TIME, "phase_us.encode", "phase_encode_us"},
    {P(phase_ns[1]), TIME, "phase_us.exchange", "phase_exchange_us"},
    {P(phase_ns[2]), TIME, "phase_us.decode", "phase_decode_us"},
    {P(phase_ci95_ns[0]), DDP_FIELD_TIME_RANGE, "phase_us.encode_ci95",
     "phase_encode_ci95_lo_us,phase_encode_ci95_hi_us"},
    {P(phase_ci95_ns[1]), DDP_FIELD_TIME_RANGE, "phase_us.exchange_ci95",
     "phase_exchange_ci95_lo_us,phase_exchange_ci95_hi_us"},
    {P(phase_ci95_ns[2]), DDP_FIELD_TIME_RANGE, "phase_us.decode_ci95",
     "phase_decode_ci95_lo_us,phase_decode_ci95_hi_us"},
    {P(dense_ns[DDP_BASELINE_F32]), TIME, "dense_us.f32", "dense_f32_us"},
    {P(dense_ns[DDP_BASELINE_F16]), TIME, "dense_us.f16", "dense_f16_us"},
    {P(dense_algorithm[DDP_BASELINE_F32]), TEXT, "dense_algorithm.f32", "dense_algorithm_f32"},
    {P(dense_algorithm[DDP_BASELINE_F16]), TEXT, "dense_algorithm.f16", "dense_algorithm_f16"},
    {DERIVED, OBJECT, "break_even", .applies = has_even},
#define BREAK_EVEN(baseline, name, member)                                                         \
    {                                                                                              \
        P(break_even[baseline].member), NUMBER, "break_even." name "." #member,                    \
            "break_even_" name "_" #member, .applies = has_even                                    \
    }
    BREAK_EVEN(DDP_BASELINE_F32, "f32", predicted),
    BREAK_EVEN(DDP_BASELINE_F32, "f32", estimated),
    BREAK_EVEN(DDP_BASELINE_F32, "f32", measured),
    BREAK_EVEN(DDP_BASELINE_F16, "f16", predicted),
    BREAK_EVEN(DDP_BASELINE_F16, "f16", estimated),
    BREAK_EVEN(DDP_BASELINE_F16, "f16", measured),
#undef BREAK_EVEN
    {DERIVED, NUMBER, "pays_below_GBps", "pays_below_GBps", .number = pays_below_of},
    {DERIVED, TEXT, "verdict", "verdict", .text = verdict_of},
    {P(overflow_count), COUNT, "overflow_count", "overflow_count", .least = -1},
    {DERIVED, OBJECT, "overlap", .applies = has_overlap},
    {DERIVED, TIME, "overlap.pure_us", "overlap_pure_us", .applies = has_overlap,
     .number = median_of},
    {P(overlap.compute_ns), TIME, "overlap.compute_us", "overlap_compute_us"},
    {P(overlap.total_ns), TIME, "overlap.total_us", "overlap_total_us"},
    {P(overlap.percent), NUMBER, "overlap.percent", "overlap_percent"},
    {P(device_ns), TIME, "device_us", "device_us"},
    {P(device_max_ns), TIME, "device_max_us", "device_max_us"},
    {P(symmetric), TEXT, "symmetric", "symmetric"},
    {P(correctness_only), BOOL},
    {P(skew_start_ns), TIME, "skew_us.start", "skew_start_us"},
    {P(skew_exit_ns), TIME, "skew_us.exit", "skew_exit_us"},
    {DERIVED, OBJECT, "arrival", .applies = has_arrival},
    {P(spec.arrival), TEXT, "arrival.pattern", "arrival"},
    {P(after_last_ns), TIME, "arrival.after_last_us", "after_last_us"},
    STRAGGLER(P, has_straggler, CSV),
    {P(pingpong_ns[0]), NUMBER, "pingpong_ns.before", "pingpong_before_ns"},
    {P(pingpong_ns[1]), NUMBER, "pingpong_ns.after", "pingpong_after_ns"},
    {P(page_bytes), COUNT, "page_bytes", "page_bytes", .least = -1},
    {P(interference.steal_ms), NUMBER, "conditions.steal_ms", "steal_ms"},
    {P(interference.throttled_ms), NUMBER, "conditions.throttled_ms", "throttled_ms"},
    {P(interference.involuntary_switches), COUNT, "conditions.involuntary_switches",
     "involuntary_switches", .least = -1},
    {P(network[DDP_NET_SEGMENTS]), COUNT, "conditions.tcp_segments", "tcp_segments", .least = -1},
    {P(network[DDP_NET_RETRANSMITS]), COUNT, "conditions.retransmits", "retransmits", .least = -1},
    {P(network[DDP_NET_TIMEOUTS]), COUNT, "conditions.tcp_timeouts", "tcp_timeouts", .least = -1},
    {P(network[DDP_NET_TCP_DROPS]), COUNT, "conditions.tcp_drops", "tcp_drops", .least = -1},
    {P(network[DDP_NET_NIC_ERRORS]), COUNT, "conditions.nic_errors", "nic_errors", .least = -1},
    {P(network[DDP_NET_NIC_DROPS]), COUNT, "conditions.nic_drops", "nic_drops", .least = -1},
    {P(interference.clock_MHz), NUMBER, "conditions.clock_MHz", "clock_MHz"},
    {P(oversubscribed), BOOL, "conditions.oversubscribed", "oversubscribed"},
    {DDP_FIELD_SHOWN(ddp_point, quality), DDP_FIELD_SET, "quality", "quality",
     CHOICE(ddp_quality_names, DDP_QUALITY_COUNT)},
    {DERIVED, OBJECT, "bound", .applies = has_bound},
    {P(bound_kind), TEXT, "bound.kind", "bound"},
    {P(bound_GBps), NUMBER, "bound.GBps", "bound_GBps"},
    {P(bound_ns), TIME, "bound.us", "bound_us"},
    {P(bound_fraction), NUMBER, "bound.fraction", "bound_fraction"},
    {P(bound_before_ns), TIME, "bound.before_us", "bound_before_us"},
    {P(bound_after_ns), TIME, "bound.after_us", "bound_after_us"},
    {P(check), ENUM, "check.mode", "check", CHOICE(ddp_check_names, DDP_CHECK_ALL + 1)},
    {P(check_operations), COUNT, "check.operations", "check_operations", .least = -1},
    {P(check_elements), COUNT, "check.elements", "check_elements", .least = -1},
    {P(check_wrong), COUNT, "check.wrong", "check_wrong", .least = -1},
    {DERIVED, DDP_FIELD_LIST, "samples_us", .applies = has_samples},
};

static const struct ddp_field epoch_fields[] = {
    {E(epoch), COUNT, "epoch", "epoch", .least = 1},
    {E(steps), COUNT, "steps", "steps"},
    {E(train_loss), NUMBER, "train_loss", "train_loss"},
    {E(train_accuracy), NUMBER, "train_accuracy", "train_accuracy"},
    {E(eval_loss), NUMBER, "eval_loss", "eval_loss"},
    {E(eval_accuracy), NUMBER, "eval_accuracy", "eval_accuracy"},
    {E(seconds), NUMBER, "seconds", "seconds"},
    {E(compute_seconds), NUMBER, "compute_seconds", "compute_seconds"},
    {E(exchange_seconds), NUMBER, "exchange_seconds", "exchange_seconds"},
    {E(exposed_seconds), NUMBER, "exposed_seconds", "exposed_seconds"},
    {E(images_per_second), NUMBER, "images_per_second", "images_per_second"},
    {E(encode_seconds), NUMBER, "encode_seconds", "encode_seconds"},
    {E(decode_seconds), NUMBER, "decode_seconds", "decode_seconds"},
    {E(wire_bytes_per_rank), NUMBER, "wire_bytes_per_rank", "wire_bytes_per_rank"},
    {E(wire_counted), BOOL},
    {DERIVED, TEXT, "wire_bytes_source", "wire_bytes_source", .text = epoch_source},
    {E(achieved_density), NUMBER, "achieved_density", "achieved_density"},
    {E(overflow_count), COUNT, "overflow_count", "overflow_count", .least = -1},
    {E(peak_memory_bytes), COUNT, "peak_memory_bytes", "peak_memory_bytes", .least = -1},
    {E(exchange_busbw_GBps), NUMBER, "exchange_busbw_GBps", "exchange_busbw_GBps"},
    STRAGGLER(E, epoch_has_straggler, CSV),
    {E(straggler.bucket), COUNT, "straggler.bucket", "straggler_bucket", .least = -1},
    {E(parameter_hash), HASH},
};

/* The final accuracy is that of the last epoch. */
static double final_accuracy(const void *run)
{
    const struct ddp_train_run *r = run;
    return r->epoch_count > 0 ? r->epochs[r->epoch_count - 1].eval_accuracy : NAN;
}

static const struct ddp_field train_fields[] = {
    {T(model), TEXT, "model", "model"},
    {T(parameters), COUNT, "parameters"},
    {T(dataset), TEXT, "dataset", "dataset"},
    {T(data_path), DDP_FIELD_PATH, "data.path"},
    {T(data_hash), HASH, "data.hash"},
    {T(synthetic), BOOL, "synthetic"},
    {T(train_images), COUNT, "train_images"},
    {T(eval_images), COUNT, "eval_images"},
    {T(ranks), COUNT, "ranks", "ranks", .least = 1, .most = MANY},
    {T(baseline), BOOL, "baseline", "baseline"},
    {T(launch), COUNT, "launch", "launch", .most = MANY, .from = 1},
    {T(batch_per_rank), COUNT, "batch_per_rank", "batch_per_rank"},
    {T(device), TEXT, "compute.device"},
    {T(blas), DDP_FIELD_PATH, "compute.library"},
    {T(graph), BOOL, "compute.graph"},
    {T(tf32), BOOL, "compute.tf32"},
    {T(optimizer), TEXT, "optimizer.name", "optimizer"},
    {T(lr), NUMBER, "optimizer.lr", "lr"},
    {T(momentum), NUMBER, "optimizer.momentum", "momentum"},
    {T(weight_decay), NUMBER, "optimizer.weight_decay", "weight_decay"},
    {T(max_steps), COUNT, "optimizer.max_steps", .least = -1},
    {T(optimizer_bytes), COUNT, "optimizer.state_bytes", .least = -1},
    {T(sync), TEXT, "sync.strategy", "sync"},
    {T(feedback), TEXT, "sync.feedback", "feedback"},
    {T(aggregate), TEXT, "sync.aggregate", "aggregate"},
    {T(algorithm), TEXT, "sync.algorithm"},
    {T(bucket_bytes), COUNT, "sync.bucket_bytes", "bucket_bytes", .least = -1},
    {T(overlap), BOOL, "sync.overlap", "overlap"},
    {T(partition), TEXT, "sync.partition", "partition"},
    {T(init), TEXT, "sync.init", "init"},
    {T(init_sync), TEXT, "sync.init_sync", "init_sync"},
    {T(seed), COUNT, "seed", "seed"},
    {DERIVED, DDP_FIELD_LIST, "epochs"},
    STRAGGLER(T, run_has_straggler, NO_CSV),
    {T(straggler.bucket), COUNT, "straggler.bucket", .least = -1},
    {T(total_seconds), OBJECT, "final"},
    {DERIVED, NUMBER, "final.eval_accuracy", .number = final_accuracy},
    {T(total_seconds), NUMBER, "final.seconds"},
    {T(total_wire_bytes), NUMBER, "final.wire_bytes_per_rank"},
    {T(target_accuracy), OBJECT, "target"},
    {T(target_accuracy), NUMBER, "target.accuracy"},
    {T(target_epoch), COUNT, "target.epoch", .least = -1},
    {T(target_seconds), NUMBER, "target.seconds"},
    {T(target_wire_bytes), NUMBER, "target.wire_bytes_per_rank"},
};

static const struct ddp_field left_out_fields[] = {
    {L(what), DDP_FIELD_PATH, "what"},
    {L(ranks), COUNT, "ranks", .least = 1, .most = MANY},
    {L(points), COUNT, "points", .least = -1, .most = MANY},
    {L(reason), DDP_FIELD_PATH, "reason"},
};

static const struct ddp_field control_fields[] = {
    {C(ranks), COUNT, "ranks", .least = 1, .most = MANY},
    {C(bytes_per_rank), COUNT, "bytes_per_rank"},
    {C(copy_GBps), NUMBER, "copy_GBps"},
    {C(read_GBps), NUMBER, "read_GBps"},
};

static void schema_of(const void *record, char *out)
{
    (void)record;
    snprintf(out, DDP_FIELD_TEXT_BYTES, "%s", DDP_RECORD_SCHEMA);
}

/* Writes the name of the clock that base/clock.h reads. */
static void clock_of(const void *record, char *out)
{
    (void)record;
    snprintf(out, DDP_FIELD_TEXT_BYTES, "CLOCK_MONOTONIC");
}

static const struct ddp_field record_fields[] = {
    {DERIVED, PATH, "schema", .text = schema_of},
    {D(status), ENUM, "status", CHOICE(ddp_status_names, DDP_STATUS_FAILED + 1)},
    {D(reason), PATH, "reason"},
    {D(label), PATH, "label"},
    {D(note), PATH, "note"},
    {D(build.version), BORROWED, "tool.version"},
    {D(build.commit), BORROWED, "tool.commit"},
    {D(build.dirty), BOOL, "tool.dirty"},
    {D(build.compiler), BORROWED, "tool.compiler"},
    {D(build.cflags), BORROWED, "tool.cflags"},
    {D(simd), PATH, "tool.simd"},
    {D(feature_mpi), PATH, "tool.features.mpi"},
    {D(feature_ucx), PATH, "tool.features.ucx"},
    {D(feature_nccl), PATH, "tool.features.nccl"},
    {D(feature_cuda), PATH, "tool.features.cuda"},
    {D(feature_blas), PATH, "tool.features.blas"},
    {D(command), PATH, "command.name"},
    {DERIVED, DDP_FIELD_LIST, "command.argv"},
    {D(started), PATH, "started"},
    {D(finished), PATH, "finished"},
    {D(seed), COUNT, "seed", .least = -1},
    {D(world_ranks), COUNT, "world.ranks", .most = MANY},
    {D(world_backend), PATH, "world.backend"},
    {D(nccl_blocking), PATH, "world.nccl_blocking"},
    {D(launcher), PATH, "world.launcher"},
    {D(launch), PATH, "world.launch"},
    {D(transports), PATH, "world.transports"},
    {D(subset), PATH, "world.subset"},
    {D(comm_init_ns), TIME, "world.comm_us.init"},
    {D(comm_split_ns), TIME, "world.comm_us.split"},
    {D(comm_destroy_ns), TIME, "world.comm_us.destroy"},
    {DERIVED, DDP_FIELD_LIST, "world.hosts"},
    {DERIVED, DDP_FIELD_LIST, "world.rank_devices"},
    {DERIVED, OBJECT, "environment"},
};

static const struct ddp_field timer_fields[] = {
    {DERIVED, PATH, "timer.clock", .text = clock_of},
    {D(timer_cost_ns), NUMBER, "timer.cost_ns"},
    {D(timer_resolution_ns), NUMBER, "timer.resolution_ns"},
};

#define H(member) DDP_FIELD_AT(ddp_host, member)
static const struct ddp_field host_fields[] = {
    {H(name), TEXT, "name"},
    {H(ranks), COUNT, "ranks"},
    {H(cpu), TEXT, "cpu"},
    {H(cores), COUNT, "cores"},
    {H(usable_cores), COUNT, "usable_cores", .from = 1},
    {H(memory_bytes), COUNT, "memory_bytes", .least = -1},
    {H(kernel), TEXT, "kernel"},
    {H(governor), TEXT, "governor"},
    {H(load), NUMBER, "load"},
    {H(network.nic.name), TEXT, "nic.name"},
    {H(network.nic.driver), TEXT, "nic.driver"},
    {H(network.nic.speed_Mbps), COUNT, "nic.speed_Mbps", .least = -1},
    {H(network.nic.mtu), COUNT, "nic.mtu", .least = -1},
    {H(network.congestion_control), TEXT, "congestion_control"},
    {.name = NULL, .kind = DDP_FIELD_LIST, .path = "gpus"},
};

#define R(member) DDP_FIELD_AT(ddp_rank_device, member)
static const struct ddp_field rank_fields[] = {
    {R(host), TEXT, "host"},
    {R(device), COUNT, "device", .least = -1},
    {R(bus), TEXT, "bus"},
};

static double power_limit(const void *gpu)
{
    const double watts = ((const struct ddp_gpu_facts *)gpu)->power_limit_W;
    return watts >= 0 ? watts : NAN;
}

#define G(member) DDP_FIELD_AT(ddp_gpu_facts, member)
static const struct ddp_field gpu_fields[] = {
    {G(name), TEXT, "name"},
    {G(bus), TEXT, "bus"},
    {G(driver), TEXT, "driver"},
    {G(memory_bytes), COUNT, "memory_bytes", .least = -1},
    {G(sm_clock_MHz), COUNT, "sm_clock_MHz", .least = -1},
    {G(sm_clock_max_MHz), COUNT, "sm_clock_max_MHz", .least = -1},
    {G(memory_clock_MHz), COUNT, "memory_clock_MHz", .least = -1},
    {G(temperature_C), COUNT, "temperature_C", .least = -1},
    {DERIVED, NUMBER, "power_limit_W", .number = power_limit},
    {G(throttle), TEXT, "throttle"},
};

const struct ddp_fields ddp_record_fields = {record_fields, DDP_COUNT_OF(record_fields)};
const struct ddp_fields ddp_timer_fields = {timer_fields, DDP_COUNT_OF(timer_fields)};
const struct ddp_fields ddp_point_fields = {point_fields, DDP_COUNT_OF(point_fields)};
const struct ddp_fields ddp_epoch_fields = {epoch_fields, DDP_COUNT_OF(epoch_fields)};
const struct ddp_fields ddp_train_fields = {train_fields, DDP_COUNT_OF(train_fields)};
const struct ddp_fields ddp_control_fields = {control_fields, DDP_COUNT_OF(control_fields)};
const struct ddp_fields ddp_left_out_fields = {left_out_fields, DDP_COUNT_OF(left_out_fields)};
const struct ddp_fields ddp_host_fields = {host_fields, DDP_COUNT_OF(host_fields)};
const struct ddp_fields ddp_rank_fields = {rank_fields, DDP_COUNT_OF(rank_fields)};
const struct ddp_fields ddp_gpu_fields = {gpu_fields, DDP_COUNT_OF(gpu_fields)};
