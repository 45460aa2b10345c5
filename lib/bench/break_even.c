/* Computes the predicted, the estimated and the measured break-even density. */
#include "bench/break_even.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"

static double sent_bytes(const struct ddp_sparse_alg *alg, int ranks, size_t n, size_t k)
{
    struct ddp_coll_cost cost = {0};
    bool exact;
    alg->cost(ranks, n, k, &cost, &exact);
    return cost.sent_bytes;
}

double ddp_break_even_predicted(const struct ddp_sparse_alg *alg, int ranks, size_t n,
                                double dense_bytes)
{
    /* Bisection. If a list has `fits` entries, a rank sends at most dense_bytes. If it has
     * `too_many` entries, a rank sends more. The start values 0 and n + 1 are not evaluated. */
    size_t fits = 0, too_many = n + 1;
    if (n == 0 || ranks < 2)
        return NAN;
    while (too_many - fits > 1) {
        size_t middle = fits + (too_many - fits) / 2;
        if (sent_bytes(alg, ranks, n, middle) <= dense_bytes)
            fits = middle;
        else
            too_many = middle;
    }
    return (double)fits / (double)n;
}

double ddp_break_even_estimated(const double *phase_ns, double density, double dense_ns)
{
    double proportional = phase_ns[1] + phase_ns[2], left = dense_ns - phase_ns[0];
    if (isnan(proportional) || isnan(left) || !(density > 0))
        return NAN;
    if (left <= 0)
        return 0;
    return proportional > 0 ? fmin(density * left / proportional, 1) : 1;
}

void ddp_density_times_add(struct ddp_density_times *t, double density, double ns)
{
    int i = t->n;
    assert(t->n < (int)DDP_COUNT_OF(t->density));
    for (; i > 0 && t->density[i - 1] > density; i--) {
        t->density[i] = t->density[i - 1];
        t->ns[i] = t->ns[i - 1];
    }
    t->density[i] = density;
    t->ns[i] = ns;
    t->n++;
}

double ddp_break_even_measured(const struct ddp_density_times *t, double dense_ns, double *low,
                               double *high)
{
    int i = 0;
    *low = *high = 0;
    if (t->n == 0 || isnan(dense_ns))
        return NAN;
    while (i < t->n && t->ns[i] < dense_ns)
        i++;
    if (i == 0)
        return 0;
    if (i == t->n)
        return 1;
    *low = t->density[i - 1];
    *high = t->density[i];
    double share = log(dense_ns / t->ns[i - 1]) / log(t->ns[i] / t->ns[i - 1]);
    return *low * pow(*high / *low, share);
}
