#include "bench/compressed_point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/break_even.h"
#include "bench/gradient.h"
#include "bench/pingpong.h"
#include "bench/verify_burst.h"
#include "bench/verify_exchange.h"
#include "coll/sparse/sparse_coll.h"
#include "device/stream.h"
#include "exchange/compressed.h"

#define PINGPONG_NS   1000000
#define VERIFY_ROUNDS 2 /* the second round starts with residuals from the first */
#define WARMUP        2 /* untimed rounds of exchange_median */

#define DENSE_ITERS   20
#define TRIAL_ITERS   5 /* iterations of each of the two candidates for a baseline */
#define DENSITY_ITERS 10
#define REFINE_STEPS  3 /* bisections between the two densities around a break-even */

/* Series of durations: the whole exchange, then its phases (encode, exchange, decode). */
enum { SERIES_ALL, SERIES_PHASES, SERIES_COUNT = SERIES_PHASES + 3 };

struct ddp_compressed_bench {
    struct ddp_compressed_bench_setup setup;
    struct ddp_stream *stream; /* stream of the device; NULL: the host */
    int64_t iters;
    struct ddp_gradient *gradient;
    int64_t *duration;            /* [SERIES_COUNT][iters]: durations in ns */
    int64_t *chunk;               /* [size * DDP_SLOWEST_CHUNK]: scratch */
    double *scratch, *shared;     /* [iters], [size]: scratch */
    uint64_t step;                /* counts exchanges; each exchange gets a new gradient */
    struct ddp_iterations *timed; /* setup.iterations during the timed loop, else NULL */
    int64_t at;                   /* index of the last timed iteration; -1 after a warm-up */
};

/* One exchange of elements [first, first + n) of the buffer. If n is 0, all pointers are NULL. */
struct exchange {
    size_t first, n;
    struct ddp_compressed *x;
    struct ddp_verify_exchange *verify;   /* NULL: nothing is verified */
    struct ddp_compressed_counters start; /* the counters when timing began */
    bool feedback;
};

struct exchange_setup {
    const struct ddp_compress_spec *method;
    const char *algorithm;
    enum ddp_op op;
    bool feedback;
    bool verify; /* prepare for exchange_verified */
    size_t first, n;
};

int ddp_compressed_bench_create(const struct ddp_compressed_bench_setup *setup,
                                struct ddp_compressed_bench **out, struct ddp_err *err)
{
    const struct ddp_bench_options *o = setup->options;
    const size_t size = (size_t)setup->comm->size, iters = (size_t)o->iters;
    struct ddp_compressed_bench *b;
    int rc = DDP_NEW(&b, 1, err);
    DDP_TRY(ddp_comm_agree(setup->comm, rc, err));
    b->setup = *setup;
    b->iters = o->iters;
    rc = DDP_NEW(&b->duration, SERIES_COUNT * iters, err);
    if (rc == 0)
        rc = DDP_NEW(&b->scratch, iters, err);
    if (rc == 0)
        rc = DDP_NEW(&b->chunk, size * DDP_SLOWEST_CHUNK, err);
    if (rc == 0)
        rc = DDP_NEW(&b->shared, size, err);
    if (rc == 0 && setup->device)
        rc = setup->device->streams->create(&b->stream, err);
    if (rc == 0) {
        /* Write to the pages now, so that no page fault falls into a timed region. */
        memset(b->duration, 0xff, SERIES_COUNT * iters * sizeof *b->duration);
        rc = ddp_gradient_create(&o->gradient, (uint64_t)o->seed, &b->gradient, err);
    }
    rc = ddp_comm_agree(setup->comm, rc, err);
    if (rc == 0)
        *out = b;
    else
        ddp_compressed_bench_destroy(b);
    return rc;
}

void ddp_compressed_bench_destroy(struct ddp_compressed_bench *b)
{
    if (!b)
        return;
    if (b->stream)
        b->setup.device->streams->destroy(b->stream);
    ddp_gradient_destroy(b->gradient);
    free(b->duration);
    free(b->scratch);
    free(b->chunk);
    free(b->shared);
    free(b);
}

/* Creates an exchange of elements [first, first + n). Call exchange_close even after a failure.
 * Collective. */
