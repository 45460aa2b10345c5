#include "run/health_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/pair_matrix.h"
#include "comm/hosts.h"
#include "record/health_judge.h"
#include "run/world.h"

/* Probability that a healthy run is DEGRADED, if the scatter is normally distributed. */
#define LEVEL 0.01
/* Limits of the number of passes. After PASSES_LEAST passes, another pass is measured if it would
 * probably end before --max-time. Until PASSES_USUAL passes are measured, this limit is OVERTIME
 * times --max-time. */
#define PASSES_LEAST 3
#define PASSES_USUAL 5
#define PASSES_MOST  9
#define OVERTIME     1.75
/* The measurement of a direction ends after this many repetitions or this time
 * (bench/pair_matrix.h). */
#define REPETITIONS 20
#define DIRECTION_S 0.03
/* Steps of the computation, each of which takes a few nanoseconds. A control group with a quota of
 * processor time stops a process for a part of each 100 ms, so the computation must not be much
 * shorter than 100 ms. */
#define COMPUTE_STEPS (1 << 25)
/* Bytes of a memory copy, which is more than the private caches of a core hold. */
#define COPY_BYTES  ((size_t)16 << 20)
#define COPY_ROUNDS 4

static int check_reference(const struct ddp_health_values *v, const char *backend,
                           struct ddp_err *err)
{
    const struct ddp_record *r = &v->stored->record;
    if (r->health.verdict == DDP_HEALTH_NONE || r->matrix.ends == 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a document of ddpbench health", v->reference);
    if (r->health.verdict == DDP_HEALTH_DEGRADED)
        return ddp_fail(err, DDP_EUSAGE, "'%s' cannot be a reference, because it is DEGRADED",
                        v->reference);
    if (strcmp(r->world_backend, backend) != 0) {
        ddp_fail(err, DDP_EMISMATCH, "'%s' was measured with backend %s, not %s", v->reference,
                 r->world_backend, backend);
        return ddp_hint(err, "use --backend %s", r->world_backend);
    }
    if (r->matrix.bytes != v->size) {
        ddp_fail(err, DDP_EMISMATCH, "'%s' was measured with messages of %llu bytes, not %llu",
                 v->reference, (unsigned long long)r->matrix.bytes, (unsigned long long)v->size);
        return ddp_hint(err, "use --size %llu", (unsigned long long)r->matrix.bytes);
    }
    return 0;
}

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    struct ddp_health_values *v = values;
    DDP_TRY(ddp_job_check_ranks("health", backend, ranks, 0, err));
    if (app->launcher.kind != DDP_LAUNCHER_NONE && ranks < app->launcher.rank_info.size)
        return ddp_fail(err, DDP_EUSAGE, "health takes all %d ranks of the job, not --ranks %d",
                        app->launcher.rank_info.size, ranks);
    if (!v->reference || v->stored || !ddp_app_is_root(app))
        return 0;
    DDP_TRY(DDP_NEW(&v->stored, 1, err));
    const int rc = ddp_stored_read(v->reference, NULL, v->stored, err);
    if (rc != 0) {
        free(v->stored);
        v->stored = NULL;
        return rc;
    }
    return check_reference(v, backend, err);
}

static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    (void)values;
    (void)out;
    return ddp_fail(err, DDP_EUNAVAIL, "health measures processors and their network, not GPUs");
}

static void release(void *values)
{
    struct ddp_health_values *v = values;
    if (v->stored)
        ddp_stored_release(v->stored);
    free(v->stored);
    v->stored = NULL;
}

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void compute(struct ddp_health_rank *out)
{
    const int64_t began = ddp_now_ns(), used = thread_ns();
    uint64_t x = 1;
    for (uint64_t i = 0; i < COMPUTE_STEPS; i++)
        x = ddp_mix64(x + i);
    __asm__ volatile("" : : "r"(x)); /* keeps the compiler from removing the loop */
    const double ns = (double)(ddp_now_ns() - began);
    out->compute_ms = ns / 1e6;
    out->core_percent = 100 * (double)(thread_ns() - used) / ns;
}

