/* Measures the exchanges with which a compressed exchange is compared: dense exchanges (the
 * baselines) and, with --break-even, the same exchange at other densities. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/break_even.h"
#include "bench/compressed_point_impl.h"

#define DENSE_ITERS   20
#define TRIAL_ITERS   5 /* for each of the two candidates for a baseline */
#define DENSITY_ITERS 10
#define REFINE_STEPS  3 /* bisections between the two densities around a break-even */

static const char *const dense_method[DDP_BASELINE_COUNT] = {"none", "fp16"};

/* Returns the name of an all-reduce that may be faster than `taken`, which auto chose: the
 * library's (`native`), or the best of our own if `taken` is the library's. Returns NULL if there
 * is none. */
static const char *other_candidate(const struct ddp_comm *group, const struct ddp_point *p,
                                   enum ddp_baseline baseline, const char *taken)
{
    const struct ddp_coll_shape shape = {
        .coll = DDP_ALLREDUCE,
        .count = p->spec.count,
        .dtype = baseline == DDP_BASELINE_F16 ? DDP_F16 : DDP_F32,
        .op = baseline == DDP_BASELINE_F16 ? DDP_SUM : p->spec.op,
    };
    const struct ddp_coll_alg *alg = ddp_coll_find(DDP_ALLREDUCE, "native");
    struct ddp_err none = DDP_ERR_INIT;
    if (strcmp(taken, alg->name) == 0)
        alg = ddp_coll_auto_own(group, &shape, &none);
    else if (ddp_coll_supports(alg, group, &shape, &none) != 0)
        alg = NULL;
    return alg != NULL ? alg->name : NULL;
}

/* Opens the dense exchange of a baseline with auto's choice and with the other candidate. Keeps the
 * one that is faster in a short trial. */
static int open_faster(struct ddp_compressed_bench *b, const struct ddp_point *p,
                       enum ddp_baseline baseline, struct ddp_bench_exchange *out,
                       struct ddp_err *err)
{
    struct ddp_bench_exchange_setup how = {.method = dense_method[baseline],
                                           .algorithm = "auto",
                                           .op = p->spec.op,
                                           .n = p->spec.count};
    struct ddp_bench_exchange e[2] = {0};
    double median[2] = {0};
    int faster = 0;
    int rc = ddp_bench_exchange_open(b, &how, &e[0], err);
    if (rc == 0)
        how.algorithm =
            other_candidate(b->setup.group, p, baseline, ddp_bench_exchange_algorithm(&e[0]));
    if (rc == 0 && how.algorithm != NULL) {
        rc = ddp_bench_exchange_open(b, &how, &e[1], err);
        if (rc == 0)
            rc = ddp_bench_exchange_median(b, e, 2, TRIAL_ITERS, median, err);
        faster = rc == 0 && median[1] < median[0];
    }
    *out = e[faster];
    ddp_bench_exchange_close(&e[!faster]);
    return rc;
}

/* Measures the f32 and the f16 baseline in turn, so that noise affects both alike. An exchange is
 * not compared with itself: method `fp16` without --partial gets no f16 baseline. */
static int measure_dense(struct ddp_compressed_bench *b, struct ddp_point *p, struct ddp_err *err)
{
    struct ddp_bench_exchange e[DDP_BASELINE_COUNT] = {0};
    double median[DDP_BASELINE_COUNT];
    int rc = 0;
    for (int i = 0; i < DDP_BASELINE_COUNT && rc == 0; i++)
        rc = open_faster(b, p, (enum ddp_baseline)i, &e[i], err);
    if (rc == 0)
        rc = ddp_bench_exchange_median(b, e, DDP_BASELINE_COUNT, DENSE_ITERS, median, err);
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        if (rc == 0 && (strcmp(p->spec.compress, dense_method[i]) != 0 || p->spec.partial > 0)) {
            p->dense_ns[i] = median[i];
            snprintf(p->dense_algorithm[i], sizeof p->dense_algorithm[i], "%.23s",
                     ddp_bench_exchange_algorithm(&e[i]));
        }
        ddp_bench_exchange_close(&e[i]);
    }
    return rc;
}

