/* The timed iterations of a point: how many, how each starts, what they took together.
 *
 * How many: exactly as many as asked for, or, adaptively, until half the 95 % interval is within
 * `precision` of the median, looked at after 20, 30, 45, ... (stats/series.h). Rank 0 decides when,
 * and tells all. How one starts: after a barrier; or in a *window*: all ranks meet, rank 0 names a
 * moment a little in the future, each waits for it, and an iteration that some rank began too late
 * is invalid: counted, and measured again. Time of an iteration: the slowest rank's own duration;
 * in a window from the earliest start to the latest exit on the synchronised clock (clocks.h).
 *
 *     for (;;) {
 *         ddp_iterations_next(it, &more, err);      untimed; collective
 *         if (!more) break;
 *         ... put the input in place ...
 *         ddp_iterations_start(it, err);            untimed; collective
 *         begin = ddp_now_ns();
 *         ... the operation ...
 *         ddp_iterations_keep(it, begin, ddp_iterations_end(it, begin));
 *         ddp_iterations_join(comm, input's bytes, err);    untimed; collective
 *     }
 *
 * Between begin and end nothing is allocated, written or logged. What it does not do: run anything,
 * or verify. For the samplers. */
#ifndef DDP_BENCH_ITERATIONS_H
#define DDP_BENCH_ITERATIONS_H

#include "base/clock.h"
#include "bench/clocks.h"
#include "bench/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fewer have no interval; so many are measured even if they outlast --max-time. */
#define DDP_ITERATIONS_LEAST 6
/* A start that is later than announced by more than this is late. */
#define DDP_ITERATIONS_LATE_NS 1000
/* Ranks join after iterations of so many bytes. Broadcast in place, 8 ranks on 2 cores (EPYC), us:
 * 327, 1026 and 6319 of 2, 4 and 16 MiB; 587, 1492 and 6443 where nobody joined. */
#define DDP_ITERATIONS_JOIN_BYTES ((size_t)64 << 10)

/* A view for the samplers; all members are the functions'. begin, end [options->iters]: of this
 * rank, its clock's, from the last look on, then rank 0's. sample, skew [iters]: of all ranks. */
struct ddp_iterations {
    struct ddp_comm *comm;
    const struct ddp_bench_options *options;
    struct ddp_clocks clocks;
    struct ddp_interference before;
    int64_t *begin, *end, *chunk;
    double *sample, *skew_start, *skew_exit, *rank_sum;
    int64_t warm, kept, judged, goal, ran, invalid;
    int64_t opened_ns;
    int64_t start_ns;
    int64_t lead_ns;
    bool late;
    bool pending;
    enum ddp_stop stop;
    double delay;
};

/* Allocates for options->iters iterations. comm, options: borrowed. Not collective. */
int ddp_iterations_create(struct ddp_comm *comm, const struct ddp_bench_options *options,
                          struct ddp_iterations **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_iterations_destroy(struct ddp_iterations *it);
/* Begins a point; id: what --inject-delay may name. */
void ddp_iterations_open(struct ddp_iterations *it, const char *id);
/* Is another iteration wanted? Collective. DDP_EUNAVAIL: ranks are late time and again. */
int ddp_iterations_next(struct ddp_iterations *it, bool *more, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns when it may begin, on all ranks at about the same time. Collective; one rank has nobody
 * to wait for. */
int ddp_iterations_start(struct ddp_iterations *it, struct ddp_err *err) DDP_MUST_CHECK;
/* Warming up? */
static inline bool ddp_iterations_warming(const struct ddp_iterations *it)
{
    return it->warm < it->options->warmup;
}
/* The end of an operation that began at begin_ns: now, or after the injected delay. */
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
/* Its place among those kept, -1 while warming up. */
int64_t ddp_iterations_keep(struct ddp_iterations *it, int64_t begin_ns, int64_t end_ns);
/* Returns when all ranks have ended an iteration, of whatever loop: what a rank does next, verify
 * `bytes` and put its input in place, would take processor time and bandwidth from those whose
 * clock still runs. Below DDP_ITERATIONS_JOIN_BYTES that takes less than this would: returns at
 * once. Collective; bytes: equal on all. */
int ddp_iterations_join(struct ddp_comm *comm, size_t bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* What all iterations were: fills of a point what is said of iterations, start and stop, times,
 * series, skew, interference and sample_count. Collective. */
int ddp_iterations_close(struct ddp_iterations *it, struct ddp_point *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
