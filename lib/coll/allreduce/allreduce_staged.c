/* All-reduce "staged": data in private memory moves through ring buffers in shared memory.
 *
 * The message is cut into *rounds*, and each round into one *fragment* per rank. Rank p combines
 * fragment p of every round. Each rank runs three stages per round:
 *   in    The rank copies the other ranks' fragments from its send buffer to *slots* of its own
 *         ring buffer. It then posts its flag IN.
 *   sum   The rank combines its own fragment from its send buffer and all other ranks' slots, in
 *         rank order. It stores the result in its recv buffer and in its *result slot*. This
 *         slot is in the ring buffer of rank p + 1, and held that rank's input for fragment p. The
 *         rank then posts its flag SUM.
 *   out   The rank copies the other ranks' fragments from their result slots to its recv buffer.
 * A result overwrites an input that the same rank has just read. Separate result slots would need
 * more memory, and their cache lines would not yet be in the writer's cache
 * (results/notes/collectives.md).
 *
 * The stages form a pipeline. Step i does in(i), sum(i-1) and out(i-2), so the flags that a rank
 * waits for are usually posted already. The slots of round t are used again in round t + 5 (DEPTH).
 * No additional wait is needed. Before in(t+5), this rank's sum(t+3) waits until every peer has
 * posted IN of round t+3. A peer posts that flag after its out(t).
 *
 * Calls alternate between the two halves of each ring buffer, so call k uses the half of call k-2
 * again. In call k-1 this rank has waited for IN of all peers, so all peers have left call k-2.
 *
 * Cost for S bytes on n ranks: 2 communication steps, one for each flag. On every rank, each of the
 * stages `in` and `out` reads (n-1)/n S bytes and writes (n-1)/n S bytes. The stage `sum` reads S
 * bytes and writes 2S/n bytes. The total of all ranks is (5n-2)S bytes. No messages are sent. */
#include "coll/coll_shm.h"

#define DEPTH      5
#define HALF_BYTES ((size_t)DDP_SHM_RING_SLOTS * DDP_SHM_RING_BYTES / 2)
/* Largest fragment, one of the fastest sizes that were measured (results/notes/collectives.md). */
#define FRAGMENT_BYTES ((size_t)64 << 10)

/* The state of one call on this rank. */
struct staged_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    /* `fragment`: bytes of a fragment, a multiple of the cache line size and so of every element
     * size. `half`: offset of this call's half in a ring buffer. */
    size_t bytes, elem, fragment, half;
    size_t rounds;
    uint64_t in_base, sum_base; /* sequence numbers of the flags IN and SUM before this call */
};

/* Chooses the smallest number of rounds. All rounds have about the same size, because a short last
 * round takes as long as a full round. */
static void staged_cut(struct staged_call *call)
{
    const size_t ranks = (size_t)call->comm->size;
    const size_t room = HALF_BYTES / (DEPTH * (ranks > 1 ? ranks - 1 : 1));
    const size_t fragment_max = DDP_MIN(FRAGMENT_BYTES, room) / DDP_CACHE_LINE * DDP_CACHE_LINE;
    const size_t rounds = (call->bytes + ranks * fragment_max - 1) / (ranks * fragment_max);

    if (rounds == 0) {
        call->fragment = DDP_CACHE_LINE;
        call->rounds = 0;
        return;
    }
    call->fragment = ddp_round_to_line((call->bytes + rounds * ranks - 1) / (rounds * ranks));
    call->rounds = (call->bytes + ranks * call->fragment - 1) / (ranks * call->fragment);
}

/* Returns the offset of fragment p of round t in the message. fragment_bytes() returns the size of
 * the fragment at an offset. The last fragments may be short or empty. */
static size_t fragment_offset(const struct staged_call *call, size_t t, int p)
{
    return (t * (size_t)call->comm->size + (size_t)p) * call->fragment;
}

static size_t fragment_bytes(const struct staged_call *call, size_t offset)
{
    return offset >= call->bytes ? 0 : DDP_MIN(call->fragment, call->bytes - offset);
}

/* Returns the slot in `rank`'s ring buffer for fragment p of round t. `p` differs from `rank`. */
static unsigned char *slot_of(const struct staged_call *call, int rank, size_t t, int p)
{
    const int ranks = call->comm->size;
    const size_t index = (size_t)(p > rank ? p - rank - 1 : p - rank - 1 + ranks);
    return ddp_shm_ring_of(call->comm->shm, rank, 0) + call->half +
           (t % DEPTH * (size_t)(ranks - 1) + index) * call->fragment;
}

