#include "stats/peers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/noninferior.h"
#include "stats/summary.h"

/* With at most this many possible places, the search computes the cost of each place exactly, and
 * can try all pairs of places. 8 units with values in both directions have 108 possible places. */
#define CHOICES_FEW 128
/* The standard deviation of a median of n normal values is about MEDIAN_SD / sqrt(n) times that of
 * a value. */
#define MEDIAN_SD 1.2533
/* The standard deviation of normal values is MAD_SD times their median absolute deviation. */
#define MAD_SD 1.4826
/* The 90 % quantile of the normal distribution. */
#define POWER_Z 1.2816

struct place {
    enum ddp_peer_place kind;
    int from, to; /* as in struct ddp_peer_finding */
    int value;    /* index of the value, or of one of the two values of a link */
};

struct search {
    const struct ddp_peer_value *value;
    size_t count;
    int units, passes;
    const struct ddp_peer_rule *rule;
    double *y;         /* [count] medians over the passes */
    double *scratch;   /* [count * passes] */
    double *by_pass;   /* [passes] an effect in each pass */
    double *fit;       /* [count] the largest effect on each value */
    size_t *reverse;   /* [count] index of the value in the other direction; count: there is none */
    size_t choices;    /* number of places that the search can choose from */
    double resolution; /* a residual of this size may be noise */
    int places;
    struct place place[DDP_PEER_FINDINGS];
    double effect[DDP_PEER_FINDINGS];
    double level, cost; /* set by fit() */
};

static bool covers(const struct search *s, const struct place *p, size_t i)
{
    const struct ddp_peer_value *v = &s->value[i];
    switch (p->kind) {
    case DDP_PEER_UNIT:
        return v->from == p->from || v->to == p->from;
    case DDP_PEER_SENDING:
        return v->from == p->from;
    case DDP_PEER_RECEIVING:
        return v->to == p->from;
    case DDP_PEER_LINK:
        return (v->from == p->from && v->to == p->to) || (v->from == p->to && v->to == p->from);
    case DDP_PEER_VALUE:
        return (size_t)p->value == i;
    default:
        return true;
    }
}

/* Returns how many of the effects cover value i, and sets *one to the last of them. */
static int covering(const struct search *s, size_t i, int *one)
{
    int n = 0;
    for (int p = 0; p < s->places; p++)
        if (covers(s, &s->place[p], i)) {
            *one = p;
            n++;
        }
    return n;
}

/* Returns effect p: the median difference between the level and the values that only effect p
 * covers. If there are no such values, uses all values that p covers. `pass` is a pass, or -1 for
 * the medians over the passes. */
static double effect_of(const struct search *s, int p, int pass, double level)
{
    for (int shared = 0; shared < 2; shared++) {
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++) {
            int one = -1;
            if (covers(s, &s->place[p], i) && (shared || covering(s, i, &one) == 1))
                s->scratch[n++] = (pass < 0 ? s->y[i] : s->value[i].pass[pass]) - level;
        }
        if (n > 0)
            return ddp_median(s->scratch, n);
    }
    return NAN;
}

/* Returns 0 with a reference, and otherwise the median of the values that no effect covers. Returns
 * NaN if effects cover all values. */
static double level_of(const struct search *s, int pass)
{
    size_t n = 0;
    int one;
    if (s->rule->has_reference)
        return 0;
    for (size_t i = 0; i < s->count; i++)
        if (covering(s, i, &one) == 0)
            s->scratch[n++] = pass < 0 ? s->y[i] : s->value[i].pass[pass];
    return ddp_median(s->scratch, n);
}

/* Computes the level, the effects and the fit. Returns the sum of the absolute residuals (the
 * cost), or INFINITY if the effects leave no value for the level. */
static double fit(struct search *s)
{
    s->cost = INFINITY;
    s->level = level_of(s, -1);
    if (isnan(s->level))
        return INFINITY;
    for (int p = 0; p < s->places; p++) {
        s->effect[p] = fmax(effect_of(s, p, -1, s->level), 0);
    }
    double cost = 0;
    for (size_t i = 0; i < s->count; i++) {
        s->fit[i] = 0;
        for (int p = 0; p < s->places; p++)
            if (covers(s, &s->place[p], i))
                s->fit[i] = fmax(s->fit[i], s->effect[p]);
        cost += fabs(s->y[i] - s->level - s->fit[i]);
    }
    s->cost = cost;
    return cost;
}

/* Sets *out to the i-th possible place. The kind is DDP_PEER_PLACES if index i is not used. Returns
 * false past the last index. */
