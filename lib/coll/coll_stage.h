/* Moves data of private memory through ring buffers in shared memory. Used by the "staged"
 * algorithms of all collectives except all-reduce. For lib/coll only.
 *
 * Each publishing rank cuts its chunks of data into fragments and copies them to its own ring
 * buffer. Each reading rank *takes* the fragments from the ring buffers of publishers. A rank may
 * do both. All chunks have the same length and are cut at the same offsets. In round t every
 * publisher copies fragment t of each of its chunks into its ring buffer and posts its flag IN.
 * Every reader waits for IN, takes fragment t of each chunk that it reads, and posts its flag DONE.
 * A ring buffer holds the slots of DEPTH rounds. A publisher writes a slot again only when all
 * readers are done with it.
 *
 * A rank writes only to its own ring buffer, and returns when no other rank reads that ring buffer
 * any more. A call begins by waiting until all ranks have entered. This is needed because
 * all-reduce "staged" uses the same ring buffers and flags, and returns while peers may still be
 * reading. Every call raises each of the two flags by the same amount on all ranks. */
#ifndef DDP_COLL_COLL_STAGE_H
#define DDP_COLL_COLL_STAGE_H

#include "coll/coll_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tells which ranks take chunks from which ranks. */
enum ddp_staging_flow {
    DDP_STAGING_ALL_TO_ALL,  /* every rank takes from every other rank */
    DDP_STAGING_ROOT_TO_ALL, /* every rank except the root takes from the root */
    DDP_STAGING_ALL_TO_ROOT, /* the root takes from every other rank */
    DDP_STAGING_RING         /* every rank takes from the rank before it */
};

/* The description of one call. */
struct ddp_staging {
    const struct ddp_coll_args *args;
    enum ddp_staging_flow flow;
    bool personal; /* true: a publisher has one chunk per rank; false: one chunk for all readers */
    size_t chunk_bytes; /* bytes of a chunk, a multiple of the element size */
    /* The chunks that this rank publishes. If `personal`, the chunks lie in rank order and this
     * rank's own chunk is not published. */
    const unsigned char *send;
    /* Called once per round on every rank that reads. data[r] is the address of rank r's fragment,
     * or NULL if this rank does not read from rank r. A fragment has `bytes` bytes and begins at
     * `offset` in its chunk. take() of round t may overwrite the part of `send` that was published
     * in round t. */
    void (*take)(struct ddp_comm *comm, const struct ddp_staging *stage,
                 const unsigned char *const *data, size_t offset, size_t bytes);
};

/* Runs the call. Collective. Returns at once if chunk_bytes is 0 or there is only one rank. */
int ddp_staging_run(struct ddp_comm *comm, const struct ddp_staging *stage,
                    struct ddp_err *err) DDP_MUST_CHECK;

int ddp_staging_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
