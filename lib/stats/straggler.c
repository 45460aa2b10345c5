#include "stats/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/summary.h"

#define BINS 64

/* The values that are compared between the ranks. The first three are tested. */
enum channel { ENTRY, EXIT, STOLEN, TESTED, LOST = TESTED, WINDOW, CHANNELS };
/* The tests of a channel (straggler.h): steady delays in small and in large groups of bins, and
 * rare long stalls in small groups. */
enum variant { STEADY, STEADY_COARSE, RARE, VARIANTS };

/* Late entries have the cause `core` if stolen time explains at least the fraction STOLEN_MOST of
 * them, and `compute` if it explains at most STOLEN_LEAST. In between, no rank is named. */
#define STOLEN_LEAST 0.4
#define STOLEN_MOST  0.7

struct ddp_straggler_sums {
    int ranks;
    bool stolen_unknown;
    /* bins: number of bins in use. per_bin: iterations of a full bin. filled: iterations of the
     * last bin. total: all iterations. */
    size_t bins, per_bin, filled, total;
    double took[BINS]; /* sum of the times of the iterations of each bin */
    /* [CHANNELS][BINS][ranks]: sums of the values. Entries and exits count from the first rank. */
    double *sum;
    double *current; /* [CHANNELS][ranks]: the same for the current iteration */
    int64_t *last;   /* [CHANNELS][ranks]: iterations in which a rank was last */
};

const char *const ddp_straggler_cause_names[] = {"compute", "link", "core", NULL};

int ddp_straggler_create(int ranks, struct ddp_straggler_sums **out)
{
    struct ddp_straggler_sums *s = ddp_calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return -1;
    const size_t n = (size_t)ranks;
    s->ranks = ranks;
    s->sum = ddp_calloc(CHANNELS * BINS * n, sizeof *s->sum);
    s->current = ddp_calloc(CHANNELS * n, sizeof *s->current);
    s->last = ddp_calloc(CHANNELS * n, sizeof *s->last);
    if (!s->sum || !s->current || !s->last) {
        ddp_straggler_destroy(s);
        *out = NULL;
        return -1;
    }
    ddp_straggler_reset(s);
    return 0;
}

void ddp_straggler_destroy(struct ddp_straggler_sums *s)
{
    if (!s)
        return;
    free(s->sum);
    free(s->current);
    free(s->last);
    free(s);
}

void ddp_straggler_reset(struct ddp_straggler_sums *s)
{
    const size_t n = (size_t)s->ranks;
    s->bins = s->filled = s->total = 0;
    s->per_bin = 1;
    s->stolen_unknown = false;
    memset(s->took, 0, sizeof s->took);
    memset(s->sum, 0, CHANNELS * BINS * n * sizeof *s->sum);
    memset(s->current, 0, CHANNELS * n * sizeof *s->current);
    memset(s->last, 0, CHANNELS * n * sizeof *s->last);
}

/* Returns the sums [ranks] of a channel in a bin. */
static double *bin_of(const struct ddp_straggler_sums *s, enum channel c, size_t bin)
{
    return s->sum + ((size_t)c * BINS + bin) * (size_t)s->ranks;
}

/* Returns the index of the largest value, and sets *margin to the distance of this value from the
 * second largest. */
static int last_of(const double *value, int n, double *margin)
{
    int last = 0;
    double second = -INFINITY;
    for (int r = 1; r < n; r++) {
        if (value[r] > value[last]) {
            second = value[last];
            last = r;
        } else {
            second = fmax(second, value[r]);
        }
    }
    *margin = n > 1 ? value[last] - second : 0;
    return last;
}

int ddp_straggler_add(struct ddp_straggler_sums *s, const struct ddp_straggler_times *times,
                      double *margin_ns)
{
    const int n = s->ranks;
    double first_entry = INFINITY, first_exit = INFINITY, second = -INFINITY;
    int last = 0;
    for (int r = 0; r < n; r++) {
        first_entry = fmin(first_entry, times[r].entry);
        first_exit = fmin(first_exit, times[r].exit);
        if (r > 0 && times[r].entry > times[last].entry) {
            second = times[last].entry;
            last = r;
        } else if (r > 0) {
            second = fmax(second, times[r].entry);
        }
    }
    for (int r = 0; r < n; r++) {
        s->current[ENTRY * n + r] += times[r].entry - first_entry;
        s->current[EXIT * n + r] += times[r].exit - first_exit;
        if (isnan(times[r].stolen))
            s->stolen_unknown = true;
        else
            s->current[STOLEN * n + r] += times[r].stolen;
        s->current[LOST * n + r] += times[r].lost;
        s->current[WINDOW * n + r] += times[r].window;
    }
    *margin_ns = n > 1 ? times[last].entry - second : 0;
    return last;
}