static int exchange_open(struct ddp_compressed_bench *b, const struct exchange_setup *how,
                         struct exchange *out, struct ddp_err *err)
{
    struct ddp_compressed_setup setup = {
        .comm = b->setup.group,
        .device = b->setup.device,
        .stream = b->stream,
        .data = b->setup.data + how->first,
        .n = how->n,
        .spec = *how->method,
        .feedback = how->feedback,
        .average = how->op == DDP_AVG,
        .timed = true,
        .algorithm = strcmp(how->algorithm, "auto") == 0 ? NULL : how->algorithm,
        .seed = (uint64_t)b->setup.options->seed,
    };
    *out = (struct exchange){.first = how->first, .n = how->n, .feedback = how->feedback};
    if (how->n == 0)
        return 0;
    int rc = ddp_compressed_create(&setup, &out->x, err);
    DDP_TRY(ddp_comm_agree(b->setup.comm, rc, err));
    if (!how->verify)
        return 0;
    rc = ddp_verify_exchange_create(&setup, b->gradient, how->first, &out->verify, err);
    return ddp_comm_agree(b->setup.comm, rc, err);
}

static void exchange_close(struct exchange *e)
{
    ddp_verify_exchange_destroy(e->verify);
    ddp_compressed_destroy(e->x);
    e->x = NULL;
    e->verify = NULL;
}

static void exchange_counters(const struct exchange *e, struct ddp_compressed_counters *out)
{
    memset(out, 0, sizeof *out);
    if (e->x)
        ddp_compressed_counters(e->x, out);
}

/* Returns the name of the algorithm, or NULL if n is 0. */
static const char *exchange_algorithm(const struct exchange *e)
{
    return e->x ? ddp_compressed_algorithm(e->x) : NULL;
}

/* Returns the exchange's elements in host memory, where the gradient is drawn and the result is
 * read. */
static float *host_data(const struct ddp_compressed_bench *b, const struct exchange *e)
{
    return (b->setup.device ? b->setup.image : b->setup.data) + e->first;
}

static void copy_to_device(const struct ddp_compressed_bench *b, const struct exchange *e)
{
    if (b->setup.device && e->n > 0)
        b->setup.device->copy(b->setup.data + e->first, host_data(b, e), e->n * sizeof(float));
}

/* Returns the result [n] of the last exchange, in host memory. */
static const float *exchange_result(struct ddp_compressed_bench *b, const struct exchange *e)
{
    if (b->setup.device && e->n > 0)
        b->setup.device->copy(host_data(b, e), b->setup.data + e->first, e->n * sizeof(float));
    return host_data(b, e);
}

/* Returns the residual in host memory, or NULL if there is none. */
static const float *residual_of(struct ddp_compressed_bench *b, const struct exchange *e)
{
    const float *residual = e->x ? ddp_compressed_residual(e->x) : NULL;
    if (residual == NULL || !b->setup.device)
        return residual;
    b->setup.device->copy(b->setup.image_residual, residual, e->n * sizeof(float));
    return b->setup.image_residual;
}

/* Checks the last exchange. Its input has been announced to the verifier (verify_exchange.h). sent:
 * number of values that this rank sent. */
static int exchange_check(struct ddp_compressed_bench *b, const struct exchange *e, double sent,
                          struct ddp_err *err)
{
    const float *residual = residual_of(b, e);
    size_t count;
    const float *rounds = ddp_compressed_rounds(e->x, &count);
    int rc =
        ddp_verify_exchange_check(e->verify, exchange_result(b, e), residual, rounds, sent, err);
    if (rc == 0 && e->feedback && residual == NULL)
        rc = ddp_fail(err, DDP_EDATA, "wrong data: error feedback has no residual");
    return rc;
}

/* Passes the residual and the number of exchanges so far to the verifier. */
static void exchange_adopt(struct ddp_compressed_bench *b, const struct exchange *e)
{
    struct ddp_compressed_counters now;
    exchange_counters(e, &now);
    ddp_verify_exchange_adopt(e->verify, residual_of(b, e), (uint64_t)now.runs);
}

/* Waits until all ranks may start. In the timed loop, --start decides how. Elsewhere the ranks wait
 * at a barrier. */