/* Sets out->copy_GBps to the speed of the fastest round, or to NaN if a buffer could not be
 * allocated. Each byte counts twice, because it is read and written. */
static void copy(char *from, char *to, struct ddp_health_rank *out)
{
    int64_t least = INT64_MAX;
    out->copy_GBps = NAN;
    if (!from || !to)
        return;
    for (int i = 0; i < COPY_ROUNDS; i++) {
        const int64_t began = ddp_now_ns();
        memcpy(to, from, COPY_BYTES);
        least = DDP_MIN(least, ddp_now_ns() - began);
    }
    out->copy_GBps = 2.0 * COPY_BYTES / (double)DDP_MAX(least, 1);
}

static void progress(void *arg, int round, int rounds)
{
    ddp_emit_progress(arg, "health: round %d of %d", round, rounds);
}

/* The state of the measurement. Only rank 0 has figures in `pass`. */
struct health {
    struct ddp_rank *rank;
    struct ddp_pair_options options;
    char *from, *to; /* [COPY_BYTES] */
    int passes;
    struct ddp_matrix pass[PASSES_MOST];
    struct ddp_health_rank *ranks; /* [PASSES_MOST * size] */
};

static int measure_pass(struct health *m, struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    struct ddp_health_rank mine;
    DDP_TRY(ddp_comm_barrier(comm, err));
    compute(&mine);
    DDP_TRY(ddp_comm_barrier(comm, err));
    copy(m->from, m->to, &mine);
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, m->ranks + (size_t)m->passes * (size_t)comm->size,
                                     sizeof mine, err));
    DDP_TRY(ddp_pair_matrix(comm, &m->options, progress, m->rank, &m->pass[m->passes], err));
    m->passes++;
    return 0;
}

/* Measures the passes. Rank 0 decides whether there is time for another pass. */
static int measure(struct health *m, double max_time_s, struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    const int64_t began = ddp_now_ns();
    int32_t *more;
    int rc = DDP_NEW(&more, (size_t)comm->size, err);
    rc = ddp_comm_agree(comm, rc, err);
    for (bool goes_on = true; rc == 0 && goes_on;) {
        rc = measure_pass(m, err);
        const double spent_s = (double)(ddp_now_ns() - began) / 1e9;
        const double next_s = spent_s * (m->passes + 1) / DDP_MAX(m->passes, 1);
        const int32_t mine = m->passes < PASSES_LEAST ||
                             (m->passes < PASSES_USUAL && next_s < OVERTIME * max_time_s) ||
                             (m->passes < PASSES_MOST && next_s < max_time_s);
        if (rc == 0)
            rc = ddp_comm_allgather_bytes(comm, &mine, more, sizeof mine, err);
        goes_on = rc == 0 && more[0];
    }
    free(more);
    return rc;
}

/* Maps each of n ends (or ranks) of this job to an end (or rank) of the reference on a host of the
 * same name. Returns false if the names differ. name, other [n]: the hosts in this job and in the
 * reference. */
static bool match(const char *const *name, const char *const *other, int n, int *out)
{
    for (int i = 0; i < n; i++) {
        int before = 0; /* number of earlier ends (or ranks) on the same host */
        for (int j = 0; j < i; j++)
            before += strcmp(name[i], name[j]) == 0;
        out[i] = 0;
        while (out[i] < n && (strcmp(name[i], other[out[i]]) != 0 || before-- > 0))
            out[i]++;
        if (out[i] == n)
            return false;
    }
    return true;
}

/* The facts about the ends and ranks that the judgement needs. */
struct facts {
    int *host;                    /* [size] */
    int64_t *nic;                 /* [ends] */
    int *end, *rank;              /* [ends], [size]: see struct ddp_health_reference */
    const char **names, **others; /* [size] */
};

static int alloc_facts(struct facts *f, int size, struct ddp_err *err)
{
    DDP_TRY(DDP_NEW(&f->host, (size_t)size, err));
    DDP_TRY(DDP_NEW(&f->nic, (size_t)size, err));
    DDP_TRY(DDP_NEW(&f->end, (size_t)size, err));
    DDP_TRY(DDP_NEW(&f->rank, (size_t)size, err));
    DDP_TRY(DDP_NEW(&f->names, (size_t)size, err));
    return DDP_NEW(&f->others, (size_t)size, err);
}

