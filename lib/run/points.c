/* Measures the points of a plan. The plan of each rank count is made once, before ranks start. */
#include "run/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sysinfo.h"
#include "base/unit.h"
#include "bench/sampler.h"
#include "run/sweep.h"

#define HUGE_PAGE (2u << 20) /* alignment of large registered blocks */

/* Rough speeds of an older core. They give the order of magnitude of a sweep's time, and the share
 * of each item. sweep_run.c corrects the estimate with the real times of finished items. */
#define POINT_S          0.02  /* per point: buffers, ping-pong, one verified operation */
#define OPERATION_S      2e-6  /* per operation, without data */
#define BYTES_PER_S      1.5e9 /* at which one rank processes a message */
#define CHECK_S_PER_BYTE 2e-9
#define START_S          0.1 /* to start a run */
#define ADAPTIVE_ITERS   200 /* typical number of adaptive iterations */

const struct ddp_bench_plan *ddp_points_plan(const void *values, int ranks)
{
    const struct ddp_collective_values *v = values;
    int i = 0;
    while (i < v->plan_count - 1 && v->world.ranks.v[i] != ranks)
        i++;
    return &v->plans[i];
}

/* Makes the plan of every rank count, so that an error in any plan is reported before ranks
 * start. */
static int make_plans(struct ddp_collective_values *v, const char *backend, int ranks,
                      struct ddp_err *err)
{
    const struct ddp_int_list *counts = &v->world.ranks;
    DDP_TRY(DDP_NEW(&v->plans, (size_t)DDP_MAX(counts->n, 1), err));
    for (int i = 0; i < DDP_MAX(counts->n, 1); i++) {
        struct ddp_bench_plan *plan = &v->plans[v->plan_count++];
        int of_a_group;
        DDP_TRY(ddp_plan_group_ranks(&v->bench, counts->n ? (int)counts->v[i] : ranks, &of_a_group,
                                     err));
        DDP_TRY(ddp_plan_make(&v->bench, backend, of_a_group, -1, plan, err));
        DDP_TRY(ddp_plan_check_offline(plan, ddp_backend_find(backend), err));
    }
    return 0;
}

/* Fails with DDP_EUSAGE when --inject-delay names no point of any rank count. */
static int check_inject(const struct ddp_collective_values *v, struct ddp_err *err)
{
    char id[192];
    if (!v->bench.inject_id[0])
        return 0;
    for (int p = 0; p < v->plan_count; p++)
        for (int i = 0; i < v->plans[p].count; i++) {
            ddp_point_id(&v->plans[p].points[i], id, sizeof id);
            if (strcmp(id, v->bench.inject_id) == 0)
                return 0;
        }
    ddp_fail(err, DDP_EUSAGE, "--inject-delay: no point has the id '%s'", v->bench.inject_id);
    return ddp_hint(err, "run the command with --dry-run to list all ids");
}

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    struct ddp_collective_values *v = values;
    struct ddp_sysinfo host;
    ddp_sysinfo_read(&host);
    DDP_TRY(make_plans(v, backend, ranks, err));
    const struct ddp_bench_plan *plan = ddp_points_plan(v, ranks);
    DDP_TRY(ddp_plan_fits(plan, ddp_app_local_ranks(app, ranks), host.available_bytes, err));
    DDP_TRY(check_inject(v, err));
    if (plan->rounding[0] && ddp_app_is_root(app))
        ddp_logf(&app->log, DDP_LOG_NOTE, "%s", plan->rounding);
    return 0;
}

static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    if (v->bench.overlap)
        return ddp_fail(err, DDP_EUNAVAIL, "--overlap-compute does not run on GPUs yet");
    out->graph = v->bench.graph;
    out->window = v->bench.memory == DDP_MEMORY_WINDOW;
    return 0;
}

static bool threads(const void *values)
{
    const struct ddp_collective_values *v = values;
    return v->bench.overlap;
}

static uint64_t heap_bytes(const void *values, int ranks)
{
    const struct ddp_collective_values *v = values;
    uint64_t bytes = 0;
    if (!v->plans)
        return 0;
    const struct ddp_bench_plan *plan = ddp_points_plan(v, ranks);
    if (plan->memory == DDP_MEMORY_REGISTERED)
        bytes = DDP_PLAN_BUFFERS * (plan->buffer_bytes + 2 * (uint64_t)HUGE_PAGE);
    if (plan->compress_registered > 0) /* each block begins on a huge page of its own */
        bytes += plan->compress_registered +
                 (DDP_MAX((uint64_t)v->bench.partial, 1) + 2) * 8 * HUGE_PAGE;
    return bytes;
}