static int start(struct ddp_compressed_bench *b, struct ddp_err *err)
{
    if (b->timed)
        return ddp_iterations_start(b->timed, err);
    return b->setup.comm->size > 1 ? ddp_comm_barrier(b->setup.comm, err) : 0;
}

/* Runs and times one exchange. Its input has already been written. */
static int exchange(struct ddp_compressed_bench *b, struct exchange *e, int64_t *ns,
                    struct ddp_err *err)
{
    struct ddp_compressed_counters before, after;
    exchange_counters(e, &before);
    DDP_TRY(start(b, err));
    const int64_t begin = ddp_now_ns();
    int rc = e->x ? ddp_compressed_run(e->x, err) : 0;
    const int64_t end = b->timed ? ddp_iterations_end(b->timed, begin) : ddp_now_ns();
    if (b->timed && rc == 0)
        b->at = ddp_iterations_keep(b->timed, begin, end);
    if (rc == 0)
        rc = ddp_iterations_join(b->setup.comm, e->n * sizeof(float), err);
    exchange_counters(e, &after);
    ns[SERIES_ALL] = end - begin;
    ns[SERIES_PHASES] = after.encode_ns - before.encode_ns;
    ns[SERIES_PHASES + 1] = after.exchange_ns - before.exchange_ns;
    ns[SERIES_PHASES + 2] = after.decode_ns - before.decode_ns;
    return rc;
}

/* Draws a gradient and exchanges it. ns [SERIES_COUNT]: receives this rank's times. */
static int exchange_once(struct ddp_compressed_bench *b, struct exchange *e, int64_t *ns,
                         struct ddp_err *err)
{
    const struct ddp_comm *group = b->setup.group;
    DDP_TRY(ddp_gradient_draw(b->gradient, group->rank, group->size, b->step++, e->first,
                              host_data(b, e), e->n, err));
    copy_to_device(b, e);
    return exchange(b, e, ns, err);
}

/* Like exchange_once, but with an input for which the right result and residual are known. Checks
 * the result and the residual. Returns DDP_EDATA on all ranks if either is wrong on any rank. */
static int exchange_verified(struct ddp_compressed_bench *b, struct exchange *e, int64_t *ns,
                             struct ddp_err *err)
{
    struct ddp_compressed_counters before, after;
    int rc = e->verify ? ddp_verify_exchange_input(e->verify, b->step++, host_data(b, e), err) : 0;
    copy_to_device(b, e);
    exchange_counters(e, &before);
    DDP_TRY(ddp_comm_agree(b->setup.comm, rc, err));
    DDP_TRY(exchange(b, e, ns, err));
    exchange_counters(e, &after);
    if (e->verify)
        rc = exchange_check(b, e, after.values_sent - before.values_sent, err);
    return ddp_comm_agree(b->setup.comm, rc, err);
}

/* Summarises the first `iters` durations of a series. The duration of an iteration is its duration
 * on the slowest rank. Collective; all ranks get the same result. */
static int summarize(struct ddp_compressed_bench *b, int series, int64_t iters,
                     struct ddp_summary *out, struct ddp_err *err)
{
    return ddp_slowest_summary(b->setup.comm, b->duration + series * b->iters, iters, b->chunk,
                               b->scratch, out, err);
}

/* Runs the exchanges e [n] in turn: two rounds to warm up, then `iters` rounds (at most b->iters).
 * Sets median [n] to the median time of each exchange. The time in a round is the time of the
 * slowest rank. Collective; all ranks get the same result. */
static int exchange_median(struct ddp_compressed_bench *b, struct exchange *e, int n, int64_t iters,
                           double *median, struct ddp_err *err)
{
    int64_t ns[SERIES_COUNT];
    iters = DDP_MIN(iters, b->iters);
    for (int64_t i = -WARMUP; i < iters; i++) {
        for (int j = 0; j < n; j++) {
            DDP_TRY(exchange_once(b, &e[j], ns, err));
            b->duration[j * b->iters + DDP_MAX(i, 0)] = ns[SERIES_ALL];
        }
    }
    for (int j = 0; j < n; j++) {
        struct ddp_summary summary;
        DDP_TRY(summarize(b, j, iters, &summary, err));
        median[j] = summary.median;
    }
    return 0;
}

