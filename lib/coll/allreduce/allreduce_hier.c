/* All-reduce "hier": shared memory inside a host, and messages between the *leaders*. The leader is
 * the lowest rank of a host.
 *
 * The message is cut into *fragments*. Each fragment passes through four stages:
 *   in      Every rank copies its input to its *slot* in the host's shared memory and posts IN. In
 *           registered memory nothing is copied, because the other ranks can read the input.
 *           Averages of integers of at most 32 bits are an exception: their inputs are always
 *           copied, because these inputs are converted to a wider type.
 *   sum     Every rank combines its *chunk* of the fragment from all inputs of its host, in rank
 *           order. It stores the sum in the leader's *result buffer* and posts SUM.
 *   leaders The leaders all-reduce their result buffers by messages (below) and post RESULT.
 *   out     Every rank copies the result buffer to its recv buffer and posts OUT.
 * In private memory the result buffer is the leader's slot. The sum of a chunk overwrites the
 * leader's input of this chunk, which only the summing rank reads. In registered memory the result
 * buffer is the fragment's place in the leader's recv buffer.
 *
 * The stages form a pipeline. Step i does in(i), sum(i-1) and out(i-LAG), where LAG is HIER_DEPTH -
 * 1. Several fragments can be in transit between the leaders at the same time. A leader advances
 * its messages whenever it waits.
 *
 * Fragment k + HIER_DEPTH uses the slot of fragment k again. Before that, the rank that owns the
 * slot has done out(k). The result of fragment k then exists, so all ranks of the host have read
 * the slots of fragment k. The leader also waits until all other ranks of the host have done
 * out(k), because the leader's slot is the result buffer.
 *
 * Inside a host, inputs are combined in rank order. The sums of the hosts are combined around a
 * ring of the hosts, or in the order of the hosts if the message is spread (below). Each element is
 * computed on one leader, or on all leaders in the same order, so all ranks get the same bits. An
 * average is divided once. With one host, the sum over the host divides. With several hosts, the
 * last combine between hosts divides, except for averages of narrow floats. For these averages, the
 * sum over each host divides before it is rounded, so that no partial sum overflows. Narrow floats
 * are rounded once in the sum over a host, and H - 1 times between hosts (once if spread). Averages
 * of integers of at most 32 bits are exact, because sums are sent in a wider type (coll_p2p.h).
 *
 * Cost for S bytes in m fragments on n ranks and H hosts. S' is the size of the message in the
 * accumulator type. It equals S except for averages of integers of at most 32 bits. Steps: 2 inside
 * a host, and m - 1 for the pipeline. If H > 1, there are 2(H-1) steps between hosts (1 if spread)
 * and 1 more inside a host. In total a leader sends 2(H-1)/H S' bytes, and 2(H-1) messages for each
 * fragment. If the message is spread, a leader sends (H-1) S' bytes in H - 1 messages. Other ranks
 * send nothing. Memory traffic: the stage `in` moves n(S + S') bytes, `sum` (n + H) S', and `out`
 * n(S' + S). In registered memory nothing is copied in `in`, and only the n - H ranks that are not
 * leaders copy in `out`. The messages and combines of the leaders need memory traffic in
 * addition. */
#include "base/dtype_info.h"
#include "coll/coll_shm.h"
#include "comm/hosts.h"
#include "comm/waiter.h"

/* The functions from here to hier_spread run the all-reduce among the leaders. Only hier_spread
 * blocks.
 *
 * A leader starts a fragment when the fragment's sum over the host is ready. The fragment is then
 * cut into one *host chunk* per host, and the host chunks go around a ring of the leaders
 * (pattern.h). For H hosts, the ring takes H - 1 combining and H - 1 copying steps. Up to
 * HIER_DEPTH fragments are in transit at the same time. Each of these has its own message tag, so
 * that fragments do not wait for each other.
 *
 * A short message is *spread* instead. In one step every leader sends its whole message to all
 * other leaders. Each leader then combines the messages in the order of the hosts. */

