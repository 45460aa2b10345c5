/* The result record. lib/bench and lib/train fill it in, and lib/report prints it.
 *
 * A point or an epoch can be sent through a pipe as bytes, because its strings are stored inline.
 * In the pipe, the samples of a point follow its struct. A missing value is NaN (double), -1
 * (integer, where noted) or "" (string). JSON shows a missing value as null, never as 0. Times are
 * in ns unless the member's name gives another unit. */
#ifndef DDP_RECORD_RECORD_H
#define DDP_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/coll_kind.h"
#include "base/gpu_facts.h"
#include "base/dtype.h"
#include "base/err.h"
#include "base/network.h"
#include "base/sysinfo.h"
#include "record/health_record.h"
#include "record/matrix_record.h"
#include "record/pays_record.h"
#include "stats/series.h"
#include "stats/straggler.h"
#include "stats/summary.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_RECORD_SCHEMA "ddpbench/1" /* The schema of the documents. */

enum ddp_placement { DDP_IN_PLACE, DDP_OUT_OF_PLACE, DDP_PLACEMENT_COUNT };
enum ddp_memory {
    DDP_MEMORY_REGISTERED,
    DDP_MEMORY_PRIVATE,
    DDP_MEMORY_WINDOW, /* Registered as one window of all ranks (NCCL). */
    DDP_MEMORY_COUNT
};
enum ddp_check { DDP_CHECK_OFF, DDP_CHECK_ONCE, DDP_CHECK_ALL };
/* How the ranks start an iteration together: after a barrier, or at a clock time on which they have
 * agreed. */
enum ddp_start { DDP_START_BARRIER, DDP_START_WINDOW, DDP_START_COUNT };
/* Why the iterations of a point ended. COUNT: the requested number was reached. PRECISION: the
 * confidence interval is as narrow as requested. TIME: --max-time is over. ITERS: the adaptive
 * number of iterations reached its limit. */
enum ddp_stop { DDP_STOP_COUNT, DDP_STOP_PRECISION, DDP_STOP_TIME, DDP_STOP_ITERS };
const char *ddp_placement_name(enum ddp_placement p); /* "in", "out" */
const char *ddp_memory_name(enum ddp_memory m);       /* "registered", "private", "window" */
/* Names of the values of four of these enums, indexed by the enum. The last entry of each array is
 * NULL. ddp_placement_names[DDP_PLACEMENT_COUNT] is "both". */
extern const char *const ddp_placement_names[],
    *const ddp_memory_names[], *const ddp_check_names[], *const ddp_start_names[];

/* A point as requested, without any measured value. Equal specs have equal ids. */
struct ddp_point_spec {
    enum ddp_coll coll;
    char backend[16], algorithm[24]; /* As requested: "auto" stays "auto". */
    enum ddp_dtype dtype;
    enum ddp_op op;
    int root;
    enum ddp_placement placement;
    enum ddp_memory memory;
    int ranks;           /* Ranks of one group. With a group list: ranks of its largest group. */
    int groups;          /* Groups that ran at the same time. 0 and 1: no groups. */
    char group_list[64]; /* The ranks of each group, such as "0,1:2,3,4". "": equal groups. */
    uint64_t requested_bytes, size_bytes, count; /* count: elements of the full buffer. */
    char compress[32];                           /* "none" without compression. */
    int partial;                                 /* --partial: number of chunks. 0: not partial. */
    bool overlap;                                /* Non-blocking, measured beside computation. */
    bool graph;                                  /* On a GPU: run as a captured graph. */
    char split[40];   /* --split, such as "zipf:1.2". "": the collective has no split. */
    char arrival[32]; /* --arrival, such as "late:1,2". "": the ranks enter together. */
    /* If the collective has a split: the bytes of the busiest rank (base/coll_kind.h). 0:
     * unknown, or nothing is sent. */
    uint64_t busiest_bytes;
    /* busiest_bytes divided by a mean over the ranks: the bytes that a rank receives from other
     * ranks or, in a reduce-scatter-v, the bytes that it must send to them. NaN: the collective has
     * no split, or nothing is sent. */
    double imbalance;
};

/* Writes the id of a point, for example
 * "allreduce/shm/auto/f32/sum/r0/in/registered/n2/67108864/none/0". The large number is
 * requested_bytes. Possible suffixes are "/g4" (4 groups), "/g0,1:2" (listed groups), "/overlap",
 * "/graph", "/split=zipf:1.2" (a split that is not even) and "/arrival=late:1,2" (--arrival).
 * out_bytes >= 192. */
