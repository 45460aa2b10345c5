/* Algorithm "flat" of all collectives except all-reduce (allreduce_flat.c). Every rank stores the
 * data that it sends in shared memory, and then reads the data that it needs.
 *
 * The algorithm is for small messages in any memory. Each rank that has data to send copies its
 * send buffer into its *data slot* in shared memory. Then every rank posts its flag and waits for
 * all flags. Each receiving rank then copies or combines data from the data slots into its recv
 * buffer. A message of at most DDP_SHM_INLINE bytes is stored beside the flag instead. Inputs are
 * combined in rank order. Calls in place (all collectives except send-recv) need no special case,
 * because the send buffer is copied before recv is written.
 *
 * All-reduce "flat" uses the same data slots and flags. allreduce_flat.c explains why one wait per
 * call is enough.
 *
 * Cost: 1 step. Each published byte is read and written once. A rank reads each byte that it needs,
 * and writes its result once. In place, no rank copies its own chunk. No messages are sent. */
#include <string.h>

#include "coll/coll_shm.h"

/* The state of one call on this rank. */
struct flat_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    size_t chunk, bytes; /* chunk: bytes of one chunk; bytes: bytes that a sending rank publishes */
    int parity;
};

static bool is_personal(enum ddp_coll coll)
{
    return coll == DDP_REDUCE_SCATTER || coll == DDP_ALL_TO_ALL || coll == DDP_SCATTER;
}

static bool has_source_root(enum ddp_coll coll)
{
    return coll == DDP_BROADCAST || coll == DDP_SCATTER;
}

static size_t published_bytes(enum ddp_coll coll, int ranks, size_t chunk)
{
    return is_personal(coll) ? chunk * (size_t)ranks : chunk;
}

static int flat_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    DDP_TRY(ddp_coll_needs_shm(comm, "flat", err));
    if (shape->coll == DDP_SEND_RECV)
        DDP_TRY(ddp_coll_no_in_place(shape, err));
    const size_t bytes =
        published_bytes(shape->coll, comm->size, shape->count * ddp_dtype_size(shape->dtype));
    if (bytes > DDP_SHM_SLOT_BYTES)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm 'flat' takes at most %u bytes per rank, but the message has %zu",
                        DDP_SHM_SLOT_BYTES, bytes);
    return 0;
}

static unsigned char *slot_of(const struct flat_call *call, int rank)
{
    const struct ddp_comm_shm *shm = call->comm->shm;
    return call->bytes <= DDP_SHM_INLINE
               ? ddp_shm_flag_slot_of(shm, rank, DDP_FLAGS_FLAT + call->parity)->inline_data
               : ddp_shm_slot_of(shm, rank, call->parity);
}

/* Returns the address of chunk number `chunk` of the data that `rank` sends. */
static const unsigned char *input_of(const struct flat_call *call, int rank, int chunk)
{
    const unsigned char *send = rank == call->comm->rank ? call->args->send : slot_of(call, rank);
    return send + (size_t)chunk * call->chunk;
}

static void combine(const struct flat_call *call, int chunk)
{
    struct ddp_comm *comm = call->comm;
    const void *src[DDP_REDUCE_MAX];

    for (int r = 0; r < comm->size; r++)
        src[r] = input_of(call, r, chunk);
    const struct ddp_reduce reduce = {
        .dst = &call->args->recv,
        .dst_count = 1,
        .src = src,
        .src_count = comm->size,
        .count = call->args->count,
        .dtype = call->args->dtype,
        .op = call->args->op,
        .divisor = ddp_coll_divisor(comm, call->args->op),
    };
    comm->device->reduce(&reduce);
}

/* Copies chunk number `chunk` of every rank's data to that rank's place in recv. */
static void collect(const struct flat_call *call, int chunk)
{
    unsigned char *recv = call->args->recv;
    for (int r = 0; r < call->comm->size; r++)
        ddp_coll_move(call->comm, recv + (size_t)r * call->chunk, input_of(call, r, chunk),
                      call->chunk);
}

