/* All-reduce among the leaders of hosts, chunk by chunk, without ever blocking: the half of
 * allreduce "hier" that sends messages. For lib/coll only.
 *
 * A *chunk* is begun when its sum over a host is ready, and goes around a ring of the leaders
 * (pattern.h), H - 1 steps combining and H - 1 copying, in place; up to DEPTH of them at a time,
 * each with a tag of its own, so that a step of one need not wait for another's. A message of one
 * short chunk is *spread*: every leader sends all of it to all others and combines what comes in
 * the order of the hosts, in one step. */
#ifndef DDP_COLL_COLL_HIER_H
#define DDP_COLL_COLL_HIER_H

#include "coll/coll_p2p.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a chunk as it travels, and how many may be on the way. Together they fill a rank's ring
 * of shared memory (comm_shm.h). */
#define DDP_HIER_CHUNK_BYTES ((size_t)256 << 10)
#define DDP_HIER_DEPTH       8
/* Messages up to this many bytes to all others together are spread. */
#define DDP_HIER_SPREAD_BYTES ((size_t)32 << 10)
#define DDP_HIER_SPREAD_HOSTS 64

/* A chunk on its way. step: 0 .. 2(H - 1); open: begun and not finished. */
struct ddp_hier_chunk {
    unsigned char *data;
    size_t count;
    int step;
    bool open;
    struct ddp_request send, recv;
};

/* One all-reduce. leader [hosts]: ranks of comm; me: which of them this rank is. divisor: of the
 * last combine. scratch: ddp_hier_scratch_bytes(), aligned to 64. begun, finished: chunks; they
 * finish in order. */
struct ddp_hier {
    struct ddp_comm *comm;
    const int *leader;
    int hosts, me;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;
    unsigned char *scratch;
    size_t begun, finished;
    struct ddp_hier_chunk chunk[DDP_HIER_DEPTH];
};

/* Elements of all chunks but the last. dtype: that travels. */
static inline size_t ddp_hier_chunk_count(enum ddp_dtype dtype)
{
    return DDP_HIER_CHUNK_BYTES / ddp_dtype_size(dtype);
}
static inline bool ddp_hier_spreads(int hosts, size_t bytes)
{
    return hosts > 1 && hosts <= DDP_HIER_SPREAD_HOSTS &&
           bytes * (size_t)(hosts - 1) <= DDP_HIER_SPREAD_BYTES;
}
size_t ddp_hier_scratch_bytes(int hosts, size_t count, enum ddp_dtype dtype);

/* Begins the next chunk: data [count], in place. There must be fewer than DEPTH on the way. */
int ddp_hier_begin(struct ddp_hier *x, void *data, size_t count,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Moves what can move; *moved: something did. */
int ddp_hier_advance(struct ddp_hier *x, bool *moved, struct ddp_err *err) DDP_MUST_CHECK;
/* The rank of comm whose message the oldest chunk waits for; -1: none. */
int ddp_hier_waits_for(const struct ddp_hier *x);
/* Begins and finishes the only chunk. Waits. */
int ddp_hier_spread(struct ddp_hier *x, void *data, size_t count,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* The cost of all-reduce "hier" (struct ddp_coll_alg). */
void ddp_hier_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