/* HIER_FRAGMENT_BYTES: size of a fragment, whose elements have the accumulator type (coll_p2p.h).
 * HIER_DEPTH: largest number of fragments in transit. The slots of a rank are its ring buffer
 * (ddp_shm_ring_of), which has room for HIER_DEPTH fragments. */
#define HIER_FRAGMENT_BYTES ((size_t)256 << 10)
#define HIER_DEPTH          8
/* A message is spread if there are at most HIER_SPREAD_HOSTS hosts, and a leader would send at most
 * HIER_SPREAD_BYTES in total. */
#define HIER_SPREAD_BYTES ((size_t)32 << 10)
#define HIER_SPREAD_HOSTS 64

/* A fragment in transit. */
struct hier_fragment {
    unsigned char *data;
    size_t count; /* elements */
    int step;     /* 0 .. 2(H - 1) */
    bool open;    /* started and not finished */
    struct ddp_request send, recv;
};

/* The state of one all-reduce between leaders. */
struct hier {
    struct ddp_comm *comm;
    const int *leader; /* [hosts]: rank of each leader in comm */
    int hosts, me;     /* `me`: index of this rank in `leader` */
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;            /* the last combine divides by this number */
    unsigned char *scratch; /* hier_scratch_bytes() bytes, aligned to 64 */
    /* `begun`: number of fragments started. `finished`: number of fragments before the first
     * unfinished fragment. */
    size_t begun, finished;
    struct hier_fragment fragment[HIER_DEPTH];
};

/* Returns the number of elements of every fragment except the last. `dtype` is the accumulator
 * type. */
static inline size_t hier_fragment_count(enum ddp_dtype dtype)
{
    return HIER_FRAGMENT_BYTES / ddp_dtype_size(dtype);
}
static inline bool hier_spreads(int hosts, size_t bytes)
{
    return hosts > 1 && hosts <= HIER_SPREAD_HOSTS &&
           bytes * (size_t)(hosts - 1) <= HIER_SPREAD_BYTES;
}
/* Returns the rank in comm of the leader that is `distance` hosts after this rank's host. */
static int neighbour(const struct hier *x, int distance)
{
    return x->leader[ddp_rank_at(x->me, distance, x->hosts)];
}

static int tag_of(size_t index)
{
    return DDP_COLL_TAG + 1 + (int)(index % HIER_DEPTH);
}

static struct ddp_chunks chunks_of(const struct hier *x, const struct hier_fragment *fragment)
{
    return (struct ddp_chunks){.count = fragment->count, .n = x->hosts};
}

/* Returns the bytes of the longest host chunk of a fragment, rounded up to cache lines. */
static size_t chunk_stride(int hosts, size_t count, enum ddp_dtype dtype)
{
    const struct ddp_chunks chunks = {.count = DDP_MIN(count, hier_fragment_count(dtype)),
                                      .n = hosts};
    return ddp_round_to_line(ddp_chunk_count(&chunks, 0) * ddp_dtype_size(dtype));
}

static size_t leader_scratch_bytes(int hosts, size_t count, enum ddp_dtype dtype)
{
    const size_t bytes = count * ddp_dtype_size(dtype);
    if (hosts == 1)
        return 0;
    if (hier_spreads(hosts, bytes))
        return (size_t)(hosts - 1) * ddp_round_to_line(bytes);
    return HIER_DEPTH * chunk_stride(hosts, count, dtype);
}

static void *landing_of(const struct hier *x, size_t index)
{
    return x->scratch + index % HIER_DEPTH * chunk_stride(x->hosts, SIZE_MAX, x->dtype);
}

/* chunk_given returns the host chunk that this leader sends in step 0 .. 2(H - 1) - 1. chunk_taken
 * returns the host chunk that this leader receives in this step. */
