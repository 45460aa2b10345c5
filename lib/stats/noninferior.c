#include "stats/noninferior.h"

#include <math.h>
#include <stdbool.h>

#define PI 3.14159265358979323846

const char *const ddp_noninferior_names[] = {"not-worse", "worse", "uncertain"};

/* Returns the probability that |t| <= sqrt(df) * tan(theta) (Abramowitz & Stegun 26.7.3 and
 * 26.7.4). */
static double central(double theta, size_t df)
{
    const double cosine = cos(theta), sine = sin(theta);
    const bool odd = df % 2 == 1;
    double term = odd ? cosine : 1, sum = 0;
    for (size_t k = odd; k + 2 <= df; k += 2) {
        sum += term;
        term *= cosine * cosine * (double)(k + 1) / (double)(k + 2);
    }
    return odd ? 2 / PI * (theta + sine * sum) : sine * sum;
}

double ddp_student_t(double p, size_t df)
{
    const double wanted = fabs(2 * p - 1);
    double low = 0, high = PI / 2;
    for (int i = 0; i < 60; i++) { /* the last interval is about as narrow as the rounding error */
        const double middle = (low + high) / 2;
        if (central(middle, df) < wanted)
            low = middle;
        else
            high = middle;
    }
    return copysign(sqrt((double)df) * tan((low + high) / 2), p - 0.5);
}

static double half_width(double level, size_t n, double deviation)
{
    return ddp_student_t(1 - level, n - 1) * deviation / sqrt((double)n);
}

/* Returns the smallest number of seeds above t->seeds with which the test would decide if the mean
 * and the deviation did not change. Returns 0 if this number exceeds DDP_NONINFERIOR_SEEDS_MAX. */
static size_t count_needed(const struct ddp_noninferior *t, const struct ddp_noninferior_rule *rule)
{
    const double level = t->mean > -rule->margin ? rule->pass_level : rule->fail_level;
    const double distance = fabs(t->mean + rule->margin);
    size_t low = t->seeds, high = DDP_NONINFERIOR_SEEDS_MAX; /* low: too few; high: enough */
    if (low >= high || !(half_width(level, high, t->deviation) < distance))
        return 0;
    while (high - low > 1) { /* the width decreases with the number of seeds */
        const size_t middle = (low + high) / 2;
        if (half_width(level, middle, t->deviation) < distance)
            high = middle;
        else
            low = middle;
    }
    return high;
}

void ddp_noninferior_decide(const double *d, size_t n, const struct ddp_noninferior_rule *rule,
                            struct ddp_noninferior *out)
{
    double sum = 0, squares = 0;
    *out = (struct ddp_noninferior){.seeds = n,
                                    .mean = NAN,
                                    .deviation = NAN,
                                    .lower = NAN,
                                    .upper = NAN,
                                    .state = DDP_ACCURACY_UNCERTAIN,
                                    .seeds_needed = 2};
    for (size_t i = 0; i < n; i++)
        sum += d[i];
    if (n > 0)
        out->mean = sum / (double)n;
    if (n < 2)
        return;
    for (size_t i = 0; i < n; i++)
        squares += (d[i] - out->mean) * (d[i] - out->mean);
    out->deviation = fmax(sqrt(squares / (double)(n - 1)), rule->least_deviation);
    out->lower = out->mean - half_width(rule->pass_level, n, out->deviation);
    out->upper = out->mean + half_width(rule->fail_level, n, out->deviation);
    if (out->lower > -rule->margin)
        out->state = DDP_NOT_WORSE;
    else if (out->upper < -rule->margin)
        out->state = DDP_WORSE;
    out->seeds_needed = out->state == DDP_ACCURACY_UNCERTAIN ? count_needed(out, rule) : 0;
}
