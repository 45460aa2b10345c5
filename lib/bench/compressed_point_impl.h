/* Private declarations of the files that measure compressed exchanges. compressed_run.c runs and
 * times one exchange. compressed_point.c measures a point. compressed_compare.c measures the
 * exchanges with which the point is compared. */
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

/* Series of durations: the whole exchange, then its phases (encode, exchange, decode). */
enum { DDP_SERIES_ALL, DDP_SERIES_PHASES, DDP_SERIES_COUNT = DDP_SERIES_PHASES + 3 };

struct ddp_compressed_bench {
    struct ddp_compressed_bench_setup setup;
    struct ddp_stream *stream; /* stream of the device; NULL: the host */
    int64_t iters;
    struct ddp_gradient *gradient;
    int64_t *duration;            /* [DDP_SERIES_COUNT][iters]: durations in ns */
    int64_t *chunk;               /* [size * DDP_SLOWEST_CHUNK]: scratch */
    double *scratch, *shared;     /* [iters], [size]: scratch */
    uint64_t step;                /* counts exchanges, so that each one gets a new gradient */
    struct ddp_iterations *timed; /* setup.iterations during the timed loop, else NULL */
    int64_t at;                   /* index of the last timed iteration; -1: it was a warm-up */
};

/* One exchange of elements [first, first + n) of the buffer. If n is 0, all pointers are NULL. */
struct ddp_bench_exchange {
    size_t first, n;
    struct ddp_compressed *x;             /* the exchange on the host; NULL: on a device */
    struct ddp_device_exchange *device_x; /* the exchange on a device; NULL: on the host */
    struct ddp_verify_exchange *verify;   /* NULL: nothing is verified */
    struct ddp_compressed_counters start; /* the counters when timing began */
};

struct ddp_bench_exchange_setup {
    const char *method, *algorithm; /* for example "topk:0.01" and "auto" */
    enum ddp_op op;
    bool feedback;
    bool verify; /* prepare for ddp_bench_exchange_verified */
    size_t first, n;
};
/* Creates an exchange of elements [first, first + n). Call ddp_bench_exchange_close even after a
 * failure. Collective. */
int ddp_bench_exchange_open(struct ddp_compressed_bench *b,
                            const struct ddp_bench_exchange_setup *setup,
                            struct ddp_bench_exchange *out, struct ddp_err *err);
void ddp_bench_exchange_close(struct ddp_bench_exchange *e);
/* Draws a gradient and exchanges it. ns [DDP_SERIES_COUNT]: receives this rank's times. */
int ddp_bench_exchange_once(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e,
                            int64_t *ns, struct ddp_err *err);
/* Like ddp_bench_exchange_once, but with an input for which the right result and residual are
 * known. Checks the result and the residual. Returns DDP_EDATA on all ranks if one is wrong on any
 * rank. */
int ddp_bench_exchange_verified(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e,
                                int64_t *ns, struct ddp_err *err);
/* Returns the result [n] of the last exchange, in host memory. */
const float *ddp_bench_exchange_result(struct ddp_compressed_bench *b,
                                       const struct ddp_bench_exchange *e);
const char *ddp_bench_exchange_algorithm(const struct ddp_bench_exchange *e); /* NULL if n is 0 */
void ddp_bench_exchange_counters(const struct ddp_bench_exchange *e,
                                 struct ddp_compressed_counters *out);
/* Summarises the first `iters` durations of a series. Each duration is that of the slowest rank.
 * Collective; all ranks get the same result. */
int ddp_bench_summarize(struct ddp_compressed_bench *b, int series, int64_t iters,
                        struct ddp_summary *out, struct ddp_err *err);
/* Runs the exchanges e [n] in turn: two rounds to warm up, then `iters` rounds (at most b->iters).
 * Sets median [n] to the median time of each exchange, measured on the slowest rank of each round.
 * Collective; all ranks get the same result. */
int ddp_bench_exchange_median(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e, int n,
                              int64_t iters, double *median, struct ddp_err *err);

/* In compressed_compare.c. Sets dense_ns, dense_algorithm and break_even of a point whose other
 * members are already set. Collective. */
int ddp_bench_compare(struct ddp_compressed_bench *b, struct ddp_point *point, struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