static int chunk_given(const struct hier *x, int step)
{
    const int turns = x->hosts - 1;
    return step < turns ? ddp_ring_chunk_summed(x->me, step, x->hosts)
                        : ddp_ring_chunk_copied(x->me, step - turns, x->hosts);
}
static int chunk_taken(const struct hier *x, int step)
{
    const int turns = x->hosts - 1;
    return step < turns ? ddp_ring_chunk_summed(x->me, step + 1, x->hosts)
                        : ddp_ring_chunk_copied(x->me, step - turns + 1, x->hosts);
}

static int post_step(struct hier *x, size_t index, struct ddp_err *err)
{
    struct hier_fragment *fragment = &x->fragment[index % HIER_DEPTH];
    const struct ddp_chunks chunks = chunks_of(x, fragment);
    const size_t elem = ddp_dtype_size(x->dtype);
    const int give = chunk_given(x, fragment->step), take = chunk_taken(x, fragment->step);
    const bool combines = fragment->step < x->hosts - 1;
    void *in = combines ? landing_of(x, index)
                        : ddp_at(fragment->data, ddp_chunk_begin(&chunks, take), elem);

    if (ddp_chunk_count(&chunks, take) != 0)
        DDP_TRY(ddp_comm_irecv(x->comm, neighbour(x, -1), tag_of(index), in,
                               ddp_chunk_count(&chunks, take) * elem, &fragment->recv, err));
    if (ddp_chunk_count(&chunks, give) != 0)
        DDP_TRY(ddp_comm_isend(x->comm, neighbour(x, 1), tag_of(index),
                               ddp_at(fragment->data, ddp_chunk_begin(&chunks, give), elem),
                               ddp_chunk_count(&chunks, give) * elem, &fragment->send, err));
    return 0;
}

/* Combines the arrived host chunk with this host's sum. The arrived host chunk is a sum over the
 * hosts before this host in the ring. */
static void combine_step(struct hier *x, size_t index)
{
    const struct hier_fragment *fragment = &x->fragment[index % HIER_DEPTH];
    const struct ddp_chunks chunks = chunks_of(x, fragment);
    const int take = chunk_taken(x, fragment->step);
    void *own = ddp_at(fragment->data, ddp_chunk_begin(&chunks, take), ddp_dtype_size(x->dtype));
    const struct ddp_reduce reduce = {
        .dst = &own,
        .dst_count = 1,
        .src = (const void *[]){landing_of(x, index), own},
        .src_count = 2,
        .count = ddp_chunk_count(&chunks, take),
        .dtype = x->dtype,
        .op = x->op,
        .divisor = fragment->step == x->hosts - 2 ? x->divisor : 1,
    };
    if (reduce.count != 0)
        x->comm->device->reduce(&reduce);
}

/* Starts the all-reduce of the next fragment, `data` [count], in place. Fewer than HIER_DEPTH
 * fragments must be in transit. */
static int hier_begin(struct hier *x, void *data, size_t count, struct ddp_err *err)
{
    struct hier_fragment *fragment = &x->fragment[x->begun % HIER_DEPTH];
    *fragment = (struct hier_fragment){.data = data, .count = count, .open = x->hosts > 1};
    x->begun++;
    return fragment->open ? post_step(x, x->begun - 1, err) : 0;
}

/* Advances one fragment as far as possible. */
static int advance_fragment(struct hier *x, size_t index, bool *moved, struct ddp_err *err)
{
    struct hier_fragment *fragment = &x->fragment[index % HIER_DEPTH];
    while (fragment->open) {
        bool sent, received;
        DDP_TRY(ddp_comm_test(x->comm, &fragment->recv, &received, err));
        DDP_TRY(ddp_comm_test(x->comm, &fragment->send, &sent, err));
        if (!received || !sent)
            break;
        *moved = true;
        if (fragment->step < x->hosts - 1)
            combine_step(x, index);
        fragment->step++;
        if (fragment->step == 2 * (x->hosts - 1))
            fragment->open = false;
        else
            DDP_TRY(post_step(x, index, err));
    }
    return 0;
}

