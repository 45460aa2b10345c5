/* All-gather of parts that differ in length (allgatherv), exact and without padding: what sparse
 * exchange sends its lists with. Not in the table of algorithms, for its arguments are others.
 *
 * Part r, of rank r, is data[offset[r] .. offset[r + 1]); offset [n + 1], equal on all ranks,
 * offset[0] = 0, never falling. */
#ifndef DDP_COLL_ALL_GATHER_V_H
#define DDP_COLL_ALL_GATHER_V_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* offset[0..n] of counts[n]. Returns the sum, SIZE_MAX when it does not fit (offset is then
 * undefined). */
size_t ddp_all_gather_v_offsets(const size_t *counts, int n, size_t *offset);

/* Collective: all ranks of the group, same offset and dtype. send: this rank's part; may be its
 * place in recv. recv: [offset[n]]. Any part may be empty.
 * Ring: n-1 steps, in each a part a rank; rank r sends all parts but that of r+1, each as one
 * message, empty ones not at all. No allocation; recorded in the flight recorder as all-gather.
 * DDP_EUNAVAIL when the backend has no messages, else as ddp_comm_wait. */
int ddp_all_gather_v(struct ddp_comm *comm, const void *send, void *recv, const size_t *offset,
                     enum ddp_dtype dtype, struct ddp_err *err) DDP_MUST_CHECK;

/* What it costs: exact, the largest of all ranks. */
void ddp_all_gather_v_cost(int ranks, const size_t *offset, enum ddp_dtype dtype,
                           struct ddp_coll_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
