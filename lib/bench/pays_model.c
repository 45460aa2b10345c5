#include "bench/pays_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "coll/sparse/sparse_coll.h"
#include "exchange/block_exchange.h"
#include "record/quality.h"

#define BACKWARD_SHARE (2.0 / 3) /* of the compute time */
#define BISECTIONS     60
#define ROUTES_MAX     8
#define LEAST_GAIN     1.01 /* A step that is faster by less does not pay. */

/* Link speeds in GB/s between which a break-even is searched. */
#define SLOWEST 1e-6
#define FASTEST 1e6

/* The cost of one bucket with one algorithm. */
struct route {
    double steps;
    double path_bytes; /* bytes that are transferred one after another */
    double sent_bytes; /* bytes that a rank sends */
    double growth;     /* sent_bytes divided by the bytes with the measured ranks */
};

/* The exchange of one bucket by a method. */
struct method {
    const struct ddp_compress_spec *spec;
    const struct ddp_point *point;
    double scale;       /* factor of all measured times except that of encoding */
    double decoding;    /* another factor of decoding, which may sum the blocks of all ranks */
    double least_bytes; /* least sent_bytes of a route */
    int routes;
    struct route route[ROUTES_MAX];
};

/* Values of a step: its time, and the ends of the interval. */
enum { MEDIAN, LOW, HIGH };
struct step {
    double ns[3], arithmetic_ns, link_ns, sent_bytes;
};

struct model {
    const struct ddp_pays_question *q;
    int n, baseline; /* number of methods, index of the baseline */
    struct method method[DDP_PAYS_MAX];
    double accuracy_change[DDP_PAYS_MAX];
};

static const struct ddp_point *point_of(const struct ddp_pays_question *q, const char *method)
{
    for (int i = 0; i < q->point_count; i++)
        if (strcmp(q->points[i].spec.compress, method) == 0)
            return &q->points[i];
    return NULL;
}

static void add_route(struct method *m, const struct ddp_coll_cost *wanted,
                      const struct ddp_coll_cost *measured)
{
    if (m->routes == ROUTES_MAX || !(measured->sent_bytes > 0))
        return;
    m->least_bytes = m->routes == 0 ? wanted->sent_bytes : fmin(m->least_bytes, wanted->sent_bytes);
    m->route[m->routes++] = (struct route){
        .steps = wanted->steps,
        .path_bytes = wanted->path_bytes > 0 ? wanted->path_bytes : wanted->sent_bytes,
        .sent_bytes = wanted->sent_bytes,
        .growth = wanted->sent_bytes / measured->sent_bytes,
    };
}

/* Returns the cost of all-reduces of these numbers of elements, one after the other. count [n]. */
static struct ddp_coll_cost cost_of(const struct ddp_coll_alg *alg, int ranks, enum ddp_dtype dtype,
                                    const size_t *count, int n)
{
    struct ddp_coll_cost sum = {0};
    for (int i = 0; i < n; i++) {
        const struct ddp_coll_shape shape = {.coll = DDP_ALLREDUCE,
                                             .count = count[i],
                                             .dtype = dtype,
                                             .op = DDP_AVG,
                                             .in_place = true};
        struct ddp_coll_cost one;
        ddp_coll_cost_of(alg, ranks, &shape, &one);
        sum.steps += one.steps;
        sum.path_bytes += one.path_bytes;
        sum.sent_bytes += one.sent_bytes;
    }
    return sum;
}

/* Adds a route for each all-reduce algorithm that sends messages. The exchange consists of n
 * all-reduces of count [n] elements. `hier` is left out, because it is made of the others, and
 * depends on the hosts. */
static void add_dense(struct method *m, int ranks, enum ddp_dtype dtype, const size_t *count, int n)
{
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++) {
        if ((*a)->coll != DDP_ALLREDUCE || !((*a)->needs & DDP_NEEDS_MESSAGES) ||
            (*a)->cost_model != DDP_COST_COUNTED)
            continue;
        const struct ddp_coll_cost wanted = cost_of(*a, ranks, dtype, count, n);
        const struct ddp_coll_cost measured = cost_of(*a, m->point->spec.ranks, dtype, count, n);
        add_route(m, &wanted, &measured);
    }
}

