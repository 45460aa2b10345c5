/* Measures matrix products of the library that training uses, on one core at a favourable shape, so
 * that `make bench-train` can compare a training step with them. Prints JSON.
 * Usage: sgemm_peak [SECONDS [MODEL]] */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/blas.h"
#include "model/model.h"

/* Square products: large enough that packing takes little of the time, small enough to run many. */
static const int sizes[] = {384, 512, 768, 1024};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns the median rate over the given time. */
static double rate_gflops(int n, double seconds, float *a, float *b, float *c)
{
    static double rates[4096];
    int count = 0;
    const int64_t end = ddp_now_ns() + (int64_t)(seconds * 1e9);
    do {
        const int64_t start = ddp_now_ns();
        ddp_sgemm(0, 0, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
        rates[count++] = 2.0 * n * n * n / (double)(ddp_now_ns() - start);
    } while (ddp_now_ns() < end && count < (int)DDP_COUNT_OF(rates));
    qsort(rates, (size_t)count, sizeof *rates, by_value);
    return rates[count / 2];
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 1.0;
    const char *name = argc > 2 ? argv[2] : "singa-cnn";
    const struct ddp_model_class *model = ddp_model_find(name);
    const size_t bytes = sizeof(float) * 1024 * 1024;
    struct ddp_err err = DDP_ERR_INIT;
    float *x[3];
    double best = 0.0;
    int best_size = 0;
    if (!model || !(seconds > 0.0) || ddp_blas_load(NULL, &err) != 0) {
        fprintf(stderr, "sgemm_peak: %s\n", err.code ? err.text : "no such model, or time");
        return 69;
    }
    for (int i = 0; i < 3; i++) {
        x[i] = (float *)ddp_alloc_pages(bytes);
        if (!x[i])
            return 71;
        for (size_t j = 0; j < bytes / sizeof(float); j++)
            x[i][j] = (float)(j % 7) * 0.25f;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(sizes); i++) {
        const double rate =
            rate_gflops(sizes[i], seconds / (double)DDP_COUNT_OF(sizes), x[0], x[1], x[2]);
        best_size = rate > best ? sizes[i] : best_size;
        best = DDP_MAX(best, rate);
    }
    /* An update takes 6 operations per parameter: a product and a sum each for decay, momentum and
     * step. */
    printf("{\"gflops\": %.3f, \"size\": %d, \"library\": \"%s\", \"model\": \"%s\", "
           "\"flops_per_image\": %.0f, \"update_flops\": %.0f}\n",
           best, best_size, ddp_blas_name(), name, model->flops_per_image(model),
           6.0 * (double)model->parameter_count);
    return 0;
}
