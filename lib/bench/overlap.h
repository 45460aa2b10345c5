/* Measures how much of a non-blocking collective is hidden behind computation (--overlap-compute).
 * The progress thread (coll/async.h) runs the operation while the rank runs an arithmetic loop. On
 * a device the operation is put on the stream of the communicator, and the loop is a kernel that is
 * put on a stream of its own.
 *
 * The overlap is computed from three durations:
 *
 *   pure     the time of the point: a rank starts the operation and waits for it at once
 *   compute  the loop alone, which each rank calibrates to take about as long as `pure`
 *   total    a rank starts the operation, runs the loop and waits for the operation
 *
 * `compute` and `total` are medians over iterations. The time of an iteration is its duration on
 * the slowest rank.
 *
 * The overlap is the hidden part of the shorter of `pure` and `compute`:
 *
 *   overlap = (pure + compute - total) / min(pure, compute), limited to 0..1
 *
 * 0 means that `total` is at least `pure` + `compute`. 1 means that `total` is at most the longer
 * of `pure` and `compute`. `compute` is measured without the operation. If the progress thread
 * takes processor time from its rank, `total` grows, and the overlap becomes smaller.
 *
 * Source: Intel MPI Benchmarks, user guide, IMB-NBC. */
#ifndef DDP_BENCH_OVERLAP_H
#define DDP_BENCH_OVERLAP_H

#include "bench/operands.h"
#include "coll/async.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All pointers are borrowed. */
struct ddp_overlap {
    struct ddp_comm *comm; /* all ranks */
    const struct ddp_operands *operands;
    /* The operation. In host memory, `request` is prepared and not started, and `plan` is NULL. On
     * a device, `plan` is the operation, and `request` is NULL. */
    struct ddp_async_request *request;
    struct ddp_coll_plan *plan;
    int64_t iters, warmup;
    /* Scratch: duration [iters], chunk [size * DDP_SLOWEST_CHUNK]. */
    int64_t *duration, *chunk;
};

/* Measures `compute` and `total`, and fills out->overlap. pure_ns must be equal on all ranks.
 * Collective. */
int ddp_overlap_measure(const struct ddp_overlap *o, double pure_ns, struct ddp_point *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the overlap as defined above, in percent; NaN unless all three times are positive. */
double ddp_overlap_percent(double pure_ns, double compute_ns, double total_ns);

#ifdef __cplusplus
}
#endif
#endif