/* Adds a compressor with rounds. Each round is an all-reduce of f32. */
static void add_rounds(struct method *m, int ranks)
{
    const struct ddp_compressor *c = m->spec->compressor;
    const struct ddp_tensor flat = ddp_compress_flat(m->point->spec.count);
    const struct ddp_tensors tensors = {&flat, 1};
    size_t count[DDP_ROUNDS_MAX];
    for (int r = 0; r < c->rounds; r++)
        count[r] = c->span(m->spec, &tensors, r).count;
    add_dense(m, ranks, DDP_F32, count, c->rounds);
}

/* Returns the cost of an exchange of quantised blocks, which sends the chunks of one ring
 * (all-gather) or of two (two-phase). */
static struct ddp_coll_cost block_cost(const struct ddp_compress_spec *spec, size_t n, int ranks)
{
    return (struct ddp_coll_cost){
        .steps = (spec->compressor->two_phase ? 2.0 : 1.0) * (ranks - 1),
        .sent_bytes = ddp_block_exchange_sent_bytes(spec, n, ranks),
    };
}

static void add_sparse(struct method *m, int ranks, double density)
{
    const size_t n = m->point->spec.count, k = ddp_compress_k(fmin(density, 1), n);
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a; a++) {
        struct ddp_coll_cost wanted, measured;
        bool exact;
        if ((*a)->selects != m->spec->compressor->global_topk || (*a)->needs & DDP_NEEDS_SHARED)
            continue;
        (*a)->cost(ranks, n, k, &wanted, &exact);
        (*a)->cost(m->point->spec.ranks, n, k, &measured, &exact);
        add_route(m, &wanted, &measured);
    }
}

/* Prepares a method. density: the density of a sparse method, relative to that of its point. */
static void describe(const struct ddp_pays_question *q, const struct ddp_compress_spec *spec,
                     const struct ddp_point *p, double density, struct method *m)
{
    *m = (struct method){.spec = spec, .point = p, .scale = 1, .decoding = 1};
    if (spec->compressor->combine == DDP_COMBINE_SUM) {
        add_dense(m, q->ranks, spec->compressor->wire_dtype, &p->spec.count, 1);
    } else if (spec->compressor->combine == DDP_COMBINE_ROUNDS) {
        add_rounds(m, q->ranks);
    } else if (spec->compressor->combine == DDP_COMBINE_BLOCKS) {
        const struct ddp_coll_cost wanted = block_cost(spec, p->spec.count, q->ranks);
        const struct ddp_coll_cost measured = block_cost(spec, p->spec.count, p->spec.ranks);
        add_route(m, &wanted, &measured);
        if (!spec->compressor->two_phase)
            m->decoding = (double)q->ranks / p->spec.ranks;
    } else {
        m->scale = density;
        add_sparse(m, q->ranks, density * p->achieved_density);
    }
}

/* Computes a step with one route. */
static void step_with(const struct ddp_pays_question *q, const struct method *m,
                      const struct route *r, const struct ddp_pays_speed *link, struct step *out)
{
    const struct ddp_point *p = m->point;
    const double buckets = (double)q->parameters / (double)p->spec.count;
    const double hidden = q->overlap ? q->step_ns * BACKWARD_SHARE : 0;
    const double encode = isnan(p->phase_ns[0]) ? 0 : p->phase_ns[0];
    const double decode = isnan(p->phase_ns[2]) ? 0 : p->phase_ns[2];
    const double measured[] = {p->time_ns.median, p->time_ns.ci95_lo, p->time_ns.ci95_hi};
    out->sent_bytes = buckets * r->sent_bytes;
    out->link_ns =
        ceil(buckets) * r->steps * link->latency_ns + buckets * r->path_bytes / link->GBps;
    for (int i = 0; i < 3; i++) {
        /* The measured phase of the exchange is not used, because it includes the wait for ranks
         * that still encode. This wait does not grow with the number of ranks. */
        const double exchange = fmax(measured[i] - encode - decode, 0);
        const double ns =
            buckets * (encode + m->scale * (m->decoding * decode + r->growth * exchange));
        out->ns[i] = q->step_ns + ns + fmax(out->link_ns - hidden, 0);
        if (isnan(measured[i]))
            out->ns[i] = NAN;
        if (i == MEDIAN)
            out->arithmetic_ns = ns;
    }
}

/* Returns the time of encoding and decoding a bucket, or an end of its interval: the sum of the two
 * medians, or of the same ends of their intervals. Returns 0 if the method neither encodes nor
 * decodes. */
