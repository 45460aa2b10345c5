/* Runs the timed iterations of a point in *batches*. Between two batches the ranks exchange their
 * start and end times, and rank 0 decides how many iterations follow. */
#include "bench/iterations.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/arrival.h"
#include "comm/backend.h"
#include "comm/hosts.h"
#include "comm/shm/comm_shm.h"
#include "stats/series.h"

/* Largest number of iterations whose times are exchanged in one call. */
#define CHUNK 512
/* Values that the ranks exchange per iteration: start, end, stolen and lost time. */
#define SPAN 4
/* Time from the announcement of a start to the start. It begins at LEAD_NS, and doubles when a rank
 * was late, up to LEAD_MAX_NS. Otherwise it shrinks slowly to LEAD_NS, because a rank that waits
 * longer is more likely to be interrupted. */
#define LEAD_NS     5000
#define LEAD_MAX_NS 1000000
/* A start further ahead than this is wrong. Such a start occurs if processes of one host have
 * different clocks (time namespaces). */
#define FAR_NS 1000000000
/* Largest number of invalid iterations for `kept` valid ones. The point fails if there are more. */
#define INVALID_MAX(kept) (200 + 4 * (kept))
/* Ranks of several hosts estimate their clock offsets again after this time. */
#define DRIFT_NS 1000000000
/* After this many iterations, the ranks move their flags in shared memory to other addresses
 * (ddp_shm_move_flags). The time of a flag depends on its address, so a point uses several
 * addresses. */
#define MOVE_STARTS 16

int ddp_iterations_create(struct ddp_comm *comm, const struct ddp_bench_options *options,
                          struct ddp_iterations **out, struct ddp_err *err)
{
    const size_t iters = (size_t)options->iters, size = (size_t)comm->size;
    struct ddp_iterations *it;
    int rc;
    DDP_TRY(DDP_NEW(&it, 1, err));
    it->comm = comm;
    it->options = options;
    ddp_clocks_init(&it->clocks, comm);
    DDP_TRY_GOTO(DDP_NEW(&it->begin, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->end, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->sample, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->skew_start, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->skew_exit, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->after_last, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->stolen, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->lost, iters, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->chunk, size * SPAN * CHUNK, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->rank_sum, size, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->times, size, err), err_iterations);
    DDP_TRY_GOTO(DDP_NEW(&it->throttled_ns, size, err), err_iterations);
    if (ddp_straggler_create(comm->size, &it->straggler) != 0)
        DDP_TRY_GOTO(ddp_fail_memory(err, size, sizeof *it->times, __func__), err_iterations);
    /* Write to the pages now, so that there are no page faults between the iterations. If --iters
     * is very large, only the first pages are written. */
    const size_t touched = DDP_MIN(iters, (size_t)DDP_PLAN_ITERS_ADAPTIVE);
    memset(it->begin, 0xff, touched * sizeof *it->begin);
    memset(it->end, 0xff, touched * sizeof *it->end);
    memset(it->stolen, 0, touched * sizeof *it->stolen);
    memset(it->lost, 0, touched * sizeof *it->lost);
    *out = it;
    return 0;
err_iterations:
    ddp_iterations_destroy(it);
    return rc;
}

void ddp_iterations_destroy(struct ddp_iterations *it)
{
    if (!it)
        return;
    free(it->begin);
    free(it->end);
    free(it->sample);
    free(it->skew_start);
    free(it->skew_exit);
    free(it->after_last);
    free(it->stolen);
    free(it->lost);
    free(it->chunk);
    free(it->rank_sum);
    free(it->times);
    free(it->throttled_ns);
    ddp_straggler_destroy(it->straggler);
    free(it);
}

void ddp_iterations_open(struct ddp_iterations *it, const char *id)
{
    const struct ddp_bench_options *o = it->options;
    memset(it->stolen, 0, (size_t)it->kept * sizeof *it->stolen);
    memset(it->lost, 0, (size_t)it->kept * sizeof *it->lost);
    it->warm = it->kept = it->evaluated = it->goal = it->ran = it->invalid = 0;
    it->late = it->pending = false;
    it->lead_ns = LEAD_NS;
    it->delay = strcmp(o->inject_id, id) == 0 ? o->inject_percent / 100 : 0;
    it->opened_ns = ddp_now_ns();
    it->core.wall_ns = 0;
    memset(it->rank_sum, 0, (size_t)it->comm->size * sizeof *it->rank_sum);
    ddp_straggler_reset(it->straggler);
}

