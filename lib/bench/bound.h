/* Is a figure normal? The least time this machine lets the algorithm take, measured in the same run
 * on the same buffers:
 *
 *   memory          from 64 KiB up, where ranks share memory: the bytes the algorithm must read and
 *                   write (its cost()), at the speed all ranks at once copy (b = a) or add (a += b)
 *                   two buffers of that size, in place of half of it: as many bytes in the caches
 *                   as the operation has; of plain and non-temporal stores the faster, where it
 *                   combines values of copy and add the faster
 *   latency         below 64 KiB, where ranks share memory: its steps at half a ping-pong each
 *   point-to-point  where they send messages: from 64 KiB up the bytes a rank must send, at the
 *                   speed all ranks at once send such a message to their neighbours; below, its
 *                   steps at the time of one. A native call says nothing of its steps: ceil(log2 n)
 *
 * What it does not do: say what a better algorithm could reach. */
#ifndef DDP_BENCH_BOUND_H
#define DDP_BENCH_BOUND_H

#include "coll/coll.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_BOUND_BYTES 65536
struct ddp_bound;

/* comm: of all ranks; group: that runs the operations. a, b [bytes]: the buffers of points, whose
 * contents are lost at each call. All borrowed. Not collective. */
struct ddp_bound_setup {
    struct ddp_comm *comm;
    struct ddp_comm *group;
    void *a, *b;
    size_t bytes;
};
int ddp_bound_create(const struct ddp_bound_setup *setup, struct ddp_bound **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_bound_destroy(struct ddp_bound *b);
/* Fills the bound of a point whose time and ping-pongs are known, run by alg in this shape; what
 * the machine can is measured once a size. None (bound_kind "") where there is nothing to do: one
 * rank, an algorithm without steps. Collective. */
int ddp_bound_fill(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                   const struct ddp_coll_shape *shape, struct ddp_point *point,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