/* Returns the method of a baseline, none or fp16. */
static struct ddp_compress_spec dense_method(enum ddp_baseline baseline)
{
    return baseline == DDP_BASELINE_F32 ? ddp_compress_none
                                        : ddp_compress_with(ddp_compressor_find("fp16"), NAN);
}

/* Returns the name of another all-reduce that may be faster than `taken`, the choice of `auto`. If
 * `taken` is `native`, returns the algorithm that `auto` chooses among our own. Otherwise returns
 * `native`, the library's all-reduce. Returns NULL if the other algorithm cannot run. */
static const char *other_candidate(const struct ddp_comm *group, const struct ddp_point *p,
                                   enum ddp_baseline baseline, const char *taken)
{
    const struct ddp_coll_shape shape = {
        .coll = DDP_ALLREDUCE,
        .count = p->spec.count,
        .dtype = baseline == DDP_BASELINE_F16 ? DDP_F16 : DDP_F32,
        .op = baseline == DDP_BASELINE_F16 ? DDP_SUM : p->spec.op,
    };
    const struct ddp_coll_alg *alg = ddp_coll_find(DDP_ALLREDUCE, "native");
    struct ddp_err none = DDP_ERR_INIT;
    if (strcmp(taken, alg->name) == 0)
        alg = ddp_coll_auto_own(group, &shape, &none);
    else if (ddp_coll_supports(alg, group, &shape, &none) != 0)
        alg = NULL;
    return alg != NULL ? alg->name : NULL;
}

/* Opens the dense exchange of a baseline with auto's choice and with the other candidate. Keeps the
 * exchange that is faster in a short trial. */
static int open_faster(struct ddp_compressed_bench *b, const struct ddp_point *p,
                       enum ddp_baseline baseline, struct exchange *out, struct ddp_err *err)
{
    const struct ddp_compress_spec method = dense_method(baseline);
    struct exchange_setup how = {
        .method = &method, .algorithm = "auto", .op = p->spec.op, .n = p->spec.count};
    struct exchange e[2] = {0};
    double median[2] = {0};
    int faster = 0;
    int rc = exchange_open(b, &how, &e[0], err);
    if (rc == 0)
        how.algorithm = other_candidate(b->setup.group, p, baseline, exchange_algorithm(&e[0]));
    if (rc == 0 && how.algorithm != NULL) {
        rc = exchange_open(b, &how, &e[1], err);
        if (rc == 0)
            rc = exchange_median(b, e, 2, TRIAL_ITERS, median, err);
        faster = rc == 0 && median[1] < median[0];
    }
    *out = e[faster];
    exchange_close(&e[!faster]);
    return rc;
}

/* Measures the f32 and the f16 baseline in turn, so that noise affects both alike. An exchange is
 * not compared with itself. Without --partial, method `none` therefore gets no f32 baseline, and
 * method `fp16` gets no f16 baseline. */
static int measure_dense(struct ddp_compressed_bench *b, struct ddp_point *p, struct ddp_err *err)
{
    struct exchange e[DDP_BASELINE_COUNT] = {0};
    double median[DDP_BASELINE_COUNT];
    int rc = 0;
    for (int i = 0; i < DDP_BASELINE_COUNT && rc == 0; i++)
        rc = open_faster(b, p, (enum ddp_baseline)i, &e[i], err);
    if (rc == 0)
        rc = exchange_median(b, e, DDP_BASELINE_COUNT, DENSE_ITERS, median, err);
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        if (rc == 0 && (strcmp(p->spec.compress, dense_method((enum ddp_baseline)i).text) != 0 ||
                        p->spec.partial > 0)) {
            p->dense_ns[i] = median[i];
            snprintf(p->dense_algorithm[i], sizeof p->dense_algorithm[i], "%.23s",
                     exchange_algorithm(&e[i]));
        }
        exchange_close(&e[i]);
    }
    return rc;
}

