/* Private memory through rings of shared memory: what the "staged" algorithms but all-reduce's have
 * in common. For lib/coll only.
 *
 * Some ranks *publish* their data, cut into pieces, through their own ring; others *take* the
 * pieces from there. Streams are cut alike, so in round t every publisher puts piece t of each of
 * its streams into its ring and posts IN, and every reader waits for IN, takes piece t of its
 * streams, and posts DONE. A ring holds DEPTH rounds; a slot is written again when all readers of
 * the round that was in it are done.
 *
 * A rank writes to no ring but its own, and returns when nobody reads it any more. It begins by
 * waiting for all to enter: all-reduce "staged", the other user of the rings and of both flags,
 * leaves peers reading. All ranks raise both flags by the same amount a call, whatever they do. */
#ifndef DDP_COLL_COLL_STAGE_H
#define DDP_COLL_COLL_STAGE_H

#include "coll/coll_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who takes from whom. */
enum ddp_stage_flow {
    DDP_STAGE_ALL_TO_ALL,  /* every rank from every other */
    DDP_STAGE_ROOT_TO_ALL, /* every other rank from the root */
    DDP_STAGE_ALL_TO_ROOT, /* the root from every other */
    DDP_STAGE_RING         /* every rank from the one before it */
};

/* One call. stream_bytes: of each stream, a multiple of the element. send: the streams this rank
 * publishes: one for all readers, or (personal) one for each rank, in rank order, that of this rank
 * left out. take: called once a round on ranks that read; data [size]: where the piece of each rank
 * lies that this rank reads from, NULL for others; offset, bytes: of the piece in the stream. What
 * is published in round t may be overwritten by take in round t. */
struct ddp_stage {
    const struct ddp_coll_args *args;
    enum ddp_stage_flow flow;
    bool personal;
    size_t stream_bytes;
    const unsigned char *send;
    void (*take)(struct ddp_comm *comm, const struct ddp_stage *stage,
                 const unsigned char *const *data, size_t offset, size_t bytes);
};

/* Collective. Nothing to do for 0 bytes. */
int ddp_stage_run(struct ddp_comm *comm, const struct ddp_stage *stage,
                  struct ddp_err *err) DDP_MUST_CHECK;

int ddp_stage_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
