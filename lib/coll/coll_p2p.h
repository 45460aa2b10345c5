/* What the algorithms that send messages have in common: exchanges that cannot deadlock, and the
 * terms their costs are counted in. For lib/coll only.
 *
 * An exchange posts its receives before its sends and waits for both, so a cycle of ranks that all
 * do the same gets on whatever the backend buffers. Empty messages are not sent: both sides know
 * the length. Steps that combine cut the data into *pieces*, so that a piece is combined while the
 * next one travels and is still in the cache; pure moves send a part as one message. */
#ifndef DDP_COLL_COLL_P2P_H
#define DDP_COLL_COLL_P2P_H

#include "base/mem.h"
#include "coll/coll.h"
#include "coll/coll_wide.h"
#include "coll/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One tag for all: messages of a pair keep their order, and so do collectives of a communicator. */
#define DDP_COLL_TAG 0x0dd9

/* Largest message of a step that combines. A multiple of every element's size. All-reduce ring in
 * place, 2 ranks on 2 cores (Xeon, AVX-512), medians in microseconds of two runs each:
 *                       16 KiB  32    64    128   256   512
 *   shm, 1 MiB          164     139   136   139   164   155
 *   shm, 64 MiB         14300   12800 12800 13000 13800 15300
 *   Open MPI, 1 MiB     197     131   117   117   117   112
 *   Open MPI, 64 MiB    16800   14700 12700 9250  8400  9200 */
#define DDP_PIECE_BYTES ((size_t)128 << 10)

static inline size_t ddp_piece_count(size_t bytes)
{
    return bytes / DDP_PIECE_BYTES + (bytes % DDP_PIECE_BYTES != 0);
}

static inline size_t ddp_round_to_line(size_t bytes)
{
    return (bytes + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE;
}

/* base + `elements` of `elem` bytes. */
static inline void *ddp_at(const void *base, size_t elements, size_t elem)
{
    return (unsigned char *)base + elements * elem;
}

/* DDP_EUNAVAIL unless the backend has messages, or there is nobody to send them to. */
int ddp_coll_needs_p2p(const struct ddp_comm *comm, const char *name,
                       struct ddp_err *err) DDP_MUST_CHECK;

/* Copies unless it is the same array, or nothing. */
static inline void ddp_coll_copy(const struct ddp_comm *comm, void *dst, const void *src,
                                 size_t bytes)
{
    if (bytes != 0 && dst != src)
        comm->device->copy(dst, src, bytes);
}

/* Averages of 16-bit floats: each input is divided, and rounded, before the first sum, so that no
 * partial sum leaves the type's range where the average does not. Two ranks have no partial sums:
 * their only combine is in f32, and divides there. */
static inline bool ddp_divides_first(enum ddp_dtype dtype, enum ddp_op op, int ranks)
{
    return op == DDP_AVG && (dtype == DDP_F16 || dtype == DDP_BF16) && ranks > 2;
}
/* dst [count] = src [count] / comm->size; dst may be src. */
void ddp_coll_divide(const struct ddp_comm *comm, void *dst, const void *src, size_t count,
                     enum ddp_dtype dtype);

/* out[out_bytes] to dst while in[in_bytes] comes from src, each as one message. They do not
 * overlap. 0 bytes: no message, the rank is not looked at. */
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

/* As above in pieces, and what arrives is combined: sum[i] = own[i] op arriving[i], or the other
 * way round unless own_first; divided by `divisor` if it is not 1. divide_own: own is an input of
 * ddp_divides_first, divided by the ranks before that.
 * out: [out_count], does not overlap sum. own, sum: [in_count]; sum may be own. landing:
 * ddp_p2p_landing_bytes() of the arriving bytes, aligned to 64. The other side must also combine,
 * or call ddp_p2p_send_pieces. */
struct ddp_p2p_combine {
    int dst;
    const void *out;
    size_t out_count;
    int src;
    size_t in_count;
    const void *own;
    void *sum;
    bool own_first, divide_own;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;
    void *landing;
};
int ddp_p2p_combine(struct ddp_comm *comm, const struct ddp_p2p_combine *c,
                    struct ddp_err *err) DDP_MUST_CHECK;
int ddp_p2p_send_pieces(struct ddp_comm *comm, int dst, const void *out, size_t count,
                        enum ddp_dtype dtype, struct ddp_err *err) DDP_MUST_CHECK;

/* Of a rank that is folded in (pattern.h): gives own [args->count], its input in the type it
 * travels in, to its neighbour, and gets the result, args->recv. */
int ddp_p2p_fold_in(struct ddp_comm *comm, const struct ddp_coll_args *args, const void *own,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Of the neighbour: sends it the result. */
int ddp_p2p_fold_out(struct ddp_comm *comm, const struct ddp_coll_args *args,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Two pieces: one arrives while the other is combined. */
static inline size_t ddp_p2p_landing_bytes(size_t in_bytes)
{
    return 2 * DDP_MIN(DDP_PIECE_BYTES, ddp_round_to_line(in_bytes));
}

/* Bytes of memory, read and written, that costs are counted in, each for b bytes of data: a message
 * is read by one rank and written by another (what a backend copies in between is its own affair);
 * a copy reads and writes; combining reads two arrays and writes one. */
#define DDP_COST_MOVE    2.0
#define DDP_COST_COPY    2.0
#define DDP_COST_COMBINE 3.0

/* What one rank sends, while a cost is being counted. */
struct ddp_p2p_count {
    double messages, bytes;
};
static inline void ddp_count_message(struct ddp_p2p_count *c, size_t bytes)
{
    c->messages += bytes != 0;
    c->bytes += (double)bytes;
}
static inline void ddp_count_pieces(struct ddp_p2p_count *c, size_t bytes)
{
    c->messages += (double)ddp_piece_count(bytes);
    c->bytes += (double)bytes;
}
/* cost takes the largest of all ranks, of messages and of bytes each for itself. */
static inline void ddp_cost_rank(struct ddp_coll_cost *cost, const struct ddp_p2p_count *c)
{
    cost->messages = DDP_MAX(cost->messages, c->messages);
    cost->sent_bytes = DDP_MAX(cost->sent_bytes, c->bytes);
}

#ifdef __cplusplus
}
#endif
#endif