/* Times the point's exchange at another density, and adds the time to *times. */
static int time_at(struct ddp_compressed_bench *b, const struct ddp_point *p,
                   const struct ddp_compressor *compressor, double density,
                   struct ddp_density_times *times, struct ddp_err *err)
{
    const struct ddp_compress_spec method = ddp_compress_with(compressor, density);
    struct exchange e = {0};
    double ns;
    const struct exchange_setup how = {.method = &method,
                                       .algorithm = p->spec.algorithm,
                                       .op = p->spec.op,
                                       .feedback = strcmp(p->feedback, "on") == 0,
                                       .n = p->spec.count};
    int rc = exchange_open(b, &how, &e, err);
    if (rc == 0)
        rc = exchange_median(b, &e, 1, DENSITY_ITERS, &ns, err);
    exchange_close(&e);
    if (rc == 0)
        ddp_density_times_add(times, density, ns);
    return rc;
}

/* Times the exchange at a coarse grid of densities. If two measured densities enclose the
 * break-even density of a baseline, also times the exchange at a few densities between these
 * two. */
static int measure_densities(struct ddp_compressed_bench *b, struct ddp_point *p,
                             const struct ddp_compressor *compressor, struct ddp_err *err)
{
    static const double coarse[] = {1e-4, 1e-3, 1e-2, 1e-1, 1};
    struct ddp_density_times times = {0};
    double low, high;
    for (size_t i = 0; i < DDP_COUNT_OF(coarse); i++)
        DDP_TRY(time_at(b, p, compressor, coarse[i], &times, err));
    for (int i = 0; i < DDP_BASELINE_COUNT * REFINE_STEPS; i++) {
        ddp_break_even_measured(&times, p->dense_ns[i / REFINE_STEPS], &low, &high);
        if (low < high)
            DDP_TRY(time_at(b, p, compressor, sqrt(low * high), &times, err));
    }
    for (int i = 0; i < DDP_BASELINE_COUNT; i++)
        p->break_even[i].measured = ddp_break_even_measured(&times, p->dense_ns[i], &low, &high);
    return 0;
}

/* Returns the algorithm whose cost() predicts the bytes that a rank sends. If ranks read each
 * other's memory, the point's algorithm sends nothing. The function then returns the algorithm
 * `allgather`. */
static const struct ddp_sparse_alg *sender(const struct ddp_point *p)
{
    const struct ddp_sparse_alg *alg = ddp_sparse_find(p->algorithm_used);
    struct ddp_coll_cost cost = {0};
    bool exact;
    if (alg)
        alg->cost(p->spec.ranks, p->spec.count, 1, &cost, &exact);
    return cost.sent_bytes > 0 ? alg : ddp_sparse_find("allgather");
}

/* Sets dense_ns, dense_algorithm and break_even of a point whose other members are already set.
 * Collective. */
static int compare(struct ddp_compressed_bench *b, struct ddp_point *p, struct ddp_err *err)
{
    const struct ddp_compressor *compressor =
        ddp_plan_method_of(b->setup.options, &p->spec)->compressor;
    DDP_TRY(measure_dense(b, p, err));
    if (compressor->combine != DDP_COMBINE_GATHER || p->spec.partial > 0)
        return 0;
    const struct ddp_sparse_alg *alg = sender(p);
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        struct ddp_break_even *even = &p->break_even[i];
        double dense_bytes = ddp_point_dense_bytes(&p->spec, (enum ddp_baseline)i);
        if (alg)
            even->predicted =
                ddp_break_even_predicted(alg, p->spec.ranks, p->spec.count, dense_bytes);
        even->estimated =
            ddp_break_even_estimated(p->phase_ns, p->achieved_density, p->dense_ns[i]);
    }
    /* Only the density of a top-K can be chosen. The density that a threshold gives is not known in
     * advance. */
    if (!b->setup.options->break_even || !compressor->fixed_count)
        return 0;
    return measure_densities(b, p, compressor, err);
}

/* One point being measured. */
struct measurement {
    struct ddp_compressed_bench *b;
    const struct ddp_point_spec *spec;
    bool feedback;
    struct exchange *part; /* [parts]: one exchange for each chunk */
    int parts;
    int64_t checked;    /* number of result elements that this rank has verified */
    int64_t operations; /* number of exchanges that were verified */
    /* The last timed exchange: its chunk, the step of its gradient, and the number of values that
     * this rank had sent before it. */
    int last_part;
    uint64_t last_step;
    double sent_before;
};