void ddp_point_id(const struct ddp_point_spec *spec, char *out, unsigned long out_bytes);

/* Kinds of points. A table shows the points of one kind, because the kinds have different figures.
 * REDUCED: a compressed or partial exchange. OVERLAPPED: an operation measured beside computation
 * that is not REDUCED. DENSE: all others. */
enum ddp_point_kind {
    DDP_POINT_DENSE,
    DDP_POINT_REDUCED,
    DDP_POINT_OVERLAPPED,
    DDP_POINT_KIND_COUNT
};
enum ddp_point_kind ddp_point_kind(const struct ddp_point_spec *spec);

/* The keys in which the specs of several points differ (record/point_keys.h). */
struct ddp_point_range {
    struct ddp_point_spec first;
    int count;
    unsigned varies; /* Bits 1 << enum ddp_point_key. */
    int width[16];   /* By enum ddp_point_key: length of the key's longest text. */
    bool has_ranks;  /* Some point has several ranks. */
    bool has_busbw;  /* Some point has a bus bandwidth. */
    bool has_split;  /* Some point has a split. */
};

/* Dense exchanges with which a compressed or partial exchange is compared. */
enum ddp_baseline { DDP_BASELINE_F32, DDP_BASELINE_F16, DDP_BASELINE_COUNT };

/* The break-even density. Below this density, a sparse exchange takes less time than a dense one.
 * 0: a sparse exchange is never faster. 1: it is always faster. NaN: unknown. */
struct ddp_break_even {
    /* Computed only from the bytes that a rank sends. The dense exchange is assumed to be a ring.
     * The cost model of the sparse algorithm gives the bytes of the sparse exchange. */
    double predicted;
    /* Computed from the measured times of this point. The times of exchange and decode are assumed
     * to be proportional to the density. */
    double estimated;
    /* Measured at several densities with --break-even (bench/break_even.h). */
    double measured;
};

/* Results of --overlap-compute (bench/overlap.h). NaN: not measured. The point's time_ns is the
 * time of the operation alone. */
struct ddp_overlap_times {
    double compute_ns; /* Time of the arithmetic alone. */
    double total_ns;   /* Time if the operation and the arithmetic run at once. */
    /* How much of the shorter activity (operation or arithmetic) is hidden behind the longer one,
     * in percent of the shorter one. */
    double percent;
};