static bool nth_place(const struct search *s, size_t i, struct place *out)
{
    const bool directed = s->rule->directed;
    const size_t of_unit = directed ? 3 : 1, units = (size_t)s->units * of_unit;
    *out = (struct place){DDP_PEER_VALUE, -1, -1, -1};
    if (i < units) {
        *out = (struct place){(enum ddp_peer_place)(i % of_unit), (int)(i / of_unit), -1, -1};
        return true;
    }
    i -= units;
    if (i >= s->count) {
        i -= s->count;
        out->kind = DDP_PEER_LINK;
        if (!directed || i >= s->count) {
            out->kind = DDP_PEER_ALL;
            return s->rule->has_reference && i == (directed ? s->count : 0);
        }
    }
    out->from = s->value[i].from;
    out->to = s->value[i].from == s->value[i].to ? -1 : s->value[i].to;
    out->value = (int)i;
    /* A link has two values. Only the index of the first value stands for the link. */
    if (out->kind == DDP_PEER_LINK && (s->reverse[i] == s->count || s->reverse[i] < i))
        out->kind = DDP_PEER_PLACES;
    return true;
}

/* Returns whether the place is between two units that both have an effect. The values of such a
 * place may contain the sum of the two effects, which is not a third fault. */
static bool is_between_found(const struct search *s, const struct place *place)
{
    bool from = false, to = false;
    if (place->to < 0)
        return false;
    for (int p = 0; p < s->places; p++)
        if (s->place[p].kind <= DDP_PEER_RECEIVING) {
            from |= s->place[p].from == place->from;
            to |= s->place[p].from == place->to;
        }
    return from && to;
}

/* Returns by how much an effect reduces the absolute residual of value i. */
static double gain_of(const struct search *s, size_t i, double effect)
{
    const double above = s->y[i] - s->level;
    return fabs(above - s->fit[i]) - fabs(above - fmax(s->fit[i], effect));
}

/* Returns how much an effect at this place reduces the sum of the absolute residuals if the level
 * and the other effects stay the same. */
static double quick_gain(const struct search *s, const struct place *place)
{
    const size_t i = (size_t)place->value;
    double gain = 0, effect;
    size_t n = 0;
    if (place->kind == DDP_PEER_VALUE)
        return gain_of(s, i, s->y[i] - s->level);
    if (place->kind == DDP_PEER_LINK) {
        const size_t other = s->reverse[i];
        effect = (s->y[i] + s->y[other]) / 2 - s->level;
        return gain_of(s, i, effect) + gain_of(s, other, effect);
    }
    for (size_t v = 0; v < s->count; v++)
        if (covers(s, place, v))
            s->scratch[n++] = s->y[v] - s->level;
    effect = ddp_median(s->scratch, n);
    for (size_t v = 0; v < s->count && effect > 0 && n < s->count; v++)
        if (covers(s, place, v))
            gain += gain_of(s, v, effect);
    return gain;
}

/* Adds the place that reduces the cost most. Returns the new cost, or INFINITY if there is none. */
static double add_best(struct search *s)
{
    struct place place, best = {.kind = DDP_PEER_PLACES};
    double least = INFINITY;
    if (s->places == DDP_PEER_FINDINGS)
        return INFINITY;
    for (size_t i = 0; nth_place(s, i, &place); i++) {
        double cost;
        if (place.kind == DDP_PEER_PLACES || is_between_found(s, &place))
            continue;
        if (s->choices <= CHOICES_FEW || place.kind == DDP_PEER_ALL) {
            s->place[s->places++] = place;
            cost = fit(s);
            s->places--;
        } else { /* s->fit has no new place yet: DDP_PEER_ALL is the last index */
            cost = s->cost - quick_gain(s, &place);
        }
        if (cost < least) {
            least = cost;
            best = place;
        }
    }
    if (best.kind == DDP_PEER_PLACES)
        return INFINITY;
    s->place[s->places++] = best;
    return fit(s);
}

/* Sets the effects of *s to the pair with the least cost. Returns this cost, or INFINITY if no pair
 * is possible. */
static double best_pair(struct search *s)
{
    struct place a, b, best[2];
    double least = INFINITY;
    for (size_t i = 0; nth_place(s, i, &a); i++)
        for (size_t j = i + 1; a.kind != DDP_PEER_PLACES && nth_place(s, j, &b); j++) {
            if (b.kind == DDP_PEER_PLACES)
                continue;
            s->place[0] = a;
            s->place[1] = b;
            s->places = 2;
            const double cost = fit(s);
            if (cost < least && s->effect[0] > 0 && s->effect[1] > 0) {
                least = cost;
                best[0] = a;
                best[1] = b;
            }
        }
    s->places = 0;
    if (isinf(least))
        return least;
    memcpy(s->place, best, sizeof best);
    s->places = 2;
    return fit(s);
}

/* Returns by how much an effect must reduce the cost to be added. Noise alone rarely reduces the
 * cost by so much. */