/* Stores the stolen and the lost time since the last reading of the core time (iterations.h). If
 * the last reading is not old enough, stores nothing, and the values of the iteration stay 0. */
static void count_stolen(struct ddp_iterations *it, int64_t begin_ns, int64_t end_ns)
{
    struct ddp_core_time now;
    it->timed_ns += end_ns - begin_ns;
    if (it->core.wall_ns != 0 && end_ns - it->core.wall_ns < DDP_ITERATIONS_CORE_NS)
        return;
    ddp_core_time_read(&now);
    if (it->core.wall_ns != 0) {
        const int64_t between = DDP_MAX(now.wall_ns - it->core.wall_ns, 1);
        const double timed = fmin((double)it->timed_ns / (double)between, 1);
        const int64_t stolen = ddp_core_time_stolen(&it->core, &now);
        it->stolen[it->kept] = (int64_t)((double)stolen * timed);
        /* A rank that yields in the barrier may get its core back late. */
        it->lost[it->kept] = stolen + now.yielded_ns - it->core.yielded_ns;
    }
    it->core = now;
    it->timed_ns = 0;
}

int64_t ddp_iterations_keep(struct ddp_iterations *it, int64_t begin_ns, int64_t end_ns)
{
    const bool window = it->options->start == DDP_START_WINDOW && it->comm->size > 1;
    it->late = window && begin_ns > it->start_ns + DDP_ITERATIONS_LATE_NS;
    if (ddp_iterations_warming(it)) {
        it->warm++;
        return -1;
    }
    /* The next cache lines of the arrays are prefetched, because the stores of the next operation
     * wait until the stores here have their lines. */
    it->begin[it->kept] = begin_ns;
    it->end[it->kept] = end_ns;
    ddp_prefetch(it->begin, ((size_t)it->kept + 8) * sizeof *it->begin, 1);
    ddp_prefetch(it->end, ((size_t)it->kept + 8) * sizeof *it->end, 1);
    count_stolen(it, begin_ns, end_ns);
    it->pending = window;
    it->ran++;
    return it->kept++;
}

/* Message that each rank sends before a start in a window. start_ns: only rank 0's is used. late:
 * this rank began its last iteration late. */
struct start_notice {
    int64_t start_ns, late;
};

/* Exchanges a start_notice among all ranks, and sets *start_ns to rank 0's. Drops the last
 * iteration if any rank began it late. */
static int exchange_start(struct ddp_iterations *it, int64_t *start_ns, struct ddp_err *err)
{
    struct ddp_comm *comm = it->comm;
    struct start_notice *all = (struct start_notice *)it->chunk; /* [size] */
    const struct start_notice mine = {.start_ns = *start_ns, .late = it->late};
    bool late = false;
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        late = late || all[r].late;
    *start_ns = all[0].start_ns;
    it->lead_ns = late ? DDP_MIN(2 * it->lead_ns, LEAD_MAX_NS)
                       : DDP_MAX(it->lead_ns - it->lead_ns / 16, LEAD_NS);
    if (late && it->pending) {
        it->kept--;
        it->invalid++;
        it->stolen[it->kept] = it->lost[it->kept] = 0;
    }
    it->pending = it->late = false;
    if (it->invalid <= INVALID_MAX(it->kept))
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "--start window: %lld of %lld iterations began late on some rank",
             (long long)it->invalid, (long long)it->ran);
    ddp_hint(err, "each rank needs a core of its own; use --start barrier");
    err->agreed = true; /* all ranks have the same counts */
    return DDP_EUNAVAIL;
}

