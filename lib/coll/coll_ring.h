/* The two parts of ring algorithms: a ring that combines chunks and a ring that copies chunks. Only
 * lib/coll uses this header.
 *
 * In each of n-1 steps, rank r receives one chunk from rank r-1 and sends one chunk to rank r+1.
 * pattern.h defines which chunks these are. ddp_ring_sum and ddp_ring_copy are collective.
 * ddp_ring_sum needs n >= 2. */
#ifndef DDP_COLL_COLL_RING_H
#define DDP_COLL_COLL_RING_H

#include "coll/coll_p2p.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The combining ring. At the end, rank r holds chunk r of the result. The inputs were combined in
 * the rank order r+1, r+2, ..., r. If the operation is an average, the last step divides, unless
 * the inputs were divided before (struct ddp_reduction). */
struct ddp_ring_sum {
    struct ddp_chunks chunks;
    const struct ddp_reduction *reduction; /* `landing` is that of the longest chunk */
    const void *input;                     /* [chunks.count], in the accumulator type */
    void *result;                          /* [count of chunk r]; may be chunk r of `input` */
    /* `whole` [chunks.count]: the partial sum of chunk c is stored in chunk c of this array.
     * `whole` may be `input`. If `whole` is NULL, partial sums are stored alternately in spare[0]
     * and spare[1], which are as long as the longest chunk. With two ranks, `whole` and `spare` are
     * not used. */
    void *whole;
    void *spare[2];
};
int ddp_ring_sum(struct ddp_comm *comm, const struct ddp_ring_sum *ring,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* The copying ring. Before the call, `data` [chunks.count] holds this rank's chunk at the chunk's
 * offset. After the call, it holds all chunks. `chunk`: the index of this rank's chunk, usually the
 * rank. The next rank must pass (chunk + 1) mod n. */
int ddp_ring_copy(struct ddp_comm *comm, const struct ddp_chunks *chunks, size_t elem, void *data,
                  int chunk, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
