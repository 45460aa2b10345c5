/* The lower bound of a point's time: the least time that this machine needs for the collective. It
 * is measured in the same run, before and after the point, and the smaller of the two results
 * counts. There are three kinds. The kind depends on the backend, the algorithm and the size.
 *
 *   memory          Used for sizes of 64 KiB or more, if the backend is shm or the algorithm sends
 *                   no messages. All ranks run plain loops at the same time, and do not wait for
 *                   each other inside a timed part. Each rank works on its own two buffers.
 *                   Together the loops read and write as many bytes as the collective must read and
 *                   write. For a reduction, and for an all-to-all in place, the loops add arrays.
 *                   For the other collectives they copy arrays. If the collective overwrites its
 *                   input, the loops store to the memory that they have read. Otherwise both plain
 *                   and non-temporal stores are measured, and the faster ones count. For a call in
 *                   place, the input is restored before each round, untimed. The fastest round
 *                   counts. If a round is long, it is cut into slices, the fastest time of each
 *                   slice over all rounds counts, and the result is the sum of these times. Sizes
 *                   above 128 MiB are measured with 128 MiB, and the time is scaled.
 *   latency         Used for sizes below 64 KiB, if the backend is shm or the algorithm sends no
 *                   messages. The bound is the number of the algorithm's steps times half the round
 *                   trip of a ping-pong.
 *   point-to-point  Used with all backends except shm and nccl, if the algorithm sends messages.
 *                   Each rank sends a message of the point's size to the next rank, all at the same
 *                   time. Above 128 MiB, the time of a message of 128 MiB is scaled. From 64 KiB
 *                   on, the bound is the bytes that a rank must send (or receive, with --split),
 *                   divided by the speed of this message. Below 64 KiB, the bound is the number of
 *                   steps times the time of this message. The number of steps of a native call is
 *                   not known. The code assumes ceil(log2 n) steps for n ranks, and 1 for
 *                   send-recv.
 *
 * The bound `memory` is the same for all algorithms: it leaves out intermediate copies, repeated
 * reads of the same input, and transfers between the caches of two cores. The other two kinds hold
 * for the algorithm that was measured. The bound does not depend on the time of the point, so the
 * quotient bound / time may exceed 1. results/notes/bound.md has measurements. */
#ifndef DDP_BENCH_BOUND_H
#define DDP_BENCH_BOUND_H

#include "coll/coll.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Below this size in bytes the bound is computed from latency, otherwise from throughput. */
#define DDP_BOUND_BYTES 65536
/* See ddp_bound_setup. */
#define DDP_BOUND_ROUNDS 16

struct ddp_bound;

/* All pointers are borrowed. */
struct ddp_bound_setup {
    struct ddp_comm *comm;  /* all ranks */
    struct ddp_comm *group; /* the ranks that run one operation */
    void *a, *b;            /* [bytes]: the buffers of the points; measuring overwrites them */
    size_t bytes;
    /* Number of iterations of a point if the user chose this number, else 0. If it is not 0, a
     * measurement has at most about iters * DDP_BOUND_ROUNDS rounds, so that a point of few
     * iterations stays short. */
    int64_t iters;
};
/* Succeeds on all ranks or on none. Collective. */
int ddp_bound_create(const struct ddp_bound_setup *setup, struct ddp_bound **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_bound_destroy(struct ddp_bound *b);
/* Measures the bound of *point before the point itself is measured, and sets
 * point->bound_before_ns. Reads point->pingpong_ns[0]. alg, shape: the algorithm that will run, and
 * the shape of the call. Collective. */
int ddp_bound_before(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                     const struct ddp_coll_shape *shape, struct ddp_point *point,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Measures the bound again after the point has been measured, and fills the bound members of
 * *point. Reads time_ns, bound_before_ns and pingpong_ns[1] of *point. Leaves bound_kind "" if no
 * bound is known, for example for one rank. Collective. */
int ddp_bound_fill(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                   const struct ddp_coll_shape *shape, struct ddp_point *point,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