static void flat_take(const struct flat_call *call)
{
    struct ddp_comm *comm = call->comm;
    const struct ddp_coll_args *args = call->args;
    const bool root = comm->rank == args->root;

    switch (args->coll) {
    case DDP_REDUCE_SCATTER:
        combine(call, comm->rank);
        break;
    case DDP_REDUCE:
        if (root)
            combine(call, 0);
        break;
    case DDP_ALL_GATHER:
        collect(call, 0);
        break;
    case DDP_GATHER:
        if (root)
            collect(call, 0);
        break;
    case DDP_ALL_TO_ALL:
        collect(call, comm->rank);
        break;
    case DDP_BROADCAST:
        ddp_coll_move(comm, args->recv, input_of(call, args->root, 0), call->chunk);
        break;
    case DDP_SCATTER:
        ddp_coll_move(comm, args->recv, input_of(call, args->root, comm->rank), call->chunk);
        break;
    default: /* send-recv */
        ddp_coll_move(comm, args->recv, input_of(call, ddp_rank_at(comm->rank, -1, comm->size), 0),
                      call->chunk);
    }
}

static int flat_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    (void)scratch;
    const uint64_t sequence = ++comm->shm->sequence[DDP_FLAGS_FLAT];
    struct flat_call call = {
        .comm = comm,
        .args = args,
        .chunk = ddp_coll_array_bytes(args),
        .parity = (int)(sequence & 1),
    };
    const int flag_slot = DDP_FLAGS_FLAT + call.parity;

    call.bytes = published_bytes(args->coll, comm->size, call.chunk);
    if (call.bytes != 0 && (comm->rank == args->root || !has_source_root(args->coll)))
        memcpy(slot_of(&call, comm->rank), args->send, call.bytes);
    ddp_shm_post(comm, flag_slot, sequence);
    DDP_TRY(ddp_coll_wait_all(comm, flag_slot, sequence, err));
    if (call.chunk != 0)
        flat_take(&call);
    return 0;
}

static void flat_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const double n = ranks, own = shape->in_place ? 0 : 1;
    const double sent =
        chunk * (is_personal(shape->coll) ? n : 1) * (has_source_root(shape->coll) ? 1 : n);
    double taken = 0; /* bytes read and written */

    switch (shape->coll) {
    case DDP_REDUCE_SCATTER:
        taken = n * (n + 1) * chunk;
        break;
    case DDP_REDUCE:
        taken = (n + 1) * chunk;
        break;
    case DDP_ALL_GATHER:
    case DDP_ALL_TO_ALL:
        taken = 2 * n * (n - 1 + own) * chunk;
        break;
    case DDP_SEND_RECV:
        taken = 2 * n * chunk;
        break;
    default: /* to or from a root */
        taken = 2 * (n - 1 + own) * chunk;
    }
    *cost = (struct ddp_coll_cost){
        .steps = 1,
        .memory_bytes = 2 * sent + taken,
        .modelled = true,
    };
}

#define FLAT(symbol, kind, text)                                                                   \
    extern const struct ddp_coll_alg ddp_alg_##symbol;                                             \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "flat",                                                                            \
        .coll = kind,                                                                              \
        .summary = "shared memory, small messages: " text ", one step",                            \
        .supports = flat_supports,                                                                 \
        .run = flat_run,                                                                           \
        .cost = flat_cost,                                                                         \
    }
FLAT(reduce_scatter_flat, DDP_REDUCE_SCATTER, "each rank sums its chunk of all inputs");
FLAT(all_gather_flat, DDP_ALL_GATHER, "every rank reads all inputs");
FLAT(broadcast_flat, DDP_BROADCAST, "every rank reads the root's input");
FLAT(reduce_flat, DDP_REDUCE, "the root sums all inputs");
FLAT(all_to_all_flat, DDP_ALL_TO_ALL, "each rank reads its chunk of all inputs");
FLAT(gather_flat, DDP_GATHER, "the root reads all inputs");
FLAT(scatter_flat, DDP_SCATTER, "each rank reads its chunk of the root's input");
FLAT(send_recv_flat, DDP_SEND_RECV, "each rank reads the input of the rank before it");