struct ddp_point {
    struct ddp_point_spec spec;
    char algorithm_used[24];
    int32_t order;  /* Index in the order of measurement, from 0. */
    int32_t place;  /* Index in the plan, from 0. */
    int32_t of;     /* Number of points in a repetition. 0: the point belongs to no repetition. */
    int32_t launch; /* Number of the repetition, from 1. 0: there is only one. */
    int64_t iterations;
    int64_t warmup; /* Number of untimed iterations before the timed ones. */
    /* Number of additional iterations that do not count, because some rank began them too late. */
    int64_t invalid;
    /* Number of successive calls that form one iteration, normally 1. The time of the iteration is
     * the mean of its calls. */
    int64_t block;
    enum ddp_start start;
    enum ddp_stop stop;
    /* Statistics over the iterations (bench/iterations.h defines the time of an iteration). The
     * interval is unknown if block > 1. */
    struct ddp_summary time_ns;
    /* Trend and autocorrelation of the iteration times in the order of measurement. The trend is
     * NaN if there were too few iterations. */
    struct ddp_series series;
    /* Disturbances during the iterations. Each value is the maximum over ranks, except that context
     * switches are summed over ranks and the clock is the minimum over ranks. */
    struct ddp_interference interference;
    /* By enum ddp_network_counter: how much the counters grew during the iterations, summed over
     * hosts. On each host one rank reads the counters. -1: unknown, or the ranks used no
     * network. */
    int64_t network[DDP_NET_COUNTERS];
    bool oversubscribed;     /* A host has more ranks than usable cores. */
    double injected_percent; /* Delay set by --inject-delay. NaN: none. */
    /* Minimum, average and maximum over ranks of a rank's mean time. */
    double rank_mean_ns[3];
    double wire_bytes_per_rank; /* Maximum over ranks. NaN: unknown. */
    bool wire_counted;          /* True: counted. False: computed by a model. */
    double phase_ns[3];         /* Encode, exchange, decode. NaN: no compression. */
    double phase_ci95_ns[3][2]; /* 95 % intervals of phase_ns. NaN: too few iterations. */
    double achieved_density;    /* Share of the values that a rank sent, mean over ranks. */
    double threshold, density;  /* As requested. NaN: the compressor has none. */
    int32_t compress_block;     /* Elements that share a scale. 0: the compressor has no blocks. */
    int32_t compress_rank;      /* Rank of powersgd's low-rank matrices. 0: not powersgd. */
    /* Error feedback: "on", "off", or "" if the compression loses nothing. */
    char feedback[8];
    int64_t overflow_count; /* Finite values that became infinite. -1: not counted. */
    /* By enum ddp_baseline: time of the dense exchange of the whole buffer. */
    double dense_ns[2];
    /* By enum ddp_baseline: the algorithm that dense_ns belongs to. "": not measured. */
    char dense_algorithm[2][24];
    struct ddp_break_even break_even[2]; /* By enum ddp_baseline. */
    struct ddp_overlap_times overlap;
    /* Medians over untimed iterations of the time of an operation by the GPUs' clocks: the minimum
     * and the maximum over ranks. NaN: unknown. */
    double device_ns, device_max_ns;
    /* Whether the windows of --memory window are symmetric: "yes", "no", or "" without windows. */
    char symmetric[4];
    bool correctness_only; /* Ranks shared a GPU, so times and bandwidths mean nothing. */
    /* Medians over iterations. start: time from the first rank's start to the last rank's start.
     * exit: time from the first rank's end to the last rank's end. NaN: not measured. */
    double skew_start_ns, skew_exit_ns;
    /* With --arrival: median of the time from the last rank's start to the last rank's end. NaN:
     * the ranks entered together. */
    double after_last_ns;
    struct ddp_straggler straggler; /* The rank for which the others waited. */
    double pingpong_ns[2];          /* Round trip before and after the point. NaN with one rank. */
    int64_t page_bytes;             /* Page size of the buffers. -1: unknown. */
    /* Kind of lower bound (bench/bound.h): "memory", "latency", "point-to-point" or "". */
    char bound_kind[24];
    double bound_GBps;     /* Measured speed of the bound: bytes / bound_ns. NaN below 64 KiB. */
    double bound_ns;       /* Lower bound of the time. */
    double bound_fraction; /* bound_ns / median. */
    /* The bound as measured before and after the point. bound_ns is the shorter of these two
     * times. */
    double bound_before_ns, bound_after_ns;
    enum ddp_check check;
    int64_t check_elements, check_wrong; /* -1 if check is off. */
    int64_t check_operations;            /* Operations that were verified; -1 if check is off. */
    /* Number of samples (double, ns) that follow the struct. 0 unless --samples is given. */
    int64_t sample_count;
    /* Why the point is doubtful: bits 1 << enum ddp_quality (record/quality.h).
     * ddp_record_add_point sets this member. */
    unsigned quality;
};

/* Returns the bytes that the busiest rank sends to other ranks, or receives from them, if the
 * collective moves no more data than necessary. NaN for fewer than 2 ranks and for barrier. */
double ddp_point_busiest_bytes(const struct ddp_point_spec *spec);
/* Return algbw = size / time and busbw = busiest bytes / time (base/coll_kind.h), in GB (1e9 bytes)
 * per second. ns: the time, which is the median or an end of its interval. Both functions return
 * NaN without a time, for compressed or partial exchanges, for one rank, for 0 bytes, and if ranks
 * shared a GPU. For a collective with a split, busbw is also NaN if busiest_bytes is 0. */
double ddp_point_algbw_GBps(const struct ddp_point *p, double ns);
double ddp_point_busbw_GBps(const struct ddp_point *p, double ns);
/* Returns the busbw that a dense exchange would need to take the same time. Returns NaN for dense
 * exchanges, and if a dense exchange with the same spec would have no busbw. */
double ddp_point_effective_GBps(const struct ddp_point *p, double ns);
/* True if the exchange is compressed or partial. */
bool ddp_point_is_reduced(const struct ddp_point_spec *spec);
/* Returns the time of the baseline's exchange divided by the time of this exchange. A value below 1
 * means that this exchange is slower. Returns NaN if a time was not measured. */
