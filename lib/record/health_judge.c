#include "record/health_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "stats/summary.h"

/* The smallest fraction of resent TCP segments that counts. It already lowers the throughput. */
#define RESENT_LEAST 0.001
/* The number of resent segments in a pass scatters by at least one segment. In a pass, a direction
 * usually sends at least RESENT_MESSAGES messages. A segment usually has SEGMENT_BYTES bytes. */
#define RESENT_MESSAGES 12
#define SEGMENT_BYTES   1448

/* A rank that had less than this percentage of a core waits for the scheduler, so its latencies are
 * not those of the network. */
#define CORE_PERCENT 90

/* The values of a figure during its search. */
struct values {
    const struct ddp_health_input *in;
    const struct ddp_health_rank *median; /* [in->ranks] */
    enum ddp_health_figure figure;
    size_t count;
    int units;
    struct ddp_peer_value *value; /* [count] */
    double *pass, *minus;         /* [count * passes]; minus: pass minus the reference */
    int *rank, *to;               /* [count] world ranks; to is -1 for a figure of a rank */
};

static bool is_of_pairs(enum ddp_health_figure figure)
{
    return figure <= DDP_HEALTH_RESENT;
}

/* Returns the figure of a direction or rank on the scale of the search, on which larger is worse.
 */
static double scaled(enum ddp_health_figure figure, double value)
{
    switch (figure) {
    case DDP_HEALTH_BANDWIDTH:
    case DDP_HEALTH_COPY:
        return -log(value);
    case DDP_HEALTH_RESENT:
        return log1p(value / RESENT_LEAST);
    default:
        return log(value);
    }
}

/* Returns the figure in its unit, from the scale of the search. `resent` is in percent. */
static double unscaled(enum ddp_health_figure figure, double y)
{
    switch (figure) {
    case DDP_HEALTH_BANDWIDTH:
    case DDP_HEALTH_COPY:
        return exp(-y);
    case DDP_HEALTH_RESENT:
        return 100 * RESENT_LEAST * expm1(y);
    default:
        return exp(y);
    }
}

static double of_cell(enum ddp_health_figure figure, const struct ddp_matrix *m, int from, int to)
{
    const struct ddp_matrix_cell *c = ddp_matrix_cell_of(m, from, to);
    switch (figure) {
    case DDP_HEALTH_BANDWIDTH:
        return c->GBps;
    case DDP_HEALTH_LATENCY:
        return c->latency_ns / 1e3;
    default:
        return c->resent_fraction;
    }
}

static double of_rank(enum ddp_health_figure figure, const struct ddp_health_rank *rank)
{
    return figure == DDP_HEALTH_COMPUTE ? rank->compute_ms : rank->copy_GBps;
}

/* Returns whether an end had a core of its own. */
static bool has_core(const struct values *v, int end)
{
    return v->median[v->in->pass[0].rank[end]].core_percent >= CORE_PERCENT;
}

/* Adds a value if all its passes are known. Leaves out a latency if one of the ends had no core of
 * its own. a, b: ends, or a rank and -1. */
static void add_value(struct values *v, int a, int b)
{
    const struct ddp_health_input *in = v->in;
    if (v->figure == DDP_HEALTH_LATENCY && !(has_core(v, a) && has_core(v, b)))
        return;
    double *pass = v->pass + v->count * (size_t)in->passes;
    for (int k = 0; k < in->passes; k++) {
        const double value = b < 0 ? of_rank(v->figure, &in->rank[k * in->ranks + a])
                                   : of_cell(v->figure, &in->pass[k], a, b);
        pass[k] = scaled(v->figure, value);
        if (!isfinite(pass[k]))
            return;
    }
    v->rank[v->count] = b < 0 ? a : in->pass[0].rank[a];
    v->to[v->count] = b < 0 ? -1 : in->pass[0].rank[b];
    v->value[v->count++] = (struct ddp_peer_value){
        .from = b < 0 ? in->host[a] : a, .to = b < 0 ? in->host[a] : b, .pass = pass};
}

