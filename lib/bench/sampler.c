/* The sampler: measures one point. The first half of the file creates the buffers and the other
 * objects that all points share. The second half measures. operands.h describes the two buffers. In
 * place, the input is restored before the start of every iteration. Otherwise a sum would grow with
 * every iteration and soon overflow. */
#include "bench/sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sysinfo.h"
#include "bench/bound.h"
#include "bench/compressed_point.h"
#include "bench/iterations.h"
#include "bench/operands.h"
#include "bench/overlap.h"
#include "bench/pingpong.h"
#include "bench/verify_burst.h"
#include "coll/async.h"
#include "device/stream.h"

#define PINGPONG_NS  1000000
#define BURST_BLOCKS 512 /* blocks that all ranks together verify per operation of a burst */
/* Largest number of iterations that the device's clock times, and the time in ns that these
 * iterations may take according to the median of the point. */
#define DEVICE_ITERATIONS 50
#define DEVICE_BUDGET_NS  1e9
#define ORDER_STREAM      0x6f72646572 /* stream of random numbers: "order" in ASCII */

struct ddp_sampler {
    struct ddp_comm *comm;  /* all ranks */
    struct ddp_comm *group; /* runs the operation: comm, or this rank's group of --groups */
    const struct ddp_bench_options *options;
    const struct ddp_bench_plan *plan;
    void *a, *b;                     /* the two buffers, [buffer_bytes] each */
    const struct ddp_device *device; /* owner of the buffers' memory; NULL: the host */
    struct ddp_operands_device on;   /* for a device: memory and stream to write and compare data */
    /* [buffer_bytes] each, for compressed exchanges on a device: host memory for copies of the
     * gradient (image_a) and of the residual (image_b) */
    void *image_a, *image_b;
    size_t buffer_bytes;
    enum ddp_memory memory;
    char **skip; /* [plan->count]: why a point is left out; NULL: it is measured */
    /* order [measured]: indexes of points in the plan, in the order of measurement. plan_position
     * [plan->count]: how many measured points precede each point in the plan. */
    int *order, *plan_position;
    int measured;
    /* Scratch: duration [iters] for overlap, chunk [size][DDP_SLOWEST_CHUNK]. */
    int64_t *duration, *chunk;
    size_t *split;      /* [size][size]: part sizes of the current point (bench/split_table.h) */
    int64_t page_bytes; /* page size of buffer a; -1: not known */
    struct ddp_iterations *iterations;
    struct ddp_bound *bound;
    struct ddp_compressed_bench *reduced; /* NULL unless points are compressed or partial */
    struct ddp_async *async;              /* runs non-blocking operations; NULL: operations block */
};