static double coding_ns(const struct ddp_point *p, int which)
{
    if (isnan(p->phase_ns[0]))
        return 0;
    if (which == MEDIAN)
        return p->phase_ns[0] + p->phase_ns[2];
    return p->phase_ci95_ns[0][which - LOW] + p->phase_ci95_ns[2][which - LOW];
}

/* Computes a step whose exchange was measured on the link itself (GBps is NaN), or the same step on
 * an imagined link of speed GBps. On an imagined link, only the arithmetic and the transfer of the
 * bytes count. */
static void step_measured(const struct ddp_pays_question *q, const struct method *m, double GBps,
                          struct step *out)
{
    const struct ddp_point *p = m->point;
    const double buckets = (double)q->parameters / (double)p->spec.count;
    const double measured[] = {p->time_ns.median, p->time_ns.ci95_lo, p->time_ns.ci95_hi};
    const bool here = isnan(GBps);
    out->sent_bytes = buckets * m->least_bytes;
    out->link_ns = here ? NAN : out->sent_bytes / GBps;
    out->arithmetic_ns = buckets * (q->shared_memory ? p->time_ns.median : coding_ns(p, MEDIAN));
    for (int i = 0; i < 3; i++) {
        const double ns = here || q->shared_memory ? measured[i] : coding_ns(p, i);
        out->ns[i] = q->step_ns + buckets * ns + (here ? 0 : out->link_ns);
    }
}

/* Computes a step on a link: with its fastest route, or as measured. `GBps` is used instead of the
 * speed of the link. */
static void step_of(const struct ddp_pays_question *q, const struct method *m,
                    const struct ddp_pays_speed *link, double GBps, struct step *out)
{
    if (isnan(link->GBps)) {
        step_measured(q, m, GBps, out);
        return;
    }
    const struct ddp_pays_speed other = {GBps, link->latency_ns};
    for (int i = 0; i < m->routes; i++) {
        struct step one;
        step_with(q, m, &m->route[i], &other, &one);
        if (i == 0 || one.ns[MEDIAN] < out->ns[MEDIAN])
            *out = one;
    }
}

static void all_steps(const struct model *x, const struct ddp_pays_speed *link, double GBps,
                      struct step *out)
{
    for (int i = 0; i < x->n; i++)
        step_of(x->q, &x->method[i], link, GBps, &out[i]);
}

/* True if method i sends less than the baseline. */
static bool is_smaller(const struct model *x, int i)
{
    return x->method[i].least_bytes < x->method[x->baseline].least_bytes;
}

/* True if method i pays: it sends less than the baseline, and the upper end of its interval is more
 * than 1 % below the lower end of the interval of every method that does not send less. */
static bool pays(const struct model *x, const struct step *steps, int i)
{
    if (!is_smaller(x, i))
        return false;
    for (int j = 0; j < x->n; j++)
        if (!is_smaller(x, j) && !(LEAST_GAIN * steps[i].ns[HIGH] < steps[j].ns[LOW]))
            return false;
    return true;
}

/* Returns the highest link speed in GB/s at which method i pays (`sure`), or has a shorter median
 * than the baseline. INFINITY: at all speeds; 0: at none. */
static double highest_speed(const struct model *x, const struct ddp_pays_speed *link, int i,
                            bool sure)
{
    double low = log(SLOWEST), high = log(FASTEST);
    for (int n = 0; n <= BISECTIONS; n++) {
        struct step steps[DDP_PAYS_MAX];
        const double at = n == 0 ? high : (low + high) / 2;
        all_steps(x, link, exp(at), steps);
        const bool wins =
            sure ? pays(x, steps, i) : steps[i].ns[MEDIAN] < steps[x->baseline].ns[MEDIAN];
        if (wins && n == 0)
            return INFINITY;
        if (wins)
            low = at;
        else
            high = at;
    }
    return low > log(SLOWEST) ? exp(low) : 0;
}

/* Returns the density below which a step takes less time than with the baseline. 0: no density,
 * NaN: the method has no density. */
