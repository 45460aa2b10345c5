/* The result record: the one type that bench and train fill and that report and compare read.
 *
 * Plain data: a point or an epoch can be copied as bytes through a pipe (strings are inline; the
 * samples of a point follow it). A value that does not exist is NaN (double), -1 (int64 where so
 * said) or "" (string), and becomes null in JSON: never 0. Times are ns here; units in names. */
#ifndef DDP_RECORD_RECORD_H
#define DDP_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/coll_kind.h"
#include "base/gpu_facts.h"
#include "base/dtype.h"
#include "base/err.h"
#include "base/interference.h"
#include "stats/series.h"
#include "stats/summary.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_placement { DDP_IN_PLACE, DDP_OUT_OF_PLACE, DDP_PLACEMENT_COUNT };
enum ddp_memory {
    DDP_MEMORY_REGISTERED,
    DDP_MEMORY_PRIVATE,
    DDP_MEMORY_WINDOW, /* registered as one window of all ranks (NCCL) */
    DDP_MEMORY_COUNT
};
enum ddp_check { DDP_CHECK_OFF, DDP_CHECK_ONCE, DDP_CHECK_ALL };
/* How an iteration starts, and why there were no more of them: as many as were asked for; the
 * interval is as narrow as was asked; --max-time is over; adaptive, but at most so many. */
enum ddp_start { DDP_START_BARRIER, DDP_START_WINDOW, DDP_START_COUNT };
enum ddp_stop { DDP_STOP_COUNT, DDP_STOP_PRECISION, DDP_STOP_TIME, DDP_STOP_ITERS };
const char *ddp_start_name(enum ddp_start s); /* "barrier", "window" */
const char *ddp_stop_name(enum ddp_stop s);   /* "count", "precision", "max-time", "iters" */
const char *ddp_placement_name(enum ddp_placement p); /* "in", "out" */
const char *ddp_memory_name(enum ddp_memory m);       /* "registered", "private", "window" */
const char *ddp_check_name(enum ddp_check c);         /* "off", "once", "all" */

/* What was asked for: nothing measured, so equal specs have equal ids. */
struct ddp_point_spec {
    enum ddp_coll coll;
    char backend[16], algorithm[24]; /* as asked: "auto" stays "auto" */
    enum ddp_dtype dtype;
    enum ddp_op op;
    int root;
    enum ddp_placement placement;
    enum ddp_memory memory;
    int ranks;  /* of a group */
    int groups; /* that ran it at the same time; 0 and 1: no groups */
    uint64_t requested_bytes, size_bytes, count; /* count: elements of the full buffer S */
    char compress[32];                           /* "none" */
    int partial;                                 /* 0: none */
    bool overlap;                                /* non-blocking, and measured beside computation */
    bool graph;                                  /* on a GPU, as a captured graph */
};

/* "allreduce/shm/auto/f32/sum/r0/in/registered/n2/67108864/none/0", the bytes as requested, and
 * "/g4" when 4 groups ran it, "/overlap" and "/graph"; out >= 192 bytes. */
void ddp_point_id(const struct ddp_point_spec *spec, char *out, unsigned long out_bytes);

/* What a compressed exchange is compared with: f32 and, the fair one, f16. */
enum ddp_baseline { DDP_BASELINE_F32, DDP_BASELINE_F16, DDP_BASELINE_COUNT };

/* The density below which a sparse exchange takes less than a dense one; 0: at none, 1: at all.
 * predicted: by bytes sent alone, the dense one being a ring (sparse cost(); all-gather: 1/P
 * against f32, 1/(2P) against f16). estimated: by this point's measured times, exchange and decode
 * taken as proportional to the density. measured: bisected, on request. NaN: not known. */
struct ddp_break_even {
    double predicted, estimated, measured;
};

/* Beside time_ns, the operation alone, started and waited for: a loop of arithmetic alone, both at
 * once, and the part of the shorter one that was hidden (bench/overlap.h). NaN: not measured. */
struct ddp_overlap_times {
    double compute_ns, total_ns, percent;
};

