/* All-gather of chunks of different length (allgatherv), exact and without padding. Sparse exchange
 * sends its lists with it. It is not in the table of algorithms, because its arguments differ.
 *
 * The chunk of rank r is data[offset[r] .. offset[r + 1]). offset [n + 1] is equal on all ranks,
 * begins with 0 and never decreases. */
#ifndef DDP_COLL_ALL_GATHER_V_H
#define DDP_COLL_ALL_GATHER_V_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes offset[0..n] from counts[n]. Returns the sum of counts, or SIZE_MAX if it overflows;
 * offset is then undefined. */
size_t ddp_all_gather_v_offsets(const size_t *counts, int n, size_t *offset);

/* Runs the all-gather. Collective: all ranks of the group pass the same offset and dtype. send:
 * this rank's chunk, which may be its place in recv. recv: [offset[n]]. Any chunk may be empty.
 * Uses a ring of n-1 steps with one chunk per rank and step: rank r sends every chunk except that
 * of rank r+1, each as one message. Empty chunks are not sent. Allocates nothing. The flight
 * recorder shows it as an all-gather. Returns DDP_EUNAVAIL if the backend has no messages, else the
 * errors of ddp_comm_wait. */
int ddp_all_gather_v(struct ddp_comm *comm, const void *send, void *recv, const size_t *offset,
                     enum ddp_dtype dtype, struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the exact cost in *cost: the largest of all ranks. */
void ddp_all_gather_v_cost(int ranks, const size_t *offset, enum ddp_dtype dtype,
                           struct ddp_coll_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
