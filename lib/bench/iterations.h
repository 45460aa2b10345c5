/* Runs the timed iterations of a point: decides how many there are, starts each one, and computes
 * its time.
 *
 * Number: a point has exactly --iters iterations, or an adaptive number of iterations. Adaptive
 * iterations end when (1) half the width of the median's 95 % interval is at most `precision` times
 * the median, (2) the maximum time has passed, or (3) the maximum number is reached. The interval
 * is checked after 20, 30, 45, ... iterations (stats/series.h). Rank 0 decides and sends the
 * decision to all ranks.
 *
 * Start: each iteration starts after a barrier, or in a *window*. For a window, rank 0 announces a
 * start time a little in the future, and each rank waits until that time. If a rank begins too
 * late, the iteration is counted as invalid and measured again.
 *
 * Time: the time of an iteration is its duration on the slowest rank. In a window it is the time
 * from the earliest start to the latest end on the common clock (comm/clocks.h). With --block K, an
 * iteration is K calls in a row, and its time is divided by K.
 *
 *     for (;;) {
 *         ddp_iterations_next(it, &more, err);      untimed; collective
 *         if (!more) break;
 *         ... write the input ...
 *         ddp_iterations_start(it, err);            untimed; collective
 *         begin = ddp_now_ns();
 *         ... the operation ...
 *         ddp_iterations_keep(it, begin, ddp_iterations_end(it, begin));
 *         ddp_iterations_join(comm, input's bytes, err);    untimed; collective
 *     }
 *
 * The callers run and verify the operation themselves. */
#ifndef DDP_BENCH_ITERATIONS_H
#define DDP_BENCH_ITERATIONS_H

#include "base/clock.h"
#include "base/core_time.h"
#include "bench/plan.h"
#include "comm/clocks.h"
#include "stats/straggler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Least number of iterations, because fewer give no interval of the median. This number (or
 * --iters, if that is less) is measured even if it takes longer than --max-time. */
#define DDP_ITERATIONS_LEAST 6
/* An iteration is invalid if a rank began it more than this number of ns after the announced
 * start. */
#define DDP_ITERATIONS_LATE_NS 1000
/* Least time in ns between two readings of the core time (base/core_time.h). Each reading takes two
 * system calls. */
#define DDP_ITERATIONS_CORE_NS 1000000
/* Ranks wait for each other after iterations of at least this many bytes (see ddp_iterations_join).
 * results/notes/bench.md has the measurement. */
#define DDP_ITERATIONS_JOIN_BYTES ((size_t)64 << 10)

/* Callers may read the members. Only the functions below change them. */
struct ddp_iterations {
    struct ddp_comm *comm;
    const struct ddp_bench_options *options;
    struct ddp_clocks clocks;
    /* interference counters at the start of the measurement */
    struct ddp_interference before;
    int64_t network_before[DDP_NET_COUNTERS]; /* counters of the network at the same time */
    /* begin, end [options->iters]: start and end of each iteration on this rank, by its own clock.
     * chunk [size * 4 * 512]: scratch for exchanges. */
    int64_t *begin, *end, *chunk;
    /* [options->iters]: for how long, in ns, the core was taken from this rank since the last
     * reading of the core time. stolen: the estimated part within the timed operations. lost: the
     * whole time, plus the time for which ddp_core_yield left the core to others. Iterations
     * without a reading have 0. */
    int64_t *stolen, *lost;
    struct ddp_core_time core; /* the last reading; wall_ns is 0 if there is none */
    int64_t timed_ns;          /* sum of the durations of the iterations since the last reading */
    struct ddp_straggler_sums *straggler;
    struct ddp_straggler_times *times; /* [size], of one iteration */
    double *throttled_ns;              /* [size], for how long control groups stopped the ranks */
    uint64_t arrivals;                 /* number of the next iteration for --arrival */
    /* sample, skew_start, skew_exit, after_last [options->iters]: in ns, computed from all ranks.
     * after_last: from the last start to the last end. rank_sum [size]: sum of the durations of
     * each rank. */
    double *sample, *skew_start, *skew_exit, *after_last, *rank_sum;
    /* Numbers of iterations. warm: warm-ups done. kept: recorded. evaluated: combined over all
     * ranks. goal: value of `kept` at the next evaluation. ran: all iterations after the warm-up.
     * invalid: dropped, because a rank began late. */
    int64_t warm, kept, evaluated, goal, ran, invalid;
    int64_t starts;    /* calls of ddp_iterations_start */
    int64_t opened_ns; /* when the warm-up began; after the warm-up: when measuring began */
    int64_t start_ns;  /* announced start in this rank's clock */
    int64_t lead_ns;   /* how far ahead a start is announced */
    bool late;         /* this rank began its last iteration late */
    bool pending;      /* it is not yet known whether all ranks began the last iteration in time */
    enum ddp_stop stop;
    double delay; /* injected delay as a fraction of the operation's time; 0: none */
};

