/* The plan: options of a collective command become a list of points, checked before anything runs.
 * Also the arithmetic of memory: what every rank will need, refused before it is allocated. */
#ifndef DDP_BENCH_PLAN_H
#define DDP_BENCH_PLAN_H

#include <stdbool.h>

#include "base/opt.h"
#include "comm/backend.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Points a plan may have: more is a slip of the finger (-i 1). */
#define DDP_PLAN_POINTS_MAX 65536
/* Buffers a rank holds at once: send and recv; in place the second keeps the input to restore. */
#define DDP_PLAN_BUFFERS 2
/* Largest --iters: their durations are kept in memory. The most without --iters: their interval is
 * a hundred ranks wide either way. */
#define DDP_PLAN_ITERS_MAX      10000000
#define DDP_PLAN_ITERS_ADAPTIVE 10000

/* The collective options of design.md section 2, as parsed. Which ranks and backend: the world's
 * business. Sizes: the list, or when it is empty the range from min_bytes to max_bytes, stepped by
 * exactly one of step_factor and step_bytes (the other is 0). */
struct ddp_bench_options {
    enum ddp_coll coll;
    struct ddp_size_list sizes;
    uint64_t min_bytes, max_bytes, step_bytes;
    int64_t step_factor;
    struct ddp_string_list algorithms;
    struct ddp_int_list dtypes, ops;
    int64_t root;
    int placement;
    int64_t groups;
    int memory;
    int64_t iters, warmup;
    double precision, max_time_s;
    int start;
    int64_t block;
    int order;
    double inject_percent;
    char inject_id[192];
    int check;
    int64_t seed;
    bool samples, dry_run;
    bool graph;
    bool overlap;
    struct ddp_string_list compress;
    int feedback;
    int64_t partial;
    struct ddp_string_list gradient;
    bool break_even;
};
enum ddp_order { DDP_ORDER_RANDOM, DDP_ORDER_GIVEN, DDP_ORDER_COUNT };
enum ddp_feedback { DDP_FEEDBACK_AUTO, DDP_FEEDBACK_ON, DDP_FEEDBACK_OFF, DDP_FEEDBACK_COUNT };
struct ddp_bench_plan {
    struct ddp_point_spec *points;
    int count;
    uint64_t buffer_bytes;
    uint64_t bytes_per_rank;
    uint64_t compress_registered, compress_private;
    enum ddp_memory memory;
    bool all_algorithms, all_dtypes, all_ops;
    char rounding[256];
};
int ddp_plan_check(const struct ddp_bench_options *options, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_plan_group_ranks(const struct ddp_bench_options *options, int ranks, int *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* Expands options into points for groups of `ranks` ranks on `backend`: dtypes x operations x
 * algorithms x placements x sizes, the last running fastest. DDP_EUSAGE for what contradicts
 * itself, DDP_ENOMEM (with the arithmetic in the text) when ranks * bytes_per_rank exceeds
 * available_bytes (-1: not known, or checked before). *out is released with ddp_plan_release. */
int ddp_plan_make(const struct ddp_bench_options *options, const char *backend, int ranks,
                  int64_t available_bytes, struct ddp_bench_plan *out,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_ENOMEM when what `ranks` ranks of one host need exceeds available_bytes. */
int ddp_plan_fits(const struct ddp_bench_plan *plan, int ranks, int64_t available_bytes,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_EUSAGE when a named algorithm will refuse a point, as far as that is known before there are
 * ranks: what contradicts itself costs no run. */
int ddp_plan_foresee(const struct ddp_bench_plan *plan, const struct ddp_backend *backend,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_plan_release(struct ddp_bench_plan *plan);

/* plan_compress.c: what belongs to --compress and --partial. Most chunks of --partial. */
#define DDP_PLAN_PARTIAL_MAX 1024
/* Are they legal, alone and with the other options? DDP_EUSAGE. */
int ddp_plan_check_compress(const struct ddp_bench_options *options,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Does any point of these options exchange less than all? */
bool ddp_plan_reduces(const struct ddp_bench_options *options);
/* Names of algorithms that can exchange method i of options->compress, "auto" left out;
 * NULL-terminated by j. */
const char *ddp_plan_algorithm(const struct ddp_bench_options *options, int method, int j);
/* The text of method i, "none" without --compress; how many there are, at least 1. */
const char *ddp_plan_method(const struct ddp_bench_options *options, int i);
int ddp_plan_methods(const struct ddp_bench_options *options);
/* Is point i's error feedback on? */
bool ddp_plan_feedback(const struct ddp_bench_options *options, const struct ddp_point_spec *spec);
/* Adds what compressing the points needs to the plan's memory; on_device: the gradients lie on one.
 */
void ddp_plan_add_compress_bytes(const struct ddp_bench_options *options, bool on_device,
                                 struct ddp_bench_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