static int next_rank(const struct ddp_comm *comm, int rank)
{
    return rank + 1 < comm->size ? rank + 1 : 0;
}

static void staged_in(struct staged_call *call, size_t t)
{
    struct ddp_comm *comm = call->comm;

    for (int p = next_rank(comm, comm->rank); p != comm->rank; p = next_rank(comm, p)) {
        const size_t offset = fragment_offset(call, t, p);
        ddp_coll_copy(comm, slot_of(call, comm->rank, t, p),
                      (const unsigned char *)call->args->send + offset,
                      fragment_bytes(call, offset), false);
    }
    ddp_shm_post(comm, DDP_FLAGS_STAGED_IN, call->in_base + t + 1);
}

static int staged_sum(struct staged_call *call, size_t t, struct ddp_err *err)
{
    struct ddp_comm *comm = call->comm;
    const size_t offset = fragment_offset(call, t, comm->rank);
    const size_t n = fragment_bytes(call, offset);
    const void *src[DDP_REDUCE_MAX];
    void *dst[2] = {(unsigned char *)call->args->recv + offset, NULL};

    DDP_TRY(ddp_shm_wait_all(comm, DDP_FLAGS_STAGED_IN, call->in_base + t + 1, err));
    if (n != 0) {
        for (int r = 0; r < comm->size; r++)
            src[r] = r == comm->rank ? (const unsigned char *)call->args->send + offset
                                     : slot_of(call, r, t, comm->rank);
        if (comm->size > 1)
            dst[1] = slot_of(call, next_rank(comm, comm->rank), t, comm->rank);
        struct ddp_reduce reduce;
        ddp_reduce_all(&reduce, comm, call->args, dst, src, n / call->elem);
        reduce.dst_count = comm->size > 1 ? 2 : 1;
        reduce.remote = next_rank(comm, comm->rank);
        comm->device->reduce(&reduce);
    }
    ddp_shm_post(comm, DDP_FLAGS_STAGED_SUM, call->sum_base + t + 1);
    return 0;
}

static int staged_out(struct staged_call *call, size_t t, struct ddp_err *err)
{
    struct ddp_comm *comm = call->comm;

    for (int p = next_rank(comm, comm->rank); p != comm->rank; p = next_rank(comm, p)) {
        const size_t offset = fragment_offset(call, t, p);
        DDP_TRY(ddp_shm_wait(comm, p, DDP_FLAGS_STAGED_SUM, call->sum_base + t + 1, err));
        ddp_coll_copy(comm, (unsigned char *)call->args->recv + offset,
                      slot_of(call, next_rank(comm, p), t, p), fragment_bytes(call, offset), false);
    }
    return 0;
}

static int staged_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    struct ddp_comm_shm *shm = comm->shm;
    struct staged_call call = {
        .comm = comm,
        .args = args,
        .bytes = ddp_coll_array_bytes(args),
        .elem = ddp_dtype_size(args->dtype),
        .in_base = shm->sequence[DDP_FLAGS_STAGED_IN],
        .sum_base = shm->sequence[DDP_FLAGS_STAGED_SUM],
    };

    staged_cut(&call);
    if (call.rounds == 0)
        return 0;
    /* The sequence number of SUM counts rounds. The sequence number of IN counts rounds, plus one
     * per call. The difference is therefore the number of calls, which is equal on all ranks. */
    call.half = (call.in_base - call.sum_base) & 1 ? HALF_BYTES : 0;
    for (size_t i = 0; i < call.rounds + 2; i++) {
        if (i < call.rounds)
            staged_in(&call, i);
        if (i >= 1 && i - 1 < call.rounds)
            DDP_TRY(staged_sum(&call, i - 1, err));
        if (i >= 2)
            DDP_TRY(staged_out(&call, i - 2, err));
    }
    shm->sequence[DDP_FLAGS_STAGED_IN] = call.in_base + call.rounds + 1;
    shm->sequence[DDP_FLAGS_STAGED_SUM] = call.sum_base + call.rounds;
    return 0;
}

const struct ddp_coll_alg ddp_alg_allreduce_staged = {
    .name = "staged",
    .coll = DDP_ALLREDUCE,
    .summary = "private memory: copies through ring buffers in shared memory, pipelined",
    .needs = DDP_NEEDS_SHARED,
    .run = staged_run,
    .cost_model = DDP_COST_STAGED,
};