double ddp_point_speedup(const struct ddp_point *p, enum ddp_baseline baseline);
/* Returns the bytes that each of P ranks sends in a dense ring exchange of S bytes: 2 (P-1)/P S, or
 * half of that for f16. No dense all-reduce sends less. Returns NaN for one rank. */
double ddp_point_dense_bytes(const struct ddp_point_spec *spec, enum ddp_baseline baseline);
/* Returns the link speed of a rank, in GB/s, below which the compressed exchange takes less time
 * than the dense ring: the saved bytes divided by the additional time for arithmetic. In shared
 * memory nothing crosses a link, so the additional time is the difference between the times of the
 * two exchanges. With other backends it is the time of encode plus decode. Returns 0 if compression
 * saves no bytes, and INFINITY if there is no additional time. Returns NaN if a time was not
 * measured, for dense exchanges, for one rank, for 0 bytes, and if ranks shared a GPU. */
double ddp_point_pays_below_GBps(const struct ddp_point *p, enum ddp_baseline baseline);

/* Return whether the ranks of the backend with this name read each other's memory, and whether the
 * buffers of the backend lie in GPUs. */
bool ddp_record_shares_memory(const char *backend);
bool ddp_record_is_on_gpu(const char *backend);

struct ddp_epoch {
    int epoch; /* From 1. */
    double train_loss, train_accuracy, eval_loss, eval_accuracy;
    double seconds, compute_seconds, exchange_seconds, exposed_seconds, images_per_second;
    /* Parts of exchange_seconds. NaN without a compressor. */
    double encode_seconds, decode_seconds;
    /* Bus bandwidth of a strategy that averages all gradients without compression. It is computed
     * as if one all-reduce per step exchanged all gradients in exchange_seconds, which include
     * waits for slower ranks. NaN for other strategies. */
    double exchange_busbw_GBps;
    double wire_bytes_per_rank, achieved_density; /* Means over ranks. NaN: unknown. */
    bool wire_counted;                            /* True: counted. False: by a model. */
    int64_t overflow_count; /* Overflows of a 16-bit exchange, sum over ranks. -1: not counted. */
    int64_t peak_memory_bytes; /* Peak of the run so far, maximum over ranks. -1: unknown. */
    int64_t steps;
    /* FNV-1a hash of the parameters of rank 0. */
    uint64_t parameter_hash;
    struct ddp_straggler straggler; /* The rank for which the others waited in the exchanges. */
};

struct ddp_train_run {
    char model[24], dataset[24], optimizer[16], sync[32], init[16], init_sync[16];
    char partition[528];             /* "batch", "shard", or "weights:" with a list. */
    char blas[96];                   /* Library of the matrix products. */
    char device[16];                 /* Device that trains the model. */
    bool graph;                      /* A step runs as one captured graph. */
    bool tf32;                       /* Matrix products may round their factors to TF32. */
    char feedback[8], aggregate[16]; /* "": not used by the strategy. */
    char algorithm[24];              /* All-reduce algorithm as requested ("auto" stays). */
    int64_t parameters, train_images, eval_images, batch_per_rank;
    int64_t bucket_bytes; /* -1: the strategy has no buckets. */
    int ranks;
    double lr, momentum, weight_decay;
    int64_t optimizer_bytes; /* Optimiser state of rank 0. -1: unknown. */
    uint64_t seed;
    int64_t max_steps;      /* -1: unlimited. */
    double target_accuracy; /* NaN: no target. */
    int target_epoch;       /* -1: not reached. */
    double target_seconds, target_wire_bytes;
    double total_seconds, total_wire_bytes;
    char data_path[256]; /* The folder as given. "": synthetic data. */
    uint64_t data_hash;  /* Hash of all images and labels (model/dataset.h). */
    bool overlap, synthetic;
    bool baseline; /* The run is a few steps on one rank. Its speed is the base of speed-ups. */
    int launch;    /* Number of the repetition, from 1. 0: the only one. */
    /* The rank for which the others waited in all steps of the run. */
    struct ddp_straggler straggler;
    int epoch_count;
    struct ddp_epoch *epochs; /* [epoch_count], owned by the record. */
};