static int collect(struct values *v, struct ddp_err *err)
{
    const struct ddp_health_input *in = v->in;
    const int ends = in->pass[0].ends, n = is_of_pairs(v->figure) ? ends * ends : in->ranks;
    const size_t most = (size_t)n, passes = most * (size_t)in->passes;
    v->units = is_of_pairs(v->figure) ? ends : in->hosts;
    DDP_TRY(DDP_NEW(&v->value, most, err));
    DDP_TRY(DDP_NEW(&v->pass, passes, err));
    DDP_TRY(DDP_NEW(&v->minus, passes, err));
    DDP_TRY(DDP_NEW(&v->rank, most, err));
    DDP_TRY(DDP_NEW(&v->to, most, err));
    for (int i = 0; i < n; i++) {
        if (!is_of_pairs(v->figure))
            add_value(v, i, -1);
        /* Both directions of a pair have the same latency, so it is added once. */
        else if (i / ends != i % ends && (v->figure != DDP_HEALTH_LATENCY || i / ends < i % ends))
            add_value(v, i / ends, i % ends);
    }
    return 0;
}

static void release(struct values *v)
{
    free(v->value);
    free(v->pass);
    free(v->minus);
    free(v->rank);
    free(v->to);
}

/* Returns the median of a figure of the reference, on the scale of the search. */
static int reference_median(enum ddp_health_figure figure, const struct ddp_health_reference *ref,
                            double *out, struct ddp_err *err)
{
    const int ends = ref->matrix->ends, n = is_of_pairs(figure) ? ends * ends : ref->health->ranks;
    double *y;
    size_t count = 0;
    DDP_TRY(DDP_NEW(&y, (size_t)n, err));
    for (int i = 0; i < n; i++) {
        y[count] =
            scaled(figure, is_of_pairs(figure) ? of_cell(figure, ref->matrix, i / ends, i % ends)
                                               : of_rank(figure, &ref->health->rank[i]));
        count += isfinite(y[count]);
    }
    *out = ddp_median(y, count);
    free(y);
    return 0;
}

/* Subtracts the reference from all values. Sets *known to whether the reference has the figure. */
static int subtract(struct values *v, bool *known, struct ddp_err *err)
{
    const struct ddp_health_reference *ref = v->in->reference;
    const int passes = v->in->passes;
    double usual;
    DDP_TRY(reference_median(v->figure, ref, &usual, err));
    if (is_of_pairs(v->figure) && ref->matrix->by_host != v->in->pass[0].by_host)
        usual = NAN; /* a pair of hosts is no peer of a pair of ranks */
    *known = isfinite(usual);
    for (size_t i = 0; i < v->count; i++) {
        const struct ddp_peer_value *value = &v->value[i];
        double own = NAN;
        if (is_of_pairs(v->figure) && ref->end)
            own = of_cell(v->figure, ref->matrix, ref->end[value->from], ref->end[value->to]);
        else if (!is_of_pairs(v->figure) && ref->rank)
            own = of_rank(v->figure, &ref->health->rank[ref->rank[v->rank[i]]]);
        own = scaled(v->figure, own);
        double *minus = v->minus + i * (size_t)passes;
        for (int k = 0; k < passes; k++)
            minus[k] = value->pass[k] - (isfinite(own) ? own : usual);
        v->value[i].pass = minus;
    }
    return 0;
}

/* Sets the place of a finding if there are only two ends. If the finding comes from the comparison
 * with peers and the network interfaces differ in speed, the place is the end with the slower
 * interface. Otherwise the place is the link or one of its directions. For a comparison with the
 * reference, the speeds are ignored, because this function does not know whether they differed at
 * the time of the reference. */
static void place_of_two(const struct values *v, struct ddp_health_finding *f)
{
    const int64_t *nic = v->in->nic_Mbps;
    const struct ddp_matrix *m = &v->in->pass[0];
    const int end = f->rank == m->rank[0] ? 0 : 1;
    const bool one_way = f->place == DDP_PEER_SENDING || f->place == DDP_PEER_RECEIVING ||
                         f->place == DDP_PEER_VALUE;
    if (!f->from_reference && nic && nic[0] > 0 && nic[1] > 0 && nic[0] != nic[1]) {
        const int slow = nic[0] < nic[1] ? 0 : 1;
        const int sender = f->place == DDP_PEER_RECEIVING ? 1 - end : end;
        f->place = !one_way         ? DDP_PEER_UNIT
                   : sender == slow ? DDP_PEER_SENDING
                                    : DDP_PEER_RECEIVING;
        f->rank = m->rank[slow];
        f->to = -1;
        return;
    }
    f->either = true;
    f->rank = m->rank[f->place == DDP_PEER_RECEIVING ? 1 - end : end];
    f->to = f->rank == m->rank[0] ? m->rank[1] : m->rank[0];
    f->place = one_way && v->figure != DDP_HEALTH_LATENCY ? DDP_PEER_VALUE : DDP_PEER_LINK;
}