/* Times the point's exchange at another density, and adds the time to *times. */
static int time_at(struct ddp_compressed_bench *b, const struct ddp_point *p, const char *name,
                   double density, struct ddp_density_times *times, struct ddp_err *err)
{
    char method[32];
    struct ddp_bench_exchange e = {0};
    double ns;
    snprintf(method, sizeof method, "%.12s:%.6g", name, density);
    const struct ddp_bench_exchange_setup how = {.method = method,
                                                 .algorithm = p->spec.algorithm,
                                                 .op = p->spec.op,
                                                 .feedback = strcmp(p->feedback, "on") == 0,
                                                 .n = p->spec.count};
    int rc = ddp_bench_exchange_open(b, &how, &e, err);
    if (rc == 0)
        rc = ddp_bench_exchange_median(b, &e, 1, DENSITY_ITERS, &ns, err);
    ddp_bench_exchange_close(&e);
    if (rc == 0)
        ddp_density_times_add(times, density, ns);
    return rc;
}

/* Times a coarse grid of densities. Then times a few densities between the two that enclose the
 * break-even density of each baseline. */
static int measure_densities(struct ddp_compressed_bench *b, struct ddp_point *p, const char *name,
                             struct ddp_err *err)
{
    static const double coarse[] = {1e-4, 1e-3, 1e-2, 1e-1, 1};
    struct ddp_density_times times = {0};
    double low, high;
    for (size_t i = 0; i < DDP_COUNT_OF(coarse); i++)
        DDP_TRY(time_at(b, p, name, coarse[i], &times, err));
    for (int i = 0; i < DDP_BASELINE_COUNT * REFINE_STEPS; i++) {
        ddp_break_even_measured(&times, p->dense_ns[i / REFINE_STEPS], &low, &high);
        if (low < high)
            DDP_TRY(time_at(b, p, name, sqrt(low * high), &times, err));
    }
    for (int i = 0; i < DDP_BASELINE_COUNT; i++)
        p->break_even[i].measured = ddp_break_even_measured(&times, p->dense_ns[i], &low, &high);
    return 0;
}

/* Returns the algorithm whose cost() predicts the bytes sent. If ranks read each other's memory,
 * the point's algorithm sends nothing, and the all-gather is used instead. */
static const struct ddp_sparse_alg *sender(const struct ddp_point *p)
{
    const struct ddp_sparse_alg *alg = ddp_sparse_find(p->algorithm_used);
    struct ddp_coll_cost cost = {0};
    bool exact;
    if (alg)
        alg->cost(p->spec.ranks, p->spec.count, 1, &cost, &exact);
    return cost.sent_bytes > 0 ? alg : ddp_sparse_find("allgather");
}

int ddp_bench_compare(struct ddp_compressed_bench *b, struct ddp_point *p, struct ddp_err *err)
{
    struct ddp_compress_spec parsed;
    DDP_TRY(measure_dense(b, p, err));
    DDP_TRY(ddp_compress_parse(p->spec.compress, &parsed, err));
    if (parsed.compressor->combine != DDP_COMBINE_GATHER || p->spec.partial > 0)
        return 0;
    const struct ddp_sparse_alg *alg = sender(p);
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        struct ddp_break_even *even = &p->break_even[i];
        double dense_bytes = ddp_point_dense_bytes(&p->spec, (enum ddp_baseline)i);
        if (alg)
            even->predicted =
                ddp_break_even_predicted(alg, p->spec.ranks, p->spec.count, dense_bytes);
        even->estimated =
            ddp_break_even_estimated(p->phase_ns, p->achieved_density, p->dense_ns[i]);
    }
    /* The density that a threshold gives is not known in advance, so it cannot be chosen. */
    if (!b->setup.options->break_even || !parsed.compressor->fixed_count)
        return 0;
    return measure_densities(b, p, parsed.compressor->name, err);
}
