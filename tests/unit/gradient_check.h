/* For tests: gradients in f32 against central finite differences in double. */
#ifndef DDP_TEST_GRADIENT_CHECK_H
#define DDP_TEST_GRADIENT_CHECK_H

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

#define MOST_DIFFERENCES 200
#define STEP             1e-6
#define TOLERANCE        1e-4

/* An array in both precisions, f holding exactly what d holds. */
struct both {
    int n;
    float *f;
    double *d;
};

static inline struct both random_both(struct ddp_rng *rng, int n, double scale)
{
    struct both b = {n, malloc(sizeof(float) * (size_t)n), malloc(sizeof(double) * (size_t)n)};
    for (int i = 0; i < n; i++) {
        b.f[i] = (float)(scale * ddp_rng_normal(rng));
        b.d[i] = (double)b.f[i];
    }
    return b;
}

static inline void release(struct both *b)
{
    free(b->f);
    free(b->d);
}

/* Compares got [n] with the finite differences of loss(arg) along at->d, for every `every`-th
 * element, but for about MOST_DIFFERENCES elements of a large array. */
static inline void compare(const char *what, const float *got, struct both *at, int every,
                           double (*loss)(void *arg), void *arg)
{
    double worst = 0, largest = 0;
    /* An odd step visits all columns of an array whose width is a power of two. */
    const int step = at->n / MOST_DIFFERENCES > every ? at->n / MOST_DIFFERENCES | 1 : every;
    for (int i = 0; i < at->n; i += step) {
        double x = at->d[i];
        at->d[i] = x + STEP;
        double up = loss(arg);
        at->d[i] = x - STEP;
        double down = loss(arg);
        at->d[i] = x;
        double want = (up - down) / (2 * STEP);
        largest = fmax(largest, fabs(want));
        worst = fmax(worst, fabs(want - (double)got[i]));
    }
    if (!(largest > 0 && worst <= TOLERANCE * largest))
        print_error("%s: off by %g of %g\n", what, worst, largest);
    assert_true(largest > 0);
    assert_true(worst <= TOLERANCE * largest);
}

#endif