static void close_parts(struct measurement *m)
{
    for (int i = 0; m->part && i < m->parts; i++)
        exchange_close(&m->part[i]);
    free(m->part);
}

/* Opens one exchange per chunk. The sizes of chunks differ by at most one element. If there are
 * fewer elements than chunks, there is one chunk per element, because an empty exchange would take
 * no time and distort the median. A point without elements has one empty chunk. Collective; fails
 * on all ranks or on none. */
static int open_parts(struct measurement *m, struct ddp_err *err)
{
    const struct ddp_point_spec *s = m->spec;
    struct ddp_comm *comm = m->b->setup.comm;
    m->parts = (int)DDP_MIN((size_t)DDP_MAX(s->partial, 1), DDP_MAX(s->count, 1));
    int rc = DDP_NEW(&m->part, (size_t)m->parts, err);
    rc = ddp_comm_agree(comm, rc, err);
    for (int i = 0; i < m->parts && rc == 0; i++) {
        size_t first = (size_t)((unsigned __int128)s->count * (unsigned)i / (unsigned)m->parts);
        size_t end = (size_t)((unsigned __int128)s->count * (unsigned)(i + 1) / (unsigned)m->parts);
        const struct exchange_setup how = {
            .method = ddp_plan_method_of(m->b->setup.options, s),
            .algorithm = s->algorithm,
            .op = s->op,
            .feedback = m->feedback,
            .verify = m->b->setup.options->check != DDP_CHECK_OFF,
            .first = first,
            .n = end - first,
        };
        rc = exchange_open(m->b, &how, &m->part[i], err);
    }
    if (rc != 0) {
        close_parts(m);
        m->part = NULL;
    }
    return rc;
}

int ddp_compressed_bench_probe(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               struct ddp_err *err)
{
    struct measurement m = {.b = b, .spec = spec};
    m.feedback = ddp_plan_feedback(b->setup.options, spec);
    DDP_TRY(open_parts(&m, err));
    close_parts(&m);
    return 0;
}

static int verify_part(struct measurement *m, int i, int64_t *ns, struct ddp_err *err)
{
    DDP_TRY(exchange_verified(m->b, &m->part[i], ns, err));
    m->checked += (int64_t)m->part[i].n;
    m->operations++;
    return 0;
}

/* Verifies the first and the last chunk twice. */
static int run_first(struct measurement *m, struct ddp_err *err)
{
    int64_t ns[SERIES_COUNT];
    for (int round = 0; round < VERIFY_ROUNDS; round++) {
        DDP_TRY(verify_part(m, 0, ns, err));
        if (m->parts > 1)
            DDP_TRY(verify_part(m, m->parts - 1, ns, err));
    }
    return 0;
}

static void start_counting(struct measurement *m)
{
    for (int i = 0; i < m->parts; i++)
        exchange_counters(&m->part[i], &m->part[i].start);
}

/* Stores the state from which check_last can verify the next exchange. The caller calls this
 * function before each exchange that may be the last timed one. */
static void note_last(struct measurement *m, int part)
{
    struct ddp_compressed_counters now;
    const struct exchange *e = &m->part[part];
    if (!e->verify)
        return;
    exchange_counters(e, &now);
    exchange_adopt(m->b, e);
    m->last_part = part;
    m->last_step = m->b->step;
    m->sent_before = now.values_sent;
}

/* Runs all iterations. Each iteration exchanges the next chunk. */
static int run_iterations(struct measurement *m, struct ddp_err *err)
{
    struct ddp_compressed_bench *b = m->b;
    const bool check = b->setup.options->check == DDP_CHECK_ALL;
    bool counting = false;
    int64_t ns[SERIES_COUNT];
    for (int part = 0;; part = (part + 1) % m->parts) {
        bool more;
        DDP_TRY(ddp_iterations_next(b->timed, &more, err));
        if (!more)
            return 0;
        if (!counting && !ddp_iterations_warming(b->timed)) {
            start_counting(m);
            counting = true;
        }
        if (!check && ddp_iterations_may_end(b->timed))
            note_last(m, part);
        if (check)
            DDP_TRY(verify_part(m, part, ns, err));
        else
            DDP_TRY(exchange_once(b, &m->part[part], ns, err));
        for (int s = 0; s < SERIES_COUNT && b->at >= 0; s++)
            b->duration[s * b->iters + b->at] = ns[s];
    }
}

