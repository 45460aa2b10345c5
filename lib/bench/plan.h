/* The plan: turns the options of a collective command into a list of points, and checks them before
 * anything runs. A plan also states the memory that every rank will need. A plan that does not fit
 * into memory is refused before memory is allocated. */
#ifndef DDP_BENCH_PLAN_H
#define DDP_BENCH_PLAN_H

#include <stdbool.h>

#include "base/opt.h"
#include "comm/arrival.h"
#include "bench/split_table.h"
#include "comm/backend.h"
#include "compress/compress.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of points in a plan. More points are probably a typing error, for example -i 1
 * (steps of one byte). */
#define DDP_PLAN_POINTS_MAX 65536
/* Number of buffers per rank: send and receive. In place, the second one keeps the input. */
#define DDP_PLAN_BUFFERS 2
/* Largest value of --iters. All durations are kept in memory, so a limit is needed. Without --iters
 * and --block the limit is DDP_PLAN_ITERS_ADAPTIVE, because more iterations hardly narrow the
 * interval of the median. */
#define DDP_PLAN_ITERS_MAX      10000000
#define DDP_PLAN_ITERS_ADAPTIVE 10000

#define DDP_PLAN_GROUPS_MAX      128
#define DDP_PLAN_GROUP_RANKS_MAX 256

/* Groups that the user listed, such as "0,1:2,3,4". */
struct ddp_group_list {
    int ranks;     /* Number of listed ranks; 0: no list, the groups are equal. */
    char text[64]; /* The list as given. */
    /* The group of each rank, numbered from 1. 0: the rank is in no group. */
    short of[DDP_PLAN_GROUP_RANKS_MAX];
};

/* The parsed options of a collective command, without the options that choose ranks and backend. */
struct ddp_bench_options {
    enum ddp_coll coll;
    /* Sizes in bytes. If the list is empty, the sizes are the range from min_bytes to max_bytes, in
     * steps of step_factor or step_bytes. One of step_factor and step_bytes is 0. */
    struct ddp_size_list sizes;
    uint64_t min_bytes, max_bytes, step_bytes;
    int64_t step_factor;
    struct ddp_string_list algorithms;
    struct ddp_int_list dtypes, ops;
    int64_t root;
    int placement;  /* 0 in, 1 out, 2 both */
    int64_t groups; /* groups that run the operation at the same time; 0 and 1: no groups */
    struct ddp_group_list group_list; /* used instead of equal groups if it has ranks */
    int memory; /* enum ddp_memory; -1: registered if the backend has it, else private */
    /* If precision and max_time_s are 0, there are exactly `iters` iterations. Otherwise there are
     * at most `iters`. They end earlier when half the 95 % interval of the median is at most
     * `precision` times the median, or when max_time_s has passed (bench/iterations.h). */
    int64_t iters, warmup;
    double precision, max_time_s;
    int start;     /* enum ddp_start */
    int64_t block; /* calls timed as one; 0 and 1: each call is timed */
    int order;     /* enum ddp_order */
    double inject_percent;
    char inject_id[192];        /* id of the point that is slowed by inject_percent; "": none */
    struct ddp_arrival arrival; /* when the ranks enter the operation */
    int check;                  /* enum ddp_check */
    int64_t seed;
    bool samples, dry_run;
    /* Leave out listed sizes above 0 that are too small: they hold no element or, if the collective
     * works on chunks, not one element per rank. If this is false, such sizes are an error, unless
     * all types are measured. In a range, such sizes are always left out. */
    bool skip_small;
    bool graph;   /* on a GPU: run as a captured graph */
    bool overlap; /* --overlap-compute: run without blocking, beside a compute loop */
    /* The following members, except `split`, are for all-reduce. For other collectives they are
     * empty or 0. */
    struct ddp_compress_list compress; /* methods, each with own points; empty: no compression */
    int feedback;                      /* enum ddp_feedback */
    /* Numbers of chunks, each with points of its own. An iteration exchanges one chunk. Empty: the
     * data is not cut into chunks. */
    struct ddp_int_list partial;
    struct ddp_string_list gradient; /* source of the gradients (bench/gradient.h) */
    struct ddp_split split;          /* --split of collectives that have it */
    bool no_baselines; /* do not measure dense exchanges beside each compressed exchange */
    bool break_even;   /* measure the break-even density, which takes the time of several points */
};

/* Order in which points are measured. The default is a random order, which depends on the seed, so
 * that a drift of the machine does not look like an effect of the size. */
enum ddp_order { DDP_ORDER_RANDOM, DDP_ORDER_GIVEN, DDP_ORDER_COUNT };

struct ddp_bench_plan {
    struct ddp_point_spec *points; /* [count] */
    int count;
    uint64_t buffer_bytes; /* largest single buffer of any rank */
    /* Host memory for each of the two buffers. It is buffer_bytes. Exception: for buffers in the
     * memory of a GPU, without compression and --partial, it is half of
     * DDP_OPERANDS_STAGE_BYTES. */
    uint64_t host_bytes;
    uint64_t bytes_per_rank; /* registered and private memory of the host that a rank needs */
    uint64_t compress_registered,
        compress_private;   /* the parts of bytes_per_rank that compression needs */
    enum ddp_memory memory; /* kind of memory of all buffers */
    /* The user wrote `all`, or listed all types or operations. Points that cannot run are then
     * skipped. */
    bool all_algorithms, all_dtypes, all_ops;
    char rounding[256]; /* note for stderr on sizes that were rounded down; "": none */
    /* The sizes that were left out because they are too small (skip_small above). Each element type
     * with such sizes has one entry. */
    struct ddp_left_out small[DDP_DTYPE_COUNT];
    int small_count;
};