static double price(const struct search *s)
{
    return (log((double)s->choices) + 2) * s->resolution;
}

/* Adds effects as long as each of them reduces the cost by more than price(). Returns the cost. */
static double grow(struct search *s, double cost)
{
    for (;;) {
        const struct search before = *s;
        const double next = add_best(s);
        if (!(next + price(s) < cost)) {
            *s = before;
            return fit(s);
        }
        cost = next;
    }
}

/* Returns whether a value lies far below the level. The level may then be that of faulty values. */
static bool is_level_high(const struct search *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->y[i] - s->level - s->fit[i] < -3 * s->resolution)
            return true;
    return false;
}

static void explain(struct search *s)
{
    const double cost = grow(s, fit(s));
    if (s->choices > CHOICES_FEW || !is_level_high(s))
        return;
    const struct search found = *s;
    const double pair = best_pair(s);
    if (pair + 2 * price(s) < cost + found.places * price(s)) {
        (void)grow(s, pair);
        return;
    }
    *s = found;
    (void)fit(s);
}

/* Returns the standard deviation of a pass of a value, from the differences of successive passes.
 */
static double pass_scatter(struct search *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        for (int k = 1; k < s->passes; k++)
            s->scratch[n++] = fabs(s->value[i].pass[k] - s->value[i].pass[k - 1]);
    return fmax(MAD_SD / sqrt(2) * ddp_median(s->scratch, n), s->rule->least_scatter);
}

/* Returns the standard deviation of the median of a value's passes. */
static double value_scatter(struct search *s, double one_pass)
{
    const size_t used = (size_t)s->places + !s->rule->has_reference;
    double scatter = one_pass * (s->passes < 3 ? 1 : MEDIAN_SD) / sqrt(s->passes);
    if (s->count >= used + 3) {
        for (size_t i = 0; i < s->count; i++)
            s->scratch[i] = fabs(s->y[i] - s->level - s->fit[i]);
        const double spread = MAD_SD * ddp_median(s->scratch, s->count) *
                              sqrt((double)s->count / (double)(s->count - used));
        scatter = fmax(scatter, spread);
    }
    return sqrt(scatter * scatter + s->rule->reference_scatter * s->rule->reference_scatter);
}

/* Returns the factor by which the standard error is multiplied for one-sided bounds. */
static double quantile(const struct search *s)
{
    const size_t df = DDP_MAX(s->count * (size_t)(s->passes - 1) / 2, 2);
    return ddp_student_t(1 - s->rule->level / (double)s->choices, df);
}

/* Returns the standard error of the difference between the medians of `in` and `out` values. */
static double error_of(const struct search *s, double scatter, double in, double out)
{
    return scatter * sqrt((in > 2 ? MEDIAN_SD * MEDIAN_SD : 1) / in +
                          (s->rule->has_reference ? 0 : MEDIAN_SD * MEDIAN_SD / out));
}

/* Returns the effect on a link in a pass: the smaller value of the two directions, minus the
 * level. */
static double least_of_link(const struct search *s, int p, int pass, double level)
{
    const size_t i = (size_t)s->place[p].value, other = s->reverse[i];
    return fmin(s->value[i].pass[pass], s->value[other].pass[pass]) - level;
}

/* Fills *out for effect p. The interval contains the effects of most passes, so that a disturbance
 * in half of the passes is not a finding. If the place has one or two values, the interval contains
 * the effects of all passes, because there may be thousands of such places. */
static void bound(struct search *s, int p, double scatter, struct ddp_peer_finding *out)
{
    const size_t n = (size_t)s->passes;
    double in = 0, outside = 0;
    int one;
    for (size_t i = 0; i < s->count; i++) {
        in += covers(s, &s->place[p], i);
        outside += covering(s, i, &one) == 0;
    }
    for (int k = 0; k < s->passes; k++)
        s->by_pass[k] = s->place[p].kind == DDP_PEER_LINK ? least_of_link(s, p, k, level_of(s, k))
                                                          : effect_of(s, p, k, level_of(s, k));
    ddp_sort_doubles(s->by_pass, n);
    const size_t outliers = in > 2 ? n / 5 : 0;
    const double half = quantile(s) * error_of(s, scatter, in, outside);
    *out = (struct ddp_peer_finding){
        .place = s->place[p].kind,
        .from = s->place[p].from,
        .to = s->place[p].to,
        .value = s->place[p].kind == DDP_PEER_VALUE ? s->place[p].value : -1,
        .effect = s->effect[p],
        .lower = fmin(s->effect[p] - half, s->by_pass[outliers]),
        .upper = fmax(s->effect[p] + half, s->by_pass[n - 1 - outliers])};
}

