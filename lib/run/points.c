/* Measures the points of a plan. The plan of each rank count is made once, before ranks start. */
#include "run/points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "bench/sampler.h"
#include "comm/backend.h"
#include "run/sweep.h"

#define HUGE_PAGE (2u << 20) /* alignment of large registered blocks */

/* Rough speeds of an older core. They give the order of magnitude of the time of a run, and the
 * share of each item in the time of a sweep. sweep_run.c corrects the estimate with the real times
 * of finished items. */
#define POINT_S          0.02  /* per point, for buffers, ping-pong and one verified operation */
#define OPERATION_S      2e-6  /* per operation, without data */
#define BYTES_PER_S      1.5e9 /* speed at which one rank processes a message */
#define CHECK_S_PER_BYTE 2e-9
#define START_S          0.1 /* to start a run */
#define ADAPTIVE_ITERS   200 /* typical number of iterations without -n */
#define LEAST_ITERS      6   /* measured even if --max-time is over */
/* Approximate numbers of operations that bench/compressed_point.c adds to a point. */
#define DENSE_OPERATIONS      72
#define BREAK_EVEN_OPERATIONS 200

const struct ddp_bench_plan *ddp_points_plan(const void *values, int ranks)
{
    const struct ddp_collective_values *v = values;
    int i = 0;
    while (i < v->plan_count - 1 && v->world.ranks.v[i] != ranks)
        i++;
    return &v->plans[i];
}

/* Makes the plan of every rank count, so that an error in any plan is reported before ranks start.
 * Returns DDP_EUSAGE if all plans are empty, unless may_be_empty is true. */
static int make_plans(struct ddp_collective_values *v, const char *backend, int ranks,
                      bool may_be_empty, struct ddp_err *err)
{
    const struct ddp_int_list *counts = &v->world.ranks;
    int points = 0;
    DDP_TRY(DDP_NEW(&v->plans, (size_t)DDP_MAX(counts->n, 1), err));
    for (int i = 0; i < DDP_MAX(counts->n, 1); i++) {
        struct ddp_bench_plan *plan = &v->plans[v->plan_count++];
        int of_a_group;
        DDP_TRY(ddp_plan_group_ranks(&v->bench, counts->n ? (int)counts->v[i] : ranks, &of_a_group,
                                     err));
        DDP_TRY(ddp_plan_make(&v->bench, backend, of_a_group, -1, plan, err));
        DDP_TRY(ddp_plan_check_offline(plan, ddp_backend_find(backend), err));
        points += plan->count;
    }
    if (points == 0 && !may_be_empty)
        return ddp_fail(err, DDP_EUSAGE, "all points are left out (%s): %s",
                        v->plans[0].small[0].what, v->plans[0].small[0].reason);
    return 0;
}

/* Fails with DDP_EUSAGE if --inject-delay names a point that no rank count has. */
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

/* Fails with DDP_EUSAGE when --arrival names a rank that some rank count does not have. */
static int check_arrival(const struct ddp_collective_values *v, int ranks, struct ddp_err *err)
{
    const struct ddp_int_list *counts = &v->world.ranks;
    for (int i = 0; i < counts->n; i++)
        DDP_TRY(ddp_arrival_check(&v->bench.arrival, (int)counts->v[i], err));
    return counts->n > 0 ? 0 : ddp_arrival_check(&v->bench.arrival, ranks, err);
}

/* Fails if the plan does not fit into the memory of a GPU. With --share-gpu the ranks are spread
 * evenly over the GPUs, so several ranks use the memory of one GPU. */