struct ddp_point {
    struct ddp_point_spec spec;
    char algorithm_used[24];
    /* Of `of` points of a launch this is the order-th that was measured and the place-th of the
     * plan, both from 0. of 0: not part of a launch. launch: which of several, from 1; 0: the only
     * one. */
    int32_t order, place, of, launch;
    /* invalid: iterations beside these that some rank began too late (start window). block: calls
     * without a start between them that are one iteration, whose time is their mean; else 1. */
    int64_t iterations, warmup, invalid, block;
    enum ddp_start start;
    enum ddp_stop stop;
    struct ddp_summary time_ns; /* over iterations, of the max over ranks; block: no interval */
    struct ddp_series series;   /* of the iterations in order; trend NaN: too few to say */
    struct ddp_interference interference; /* meanwhile: largest of all ranks; switches: their sum */
    double injected_percent;              /* --inject-delay; NaN: none */
    double rank_mean_ns[3];               /* min, avg, max over ranks of each rank's own mean */
    double wire_bytes_per_rank;           /* NaN: unknown */
    bool wire_counted;                    /* else modelled */
    double phase_ns[3];                   /* encode, exchange, decode; NaN without compression */
    double achieved_density, threshold, density;
    char feedback[8];       /* "on", "off", "" */
    int64_t overflow_count; /* -1: not counted */
    double dense_ns[2];     /* enum ddp_baseline: the whole buffer exchanged so, measured beside */
    char dense_algorithm[2][24];         /* the algorithm that took dense_ns; "": not measured */
    struct ddp_break_even break_even[2]; /* against each baseline */
    struct ddp_overlap_times overlap;
    /* Median of the operation by the clocks of GPUs, whichever was slowest; NaN: there are none. */
    double device_ns;
    bool correctness_only; /* ranks shared a GPU: times and bandwidths mean nothing */
    double skew_start_ns,
        skew_exit_ns;      /* medians over iterations of latest minus earliest; NaN: not measured */
    double pingpong_ns[2]; /* before, after; round trip; NaN with one rank */
    int64_t page_bytes;    /* of the buffers, -1 unknown */
    char bound_kind[24];   /* "" none, "memory", "latency", "point-to-point": bench/bound.h */
    double bound_GBps;     /* bandwidth the bound rests on, NaN for latency */
    double bound_ns, bound_fraction; /* least time, and its part of the median */
    enum ddp_check check;
    int64_t check_elements, check_wrong; /* -1 when check is off */
    int64_t sample_count;                /* doubles (ns) that follow, 0 unless --samples */
};

/* Derived, defined once, here. algbw = S/t; busbw = algbw * factor (base/coll_kind.h). GB = 1e9
 * bytes. NaN without time, for compressed or partial exchange, for one rank, for 0 bytes. ns: the
 * time to use (median, or an end of its interval). */
double ddp_point_algbw_GBps(const struct ddp_point *p, double ns);
double ddp_point_busbw_GBps(const struct ddp_point *p, double ns);
/* What a dense exchange would have had to reach in that time; NaN unless compressed or partial. */
double ddp_point_effective_GBps(const struct ddp_point *p, double ns);
/* Is it compressed or partial? */
bool ddp_point_is_reduced(const struct ddp_point_spec *spec);
/* How many times as fast as the baseline's exchange; below 1: slower. NaN where not measured. */
double ddp_point_speedup(const struct ddp_point *p, enum ddp_baseline baseline);
/* Bytes a rank sends in a dense exchange by a ring, which sends the least: 2 (P-1)/P S, or half. */
double ddp_point_dense_bytes(const struct ddp_point_spec *spec, enum ddp_baseline baseline);
/* The speed of a rank's link, in GB/s, below which compression takes less time than the dense ring:
 * the bytes it saves over the time its arithmetic costs more. Over shared memory, where nothing
 * crosses a link, that is the difference between the two times; elsewhere encode and decode. 0: at
 * no speed, it saves nothing. INFINITY: at any, it costs nothing. NaN where not measured. */
double ddp_point_pays_below_GBps(const struct ddp_point *p, enum ddp_baseline baseline);

struct ddp_epoch {
    int epoch; /* 1-based */
    double train_loss, train_accuracy, eval_loss, eval_accuracy;
    double seconds, compute_seconds, exchange_seconds, exposed_seconds, images_per_second;
    double encode_seconds, decode_seconds;        /* within exchange; NaN without a compressor */
    double wire_bytes_per_rank, achieved_density; /* NaN: unknown */
    bool wire_counted;                            /* else modelled */
    int64_t overflow_count;    /* of all ranks, 16-bit exchange; -1: none are counted */
    int64_t peak_memory_bytes; /* of the run so far, largest of all ranks; -1 unknown */
    int64_t steps;
    uint64_t parameter_hash; /* FNV-1a of rank 0's parameters; all ranks were compared */
};

struct ddp_train_run {
    char model[24], dataset[24], optimizer[16], sync[32], init[16], init_sync[16], partition[8],
        blas[96];    /* the libraries of its products */
    char device[16]; /* where models computed; graph: a step as one graph of it */
    bool graph, tf32;
    char feedback[8], aggregate[16]; /* "": has no meaning with the strategy */
    char algorithm[24];              /* of all-reduces, as asked: "auto" stays "auto" */
    int64_t parameters, train_images, eval_images, batch_per_rank;
    int64_t bucket_bytes; /* -1: the strategy has no buckets */
    int ranks;
    double lr, momentum, weight_decay;
    uint64_t seed;
    int64_t max_steps;      /* -1: none */
    double target_accuracy; /* NaN: none */
    int target_epoch;       /* -1: not reached */
    double target_seconds, target_wire_bytes;
    double total_seconds, total_wire_bytes;
    char data_path[256]; /* the folder, as given; "": made data */
    uint64_t data_hash;  /* of all its images and labels (model/dataset.h) */
    bool overlap, synthetic;
    bool baseline; /* a few steps on one rank, for speed-up; not evaluated */
    int launch;    /* which of several, from 1; 0: the only one */
    int epoch_count;
    struct ddp_epoch *epochs; /* [epoch_count], owned by the record */
};

