#include "stats/summary.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ddp_summary_ci95_fraction(const struct ddp_summary *s)
{
    return fmax(s->ci95_hi - s->median, s->median - s->ci95_lo) / s->median;
}

/* Radix sort. A *key* is the bits of a double, changed so that keys have the order of the values. A
 * pass sorts by one byte of the keys and keeps the order of equal bytes. Passes go from the lowest
 * byte to the highest. A pass is skipped if all keys have the same byte. */
#define RADIX       256
#define RADIX_LEAST 256 /* qsort is as fast for fewer values */
enum { PASSES = sizeof(uint64_t) };

static uint64_t key_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits ^ (bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63);
}

static double value_of(uint64_t key)
{
    const uint64_t bits = key ^ (key >> 63 ? (uint64_t)1 << 63 : UINT64_MAX);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Counts the values of each byte of the keys of v [n]. Writes the keys to key [n]. */
static void count_bytes(const double *v, size_t n, uint64_t *key, size_t count[PASSES][RADIX])
{
    memset(count, 0, sizeof(size_t[PASSES][RADIX]));
    for (size_t i = 0; i < n; i++) {
        key[i] = key_of(v[i]);
        for (int pass = 0; pass < PASSES; pass++)
            count[pass][key[i] >> 8 * pass & (RADIX - 1)]++;
    }
}

/* The arrays of a radix sort. `index` may be NULL. */
struct keys {
    uint64_t *key; /* [n] */
    size_t *index; /* [n] */
};

/* Moves the keys and the indices to `to` in the order of one byte. count [RADIX]: how often each
 * value of the byte occurs; is overwritten. */
static void move_by_byte(const struct keys *from, const struct keys *to, size_t n, int pass,
                         size_t *count)
{
    size_t before = 0;
    for (size_t byte = 0; byte < RADIX; byte++) {
        const size_t own = count[byte];
        count[byte] = before;
        before += own;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t at = count[from->key[i] >> 8 * pass & (RADIX - 1)]++;
        to->key[at] = from->key[i];
        if (from->index != NULL)
            to->index[at] = from->index[i];
    }
}

int ddp_sort_indexed(double *v, size_t *index, size_t n)
{
    static const size_t item = sizeof(uint64_t) + sizeof(size_t);
    if (n == 0)
        return 0;
    if (n > SIZE_MAX / 2 / item)
        return -1;
    const size_t words = index != NULL ? 4 * n : 2 * n;
    uint64_t *memory = malloc(words * sizeof *memory);
    size_t count[PASSES][RADIX];
    if (memory == NULL)
        return -1;
    struct keys now = {.key = memory}, next = {.key = memory + n};
    if (index != NULL) {
        now.index = (size_t *)(memory + 2 * n);
        next.index = (size_t *)(memory + 3 * n);
        for (size_t i = 0; i < n; i++)
            now.index[i] = i;
    }
    count_bytes(v, n, now.key, count);
    for (int pass = 0; pass < PASSES; pass++) {
        if (count[pass][now.key[0] >> 8 * pass & (RADIX - 1)] == n)
            continue;
        move_by_byte(&now, &next, n, pass, count[pass]);
        const struct keys before = now;
        now = next;
        next = before;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = value_of(now.key[i]);
    if (index != NULL)
        memcpy(index, now.index, n * sizeof *index);
    free(memory);
    return 0;
}

void ddp_sort_doubles(double *v, size_t n)
{
    if (n < RADIX_LEAST || ddp_sort_indexed(v, NULL, n) != 0)
        qsort(v, n, sizeof *v, compare_doubles);
}

double ddp_sorted_median(const double *v, size_t n)
{
    if (n == 0)
        return NAN;
    return n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2;
}

double ddp_median(double *v, size_t n)
{
    ddp_sort_doubles(v, n);
    return ddp_sorted_median(v, n);
}

int ddp_median_of(const double *v, size_t n, double *median)
{
    double *copy = n <= SIZE_MAX / sizeof *copy ? malloc(n * sizeof *copy) : NULL;
    if (copy == NULL && n > 0)
        return -1;
    if (n > 0)
        memcpy(copy, v, n * sizeof *copy);
    *median = ddp_median(copy, n);
    free(copy);
    return 0;
}

double ddp_lower_median(double *v, size_t n)
{
    ddp_sort_doubles(v, n);
    return v[(n - 1) / 2];
}

/* Returns the percentile by nearest rank, the ceil(percent * n / 100)-th smallest value. The
 * integer division makes the ceiling exact. */
static double percentile(const double *sorted, size_t n, size_t percent)
{
    size_t rank = (size_t)(((unsigned __int128)n * percent + 99) / 100);
    return sorted[rank > 0 ? rank - 1 : 0];
}

/* Returns the log of P(B = k) for B ~ Binomial(n, 1/2). Uses lgamma because 2^-n underflows for n
 * >= 1075. */
static double log_probability(size_t n, size_t k)
{
    int sign; /* lgamma_r() is used because lgamma() writes a global variable */
    return lgamma_r((double)n + 1, &sign) - lgamma_r((double)k + 1, &sign) -
           lgamma_r((double)(n - k) + 1, &sign) - (double)n * log(2);
}

/* Let hi = n + 1 - lo. X_(k) is the k-th smallest sample. The interval from X_(lo) to X_(hi) misses
 * the median if fewer than lo of the n samples lie on one side of the median. Each sample lies on a
 * given side with probability 1/2. Samples that equal the median only raise the coverage. Therefore
 *     coverage = 1 - 2 * P(B <= lo - 1),  B ~ Binomial(n, 1/2).
 * The largest lo whose coverage is at least `level` gives the narrowest interval. The loop adds the
 * terms of P from the smallest term up. */
int ddp_median_interval(size_t n, double level, size_t *lo, size_t *hi)
{
    assert(level > 0 && level < 1);
    /* The factor 1 + 1e-9 absorbs the rounding of lgamma if the coverage equals the level
     * exactly. */
    double tail_max = (1 - level) / 2 * (1 + 1e-9), tail = 0;
    /* The terms more than 12 standard deviations (sqrt(n)/2 each) below the mean add up to less
     * than 1e-32 and are skipped. */
    double start = (double)n / 2 - 6 * sqrt((double)n);
    size_t best = 0;
    /* k is lo - 1. The loop ends before lo = k + 1 exceeds hi = n - k. */
    for (size_t k = start > 0 ? (size_t)start : 0; k < (n + 1) / 2; k++) {
        tail += exp(log_probability(n, k));
        if (tail > tail_max)
            break;
        best = k + 1;
    }
    if (best == 0)
        return -1;
    *lo = best;
    *hi = n + 1 - best;
    return 0;
}

static const struct ddp_summary unknown = {0,   NAN, NAN, NAN, NAN, NAN,
                                           NAN, NAN, NAN, NAN, NAN, NAN};

int ddp_summarize(const double *sample, size_t n, struct ddp_summary *out)
{
    if (n == 0) {
        *out = unknown;
        return 0;
    }
    if (n > SIZE_MAX / sizeof *sample)
        return -1;
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return -1;
    memcpy(sorted, sample, n * sizeof *sorted);
    ddp_sort_doubles(sorted, n);

    struct ddp_summary s = unknown;
    s.n = n;
    s.min = sorted[0];
    s.max = sorted[n - 1];
    s.median = ddp_sorted_median(sorted, n);
    size_t lo, hi;
    if (ddp_median_interval(n, 0.95, &lo, &hi) == 0) {
        s.ci95_lo = sorted[lo - 1];
        s.ci95_hi = sorted[hi - 1];
    }
    /* Compute the variance in two passes, because times are large numbers that differ little. */
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    s.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (sorted[i] - s.mean) * (sorted[i] - s.mean);
    if (n >= 2)
        s.stddev = sqrt(squares / (double)(n - 1));
    s.p25 = percentile(sorted, n, 25);
    s.p75 = percentile(sorted, n, 75);
    if (n >= 20)
        s.p95 = percentile(sorted, n, 95);
    if (n >= 100)
        s.p99 = percentile(sorted, n, 99);
    free(sorted);
    *out = s;
    return 0;
}