/* Merges each pair of bins, so that half of the bins are free. */
static void merge_bins(struct ddp_straggler_sums *s)
{
    for (size_t b = 0; b < BINS / 2; b++) {
        s->took[b] = s->took[2 * b] + s->took[2 * b + 1];
        for (int c = 0; c < CHANNELS; c++) {
            const double *one = bin_of(s, (enum channel)c, 2 * b);
            const double *two = bin_of(s, (enum channel)c, 2 * b + 1);
            double *out = bin_of(s, (enum channel)c, b);
            for (int r = 0; r < s->ranks; r++)
                out[r] = one[r] + two[r];
        }
    }
    s->bins = BINS / 2;
    s->per_bin *= 2;
}

/* Appends an empty bin. */
static void open_bin(struct ddp_straggler_sums *s)
{
    if (s->bins == BINS)
        merge_bins(s);
    s->took[s->bins] = 0;
    for (int c = 0; c < CHANNELS; c++)
        memset(bin_of(s, (enum channel)c, s->bins), 0, (size_t)s->ranks * sizeof *s->sum);
    s->bins++;
    s->filled = 0;
}

void ddp_straggler_next(struct ddp_straggler_sums *s, double took_ns)
{
    if (s->bins == 0 || s->filled == s->per_bin)
        open_bin(s);
    for (int c = 0; c < CHANNELS; c++) {
        double margin, *current = s->current + (size_t)c * (size_t)s->ranks;
        double *bin = bin_of(s, (enum channel)c, s->bins - 1);
        const int last = last_of(current, s->ranks, &margin);
        s->last[c * s->ranks + last] += margin > 0;
        for (int r = 0; r < s->ranks; r++) {
            bin[r] += current[r];
            current[r] = 0;
        }
    }
    s->took[s->bins - 1] += took_ns;
    s->filled++;
    s->total++;
}

/* Returns, for one lambda, the logarithm of the Chernoff bound of this probability: the sum of
 * independent margins is at least `reached`, where each margin counts with probability 1/ranks. */
static double log_bound(const double *margin, size_t n, int ranks, double reached, double lambda)
{
    const double q = 1.0 / ranks;
    double sum = -lambda * reached;
    for (size_t b = 0; b < n; b++) /* log((1 - q) + q exp(x)), without overflow for a large x */
        sum += lambda * margin[b] + log(q + (1 - q) * exp(-lambda * margin[b]));
    return sum;
}

/* Returns the least bound over all lambda. log_bound is convex, so a golden-section search finds
 * the minimum. The largest margin determines the range of lambda. */
static double p_value(const double *margin, size_t n, int ranks, double reached)
{
    const double golden = 0.6180339887498949;
    double largest = 0, lower = 0;
    for (size_t b = 0; b < n; b++)
        largest = fmax(largest, margin[b]);
    if (!(largest > 0))
        return 1;
    double upper = 1e3 / largest;
    for (int i = 0; i < 60; i++) {
        const double left = upper - golden * (upper - lower);
        const double right = lower + golden * (upper - lower);
        if (log_bound(margin, n, ranks, reached, left) <
            log_bound(margin, n, ranks, reached, right))
            upper = right;
        else
            lower = left;
    }
    return fmin(1, exp(log_bound(margin, n, ranks, reached, (lower + upper) / 2)));
}

/* The margins of a channel in groups of bins. owner[i] was last in group i, by margin[i] per
 * iteration. took[i] is the mean time of an iteration. */
struct margins {
    size_t n;
    double margin[BINS], took[BINS];
    int owner[BINS];
};