/* Allocates the arrays for options->iters iterations. comm and options are borrowed. Not
 * collective. */
int ddp_iterations_create(struct ddp_comm *comm, const struct ddp_bench_options *options,
                          struct ddp_iterations **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_iterations_destroy(struct ddp_iterations *it);
/* Begins a point. id: the point's id, compared with the id of --inject-delay. */
void ddp_iterations_open(struct ddp_iterations *it, const char *id);
/* Sets *more to whether another iteration is needed. Returns DDP_EUNAVAIL if ranks began late too
 * often. Collective. */
int ddp_iterations_next(struct ddp_iterations *it, bool *more, struct ddp_err *err) DDP_MUST_CHECK;
/* Waits until the iteration may begin, at about the same time on all ranks, or at the time that
 * --arrival gives to this rank. Returns at once if there is only one rank. Before some iterations,
 * first moves the flags in shared memory (comm_shm.h), so that the times do not depend on the
 * addresses of a few cache lines. Returns DDP_EUNAVAIL if ranks began late too often.
 * Collective. */
int ddp_iterations_start(struct ddp_iterations *it, struct ddp_err *err) DDP_MUST_CHECK;
/* True while warm-up iterations are left. */
static inline bool ddp_iterations_warming(const struct ddp_iterations *it)
{
    return it->warm < it->options->warmup;
}
/* True if the iteration that ddp_iterations_next has announced may be the last one. */
static inline bool ddp_iterations_may_end(const struct ddp_iterations *it)
{
    return !ddp_iterations_warming(it) && it->kept + 1 >= it->goal;
}
/* Returns the time now, as the end of an operation that began at begin_ns. If a delay is injected,
 * first waits until the delay is over. */
static inline int64_t ddp_iterations_end(const struct ddp_iterations *it, int64_t begin_ns)
{
    int64_t now = ddp_now_ns();
    if (__builtin_expect(it->delay > 0, 0)) {
        const int64_t until = now + (int64_t)(it->delay * (double)(now - begin_ns));
        while (now < until)
            now = ddp_now_ns();
    }
    return now;
}
/* Records an iteration. Returns its index among the kept ones, or -1 if it was a warm-up. */
int64_t ddp_iterations_keep(struct ddp_iterations *it, int64_t begin_ns, int64_t end_ns);
/* Waits until all ranks have ended the iteration. Without this wait, a fast rank would verify its
 * result and rewrite its input (`bytes` long) while other ranks are still being timed. This work
 * would take processor time and bandwidth from the other ranks. Below DDP_ITERATIONS_JOIN_BYTES
 * this work costs less than the wait, so the function returns at once. bytes must be equal on all
 * ranks. Collective. */
int ddp_iterations_join(struct ddp_comm *comm, size_t bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills the members of a point that describe its iterations: counts, start and stop, times, series,
 * skew, straggler, interference, network, oversubscribed, injected_percent and sample_count. Reads
 * out->spec and out->pingpong_ns. Collective. */
int ddp_iterations_close(struct ddp_iterations *it, struct ddp_point *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* Largest number of durations that ddp_slowest_summary exchanges in one call. */
#define DDP_SLOWEST_CHUNK 1024
/* Summarises iterations. The time of an iteration is its duration on the slowest rank. duration
 * [iters]: this rank's durations in ns. chunk [size * DDP_SLOWEST_CHUNK], sample [iters]: scratch.
 * Collective; all ranks get the same summary. */
int ddp_slowest_summary(struct ddp_comm *comm, const int64_t *duration, int64_t iters,
                        int64_t *chunk, double *sample, struct ddp_summary *out,
                        struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
