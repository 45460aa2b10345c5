#include "run/isolate_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/coll.h"
#include "record/isolate_judge.h"
#include "run/world.h"
#include "stats/group_test.h"
#include "stats/summary.h"

/* The calls of a repetition together take about this time, so that the barrier before the
 * repetition does not matter. */
#define REPETITION_S   0.004
#define CALLS_MOST     1000
#define WARM_UPS       2
#define PROBE_CALLS    2
#define REPEATS_LEAST  5
#define REPEATS_MOST   49
#define ROUNDS_LEFT    4 /* time is reserved for at least this many rounds */
#define INJECT_MS_MOST 10000

const char *const ddp_isolate_collective_names[] = {"all_to_all", "allreduce", NULL};

int ddp_isolate_parse_inject(struct ddp_isolate_values *v, struct ddp_err *err)
{
    char end;
    v->inject_rank = v->inject_to = -1;
    if (!v->inject)
        return 0;
    const int read =
        sscanf(v->inject, "%lf@%d-%d%c", &v->inject_ms, &v->inject_rank, &v->inject_to, &end);
    const char *dash = strchr(v->inject, '-');
    if ((read == 2 && !dash && strchr("0123456789", v->inject[strlen(v->inject) - 1])) ||
        read == 3) {
        if (v->inject_ms > 0 && v->inject_ms <= INJECT_MS_MOST && v->inject_rank >= 0 &&
            (read == 2 || (v->inject_to >= 0 && v->inject_to != v->inject_rank)))
            return 0;
    }
    ddp_fail(err, DDP_EUSAGE, "--inject-delay '%s' is not a valid MS@RANK or MS@RANK-RANK",
             v->inject);
    return ddp_hint(
        err, "for example 5@2 for 5 ms at rank 2, or 5@2-3; at most %d ms, and two different ranks",
        INJECT_MS_MOST);
}

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    const struct ddp_isolate_values *v = values;
    const uint64_t bytes = 2 * DDP_MAX(v->size, (uint64_t)ranks * sizeof(float)) *
                           (uint64_t)ddp_app_local_ranks(app, ranks);
    DDP_TRY(ddp_job_check_ranks("isolate", backend, ranks, bytes, err));
    if (app->launcher.kind != DDP_LAUNCHER_NONE && ranks < app->launcher.rank_info.size)
        return ddp_fail(err, DDP_EUSAGE, "isolate takes all %d ranks of the job, not --ranks %d",
                        app->launcher.rank_info.size, ranks);
    if (v->inject_rank >= ranks || v->inject_to >= ranks)
        return ddp_fail(err, DDP_EUSAGE, "--inject-delay '%s': the ranks are 0 to %d", v->inject,
                        ranks - 1);
    return 0;
}

static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    (void)values;
    (void)out;
    return ddp_fail(err, DDP_EUNAVAIL, "isolate measures processors and their network, not GPUs");
}

static void release(void *values)
{
    (void)values;
}

/* The result of a rank in a round. */
struct sample {
    double ns[REPEATS_MOST]; /* time of a call in each repetition; NaN: not measured */
    double spent_s;          /* since the search began */
};

/* The result of a rank in the first repetition of a round, which does not count. */
struct probe {
    double call_ns; /* NaN: the rank is in no group */
    double spent_s; /* since the search began */
};

struct isolate {
    struct ddp_rank *rank;
    const struct ddp_isolate_values *v;
    struct ddp_group_test *test; /* all ranks have the same state */
    int ends, ranks_of_end;      /* each end takes part with this many ranks */
    bool by_host;
    bool oversubscribed; /* a rank has no core of its own */
    int *end_of;         /* [size] the end of each rank; -1: the rank does not take part */
    int *group;          /* [size] the group of each end in this round */
    int *members, count; /* [count] ranks of this rank's group; count 0: no group */
    float *send, *recv;  /* [elements] */
    size_t elements;
    int calls, repeats;   /* of this round: calls per repetition of the group; repetitions */
    struct sample *all;   /* [size] */
    struct probe *probes; /* [size] */
    double *shared;       /* [size * 2 * DDP_GROUPS_MOST] */
    int64_t began_ns;
    bool out_of_time;
};

