#include "bench/compressed_point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/compressed_point_impl.h"
#include "bench/pingpong.h"

#define PINGPONG_NS   1000000
#define VERIFY_ROUNDS 2 /* the second round starts with residuals from the first */

/* One point being measured. */
struct measurement {
    struct ddp_compressed_bench *b;
    const struct ddp_point_spec *spec;
    bool feedback;
    struct ddp_bench_exchange *part; /* [parts]: one exchange for each chunk */
    int parts;
    int64_t checked; /* number of result elements that this rank has verified */
};

static void close_parts(struct measurement *m)
{
    for (int i = 0; m->part && i < m->parts; i++)
        ddp_bench_exchange_close(&m->part[i]);
    free(m->part);
}

/* Opens one exchange per chunk. The sizes of chunks differ by at most one element. There are at
 * most as many chunks as elements, because an empty exchange would take no time and distort the
 * median. Collective; fails on all ranks or on none. */
static int open_parts(struct measurement *m, struct ddp_err *err)
{
    const struct ddp_point_spec *s = m->spec;
    struct ddp_comm *comm = m->b->setup.comm;
    m->parts = (int)DDP_MIN((size_t)DDP_MAX(s->partial, 1), DDP_MAX(s->count, 1));
    m->part = ddp_calloc((size_t)m->parts, sizeof *m->part);
    int rc = m->part ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for %d chunks", m->parts);
    rc = ddp_comm_agree(comm, rc, err);
    for (int i = 0; i < m->parts && rc == 0; i++) {
        size_t first = (size_t)((unsigned __int128)s->count * (unsigned)i / (unsigned)m->parts);
        size_t end = (size_t)((unsigned __int128)s->count * (unsigned)(i + 1) / (unsigned)m->parts);
        const struct ddp_bench_exchange_setup how = {
            .method = s->compress,
            .algorithm = s->algorithm,
            .op = s->op,
            .feedback = m->feedback,
            .verify = m->b->setup.options->check != DDP_CHECK_OFF,
            .first = first,
            .n = end - first,
        };
        rc = ddp_bench_exchange_open(m->b, &how, &m->part[i], err);
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
    DDP_TRY(ddp_bench_exchange_verified(m->b, &m->part[i], ns, err));
    m->checked += (int64_t)m->part[i].n;
    return 0;
}

/* Verifies the first and the last chunk twice. */
static int run_first(struct measurement *m, struct ddp_err *err)
{
    int64_t ns[DDP_SERIES_COUNT];
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
        ddp_bench_exchange_counters(&m->part[i], &m->part[i].start);
}

/* Runs all iterations. Each one exchanges the next chunk. *last: the chunk of the last
 * iteration. */
static int run_iterations(struct measurement *m, int *last, struct ddp_err *err)
{
    struct ddp_compressed_bench *b = m->b;
    const bool check = b->setup.options->check == DDP_CHECK_ALL;
    bool counting = false;
    int64_t ns[DDP_SERIES_COUNT];
    for (int part = 0;; part = (part + 1) % m->parts) {
        bool more;
        DDP_TRY(ddp_iterations_next(b->timed, &more, err));
        if (!more)
            return 0;
        if (!counting && !ddp_iterations_warming(b->timed)) {
            start_counting(m);
            counting = true;
        }
        if (check)
            DDP_TRY(verify_part(m, part, ns, err));
        else
            DDP_TRY(ddp_bench_exchange_once(b, &m->part[part], ns, err));
        for (int s = 0; s < DDP_SERIES_COUNT && b->at >= 0; s++)
            b->duration[s * b->iters + b->at] = ns[s];
        *last = part;
    }
}

/* Runs the timed loop. With --check once, then checks that all ranks have the same result. */
static int run_timed(struct measurement *m, struct ddp_err *err)
{
    struct ddp_compressed_bench *b = m->b;
    const struct ddp_bench_options *o = b->setup.options;
    int at = 0;
    b->timed = b->setup.iterations;
    int rc = run_iterations(m, &at, err);
    b->timed = NULL;
    DDP_TRY(rc);
    if (o->check != DDP_CHECK_ONCE)
        return 0;
    const struct ddp_bench_exchange *last = &m->part[at];
    rc = ddp_verify_same_on_all_ranks(b->setup.group, ddp_bench_exchange_result(b, last), last->n,
                                      m->spec->compress, err);
    return ddp_comm_agree(b->setup.comm, rc, err);
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
        ddp_bench_exchange_counters(&m->part[i], &one);
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
    DDP_TRY(share(m->b, (double)m->checked, &total, &most, err));
    if (out->check != DDP_CHECK_OFF) {
        out->check_elements = (int64_t)total;
        out->check_wrong = 0;
    }
    return 0;
}

static int fill_times(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_summary phase;
    DDP_TRY(ddp_iterations_close(m->b->setup.iterations, out, err));
    for (int p = 0; p < 3; p++) {
        DDP_TRY(ddp_bench_summarize(m->b, DDP_SERIES_PHASES + p, out->iterations, &phase, err));
        out->phase_ns[p] = phase.median;
    }
    return 0;
}

/* Fills the members that are known before anything is measured. */
static int describe(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    const struct ddp_bench_options *o = m->b->setup.options;
    struct ddp_compress_spec parsed;
    const char *used = ddp_bench_exchange_algorithm(&m->part[m->parts - 1]);
    DDP_TRY(ddp_compress_parse(m->spec->compress, &parsed, err));
    const struct ddp_compressor *c = parsed.compressor;
    ddp_point_init(out);
    out->spec = *m->spec;
    snprintf(out->algorithm_used, sizeof out->algorithm_used, "%.23s",
             used ? used : m->spec->algorithm);
    if (c->fixed_count)
        out->density = parsed.argument;
    else if (c->combine == DDP_COMBINE_GATHER)
        out->threshold = parsed.argument;
    if (strcmp(c->name, "none") != 0)
        snprintf(out->feedback, sizeof out->feedback, "%s", m->feedback ? "on" : "off");
    if (c->combine == DDP_COMBINE_SUM && c->wire_dtype != DDP_F32)
        out->overflow_count = 0;
    out->page_bytes = m->b->setup.page_bytes;
    out->check = (enum ddp_check)o->check;
    out->correctness_only = m->b->setup.comm->correctness_only;
    return 0;
}

static int measure(struct measurement *m, struct ddp_point *out, struct ddp_err *err)
{
    struct ddp_comm *comm = m->b->setup.comm;
    DDP_TRY(describe(m, out, err));
    if (out->check != DDP_CHECK_OFF)
        DDP_TRY(run_first(m, err));
    DDP_TRY(ddp_pingpong(comm, PINGPONG_NS, &out->pingpong_ns[0], err));
    DDP_TRY(run_timed(m, err));
    DDP_TRY(ddp_pingpong(comm, PINGPONG_NS, &out->pingpong_ns[1], err));
    DDP_TRY(fill_times(m, out, err));
    return fill_counted(m, out, err);
}

int ddp_compressed_bench_point(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               int index, struct ddp_point *out, struct ddp_err *err)
{
    struct measurement m = {.b = b, .spec = spec};
    m.feedback = ddp_plan_feedback(b->setup.options, spec);
    /* Different groups and points get different gradients. */
    b->step = (uint64_t)index << 32;
    b->step += (uint64_t)(b->setup.comm->rank / b->setup.group->size) << 56;
    DDP_TRY(open_parts(&m, err));
    int rc = measure(&m, out, err);
    close_parts(&m);
    if (rc == 0 && b->setup.group->size > 1 && spec->count > 0 && !out->correctness_only)
        rc = ddp_bench_compare(b, out, err);
    return rc;
}
