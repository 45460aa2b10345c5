/* Helpers of the algorithms: copies, reductions and exchanges of messages. Only lib/coll uses this
 * header.
 *
 * An exchange posts its receive before its send, and then waits for both. Ranks that exchange in a
 * cycle therefore make progress, no matter how much the backend buffers. Both sides know the length
 * of a message, so empty messages are not sent. If the receiver combines the arriving data, the
 * sender cuts the data into *fragments*. The receiver combines one fragment, which is still in the
 * cache, while the next fragment is in transit. Data that the receiver does not combine is usually
 * sent as one message. However, all-reduce "tree" and "hier", and all-to-all "pairwise" in place,
 * send such data in fragments. Gather and scatter "binomial" sometimes send two messages.
 *
 * coll_cost.c counts the cost of every algorithm of coll_list.h that sends messages, except "hier".
 * For this purpose, coll_cost.c calls run() on a communicator that moves no data. Such an algorithm
 * must therefore access arrays only through the functions of this header. */
#ifndef DDP_COLL_COLL_P2P_H
#define DDP_COLL_COLL_P2P_H

#include "base/mem.h"
#include "coll/coll.h"
#include "coll/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tag of all messages of lib/coll, except the fragments of all-reduce "hier"
 * (allreduce_hier.c). One tag is enough, because messages between two ranks stay in order and all
 * ranks run the same collectives in the same order. */
#define DDP_COLL_TAG 0x0dd9

/* Largest size of a fragment in bytes, a multiple of every element size. The size is chosen for
 * shared memory, although Open MPI is faster with larger messages
 * (results/notes/collectives.md). */
#define DDP_FRAGMENT_BYTES ((size_t)128 << 10)

static inline size_t ddp_fragment_count(size_t bytes)
{
    return bytes / DDP_FRAGMENT_BYTES + (bytes % DDP_FRAGMENT_BYTES != 0);
}

/* Returns the address of element number `elements` of an array whose elements have `elem` bytes. */
static inline void *ddp_at(const void *base, size_t elements, size_t elem)
{
    return (unsigned char *)base + elements * elem;
}

/* Returns the size of args->count elements in bytes. */
static inline size_t ddp_coll_array_bytes(const struct ddp_coll_args *args)
{
    return args->count * ddp_dtype_size(args->dtype);
}

/* Returns DDP_EUNAVAIL if the group has several ranks and the backend cannot send messages. `name`
 * is the algorithm's name for the error message. */
int ddp_coll_needs_p2p(const struct ddp_comm *comm, const char *name,
                       struct ddp_err *err) DDP_MUST_CHECK;

/* The backend of a communicator that counts messages and moves no data (coll_cost.c). comm->state
 * points to a double that adds up the bytes of memory traffic. */
extern const struct ddp_backend ddp_backend_counting;

/* If the communicator has the counting backend, adds `bytes` to its memory traffic and returns
 * true. */
static inline bool ddp_coll_counts(const struct ddp_comm *comm, double bytes)
{
    if (comm->backend != &ddp_backend_counting)
        return false;
    *(double *)comm->state += bytes;
    return true;
}

/* Copies `bytes` bytes. Does nothing if `bytes` is 0 or dst == src. If `past_cache` is true, uses
 * non-temporal stores (ddp_coll_past_cache in coll_shm.h). */
static inline void ddp_coll_copy(const struct ddp_comm *comm, void *dst, const void *src,
                                 size_t bytes, bool past_cache)
{
    if (bytes == 0 || dst == src || ddp_coll_counts(comm, 2 * (double)bytes))
        return;
    if (past_cache)
        comm->device->copy_nt(dst, src, bytes);
    else
        comm->device->copy(dst, src, bytes);
}

/* Returns the divisor for the call of reduce() that completes the values: the number of ranks for
 * an average, and 1 for the other operations. */
static inline int ddp_coll_divisor(const struct ddp_comm *comm, enum ddp_op op)
{
    return op == DDP_AVG ? comm->size : 1;
}

/* The arithmetic of a reduction whose partial results are sent. ddp_reduction_of() returns it for a
 * call on `ranks` ranks.
 *
 * An average of integers of at most 32 bits is the exact sum, divided and truncated once. The sum
 * over the ranks may not fit the type of the values. Partial sums of such averages are therefore
 * computed and sent in a wider *accumulator type*: f64 for 32 bits (exact below 2^53) and i32 for 8
 * bits. All other operations and types use the type of the data. The sum of an average of 64-bit
 * integers may therefore wrap around.
 *
 * *Narrow floats* have 16 or 8 bits. In an average of narrow floats over more than 2 ranks, each
 * input is divided before the first sum, because a partial sum could overflow although the average
 * does not. The division rounds each input. With two ranks the inputs are not divided, because the
 * only combine adds and divides in f32. */