static double estimate_seconds(const struct ddp_bench_options *o, const struct ddp_bench_plan *plan)
{
    double seconds = START_S;
    for (int i = 0; i < plan->count; i++) {
        const struct ddp_point_spec *s = &plan->points[i];
        const double bytes = (double)s->size_bytes;
        const double one = OPERATION_S * s->ranks + bytes * (s->ranks > 1 ? 1 : 0.5) / BYTES_PER_S;
        const bool adaptive = o->precision > 0 || o->max_time_s > 0;
        double iterations = adaptive ? DDP_MIN((double)o->iters, ADAPTIVE_ITERS) : (double)o->iters;
        double timed = iterations * (one + 2 * OPERATION_S);
        if (adaptive && o->max_time_s > 0)
            timed = fmin(timed, o->max_time_s);
        if (o->check == DDP_CHECK_ALL)
            timed += iterations * bytes * CHECK_S_PER_BYTE;
        seconds += POINT_S + timed + (double)o->warmup * one + bytes * CHECK_S_PER_BYTE;
    }
    return seconds;
}

static void estimate(const void *values, int ranks, int local, double *seconds, uint64_t *bytes)
{
    const struct ddp_collective_values *v = values;
    const struct ddp_bench_plan *plan = ddp_points_plan(v, ranks);
    *seconds = estimate_seconds(&v->bench, plan);
    *bytes = plan->bytes_per_rank * (uint64_t)local;
}

/* Returns true if the note on an earlier skipped point also covers this point. The note covers both
 * points if they have the same reason. It also covers both if they have the same algorithm and,
 * unless the user wrote `--algorithm all`, the same element type and operation. */
static bool was_reported(const struct ddp_bench_plan *plan, const struct ddp_sampler *sampler,
                         int index, const char *why)
{
    const struct ddp_point_spec *p = &plan->points[index];
    const char *before;
    for (int i = 0; i < index; i++) {
        const struct ddp_point_spec *q = &plan->points[i];
        if (!ddp_sampler_skips(sampler, i, &before))
            continue;
        if (strcmp(before, why) == 0 ||
            (strcmp(q->algorithm, p->algorithm) == 0 &&
             (plan->all_algorithms || (q->dtype == p->dtype && q->op == p->op))))
            return true;
    }
    return false;
}

/* Reports why points are left out, but not twice for points that one note covers. */
static void report_skips(struct ddp_rank *rank, const struct ddp_bench_plan *plan,
                         const struct ddp_sampler *sampler)
{
    const char *why;
    for (int i = 0; i < plan->count; i++)
        if (ddp_sampler_skips(sampler, i, &why) && !was_reported(plan, sampler, i, why))
            ddp_emit_note(rank, "left out: %s", why);
}

static int run_points(struct ddp_rank *rank, const struct ddp_bench_plan *plan,
                      struct ddp_sampler *sampler, struct ddp_err *err)
{
    int count;
    const int *order = ddp_sampler_order(sampler, &count);
    report_skips(rank, plan, sampler);
    for (int i = 0; i < count; i++) {
        const struct ddp_point_spec *spec = &plan->points[order[i]];
        struct ddp_point point;
        const double *samples;
        char size[24], id[192];
        ddp_point_id(spec, id, sizeof id);
        if (rank->sweep && ddp_sweep_has(rank->sweep, id))
            continue;
        ddp_format_size(spec->size_bytes, size, sizeof size);
        ddp_emit_progress(rank, "%s %s%s%s %s, %s (%d of %d)", ddp_coll_name(spec->coll),
                          ddp_dtype_name(spec->dtype), ddp_coll_reduces(spec->coll) ? " " : "",
                          ddp_coll_reduces(spec->coll) ? ddp_op_name(spec->op) : "", size,
                          spec->algorithm, i + 1, count);
        DDP_TRY(ddp_sampler_point(sampler, order[i], &point, &samples, err));
        DDP_TRY(ddp_emit_point(rank, &point, samples, err));
    }
    return 0;
}

static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    struct ddp_comm *comm = rank->comm;
    struct ddp_sampler *sampler = NULL;
    struct ddp_bench_plan plan;
    int rc = ddp_plan_for_ranks(ddp_points_plan(v, comm->size), v->bench.memory, comm, &plan, err);
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    rc = ddp_sampler_create(comm, &v->bench, &plan, &sampler, err);
    if (rc == 0)
        rc = ddp_emit_baseline(rank, err);
    if (rc == 0)
        rc = run_points(rank, &plan, sampler, err);
    ddp_sampler_destroy(sampler);
    ddp_plan_release(&plan);
    return rc;
}

static void release(void *values)
{
    struct ddp_collective_values *v = values;
    for (int i = 0; i < v->plan_count; i++)
        ddp_plan_release(&v->plans[i]);
    free(v->plans);
}

const struct ddp_job ddp_points_job = {
    .prepare = prepare,
    .heap_bytes = heap_bytes,
    .threads = threads,
    .gpu = gpu,
    .estimate = estimate,
    .plan = ddp_points_plan,
    .rank_main = rank_main,
    .release = release,
};