/* Returns the number of iterations in a bin. */
static double count_of(const struct ddp_straggler_sums *s, size_t bin)
{
    return (double)(bin + 1 < s->bins ? s->per_bin : s->filled);
}

/* Sets *last to the rank that is last in bins [first, end). Returns the margin of this rank per
 * iteration. */
static double group_margin(const struct ddp_straggler_sums *s, enum channel c, size_t first,
                           size_t end, int *last)
{
    double best = -INFINITY, second = -INFINITY, count = 0;
    for (size_t b = first; b < end; b++)
        count += count_of(s, b);
    *last = 0;
    for (int r = 0; r < s->ranks; r++) {
        double sum = 0;
        for (size_t b = first; b < end; b++)
            sum += bin_of(s, c, b)[r];
        second = fmax(second, fmin(best, sum));
        if (sum > best)
            *last = r;
        best = fmax(best, sum);
    }
    return (best - second) / count;
}

/* Sets the margins of groups of bins. The margin of a large group depends less on chance. Small
 * groups have the advantage that a smaller fraction of them contains an outlier. With many ranks,
 * few groups are enough to name one rank. */
static void margins_of(const struct ddp_straggler_sums *s, enum channel c, enum variant v,
                       struct margins *out)
{
    const size_t most = v != STEADY_COARSE ? BINS : s->ranks < 4 ? BINS / 4 : BINS / 8;
    const size_t each = (s->bins + most - 1) / most;
    out->n = 0;
    for (size_t b = 0; b < s->bins; b += each) {
        const size_t end = DDP_MIN(b + each, s->bins), i = out->n++;
        double took = 0, count = 0;
        for (size_t k = b; k < end; k++) {
            took += s->took[k];
            count += count_of(s, k);
        }
        out->margin[i] = group_margin(s, c, b, end, &out->owner[i]);
        out->took[i] = took / count;
    }
}

/* Limits the margins to twice their third quartile, and sets all times to their median, so that
 * outliers count little. The variant RARE instead keeps only the part of the margins above this
 * limit, and does not change the times. */
static void keep_part(struct margins *m, enum variant v)
{
    double sorted[BINS];
    memcpy(sorted, m->margin, m->n * sizeof *sorted);
    ddp_sort_doubles(sorted, m->n);
    const double most = 2 * sorted[(3 * m->n + 3) / 4 - 1];
    memcpy(sorted, m->took, m->n * sizeof *sorted);
    const double median = ddp_median(sorted, m->n);
    for (size_t b = 0; b < m->n; b++) {
        m->margin[b] = v == RARE ? fmax(m->margin[b] - most, 0) : fmin(m->margin[b], most);
        m->took[b] = v == RARE ? m->took[b] : median;
    }
}

/* The result of the test of a channel. rank -1: no rank passes. */
struct found {
    int rank;
    double cost; /* effect as a fraction of the time of the iterations */
    enum variant variant;
};

/* Tests the rank whose margins exceed the margins of all other ranks together. There is at most one
 * such rank. */
static struct found test_margins(const struct ddp_straggler_sums *s, const struct margins *m,
                                 double floor_ns)
{
    struct found out = {.rank = -1};
    double all = 0, took = 0;
    for (size_t b = 0; b < m->n; b++) {
        all += m->margin[b];
        took += m->took[b];
    }
    for (int r = 0; r < s->ranks; r++) {
        double own = 0;
        for (size_t b = 0; b < m->n; b++)
            own += m->owner[b] == r ? m->margin[b] : 0;
        const double excess = own - (all - own);
        if (!(excess >= DDP_STRAGGLER_EFFECT * took) || !(excess > floor_ns * (double)m->n))
            continue;
        const double p = p_value(m->margin, m->n, s->ranks, own);
        if (p * s->ranks * TESTED * VARIANTS <= DDP_STRAGGLER_LEVEL)
            out = (struct found){.rank = r, .cost = excess / took};
    }
    return out;
}

/* Returns the result of the variant that finds the largest cost. */
static struct found test_channel(const struct ddp_straggler_sums *s, enum channel c,
                                 double floor_ns)
{
    struct found best = {.rank = -1};
    for (int v = 0; v < VARIANTS; v++) {
        struct margins m;
        margins_of(s, c, (enum variant)v, &m);
        keep_part(&m, (enum variant)v);
        struct found found = test_margins(s, &m, floor_ns);
        found.variant = (enum variant)v;
        if (found.rank >= 0 && (best.rank < 0 || found.cost > best.cost))
            best = found;
    }
    return best;
}

