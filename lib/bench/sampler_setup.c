/* Creates everything that all points of the sampler share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/page_size.h"
#include "bench/sampler_impl.h"
#include "bench/slowest.h"

#define ORDER_STREAM 0x6f72646572 /* number of the stream of random numbers: "order" in ASCII */

static int alloc_buffer(struct ddp_sampler *s, void **out, struct ddp_err *err)
{
    if (s->memory != DDP_MEMORY_PRIVATE)
        return ddp_comm_alloc(s->comm, s->buffer_bytes, out, err);
    *out = s->device ? s->device->alloc(s->buffer_bytes) : ddp_alloc_pages(s->buffer_bytes);
    return *out ? 0
                : ddp_fail(err, DDP_ENOMEM, "no memory for a buffer of %zu bytes", s->buffer_bytes);
}

static void free_buffer(struct ddp_sampler *s, void *buffer)
{
    if (s->memory != DDP_MEMORY_PRIVATE)
        ddp_comm_free(s->comm, buffer);
    else if (buffer && s->device)
        s->device->free(buffer, s->buffer_bytes);
    else if (buffer)
        ddp_free_pages(buffer, s->buffer_bytes);
}

struct ddp_comm *ddp_sampler_comm(const struct ddp_sampler *s)
{
    return s->async ? ddp_async_comm(s->async) : s->group;
}

void ddp_sampler_operands(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                          struct ddp_operands *out)
{
    ddp_operands_init(out, spec, s->group->rank, s->group->size, s->a, s->b);
    if (s->device)
        ddp_operands_on(out, s->device, s->image_a, s->image_b);
}

/* ddp_coll_find returns NULL for `auto`, and ddp_coll_plan_init then chooses. */
int ddp_sampler_plan(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                     struct ddp_coll_plan *out, struct ddp_err *err)
{
    struct ddp_operands operands;
    ddp_sampler_operands(s, spec, &operands);
    const struct ddp_coll_alg *alg = ddp_coll_find(spec->coll, spec->algorithm);
    return ddp_coll_plan_init(out, ddp_sampler_comm(s), alg, &operands.args, err);
}

/* Returns 0 if the point can be measured, else DDP_EUNAVAIL with the reason. */
static int probe(struct ddp_sampler *s, const struct ddp_point_spec *spec, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    if (ddp_point_is_reduced(spec))
        return ddp_compressed_bench_probe(s->reduced, spec, err);
    DDP_TRY(ddp_sampler_plan(s, spec, &plan, err));
    ddp_coll_plan_release(&plan);
    return 0;
}

/* True if some measured point agrees with points[i] in the type, operation, algorithm and method
 * that the user named explicitly, without `all`. If there is none, the command must fail. */
static bool has_measured_match(const struct ddp_sampler *s, int i)
{
    const struct ddp_bench_plan *plan = s->plan;
    const struct ddp_point_spec *asked = &plan->points[i];
    for (int j = 0; j < plan->count; j++) {
        const struct ddp_point_spec *p = &plan->points[j];
        if (!s->skip[j] && (plan->all_dtypes || p->dtype == asked->dtype) &&
            (plan->all_ops || p->op == asked->op) && strcmp(p->compress, asked->compress) == 0 &&
            (plan->all_algorithms || strcmp(p->algorithm, asked->algorithm) == 0))
            return true;
    }
    return false;
}

/* Fails with the reason why points[i] cannot be measured. With --algorithm all, the reason of
 * `auto` is the most helpful. */
static int explain_skip(struct ddp_sampler *s, int i, struct ddp_err *err)
{
    struct ddp_err why = DDP_ERR_INIT;
    struct ddp_point_spec any = s->plan->points[i];
    snprintf(any.algorithm, sizeof any.algorithm, "auto");
    const bool explained = s->plan->all_algorithms && probe(s, &any, &why) == DDP_EUNAVAIL;
    return ddp_fail(err, DDP_EUNAVAIL, "%s", explained ? why.text : s->skip[i]);
}

/* Fails for the first skipped point without a measured match (see has_measured_match). */
static int check_skips(struct ddp_sampler *s, struct ddp_err *err)
{
    const struct ddp_point_spec *points = s->plan->points;
    for (int i = 0; i < s->plan->count; i++) {
        /* Points that differ only in size are adjacent. Only the first of them is checked. */
        const bool checked = i > 0 && s->skip[i - 1] && points[i - 1].dtype == points[i].dtype &&
                             points[i - 1].op == points[i].op &&
                             strcmp(points[i - 1].algorithm, points[i].algorithm) == 0 &&
                             strcmp(points[i - 1].compress, points[i].compress) == 0;
        if (s->skip[i] && !checked && !has_measured_match(s, i))
            return explain_skip(s, i, err);
    }
    return 0;
}

/* Finds the points that cannot be measured. Skips those that only `all` added. Fails if the user
 * named such a point explicitly. */
static int find_skips(struct ddp_sampler *s, struct ddp_err *err)
{
    const bool leaves_out = s->plan->all_algorithms || s->plan->all_dtypes || s->plan->all_ops;
    for (int i = 0; i < s->plan->count; i++) {
        struct ddp_err reason = DDP_ERR_INIT;
        int rc = probe(s, &s->plan->points[i], &reason);
        if (rc == 0)
            continue;
        if (rc != DDP_EUNAVAIL || !leaves_out) {
            *err = reason;
            return rc;
        }
        s->skip[i] = strdup(reason.text);
        if (!s->skip[i])
            return ddp_fail(err, DDP_ENOMEM, "no memory for a plan of %d points", s->plan->count);
    }
    return check_skips(s, err);
}