/* Fills *f from a finding of the search. */
static void describe(const struct values *v, const struct ddp_peers *p,
                     const struct ddp_peer_finding *found, bool reference,
                     struct ddp_health_finding *f)
{
    const struct ddp_health_input *in = v->in;
    const bool pairs = is_of_pairs(v->figure);
    *f = (struct ddp_health_finding){.figure = v->figure,
                                     .place = found->place,
                                     .from_reference = reference,
                                     .rank = -1,
                                     .to = -1,
                                     .factor = exp(found->effect),
                                     .lower = exp(found->lower),
                                     .upper = exp(found->upper),
                                     .resent = NAN};
    if (found->place == DDP_PEER_VALUE) {
        f->rank = v->rank[found->value];
        f->to = v->to[found->value];
    } else if (pairs && found->from >= 0) {
        f->rank = in->pass[0].rank[found->from];
        f->to = found->to >= 0 ? in->pass[0].rank[found->to] : -1;
    } else if (found->from >= 0) {
        f->rank = 0;
        while (in->host[f->rank] != found->from)
            f->rank++;
    }
    f->of_host = pairs ? in->pass[0].by_host : found->place != DDP_PEER_VALUE;
    f->usual = unscaled(v->figure, p->level);
    f->value = unscaled(v->figure, p->level + found->effect);
    if (v->figure == DDP_HEALTH_RESENT) {
        f->factor = f->value;
        f->lower = unscaled(v->figure, p->level + found->lower);
        f->upper = unscaled(v->figure, p->level + found->upper);
    }
    if (pairs && in->pass[0].ends == 2 && found->place != DDP_PEER_ALL)
        place_of_two(v, f);
}

/* Returns whether the list already has a finding on this figure at the same place. The comparison
 * with the peers may have found the fault before the comparison with the reference. */
static bool is_known(const struct ddp_health *h, const struct ddp_health_finding *f)
{
    for (int i = 0; i < h->finding_count; i++) {
        const struct ddp_health_finding *g = &h->finding[i];
        if (g->figure == f->figure && g->place == f->place && g->rank == f->rank && g->to == f->to)
            return true;
    }
    return false;
}

static void add_findings(const struct values *v, const struct ddp_peers *p, bool reference,
                         struct ddp_health *h)
{
    for (int i = 0; i < p->count && h->finding_count < DDP_HEALTH_FINDINGS; i++) {
        struct ddp_health_finding *f = &h->finding[h->finding_count];
        describe(v, p, &p->finding[i], reference, f);
        h->finding_count += !(reference && is_known(h, f));
    }
}

/* Lowers the members of *power to those of the new search *p, where these are smaller. host_shows:
 * the search can find a slow host. link_shows: it can find a slow link or rank. */
static void keep_power(struct ddp_health_power *power, const struct ddp_peers *p, bool host_shows,
                       bool link_shows)
{
    const bool resent = power->figure == DDP_HEALTH_RESENT;
    const double level = isfinite(p->level) ? p->level : 0;
    const double host =
        resent ? unscaled(power->figure, level + p->detectable_unit) : exp(p->detectable_unit);
    const double link =
        resent ? unscaled(power->figure, level + p->detectable_value) : exp(p->detectable_value);
    power->scatter = fmin(isnan(power->scatter) ? INFINITY : power->scatter, p->scatter);
    if (isfinite(host) && host_shows)
        power->host_factor = fmin(isnan(power->host_factor) ? INFINITY : power->host_factor, host);
    if (isfinite(link) && link_shows)
        power->link_factor = fmin(isnan(power->link_factor) ? INFINITY : power->link_factor, link);
}

static int search(const struct values *v, const struct ddp_peer_rule *rule, struct ddp_peers *out,
                  struct ddp_err *err)
{
    if (ddp_peers_search(v->value, v->count, v->units, v->in->passes, rule, out) == 0)
        return 0;
    return ddp_fail(err, DDP_ENOMEM, "no memory for the search among peers");
}

/* Compares the values with each other. */
static int judge_peers(const struct values *v, struct ddp_peer_rule *rule, struct ddp_health *h,
                       struct ddp_err *err)
{
    const struct ddp_matrix *m = &v->in->pass[0];
    /* Between ranks of one host, a speed depends on their cores, so these pairs are no peers. */
    const bool are_peers = !is_of_pairs(v->figure) || m->by_host;
    /* With two ends, the search can find only a difference between the two directions. */
    const bool host_shows = are_peers && !(is_of_pairs(v->figure) && m->ends == 2);
    struct ddp_peers peers;
    DDP_TRY(search(v, rule, &peers, err));
    if (v->figure == DDP_HEALTH_LATENCY && isfinite(peers.level)) {
        rule->least = log1p(h->min_latency_us / exp(peers.level));
        DDP_TRY(search(v, rule, &peers, err));
    }
    keep_power(&h->power[v->figure], &peers, host_shows, are_peers);
    if (are_peers)
        add_findings(v, &peers, false, h);
    return 0;
}

