/* Between the files that measure compressed exchanges: compressed_run.c runs one and times it,
 * compressed_point.c makes a point of many, compressed_compare.c sets it beside others. Private to
 * them. */
#ifndef DDP_BENCH_COMPRESSED_POINT_IMPL_H
#define DDP_BENCH_COMPRESSED_POINT_IMPL_H

#include "bench/compressed_point.h"
#include "bench/gradient.h"
#include "bench/verify_exchange.h"
#include "exchange/compressed.h"
#include "exchange/device_exchange.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Series of durations: the whole iteration, then its phases. */
enum { DDP_SERIES_ALL, DDP_SERIES_PHASES, DDP_SERIES_COUNT = DDP_SERIES_PHASES + 3 };

/* duration [DDP_SERIES_COUNT][iters]: of the point; scratch [iters], chunk [size *
 * DDP_SLOWEST_CHUNK], shared [size]: scratch of small exchanges. timed: during the timed loop the
 * setup's iterations, else NULL; at: where the last exchange was kept, -1 nowhere. step: of the
 * gradients, counts every exchange, so that no two have the same. stream: of the device. */
struct ddp_compressed_bench {
    struct ddp_compressed_bench_setup setup;
    struct ddp_stream *stream;
    int64_t iters;
    struct ddp_gradient *gradient;
    int64_t *duration;
    int64_t *chunk;
    double *scratch, *shared;
    uint64_t step;
    struct ddp_iterations *timed;
    int64_t at;
};
struct ddp_bench_exchange {
    size_t first, n;
    struct ddp_compressed *x;
    struct ddp_device_exchange *there;
    struct ddp_verify_exchange *verify;
    struct ddp_compressed_counters start;
};
struct ddp_bench_exchange_setup {
    const char *method, *algorithm;
    enum ddp_op op;
    bool feedback;
    bool verify;
    size_t first, n;
};
int ddp_bench_exchange_open(struct ddp_compressed_bench *b,
                            const struct ddp_bench_exchange_setup *setup,
                            struct ddp_bench_exchange *out, struct ddp_err *err);
void ddp_bench_exchange_close(struct ddp_bench_exchange *e);
/* Draws a gradient and exchanges it. ns [DDP_SERIES_COUNT]: the times of this rank. */
int ddp_bench_exchange_once(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e,
                            int64_t *ns, struct ddp_err *err);
/* As _once with an input whose result and residual are known, and checks them: DDP_EDATA on all
 * ranks. */
int ddp_bench_exchange_verified(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e,
                                int64_t *ns, struct ddp_err *err);
/* The result of the last one, where the host can look at it [n]. */
const float *ddp_bench_exchange_result(struct ddp_compressed_bench *b,
                                       const struct ddp_bench_exchange *e);
const char *ddp_bench_exchange_algorithm(const struct ddp_bench_exchange *e); /* NULL: nothing */
/* What it has counted until now. */
void ddp_bench_exchange_counters(const struct ddp_bench_exchange *e,
                                 struct ddp_compressed_counters *out);
/* The first `iters` durations of a series, of each the slowest rank's. Collective, the same on all
 * ranks. */
int ddp_bench_summarize(struct ddp_compressed_bench *b, int series, int64_t iters,
                        struct ddp_summary *out, struct ddp_err *err);
/* Median over `iters` (at most the bench's) iterations of the slowest rank, after two that warm up;
 * e [n]: measured in turn; median [n]. Collective, the same on all ranks. */
int ddp_bench_exchange_median(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e, int n,
                              int64_t iters, double *median, struct ddp_err *err);

/* compressed_compare.c: fills dense_ns and break_even of a point whose own figures are there.
 * Collective.
 */
int ddp_bench_compare(struct ddp_compressed_bench *b, struct ddp_point *point, struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