static double detectable(const struct search *s, double scatter, double in)
{
    const double out = (double)s->count - in;
    if (!s->rule->has_reference && out < 1)
        return INFINITY;
    return s->rule->least + (quantile(s) + POWER_Z) * error_of(s, scatter, in, out);
}

/* Returns the largest other effect that covers all values that effect p covers. */
static double effect_around(const struct search *s, int p)
{
    double most = 0;
    for (int q = 0; q < s->places; q++) {
        bool around = q != p;
        for (size_t i = 0; i < s->count && around; i++)
            around = !covers(s, &s->place[p], i) || covers(s, &s->place[q], i);
        most = around ? fmax(most, s->effect[q]) : most;
    }
    return most;
}

/* Returns the number of values in the place of this kind at unit u. */
static double values_of(const struct search *s, enum ddp_peer_place kind, int u)
{
    const struct place place = {kind, u, -1, -1};
    double in = 0;
    for (size_t i = 0; i < s->count; i++)
        in += covers(s, &place, i);
    return in;
}

/* Returns the smallest effect on a unit that would be found. `of_value` is the same for one
 * value. */
static double detectable_unit(const struct search *s, double scatter, double of_value)
{
    const bool directed = s->rule->directed;
    double least = INFINITY;
    for (int u = 0; u < s->units; u++) {
        double in = values_of(s, directed ? DDP_PEER_SENDING : DDP_PEER_UNIT, u);
        if (directed)
            in = fmin(in, values_of(s, DDP_PEER_RECEIVING, u));
        if (in == 0 && !s->rule->partial)
            return INFINITY;
        if (in > 0 && (in < (double)s->count || s->rule->has_reference))
            least = fmin(least, in);
    }
    return isinf(least) ? of_value : detectable(s, scatter, least);
}

static void conclude(struct search *s, struct ddp_peers *out)
{
    const double one_pass = pass_scatter(s);
    s->resolution = fmax(one_pass * MEDIAN_SD / sqrt(s->passes), s->rule->least / 4);
    explain(s);
    out->scatter = value_scatter(s, one_pass);
    out->level = s->level;
    for (int p = 0; p < s->places; p++) {
        struct ddp_peer_finding *f = &out->finding[out->count];
        bound(s, p, out->scatter, f);
        out->count += f->lower > s->rule->least + effect_around(s, p);
    }
    out->detectable_value = detectable(s, out->scatter, 1);
    out->detectable_unit = detectable_unit(s, out->scatter, out->detectable_value);
}

/* Fills y, reverse and choices. Returns 0, or -1 if memory is exhausted. */
static int prepare(struct search *s)
{
    struct place place;
    for (size_t i = 0; i < s->count; i++) {
        memcpy(s->scratch, s->value[i].pass, (size_t)s->passes * sizeof(double));
        s->y[i] = ddp_median(s->scratch, (size_t)s->passes);
    }
    size_t *at = calloc((size_t)s->units * (size_t)s->units, sizeof *at);
    if (!at)
        return -1;
    for (size_t i = 0; i < s->count; i++)
        at[(size_t)s->value[i].from * (size_t)s->units + (size_t)s->value[i].to] = i + 1;
    for (size_t i = 0; i < s->count; i++) {
        const size_t other =
            at[(size_t)s->value[i].to * (size_t)s->units + (size_t)s->value[i].from];
        s->reverse[i] = other > 0 && s->value[i].from != s->value[i].to ? other - 1 : s->count;
    }
    free(at);
    for (size_t i = 0; nth_place(s, i, &place); i++)
        s->choices += place.kind != DDP_PEER_PLACES;
    return 0;
}

int ddp_peers_search(const struct ddp_peer_value *value, size_t count, int units, int passes,
                     const struct ddp_peer_rule *rule, struct ddp_peers *out)
{
    struct search s = {
        .value = value, .count = count, .units = units, .passes = passes, .rule = rule};
    *out = (struct ddp_peers){
        .level = NAN, .scatter = NAN, .detectable_unit = INFINITY, .detectable_value = INFINITY};
    if (count == 0 || passes < 2)
        return 0;
    s.y = calloc(count, sizeof *s.y);
    s.fit = calloc(count, sizeof *s.fit);
    s.scratch = calloc(count * (size_t)passes, sizeof *s.scratch);
    s.reverse = calloc(count, sizeof *s.reverse);
    s.by_pass = calloc((size_t)passes, sizeof *s.by_pass);
    int rc = s.by_pass && s.y && s.fit && s.scratch && s.reverse ? prepare(&s) : -1;
    if (rc == 0)
        conclude(&s, out);
    free(s.by_pass);
    free(s.reverse);
    free(s.scratch);
    free(s.fit);
    free(s.y);
    return rc;
}