static void free_facts(struct facts *f)
{
    free(f->host);
    free(f->nic);
    free(f->end);
    free(f->rank);
    free(f->names);
    free(f->others);
}

/* Fills *out. Maps the ends and ranks to those of the reference. devices [size]: the hosts of the
 * ranks. */
static void match_reference(const struct ddp_stored *stored, const struct ddp_matrix *m, int size,
                            const struct ddp_rank_device *devices, struct facts *f,
                            struct ddp_health_reference *out)
{
    const struct ddp_record *r = &stored->record;
    *out = (struct ddp_health_reference){.matrix = &r->matrix, .health = &r->health};
    if (r->matrix.ends == m->ends && r->matrix.by_host == m->by_host) {
        for (int i = 0; i < m->ends; i++) {
            f->names[i] = devices[m->rank[i]].host;
            f->others[i] = ddp_record_host_of(r, r->matrix.rank[i]);
        }
        out->end = match(f->names, f->others, m->ends, f->end) ? f->end : NULL;
    }
    if (r->health.ranks == size) {
        for (int i = 0; i < size; i++) {
            f->names[i] = devices[i].host;
            f->others[i] = ddp_record_host_of(r, i);
        }
        out->rank = match(f->names, f->others, size, f->rank) ? f->rank : NULL;
    }
}

/* Returns the speed of the network interface of `host` in Mbit/s, or -1. Rank 0 knows it only under
 * an outside launcher, because only then rank 0 is the collector. */
static int64_t nic_speed(const struct ddp_rank *rank, const char *host)
{
    const struct ddp_record *r = rank->collector ? &rank->collector->record : NULL;
    for (int h = 0; r && h < r->host_count; h++)
        if (strcmp(r->hosts[h].name, host) == 0)
            return r->hosts[h].network.nic.speed_Mbps;
    return -1;
}

static void set_rule(const struct ddp_health_values *v, struct ddp_health *h)
{
    ddp_health_init(h);
    h->level = LEVEL;
    h->min_effect = v->min_effect_percent / 100;
    h->min_latency_us = v->min_latency_us;
    h->must_find = v->must_find_percent / 100;
    if (v->stored)
        snprintf(h->reference, sizeof h->reference, "%s", v->reference);
}

/* Judges the passes on rank 0, and sends the result to the collector. */
static int judge(struct health *m, const struct ddp_health_values *v,
                 const struct ddp_rank_device *devices, struct facts *f, struct ddp_health *h,
                 struct ddp_err *err)
{
    const struct ddp_comm *comm = m->rank->comm;
    struct ddp_matrix median = {.ends = 0};
    struct ddp_health_reference reference;
    struct ddp_health_input in = {.passes = m->passes,
                                  .pass = m->pass,
                                  .ranks = comm->size,
                                  .rank = m->ranks,
                                  .host = f->host,
                                  .hosts = comm->hosts ? comm->hosts->count : 1,
                                  .nic_Mbps = f->nic};
    for (int r = 0; r < comm->size; r++)
        f->host[r] = comm->hosts ? comm->hosts->of[r] : 0;
    for (int i = 0; i < m->pass[0].ends; i++)
        f->nic[i] = nic_speed(m->rank, devices[m->pass[0].rank[i]].host);
    if (v->stored) {
        match_reference(v->stored, &m->pass[0], comm->size, devices, f, &reference);
        in.reference = &reference;
    }
    set_rule(v, h);
    int rc = ddp_health_judge(&in, h, err);
    if (rc == 0)
        rc = ddp_health_median(m->pass, m->passes, &median, err);
    if (rc == 0)
        rc = ddp_emit_matrix(m->rank, &median, err);
    if (rc == 0)
        rc = ddp_emit_health(m->rank, h, err);
    ddp_matrix_release(&median);
    return rc;
}