/* Returns a rank's mean value per iteration in the i-th of `of` groups of bins. */
static double mean_of(const struct ddp_straggler_sums *s, enum channel c, int rank, size_t i,
                      size_t of)
{
    const size_t each = (s->bins + of - 1) / of;
    double sum = 0, count = 0;
    for (size_t b = i * each; b < DDP_MIN((i + 1) * each, s->bins); b++) {
        sum += bin_of(s, c, b)[rank];
        count += count_of(s, b);
    }
    return sum / count;
}

/* Returns by how much a rank would have been earlier if the stolen fraction of its time had been
 * the same as that of the other ranks. i and `of` are as for mean_of. On a busy machine, all ranks
 * lose time. A rank that computes longer loses more time, but not a larger fraction. */
static double earlier_by(const struct ddp_straggler_sums *s, int rank, size_t i, size_t of)
{
    double stolen = 0, window = 0;
    for (int r = 0; r < s->ranks; r++)
        if (r != rank) {
            stolen += mean_of(s, STOLEN, r, i, of);
            window += mean_of(s, WINDOW, r, i, of);
        }
    const double own = mean_of(s, WINDOW, rank, i, of);
    const double used = own - mean_of(s, STOLEN, rank, i, of);
    const double usual = window > 0 ? fmin(stolen / window, 0.99) : 0;
    return fmax(own - used / (1 - usual), 0);
}

/* Returns the fraction of the late entries that the stolen time of the rank explains. After a
 * barrier there is no computation, so all of the time that the rank lost counts. */
static double stolen_part(const struct ddp_straggler_sums *s, const struct found *late,
                          bool after_barrier)
{
    struct margins entered;
    double explained = 0, all = 0;
    margins_of(s, ENTRY, late->variant, &entered);
    struct margins part = entered;
    keep_part(&part, late->variant);
    for (size_t b = 0; b < part.n; b++) {
        if (part.owner[b] != late->rank || !(part.margin[b] > 0))
            continue;
        const double lost = after_barrier ? mean_of(s, LOST, late->rank, b, part.n)
                                          : earlier_by(s, late->rank, b, part.n);
        all += part.margin[b];
        explained += part.margin[b] * fmin(lost / entered.margin[b], 1);
    }
    return explained / all;
}

/* Returns whether late entries have a cause, and sets *cause. Stolen time is common after a
 * barrier, and if ranks share cores. In these two cases, the cause is `core` only if the test of
 * the stolen time (`stolen`) names the same rank. If the stolen time is unknown, the cause is
 * `compute`, but there is no cause if ranks share cores. */
static bool cause_of(const struct ddp_straggler_sums *s, const struct ddp_straggler_setup *setup,
                     const struct found *late, const struct found *stolen,
                     enum ddp_straggler_cause *cause)
{
    const double part = s->stolen_unknown ? 0 : stolen_part(s, late, setup->after_barrier);
    const bool usual = setup->oversubscribed || setup->after_barrier;
    *cause = part > 0.5 ? DDP_STRAGGLER_CORE : DDP_STRAGGLER_COMPUTE;
    if (part >= STOLEN_MOST)
        return !usual || stolen->rank == late->rank;
    return part <= STOLEN_LEAST && (!setup->oversubscribed || !s->stolen_unknown);
}

/* Returns the median over the bins of the time between the first exit and the exit of a rank. */
static double median_exit(const struct ddp_straggler_sums *s, int rank)
{
    double exit[BINS];
    for (size_t b = 0; b < s->bins; b++)
        exit[b] = bin_of(s, EXIT, b)[rank] / count_of(s, b);
    return ddp_median(exit, s->bins);
}

/* Returns whether a rank leaves later than the others by more than twice the spread of the
 * others. */
