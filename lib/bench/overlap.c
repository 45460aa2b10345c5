#include "bench/overlap.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/iterations.h"
#include "device/stream_kernels.h"

/* Elements of the loop's array. Its 4 KiB stay in the cache, so the loop leaves the memory
 * bandwidth to the operation. */
#define LOOP_COUNT 1024
/* Elements of the array on a device. Its 4 MiB stay in the cache of a GPU. */
#define KERNEL_COUNT ((size_t)1 << 20)
/* A timing must take at least this long to be used for the calibration, so that the resolution of
 * the clock does not matter. */
#define CALIBRATE_NS    300000
#define CALIBRATE_TIMES 5

/* The computation. On a device `x` is device memory. */
struct loop {
    float *x;
    uint64_t passes;
    const struct ddp_device *device; /* NULL: the CPU */
    struct ddp_stream *stream;
};

static int open_loop(struct loop *l, const struct ddp_overlap *o, struct ddp_err *err)
{
    if (o->plan == NULL)
        return DDP_NEW(&l->x, LOOP_COUNT, err);
    const struct ddp_device *device = o->comm->device;
    DDP_TRY(device->streams->create(&l->stream, err));
    l->device = device;
    l->x = device->alloc(KERNEL_COUNT * sizeof *l->x);
    if (l->x == NULL)
        return ddp_fail(err, DDP_ENOMEM, "device '%s' has no memory for a computation",
                        device->name);
    device->fill(l->x, 0, KERNEL_COUNT * sizeof *l->x);
    return 0;
}

static void close_loop(struct loop *l)
{
    if (l->device == NULL) {
        free(l->x);
        return;
    }
    l->device->streams->destroy(l->stream);
    if (l->x != NULL)
        l->device->free(l->x, KERNEL_COUNT * sizeof *l->x);
}

/* Computes x = x * a + b over an array, `passes` times. A device gets the work and may not have
 * finished it on return. */
static void compute(const struct loop *l)
{
    for (uint64_t p = 0; p < l->passes; p++) {
        if (l->device != NULL) {
            l->device->stream_kernels->scale(l->stream, l->x, KERNEL_COUNT, 1);
            continue;
        }
        for (size_t i = 0; i < LOOP_COUNT; i++)
            l->x[i] = l->x[i] * 0.999f + 0.001f;
        /* The compiler must not remove a pass. */
        __asm__ volatile("" : : "r"(l->x) : "memory");
    }
}

static int finish_compute(const struct loop *l, struct ddp_err *err)
{
    return l->device != NULL ? l->device->streams->wait(l->stream, err) : 0;
}

static int time_of(const struct loop *l, int64_t *ns, struct ddp_err *err)
{
    const int64_t begin = ddp_now_ns();
    compute(l);
    DDP_TRY(finish_compute(l, err));
    *ns = ddp_now_ns() - begin;
    return 0;
}

/* Sets the number of passes that take about `ns` when nothing disturbs them. The fastest of a few
 * timings counts, because the number would be far too small after an interrupted timing. */
static int calibrate(struct loop *l, double ns, struct ddp_err *err)
{
    int64_t quickest;
    l->passes = 16;
    do {
        l->passes *= 2;
        DDP_TRY(time_of(l, &quickest, err));
        for (int again = 1; again < CALIBRATE_TIMES && quickest >= CALIBRATE_NS; again++) {
            int64_t took;
            DDP_TRY(time_of(l, &took, err));
            quickest = took < quickest ? took : quickest;
        }
    } while (quickest < CALIBRATE_NS);
    l->passes = (uint64_t)fmax(1, ns * (double)l->passes / (double)quickest);
    return 0;
}

/* Starts the operation. */
static int post(const struct ddp_overlap *o, struct ddp_err *err)
{
    if (o->plan == NULL) {
        ddp_async_post(o->request);
        return 0;
    }
    o->comm->deferred = true;
    const int rc = ddp_coll_run(o->comm, o->plan, err);
    o->comm->deferred = false;
    return rc;
}

/* Waits for the operation. */
static int await(const struct ddp_overlap *o, struct ddp_err *err)
{
    if (o->plan == NULL)
        return ddp_async_wait(o->request, 0, err);
    return ddp_comm_wait_stream(o->comm, o->plan->args.coll, o->plan->args.dtype, o->plan->bytes,
                                err);
}

/* Runs one iteration. If `operates` is false, runs the loop alone. Otherwise starts the operation,
 * runs the loop and waits for the operation. */
static int iterate(const struct ddp_overlap *o, const struct loop *l, bool operates,
                   int64_t *duration, struct ddp_err *err)
{
    if (operates)
        ddp_operands_restore(o->operands);
    if (o->comm->size > 1)
        DDP_TRY(ddp_comm_barrier(o->comm, err));
    const int64_t begin = ddp_now_ns();
    if (operates)
        DDP_TRY(post(o, err));
    compute(l);
    if (operates)
        DDP_TRY(await(o, err));
    DDP_TRY(finish_compute(l, err));
    *duration = ddp_now_ns() - begin;
    return operates ? ddp_iterations_join(o->comm, o->operands->full_bytes, err) : 0;
}

/* Sets *median_ns to the median over iterations. The time of an iteration is its duration on the
 * slowest rank. sample [iters]: scratch. */
static int measure(const struct ddp_overlap *o, const struct loop *l, bool operates, double *sample,
                   double *median_ns, struct ddp_err *err)
{
    struct ddp_summary summary;
    for (int64_t i = -o->warmup; i < o->iters; i++)
        DDP_TRY(iterate(o, l, operates, &o->duration[i < 0 ? 0 : i], err));
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
    struct loop l = {.passes = 0};
    int rc = DDP_NEW(&sample, (size_t)o->iters, err);
    if (rc == 0)
        rc = open_loop(&l, o, err);
    DDP_TRY_GOTO(ddp_comm_agree(o->comm, rc, err), out_free);
    /* all ranks calibrate at the same time */
    DDP_TRY_GOTO(ddp_comm_barrier(o->comm, err), out_free);
    DDP_TRY_GOTO(calibrate(&l, pure_ns, err), out_free);
    struct ddp_overlap_times *times = &out->overlap;
    DDP_TRY_GOTO(measure(o, &l, false, sample, &times->compute_ns, err), out_free);
    DDP_TRY_GOTO(measure(o, &l, true, sample, &times->total_ns, err), out_free);
    times->percent = ddp_overlap_percent(pure_ns, times->compute_ns, times->total_ns);
out_free:
    close_loop(&l);
    free(sample);
    return rc;
}