static int run_timed(struct measurement *m, struct ddp_err *err)
{
    m->b->timed = m->b->setup.iterations;
    const int rc = run_iterations(m, err);
    m->b->timed = NULL;
    return rc;
}

/* Verifies the last timed exchange. All ranks return the same result. */
static int check_last(struct measurement *m, struct ddp_err *err)
{
    struct ddp_compressed_counters now;
    const struct exchange *e = &m->part[m->last_part];
    if (!e->verify)
        return 0;
    exchange_counters(e, &now);
    int rc = ddp_verify_exchange_expect_gradient(e->verify, m->last_step, err);
    DDP_TRY(ddp_comm_agree(m->b->setup.comm, rc, err));
    rc = exchange_check(m->b, e, now.values_sent - m->sent_before, err);
    m->checked += (int64_t)e->n;
    m->operations++;
    return ddp_comm_agree(m->b->setup.comm, rc, err);
}

/* Runs and verifies a burst (verify_burst.h) of the first chunk. Exchanges on a device and very
 * large exchanges get no burst. */
static int run_burst(struct measurement *m, struct ddp_err *err)
{
    struct ddp_compressed_bench *b = m->b;
    const struct exchange *e = &m->part[0];
    const struct ddp_exchange_burst burst = {.all = b->setup.comm,
                                             .comm = b->setup.group,
                                             .x = e->x,
                                             .verify = e->verify,
                                             .data = host_data(b, e),
                                             .n = e->n,
                                             .step = b->step};
    const int count = ddp_exchange_burst_count(e->n);
    if (!e->verify || b->setup.device || count == 0)
        return 0;
    exchange_adopt(b, e);
    b->step += (uint64_t)count;
    m->checked += count * (int64_t)e->n;
    m->operations += count;
    return ddp_exchange_burst(&burst, err);
}

/* Sets *sum and *largest to the sum and the maximum of `mine` over all ranks. */
static int share(struct ddp_compressed_bench *b, double mine, double *sum, double *largest,
                 struct ddp_err *err)
{
    struct ddp_comm *comm = b->setup.comm;
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, b->shared, sizeof mine, err));
    *sum = 0;
    *largest = b->shared[0];
    for (int r = 0; r < comm->size; r++) {
        *sum += b->shared[r];
        *largest = fmax(*largest, b->shared[r]);
    }
    return 0;
}

/* Fills the members that come from counters. The counters cover all iterations after the warm-up,
 * including invalid ones. Bytes are the maximum over ranks, as for dense points. The density is the
 * mean over ranks. */
static int fill_counted(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    const double iters = (double)m->b->setup.iterations->ran, ranks = m->b->setup.comm->size;
    struct ddp_compressed_counters sum = {.wire_counted = true}, one;
    double total, most;
    for (int i = 0; i < m->parts; i++) {
        const struct ddp_compressed_counters *start = &m->part[i].start;
        exchange_counters(&m->part[i], &one);
        sum.wire_bytes += one.wire_bytes - start->wire_bytes;
        sum.wire_counted = sum.wire_counted && (one.wire_counted || m->part[i].n == 0);
        sum.values_sent += one.values_sent - start->values_sent;
        sum.values_total += one.values_total - start->values_total;
        sum.overflow_count += one.overflow_count - start->overflow_count;
    }
    DDP_TRY(share(m->b, sum.wire_bytes / iters, &total, &most, err));
    out->wire_bytes_per_rank = most;
    DDP_TRY(share(m->b, sum.wire_counted ? 0 : 1, &total, &most, err));
    out->wire_counted = most == 0;
    DDP_TRY(share(m->b, sum.values_sent / iters, &total, &most, err));
    if (sum.values_total > 0)
        out->achieved_density = total / ranks / (double)m->spec->count;
    DDP_TRY(share(m->b, (double)sum.overflow_count, &total, &most, err));
    if (out->overflow_count >= 0)
        out->overflow_count = (int64_t)total;
    return 0;
}

