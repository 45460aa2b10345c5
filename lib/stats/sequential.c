#include "stats/sequential.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Number of points of the grid on which the density of the sum is known. */
#define GRID 801
/* The grid begins this many standard deviations below 0. */
#define DEPTH 8.0
/* Number of halvings in a bisection. */
#define HALVINGS 60

/* The density of the sum of all values seen up to look k, restricted to the cases in which no look
 * up to look k rejects. Look k rejects if the sum exceeds a bound. The grid runs from `low` to
 * `high`, which is this bound. */
struct density {
    double *at; /* [GRID] */
    double low, high;
};

/* Returns the probability that a standard normal value exceeds z. */
static double upper_tail(double z)
{
    return erfc(z / sqrt(2)) / 2;
}

static double normal_density(double z)
{
    return exp(-z * z / 2) / sqrt(2 * acos(-1.0));
}

static double step_of(const struct density *d)
{
    return (d->high - d->low) / (GRID - 1);
}

/* Returns the weight of grid point i in Simpson's rule, without the factor step / 3. */
static double weight(int i)
{
    return i == 0 || i == GRID - 1 ? 1 : i % 2 ? 4 : 2;
}

/* Returns the probability that the sum exceeds `bound` after `more` further values. */
static double exceeds(const struct density *d, double bound, int more)
{
    double sum = 0;
    for (int i = 0; i < GRID; i++)
        sum += weight(i) * d->at[i] *
               upper_tail((bound - (d->low + i * step_of(d))) / sqrt((double)more));
    return sum * step_of(d) / 3;
}

/* Finds the bound that the sum exceeds with probability p after `more` further values. The bound
 * must lie between -limit and limit. */
static double bound_of(const struct density *d, double p, int more, double limit)
{
    double low = -limit, high = limit;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        if (exceeds(d, middle, more) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Computes the density after `more` further values, up to the new bound. */
static void advance(const struct density *from, int more, double low, double bound,
                    struct density *to)
{
    to->low = low;
    to->high = bound;
    for (int j = 0; j < GRID; j++) {
        const double s = to->low + j * step_of(to);
        double sum = 0;
        for (int i = 0; i < GRID; i++)
            sum += weight(i) * from->at[i] *
                   normal_density((s - (from->low + i * step_of(from))) / sqrt((double)more));
        to->at[j] = sum * step_of(from) / 3 / sqrt((double)more);
    }
}

/* Fills the density at the first look, up to its bound. */
static void begin(int n, double bound, struct density *d)
{
    d->low = -DEPTH * sqrt((double)n);
    d->high = bound;
    for (int i = 0; i < GRID; i++)
        d->at[i] = normal_density((d->low + i * step_of(d)) / sqrt((double)n)) / sqrt((double)n);
}

static double spent(double alpha, int n, int all)
{
    return alpha * log1p((exp(1.0) - 1) * n / all);
}

/* Finds z with upper_tail(z) = p. */
static double quantile(double p)
{
    double low = -40, high = 40;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        if (upper_tail(middle) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

int ddp_sequential_levels(const int *n, size_t looks, double alpha, double *level)
{
    assert(looks >= 1 && looks <= DDP_SEQUENTIAL_MAX);
    const int all = n[looks - 1];
    double *memory = malloc(2 * GRID * sizeof *memory);
    if (!memory)
        return -1;
    struct density now = {.at = memory}, next = {.at = memory + GRID};
    level[0] = spent(alpha, n[0], all);
    begin(n[0], quantile(level[0]) * sqrt((double)n[0]), &now);
    for (size_t k = 1; k < looks; k++) {
        const int more = n[k] - n[k - 1];
        const double p = spent(alpha, n[k], all) - spent(alpha, n[k - 1], all);
        const double bound = bound_of(&now, p, more, DEPTH * sqrt((double)n[k]));
        level[k] = upper_tail(bound / sqrt((double)n[k]));
        advance(&now, more, -DEPTH * sqrt((double)n[k]), bound, &next);
        const struct density swap = now;
        now = next;
        next = swap;
    }
    free(memory);
    return 0;
}
