/* All-gather of chunks of different length (allgatherv), without padding. It is not in the table of
 * algorithms, because its arguments differ.
 *
 * The chunk of rank r is stored at recv[offset[r] .. offset[r + 1]). offset [n + 1] begins with 0,
 * never decreases, and is equal on all ranks. */
#ifndef DDP_COLL_ALL_GATHER_V_H
#define DDP_COLL_ALL_GATHER_V_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes offset[0..n] from counts[n]. Returns the sum of counts. If the sum overflows, returns
 * SIZE_MAX and leaves offset undefined. */
size_t ddp_all_gather_v_offsets(const size_t *counts, int n, size_t *offset);

/* Runs the all-gather on a ring of n-1 steps. Collective. All ranks of the group must pass the same
 * offset and dtype. send: this rank's chunk, which may be its place in recv. recv: [offset[n]].
 * Rank r sends every chunk except the chunk of rank r+1, each as one message. Chunks may be empty,
 * and empty chunks are not sent. The flight recorder shows the call as an all-gather. Returns
 * DDP_EUNAVAIL if the backend cannot send messages, else the errors of ddp_comm_wait. */
int ddp_all_gather_v(struct ddp_comm *comm, const void *send, void *recv, const size_t *offset,
                     enum ddp_dtype dtype, struct ddp_err *err) DDP_MUST_CHECK;

/* Sets *cost to the cost of a call whose send is not in recv. If a value differs between ranks, the
 * largest is stored. */
void ddp_all_gather_v_cost(int ranks, const size_t *offset, enum ddp_dtype dtype,
                           struct ddp_coll_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