/* Verifies the last timed exchange (--check once) and a burst, and fills the members that describe
 * the verification. */
static int check_after(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    double total, most;
    if (out->check == DDP_CHECK_OFF)
        return 0;
    if (out->check == DDP_CHECK_ONCE)
        DDP_TRY(check_last(m, err));
    DDP_TRY(run_burst(m, err));
    DDP_TRY(share(m->b, (double)m->checked, &total, &most, err));
    out->check_operations = m->operations;
    out->check_elements = (int64_t)total;
    out->check_wrong = 0;
    return 0;
}

static int fill_times(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_summary phase;
    DDP_TRY(ddp_iterations_close(m->b->setup.iterations, out, err));
    for (int p = 0; p < 3; p++) {
        DDP_TRY(summarize(m->b, SERIES_PHASES + p, out->iterations, &phase, err));
        out->phase_ns[p] = phase.median;
        if (isnan(out->time_ns.ci95_lo))
            continue; /* too few iterations for an interval */
        out->phase_ci95_ns[p][0] = phase.ci95_lo;
        out->phase_ci95_ns[p][1] = phase.ci95_hi;
    }
    return 0;
}

/* Fills the members that are known before anything is measured. */
static void describe(struct measurement *m, struct ddp_point *out)
{
    const struct ddp_bench_options *o = m->b->setup.options;
    const struct ddp_compress_spec *method = ddp_plan_method_of(o, m->spec);
    const char *used = exchange_algorithm(&m->part[m->parts - 1]);
    const struct ddp_compressor *c = method->compressor;
    ddp_point_init(out);
    out->spec = *m->spec;
    snprintf(out->algorithm_used, sizeof out->algorithm_used, "%.23s",
             used ? used : m->spec->algorithm);
    if (c->fixed_count)
        out->density = method->argument;
    else if (c->combine == DDP_COMBINE_GATHER)
        out->threshold = method->argument;
    else if (c->combine == DDP_COMBINE_BLOCKS)
        out->compress_block = (int32_t)ddp_compress_quant(method).block;
    else if (c->combine == DDP_COMBINE_ROUNDS)
        out->compress_rank = (int32_t)method->argument;
    if (!ddp_compressor_is_lossless(c))
        snprintf(out->feedback, sizeof out->feedback, "%s", m->feedback ? "on" : "off");
    if ((c->combine == DDP_COMBINE_SUM || c->combine == DDP_COMBINE_BLOCKS) &&
        !ddp_compressor_is_lossless(c))
        out->overflow_count = 0;
    out->page_bytes = m->b->setup.page_bytes;
    out->check = (enum ddp_check)o->check;
    out->correctness_only = m->b->setup.comm->correctness_only;
}

static int measure(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_comm *comm = m->b->setup.comm;
    describe(m, out);
    if (out->check != DDP_CHECK_OFF)
        DDP_TRY(run_first(m, err));
    DDP_TRY(ddp_pingpong(comm, PINGPONG_NS, &out->pingpong_ns[0], err));
    DDP_TRY(run_timed(m, err));
    DDP_TRY(ddp_pingpong(comm, PINGPONG_NS, &out->pingpong_ns[1], err));
    DDP_TRY(fill_times(m, out, err));
    DDP_TRY(fill_counted(m, out, err));
    return check_after(m, out, err);
}

int ddp_compressed_bench_point(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               int index, struct ddp_point *out, struct ddp_err *err)
{
    struct measurement m = {.b = b, .spec = spec};
    m.feedback = ddp_plan_feedback(b->setup.options, spec);
    /* Points get different gradients, and so do groups. The number of a group fits into the upper 8
     * bits of the step, because there are at most DDP_PLAN_GROUPS_MAX groups. */
    b->step = (uint64_t)index << 32;
    b->step +=
        (uint64_t)ddp_plan_group_of(b->setup.options, b->setup.comm->size, b->setup.comm->rank)
        << 56;
    DDP_TRY(open_parts(&m, err));
    int rc = measure(&m, out, err);
    close_parts(&m);
    if (rc == 0 && b->setup.group->size > 1 && spec->count > 0 && !out->correctness_only &&
        !b->setup.options->no_baselines)
        rc = compare(b, out, err);
    return rc;
}