static int alloc_arrays(struct isolate *m, struct ddp_err *err)
{
    const size_t size = (size_t)m->rank->comm->size;
    m->elements = DDP_MAX((size_t)m->v->size / sizeof *m->send, size);
    DDP_TRY(DDP_NEW(&m->end_of, size, err));
    DDP_TRY(DDP_NEW(&m->members, size, err));
    DDP_TRY(DDP_NEW(&m->group, size, err));
    DDP_TRY(DDP_NEW(&m->all, size, err));
    DDP_TRY(DDP_NEW(&m->probes, size, err));
    DDP_TRY(DDP_NEW(&m->shared, size * 2 * DDP_GROUPS_MOST, err));
    DDP_TRY(DDP_NEW(&m->send, m->elements, err));
    return DDP_NEW(&m->recv, m->elements, err);
}

static void free_arrays(struct isolate *m)
{
    ddp_group_test_close(m->test);
    free(m->end_of);
    free(m->members);
    free(m->group);
    free(m->all);
    free(m->probes);
    free(m->shared);
    free(m->send);
    free(m->recv);
}

/* Chooses the ends, which are the hosts or, on one host, the ranks. Each host takes part with as
 * many ranks as the host with the fewest ranks has, so that all groups have the same number of
 * ranks. */
static void find_ends(struct isolate *m)
{
    const struct ddp_comm *comm = m->rank->comm;
    const struct ddp_hosts *hosts = comm->hosts;
    m->by_host = hosts && hosts->count > 1;
    m->ends = m->by_host ? hosts->count : comm->size;
    m->ranks_of_end = m->by_host ? hosts->ranks[0] : 1;
    for (int h = 0; m->by_host && h < hosts->count; h++)
        m->ranks_of_end = DDP_MIN(m->ranks_of_end, hosts->ranks[h]);
    for (int r = 0; r < comm->size; r++)
        m->end_of[r] = !m->by_host ? r : hosts->local_rank[r] < m->ranks_of_end ? hosts->of[r] : -1;
}

/* Finds out whether a rank has no core of its own, and opens the search. Collective. */
static int open_search(struct isolate *m, struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    const int32_t mine = comm->rank_info.oversubscribed;
    int32_t *flag = (int32_t *)m->shared;
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, flag, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        m->oversubscribed = m->oversubscribed || flag[r];
    const double least = ddp_isolate_least(m->v->min_effect_percent / 100, m->oversubscribed);
    const struct ddp_group_rule rule = {m->ends, (int)m->v->rounds, log1p(least),
                                        (uint64_t)m->v->world.seed};
    int rc = 0;
    if (m->ends <= DDP_GROUP_ENDS_MOST)
        m->test = ddp_group_test_open(&rule);
    if (m->ends > DDP_GROUP_ENDS_MOST)
        rc = ddp_fail(err, DDP_EUSAGE, "isolate takes at most %d hosts or ranks, but there are %d",
                      DDP_GROUP_ENDS_MOST, m->ends);
    else if (!m->test)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for a search among %d ends", m->ends);
    return ddp_comm_agree(comm, rc, err);
}

/* Sets `members` to the ranks of the group of this rank. */
static void find_members(struct isolate *m)
{
    const struct ddp_comm *comm = m->rank->comm;
    const int end = m->end_of[comm->rank], mine = end < 0 ? -1 : m->group[end];
    m->count = 0;
    for (int r = 0; r < comm->size && mine >= 0; r++)
        if (m->end_of[r] >= 0 && m->group[m->end_of[r]] == mine)
            m->members[m->count++] = r;
}

/* Returns the time that this rank waits before each call. For a link, only its first rank waits,
 * and only if both of its ranks are in the group. */
static int64_t injected_ns(const struct isolate *m)
{
    const struct ddp_isolate_values *v = m->v;
    bool both = v->inject_to < 0;
    if (m->rank->comm->rank != v->inject_rank)
        return 0;
    for (int i = 0; i < m->count; i++)
        both = both || m->members[i] == v->inject_to;
    return both ? (int64_t)(v->inject_ms * 1e6) : 0;
}

static int call(struct ddp_comm *group, struct ddp_coll_plan *plan, int64_t delay_ns, int calls,
                struct ddp_err *err)
{
    for (int i = 0; i < calls; i++) {
        ddp_sleep_ns(delay_ns);
        DDP_TRY(ddp_coll_run(group, plan, err));
    }
    return 0;
}

