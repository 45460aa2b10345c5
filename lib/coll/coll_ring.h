/* The two halves of ring algorithms: a ring that combines and a ring that copies. For lib/coll
 * only.
 *
 * Rank r receives from rank r-1 and sends to rank r+1, one chunk in each of n-1 steps. pattern.h
 * defines which chunk. Collective; n >= 2. */
#ifndef DDP_COLL_COLL_RING_H
#define DDP_COLL_COLL_RING_H

#include "coll/coll_p2p.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The combining ring. At the end rank r holds chunk r of all inputs, combined in the order r+1,
 * r+2, ..., r, and divided once, in the last step. */
struct ddp_ring_sum {
    struct ddp_chunks chunks;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;       /* 1 if pre_scale */
    bool pre_scale;    /* see ddp_pre_scales */
    const void *input; /* [chunks.count] */
    void *result;      /* [count of chunk r]; may be chunk r of input */
    /* Partial sums of chunk c are stored in chunk c of `whole` [chunks.count], which may be input.
     * If whole is NULL, they are stored in spare[0] and spare[1] by turns, each as long as the
     * longest chunk. Two ranks need neither. */
    void *whole;
    void *spare[2];
    void *landing; /* ddp_p2p_landing_bytes() of the longest chunk */
};
int ddp_ring_sum(struct ddp_comm *comm, const struct ddp_ring_sum *ring,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* The copying ring. data [chunks.count] holds this rank's chunk before the call, and all chunks on
 * all ranks after it. chunk: the number of this rank's chunk, 0 <= chunk < n. Usually this is the
 * rank; in general the next rank must pass (chunk + 1) mod n. */
int ddp_ring_copy(struct ddp_comm *comm, const struct ddp_chunks *chunks, size_t elem, void *data,
                  int chunk, struct ddp_err *err) DDP_MUST_CHECK;

/* Add the messages and bytes to *c that rank r (for the copying ring: the holder of chunk r) sends
 * in each ring. */
void ddp_ring_sum_count(const struct ddp_chunks *chunks, size_t elem, int r,
                        struct ddp_p2p_count *c);
void ddp_ring_copy_count(const struct ddp_chunks *chunks, size_t elem, int r,
                         struct ddp_p2p_count *c);

#ifdef __cplusplus
}
#endif
#endif
