/* All-reduce among the *leaders*, one rank per host. This is the part of all-reduce "hier" that
 * sends messages (see allreduce_hier.c). No function blocks, except ddp_hier_spread. For lib/coll
 * only.
 *
 * The message is cut into *fragments*. A fragment is started when its sum over the host is ready.
 * Its chunks then go around a ring of the leaders (pattern.h). For H hosts, this takes H - 1
 * combining and H - 1 copying steps. Up to DEPTH fragments are in transit at a time. Each has its
 * own message tag, so that fragments do not wait for each other.
 *
 * A short message is *spread* instead. In one step every leader sends its whole message to all
 * other leaders. Each leader then combines the messages in the order of the hosts. */
#ifndef DDP_COLL_COLL_HIER_H
#define DDP_COLL_COLL_HIER_H

#include "coll/coll_p2p.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a fragment in the type in which it is sent (coll_p2p.h), and the largest number of
 * fragments in transit. This many fragments fill the ring buffer of a rank (comm_shm.h). */
#define DDP_HIER_FRAGMENT_BYTES ((size_t)256 << 10)
#define DDP_HIER_DEPTH          8
/* A message is spread if a leader then sends at most this many bytes in total, and if there are at
 * most this many hosts. */
#define DDP_HIER_SPREAD_BYTES ((size_t)32 << 10)
#define DDP_HIER_SPREAD_HOSTS 64

/* A fragment in transit. */
struct ddp_hier_fragment {
    unsigned char *data;
    size_t count; /* elements */
    int step;     /* 0 .. 2(H - 1) */
    bool open;    /* started, not finished */
    struct ddp_request send, recv;
};

/* The state of one all-reduce between leaders. */
struct ddp_hier {
    struct ddp_comm *comm;
    const int *leader; /* [hosts]: ranks of comm */
    int hosts, me;     /* me: index of this rank in leader */
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;            /* the last combine divides by this number */
    unsigned char *scratch; /* ddp_hier_scratch_bytes(), aligned to 64 */
    size_t begun, finished; /* number of fragments started and finished, in order */
    struct ddp_hier_fragment fragment[DDP_HIER_DEPTH];
};

/* Returns the number of elements of every fragment except the last. dtype: the type in which it is
 * sent. */
static inline size_t ddp_hier_fragment_count(enum ddp_dtype dtype)
{
    return DDP_HIER_FRAGMENT_BYTES / ddp_dtype_size(dtype);
}
static inline bool ddp_hier_spreads(int hosts, size_t bytes)
{
    return hosts > 1 && hosts <= DDP_HIER_SPREAD_HOSTS &&
           bytes * (size_t)(hosts - 1) <= DDP_HIER_SPREAD_BYTES;
}
size_t ddp_hier_scratch_bytes(int hosts, size_t count, enum ddp_dtype dtype);

/* Starts the all-reduce of the next fragment, data [count], in place. Fewer than DEPTH fragments
 * must be in transit. */
int ddp_hier_begin(struct ddp_hier *x, void *data, size_t count,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Advances every fragment that can advance, and sets *moved to true if any did. */
int ddp_hier_advance(struct ddp_hier *x, bool *moved, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the rank that the oldest fragment waits for, or -1 if no fragment is in transit. */
int ddp_hier_waits_for(const struct ddp_hier *x);
/* Starts and finishes the only fragment of a short message. Blocks. */
int ddp_hier_spread(struct ddp_hier *x, void *data, size_t count,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* The member `path` of all-reduce "hier" (struct ddp_coll_alg). */
void ddp_hier_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
