/* The lower bound of a point's time: the least time in which this machine can run the algorithm. It
 * is measured in the same run, on the same buffers. There are three kinds:
 *
 *   memory          Ranks share memory, 64 KiB and more. The bytes that the algorithm must read and
 *                   write (its cost()), divided by the speed at which all ranks together copy
 *                   (b = a) or add (a += b) buffers of that size. In place, buffers of half the
 *                   size are used, so that caches hold as many bytes as in the operation. The
 *                   faster of plain and non-temporal stores counts, and for reductions the faster
 *                   of copy and add.
 *   latency         Ranks share memory, below 64 KiB. The algorithm's steps times half a ping-pong.
 *   point-to-point  Ranks send messages. From 64 KiB on, the bytes that a rank must send, at the
 *                   speed at which all ranks together send a message of that size to their
 *                   neighbours. Below 64 KiB, the steps times the time of one such message. The
 *                   steps of a native call are not known; ceil(log2 n) is assumed.
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

/* Size in bytes from which throughput, not latency, gives the bound. */
#define DDP_BOUND_BYTES 65536

struct ddp_bound;

/* Everything is borrowed. */
struct ddp_bound_setup {
    struct ddp_comm *comm;  /* all ranks */
    struct ddp_comm *group; /* the ranks that run one operation */
    void *a, *b;            /* [bytes]: the buffers of the points; every call overwrites them */
    size_t bytes;
};
/* Not collective. */
int ddp_bound_create(const struct ddp_bound_setup *setup, struct ddp_bound **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_bound_destroy(struct ddp_bound *b);
/* Fills the bound of a point whose time and ping-pongs are known, and which alg ran in this shape.
 * The machine's speed is measured once for each size. The point gets no bound (bound_kind "") if
 * there is nothing to do: one rank, or an algorithm without steps. Collective. */
int ddp_bound_fill(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                   const struct ddp_coll_shape *shape, struct ddp_point *point,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