static int alloc_buffer(struct ddp_sampler *s, void **out, struct ddp_err *err)
{
    if (s->memory != DDP_MEMORY_PRIVATE)
        return ddp_comm_alloc(s->comm, s->buffer_bytes, out, err);
    *out = s->device ? s->device->alloc(s->buffer_bytes) : ddp_alloc_pages(s->buffer_bytes);
    return *out ? 0 : ddp_fail_memory(err, 1, s->buffer_bytes, __func__);
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

/* Returns the communicator on which operations run: that of the progress thread if there is such a
 * thread, otherwise the group. */
static struct ddp_comm *operation_comm(const struct ddp_sampler *s)
{
    return s->async ? ddp_async_comm(s->async) : s->group;
}

/* Sets *out to the arrays of a point. The table of part sizes stays valid until the next
 * call. */
static void point_operands(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                           struct ddp_operands *out)
{
    ddp_operands_init(out, spec, s->group->rank, s->group->size, s->a, s->b);
    if (s->device)
        ddp_operands_on(out, &s->on);
    if (ddp_coll_has_split(spec->coll)) {
        ddp_split_fill(&s->options->split, spec->coll, (uint64_t)s->options->seed, s->group->size,
                       out->part, s->split);
        ddp_operands_split(out, s->split);
    }
}

/* Prepares the collective of a point. Returns DDP_EUNAVAIL if its algorithm cannot run. Not
 * collective. */
static int plan_point(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                      struct ddp_coll_plan *out, struct ddp_err *err)
{
    struct ddp_operands operands;
    point_operands(s, spec, &operands);
    /* NULL for `auto`: ddp_coll_plan_init then chooses. */
    const struct ddp_coll_alg *alg = ddp_coll_find(spec->coll, spec->algorithm);
    return ddp_coll_plan_init(out, operation_comm(s), alg, &operands.args, err);
}

/* Returns 0 if the point can be measured. Returns DDP_EUNAVAIL, with the reason, if its algorithm
 * cannot run here. */
static int probe(struct ddp_sampler *s, const struct ddp_point_spec *spec, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    if (ddp_point_is_reduced(spec))
        return ddp_compressed_bench_probe(s->reduced, spec, err);
    DDP_TRY(plan_point(s, spec, &plan, err));
    ddp_coll_plan_release(&plan);
    return 0;
}

/* True if some measured point has the same method as points[i], and the same type, operation and
 * algorithm. A property that the user gave as `all` may differ. If there is no such point, the
 * command must fail. */
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
        /* Listed groups may have different sizes. A point runs in all groups or in none. */
        if (s->options->group_list.ranks > 0)
            rc = ddp_comm_agree(s->comm, rc, &reason);
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
    DDP_TRY(DDP_NEW(&s->duration, s->options->overlap ? iters : 1, err));
    DDP_TRY(DDP_NEW(&s->chunk, size * DDP_SLOWEST_CHUNK, err));
    DDP_TRY(DDP_NEW(&s->skip, points, err));
    DDP_TRY(DDP_NEW(&s->order, points, err));
    DDP_TRY(DDP_NEW(&s->plan_position, points, err));
    if (ddp_coll_has_split(s->options->coll))
        DDP_TRY(DDP_NEW(&s->split, size * size, err));
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

/* Creates the group of this rank. Collective. */
static int make_group(struct ddp_sampler *s, struct ddp_err *err)
{
    const int size = s->comm->size;
    int *members, ranks = size;
    int rc = DDP_NEW(&members, (size_t)size, err);
    if (rc == 0)
        rc = ddp_plan_group_ranks(s->options, size, &ranks, err);
    rc = ddp_comm_agree(s->comm, rc, err);
    if (rc == 0 && ranks < size) {
        const int group = ddp_plan_group_of(s->options, size, s->comm->rank);
        const int n = ddp_plan_group_members(s->options, size, group, members);
        rc = ddp_comm_agree(s->comm, ddp_comm_group(s->comm, members, n, &s->group, err), err);
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
    const struct ddp_bench_options *o = s->options;
    const struct ddp_bound_setup setup = {
        .comm = s->comm,
        .group = s->group,
        .a = s->a,
        .b = s->b,
        .bytes = s->buffer_bytes,
        .iters = o->precision > 0 || o->max_time_s > 0 ? 0 : o->iters,
    };
    return ddp_bound_create(&setup, &s->bound, err);
}

/* For a device: allocates what operands.h needs, and image_a and image_b for compressed
 * exchanges. */
static int alloc_for_device(struct ddp_sampler *s, struct ddp_err *err)
{
    if (!s->device)
        return 0;
    s->on.device = s->device;
    DDP_TRY(s->device->streams->create(&s->on.stream, err));
    s->on.stage = s->device->streams->host_alloc(DDP_OPERANDS_STAGE_BYTES);
    s->on.wrong = s->device->alloc(sizeof *s->on.wrong);
    if (!s->on.stage || !s->on.wrong)
        return ddp_fail_memory(err, 1, DDP_OPERANDS_STAGE_BYTES, __func__);
    if (ddp_plan_reduces(s->options)) {
        s->image_a = ddp_alloc_pages(s->buffer_bytes);
        s->image_b = ddp_alloc_pages(s->buffer_bytes);
        if (!s->image_a || !s->image_b)
            return ddp_fail_memory(err, 2, s->buffer_bytes, __func__);
    }
    return 0;
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
    struct ddp_sampler *s;
    int rc = DDP_NEW(&s, 1, err);
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
    if (options->overlap && s->device == NULL) {
        rc = ddp_async_create(s->group, &s->async, err);
        DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    }
    if (ddp_plan_reduces(options))
        DDP_TRY_GOTO(make_reduced(s, err), err_sampler);
    rc = find_skips(s, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_sampler);
    DDP_TRY_GOTO(make_bound(s, err), err_sampler);
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
    if (s->on.wrong)
        s->device->free(s->on.wrong, sizeof *s->on.wrong);
    if (s->on.stage)
        s->device->streams->host_free(s->on.stage, DDP_OPERANDS_STAGE_BYTES);
    if (s->on.stream)
        s->device->streams->destroy(s->on.stream);
    for (int i = 0; s->skip && i < s->plan->count; i++)
        free(s->skip[i]);
    free(s->skip);
    ddp_bound_destroy(s->bound);
    ddp_iterations_destroy(s->iterations);
    free(s->order);
    free(s->plan_position);
    free(s->duration);
    free(s->chunk);
    free(s->split);
    free(s);
}

bool ddp_sampler_skips(const struct ddp_sampler *s, int index, const char **why)
{
    *why = s->skip[index];
    return *why != NULL;
}

/* One point being measured. */
struct measurement {
    struct ddp_sampler *s;
    const struct ddp_point_spec *spec;
    struct ddp_coll_plan coll;
    struct ddp_async_request request; /* runs coll on the progress thread, if there is one */
    struct ddp_operands operands;
    uint64_t round;      /* selects the input data; see verify.h */
    uint64_t wire_bytes; /* bytes that this rank sent in one operation */
    int64_t checked;     /* number of elements that this rank has verified */
    int64_t operations;  /* number of operations that were verified */
};

/* Prepares the collective, and the request if there is a progress thread. Succeeds on all ranks or
 * on none. */
static int prepare(struct measurement *m, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    int rc = plan_point(s, m->spec, &m->coll, err);
    if (rc == 0 && s->async)
        rc = ddp_async_prepare(s->async, m->coll.alg, &m->coll.args, &m->request, err);
    return ddp_comm_agree(s->comm, rc, err);
}

static int operate(struct measurement *m, struct ddp_err *err)
{
    if (!m->s->async)
        return ddp_coll_run(m->s->group, &m->coll, err);
    ddp_async_post(&m->request);
    return ddp_async_wait(&m->request, 0, err);
}

/* Verifies this rank's result of the operation that just ran. A barrier has no result. */
static int check_own_result(struct measurement *m, struct ddp_err *err)
{
    int64_t elements, wrong;
    int rc = ddp_operands_verify(&m->operands, m->round, &elements, &wrong, err);
    m->checked += elements;
    m->operations += m->spec->coll != DDP_BARRIER;
    return rc;
}

/* Verifies the operation that just ran. All ranks return the same result. */
static int check_result(struct measurement *m, struct ddp_err *err)
{
    return ddp_comm_agree(m->s->comm, check_own_result(m, err), err);
}

/* Verifies the last timed operation. Does nothing if the timed loop has verified it, or if a block
 * (--block) ran in place: its calls have worked on each other's results, so the right result is not
 * known. */
static int check_last(struct measurement *m, struct ddp_err *err)
{
    const struct ddp_bench_options *o = m->s->options;
    if (o->check == DDP_CHECK_ALL || (o->block > 1 && m->operands.in_place))
        return 0;
    return check_result(m, err);
}

/* Runs and verifies a burst (verify_burst.h). If the message is long, only some blocks of the input
 * change, and only those blocks of the result are verified. A rank whose result is wrong continues,
 * so that the other ranks do not wait for it. */
static int run_burst(struct measurement *m, struct ddp_err *err)
{
    struct ddp_comm *group = m->s->group;
    struct ddp_burst burst;
    const int count = ddp_burst_count((uint64_t)m->spec->size_bytes);
    const size_t blocks = (size_t)m->spec->count / DDP_VERIFY_BLOCK;
    int rc = 0, wrong = 0;
    m->operands.stride = blocks / DDP_MAX(BURST_BLOCKS / (size_t)group->size, 1) + 1;
    /* The operations of --overlap-compute run on another thread, where stalls are not possible. */
    if (!m->s->async)
        ddp_burst_open(&burst, group);
    for (int i = 0; i < count && rc == 0; i++) {
        ddp_burst_wait(group, i);
        ddp_operands_refill(&m->operands, ++m->round);
        rc = operate(m, err);
        if (rc == 0 && wrong == 0)
            wrong = check_own_result(m, err);
    }
    if (!m->s->async)
        ddp_burst_close(&burst);
    m->operands.stride = 0;
    DDP_TRY(rc);
    return ddp_comm_agree(m->s->comm, wrong, err);
}

/* Verifies the last timed operation and a burst, unless --check is off. Then writes the whole input
 * again. */
static int check_after(struct measurement *m, struct ddp_err *err)
{
    if (m->s->options->check == DDP_CHECK_OFF || m->spec->coll == DDP_BARRIER)
        return 0;
    DDP_TRY(check_last(m, err));
    DDP_TRY(run_burst(m, err));
    ddp_operands_fill(&m->operands, m->round);
    return 0;
}

/* Runs the operation once, untimed. Counts the bytes that this rank sends, and verifies the result
 * unless --check is off. */
static int run_first(struct measurement *m, struct ddp_err *err)
{
    struct ddp_comm *comm = m->s->comm;
    const struct ddp_comm *op_comm = operation_comm(m->s);
    ddp_operands_fill(&m->operands, m->round);
    DDP_TRY(ddp_comm_barrier(comm, err));
    uint64_t before = op_comm->wire_bytes;
    DDP_TRY(operate(m, err));
    m->wire_bytes = op_comm->wire_bytes - before;
    return m->s->options->check == DDP_CHECK_OFF ? 0 : check_result(m, err);
}

/* Runs the calls of one iteration (--block). A device gets all of them before the host waits, as in
 * nccl-tests. */
static int operate_block(struct measurement *m, int64_t block, struct ddp_err *err)
{
    if (block > 1 && !m->s->async && ddp_coll_has_many(m->s->group, &m->coll))
        return ddp_coll_run_many(m->s->group, &m->coll, block, NULL, err);
    int rc = 0;
    for (int64_t i = 0; i < block && rc == 0; i++)
        rc = operate(m, err);
    return rc;
}

static int run_timed(struct measurement *m, struct ddp_err *err)
{
    struct ddp_iterations *it = m->s->iterations;
    const bool check = m->s->options->check == DDP_CHECK_ALL;
    const int64_t block = DDP_MAX(m->s->options->block, 1);
    for (;;) {
        bool more;
        DDP_TRY(ddp_iterations_next(it, &more, err));
        if (!more)
            return 0;
        if (check)
            ddp_operands_fill(&m->operands, ++m->round);
        else
            ddp_operands_restore(&m->operands);
        DDP_TRY(ddp_iterations_start(it, err));
        const int64_t begin = ddp_now_ns();
        const int rc = operate_block(m, block, err);
        const int64_t end = ddp_iterations_end(it, begin);
        if (rc != 0)
            return rc;
        const int64_t kept = ddp_iterations_keep(it, begin, end);
        DDP_TRY(ddp_iterations_join(m->s->comm, m->spec->size_bytes, err));
        if (kept >= 0 && check)
            DDP_TRY(check_result(m, err));
    }
}

/* Sets the number of bytes sent by the rank that sends most. The bytes are counted if the algorithm
 * sends messages. They are modelled if ranks read each other's memory, or if a library communicates
 * internally. The model is the minimum that the busiest rank must exchange. */
static int wire_bytes(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_comm *comm = m->s->comm;
    uint64_t *all = (uint64_t *)m->s->chunk; /* [size] */
    DDP_TRY(ddp_comm_allgather_bytes(comm, &m->wire_bytes, all, sizeof *all, err));
    uint64_t most = 0;
    for (int r = 0; r < comm->size; r++)
        most = DDP_MAX(most, all[r]);
    /* Nothing is counted for native calls, which send inside the library, and for algorithms on
     * shared memory, which send nothing. */
    bool hidden = !(m->coll.alg->needs & DDP_NEEDS_MESSAGES);
    out->wire_counted = most > 0 || m->spec->ranks == 1 || !hidden;
    out->wire_bytes_per_rank = out->wire_counted ? (double)most : ddp_point_busiest_bytes(m->spec);
    return 0;
}

/* Sets *sum to the number of elements that all ranks have verified. */
static int sum_checked(struct measurement *m, int64_t *sum, struct ddp_err *err)
{
    int64_t *all = m->s->chunk; /* [size] */
    DDP_TRY(ddp_comm_allgather_bytes(m->s->comm, &m->checked, all, sizeof *all, err));
    *sum = 0;
    for (int r = 0; r < m->s->comm->size; r++)
        *sum += all[r];
    return 0;
}

/* Returns the number of iterations that the device's clock times. It is the same on all ranks. */
static int device_iterations(const struct ddp_point *p)
{
    const double fit = DEVICE_BUDGET_NS / fmax(p->time_ns.median * (double)p->block, 1);
    const int64_t most = DDP_MIN(p->iterations, DEVICE_ITERATIONS);
    return (int)DDP_MAX(DDP_MIN(most, (int64_t)fmin(fit, 1e9)), 1);
}

/* Runs `count` iterations and sets ns[count] to their times by this rank's device. An iteration is
 * a block of calls, as in the timed loop, but of at most DDP_NATIVE_HELD_MOST calls. */
static int run_by_device(struct measurement *m, int count, double *ns, struct ddp_err *err)
{
    const int64_t block = DDP_MIN(DDP_MAX(m->s->options->block, 1), DDP_NATIVE_HELD_MOST);
    for (int i = 0; i < count; i++) {
        ddp_operands_restore(&m->operands);
        DDP_TRY(ddp_coll_run_many(m->s->group, &m->coll, block, &ns[i], err));
    }
    return 0;
}

/* Sets range[0] and range[1] to the medians over iterations of the minimum and the maximum over the
 * ranks of the group. Does not change range if a time is unknown (negative). mine[count]: this
 * rank's times. */
static int summarize_device(struct measurement *m, int count, const double *mine, double *range,
                            struct ddp_err *err)
{
    struct ddp_comm *group = m->s->group;
    double *all = (double *)m->s->chunk; /* [size][count] */
    double least[DEVICE_ITERATIONS], most[DEVICE_ITERATIONS];
    struct ddp_summary of_least, of_most;
    DDP_TRY(ddp_comm_allgather_bytes(group, mine, all, (size_t)count * sizeof *mine, err));
    for (int i = 0; i < count; i++) {
        least[i] = INFINITY;
        most[i] = -1;
        for (int r = 0; r < group->size; r++) {
            least[i] = fmin(least[i], all[r * count + i]);
            most[i] = fmax(most[i], all[r * count + i]);
        }
    }
    if (ddp_summarize(least, (size_t)count, &of_least) != 0 ||
        ddp_summarize(most, (size_t)count, &of_most) != 0)
        return ddp_fail_memory(err, (size_t)count, sizeof *mine, __func__);
    if (of_least.min < 0)
        return 0;
    range[0] = of_least.median;
    range[1] = of_most.median;
    return 0;
}

/* Measures the operation by the clocks of the devices, in iterations that are not timed by the
 * host. If there are several groups, the time of the slowest group counts. Collective. */
static int measure_by_device(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    double mine[DEVICE_ITERATIONS], range[2] = {-1, -1}, *all = (double *)s->chunk; /* [size][2] */
    const int count = device_iterations(out);
    int rc = 0;
    if (!s->device)
        return 0;
    if (!s->async && ddp_coll_has_many(s->group, &m->coll)) {
        DDP_TRY(run_by_device(m, count, mine, err));
        rc = summarize_device(m, count, mine, range, err);
    }
    DDP_TRY(ddp_comm_agree(s->comm, rc, err));
    DDP_TRY(ddp_comm_allgather_bytes(s->comm, range, all, sizeof range, err));
    for (int r = 0; r < s->comm->size; r++) {
        range[0] = fmax(range[0], all[2 * r]);
        range[1] = fmax(range[1], all[2 * r + 1]);
    }
    if (range[0] >= 0) {
        out->device_ns = range[0];
        out->device_max_ns = range[1];
    }
    return 0;
}

static void note_symmetry(const struct measurement *m, struct ddp_point *out)
{
    const enum ddp_symmetric symmetric = m->s->group->symmetric;
    if (m->s->memory == DDP_MEMORY_WINDOW && symmetric != DDP_SYMMETRIC_NONE)
        snprintf(out->symmetric, sizeof out->symmetric, "%s",
                 symmetric == DDP_SYMMETRIC ? "yes" : "no");
}

static int fill_point(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    DDP_TRY(ddp_iterations_close(s->iterations, out, err));
    note_symmetry(m, out);
    out->correctness_only = s->comm->correctness_only;
    out->page_bytes = s->page_bytes;
    out->check = (enum ddp_check)s->options->check;
    if (out->check != DDP_CHECK_OFF) {
        DDP_TRY(check_after(m, err));
        DDP_TRY(sum_checked(m, &out->check_elements, err));
        out->check_operations = m->operations;
        out->check_wrong = 0;
    }
    return wire_bytes(m, out, err);
}

static int measure_overlap(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    const struct ddp_overlap overlap = {
        .comm = m->s->comm,
        .operands = &m->operands,
        .request = m->s->async != NULL ? &m->request : NULL,
        .plan = m->s->async != NULL ? NULL : &m->coll,
        .iters = out->iterations,
        .warmup = m->s->options->warmup,
        .duration = m->s->duration,
        .chunk = m->s->chunk,
    };
    return ddp_overlap_measure(&overlap, out->time_ns.median, out, err);
}

static int measure(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    /* Groups of different sizes may use different algorithms, which have different bounds. */
    const bool bounded = s->options->group_list.ranks == 0;
    memcpy(out->algorithm_used, m->coll.alg->name,
           DDP_MIN(strlen(m->coll.alg->name), sizeof out->algorithm_used - 1));
    DDP_TRY(run_first(m, err));
    DDP_TRY(ddp_pingpong(s->comm, PINGPONG_NS, &out->pingpong_ns[0], err));
    if (bounded)
        DDP_TRY(ddp_bound_before(s->bound, m->coll.alg, &m->coll.shape, out, err));
    ddp_operands_fill(&m->operands, ++m->round);
    DDP_TRY(run_timed(m, err));
    DDP_TRY(ddp_pingpong(s->comm, PINGPONG_NS, &out->pingpong_ns[1], err));
    DDP_TRY(fill_point(m, out, err));
    DDP_TRY(measure_by_device(m, out, err));
    if (s->options->overlap)
        DDP_TRY(measure_overlap(m, out, err));
    return bounded ? ddp_bound_fill(s->bound, m->coll.alg, &m->coll.shape, out, err) : 0;
}

static int measure_dense(struct ddp_sampler *s, int index, struct ddp_point *out,
                         struct ddp_err *err)
{
    struct measurement m = {.s = s, .spec = &s->plan->points[index]};
    /* Each group gets its own data, so that data of another group is detected as wrong. A seed is
     * below 2^53, so the seed and one of up to 256 groups fit into 64 bits. ddp_mix64 is one to
     * one, so different seeds and groups give different rounds. The index of the point and the
     * number of the iteration are added. */
    const uint64_t group = (uint64_t)ddp_plan_group_of(s->options, s->comm->size, s->comm->rank);
    m.round = ddp_mix64((uint64_t)s->options->seed | group << 56) + (uint64_t)index;
    point_operands(s, m.spec, &m.operands);
    ddp_point_init(out);
    out->spec = *m.spec;
    int rc = prepare(&m, err);
    if (rc == 0)
        rc = measure(&m, out, err);
    ddp_async_release(&m.request);
    ddp_coll_plan_release(&m.coll);
    return rc;
}

int ddp_sampler_point(struct ddp_sampler *s, int index, struct ddp_point *out,
                      const double **samples, struct ddp_err *err)
{
    const struct ddp_point_spec *spec = &s->plan->points[index];
    char id[192];
    ddp_point_id(spec, id, sizeof id);
    ddp_flight_phase(s->comm->flight, "%s", id);
    ddp_iterations_open(s->iterations, id);
    if (ddp_point_is_reduced(spec))
        DDP_TRY(ddp_compressed_bench_point(s->reduced, spec, index, out, err));
    else
        DDP_TRY(measure_dense(s, index, out, err));
    out->place = s->plan_position[index];
    out->of = s->measured;
    while (s->order[out->order] != index)
        out->order++;
    *samples = out->sample_count > 0 ? s->iterations->sample : NULL;
    return 0;
}