/* Compares the values with the reference, if the reference has this figure. */
static int judge_reference(struct values *v, struct ddp_peer_rule *rule, struct ddp_health *h,
                           struct ddp_err *err)
{
    const struct ddp_health_reference *ref = v->in->reference;
    const double scatter = ref->health->power[v->figure].scatter;
    struct ddp_peers peers;
    bool known;
    DDP_TRY(subtract(v, &known, err));
    if (!known)
        return 0;
    rule->has_reference = true;
    rule->reference_scatter = isfinite(scatter) ? scatter : 0;
    DDP_TRY(search(v, rule, &peers, err));
    keep_power(&h->power[v->figure], &peers, true, true);
    DDP_TRY(reference_median(v->figure, ref, &peers.level, err));
    add_findings(v, &peers, true, h);
    return 0;
}

static int judge_values(struct values *v, struct ddp_health *h, struct ddp_err *err)
{
    struct ddp_peer_rule rule = {
        .least = log1p(h->min_effect),
        .level = h->level / DDP_HEALTH_PEER_FIGURES / (v->in->reference ? 2 : 1),
        .partial = v->figure == DDP_HEALTH_LATENCY,
        .directed = v->figure == DDP_HEALTH_BANDWIDTH || v->figure == DDP_HEALTH_RESENT};
    if (v->count == 0)
        return 0;
    if (v->figure == DDP_HEALTH_RESENT) {
        rule.least = log(2); /* scaled(RESENT_LEAST) */
        rule.least_scatter = log1p(1 / RESENT_LEAST * SEGMENT_BYTES / RESENT_MESSAGES /
                                   (double)v->in->pass[0].bytes);
    }
    DDP_TRY(judge_peers(v, &rule, h, err));
    return v->in->reference ? judge_reference(v, &rule, h, err) : 0;
}

/* Merges a finding on `resent` into the finding on bandwidth at the same place, because they
 * probably have the same cause. */
static void merge_resent(struct ddp_health *h)
{
    int kept = 0;
    for (int i = 0; i < h->finding_count; i++) {
        const struct ddp_health_finding f = h->finding[i];
        bool merged = false;
        for (int j = 0; j < kept && f.figure == DDP_HEALTH_RESENT; j++) {
            struct ddp_health_finding *g = &h->finding[j];
            if (g->figure == DDP_HEALTH_BANDWIDTH && g->place == f.place && g->rank == f.rank &&
                g->to == f.to) {
                g->resent = f.value;
                merged = true;
            }
        }
        if (!merged)
            h->finding[kept++] = f;
    }
    h->finding_count = kept;
}

/* Returns whether a host that is slower by the fraction must_find would have been found. Otherwise
 * sets the reason. */
static bool is_sure(const struct ddp_health_input *in, struct ddp_health *h,
                    enum ddp_health_figure figure)
{
    const double factor = h->power[figure].host_factor;
    const char *name = ddp_health_figure_names[figure];
    const char *unit = in->pass[0].by_host ? "host" : "rank";
    if (is_of_pairs(figure) && !in->pass[0].by_host && !in->reference)
        return true; /* one host: pairs of its ranks are compared only with a reference */
    if (factor <= 1 + h->must_find)
        return true;
    if (isnan(factor))
        snprintf(h->reason, sizeof h->reason,
                 "the figure '%s' has no peers that it could be compared with, or is unknown on a "
                 "%s; give --reference with the document of an earlier healthy run",
                 name, unit);
    else {
        char found[80];
        if (factor <= DDP_HEALTH_SHOWN_MOST)
            snprintf(found, sizeof found,
                     "a %s would be found only if it were at least %.2f times slower", unit,
                     factor);
        else
            snprintf(found, sizeof found, "no slow %s would be found", unit);
        snprintf(h->reason, sizeof h->reason,
                 "the figure '%s' scatters by %.2g %% between passes or peers, so %s; stop other "
                 "programs, or repeat with a larger --max-time",
                 name, 100 * h->power[figure].scatter, found);
    }
    return false;
}