static int check_gpu_memory(const struct ddp_bench_plan *plan, const char *backend, int ranks,
                            bool shared, struct ddp_err *err)
{
    const struct ddp_backend *b = ddp_backend_find(backend);
    const int64_t bytes = b != NULL && b->place_bytes != NULL ? b->place_bytes() : -1;
    if (bytes < 0)
        return 0;
    const int gpus = DDP_MAX(b->places(), 1);
    return ddp_plan_fits_gpu(plan, shared ? (ranks + gpus - 1) / gpus : 1, bytes, err);
}

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    struct ddp_collective_values *v = values;
    struct ddp_sysinfo host;
    ddp_sysinfo_read(&host);
    DDP_TRY(ddp_split_load(&v->bench.split, v->bench.coll, err));
    v->bench.skip_small = app->in_sweep || v->world.ranks.n > 1;
    DDP_TRY(make_plans(v, backend, ranks, app->in_sweep, err));
    const struct ddp_bench_plan *plan = ddp_points_plan(v, ranks);
    DDP_TRY(ddp_plan_fits(plan, ddp_app_local_ranks(app, ranks), host.available_bytes, err));
    DDP_TRY(check_gpu_memory(plan, backend, ranks, v->world.share_gpu, err));
    DDP_TRY(check_inject(v, err));
    DDP_TRY(check_arrival(v, ranks, err));
    if (plan->rounding[0] && ddp_app_is_root(app))
        ddp_logf(&app->log, DDP_LOG_NOTE, "%s", plan->rounding);
    return 0;
}

static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    out->graph = v->bench.graph;
    out->window = v->bench.memory == DDP_MEMORY_WINDOW;
    return 0;
}

static bool threads(const void *values)
{
    const struct ddp_collective_values *v = values;
    return v->bench.overlap;
}

/* Returns the largest number of chunks of any point, at least 1. */
static uint64_t most_chunks(const struct ddp_int_list *partial)
{
    uint64_t most = 1;
    for (int i = 0; i < partial->n; i++)
        most = DDP_MAX(most, (uint64_t)partial->v[i]);
    return most;
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
        bytes += plan->compress_registered + (most_chunks(&v->bench.partial) + 2) * 8 * HUGE_PAGE;
    return bytes;
}

/* Returns the number of operations that a point needs besides its own iterations. */
static double other_operations(const struct ddp_bench_options *o, const struct ddp_point_spec *s)
{
    if (!ddp_point_is_reduced(s))
        return (double)o->warmup;
    return (double)o->warmup + DENSE_OPERATIONS + (o->break_even ? BREAK_EVEN_OPERATIONS : 0);
}

static void estimate(const void *values, int ranks, int local, struct ddp_estimate *out)
{
    const struct ddp_collective_values *v = values;
    const struct ddp_bench_plan *plan = ddp_points_plan(v, ranks);
    const struct ddp_bench_options *o = &v->bench;
    const bool adaptive = o->precision > 0 || o->max_time_s > 0;
    const double iterations = adaptive ? fmin((double)o->iters, ADAPTIVE_ITERS) : (double)o->iters;
    const double limit = o->max_time_s > 0 ? o->max_time_s : NAN;
    *out = (struct ddp_estimate){START_S, START_S, plan->bytes_per_rank * (uint64_t)local};
    for (int i = 0; i < plan->count; i++) {
        const struct ddp_point_spec *s = &plan->points[i];
        const double bytes = (double)s->size_bytes, check = bytes * CHECK_S_PER_BYTE;
        const double one = OPERATION_S * s->ranks + bytes * (s->ranks > 1 ? 1 : 0.5) / BYTES_PER_S;
        const double fixed = POINT_S + check + other_operations(o, s) * one;
        const double checks = o->check == DDP_CHECK_ALL ? iterations * check : 0;
        /* fmin ignores a NaN. */
        out->seconds += fixed + checks + fmin(iterations * (one + 2 * OPERATION_S), limit);
        out->most += fixed + checks + (isnan(limit) ? limit : fmax(limit, LEAST_ITERS * one));
    }
}

/* True if both texts are equal apart from the numbers in them, such as a number of bytes. */
static bool same_reason(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    for (;; a++, b++) {
        a += strspn(a, digits);
        b += strspn(b, digits);
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
    }
}

/* True if one note covers the skipped points i and j. This requires the same algorithm, compression
 * method and reason (apart from numbers). Unless the user wrote `--algorithm all`, it also requires
 * the same element type and operation. */
static bool share_note(const struct ddp_bench_plan *plan, const struct ddp_sampler *sampler, int i,
                       int j)
{
    const struct ddp_point_spec *p = &plan->points[i], *q = &plan->points[j];
    const char *why_p, *why_q;
    return ddp_sampler_skips(sampler, i, &why_p) && ddp_sampler_skips(sampler, j, &why_q) &&
           strcmp(p->algorithm, q->algorithm) == 0 && strcmp(p->compress, q->compress) == 0 &&
           same_reason(why_p, why_q) &&
           (plan->all_algorithms || (p->dtype == q->dtype && p->op == q->op));
}