/* Advances every fragment that can advance. Sets *moved to true if a fragment has advanced. */
static int hier_advance(struct hier *x, bool *moved, struct ddp_err *err)
{
    for (size_t i = x->finished; i < x->begun; i++)
        DDP_TRY(advance_fragment(x, i, moved, err));
    while (x->finished < x->begun && !x->fragment[x->finished % HIER_DEPTH].open) {
        x->finished++;
        *moved = true;
    }
    return 0;
}

/* Returns the rank that the oldest fragment waits for, or -1 if no fragment is in transit. */
static int hier_waits_for(const struct hier *x)
{
    if (x->finished == x->begun)
        return -1;
    const struct hier_fragment *oldest = &x->fragment[x->finished % HIER_DEPTH];
    return neighbour(x, oldest->recv.active ? -1 : 1);
}

/* Exchanges and combines the only fragment of a spread message. Blocks. */
static int hier_spread(struct hier *x, void *data, size_t count, struct ddp_err *err)
{
    const size_t bytes = count * ddp_dtype_size(x->dtype), stride = ddp_round_to_line(bytes);
    struct ddp_request req[2 * (HIER_SPREAD_HOSTS - 1)];
    const void *src[HIER_SPREAD_HOSTS];
    int n = 0;

    for (int h = 0, slot = 0; h < x->hosts; h++) {
        src[h] = h == x->me ? data : x->scratch + (size_t)slot * stride;
        if (h == x->me)
            continue;
        DDP_TRY(ddp_comm_irecv(x->comm, x->leader[h], DDP_COLL_TAG,
                               x->scratch + (size_t)slot++ * stride, bytes, &req[n++], err));
    }
    for (int i = 1; i < x->hosts; i++)
        DDP_TRY(
            ddp_comm_isend(x->comm, neighbour(x, i), DDP_COLL_TAG, data, bytes, &req[n++], err));
    DDP_TRY(ddp_comm_wait(x->comm, req, n, err));
    const struct ddp_reduce reduce = {
        .dst = &data,
        .dst_count = 1,
        .src = src,
        .src_count = x->hosts,
        .count = count,
        .dtype = x->dtype,
        .op = x->op,
        .divisor = x->divisor,
    };
    x->comm->device->reduce(&reduce);
    x->begun = x->finished = 1;
    return 0;
}

#define LAG (HIER_DEPTH - 1)

_Static_assert(HIER_DEPTH *HIER_FRAGMENT_BYTES == DDP_SHM_RING_SLOTS * DDP_SHM_RING_BYTES,
               "the fragments of a rank fill its ring buffer");

/* The state of one call on this rank. */
struct hier_call {
    struct ddp_comm *comm, *local;
    const struct ddp_coll_args *args;
    struct ddp_reduction reduction;
    size_t fragment, fragments;    /* fragment: elements per fragment */
    bool mapped, leads, spreads;   /* mapped: the ranks read each other's send buffers */
    int divisor;                   /* the sum over a host divides by this number */
    uint64_t in, sum, result, out; /* sequence numbers of the flags before fragment 0 */
    /* If `mapped` is true: the send buffers of the host's ranks, and the leader's recv buffer. */
    const unsigned char *input[DDP_REDUCE_MAX];
    unsigned char *result_buffer;
    struct hier between;
};

static int hier_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    const struct ddp_hosts *hosts = comm->hosts;
    (void)shape;
    if (hosts == NULL)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm 'hier' needs to know the hosts of the ranks, but backend '%s' "
                        "does not find them",
                        comm->backend->name);
    if (hosts->local == NULL)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm 'hier' needs hosts whose ranks share memory: %s", hosts->why);
    if (hosts->count == comm->size)
        return ddp_fail(
            err, DDP_EUNAVAIL,
            "algorithm 'hier' needs several ranks on a host, but each rank is alone on its host");
    return hosts->count > 1 ? ddp_coll_needs_p2p(comm, "hier", err) : 0;
}

static size_t hier_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    if (comm->hosts->local->rank != 0)
        return 0;
    return leader_scratch_bytes(comm->hosts->count, shape->count, reduction.acc_dtype);
}

