/* The sampler: measures one point. operands.h describes its two buffers. In place, the input is
 * restored before the start of every iteration. Otherwise a sum would grow with every iteration and
 * soon overflow. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/overlap.h"
#include "bench/pingpong.h"
#include "bench/sampler_impl.h"
#include "bench/slowest.h"

#define PINGPONG_NS 1000000

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
};

/* Prepares the collective, and the request if there is a progress thread. Succeeds on all ranks or
 * on none. */
static int prepare(struct measurement *m, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    int rc = ddp_sampler_plan(s, m->spec, &m->coll, err);
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

/* Verifies the operation that just ran. All ranks return the same result. */
static int check_result(struct measurement *m, struct ddp_err *err)
{
    int64_t elements, wrong;
    int rc = ddp_operands_verify(&m->operands, m->round, &elements, &wrong, err);
    m->checked += elements;
    return ddp_comm_agree(m->s->comm, rc, err);
}

/* Runs the operation once, untimed. Counts the bytes that this rank sends, and verifies the result
 * unless --check is off. */
static int run_first(struct measurement *m, struct ddp_err *err)
{
    struct ddp_comm *comm = m->s->comm;
    const struct ddp_comm *op_comm = ddp_sampler_comm(m->s);
    ddp_operands_fill(&m->operands, m->round);
    DDP_TRY(ddp_comm_barrier(comm, err));
    uint64_t before = op_comm->wire_bytes;
    DDP_TRY(operate(m, err));
    m->wire_bytes = op_comm->wire_bytes - before;
    return m->s->options->check == DDP_CHECK_OFF ? 0 : check_result(m, err);
}

/* Returns the time in ns of the last operation by the device's clock, or -1 if the backend has
 * none. */
static double device_time(const struct measurement *m)
{
    struct ddp_comm *op_comm = ddp_sampler_comm(m->s);
    return op_comm->backend->device_ns ? op_comm->backend->device_ns(op_comm) : -1;
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
        int rc = operate(m, err);
        for (int64_t i = 1; i < block && rc == 0; i++)
            rc = operate(m, err);
        const int64_t end = ddp_iterations_end(it, begin);
        if (rc != 0)
            return rc;
        const int64_t kept = ddp_iterations_keep(it, begin, end);
        if (kept >= 0 && m->s->device_ns)
            m->s->device_ns[kept] = device_time(m);
        DDP_TRY(ddp_iterations_join(m->s->comm, m->spec->size_bytes, err));
        if (kept >= 0 && check)
            DDP_TRY(check_result(m, err));
    }
}

/* Sets the number of bytes sent by the rank that sends most. They are counted if the algorithm
 * sends messages. They are modelled if ranks read each other's memory or if a library communicates
 * internally. The model is the minimum that a rank must exchange: the size times the collective's
 * busbw factor. */
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
    out->wire_bytes_per_rank =
        out->wire_counted
            ? (double)most
            : (double)m->spec->size_bytes * ddp_coll_busbw_factor(m->spec->coll, m->spec->ranks);
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

/* Sets out->device_ns to the median over iterations of the slowest rank's time by its device's
 * clock. Collective. */
static int share_device_time(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    const size_t n = (size_t)out->iterations;
    struct ddp_summary summary;
    if (!s->device_ns)
        return 0;
    double *slowest = ddp_calloc(n, sizeof *slowest);
    int64_t *mine = ddp_calloc(n, sizeof *mine);
    int rc = slowest && mine ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for %zu times", n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        mine[i] = (int64_t)s->device_ns[i];
    rc = ddp_comm_agree(s->comm, rc, err);
    if (rc == 0)
        rc = ddp_slowest(s->comm, mine, (int64_t)n, s->chunk, slowest, NULL, err);
    if (rc == 0 && ddp_summarize(slowest, n, &summary) == 0 && summary.median >= 0)
        out->device_ns = summary.median;
    free(slowest);
    free(mine);
    return rc;
}

static int fill_point(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_sampler *s = m->s;
    DDP_TRY(ddp_iterations_close(s->iterations, out, err));
    DDP_TRY(share_device_time(m, out, err));
    out->correctness_only = s->comm->correctness_only;
    out->page_bytes = s->page_bytes;
    out->check = (enum ddp_check)s->options->check;
    if (out->check != DDP_CHECK_OFF) {
        DDP_TRY(sum_checked(m, &out->check_elements, err));
        out->check_wrong = 0;
    }
    return wire_bytes(m, out, err);
}

static int measure_overlap(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    const struct ddp_overlap overlap = {
        .comm = m->s->comm,
        .operands = &m->operands,
        .request = &m->request,
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
    memcpy(out->algorithm_used, m->coll.alg->name,
           DDP_MIN(strlen(m->coll.alg->name), sizeof out->algorithm_used - 1));
    DDP_TRY(run_first(m, err));
    DDP_TRY(ddp_pingpong(s->comm, PINGPONG_NS, &out->pingpong_ns[0], err));
    ddp_operands_fill(&m->operands, m->round);
    DDP_TRY(run_timed(m, err));
    DDP_TRY(ddp_pingpong(s->comm, PINGPONG_NS, &out->pingpong_ns[1], err));
    DDP_TRY(fill_point(m, out, err));
    if (s->async)
        DDP_TRY(measure_overlap(m, out, err));
    return ddp_bound_fill(s->bound, m->coll.alg, &m->coll.shape, out, err);
}

static int measure_dense(struct ddp_sampler *s, int index, struct ddp_point *out,
                         struct ddp_err *err)
{
    struct measurement m = {.s = s, .spec = &s->plan->points[index]};
    /* Each group gets its own data, so that data of another group is detected as wrong. A seed is
     * below 2^53, so seed and group fit into 64 bits. ddp_mix64 is one to one, so different seeds
     * and groups give different rounds. The index of the point and the number of the iteration are
     * added. */
    const uint64_t group = (uint64_t)(s->comm->rank / s->group->size);
    m.round = ddp_mix64((uint64_t)s->options->seed | group << 56) + (uint64_t)index;
    ddp_sampler_operands(s, m.spec, &m.operands);
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