static int alloc_arrays(struct ddp_sampler *s, struct ddp_err *err)
{
    const size_t iters = (size_t)s->options->iters, size = (size_t)s->comm->size;
    const size_t points = (size_t)s->plan->count;
    s->duration = ddp_calloc(s->options->overlap ? iters : 1, sizeof *s->duration);
    s->chunk = ddp_calloc(size * DDP_SLOWEST_CHUNK, sizeof *s->chunk);
    s->skip = ddp_calloc(points, sizeof *s->skip);
    s->order = ddp_calloc(points, sizeof *s->order);
    s->plan_position = ddp_calloc(points, sizeof *s->plan_position);
    if (!s->duration || !s->chunk || !s->skip || !s->order || !s->plan_position)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the durations of %zu iterations", iters);
    return ddp_iterations_create(s->comm, s->options, &s->iterations, err);
}

/* Chooses the order of the measured points: random by the seed, or as given. The order is the same
 * on all ranks, because all skip the same points. */
static void choose_order(struct ddp_sampler *s)
{
    struct ddp_rng rng;
    for (int i = 0; i < s->plan->count; i++) {
        s->plan_position[i] = s->measured;
        if (!s->skip[i])
            s->order[s->measured++] = i;
    }
    ddp_rng_init(&rng, (uint64_t)s->options->seed, ORDER_STREAM);
    for (int i = s->measured - 1; i > 0 && s->options->order == DDP_ORDER_RANDOM; i--) {
        const int j = (int)ddp_rng_below(&rng, (uint64_t)i + 1), other = s->order[j];
        s->order[j] = s->order[i];
        s->order[i] = other;
    }
}

const int *ddp_sampler_order(const struct ddp_sampler *s, int *count)
{
    *count = s->measured;
    return s->order;
}

/* Creates the group of this rank. A group consists of consecutive ranks. Collective. */
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
        .device = s->device,
        .image = s->image_a,
        .image_residual = s->image_b,
        .page_bytes = s->page_bytes,
        .iterations = s->iterations,
    };
    return ddp_compressed_bench_create(&setup, &s->reduced, err);
}

static int make_bound(struct ddp_sampler *s, struct ddp_err *err)
{
    const struct ddp_bound_setup setup = {
        .comm = s->comm, .group = s->group, .a = s->a, .b = s->b, .bytes = s->buffer_bytes};
    return ddp_bound_create(&setup, &s->bound, err);
}

/* For a device: allocates the host's images of both buffers, and the array of times. */
static int alloc_for_device(struct ddp_sampler *s, struct ddp_err *err)
{
    const size_t iters = (size_t)s->options->iters;
    if (!s->device)
        return 0;
    s->image_a = ddp_alloc_pages(s->buffer_bytes);
    s->image_b = ddp_alloc_pages(s->buffer_bytes);
    s->device_ns = ddp_calloc(iters, sizeof *s->device_ns);
    if (s->image_a && s->image_b && s->device_ns)
        return 0;
    return ddp_fail(err, DDP_ENOMEM, "no memory for images of two buffers of %zu bytes",
                    s->buffer_bytes);
}

/* Writes to every page of both buffers, so that no page fault falls into a timed region. Finds the
 * page size. */
static void touch_buffers(struct ddp_sampler *s)
{
    s->page_bytes = -1;
    if (s->device) {
        s->device->fill(s->a, 0xff, s->buffer_bytes);
        s->device->fill(s->b, 0xff, s->buffer_bytes);
        return;
    }
    memset(s->a, 0xff, s->buffer_bytes);
    memset(s->b, 0xff, s->buffer_bytes);
    s->page_bytes = ddp_page_bytes(s->a);
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
    if (comm->backend->caps & DDP_CAP_DEVICE)
        s->device = comm->device;
    rc = alloc_arrays(s, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    rc = alloc_buffer(s, &s->a, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    rc = alloc_buffer(s, &s->b, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    rc = alloc_for_device(s, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    touch_buffers(s);
    DDP_TRY_GOTO(make_group(s, err), err_sampler);
    if (options->overlap) {
        rc = ddp_async_create(s->group, &s->async, err);
        DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    }
    if (ddp_plan_reduces(options))
        DDP_TRY_GOTO(make_reduced(s, err), err_sampler);
    rc = find_skips(s, err);
    if (rc == 0)
        rc = make_bound(s, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    choose_order(s);
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
    ddp_async_destroy(s->async);
    if (s->group != s->comm)
        ddp_comm_destroy(s->group);
    if (s->b)
        free_buffer(s, s->b);
    if (s->a)
        free_buffer(s, s->a);
    if (s->image_a)
        ddp_free_pages(s->image_a, s->buffer_bytes);
    if (s->image_b)
        ddp_free_pages(s->image_b, s->buffer_bytes);
    free(s->device_ns);
    for (int i = 0; s->skip && i < s->plan->count; i++)
        free(s->skip[i]);
    free(s->skip);
    ddp_bound_destroy(s->bound);
    ddp_iterations_destroy(s->iterations);
    free(s->order);
    free(s->plan_position);
    free(s->duration);
    free(s->chunk);
    free(s);
}

bool ddp_sampler_skips(const struct ddp_sampler *s, int index, const char **why)
{
    *why = s->skip[index];
    return *why != NULL;
}