int ddp_iterations_start(struct ddp_iterations *it, struct ddp_err *err)
{
    struct ddp_comm *comm = it->comm;
    if (comm->size == 1)
        return 0;
    if (comm->shm != NULL && it->starts++ % MOVE_STARTS == 0)
        DDP_TRY(ddp_shm_move_flags(comm, err));
    DDP_TRY(ddp_comm_barrier(comm, err));
    /* If comm->control is set, the barrier above used it. Without shared memory, comm->control
     * releases the ranks one after the other, so a barrier of the backend follows. */
    if (comm->control != NULL && comm->control->shm == NULL)
        DDP_TRY(comm->backend->barrier(comm, err));
    if (it->options->start != DDP_START_WINDOW) {
        /* The call would delay this rank after the barrier. */
        if (it->options->arrival.kind != DDP_ARRIVAL_TOGETHER)
            ddp_arrival_wait(&it->options->arrival, comm, (uint64_t)it->options->seed,
                             it->arrivals++);
        return 0;
    }
    int64_t start = ddp_clocks_global(&it->clocks, ddp_now_ns()) + it->lead_ns;
    DDP_TRY(exchange_start(it, &start, err));
    it->start_ns = ddp_clocks_local(&it->clocks, start);
    if (it->start_ns - ddp_now_ns() > FAR_NS)
        it->start_ns = 0; /* wrong clock: begin now; this counts as late */
    while (ddp_now_ns() < it->start_ns)
        if (comm->rank_info.oversubscribed)
            sched_yield();
    return 0;
}

int ddp_iterations_join(struct ddp_comm *comm, size_t bytes, struct ddp_err *err)
{
    return bytes < DDP_ITERATIONS_JOIN_BYTES || comm->size == 1 ? 0 : ddp_comm_barrier(comm, err);
}

/* Evaluates one iteration and stores its figures at index `at`. span [size][n][SPAN]: the times of
 * n iterations on each rank. i: index of the iteration in span. */
static void evaluate_one(struct ddp_iterations *it, const int64_t *span, size_t n, size_t i,
                         int64_t at)
{
    int64_t first = INT64_MAX, last_begin = INT64_MIN, first_end = INT64_MAX, last = INT64_MIN;
    int64_t slowest = 0;
    for (int r = 0; r < it->comm->size; r++) {
        const int64_t *own = span + ((size_t)r * n + i) * SPAN, begin = own[0], end = own[1];
        it->times[r] = (struct ddp_straggler_times){.entry = (double)begin,
                                                    .exit = (double)end,
                                                    .stolen = (double)own[2],
                                                    .lost = (double)own[3]};
        slowest = DDP_MAX(slowest, end - begin);
        first = DDP_MIN(first, begin);
        last_begin = DDP_MAX(last_begin, begin);
        first_end = DDP_MIN(first_end, end);
        last = DDP_MAX(last, end);
        it->rank_sum[r] += (double)(end - begin);
    }
    const int64_t took = it->options->start == DDP_START_WINDOW ? last - first : slowest;
    it->sample[at] = (double)took / (double)DDP_MAX(it->options->block, 1);
    it->skew_start[at] = (double)(last_begin - first);
    it->skew_exit[at] = (double)(last - first_end);
    it->after_last[at] = (double)(last - last_begin);
    double unused;
    (void)ddp_straggler_add(it->straggler, it->times, &unused);
    ddp_straggler_next(it->straggler, (double)(last - first));
}

/* Converts the times of iterations [it->evaluated, it->kept) to rank 0's clock, exchanges them
 * among all ranks and evaluates them. */
static int evaluate_batch(struct ddp_iterations *it, struct ddp_err *err)
{
    struct ddp_comm *comm = it->comm;
    DDP_TRY(ddp_clocks_estimate(&it->clocks, err));
    while (it->evaluated < it->kept) {
        int64_t mine[SPAN * CHUNK];
        const size_t n = (size_t)DDP_MIN(it->kept - it->evaluated, CHUNK);
        for (size_t i = 0; i < n; i++) {
            const size_t at = (size_t)it->evaluated + i;
            mine[SPAN * i] = ddp_clocks_global(&it->clocks, it->begin[at]);
            mine[SPAN * i + 1] = ddp_clocks_global(&it->clocks, it->end[at]);
            mine[SPAN * i + 2] = it->stolen[at];
            mine[SPAN * i + 3] = it->lost[at];
        }
        DDP_TRY(ddp_comm_allgather_bytes(comm, mine, it->chunk, SPAN * n * sizeof *mine, err));
        for (size_t i = 0; i < n; i++)
            evaluate_one(it, it->chunk, n, i, it->evaluated + (int64_t)i);
        it->evaluated += (int64_t)n;
    }
    return 0;
}

static bool is_checkpoint(int64_t n)
{
    size_t checkpoint = ddp_stop_next(0);
    while (checkpoint < (size_t)n)
        checkpoint = ddp_stop_next(checkpoint);
    return checkpoint == (size_t)n;
}

/* True if the interval is checked at this number of iterations, and is narrow enough. Also false if
 * there is no memory for the summary. Called on rank 0. */
