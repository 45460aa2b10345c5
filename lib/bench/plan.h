/* The plan: the options of a collective command become a list of points, which is checked before
 * anything runs. A plan also contains the memory that every rank will need; a plan that does not
 * fit is refused before memory is allocated. */
#ifndef DDP_BENCH_PLAN_H
#define DDP_BENCH_PLAN_H

#include <stdbool.h>

#include "base/opt.h"
#include "comm/backend.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most points of a plan. A larger number is probably a typing error (-i 1). */
#define DDP_PLAN_POINTS_MAX 65536
/* Buffers of a rank: send and receive. In place, the second one keeps the input. */
#define DDP_PLAN_BUFFERS 2
/* Largest --iters; their durations are kept in memory. DDP_PLAN_ITERS_ADAPTIVE is the limit without
 * --iters: more iterations hardly narrow the interval. */
#define DDP_PLAN_ITERS_MAX      10000000
#define DDP_PLAN_ITERS_ADAPTIVE 10000

/* The parsed options of a collective command, without those that choose ranks and backend. */
struct ddp_bench_options {
    enum ddp_coll coll;
    /* Sizes in bytes. If the list is empty: the range from min_bytes to max_bytes, stepped by
     * step_factor or step_bytes; the other one is 0. */
    struct ddp_size_list sizes;
    uint64_t min_bytes, max_bytes, step_bytes;
    int64_t step_factor;
    struct ddp_string_list algorithms;
    struct ddp_int_list dtypes, ops;
    int64_t root;
    int placement;  /* 0 in, 1 out, 2 both */
    int64_t groups; /* groups of ranks that run it at the same time; 0 and 1: no groups */
    int memory;     /* enum ddp_memory; -1: registered if the backend has it, else private */
    /* Exactly `iters` iterations if precision and max_time_s are 0. Otherwise at most `iters`,
     * until half the interval is within `precision` of the median, or until max_time_s has passed
     * (bench/iterations.h). */
    int64_t iters, warmup;
    double precision, max_time_s;
    int start;     /* enum ddp_start */
    int64_t block; /* calls timed as one; 0 and 1: each call is timed */
    int order;     /* enum ddp_order */
    double inject_percent;
    char inject_id[192]; /* id of the point that is slowed by inject_percent; "": none */
    int check;           /* enum ddp_check */
    int64_t seed;
    bool samples, dry_run;
    bool graph;   /* on a GPU: run as a captured graph */
    bool overlap; /* --overlap-compute: non-blocking, beside a compute loop */
    /* The following are for all-reduce only; elsewhere empty and 0. */
    struct ddp_string_list compress; /* methods, each of which gets points; empty: none */
    int feedback;                    /* enum ddp_feedback */
    int64_t partial;                 /* number of chunks; a step exchanges one; 0: everything */
    struct ddp_string_list gradient; /* bench/gradient.h */
    bool break_even;                 /* measure it, which takes the time of several points */
};

/* Order in which points are measured. Random (by the seed) is the default, so that a drift of the
 * machine does not look like an effect of the size. */
enum ddp_order { DDP_ORDER_RANDOM, DDP_ORDER_GIVEN, DDP_ORDER_COUNT };

/* Choices of --feedback. auto: the compressor's default. */
enum ddp_feedback { DDP_FEEDBACK_AUTO, DDP_FEEDBACK_ON, DDP_FEEDBACK_OFF, DDP_FEEDBACK_COUNT };

struct ddp_bench_plan {
    struct ddp_point_spec *points; /* [count] */
    int count;
    uint64_t buffer_bytes;   /* largest single buffer */
    uint64_t bytes_per_rank; /* registered or private memory that a rank holds at once */
    uint64_t compress_registered, compress_private; /* the part of it that compression needs */
    enum ddp_memory memory;                         /* of all points */
    /* The user wrote `all`. Points that only `all` brought are left out if they cannot run. */
    bool all_algorithms, all_dtypes, all_ops;
    char rounding[256]; /* note for stderr on sizes that were rounded down; "": none */
};

/* Checks the options as far as this is possible without knowing backend and ranks: sizes, steps,
 * names of algorithms. Returns DDP_EUSAGE. */
int ddp_plan_check(const struct ddp_bench_options *options, struct ddp_err *err) DDP_MUST_CHECK;

/* Sets *out to the number of ranks in a group. Returns DDP_EUSAGE if `ranks` cannot be divided into
 * options->groups equal groups. */
int ddp_plan_group_ranks(const struct ddp_bench_options *options, int ranks, int *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* Expands options into points for groups of `ranks` ranks on `backend`: dtypes x operations x
 * methods x algorithms x placements x sizes, the last varying fastest. available_bytes: memory of
 * the host; -1: not known, or already checked. *out is released with ddp_plan_release. Returns
 * DDP_EUSAGE for contradictory options, and DDP_ENOMEM, with the calculation in the text, if ranks
 * * bytes_per_rank exceeds available_bytes. */
int ddp_plan_make(const struct ddp_bench_options *options, const char *backend, int ranks,
                  int64_t available_bytes, struct ddp_bench_plan *out,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_ENOMEM if `ranks` ranks of one host need more than available_bytes. */
int ddp_plan_fits(const struct ddp_bench_plan *plan, int ranks, int64_t available_bytes,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EUSAGE if a named algorithm will refuse a point, as far as this is known before ranks
 * exist. A contradiction is then reported without starting ranks. */
int ddp_plan_check_offline(const struct ddp_bench_plan *plan, const struct ddp_backend *backend,
                           struct ddp_err *err) DDP_MUST_CHECK;
void ddp_plan_release(struct ddp_bench_plan *plan);

/* The following are in plan_compress.c and concern --compress and --partial. */
/* Most chunks of --partial. */
#define DDP_PLAN_PARTIAL_MAX 1024
/* Checks these options, alone and with the others. Returns DDP_EUSAGE. */
int ddp_plan_check_compress(const struct ddp_bench_options *options,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* True if any point compresses or exchanges only a part of the data. */
bool ddp_plan_reduces(const struct ddp_bench_options *options);
/* Returns the j-th algorithm, without "auto", that can exchange method i of options->compress; NULL
 * past the last. */
const char *ddp_plan_algorithm(const struct ddp_bench_options *options, int method, int j);
/* Returns the text of method i, "none" without --compress. ddp_plan_methods: the number of methods,
 * at least 1. */
const char *ddp_plan_method(const struct ddp_bench_options *options, int i);
int ddp_plan_methods(const struct ddp_bench_options *options);
/* True if error feedback is on for a point. */
bool ddp_plan_feedback(const struct ddp_bench_options *options, const struct ddp_point_spec *spec);
/* Adds the memory that compressing the points needs to the plan. on_device: the gradients are in
 * device memory. */
void ddp_plan_add_compress_bytes(const struct ddp_bench_options *options, bool on_device,
                                 struct ddp_bench_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