/* Chooses the number of repetitions of the round, and the number of calls per repetition of this
 * rank's group, from the probes of all ranks. The number of repetitions is chosen so that half of
 * the rounds fit into the time. Few searches need more rounds, and these then have fewer
 * repetitions. */
static void choose_repeats(struct isolate *m)
{
    double mine = 1, most = REPETITION_S * 1e9;
    for (int i = 0; i < m->count; i++)
        mine = fmax(mine, m->probes[m->members[i]].call_ns);
    for (int r = 0; r < m->rank->comm->size; r++)
        most = fmax(most, m->probes[r].call_ns);
    m->calls = (int)fmin(fmax(REPETITION_S * 1e9 / mine, 1), CALLS_MOST);
    const int left = (int)m->v->rounds / 2 - ddp_group_test_result(m->test)->rounds;
    const double round_s = (m->v->max_time_s - m->probes[0].spent_s) / DDP_MAX(left, ROUNDS_LEFT);
    m->repeats = (int)fmin(fmax(round_s * 1e9 / most, REPEATS_LEAST), REPEATS_MOST);
}

/* Runs a repetition that does not count, and chooses the calls and repetitions of the round.
 * Collective. */
static int probe(struct isolate *m, struct ddp_comm *group, struct ddp_coll_plan *plan,
                 struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    struct probe mine = {NAN, NAN};
    DDP_TRY(ddp_comm_barrier(comm, err));
    const int64_t began = ddp_now_ns();
    if (group) {
        DDP_TRY(ddp_comm_abort_if(comm, call(group, plan, injected_ns(m), PROBE_CALLS, err)));
        mine.call_ns = (double)(ddp_now_ns() - began) / PROBE_CALLS;
    }
    mine.spent_s = (double)(ddp_now_ns() - m->began_ns) / 1e9;
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, m->probes, sizeof mine, err));
    choose_repeats(m);
    return 0;
}

/* Runs the repetitions of a round. All groups start a repetition at the same time. `group` is NULL
 * if this rank is in no group. Collective. */
static int repeat(struct isolate *m, struct ddp_comm *group, struct ddp_coll_plan *plan,
                  struct sample *out, struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    const int64_t delay_ns = injected_ns(m);
    for (int k = 0; k < REPEATS_MOST; k++)
        out->ns[k] = NAN;
    for (int k = 0; k < m->repeats; k++) {
        DDP_TRY(ddp_comm_barrier(comm, err));
        const int64_t from = ddp_now_ns();
        if (!group)
            continue;
        DDP_TRY(ddp_comm_abort_if(comm, call(group, plan, delay_ns, m->calls, err)));
        out->ns[k] = (double)(ddp_now_ns() - from) / m->calls;
    }
    out->spent_s = (double)(ddp_now_ns() - m->began_ns) / 1e9;
    return 0;
}

/* Opens the group of this rank, and prepares its collective. Collective over the group. */
static int open_group(struct isolate *m, struct ddp_comm **group, struct ddp_coll_plan *plan,
                      struct ddp_err *err)
{
    const bool exchange = m->v->collective == DDP_ISOLATE_ALL_TO_ALL;
    const struct ddp_coll_args args = {.coll = exchange ? DDP_ALL_TO_ALL : DDP_ALLREDUCE,
                                       .send = m->send,
                                       .recv = m->recv,
                                       .count = m->elements / (exchange ? (size_t)m->count : 1),
                                       .dtype = DDP_F32,
                                       .op = DDP_SUM};
    DDP_TRY(ddp_comm_group(m->rank->comm, m->members, m->count, group, err));
    DDP_TRY(ddp_coll_plan_init(plan, *group, NULL, &args, err));
    return call(*group, plan, 0, WARM_UPS, err);
}

/* Measures the groups of a round. Collective. */
static int measure_groups(struct isolate *m, struct sample *out, struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm, *group = NULL;
    struct ddp_coll_plan plan = {.alg = NULL};
    int rc = 0;
    find_members(m);
    if (m->count > 0)
        rc = ddp_comm_abort_if(comm, open_group(m, &group, &plan, err));
    if (rc == 0)
        rc = probe(m, group, &plan, err);
    if (rc == 0)
        rc = repeat(m, group, &plan, out, err);
    ddp_coll_plan_release(&plan);
    ddp_comm_destroy(group);
    return rc;
}

/* Sets *log_time to the median of the logarithms of the repetitions' times, and *error to the
 * standard error of this median. The time of a repetition is that of the slowest rank of the
 * group. */
