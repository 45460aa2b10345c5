/* How much of a non-blocking collective hides behind computation (--overlap-compute): the progress
 * thread (coll/async.h) runs the operation while the rank runs a loop of arithmetic.
 *
 * Three times, each the median over iterations of the slowest rank's: *pure*, start and wait at
 * once; *compute*, the loop alone, calibrated on each rank to take about as long as pure; *total*,
 * start, the loop, wait. The part of the shorter one that was hidden:
 *   overlap = (pure + compute - total) / min(pure, compute), held to 0..1
 * 0: as if one came after the other; 1: the shorter one costs nothing. Compute is taken from the
 * loop alone, so a progress thread that takes time from its rank shows as less overlap.
 * Source: Intel MPI Benchmarks, user guide, IMB-NBC; as OSU's osu_iallreduce, which takes compute
 * from inside total. */
#ifndef DDP_BENCH_OVERLAP_H
#define DDP_BENCH_OVERLAP_H

#include "bench/operands.h"
#include "coll/async.h"

#ifdef __cplusplus
extern "C" {
#endif

/* comm: of all ranks. request: prepared, not under way. duration [iters], chunk [size *
 * DDP_SLOWEST_CHUNK]: scratch. All borrowed. */
struct ddp_overlap {
    struct ddp_comm *comm;
    const struct ddp_operands *operands;
    struct ddp_async_request *request;
    int64_t iters, warmup;
    int64_t *duration, *chunk;
};

/* Measures compute and total for a pure time, the same on all ranks, and fills out->overlap.
 * Collective. */
int ddp_overlap_measure(const struct ddp_overlap *o, double pure_ns, struct ddp_point *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* As defined above, in percent; NaN unless all three times are positive. */
double ddp_overlap_percent(double pure_ns, double compute_ns, double total_ns);

#ifdef __cplusplus
}
#endif
#endif