/* Returns the number of elements of fragment k. */
static size_t elements(const struct hier_call *call, size_t k)
{
    return DDP_MIN(call->fragment, call->args->count - k * call->fragment);
}

static unsigned char *slot_of(const struct hier_call *call, int rank, size_t k)
{
    return ddp_shm_ring_of(call->local->shm, rank, 0) + k % HIER_DEPTH * HIER_FRAGMENT_BYTES;
}
static const unsigned char *input_of(const struct hier_call *call, int rank, size_t k)
{
    return call->mapped ? call->input[rank] + k * call->fragment * call->reduction.elem
                        : slot_of(call, rank, k);
}
static unsigned char *result_buffer_of(const struct hier_call *call, size_t k)
{
    return call->mapped ? call->result_buffer + k * call->fragment * call->reduction.elem
                        : slot_of(call, 0, k);
}

static bool has_reached(const struct hier_call *call, int rank, int flag_slot, uint64_t sequence)
{
    return atomic_load_explicit(&ddp_shm_flag_slot_of(call->local->shm, rank, flag_slot)->sequence,
                                memory_order_acquire) >= sequence;
}

/* True if all ranks of the host have summed their chunk of fragment k. */
static bool is_summed(const struct hier_call *call, size_t k)
{
    for (int r = 0; r < call->local->size; r++)
        if (!has_reached(call, r, DDP_FLAGS_HIER_SUM, call->sum + k + 1))
            return false;
    return true;
}

/* Only the leader calls this function. Starts the fragments whose sums are ready, advances the
 * fragments in transit, and raises the flag RESULT for the finished fragments. */
static int advance(struct hier_call *call, bool *moved, struct ddp_err *err)
{
    struct hier *x = &call->between;
    const size_t finished = x->finished;
    while (x->begun < call->fragments && x->begun - x->finished < HIER_DEPTH &&
           is_summed(call, x->begun)) {
        DDP_TRY(hier_begin(x, result_buffer_of(call, x->begun), elements(call, x->begun), err));
        *moved = true;
    }
    DDP_TRY(hier_advance(x, moved, err));
    if (x->finished != finished)
        ddp_shm_post(call->local, DDP_FLAGS_HIER_RESULT, call->result + x->finished);
    return 0;
}

/* The leader calls this function when the deadline of its wait has passed. Fails with the error
 * that another rank is lost. The lost rank is the leader for which the oldest fragment waits or, if
 * no fragment is in transit, rank `rank` of this host. */
static int expired(struct hier_call *call, int rank, struct ddp_err *err)
{
    const int leader = hier_waits_for(&call->between);
    if (leader >= 0)
        return ddp_wait_expired(call->comm, call->comm->world_rank[leader], err);
    return ddp_wait_expired(call->local, call->local->world_rank[rank], err);
}

/* Only the leader calls this function. Waits, and advances the leader's messages during the wait.
 * If rank >= 0, waits until the flag of `rank` in `flag_slot` has reached `sequence`. If rank < 0,
 * waits until `sequence` fragments are finished. */
static int wait_busily(struct hier_call *call, int rank, int flag_slot, uint64_t sequence,
                       struct ddp_err *err)
{
    struct ddp_waiter waiter;
    ddp_waiter_init(&waiter, call->local);
    for (;;) {
        bool moved = false;
        if (rank < 0 ? call->between.finished >= sequence
                     : has_reached(call, rank, flag_slot, sequence))
            return 0;
        DDP_TRY(advance(call, &moved, err));
        if (moved) {
            ddp_waiter_init(&waiter, call->local);
            continue;
        }
        switch (ddp_waiter_step(&waiter)) {
        case DDP_WAIT_ON:
            break;
        case DDP_WAIT_ABORTED:
            return ddp_wait_aborted(call->local, err);
        case DDP_WAIT_EXPIRED:
            return expired(call, DDP_MAX(rank, 0), err);
        }
    }
}

