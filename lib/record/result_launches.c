/* Merges the points of several repetitions (sweep --launches). A repetition is one statistical
 * sample, because iterations within one are not independent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/result_points.h"
#include "stats/summary.h"

/* Compares by id, then by repetition. Only pointers are sorted, so the points stay in plan
 * order. */
static int compare_points(const void *a, const void *b)
{
    const struct ddp_result_point *const *x = a, *const *y = b;
    int order = strcmp((*x)->id, (*y)->id);
    return order ? order : ((*x)->launch > (*y)->launch) - ((*x)->launch < (*y)->launch);
}

/* Merges `same` [n], all points with one id, into the first of them. medians [n]: scratch. */
static int fold(struct ddp_result_point *const *same, size_t n, double *medians,
                struct ddp_err *err)
{
    struct ddp_result_point *first = same[0];
    struct ddp_summary s;
    double pingpong[2] = {0, 0};
    int64_t iterations = 0;
    for (size_t i = 0; i < n; i++) {
        medians[i] = same[i]->median_ns;
        iterations += same[i]->iterations;
        first->injected_percent = fmax(first->injected_percent, same[i]->injected_percent);
        for (int k = 0; k < 2; k++)
            pingpong[k] += same[i]->pingpong_ns[k] / (double)n;
    }
    if (ddp_summarize(medians, n, &s) != 0)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu launches", n);
    first->median_ns = s.median;
    first->ci95_lo_ns = s.ci95_lo;
    first->ci95_hi_ns = s.ci95_hi;
    first->iterations = iterations;
    memcpy(first->pingpong_ns, pingpong, sizeof pingpong);
    return 0;
}

static int fold_all(struct ddp_result *r, struct ddp_result_point **sorted, double *medians,
                    const char *name, struct ddp_err *err)
{
    for (size_t i = 0, n; i < r->count; i += n) {
        for (n = 1; i + n < r->count && strcmp(sorted[i]->id, sorted[i + n]->id) == 0; n++)
            if (sorted[i + n]->launch == sorted[i + n - 1]->launch)
                return ddp_fail(err, DDP_EINPUT, "'%s': point '%s' occurs twice", name,
                                sorted[i]->id);
        if (n > 1)
            DDP_TRY(fold(&sorted[i], n, medians, err));
        for (size_t k = 1; k < n; k++)
            sorted[i + k]->id[0] = '\0';
    }
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->points[i].id[0])
            r->points[kept++] = r->points[i];
    r->count = kept;
    return 0;
}

int ddp_result_fold_launches(struct ddp_result *r, const char *name, struct ddp_err *err)
{
    struct ddp_result_point **sorted = ddp_calloc(r->count, sizeof *sorted);
    double *medians = ddp_calloc(r->count, sizeof *medians);
    int rc = sorted && medians ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory to read '%s'", name);
    for (size_t i = 0; i < r->count && rc == 0; i++)
        sorted[i] = &r->points[i];
    if (rc == 0 && r->count > 0) {
        qsort(sorted, r->count, sizeof *sorted, compare_points);
        rc = fold_all(r, sorted, medians, name, err);
    }
    free(sorted);
    free(medians);
    return rc;
}