#define ALL_HOSTS (-2)

/* Returns the rank whose host a finding blames, or ALL_HOSTS. -1: the finding blames a link, or one
 * of two hosts. */
static int32_t blamed_rank(const struct ddp_health_finding *f)
{
    if (f->place == DDP_PEER_ALL)
        return ALL_HOSTS;
    return f->either || f->to >= 0 ? -1 : f->rank;
}

/* Sends the hosts that the findings blame to all ranks, and sets the exit code of this process.
 * Collective. */
static int share_verdict(const struct ddp_rank *rank, const struct ddp_health *h,
                         struct ddp_err *err)
{
    const struct ddp_comm *comm = rank->comm;
    struct named {
        int32_t rank[DDP_HEALTH_FINDINGS];
    } mine, *all;
    DDP_TRY(DDP_NEW(&all, (size_t)comm->size, err));
    for (int i = 0; i < DDP_HEALTH_FINDINGS; i++)
        mine.rank[i] = i < h->finding_count ? blamed_rank(&h->finding[i]) : -1;
    const int rc = ddp_comm_allgather_bytes(rank->comm, &mine, all, sizeof mine, err);
    rank->collector->verdict_code = 0;
    for (int i = 0; i < DDP_HEALTH_FINDINGS && rc == 0; i++) {
        const int32_t named = all[0].rank[i];
        if (named == ALL_HOSTS)
            rank->collector->verdict_code = DDP_EREGRESSION;
        if (named >= 0 && named < comm->size && comm->hosts &&
            comm->hosts->of[named] == comm->hosts->mine)
            rank->collector->verdict_code = DDP_EREGRESSION;
    }
    free(all);
    return rc;
}

static int run(struct health *m, const struct ddp_health_values *v, struct ddp_err *err)
{
    struct ddp_comm *comm = m->rank->comm;
    struct ddp_rank_device *devices = NULL;
    struct facts f = {.host = NULL};
    struct ddp_health h;
    ddp_health_init(&h);
    int rc = measure(m, v->max_time_s, err);
    if (rc == 0)
        rc = ddp_world_gather_ranks(comm, &devices, err);
    if (rc == 0 && comm->rank == 0)
        rc = alloc_facts(&f, comm->size, err);
    if (rc == 0 && comm->rank == 0)
        rc = judge(m, v, devices, &f, &h, err);
    if (rc == 0 && m->rank->collector && v->exit_code == DDP_HEALTH_EXIT_HOST)
        rc = share_verdict(m->rank, &h, err);
    ddp_health_release(&h);
    free_facts(&f);
    free(devices);
    return rc;
}

static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    const struct ddp_health_values *v = values;
    struct health *m;
    int rc = DDP_NEW(&m, 1, err);
    if (rc == 0)
        rc = DDP_NEW(&m->ranks, PASSES_MOST * (size_t)rank->comm->size, err);
    rc = ddp_comm_agree(rank->comm, rc, err);
    if (rc == 0) {
        m->rank = rank;
        m->options = (struct ddp_pair_options){
            .by_host = rank->comm->hosts && rank->comm->hosts->count > 1,
            .bytes = v->size,
            .iters = REPETITIONS,
            .max_time_s = DIRECTION_S,
            .one_way = true,
            .seed = (uint64_t)v->world.seed,
        };
        m->from = ddp_alloc_pages(COPY_BYTES);
        m->to = ddp_alloc_pages(COPY_BYTES);
        if (m->from)
            memset(m->from, 1, COPY_BYTES);
        rc = run(m, v, err);
    }
    for (int k = 0; m && k < m->passes; k++)
        ddp_matrix_release(&m->pass[k]);
    if (m && m->from)
        ddp_free_pages(m->from, COPY_BYTES);
    if (m && m->to)
        ddp_free_pages(m->to, COPY_BYTES);
    if (m)
        free(m->ranks);
    free(m);
    return rc;
}

const struct ddp_job ddp_health_job = {
    .prepare = prepare,
    .gpu = gpu,
    .rank_main = rank_main,
    .release = release,
};