static double break_even_density(const struct model *x, const struct ddp_pays_speed *link, int i,
                                 double baseline_ns)
{
    const struct method *m = &x->method[i];
    const double density = m->point->achieved_density;
    const double least = 1 / (double)m->point->spec.count;
    double low = log(least), high = 0;
    if (!m->spec->compressor->fixed_count || !(density > 0) || isnan(link->GBps))
        return NAN;
    for (int n = 0; n <= BISECTIONS; n++) {
        struct method other;
        struct step step;
        const double at = n == 0 ? high : (low + high) / 2;
        describe(x->q, m->spec, m->point, exp(at) / density, &other);
        step_of(x->q, &other, link, link->GBps, &step);
        const bool wins = step.ns[MEDIAN] < baseline_ns;
        if (wins && n == 0)
            return 1;
        if (wins)
            low = at;
        else
            high = at;
    }
    return low > log(least) ? exp(low) : 0;
}

static void fill_method(const struct model *x, const struct ddp_pays_speed *link,
                        const struct step *steps, int i, struct ddp_pays_method *out)
{
    const struct step *s = &steps[i], *b = &steps[x->baseline];
    const double baseline = i == x->baseline ? NAN : 1;
    snprintf(out->method, sizeof out->method, "%s", x->method[i].spec->text);
    out->step_ns = s->ns[MEDIAN];
    out->arithmetic_ns = s->arithmetic_ns;
    out->link_ns = s->link_ns;
    out->sent_bytes = s->sent_bytes;
    out->speedup = b->ns[MEDIAN] / s->ns[MEDIAN];
    for (int e = 0; e < 2; e++) {
        out->step_ci95_ns[e] = s->ns[LOW + e];
        out->speedup_ci95[e] = baseline * b->ns[LOW + e] / s->ns[HIGH - e];
    }
    out->accuracy_change = x->accuracy_change[i];
    out->pays = pays(x, steps, i);
    out->sends_less = is_smaller(x, i);
    if (!out->sends_less)
        return;
    out->break_even_GBps = highest_speed(x, link, i, false);
    out->pays_below_GBps = highest_speed(x, link, i, true);
    out->break_even_density = break_even_density(x, link, i, b->ns[MEDIAN]);
}

/* Appends, for example, "2.1 to 2.4 times as fast as bf16". */
static void add_speedup(const struct model *x, const struct step *steps, int i, char *out,
                        size_t bytes)
{
    const struct step *s = &steps[i], *b = &steps[x->baseline];
    char least[16], most[16];
    snprintf(least, sizeof least, "%.3g", b->ns[LOW] / s->ns[HIGH]);
    snprintf(most, sizeof most, "%.3g", b->ns[HIGH] / s->ns[LOW]);
    const bool same = strcmp(least, most) == 0;
    ddp_text_append(out, bytes, "%s%s%s times as fast as " DDP_PAYS_BASELINE, least,
                    same ? "" : " to ", same ? "" : most);
}

static void add_accuracy(const struct model *x, int i, char *out, size_t bytes)
{
    if (isnan(x->accuracy_change[i]))
        ddp_text_append(out, bytes, "; its accuracy was not measured");
    else
        ddp_text_append(out, bytes, "; it changes the accuracy by %+.4f", x->accuracy_change[i]);
}

/* Appends the reasons why the measurement of method i or of the baseline is doubtful. */
static void add_doubt(const struct model *x, int i, char *out, size_t bytes)
{
    const unsigned quality = x->method[i].point->quality | x->method[x->baseline].point->quality;
    char codes[160];
    if (quality == 0)
        return;
    ddp_quality_list(quality, ", ", codes, sizeof codes);
    ddp_text_append(out, bytes, "; doubtful: %s", codes);
}

static void begin_answer(const struct ddp_pays_question *q, const struct ddp_pays_speed *link,
                         char *out, size_t bytes)
{
    if (isnan(link->GBps))
        snprintf(out, bytes, "Between these ranks%s ",
                 q->shared_memory ? ", which share memory," : "");
    else
        snprintf(out, bytes, "On %.3g Gbit/s, %.3g us, ", link->GBps * 8, link->latency_ns / 1e3);
}