static bool is_precise(const struct ddp_iterations *it)
{
    struct ddp_summary s;
    return it->options->precision > 0 && is_checkpoint(it->kept) &&
           ddp_summarize(it->sample, (size_t)it->kept, &s) == 0 &&
           ddp_stop_precise(&s, it->options->precision);
}

/* Returns the number of iterations at the next evaluation, estimated from the time per iteration.
 * Returns it->kept if no more iterations are needed. Called on rank 0. */
static int64_t choose_goal(struct ddp_iterations *it)
{
    const struct ddp_bench_options *o = it->options;
    const int64_t n = it->kept, least = DDP_MIN(o->iters, DDP_ITERATIONS_LEAST);
    const double spent = (double)(ddp_now_ns() - it->opened_ns), limit = o->max_time_s * 1e9;
    if (n > 0) {
        it->stop = DDP_STOP_PRECISION;
        if (is_precise(it))
            return n;
        it->stop = n < o->iters       ? DDP_STOP_TIME
                   : o->precision > 0 ? DDP_STOP_ITERS
                                      : DDP_STOP_COUNT;
        if (n >= o->iters || (limit > 0 && spent >= limit && n >= least))
            return n;
    } else if (limit > 0 && o->warmup == 0) {
        return least; /* no iteration has been timed yet */
    }
    int64_t goal = o->iters;
    if (o->precision > 0)
        goal = DDP_MIN(goal, (int64_t)ddp_stop_next((size_t)n));
    const double each = n > 0 ? spent / (double)n : spent / (double)DDP_MAX(o->warmup, 1);
    if (limit > 0 && each > 0) {
        const double left = (limit - (n > 0 ? spent : 0)) / each;
        goal = DDP_MIN(goal, DDP_MAX(n + (int64_t)fmin(left, 1e15), DDP_MAX(n + 1, least)));
    }
    if (!it->clocks.common && each > 0)
        goal = DDP_MIN(goal, n + DDP_MAX((int64_t)fmin(DRIFT_NS / each, 1e15), 1));
    return goal;
}

/* Reads the counters of the network into out [DDP_NET_COUNTERS] on the lowest rank of each host, if
 * the ranks may use a network. On other ranks, and if no network can be used, all of `out` becomes
 * -1. */
static void count_network(const struct ddp_iterations *it, int64_t *out)
{
    const struct ddp_comm *comm = it->comm;
    const bool is_local = (comm->backend->caps & (DDP_CAP_MAP | DDP_CAP_SELF)) != 0;
    for (int i = 0; i < DDP_NET_COUNTERS; i++)
        out[i] = -1;
    if (!is_local && (!comm->hosts || comm->hosts->local_rank[comm->rank] == 0))
        ddp_network_count("", comm->nic.name, out);
}

/* Evaluates the last batch and agrees on the goal. No batch follows if goal == kept. */
static int finish_batch(struct ddp_iterations *it, struct ddp_err *err)
{
    struct decision {
        int64_t goal, stop;
    } mine = {0, 0}, *all = (struct decision *)it->chunk; /* [size] */
    DDP_TRY(evaluate_batch(it, err));
    if (it->comm->rank == 0) {
        mine.goal = choose_goal(it);
        mine.stop = it->stop;
    }
    DDP_TRY(ddp_comm_allgather_bytes(it->comm, &mine, all, sizeof mine, err));
    it->goal = all[0].goal;
    it->stop = (enum ddp_stop)all[0].stop;
    it->core.wall_ns = it->timed_ns = 0;
    if (it->kept == 0) { /* warm-up is over: measuring begins */
        ddp_interference_read(&it->before);
        count_network(it, it->network_before);
        it->opened_ns = ddp_now_ns();
    }
    return 0;
}

int ddp_iterations_next(struct ddp_iterations *it, bool *more, struct ddp_err *err)
{
    *more = true;
    if (it->warm == 0 && it->goal == 0 && it->clocks.estimates == 0)
        DDP_TRY(ddp_clocks_estimate(&it->clocks, err));
    if (ddp_iterations_warming(it) || it->kept < it->goal)
        return 0;
    if (it->pending) { /* check whether the last iteration of the batch was valid */
        int64_t unused = 0;
        DDP_TRY(exchange_start(it, &unused, err));
        if (it->kept < it->goal)
            return 0;
    }
    DDP_TRY(finish_batch(it, err));
    *more = it->kept < it->goal;
    return 0;
}