static int wait_for(struct hier_call *call, int rank, int flag_slot, uint64_t sequence,
                    struct ddp_err *err)
{
    if (call->leads)
        return wait_busily(call, rank, flag_slot, sequence, err);
    return ddp_shm_wait(call->local, rank, flag_slot, sequence, err);
}

static int wait_for_all(struct hier_call *call, int flag_slot, uint64_t sequence,
                        struct ddp_err *err)
{
    const int n = call->local->size;
    for (int i = 1; i < n; i++)
        DDP_TRY(wait_for(call, ddp_rank_at(call->local->rank, i, n), flag_slot, sequence, err));
    return 0;
}

/* Waits until all ranks of the host have entered this call. No rank then reads slots of the
 * previous call any more, and all inputs are ready. */
static int enter(struct hier_call *call, struct ddp_err *err)
{
    struct ddp_comm_shm *shm = call->local->shm;
    call->in = ++shm->sequence[DDP_FLAGS_HIER_IN];
    call->sum = shm->sequence[DDP_FLAGS_HIER_SUM];
    call->result = shm->sequence[DDP_FLAGS_HIER_RESULT];
    call->out = shm->sequence[DDP_FLAGS_HIER_OUT];
    ddp_shm_post(call->local, DDP_FLAGS_HIER_IN, call->in);
    return wait_for_all(call, DDP_FLAGS_HIER_IN, call->in, err);
}

static void leave(const struct hier_call *call)
{
    struct ddp_comm_shm *shm = call->local->shm;
    if (!call->mapped)
        shm->sequence[DDP_FLAGS_HIER_IN] = call->in + call->fragments;
    shm->sequence[DDP_FLAGS_HIER_SUM] = call->sum + call->fragments;
    shm->sequence[DDP_FLAGS_HIER_RESULT] = call->result + call->fragments;
    shm->sequence[DDP_FLAGS_HIER_OUT] = call->out + call->fragments;
}

static int stage_in(struct hier_call *call, size_t k, struct ddp_err *err)
{
    const void *send = ddp_at(call->args->send, k * call->fragment, call->reduction.elem);
    void *slot = slot_of(call, call->local->rank, k);
    if (call->mapped)
        return 0;
    if (call->leads && k >= HIER_DEPTH)
        DDP_TRY(wait_for_all(call, DDP_FLAGS_HIER_OUT, call->out + k - HIER_DEPTH + 1, err));
    const void *own =
        ddp_reduction_input(call->comm, &call->reduction, slot, send, elements(call, k));
    ddp_coll_copy(call->comm, slot, own, elements(call, k) * call->reduction.elem, false);
    ddp_shm_post(call->local, DDP_FLAGS_HIER_IN, call->in + k + 1);
    return 0;
}

static int stage_sum(struct hier_call *call, size_t k, struct ddp_err *err)
{
    const struct ddp_comm *local = call->local;
    const size_t elem = call->reduction.acc_elem, bytes = elements(call, k) * elem;
    unsigned char *result_buffer = result_buffer_of(call, k);
    const size_t begin =
        ddp_direct_chunk_begin(result_buffer, bytes, elem, local->rank, local->size);
    const size_t end =
        ddp_direct_chunk_begin(result_buffer, bytes, elem, local->rank + 1, local->size);
    const void *src[DDP_REDUCE_MAX];
    void *dst = result_buffer + begin;

    if (!call->mapped)
        DDP_TRY(wait_for_all(call, DDP_FLAGS_HIER_IN, call->in + k + 1, err));
    for (int r = 0; r < local->size; r++)
        src[r] = input_of(call, r, k) + begin;
    struct ddp_reduce reduce;
    ddp_reduce_all(&reduce, local, call->args, &dst, src, (end - begin) / elem);
    reduce.dtype = call->reduction.acc_dtype;
    reduce.divisor = call->divisor;
    if (reduce.count != 0)
        local->device->reduce(&reduce);
    ddp_shm_post(call->local, DDP_FLAGS_HIER_SUM, call->sum + k + 1);
    return 0;
}

