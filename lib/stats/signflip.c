#include "stats/signflip.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stats/summary.h"

/* Fills score [n] with |d[i] - centre|, limited to `clip` (signflip.h). Returns the observed
 * statistic, which is the sum of the scores of all d[i] above centre. */
static double scores(const double *d, size_t n, double centre, double *score)
{
    double sorted[DDP_SIGNFLIP_MAX] = {0}, observed = 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(d[i] - centre);
    ddp_sort_doubles(sorted, n);
    double clip = 2 * sorted[(3 * n + 3) / 4 - 1];
    for (size_t i = 0; i < n; i++) {
        score[i] = fmin(fabs(d[i] - centre), clip);
        if (d[i] > centre)
            observed += score[i];
    }
    return observed;
}

/* Computes the sums of all subsets of score [n] in ascending order. For each score, the function
 * merges the list of sums with a copy of the list to which the score is added. `sums` and `other`
 * have room for 2^n + 1 values each. Returns `sums` or `other`, whichever holds the result. */
static double *subset_sums(const double *score, size_t n, double *sums, double *other)
{
    sums[0] = 0;
    for (size_t i = 0, count = 1; i < n; i++, count *= 2) {
        const double *plain = sums, *shifted = sums, *end = sums + count;
        sums[count] = INFINITY; /* is read when the plain list has ended */
        /* The order of the sums cannot be predicted, so the loop has no branch that depends on this
         * order. */
        for (size_t at = 0; at < 2 * count; at++) {
            const double next = *shifted + score[i];
            const bool take = (plain < end) & (*plain <= next);
            other[at] = take ? *plain : next;
            plain += take;
            shifted += !take;
        }
        double *swap = sums;
        sums = other;
        other = swap;
    }
    return sums;
}

/* Returns the p value for `centre`. This is the fraction of all sign patterns of the differences
 * d[i] - centre whose statistic is at least the observed statistic. `memory` is scratch space for
 * 4 * (2^ceil(n/2) + 1) values. */
static double tail(const double *d, size_t n, double centre, double *memory)
{
    double score[DDP_SIGNFLIP_MAX], total = 0;
    double observed = scores(d, n, centre, score);
    for (size_t i = 0; i < n; i++)
        total += score[i];
    /* Allow for rounding errors, because the sums below are added in another order. */
    observed -= 1e-12 * total;
    size_t left = n / 2, right = n - left, room = (size_t)1 << right;
    double *low = subset_sums(score, left, memory, memory + room + 1);
    double *high = subset_sums(score + left, right, memory + 2 * room + 2, memory + 3 * room + 3);
    /* As low[i] grows, smaller elements of high[] are enough to reach `observed`. */
    double count = 0;
    size_t from = room;
    for (size_t i = 0; i < (size_t)1 << left; i++) {
        while (from > 0 && low[i] + high[from - 1] >= observed)
            from--;
        count += (double)(room - from);
    }
    return ldexp(count, -(int)n);
}

static double *tail_memory(size_t n)
{
    assert(n <= DDP_SIGNFLIP_MAX);
    return malloc(4 * sizeof(double) * (((size_t)1 << (n - n / 2)) + 1));
}

int ddp_signflip_p(const double *d, size_t n, double *p)
{
    if (n == 0) {
        *p = 1;
        return 0;
    }
    double *memory = tail_memory(n);
    if (!memory)
        return -1;
    *p = tail(d, n, 0, memory);
    free(memory);
    return 0;
}

double ddp_signflip_least_p(size_t n)
{
    return ldexp(1, -(int)n);
}

size_t ddp_signflip_least_pairs(size_t cells, double level)
{
    size_t n = 0;
    while (ddp_signflip_least_p(n) * (double)cells > level)
        n++;
    return n;
}

/* Finds by bisection the centre at which the test of d [n] changes from rejecting to not rejecting.
 * The test rejects the centre `out` and does not reject the centre `in`. */
static double border(const double *d, size_t n, double alpha, double out, double in, double *memory)
{
    for (int i = 0; i < 34; i++) { /* 34 halvings shorten the interval by a factor of 10^10 */
        double middle = out / 2 + in / 2;
        if (tail(d, n, middle, memory) <= alpha)
            out = middle;
        else
            in = middle;
    }
    return out;
}

static void walsh_averages(const double *d, size_t n, double *walsh, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            walsh[(*count)++] = d[i] / 2 + d[j] / 2;
    ddp_sort_doubles(walsh, *count);
}

int ddp_hodges_lehmann(const double *d, size_t n, double alpha, double *centre, double *lower,
                       double *upper)
{
    double walsh[DDP_SIGNFLIP_MAX * (DDP_SIGNFLIP_MAX + 1) / 2], mirrored[DDP_SIGNFLIP_MAX];
    size_t count;
    double *memory = tail_memory(n);
    if (!memory)
        return -1;
    walsh_averages(d, n, walsh, &count);
    double smallest = walsh[0], largest = walsh[count - 1];
    *centre = ddp_sorted_median(walsh, count);
    *lower = -INFINITY;
    *upper = INFINITY;
    if (ddp_signflip_least_p(n) <= alpha) {
        double span = largest - smallest;
        for (size_t i = 0; i < n; i++)
            mirrored[i] = -d[i];
        *lower = border(d, n, alpha, smallest - span, largest, memory);
        *upper = -border(mirrored, n, alpha, -largest - span, -smallest, memory);
    }
    free(memory);
    return 0;
}

struct ranked_p {
    double p;
    size_t index;
};

static int compare_p(const void *a, const void *b)
{
    double x = ((const struct ranked_p *)a)->p, y = ((const struct ranked_p *)b)->p;
    return (x > y) - (x < y);
}

int ddp_holm(const double *p, size_t n, double *adjusted)
{
    struct ranked_p *order = malloc((n + 1) * sizeof *order);
    if (!order)
        return -1;
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked_p){p[i], i};
    qsort(order, n, sizeof *order, compare_p);
    double most = 0; /* a larger p value never gets a smaller adjusted value */
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fmin(1, order[i].p * (double)(n - i)));
        adjusted[order[i].index] = most;
    }
    free(order);
    return 0;
}
