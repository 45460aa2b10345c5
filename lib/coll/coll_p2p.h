/* Helpers of the algorithms that send messages. They exchange data without deadlock and count
 * costs. For lib/coll only.
 *
 * An exchange posts its receive before its send, and then waits for both. Ranks that exchange in a
 * cycle therefore make progress, no matter how much the backend buffers. Both sides know the length
 * of a message, so empty messages are not sent. If the arriving data is combined, it is sent in
 * *fragments*. One fragment is combined while it is in the cache and the next one is in transit.
 * Data that is not combined is sent as one message. */
#ifndef DDP_COLL_COLL_P2P_H
#define DDP_COLL_COLL_P2P_H

#include "base/mem.h"
#include "coll/coll.h"
#include "coll/coll_acc.h"
#include "coll/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tag of all messages except the fragments of all-reduce "hier" (coll_hier.h). One tag is
 * enough, because messages between two ranks stay in order and all ranks run the same collectives
 * in the same order. */
#define DDP_COLL_TAG 0x0dd9

/* Largest fragment, a multiple of every element size. This size is fast through shared memory. Open
 * MPI is faster with larger messages (results/notes/collectives.md). */
#define DDP_FRAGMENT_BYTES ((size_t)128 << 10)

static inline size_t ddp_fragment_count(size_t bytes)
{
    return bytes / DDP_FRAGMENT_BYTES + (bytes % DDP_FRAGMENT_BYTES != 0);
}

static inline size_t ddp_round_to_line(size_t bytes)
{
    return (bytes + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE;
}

/* Returns the address of element number `elements` of an array whose elements have `elem` bytes. */
static inline void *ddp_at(const void *base, size_t elements, size_t elem)
{
    return (unsigned char *)base + elements * elem;
}

/* Returns DDP_EUNAVAIL if the group has several ranks and the backend cannot send messages. */
int ddp_coll_needs_p2p(const struct ddp_comm *comm, const char *name,
                       struct ddp_err *err) DDP_MUST_CHECK;

/* Copies, unless bytes is 0 or dst and src are the same. */
static inline void ddp_coll_copy(const struct ddp_comm *comm, void *dst, const void *src,
                                 size_t bytes)
{
    if (bytes != 0 && dst != src)
        comm->device->copy(dst, src, bytes);
}

/* True if an average must divide each input before the first sum. This is the case for 16-bit
 * floats, because a partial sum could overflow although the average does not. The division rounds
 * each input. Two ranks do not need it, because their only combine adds and divides in f32. */
static inline bool ddp_pre_scales(enum ddp_dtype dtype, enum ddp_op op, int ranks)
{
    return op == DDP_AVG && (dtype == DDP_F16 || dtype == DDP_BF16) && ranks > 2;
}
/* Computes dst [count] as src [count] / comm->size. dst may be src. */
void ddp_coll_divide(const struct ddp_comm *comm, void *dst, const void *src, size_t count,
                     enum ddp_dtype dtype);

/* One exchange. It sends out[out_bytes] to rank dst and receives in[in_bytes] from rank src, each
 * as one message. The arrays must not overlap. If a size is 0, there is no message in that
 * direction and the rank number is ignored. */
struct ddp_p2p_move {
    int dst;
    const void *out;
    size_t out_bytes;
    int src;
    void *in;
    size_t in_bytes;
};
int ddp_p2p_exchange(struct ddp_comm *comm, const struct ddp_p2p_move *move,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* An exchange in fragments that combines the arriving data. It computes sum[i] = own[i] op
 * arriving[i]. The rank on the other side must call ddp_p2p_combine or ddp_p2p_send_fragments. */
struct ddp_p2p_combine {
    int dst;
    const void *out; /* [out_count], must not overlap sum */
    size_t out_count;
    int src;
    size_t in_count;
    const void *own; /* [in_count] */
    void *sum;       /* [in_count], may be own */
    bool own_first;  /* false: arriving[i] is the first operand */
    bool divide_own; /* first divide own by the number of ranks (see ddp_pre_scales) */
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;   /* the sum is divided by this number; 1 means no division */
    void *landing; /* *landing buffers* for arriving fragments; ddp_p2p_landing_bytes(), aligned to
                      64 */
};
int ddp_p2p_combine(struct ddp_comm *comm, const struct ddp_p2p_combine *c,
                    struct ddp_err *err) DDP_MUST_CHECK;
int ddp_p2p_send_fragments(struct ddp_comm *comm, int dst, const void *out, size_t count,
                           enum ddp_dtype dtype, struct ddp_err *err) DDP_MUST_CHECK;

/* Called by a folded rank (pattern.h). Sends own [args->count], its input in the accumulator type
 * (coll_acc.h), to its neighbour. Receives the result in args->recv. */
int ddp_p2p_fold_in(struct ddp_comm *comm, const struct ddp_coll_args *args, const void *own,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Called by the neighbour of a folded rank. Sends the result in args->recv to the folded rank. */
int ddp_p2p_fold_out(struct ddp_comm *comm, const struct ddp_coll_args *args,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the bytes of two fragments. One fragment arrives while the other is combined. */
static inline size_t ddp_p2p_landing_bytes(size_t in_bytes)
{
    return 2 * DDP_MIN(DDP_FRAGMENT_BYTES, ddp_round_to_line(in_bytes));
}

/* Bytes of memory traffic per byte of data, as costs count them. A message (MOVE) is read by one
 * rank and written by another. Copies inside a backend are not counted. A copy reads one array and
 * writes one. Combining reads two arrays and writes one. */
#define DDP_COST_MOVE    2.0
#define DDP_COST_COPY    2.0
#define DDP_COST_COMBINE 3.0

/* Running sum of the messages and bytes that one rank sends. */
struct ddp_p2p_count {
    double messages, bytes;
};
static inline void ddp_count_message(struct ddp_p2p_count *c, size_t bytes)
{
    c->messages += bytes != 0;
    c->bytes += (double)bytes;
}
static inline void ddp_count_fragments(struct ddp_p2p_count *c, size_t bytes)
{
    c->messages += (double)ddp_fragment_count(bytes);
    c->bytes += (double)bytes;
}
/* Raises cost->messages and cost->sent_bytes to this rank's values, each only if this rank's value
 * is larger. */
static inline void ddp_cost_rank(struct ddp_coll_cost *cost, const struct ddp_p2p_count *c)
{
    cost->messages = DDP_MAX(cost->messages, c->messages);
    cost->sent_bytes = DDP_MAX(cost->sent_bytes, c->bytes);
}

#ifdef __cplusplus
}
#endif
#endif
