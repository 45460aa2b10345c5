#include "bench/overlap.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/iterations.h"

/* Elements of the loop's array. Its 4 KiB stay in the cache, so the loop leaves the memory
 * bandwidth to the operation. */
#define LOOP_COUNT 1024
/* A timing must take at least this long to be used for the calibration, so that the resolution of
 * the clock does not matter. */
#define CALIBRATE_NS    300000
#define CALIBRATE_TIMES 5

/* Computes x = x * a + b over an array, `passes` times. */
static void compute(float *x, uint64_t passes)
{
    for (uint64_t p = 0; p < passes; p++) {
        for (size_t i = 0; i < LOOP_COUNT; i++)
            x[i] = x[i] * 0.999f + 0.001f;
        /* The compiler must not remove a pass. */
        __asm__ volatile("" : : "r"(x) : "memory");
    }
}

static int64_t time_of(float *x, uint64_t passes)
{
    const int64_t begin = ddp_now_ns();
    compute(x, passes);
    return ddp_now_ns() - begin;
}

/* Returns the number of passes that take about `ns` when nothing disturbs them. The fastest of a
 * few timings counts, because the number would be far too small after an interrupted timing. */
static uint64_t calibrate(float *x, double ns)
{
    uint64_t passes = 16;
    int64_t quickest;
    do {
        passes *= 2;
        quickest = time_of(x, passes);
        for (int again = 1; again < CALIBRATE_TIMES && quickest >= CALIBRATE_NS; again++) {
            const int64_t took = time_of(x, passes);
            quickest = took < quickest ? took : quickest;
        }
    } while (quickest < CALIBRATE_NS);
    return (uint64_t)fmax(1, ns * (double)passes / (double)quickest);
}

/* Runs one iteration. If `operates` is false, runs the loop alone. Otherwise starts the operation,
 * runs the loop and waits for the operation. */
static int iterate(const struct ddp_overlap *o, float *x, uint64_t passes, bool operates,
                   int64_t *duration, struct ddp_err *err)
{
    if (operates)
        ddp_operands_restore(o->operands);
    if (o->comm->size > 1)
        DDP_TRY(ddp_comm_barrier(o->comm, err));
    const int64_t begin = ddp_now_ns();
    if (operates)
        ddp_async_post(o->request);
    compute(x, passes);
    if (operates)
        DDP_TRY(ddp_async_wait(o->request, 0, err));
    *duration = ddp_now_ns() - begin;
    return operates ? ddp_iterations_join(o->comm, o->operands->full_bytes, err) : 0;
}

/* Sets *median_ns to the median over iterations. The time of an iteration is its duration on the
 * slowest rank. sample [iters]: scratch. */
static int measure(const struct ddp_overlap *o, float *x, uint64_t passes, bool operates,
                   double *sample, double *median_ns, struct ddp_err *err)
{
    struct ddp_summary summary;
    for (int64_t i = -o->warmup; i < o->iters; i++)
        DDP_TRY(iterate(o, x, passes, operates, &o->duration[i < 0 ? 0 : i], err));
    DDP_TRY(ddp_slowest_summary(o->comm, o->duration, o->iters, o->chunk, sample, &summary, err));
    *median_ns = summary.median;
    return 0;
}

double ddp_overlap_percent(double pure_ns, double compute_ns, double total_ns)
{
    if (!(pure_ns > 0 && compute_ns > 0 && total_ns > 0))
        return NAN;
    const double hidden = (pure_ns + compute_ns - total_ns) / fmin(pure_ns, compute_ns);
    return 100 * fmin(fmax(hidden, 0), 1);
}

int ddp_overlap_measure(const struct ddp_overlap *o, double pure_ns, struct ddp_point *out,
                        struct ddp_err *err)
{
    double *sample;
    float *x = NULL;
    int rc = DDP_NEW(&sample, (size_t)o->iters, err);
    if (rc == 0)
        rc = DDP_NEW(&x, LOOP_COUNT, err);
    DDP_TRY_GOTO(ddp_comm_agree(o->comm, rc, err), out_free);
    /* all ranks calibrate at the same time */
    DDP_TRY_GOTO(ddp_comm_barrier(o->comm, err), out_free);
    const uint64_t passes = calibrate(x, pure_ns);
    struct ddp_overlap_times *times = &out->overlap;
    DDP_TRY_GOTO(measure(o, x, passes, false, sample, &times->compute_ns, err), out_free);
    DDP_TRY_GOTO(measure(o, x, passes, true, sample, &times->total_ns, err), out_free);
    times->percent = ddp_overlap_percent(pure_ns, times->compute_ns, times->total_ns);
out_free:
    free(x);
    free(sample);
    return rc;
}