/* Only the leader calls this function. Exchanges the only fragment of a message that is spread. */
static int exchange_short(struct hier_call *call, struct ddp_err *err)
{
    for (int r = 1; r < call->local->size; r++)
        DDP_TRY(ddp_shm_wait(call->local, r, DDP_FLAGS_HIER_SUM, call->sum + 1, err));
    DDP_TRY(hier_spread(&call->between, result_buffer_of(call, 0), call->args->count, err));
    ddp_shm_post(call->local, DDP_FLAGS_HIER_RESULT, call->result + 1);
    return 0;
}

static int stage_out(struct hier_call *call, size_t k, struct ddp_err *err)
{
    const unsigned char *result_buffer = result_buffer_of(call, k);
    void *recv = ddp_at(call->args->recv, k * call->fragment, call->reduction.elem);
    if (call->leads && call->spreads)
        DDP_TRY(exchange_short(call, err));
    else if (call->leads)
        DDP_TRY(wait_busily(call, -1, 0, k + 1, err));
    else
        DDP_TRY(wait_for(call, 0, DDP_FLAGS_HIER_RESULT, call->result + k + 1, err));
    if (call->reduction.wider_acc)
        ddp_reduction_output(call->comm, &call->reduction, recv, result_buffer, elements(call, k));
    else
        ddp_coll_copy(call->comm, recv, result_buffer, elements(call, k) * call->reduction.elem,
                      false);
    ddp_shm_post(call->local, DDP_FLAGS_HIER_OUT, call->out + k + 1);
    return 0;
}

/* The stages cannot deadlock. Consider the rank that is furthest back, in step i. All other ranks
 * are at step i or later. The stages `in` and `sum` of this rank wait for in(i-1) or
 * out(i-HIER_DEPTH) of other ranks, which belong to step i-1. The stage `out` waits for the
 * leaders' result of fragment i-LAG. All hosts have already done `sum` for this fragment, and the
 * leaders advance its messages while they wait. */
static int run_fragments(struct hier_call *call, struct ddp_err *err)
{
    for (size_t i = 0; i < call->fragments + LAG; i++) {
        if (i < call->fragments)
            DDP_TRY(stage_in(call, i, err));
        if (i >= 1 && i - 1 < call->fragments)
            DDP_TRY(stage_sum(call, i - 1, err));
        if (i >= LAG)
            DDP_TRY(stage_out(call, i - LAG, err));
    }
    /* Other ranks read the leader's result buffer, so the leader waits until they have finished.
     * The other ranks need not wait, because a result exists only after all inputs have been read.
     */
    return call->leads ? wait_for_all(call, DDP_FLAGS_HIER_OUT, call->out + call->fragments, err)
                       : 0;
}

/* Sets call->mapped to true if the arrays lie in registered memory and are not converted. Then
 * looks up the addresses of the inputs and of the result buffer. */
static void find_mapped(struct hier_call *call)
{
    const struct ddp_coll_args *args = call->args;
    const size_t last = args->count * call->reduction.elem - 1;
    struct ddp_comm *local = call->local;
    call->mapped = !call->reduction.wider_acc;
    for (int end = 0; end < 2 && call->mapped; end++)
        call->mapped =
            ddp_comm_map(local, local->rank, ddp_at(args->send, end * last, 1)) != NULL &&
            ddp_comm_map(local, local->rank, ddp_at(args->recv, end * last, 1)) != NULL;
    for (int r = 0; r < local->size && call->mapped; r++)
        call->input[r] = ddp_comm_map(local, r, args->send);
    if (call->mapped)
        call->result_buffer = ddp_comm_map(local, 0, args->recv);
}