static void conclude(const struct ddp_health_input *in, struct ddp_health *h)
{
    merge_resent(h);
    if (h->finding_count > 0) {
        h->verdict = DDP_HEALTH_DEGRADED;
        snprintf(h->reason, sizeof h->reason, "%d finding%s", h->finding_count,
                 h->finding_count == 1 ? "" : "s");
        return;
    }
    h->verdict = DDP_HEALTH_CANNOT_TELL;
    if (!is_sure(in, h, DDP_HEALTH_BANDWIDTH) || !is_sure(in, h, DDP_HEALTH_COMPUTE))
        return;
    h->verdict = DDP_HEALTH_HEALTHY;
    const double bandwidth = h->power[DDP_HEALTH_BANDWIDTH].host_factor;
    snprintf(
        h->reason, sizeof h->reason,
        "%d host%s with %d ranks: a computation that is %.2f times slower would have been found",
        in->hosts, in->hosts == 1 ? "" : "s", in->ranks, h->power[DDP_HEALTH_COMPUTE].host_factor);
    if (isfinite(bandwidth))
        ddp_text_append(h->reason, sizeof h->reason,
                        ", and a %s whose bandwidth is %.2f times lower",
                        in->pass[0].by_host ? "host" : "rank", bandwidth);
}

/* Sets h->rank to the medians over the passes. */
static int median_ranks(const struct ddp_health_input *in, struct ddp_health *h,
                        struct ddp_err *err)
{
    double *v;
    DDP_TRY(DDP_NEW(&h->rank, (size_t)in->ranks, err));
    DDP_TRY(DDP_NEW(&v, 3 * (size_t)in->passes, err));
    h->ranks = in->ranks;
    for (int r = 0; r < in->ranks; r++) {
        double *copy = v + in->passes, *core = copy + in->passes;
        for (int k = 0; k < in->passes; k++) {
            const struct ddp_health_rank *rank = &in->rank[k * in->ranks + r];
            v[k] = rank->compute_ms;
            copy[k] = rank->copy_GBps;
            core[k] = rank->core_percent;
        }
        const size_t n = (size_t)in->passes;
        h->rank[r] =
            (struct ddp_health_rank){ddp_median(v, n), ddp_median(copy, n), ddp_median(core, n)};
    }
    free(v);
    return 0;
}

int ddp_health_judge(const struct ddp_health_input *in, struct ddp_health *h, struct ddp_err *err)
{
    h->passes = in->passes;
    h->finding_count = 0;
    DDP_TRY(median_ranks(in, h, err));
    for (int f = 0; f < DDP_HEALTH_PEER_FIGURES; f++) {
        struct values v = {.in = in, .median = h->rank, .figure = (enum ddp_health_figure)f};
        h->power[f] = (struct ddp_health_power){v.figure, NAN, NAN, NAN};
        int rc = collect(&v, err);
        if (rc == 0)
            rc = judge_values(&v, h, err);
        release(&v);
        DDP_TRY(rc);
    }
    conclude(in, h);
    return 0;
}

int ddp_health_median(const struct ddp_matrix *pass, int passes, struct ddp_matrix *out,
                      struct ddp_err *err)
{
    const int ends = pass[0].ends;
    double *v;
    DDP_TRY(DDP_NEW(&v, (size_t)passes, err));
    int rc = ddp_matrix_init(out, ends, err);
    if (rc == 0) {
        memcpy(out->rank, pass[0].rank, (size_t)ends * sizeof *out->rank);
        out->by_host = pass[0].by_host;
        out->bytes = pass[0].bytes;
        out->rounds = pass[0].rounds;
        out->all_rounds = pass[0].all_rounds;
    }
    for (int i = 0; i < ends * ends && rc == 0; i++) {
        struct ddp_summary s;
        for (int f = 0; f < DDP_MATRIX_FIGURES; f++) {
            const struct ddp_matrix_figure *figure = &ddp_matrix_figures[f];
            for (int k = 0; k < passes; k++)
                v[k] = *ddp_matrix_figure_of(&pass[k].cell[i], figure);
            *ddp_matrix_figure_of(&out->cell[i], figure) = ddp_median(v, (size_t)passes);
        }
        for (int k = 0; k < passes; k++)
            v[k] = pass[k].cell[i].GBps;
        if (ddp_summarize(v, (size_t)passes, &s) == 0)
            out->cell[i].ci95_fraction = ddp_summary_ci95_fraction(&s);
    }
    free(v);
    return rc;
}
