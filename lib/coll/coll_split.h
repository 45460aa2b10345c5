/* The parts of a collective with a split: their sizes and their offsets in the arrays. A *split
 * table* is the member `split` of struct ddp_coll_args. */
#ifndef DDP_COLL_COLL_SPLIT_H
#define DDP_COLL_COLL_SPLIT_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *send and *recv to the sizes in bytes of the arrays of `rank`. */
void ddp_split_array_bytes(const struct ddp_coll_args *args, int ranks, int rank, size_t *send,
                           size_t *recv);
/* Sets *out to the number of elements in the largest send or recv array of any rank, divided by
 * `ranks` and rounded up. args->split must not be NULL. Returns false if the sum of a row or a
 * column exceeds SIZE_MAX. */
bool ddp_split_chunk(const struct ddp_coll_args *args, int ranks, size_t *out) DDP_MUST_CHECK;
/* Returns a hash of the table, or 0 if there is none. */
uint64_t ddp_split_hash(const struct ddp_coll_args *args, int ranks);
/* Sets *all to the number of elements of all parts together, and *own to the number of elements of
 * the parts that ranks have for themselves. *all includes *own. */
void ddp_split_sum(const struct ddp_coll_shape *shape, int ranks, double *all, double *own);
/* Returns the arguments of a call of this shape, without arrays. */
struct ddp_coll_args ddp_split_args(const struct ddp_coll_shape *shape);
/* Returns the index of the first element of the part for rank `to` in the send array of rank
 * `from`. For to == ranks, returns the number of elements of the array. In an all-gather-v, the
 * whole array is the part for each rank. */
size_t ddp_split_send_at(const struct ddp_coll_args *args, int ranks, int from, int to);

/* The parts of one rank, in bytes. An algorithm makes the map in its scratch in the first call of a
 * plan, and uses it in later calls. */
struct ddp_split_map {
    bool made;
    size_t sent;      /* size of the send array of this rank */
    size_t most_sent; /* size of the largest send array of any rank */
    size_t most_part; /* size of the largest part that a rank sends to another rank */
    size_t touched;   /* sizes of the send array and the recv array of this rank together */
    struct ddp_split_peer {
        size_t send_at, send_bytes; /* the part for the peer, in the send array */
        /* The part from the peer, in the recv array. In a reduce-scatter-v, the parts from all
         * ranks are combined into the whole recv array, so recv_at is 0. */
        size_t recv_at, recv_bytes;
        size_t remote_at; /* the part from the peer, in the peer's send array */
    } peer[];
};
/* Implements the member scratch_bytes of struct ddp_coll_alg. */
size_t ddp_split_map_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape);
/* Returns the map in `scratch`. Makes it in the first call. */
const struct ddp_split_map *ddp_split_map_in(const struct ddp_comm *comm,
                                             const struct ddp_coll_args *args, void *scratch);

#ifdef __cplusplus
}
#endif
#endif