static bool stands_apart(const struct ddp_straggler_sums *s, int rank)
{
    double least = INFINITY, most = -INFINITY;
    for (int r = 0; r < s->ranks; r++)
        if (r != rank) {
            least = fmin(least, median_exit(s, r));
            most = fmax(most, median_exit(s, r));
        }
    return median_exit(s, rank) - most > 2 * (most - least);
}

/* Returns by how much the value of a rank exceeds all others in a bin, per iteration. The result is
 * negative if another rank is last. */
static double ahead_of_others(const struct ddp_straggler_sums *s, enum channel c, size_t bin,
                              int rank)
{
    const double *sum = bin_of(s, c, bin);
    double other = -INFINITY;
    for (int r = 0; r < s->ranks; r++)
        if (r != rank)
            other = fmax(other, sum[r]);
    return (sum[rank] - other) / count_of(s, bin);
}

/* Sets out->late_ns to the interval of the median margin, from the means of the bins. */
static void fill_interval(const struct ddp_straggler_sums *s, enum channel c,
                          struct ddp_straggler *out)
{
    double margin[BINS];
    size_t lo, hi;
    for (size_t b = 0; b < s->bins; b++)
        margin[b] = ahead_of_others(s, c, b, out->rank);
    ddp_sort_doubles(margin, s->bins);
    if (ddp_median_interval(s->bins, 0.95, &lo, &hi) != 0)
        return;
    out->late_ns[0] = fmax(margin[lo - 1], 0);
    out->late_ns[1] = fmax(margin[hi - 1], 0);
}

static void name(const struct ddp_straggler_sums *s, enum channel c, const struct found *found,
                 enum ddp_straggler_cause cause, struct ddp_straggler *out)
{
    out->rank = found->rank;
    out->cause = cause;
    out->cost = fmin(found->cost, 1);
    out->share = (double)s->last[c * s->ranks + found->rank] / (double)s->total;
    fill_interval(s, c, out);
}

/* Finds a rank that its control group stopped for longer than any other rank. */
static struct found test_throttled(const struct ddp_straggler_sums *s,
                                   const struct ddp_straggler_setup *setup)
{
    struct found out = {.rank = -1};
    double margin;
    for (int r = 0; r < s->ranks; r++)
        if (setup->throttled_ns == NULL || isnan(setup->throttled_ns[r]))
            return out;
    const int last = last_of(setup->throttled_ns, s->ranks, &margin);
    if (setup->passed_ns > 0 && margin >= DDP_STRAGGLER_EFFECT * setup->passed_ns)
        out = (struct found){.rank = last, .cost = margin / setup->passed_ns};
    return out;
}

void ddp_straggler_judge(const struct ddp_straggler_sums *s,
                         const struct ddp_straggler_setup *setup, struct ddp_straggler *out)
{
    *out = (struct ddp_straggler){
        .rank = -1, .bucket = -1, .share = NAN, .cost = NAN, .late_ns = {NAN, NAN}};
    if (s->ranks < 2 || s->bins < 2)
        return;
    const struct found throttled = test_throttled(s, setup);
    if (throttled.rank >= 0) {
        name(s, ENTRY, &throttled, DDP_STRAGGLER_CORE, out);
        out->late_ns[0] = out->late_ns[1] = NAN; /* the stops are too rare for a median */
        return;
    }
    const struct found late = test_channel(s, ENTRY, setup->floor_ns);
    struct found stolen = {.rank = -1};
    if (!s->stolen_unknown)
        stolen = test_channel(s, STOLEN, setup->floor_ns);
    enum ddp_straggler_cause cause;
    const bool has_cause = late.rank >= 0 && cause_of(s, setup, &late, &stolen, &cause);
    if (has_cause && (stolen.rank < 0 || stolen.rank == late.rank || late.cost >= stolen.cost)) {
        name(s, ENTRY, &late, cause, out);
        return;
    }
    if (stolen.rank >= 0) {
        name(s, STOLEN, &stolen, DDP_STRAGGLER_CORE, out);
        return;
    }
    if (late.rank >= 0 || !setup->same_role || s->ranks < 3 || setup->oversubscribed)
        return;
    const struct found left = test_channel(s, EXIT, setup->floor_ns);
    if (left.rank >= 0 && stands_apart(s, left.rank))
        name(s, EXIT, &left, DDP_STRAGGLER_LINK, out);
}