/* Fills *out with the note on skipped point i. Returns false if the note on an earlier point covers
 * this point. */
static bool describe_skip(const struct ddp_rank *rank, const struct ddp_bench_plan *plan,
                          const struct ddp_sampler *sampler, int i, struct ddp_left_out *out)
{
    const struct ddp_point_spec *p = &plan->points[i];
    const bool compressed = strcmp(p->compress, "none") != 0, op = ddp_coll_reduces(p->coll);
    const char *why;
    for (int j = 0; j < i; j++)
        if (share_note(plan, sampler, i, j))
            return false;
    *out = (struct ddp_left_out){.ranks = rank->comm->size, .points = 1};
    for (int j = i + 1; j < plan->count; j++)
        out->points += share_note(plan, sampler, i, j);
    ddp_sampler_skips(sampler, i, &why);
    snprintf(out->reason, sizeof out->reason, "%s", why);
    if (plan->all_algorithms)
        snprintf(out->what, sizeof out->what, "%s%s%s: algorithm '%s'", ddp_coll_name(p->coll),
                 compressed ? " " : "", compressed ? p->compress : "", p->algorithm);
    else
        snprintf(out->what, sizeof out->what, "%s: %s%s%s", ddp_coll_name(p->coll),
                 ddp_dtype_name(p->dtype), op ? " " : "", op ? ddp_op_name(p->op) : "");
    return true;
}

/* Reports the sizes and points that are left out. */
static int report_left_out(struct ddp_rank *rank, const struct ddp_bench_plan *plan,
                           const struct ddp_sampler *sampler, struct ddp_err *err)
{
    struct ddp_left_out left_out;
    const char *why;
    for (int i = 0; i < plan->small_count; i++)
        DDP_TRY(ddp_emit_left_out(rank, &plan->small[i], err));
    for (int i = 0; i < plan->count; i++)
        if (ddp_sampler_skips(sampler, i, &why) && describe_skip(rank, plan, sampler, i, &left_out))
            DDP_TRY(ddp_emit_left_out(rank, &left_out, err));
    return 0;
}

static int run_points(struct ddp_rank *rank, const struct ddp_bench_plan *plan,
                      struct ddp_sampler *sampler, struct ddp_err *err)
{
    int count;
    const int *order = ddp_sampler_order(sampler, &count);
    DDP_TRY(report_left_out(rank, plan, sampler, err));
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

/* Fails if ranks have read different versions of the file of --split. The name of the split has a
 * hash of its weights, so it is enough to compare the names. */
static int compare_splits(struct ddp_comm *comm, const struct ddp_split *split, struct ddp_err *err)
{
    char(*names)[sizeof split->name];
    if (split->kind != DDP_SPLIT_FILE)
        return 0;
    int rc = DDP_NEW(&names, (size_t)comm->size, err);
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    rc = ddp_comm_allgather_bytes(comm, split->name, names, sizeof split->name, err);
    for (int r = 1; rc == 0 && r < comm->size; r++)
        if (strcmp(names[r], names[0]) != 0)
            rc = ddp_fail(err, DDP_EMISMATCH,
                          "the file of --split differs: %s on rank 0, %s on rank %d", names[0],
                          names[r], r);
    free(names);
    return rc;
}

static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    struct ddp_comm *comm = rank->comm;
    struct ddp_sampler *sampler = NULL;
    struct ddp_bench_plan plan;
    int rc = ddp_plan_for_ranks(ddp_points_plan(v, comm->size), v->bench.memory, comm, &plan, err);
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    rc = compare_splits(comm, &v->bench.split, err);
    if (rc != 0) {
        ddp_plan_release(&plan);
        return rc;
    }
    if (plan.count == 0) {
        rc = report_left_out(rank, &plan, NULL, err);
        ddp_plan_release(&plan);
        return rc;
    }
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
    ddp_split_release(&v->bench.split);
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
