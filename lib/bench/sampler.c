/* The sampler. Which arrays lie where in its two buffers: operands.h. In place the input is put
 * back, untimed, before every iteration: a loop that does not rewrite its buffer would measure
 * another cache state, and a sum would soon overflow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/compressed_point.h"
#include "bench/page_size.h"
#include "bench/pingpong.h"
#include "bench/sampler.h"
#include "bench/slowest.h"
#include "bench/operands.h"

#define PINGPONG_NS 1000000

/* comm: of all ranks. group: the one that runs the operation: comm, or this rank's share of it.
 * skip: [plan->count] reasons of points left out, NULL: measured. duration, sample: [iters]. chunk:
 * [size][DDP_SLOWEST_CHUNK], rank_sum: [size]. reduced: NULL unless points are compressed or
 * partial. */
struct ddp_sampler {
    struct ddp_comm *comm, *group;
    const struct ddp_bench_options *options;
    const struct ddp_bench_plan *plan;
    void *a, *b;
    size_t buffer_bytes;
    enum ddp_memory memory;
    char **skip;
    int64_t *duration, *chunk;
    double *sample, *rank_sum;
    int64_t page_bytes;
    struct ddp_compressed_bench *reduced;
};

/* One point being measured. */
struct measurement {
    struct ddp_sampler *s;
    const struct ddp_point_spec *spec;
    struct ddp_coll_plan coll;
    struct ddp_operands operands;
    uint64_t round;
    uint64_t wire_bytes;
    int64_t checked; /* elements this rank has verified */
};

static int alloc_buffer(struct ddp_sampler *s, void **out, struct ddp_err *err)
{
    if (s->memory == DDP_MEMORY_REGISTERED)
        return ddp_comm_alloc(s->comm, s->buffer_bytes, out, err);
    *out = ddp_alloc_pages(s->buffer_bytes);
    return *out ? 0
                : ddp_fail(err, DDP_ENOMEM, "no memory for a buffer of %zu bytes", s->buffer_bytes);
}

static void free_buffer(struct ddp_sampler *s, void *buffer)
{
    if (s->memory == DDP_MEMORY_REGISTERED)
        ddp_comm_free(s->comm, buffer);
    else if (buffer)
        ddp_free_pages(buffer, s->buffer_bytes);
}

static void operands_of(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                        struct ddp_operands *out)
{
    ddp_operands_init(out, spec, s->group->rank, s->group->size, s->a, s->b);
}

/* alg NULL means auto. */
static int make_plan(struct ddp_sampler *s, const struct ddp_point_spec *spec,
                     struct ddp_coll_plan *out, struct ddp_err *err)
{
    struct ddp_operands operands;
    operands_of(s, spec, &operands);
    const struct ddp_coll_alg *alg = ddp_coll_find(spec->coll, spec->algorithm);
    return ddp_coll_plan_init(out, s->group, alg, &operands.args, err);
}

/* Can this point be measured? */
static int probe(struct ddp_sampler *s, const struct ddp_point_spec *spec, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    if (ddp_point_is_reduced(spec))
        return ddp_compressed_bench_probe(s->reduced, spec, err);
    DDP_TRY(make_plan(s, spec, &plan, err));
    ddp_coll_plan_release(&plan);
    return 0;
}

/* Which points can be measured? What `all` brought and cannot is skipped; else it is an error, said
 * before anything is measured. */
static int find_skips(struct ddp_sampler *s, struct ddp_err *err)
{
    for (int i = 0; i < s->plan->count; i++) {
        struct ddp_err reason = DDP_ERR_INIT;
        int rc = probe(s, &s->plan->points[i], &reason);
        if (rc == 0)
            continue;
        if (rc != DDP_EUNAVAIL || !s->plan->all_algorithms) {
            *err = reason;
            return rc;
        }
        s->skip[i] = strdup(reason.text);
        if (!s->skip[i])
            return ddp_fail(err, DDP_ENOMEM, "no memory for a plan of %d points", s->plan->count);
    }
    return 0;
}

static int alloc_arrays(struct ddp_sampler *s, struct ddp_err *err)
{
    size_t iters = (size_t)s->options->iters, size = (size_t)s->comm->size;
    s->duration = ddp_calloc(iters, sizeof *s->duration);
    s->sample = ddp_calloc(iters, sizeof *s->sample);
    s->chunk = ddp_calloc(size * DDP_SLOWEST_CHUNK, sizeof *s->chunk);
    s->rank_sum = ddp_calloc(size, sizeof *s->rank_sum);
    s->skip = ddp_calloc((size_t)s->plan->count, sizeof *s->skip);
    if (!s->duration || !s->sample || !s->chunk || !s->rank_sum || !s->skip)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the durations of %zu iterations", iters);
    /* zeroed is not touched: a page fault has no place between the clocks */
    memset(s->duration, 0xff, iters * sizeof *s->duration);
    return 0;
}