struct ddp_host {
    char name[64], cpu[96], kernel[64], governor[32];
    int ranks;
    int cores, usable_cores; /* of the machine; that a process of ours, or each rank, may run on */
    int64_t memory_bytes;
    double load;
    struct ddp_gpu_facts gpus[DDP_GPU_FACTS_MAX];
    int gpu_count;
};

/* A control that no change of ours can move: how fast all ranks of a launch, at once, copy and read
 * memory of their own, all together (copy: bytes read and written). bench/control.h. */
struct ddp_control {
    int32_t ranks;
    int64_t bytes_per_rank;
    double copy_GBps, read_GBps;
};

enum ddp_status { DDP_STATUS_COMPLETE, DDP_STATUS_PARTIAL, DDP_STATUS_FAILED };

/* Key and value of an allow-listed environment variable; a longer value is cut. */
struct ddp_env_entry {
    char key[96];
    char value[256];
};

struct ddp_verdict_record;

struct ddp_record {
    enum ddp_status status;
    char reason[1024], label[64];
    /* tool: build facts come from record/provenance.h when printing. */
    char simd[16];
    char feature_mpi[64], feature_nccl[64], feature_cuda[64], feature_blas[96];
    char command[32];
    int argc;
    char *const *argv; /* borrowed */
    char started[24], finished[24];
    int64_t seed;
    int world_ranks;
    char world_backend[16], launcher[32];
    char launch[16];       /* "processes", "threads": of our own launcher; "" */
    char rank_counts[256]; /* "1,2,4", when there are several */
    struct ddp_host *hosts;
    int host_count;
    struct ddp_env_entry *environment;
    int environment_count;
    double timer_cost_ns, timer_resolution_ns;
    /* Of the last launch, the slowest rank opening its communicator and splitting it into a group
     * of all ranks (on GPUs), and rank 0 closing it; NaN: not known. */
    double comm_init_ns, comm_split_ns, comm_destroy_ns;
    struct ddp_point *points;
    double **samples; /* [point_count]; NULL or [points[i].sample_count] ns */
    int point_count, point_capacity;
    int launch_first;             /* index of the first point of the last launch */
    struct ddp_control *controls; /* one a launch; of training runs one before and one after */
    int control_count;
    struct ddp_train_run *train;
    int train_count;
    const struct ddp_verdict_record *verdict; /* record/verdict_record.h; borrowed, NULL: none */
};

/* An empty record: status partial, everything unknown. */
void ddp_record_init(struct ddp_record *record);
void ddp_record_release(struct ddp_record *record);
/* The functions that add make texts printable (base/strbuf.h): no reporter meets an escape code or
 * a line break in one. Who sets a text of the record itself does so with ddp_printable. */
/* Adds a copy: last, or, part of a launch, at its place among the points of that launch. samples
 * [p->sample_count] or NULL. DDP_ENOMEM. */
int ddp_record_add_point(struct ddp_record *record, const struct ddp_point *p,
                         const double *samples, struct ddp_err *err) DDP_MUST_CHECK;
/* Appends a copy of run without epochs; later epochs go to the last run. */
int ddp_record_add_train(struct ddp_record *record, const struct ddp_train_run *run,
                         struct ddp_err *err) DDP_MUST_CHECK;
int ddp_record_add_epoch(struct ddp_record *record, const struct ddp_epoch *epoch,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* The last run has ended: its scalars replace those of its start, its epochs stay. */
void ddp_record_end_train(struct ddp_record *record, const struct ddp_train_run *run);
int ddp_record_add_control(struct ddp_record *record, const struct ddp_control *control,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Points [0, n) are those that no later point of the launch will be put before. */
int ddp_record_settled(const struct ddp_record *record);
/* What is known of the GPUs of host `index`: facts [count], count at most DDP_GPU_FACTS_MAX. */
void ddp_record_set_gpus(struct ddp_record *record, int index, const struct ddp_gpu_facts *facts,
                         int count);
int ddp_record_add_host(struct ddp_record *record, const struct ddp_host *host,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* A point with every optional value unknown. */
void ddp_point_init(struct ddp_point *p);
void ddp_epoch_init(struct ddp_epoch *e);
void ddp_train_run_init(struct ddp_train_run *r);

#ifdef __cplusplus
}
#endif
#endif