struct ddp_host {
    char name[64], cpu[96], kernel[64], governor[32];
    int ranks;
    int cores; /* Cores of the machine. */
    /* Cores that this process may use. Under an outside launcher: the smallest number of cores that
     * a rank of this host may use. */
    int usable_cores;
    int64_t memory_bytes;
    double load;
    struct ddp_network_facts network;
    struct ddp_gpu_facts gpus[DDP_GPU_FACTS_MAX];
    int gpu_count;
};

/* The host and the GPU of a rank. */
struct ddp_rank_device {
    char host[64];
    int32_t device; /* Index of the GPU among those that the rank may use. -1: no GPU. */
    char bus[16];   /* PCI bus id of the GPU, such as "0000:1b:00.0". "": unknown. */
};

/* Memory baseline (bench/memory_baseline.h): the total speed at which all ranks copy and read their
 * own memory at the same time. The speed of a copy counts the bytes read and the bytes written. A
 * change of the measured code does not affect these speeds. */
struct ddp_control {
    int32_t ranks;
    int64_t bytes_per_rank;
    double copy_GBps, read_GBps;
};

/* Points, or a whole run, that the user asked for but that were not measured. */
struct ddp_left_out {
    char what[192];   /* For example "allreduce: algorithm 'flat'". */
    int32_t ranks;    /* Number of ranks that would have run them. */
    int32_t points;   /* Number of points. -1: a whole run. */
    char reason[256]; /* Why they cannot run. */
};

enum ddp_status { DDP_STATUS_COMPLETE, DDP_STATUS_PARTIAL, DDP_STATUS_FAILED };
/* "complete", "partial" and "failed", indexed by enum ddp_status. */
extern const char *const ddp_status_names[];

/* Facts about a build of ddpbench. The texts are borrowed. */
struct ddp_build {
    const char *version; /* For example "0.1.0". */
    const char *commit;  /* Output of `git describe --always --dirty`. */
    const char *compiler, *cflags;
    bool dirty; /* There were uncommitted changes. */
};

/* Key and value of an allow-listed environment variable. Longer values are cut. */
struct ddp_env_entry {
    char key[96];
    char value[256];
};

struct ddp_verdict_record;

struct ddp_record {
    enum ddp_status status;
    char reason[1024];
    char label[64];         /* The user's name for the run (--label). */
    char note[64];          /* Why the times are not those of ordinary single operations. */
    struct ddp_build build; /* The build that made the measurements. */
    char simd[16];
    char feature_mpi[64], feature_ucx[64], feature_nccl[64], feature_cuda[64], feature_blas[96];
    char command[32];
    int argc;
    char *const *argv; /* Borrowed. */
    char started[24], finished[24];
    int64_t seed;
    int world_ranks;
    char world_backend[16], launcher[32];
    char transports[160];  /* "tcp/eth0, posix/memory". "": unknown. */
    char nccl_blocking[8]; /* "on": NCCL's communicators are blocking; "off"; "": no NCCL. */
    char launch[16]; /* How ddpbench started the ranks: "processes" or "threads". "": it did not. */
    char rank_counts[256]; /* "1,2,4" if there are several. */
    /* How the ranks were chosen, if fewer ran than the outside launcher started. Otherwise "". */
    char subset[8];
    struct ddp_host *hosts;
    int host_count;
    /* [rank_count]. If the ranks were started several times, these are the ranks of the start that
     * had the most ranks, or of the last of several such starts. rank_count 0: unknown. */
    struct ddp_rank_device *ranks;
    int rank_count;
    struct ddp_env_entry *environment;
    int environment_count;
    double timer_cost_ns, timer_resolution_ns;
    /* Times of the last start of the ranks. NaN: unknown. */
    double comm_init_ns; /* The slowest rank's time to open its communicator. */
    /* On GPUs: the slowest rank's time to create a group of all ranks from its communicator. */
    double comm_split_ns;
    double comm_destroy_ns; /* Rank 0's time to close its communicator. */
    struct ddp_point *points;
    double **samples; /* [point_count]; samples[i] is NULL or [points[i].sample_count], in ns. */
    /* [point_count]; texts[i] is NULL or the text that ddp_json_preprint made of points[i]. A
     * reporter may keep this text here, because a point does not change. The record frees the
     * text. */
    char **texts;
    int point_count, point_capacity;
    int launch_first; /* Points are no longer inserted before this index. */
    int newest;       /* Index of the point that was added last. */
    /* The points that the run is going to measure, by kind. count is 0 if these are not known. */
    struct ddp_point_range planned[DDP_POINT_KIND_COUNT];
    /* One per start of the ranks. A training command has two instead, from before and from after
     * the training. */
    struct ddp_control *controls;
    int control_count;
    struct ddp_train_run *train;
    int train_count;
    struct ddp_left_out *left_out;
    int left_out_count;
    const struct ddp_verdict_record *verdict; /* Borrowed; NULL: none. */
    struct ddp_matrix matrix;                 /* ends is 0 if there is none. */
    struct ddp_health health;                 /* The verdict is DDP_HEALTH_NONE if there is none. */
    struct ddp_pays_record pays;              /* link_count is 0 if there is none. */
};