struct ddp_reduction {
    /* dtype: type of the data; acc_dtype: type of partial results */
    enum ddp_dtype dtype, acc_dtype;
    enum ddp_op op;
    size_t elem, acc_elem; /* bytes of an element of each type */
    bool wider_acc;        /* dtype and acc_dtype differ, so inputs and results are converted */
    bool pre_scale;        /* inputs are divided by the number of ranks */
    int divisor;           /* the last combine divides by this number; 1 means no division */
    void *landing;         /* landing buffers of ddp_p2p_combine, set by the algorithm */
};
struct ddp_reduction ddp_reduction_of(int ranks, enum ddp_dtype dtype, enum ddp_op op);

/* Returns the input of the first combine. If inputs are neither converted nor divided, returns src
 * [count]. Otherwise the function stores the converted or divided values in `to` [count of
 * acc_dtype] and returns `to`. If nothing is converted, `to` may be equal to src. */
const void *ddp_reduction_input(const struct ddp_comm *comm, const struct ddp_reduction *reduction,
                                void *to, const void *src, size_t count);
/* Does nothing if results are not converted (wider_acc is false). Otherwise truncates the averages
 * src [count of acc_dtype] toward zero and stores them in dst [count]. The arrays must not overlap.
 */
void ddp_reduction_output(const struct ddp_comm *comm, const struct ddp_reduction *reduction,
                          void *dst, const void *src, size_t count);
/* Combines the arrays src[0] to src[src_count - 1], each with `count` elements of acc_dtype, into
 * dst. If `last` is true, also divides by reduction->divisor. */
void ddp_reduction_combine(const struct ddp_comm *comm, const struct ddp_reduction *reduction,
                           void *dst, const void *const *src, int src_count, size_t count,
                           bool last);

/* One exchange. It sends `out` [out_bytes] to rank `dst` and receives `in` [in_bytes] from rank
 * `src`, each as one message. The arrays must not overlap. If a size is 0, there is no message in
 * that direction and the rank number is ignored. */
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
 * arriving[i]. The arrays have elements of acc_dtype. Rank `src` must send with ddp_p2p_combine or
 * ddp_p2p_send_fragments. Rank `dst` must receive with ddp_p2p_combine. */
struct ddp_p2p_combine {
    int dst;
    const void *out; /* [out_count], must not overlap sum */
    size_t out_count;
    int src;
    size_t in_count;
    const void *own; /* [in_count] */
    void *sum;       /* [in_count], may be own */
    bool own_first;  /* false: arriving[i] is the first operand */
    bool divide_own; /* `own` is an input; if pre_scale is set, it is divided first */
    bool last;       /* these elements are complete after this combine */
    /* reduction->landing receives the fragments. It has ddp_p2p_landing_bytes(bytes of `sum`) bytes
     * and is aligned to 64. It is not used if in_count is 0. */
    const struct ddp_reduction *reduction;
};
int ddp_p2p_combine(struct ddp_comm *comm, const struct ddp_p2p_combine *c,
                    struct ddp_err *err) DDP_MUST_CHECK;
int ddp_p2p_send_fragments(struct ddp_comm *comm, const struct ddp_reduction *reduction, int dst,
                           const void *out, size_t count, struct ddp_err *err) DDP_MUST_CHECK;

/* Called by a folded rank (pattern.h). Sends `own` [args->count], the rank's input in the
 * accumulator type, to the next rank. Then receives the result in args->recv. */
int ddp_p2p_fold_in(struct ddp_comm *comm, const struct ddp_reduction *reduction,
                    const struct ddp_coll_args *args, const void *own,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Called by the rank after a folded rank. Sends the result in args->recv to the folded rank. */
int ddp_p2p_fold_out(struct ddp_comm *comm, const struct ddp_coll_args *args,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the size of the landing buffers for an array of in_bytes bytes. There are two buffers,
 * because one fragment arrives while the other is combined. */
static inline size_t ddp_p2p_landing_bytes(size_t in_bytes)
{
    return 2 * DDP_MIN(DDP_FRAGMENT_BYTES, ddp_round_to_line(in_bytes));
}

/* Bytes of memory traffic per byte of data in the cost model. MOVE is for a message, which one rank
 * reads and another rank writes. Copies inside a backend are not counted. A copy reads one array
 * and writes one. Combining reads two arrays and writes one. */
#define DDP_COST_MOVE    2.0
#define DDP_COST_COPY    2.0
#define DDP_COST_COMBINE 3.0

/* Functions for the member `path` of struct ddp_coll_alg. ddp_path_log sets steps to ceil(log2 n),
 * and ddp_path_ring to n - 1. */
void ddp_path_log(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost);
void ddp_path_ring(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