static int hier_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    const struct ddp_hosts *hosts = comm->hosts;
    const int divisor = ddp_coll_divisor(comm, args->op);
    const bool inside = hosts->count == 1 || ddp_dtype_is_narrow(args->dtype);
    struct hier_call call = {
        .comm = comm,
        .local = hosts->local,
        .args = args,
        .reduction = ddp_reduction_of(comm->size, args->dtype, args->op),
        .leads = hosts->local->rank == 0,
        .divisor = inside ? divisor : 1,
        .between = {.comm = comm,
                    .leader = hosts->leader,
                    .hosts = hosts->count,
                    .me = hosts->mine,
                    .op = args->op,
                    .divisor = inside ? 1 : divisor,
                    .scratch = scratch},
    };

    /* Inputs are never divided. The sum over a host or the last combine between hosts divides. */
    call.reduction.pre_scale = false;
    call.between.dtype = call.reduction.acc_dtype;
    call.fragment = hier_fragment_count(call.between.dtype);
    call.fragments = args->count / call.fragment + (args->count % call.fragment != 0);
    call.spreads = hier_spreads(hosts->count, args->count * call.reduction.acc_elem);
    find_mapped(&call);
    DDP_TRY(enter(&call, err));
    DDP_TRY(run_fragments(&call, err));
    leave(&call);
    return 0;
}

/* Adds to *cost the messages and bytes that leader `me` sends for `times` fragments, each of
 * `count` elements of `elem` bytes. */
static void count_fragment(int hosts, int me, size_t count, size_t elem, double times,
                           struct ddp_coll_cost *cost)
{
    const struct hier x = {.hosts = hosts, .me = me};
    const struct ddp_chunks chunks = {.count = count, .n = hosts};

    for (int step = 0; step < 2 * (hosts - 1); step++) {
        const size_t bytes = ddp_chunk_count(&chunks, chunk_given(&x, step)) * elem;
        cost->messages += times * (bytes != 0);
        cost->sent_bytes += times * (double)bytes;
    }
}

static void hier_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    const size_t acc_elem = reduction.acc_elem, fragment = hier_fragment_count(reduction.acc_dtype);
    const int hosts = DDP_MAX(shape->hosts, 1);
    const double n = ranks, h = hosts;
    const double bytes = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const double acc_bytes = (double)shape->count * (double)acc_elem;
    const bool mapped = shape->registered && !reduction.wider_acc;
    const bool spreads = hier_spreads(hosts, shape->count * acc_elem);
    const size_t whole = shape->count / fragment;
    const size_t fragments = whole + (shape->count % fragment != 0);

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = 1 + (double)DDP_MAX(fragments, 1)};
    if (hosts > 1)
        cost->steps += 1 + (spreads ? 1 : 2 * (h - 1));
    if (spreads) {
        cost->messages = shape->count != 0 ? h - 1 : 0;
        cost->sent_bytes = (h - 1) * acc_bytes;
    }
    for (int me = 0; me < hosts && !spreads; me++) {
        struct ddp_coll_cost one = {.messages = 0};
        count_fragment(hosts, me, fragment, acc_elem, (double)whole, &one);
        count_fragment(hosts, me, shape->count % fragment, acc_elem, 1, &one);
        cost->messages = DDP_MAX(cost->messages, one.messages);
        cost->sent_bytes = DDP_MAX(cost->sent_bytes, one.sent_bytes);
    }
    cost->memory_bytes = (n + h) * acc_bytes;
    cost->memory_bytes += mapped ? (n - h) * DDP_COST_COPY * bytes : 2 * n * (bytes + acc_bytes);
    if (spreads)
        cost->memory_bytes += (h * (h - 1) * DDP_COST_MOVE + h * (h + 1)) * acc_bytes;
    else
        cost->memory_bytes += (h - 1) * (2 * DDP_COST_MOVE + DDP_COST_COMBINE) * acc_bytes;
}

const struct ddp_coll_alg ddp_alg_allreduce_hier = {
    .name = "hier",
    .coll = DDP_ALLREDUCE,
    .summary = "shared memory inside a host, messages between one leader per host, pipelined",
    .supports = hier_supports,
    .scratch_bytes = hier_scratch_bytes,
    .run = hier_run,
    .cost_model = DDP_COST_FORMULA,
    .path = hier_path,
};