/* Checks everything in the options that depends neither on the backend nor on the ranks, for
 * example sizes, steps and names of algorithms. Returns DDP_EUSAGE if an option is invalid. */
int ddp_plan_check(const struct ddp_bench_options *options, struct ddp_err *err) DDP_MUST_CHECK;

/* Makes the points for `backend`. ranks: number of ranks in the largest group. If there are no
 * groups, the number of all ranks. There is one point for each possible combination of dtype,
 * operation, method, algorithm, number of chunks, placement and size. The size varies fastest. A
 * plan may be empty if all sizes are left out. available_bytes: memory of the host; -1: not known,
 * or checked separately (ddp_plan_fits). Release *out with ddp_plan_release. Returns DDP_EUSAGE if
 * options contradict each other or a listed size is too small, and DDP_EUNAVAIL if the user chose
 * registered memory and the backend has none. Returns DDP_ENOMEM if ranks * bytes_per_rank exceeds
 * available_bytes; the message shows the calculation. */
int ddp_plan_make(const struct ddp_bench_options *options, const char *backend, int ranks,
                  int64_t available_bytes, struct ddp_bench_plan *out,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_ENOMEM if the buffers of `ranks` ranks need more than the memory_bytes of the GPU
 * that they share. */
int ddp_plan_fits_gpu(const struct ddp_bench_plan *plan, int ranks, int64_t memory_bytes,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_ENOMEM if `ranks` ranks of one host need more than available_bytes. */
int ddp_plan_fits(const struct ddp_bench_plan *plan, int ranks, int64_t available_bytes,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EUSAGE if it is known before ranks exist that an algorithm will refuse a point. The
 * caller then need not start ranks. */
int ddp_plan_check_offline(const struct ddp_bench_plan *plan, const struct ddp_backend *backend,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Copies the plan for connected ranks. Only connected ranks know whether they can have registered
 * memory. If they cannot have it, the copy uses private memory. But if the user chose registered
 * memory, the function returns DDP_EUNAVAIL instead. asked: options->memory. Release *out with
 * ddp_plan_release. */
int ddp_plan_for_ranks(const struct ddp_bench_plan *plan, int asked, const struct ddp_comm *comm,
                       struct ddp_bench_plan *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_plan_release(struct ddp_bench_plan *plan);

/* The following functions are in plan_groups.c and concern --groups. */
/* Parses a number of equal groups, or lists of ranks. Each rank from 0 to the largest listed rank
 * must be in exactly one list. Returns DDP_EUSAGE if the text is invalid. */
int ddp_plan_parse_groups(const char *text, struct ddp_bench_options *options,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EUSAGE if an option cannot be combined with listed groups. These options are
 * --compress, --partial and --overlap-compute. Their points need the same algorithm on all ranks,
 * but groups of different sizes may use different algorithms. */
int ddp_plan_check_groups(const struct ddp_bench_options *options,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Sets *out to the number of ranks in the largest group. Returns DDP_EUSAGE if `ranks` ranks cannot
 * be divided into options->groups equal groups, or if the listed groups do not have exactly `ranks`
 * ranks. */
int ddp_plan_group_ranks(const struct ddp_bench_options *options, int ranks, int *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Call the next four functions only if ddp_plan_group_ranks has accepted the total number of
 * ranks. */
/* Returns the number of ranks in the smallest group. ranks: number of ranks in the largest
 * group. */
int ddp_plan_least_ranks(const struct ddp_bench_options *options, int ranks);
/* Returns the group of a rank, counted from 0. ranks: number of ranks in all groups together. */
int ddp_plan_group_of(const struct ddp_bench_options *options, int ranks, int rank);
/* Writes the ranks of a group to members [ranks], in ascending order. Returns the number of ranks
 * in the group. ranks: as for ddp_plan_group_of. */
int ddp_plan_group_members(const struct ddp_bench_options *options, int ranks, int group,
                           int *members);
/* Returns the least number N such that every group can cut a message of N elements, or of a
 * multiple of N, into equal chunks. N is 1 if the collective needs no chunks. ranks: ranks in the
 * largest group. */
uint64_t ddp_plan_chunks(const struct ddp_bench_options *options, int ranks);

/* The following functions are in plan_compress.c and concern --compress and --partial. */
/* Largest number of chunks of --partial. */
#define DDP_PLAN_PARTIAL_MAX 1024
/* Checks --compress, --partial and the options that need one of the two, and their combination with
 * other options. Returns DDP_EUSAGE if they are invalid. */
int ddp_plan_check_compress(const struct ddp_bench_options *options,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* True if any point compresses its data, or exchanges only a part of its data at a time. */
bool ddp_plan_reduces(const struct ddp_bench_options *options);
/* Returns the j-th algorithm that can exchange what options->compress.v[method] encodes, or NULL
 * after the last one. "auto" is not counted. */
const char *ddp_plan_algorithm(const struct ddp_bench_options *options, int method, int j);
/* ddp_plan_method returns method i, or `none` without --compress. ddp_plan_methods returns the
 * number of methods, at least 1. ddp_plan_method_of returns the method of a point. */
const struct ddp_compress_spec *ddp_plan_method(const struct ddp_bench_options *options, int i);
const struct ddp_compress_spec *ddp_plan_method_of(const struct ddp_bench_options *options,
                                                   const struct ddp_point_spec *spec);
int ddp_plan_methods(const struct ddp_bench_options *options);
/* True if error feedback is on for a point. */
bool ddp_plan_feedback(const struct ddp_bench_options *options, const struct ddp_point_spec *spec);
/* Adds the memory that compression needs to the plan. on_device: the gradients are in device
 * memory. */
void ddp_plan_add_compress_bytes(const struct ddp_bench_options *options, bool on_device,
                                 struct ddp_bench_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
