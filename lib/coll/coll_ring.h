/* The two halves of ring algorithms: a ring that combines and a ring that copies. For lib/coll
 * only.
 *
 * Rank r receives from r-1 and sends to r+1, in n-1 steps, a part a step (pattern.h says which).
 * Collective; n >= 2. */
#ifndef DDP_COLL_COLL_RING_H
#define DDP_COLL_COLL_RING_H

#include "coll/coll_p2p.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The combining ring. Rank r ends with part r of all inputs combined in the order r+1, r+2, ..., r,
 * divided once, at the last step.
 * input: [parts.count]. result: [count of part r]; may be part r of input.
 * divide_first: see ddp_divides_first; then the divisor is 1.
 * Partial sums: of part c in part c of `whole` [parts.count], which may be input; or, whole NULL,
 * in turn in spare[0] and spare[1], each as long as the longest part (2 ranks need neither).
 * landing: ddp_p2p_landing_bytes() of the longest part. */
struct ddp_ring_sum {
    struct ddp_parts parts;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;
    bool divide_first;
    const void *input;
    void *result;
    void *whole;
    void *spare[2];
    void *landing;
};
int ddp_ring_sum(struct ddp_comm *comm, const struct ddp_ring_sum *ring,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* The copying ring: data [parts.count] holds this rank's part, and all parts on all ranks in the
 * end. part: which is this rank's: its rank, or all count from another one (0 <= part < n, the next
 * rank's is one more, mod n). */
int ddp_ring_copy(struct ddp_comm *comm, const struct ddp_parts *parts, size_t elem, void *data,
                  int part, struct ddp_err *err) DDP_MUST_CHECK;

/* What rank (or holder of part) r sends in each: adds to *c. */
void ddp_ring_sum_count(const struct ddp_parts *parts, size_t elem, int r, struct ddp_p2p_count *c);
void ddp_ring_copy_count(const struct ddp_parts *parts, size_t elem, int r,
                         struct ddp_p2p_count *c);

#ifdef __cplusplus
}
#endif
#endif