/* Sets *out to the median of values[kept], or to NaN if there is only one rank. */
static int median_of(const struct ddp_iterations *it, const double *values, double *out)
{
    *out = NAN;
    return it->comm->size == 1 ? 0 : ddp_median_of(values, (size_t)it->kept, out);
}

static int summarize(struct ddp_iterations *it, struct ddp_point *out, struct ddp_err *err)
{
    const size_t n = (size_t)it->kept;
    if (ddp_summarize(it->sample, n, &out->time_ns) != 0 ||
        median_of(it, it->skew_start, &out->skew_start_ns) != 0 ||
        median_of(it, it->skew_exit, &out->skew_exit_ns) != 0 ||
        (out->spec.arrival[0] && median_of(it, it->after_last, &out->after_last_ns) != 0) ||
        ddp_series_judge(it->sample, n, &out->series) != 0)
        return ddp_fail(err, DDP_ENOMEM, "no memory to summarise %zu iterations", n);
    if (n < DDP_SERIES_MIN)
        out->series.trend = out->series.autocorrelation = out->series.shift = NAN;
    if (out->block > 1)
        out->time_ns.ci95_lo = out->time_ns.ci95_hi = NAN;
    return 0;
}

/* The disturbances that a rank has seen. */
struct share {
    struct ddp_interference seen;
    int64_t network[DDP_NET_COUNTERS];
    uint64_t host;
    bool oversubscribed;
};

/* Sums the counters of the network over the hosts. The lowest rank of each host gives the counters
 * of the host. `all` [size] holds the shares of the ranks. If a counter is unknown (-1) on one
 * host, its sum is unknown. If all ranks are on one host, they do not use the network interface, so
 * its counters become unknown. If that host sent fewer TCP segments than there were operations, the
 * ranks did not use TCP, and all counters become unknown. */
static void sum_network(const struct ddp_iterations *it, const struct share *all, int64_t *out)
{
    const int64_t operations = it->kept * DDP_MAX(it->options->block, 1);
    int hosts = 0;
    memcpy(out, all[0].network, sizeof all[0].network);
    for (int r = 0; r < it->comm->size; r++) {
        int first = 0;
        while (all[first].host != all[r].host)
            first++;
        hosts += first == r;
        for (int i = 0; first == r && r > 0 && i < DDP_NET_COUNTERS; i++)
            out[i] = out[i] < 0 || all[r].network[i] < 0 ? -1 : out[i] + all[r].network[i];
    }
    if (hosts == 1)
        out[DDP_NET_NIC_ERRORS] = out[DDP_NET_NIC_DROPS] = -1;
    for (int i = 0; i < DDP_NET_COUNTERS; i++)
        if (hosts == 1 && all[0].network[DDP_NET_SEGMENTS] < operations)
            out[i] = -1;
}

/* Combines the interference counters of all ranks. Also finds whether any host has more ranks than
 * cores. */
static int share_interference(struct ddp_iterations *it, struct ddp_point *point,
                              struct ddp_err *err)
{
    struct ddp_interference *out = &point->interference;
    struct share mine = {.host = it->comm->host,
                         .oversubscribed = it->comm->rank_info.oversubscribed},
                 *all;
    int rc = DDP_NEW(&all, (size_t)it->comm->size, err);
    DDP_TRY_GOTO(ddp_comm_agree(it->comm, rc, err), out);
    ddp_interference_read(&mine.seen);
    ddp_interference_since(&it->before, &mine.seen);
    count_network(it, mine.network);
    ddp_network_count_since(it->network_before, mine.network);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(it->comm, &mine, all, sizeof mine, err), out);
    *out = all[0].seen;
    for (int r = 0; r < it->comm->size; r++)
        it->throttled_ns[r] = all[r].seen.throttled_ms * 1e6;
    point->oversubscribed = all[0].oversubscribed;
    for (int r = 1; r < it->comm->size; r++) {
        const struct ddp_interference *seen = &all[r].seen;
        point->oversubscribed |= all[r].oversubscribed;
        out->steal_ms = fmax(out->steal_ms, seen->steal_ms);
        out->throttled_ms = fmax(out->throttled_ms, seen->throttled_ms);
        out->clock_MHz = fmin(out->clock_MHz, seen->clock_MHz);
        if (out->involuntary_switches < 0 || seen->involuntary_switches < 0)
            out->involuntary_switches = -1;
        else
            out->involuntary_switches += seen->involuntary_switches;
    }
    sum_network(it, all, point->network);