/* Returns the name of the host of a world rank, or "" if it is unknown. */
const char *ddp_record_host_of(const struct ddp_record *record, int rank);
/* Initialises an empty record: status partial, build of this program, other values unknown. */
void ddp_record_init(struct ddp_record *record);
void ddp_record_release(struct ddp_record *record);
/* The ddp_record_add_* functions return 0 or DDP_ENOMEM. They make texts printable (base/strbuf.h),
 * so reporters never see escape codes or line breaks. A caller that sets a text of the record
 * directly must pass it through ddp_printable. */
/* Adds a copy of the point, and judges the quality of the point. The copy is inserted in plan order
 * among the points of its repetition. A point that belongs to no repetition becomes the last one.
 * samples: [p->sample_count], or NULL if there are none. */
int ddp_record_add_point(struct ddp_record *record, const struct ddp_point *p,
                         const double *samples, struct ddp_err *err) DDP_MUST_CHECK;
/* Appends a copy of the run without its epochs. ddp_record_add_epoch adds a copy of an epoch to the
 * last run, and returns DDP_EINTERNAL if there is no run. */
int ddp_record_add_train(struct ddp_record *record, const struct ddp_train_run *run,
                         struct ddp_err *err) DDP_MUST_CHECK;
int ddp_record_add_epoch(struct ddp_record *record, const struct ddp_epoch *epoch,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Replaces all members of the last run except its epochs by the final values. */
void ddp_record_end_train(struct ddp_record *record, const struct ddp_train_run *run);
int ddp_record_add_control(struct ddp_record *record, const struct ddp_control *control,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Replaces the ranks of the record by a copy of `ranks`, unless the record has more ranks than
 * `count`. */
int ddp_record_set_ranks(struct ddp_record *record, const struct ddp_rank_device *ranks, int count,
                         struct ddp_err *err) DDP_MUST_CHECK;
int ddp_record_add_left_out(struct ddp_record *record, const struct ddp_left_out *left_out,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Returns how many points at the start of the array have their final position. Points that are
 * added later are only inserted behind these. */
int ddp_record_settled(const struct ddp_record *record);
/* Returns the number of a point in the order of the plan, from 1. This number is known as soon as
 * the point is added. */
int ddp_record_plan_index(const struct ddp_record *record, int point);
/* Sets the facts about the GPUs of host `index`: facts [count], count <= DDP_GPU_FACTS_MAX. */
void ddp_record_set_gpus(struct ddp_record *record, int index, const struct ddp_gpu_facts *facts,
                         int count);
int ddp_record_add_host(struct ddp_record *record, const struct ddp_host *host,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* The tables of the structs (record/field.h), in record_fields.c. A new member of such a struct
 * needs a row there. ddp_record_fields: the members of struct ddp_record that come first in a
 * document, from "schema" to "environment". ddp_timer_fields: its members in "timer". */
struct ddp_fields;
extern const struct ddp_fields ddp_record_fields, ddp_timer_fields;
extern const struct ddp_fields ddp_point_fields, ddp_epoch_fields, ddp_train_fields,
    ddp_control_fields, ddp_left_out_fields, ddp_host_fields, ddp_gpu_fields, ddp_rank_fields;

/* Returns the index of the first point with the highest busbw among those without wrong data, or -1
 * if none has a busbw. */
int ddp_record_best_busbw(const struct ddp_record *record);

/* Initialise a struct with every optional value unknown. */
void ddp_point_init(struct ddp_point *p);
void ddp_epoch_init(struct ddp_epoch *e);
void ddp_train_run_init(struct ddp_train_run *r);

#ifdef __cplusplus
}
#endif
#endif