static void time_of_group(const struct isolate *m, int group, double *log_time, double *error)
{
    double v[REPEATS_MOST];
    const size_t n = (size_t)m->repeats;
    for (int k = 0; k < m->repeats; k++) {
        double most = 1; /* ns, so that the logarithm exists */
        for (int r = 0; r < m->rank->comm->size; r++)
            if (m->end_of[r] >= 0 && m->group[m->end_of[r]] == group)
                most = fmax(most, m->all[r].ns[k]);
        v[k] = log(most / 1e6);
    }
    *log_time = ddp_median(v, n);
    for (int k = 0; k < m->repeats; k++)
        v[k] = fabs(v[k] - *log_time);
    /* 1.4826 times the median absolute deviation estimates the standard deviation of a repetition,
     * and a median of n values has 1.2533 times the standard error of a mean. */
    *error = 1.2533 * 1.4826 * ddp_median(v, n) / sqrt((double)n);
}

/* Sends the times of the groups to all ranks. Only rank 0 computes them, so that all ranks get the
 * same bits even if their C libraries differ. Collective. */
static int share_times(struct isolate *m, int groups, double *log_time, double *error,
                       struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    double mine[2 * DDP_GROUPS_MOST] = {0};
    for (int g = 0; g < groups && comm->rank == 0; g++)
        time_of_group(m, g, &mine[g], &mine[DDP_GROUPS_MOST + g]);
    DDP_TRY(ddp_comm_allgather_bytes(comm, mine, m->shared, sizeof mine, err));
    memcpy(log_time, m->shared, DDP_GROUPS_MOST * sizeof *log_time);
    memcpy(error, m->shared + DDP_GROUPS_MOST, DDP_GROUPS_MOST * sizeof *error);
    return 0;
}

static int search(struct isolate *m, struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    int groups;
    m->began_ns = ddp_now_ns();
    while (!m->out_of_time && (groups = ddp_group_test_next(m->test, m->group)) > 0) {
        double log_time[DDP_GROUPS_MOST], error[DDP_GROUPS_MOST];
        struct sample mine;
        ddp_emit_progress(m->rank, "isolate: round %d of at most %lld",
                          ddp_group_test_result(m->test)->rounds + 1, (long long)m->v->rounds);
        DDP_TRY(measure_groups(m, &mine, err));
        DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, m->all, sizeof mine, err));
        DDP_TRY(share_times(m, groups, log_time, error, err));
        ddp_group_test_report(m->test, log_time, error);
        m->out_of_time = m->all[0].spent_s > m->v->max_time_s;
    }
    return 0;
}

/* Judges the search on rank 0, and sends the verdict to the collector. */
static int judge(struct isolate *m, struct ddp_err *err)
{
    const struct ddp_comm *comm = m->rank->comm;
    const struct ddp_group_result *result = ddp_group_test_result(m->test);
    const struct ddp_isolate_input in = {.result = result,
                                         .ends = m->ends,
                                         .by_host = m->by_host,
                                         .leader = m->by_host ? comm->hosts->leader : NULL,
                                         .oversubscribed = m->oversubscribed,
                                         .out_of_time = m->out_of_time,
                                         .collective =
                                             ddp_isolate_collective_names[m->v->collective]};
    struct ddp_health h;
    ddp_health_init(&h);
    h.min_effect = ddp_isolate_least(m->v->min_effect_percent / 100, m->oversubscribed);
    h.must_find = m->v->must_find_percent / 100;
    h.passes = result->rounds > 0 ? m->repeats : -1;
    ddp_isolate_judge(&in, &h);
    const int rc = ddp_emit_health(m->rank, &h, err);
    ddp_health_release(&h);
    return rc;
}

static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    struct isolate m = {.rank = rank, .v = values};
    int rc = ddp_comm_agree(rank->comm, alloc_arrays(&m, err), err);
    if (rc == 0) {
        find_ends(&m);
        rc = open_search(&m, err);
    }
    if (rc == 0)
        rc = search(&m, err);
    if (rc == 0 && rank->comm->rank == 0)
        rc = judge(&m, err);
    free_arrays(&m);
    return rc;
}

const struct ddp_job ddp_isolate_job = {
    .prepare = prepare,
    .gpu = gpu,
    .rank_main = rank_main,
    .release = release,
};