out:
    free(all);
    return rc;
}

/* The least floor_ns of judge_straggler: delays below this number of ns are never judged. */
#define FLOOR_NS 500

/* Sets *error to the largest error bound of a rank's clock. */
static int clock_error(struct ddp_iterations *it, double *error, struct ddp_err *err)
{
    const double mine = it->clocks.common ? 0 : it->clocks.error_ns;
    double *all = (double *)it->chunk; /* [size] */
    DDP_TRY(ddp_comm_allgather_bytes(it->comm, &mine, all, sizeof mine, err));
    *error = 0;
    for (int r = 0; r < it->comm->size; r++)
        *error = fmax(*error, all[r]);
    return 0;
}

/* Names the rank for which the other ranks waited. All ranks get the same verdict. */
static int judge_straggler(struct ddp_iterations *it, struct ddp_point *out, struct ddp_err *err)
{
    const struct ddp_point_spec *s = &out->spec;
    double error;
    DDP_TRY(clock_error(it, &error, err));
    /* All ranks must use the same duration. */
    int64_t passed = ddp_now_ns() - it->opened_ns, *all = it->chunk; /* [size] */
    DDP_TRY(ddp_comm_allgather_bytes(it->comm, &passed, all, sizeof passed, err));
    passed = all[0];
    const struct ddp_straggler_setup setup = {
        .floor_ns = fmax(FLOOR_NS, 2 * fmax(fmin(out->pingpong_ns[0], out->pingpong_ns[1]), error)),
        .same_role = !ddp_coll_has_root(s->coll) && s->groups <= 1 && !s->group_list[0] &&
                     (!s->split[0] || strcmp(s->split, "even") == 0),
        .after_barrier = true,
        .throttled_ns = it->throttled_ns,
        .passed_ns = (double)passed,
        .oversubscribed = out->oversubscribed,
    };
    ddp_straggler_judge(it->straggler, &setup, &out->straggler);
    return 0;
}

int ddp_iterations_close(struct ddp_iterations *it, struct ddp_point *out, struct ddp_err *err)
{
    const struct ddp_bench_options *o = it->options;
    const int size = it->comm->size;
    DDP_TRY(share_interference(it, out, err));
    out->iterations = it->kept;
    out->warmup = o->warmup;
    out->invalid = it->invalid;
    out->block = DDP_MAX(o->block, 1);
    out->start = (enum ddp_start)o->start;
    out->stop = it->stop;
    out->injected_percent = it->delay > 0 ? it->delay * 100 : NAN;
    out->sample_count = o->samples ? it->kept : 0;
    DDP_TRY(ddp_comm_agree(it->comm, summarize(it, out, err), err));
    DDP_TRY(judge_straggler(it, out, err));
    out->rank_mean_ns[0] = INFINITY;
    out->rank_mean_ns[1] = out->rank_mean_ns[2] = 0;
    for (int r = 0; r < size; r++) {
        double mean = it->rank_sum[r] / (double)(it->kept * out->block);
        out->rank_mean_ns[0] = fmin(out->rank_mean_ns[0], mean);
        out->rank_mean_ns[1] += mean / size;
        out->rank_mean_ns[2] = fmax(out->rank_mean_ns[2], mean);
    }
    return 0;
}

int ddp_slowest_summary(struct ddp_comm *comm, const int64_t *duration, int64_t iters,
                        int64_t *chunk, double *sample, struct ddp_summary *out,
                        struct ddp_err *err)
{
    for (int64_t first = 0; first < iters; first += DDP_SLOWEST_CHUNK) {
        const size_t n = (size_t)DDP_MIN(iters - first, DDP_SLOWEST_CHUNK);
        DDP_TRY(ddp_comm_allgather_bytes(comm, duration + first, chunk, n * sizeof *duration, err));
        for (size_t i = 0; i < n; i++) {
            int64_t slowest = 0;
            for (int r = 0; r < comm->size; r++)
                slowest = DDP_MAX(slowest, chunk[(size_t)r * n + i]);
            sample[first + (int64_t)i] = (double)slowest;
        }
    }
    int rc = ddp_summarize(sample, (size_t)iters, out);
    if (rc != 0)
        rc = ddp_fail_memory(err, (size_t)iters, sizeof *sample, __func__);
    return ddp_comm_agree(comm, rc, err);
}