/* Writes the sentence about a link on which nothing pays. */
static void answer_no(const struct model *x, const struct ddp_pays_speed *link,
                      const struct ddp_pays_method *methods, char *out, size_t bytes)
{
    struct step steps[DDP_PAYS_MAX];
    int best = 0;
    for (int i = 1; i < x->n; i++)
        if (isnan(methods[best].pays_below_GBps) ||
            methods[i].pays_below_GBps > methods[best].pays_below_GBps)
            best = i;
    const double below = methods[best].pays_below_GBps;
    ddp_text_append(out, bytes, "nothing pays");
    if (!(below > 0 && isfinite(below))) {
        add_doubt(x, x->baseline, out, bytes);
        return;
    }
    all_steps(x, link, below / 2, steps);
    ddp_text_append(out, bytes, "; below %.2g Gbit/s %s pays: at half that speed it is ", below * 8,
                    x->method[best].spec->text);
    add_speedup(x, steps, best, out, bytes);
    add_accuracy(x, best, out, bytes);
    add_doubt(x, best, out, bytes);
}

/* Sets `first` and `answer`. The answer also names every other method that pays and whose interval
 * overlaps with that of the first. */
static void answer(const struct model *x, const struct ddp_pays_speed *link,
                   const struct step *steps, const struct ddp_pays_method *methods,
                   struct ddp_pays_link *out)
{
    int first = -1, equal = 0;
    begin_answer(x->q, link, out->answer, sizeof out->answer);
    for (int i = 0; i < x->n; i++)
        if (methods[i].pays && (first < 0 || steps[i].ns[MEDIAN] < steps[first].ns[MEDIAN]))
            first = i;
    if (first < 0) {
        answer_no(x, link, methods, out->answer, sizeof out->answer);
        return;
    }
    snprintf(out->first, sizeof out->first, "%s", x->method[first].spec->text);
    ddp_text_append(out->answer, sizeof out->answer, "%s", out->first);
    for (int i = 0; i < x->n; i++)
        if (i != first && methods[i].pays && steps[i].ns[LOW] <= steps[first].ns[HIGH])
            ddp_text_append(out->answer, sizeof out->answer, "%s%s", equal++ ? ", " : " (or ",
                            x->method[i].spec->text);
    ddp_text_append(out->answer, sizeof out->answer, "%s is the fastest that pays, ",
                    equal ? ")" : "");
    add_speedup(x, steps, first, out->answer, sizeof out->answer);
    add_accuracy(x, first, out->answer, sizeof out->answer);
    add_doubt(x, first, out->answer, sizeof out->answer);
}

/* Returns 0, or DDP_EUNAVAIL if the baseline has no point. */
static int prepare(struct model *x, struct ddp_err *err)
{
    const struct ddp_pays_question *q = x->q;
    x->baseline = -1;
    for (int i = 0; i < q->methods->n && x->n < DDP_PAYS_MAX; i++) {
        const struct ddp_compress_spec *spec = &q->methods->v[i];
        const struct ddp_point *p = point_of(q, spec->text);
        if (p == NULL)
            continue;
        describe(q, spec, p, 1, &x->method[x->n]);
        if (x->method[x->n].routes == 0)
            continue;
        if (strcmp(spec->text, DDP_PAYS_BASELINE) == 0)
            x->baseline = x->n;
        x->accuracy_change[x->n++] = q->accuracy_change[i];
    }
    if (x->baseline >= 0)
        return 0;
    return ddp_fail(err, DDP_EUNAVAIL, "the baseline " DDP_PAYS_BASELINE " was not measured");
}

int ddp_pays_answer(const struct ddp_pays_question *q, struct ddp_pays_record *out,
                    struct ddp_err *err)
{
    struct model *x;
    DDP_TRY(DDP_NEW(&x, 1, err));
    x->q = q;
    int rc = prepare(x, err);
    if (rc == 0)
        rc = ddp_pays_init(out, q->speed_count, x->n, err);
    for (int l = 0; l < q->speed_count && rc == 0; l++) {
        const struct ddp_pays_speed *link = &q->speeds[l];
        struct step steps[DDP_PAYS_MAX];
        all_steps(x, link, link->GBps, steps);
        for (int i = 0; i < x->n; i++)
            fill_method(x, link, steps, i, ddp_pays_at(out, l, i));
        out->links[l].GBps = link->GBps;
        out->links[l].latency_ns = link->latency_ns;
        answer(x, link, steps, ddp_pays_at(out, l, 0), &out->links[l]);
    }
    if (rc == 0) {
        out->parameters = q->parameters;
        out->step_ns = q->step_ns;
        out->ranks = q->ranks;
        out->bucket_bytes = (int64_t)(x->method[x->baseline].point->spec.count * sizeof(float));
        out->overlap = q->overlap;
    }
    free(x);
    return rc;
}
