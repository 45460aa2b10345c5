/* The lower bound of a point's time: the least time in which this machine can run the point's
 * algorithm. It is computed from speeds that are measured in the same run, on the same buffers.
 * There are three kinds. The first two are for backend shm, and for algorithms that send no
 * messages.
 *
 *   memory          The size is 64 KiB or more. The bound is the bytes that the algorithm must
 *                   read and write on all ranks (its cost), divided by a measured speed. For
 *                   this speed, all ranks together copy (b = a) or add (a += b) buffers of the
 *                   point's size, at most 128 MiB. For a point in place, the buffers have half the
 *                   point's size, so that caches hold as many bytes as in the operation. The
 *                   faster of plain and non-temporal stores counts. A reduction uses the faster of
 *                   copy and add.
 *   latency         The size is below 64 KiB. The bound is the number of the algorithm's steps
 *                   times half the round trip of a ping-pong.
 *   point-to-point  Another backend sends messages. The time of one message of the point's size
 *                   is measured while all ranks send to their neighbours. Above 128 MiB, the time
 *                   of a message of 128 MiB is scaled. From 64 KiB on, the bound is the bytes
 *                   that a rank must send, divided by the speed of this message. Below 64 KiB,
 *                   the bound is the number of steps times the time of this message. The number
 *                   of steps of a native call is not known; the code assumes ceil(log2 n) for n
 *                   ranks, and 1 for send-recv.
 *
 * The bound holds for the algorithm that was measured. Another algorithm may have a smaller
 * bound. */
#ifndef DDP_BENCH_BOUND_H
#define DDP_BENCH_BOUND_H

#include "coll/coll.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Below this size in bytes the bound is computed from latency, otherwise from throughput. */
#define DDP_BOUND_BYTES 65536

struct ddp_bound;

/* All pointers are borrowed. */
struct ddp_bound_setup {
    struct ddp_comm *comm;  /* all ranks */
    struct ddp_comm *group; /* the ranks that run one operation */
    void *a, *b;            /* [bytes]: the buffers of the points; ddp_bound_fill overwrites them */
    size_t bytes;
};
/* Creates the table of measured speeds, which is empty at first. Not collective. */
int ddp_bound_create(const struct ddp_bound_setup *setup, struct ddp_bound **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_bound_destroy(struct ddp_bound *b);
/* Fills the bound members of *point, whose time and ping-pongs are already known. alg, shape: the
 * algorithm that ran, and its shape. Measures the machine's speed once per size. Leaves bound_kind
 * "" if no bound is known, for example for one rank. Collective. */
int ddp_bound_fill(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                   const struct ddp_coll_shape *shape, struct ddp_point *point,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