/* Consecutive ranks are a group. Collective. */
static int make_group(struct ddp_sampler *s, struct ddp_err *err)
{
    const int size = s->comm->size;
    int *members = ddp_calloc((size_t)size, sizeof *members);
    int ranks = size;
    int rc = members ? ddp_plan_group_ranks(s->options, size, &ranks, err)
                     : ddp_fail(err, DDP_ENOMEM, "no memory for a group of %d ranks", size);
    rc = ddp_comm_agree(s->comm, rc, err);
    if (rc == 0 && ranks < size) {
        const int first = s->comm->rank / ranks * ranks;
        for (int i = 0; i < ranks; i++)
            members[i] = first + i;
        rc = ddp_comm_agree(s->comm, ddp_comm_group(s->comm, members, ranks, &s->group, err), err);
    }
    free(members);
    return rc;
}

static int make_reduced(struct ddp_sampler *s, struct ddp_err *err)
{
    const struct ddp_compressed_bench_setup setup = {
        .comm = s->comm,
        .group = s->group,
        .options = s->options,
        .data = s->a,
        .page_bytes = s->page_bytes,
    };
    return ddp_compressed_bench_create(&setup, &s->reduced, err);
}

int ddp_sampler_create(struct ddp_comm *comm, const struct ddp_bench_options *options,
                       const struct ddp_bench_plan *plan, struct ddp_sampler **out,
                       struct ddp_err *err)
{
    struct ddp_sampler *s = ddp_calloc(1, sizeof *s);
    int rc = s ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for the sampler");
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    s->comm = s->group = comm;
    s->options = options;
    s->plan = plan;
    s->memory = plan->memory;
    s->buffer_bytes = DDP_MAX((size_t)plan->buffer_bytes, DDP_CACHE_LINE);
    rc = alloc_arrays(s, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    rc = alloc_buffer(s, &s->a, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    rc = alloc_buffer(s, &s->b, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    /* not zero: no page is shared */
    memset(s->a, 0xff, s->buffer_bytes);
    memset(s->b, 0xff, s->buffer_bytes);
    s->page_bytes = ddp_page_bytes(s->a);
    DDP_TRY_GOTO(make_group(s, err), err_sampler);
    if (ddp_plan_reduces(options))
        DDP_TRY_GOTO(make_reduced(s, err), err_sampler);
    rc = find_skips(s, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    *out = s;
    return 0;
err_sampler:
    ddp_sampler_destroy(s);
    return rc;
}

void ddp_sampler_destroy(struct ddp_sampler *s)
{
    if (!s)
        return;
    ddp_compressed_bench_destroy(s->reduced);
    if (s->group != s->comm)
        ddp_comm_destroy(s->group);
    if (s->b)
        free_buffer(s, s->b);
    if (s->a)
        free_buffer(s, s->a);
    for (int i = 0; s->skip && i < s->plan->count; i++)
        free(s->skip[i]);
    free(s->skip);
    free(s->duration);
    free(s->sample);
    free(s->chunk);
    free(s->rank_sum);
    free(s);
}

bool ddp_sampler_skips(const struct ddp_sampler *s, int index, const char **why)
{
    *why = s->skip[index];
    return *why != NULL;
}

/* All ranks' verdict on the operation that just ran. */
static int check_result(struct measurement *m, struct ddp_err *err)
{
    int64_t elements, wrong;
    int rc = ddp_operands_verify(&m->operands, m->round, &elements, &wrong, err);
    m->checked += elements;
    return ddp_comm_agree(m->s->comm, rc, err);
}

/* The operation once, untimed: counts what it sends, and verifies it unless nothing shall be. */
static int run_first(struct measurement *m, struct ddp_err *err)
{
    struct ddp_comm *comm = m->s->comm;
    struct ddp_comm *group = m->s->group;
    ddp_operands_fill(&m->operands, m->round);
    DDP_TRY(ddp_comm_barrier(comm, err));
    uint64_t before = group->wire_bytes;
    DDP_TRY(ddp_coll_run(group, &m->coll, err));
    m->wire_bytes = group->wire_bytes - before;
    return m->s->options->check == DDP_CHECK_OFF ? 0 : check_result(m, err);
}

/* The timed loop; negative i warms up. */
static int run_timed(struct measurement *m, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    struct ddp_comm *comm = s->comm;
    const bool many = comm->size > 1, check = s->options->check == DDP_CHECK_ALL;
    for (int64_t i = -s->options->warmup; i < s->options->iters; i++) {
        if (check)
            ddp_operands_fill(&m->operands, ++m->round);
        else
            ddp_operands_restore(&m->operands);
        if (many)
            DDP_TRY(ddp_comm_barrier(comm, err));
        int64_t begin = ddp_now_ns();
        int rc = ddp_coll_run(s->group, &m->coll, err);
        int64_t end = ddp_now_ns();
        if (rc != 0)
            return rc;
        s->duration[i < 0 ? 0 : i] = end - begin;
        if (check && i >= 0)
            DDP_TRY(check_result(m, err));
    }
    return 0;
}

/* Bytes a rank sends, the most of all ranks. Counted where messages are; where ranks read each
 * other's memory or a library does it inside, the least a rank must exchange: S times the
 * collective's factor, as busbw assumes. */
static int wire_bytes(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_comm *comm = m->s->comm;
    uint64_t *all = (uint64_t *)m->s->chunk; /* [size] */
    DDP_TRY(ddp_comm_exchange(comm, &m->wire_bytes, all, sizeof *all, err));
    uint64_t most = 0;
    for (int r = 0; r < comm->size; r++)
        most = DDP_MAX(most, all[r]);
    /* A native call sends inside the library, one on shared memory nothing. */
    const struct ddp_coll_shape some = {.coll = m->spec->coll, .count = 1000};
    struct ddp_coll_cost cost;
    m->coll.alg->cost(m->spec->ranks, &some, &cost);
    bool hidden = !cost.modelled || cost.messages == 0;
    out->wire_counted = most > 0 || m->spec->ranks == 1 || !hidden;
    out->wire_bytes_per_rank =
        out->wire_counted
            ? (double)most
            : (double)m->spec->size_bytes * ddp_coll_busbw_factor(m->spec->coll, m->spec->ranks);
    return 0;
}

/* Elements verified by all ranks. */
static int sum_checked(struct measurement *m, int64_t *sum, struct ddp_err *err)
{
    int64_t *all = m->s->chunk; /* [size] */
    DDP_TRY(ddp_comm_exchange(m->s->comm, &m->checked, all, sizeof *all, err));
    *sum = 0;
    for (int r = 0; r < m->s->comm->size; r++)
        *sum += all[r];
    return 0;
}

static int fill_point(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    const int size = s->comm->size;
    const double iters = (double)s->options->iters;
    DDP_TRY(ddp_slowest(s->comm, s->duration, s->options->iters, s->chunk, s->sample, s->rank_sum,
                        err));
    int rc = ddp_summarize(s->sample, (size_t)s->options->iters, &out->time_ns) == 0
                 ? 0
                 : ddp_fail(err, DDP_ENOMEM, "no memory to summarise %.0f iterations", iters);
    DDP_TRY(ddp_comm_agree(s->comm, rc, err));
    out->rank_mean_ns[0] = INFINITY;
    out->rank_mean_ns[1] = out->rank_mean_ns[2] = 0;
    for (int r = 0; r < size; r++) {
        double mean = s->rank_sum[r] / iters;
        out->rank_mean_ns[0] = fmin(out->rank_mean_ns[0], mean);
        out->rank_mean_ns[1] += mean / size;
        out->rank_mean_ns[2] = fmax(out->rank_mean_ns[2], mean);
    }
    out->iterations = s->options->iters;
    out->warmup = s->options->warmup;
    out->page_bytes = s->page_bytes;
    out->check = (enum ddp_check)s->options->check;
    if (out->check != DDP_CHECK_OFF) {
        DDP_TRY(sum_checked(m, &out->check_elements, err));
        out->check_wrong = 0;
    }
    out->sample_count = s->options->samples ? s->options->iters : 0;
    return wire_bytes(m, out, err);
}

int ddp_sampler_point(struct ddp_sampler *s, int index, struct ddp_point *out,
                      const double **samples, struct ddp_err *err)
{
    const struct ddp_point_spec *spec = &s->plan->points[index];
    struct measurement m = {.s = s,
                            .spec = spec,
                            .round =
                                (uint64_t)s->options->seed * DDP_PLAN_POINTS_MAX + (uint64_t)index};
    char id[192];
    ddp_point_id(spec, id, sizeof id);
    ddp_flight_phase(s->comm->flight, "%s", id);
    if (ddp_point_is_reduced(spec))
        return ddp_compressed_bench_point(s->reduced, spec, index, out, samples, err);
    /* Groups get data of their own: what strays into another is then wrong there. */
    m.round += (uint64_t)(s->comm->rank / s->group->size) << 56;
    operands_of(s, spec, &m.operands);
    int rc = make_plan(s, spec, &m.coll, err);
    DDP_TRY(ddp_comm_agree(s->comm, rc, err));
    ddp_point_init(out);
    out->spec = *spec;
    memcpy(out->algorithm_used, m.coll.alg->name,
           DDP_MIN(strlen(m.coll.alg->name), sizeof out->algorithm_used - 1));
    DDP_TRY_GOTO(run_first(&m, err), out_plan);
    DDP_TRY_GOTO(ddp_pingpong(s->comm, PINGPONG_NS, &out->pingpong_ns[0], err), out_plan);
    ddp_operands_fill(&m.operands, m.round);
    DDP_TRY_GOTO(run_timed(&m, err), out_plan);
    DDP_TRY_GOTO(ddp_pingpong(s->comm, PINGPONG_NS, &out->pingpong_ns[1], err), out_plan);
    DDP_TRY_GOTO(fill_point(&m, out, err), out_plan);
    *samples = out->sample_count > 0 ? s->sample : NULL;
out_plan:
    ddp_coll_plan_release(&m.coll);
    return rc;
}
