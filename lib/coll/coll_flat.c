/* Algorithm "flat". Every rank that has data to send stores the data in shared memory. Then every
 * rank reads the data that it needs.
 *
 * The algorithm is for small messages in any memory. Each rank that has data to send copies its
 * send buffer into its *data slot* in shared memory. Then every rank posts its flag and waits for
 * all flags. Each receiving rank then copies or combines data from the data slots into its recv
 * buffer. If the data of a rank has at most DDP_SHM_INLINE bytes, the rank stores the data beside
 * its flag instead, so that data and flag move in one cache line. Inputs are combined in rank
 * order. Calls in place need no special case, because other ranks read the copy of the send buffer.
 *
 * Calls alternate between two data slots and two flags (a double buffer), so one synchronisation
 * per call is enough. A rank that writes its data slot in call k overwrites the data of call k-2.
 * All readers have left call k-2, because this rank has seen their flags of call k-1. */
#include <string.h>

#include "coll/coll_shm.h"
#include "coll/coll_split.h"

/* The state of one call on this rank. */
struct flat_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    enum ddp_coll coll;  /* args->coll, which the compiler knows in flat_run */
    size_t chunk, bytes; /* size of one chunk, and of the data that a sending rank stores */
    int parity;
};

static bool is_personal(enum ddp_coll coll)
{
    return coll == DDP_REDUCE_SCATTER || coll == DDP_ALL_TO_ALL || coll == DDP_ALL_TO_ALL_V ||
           coll == DDP_REDUCE_SCATTER_V || coll == DDP_SCATTER;
}

static bool has_source_root(enum ddp_coll coll)
{
    return coll == DDP_BROADCAST || coll == DDP_SCATTER;
}

static size_t published_bytes(enum ddp_coll coll, int ranks, size_t chunk)
{
    return is_personal(coll) ? chunk * (size_t)ranks : chunk;
}

/* Returns the size of the largest send array of a call with a split table. */
static size_t split_published_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const struct ddp_coll_args args = ddp_split_args(shape);
    size_t most = 0;
    for (int r = 0; r < comm->size; r++)
        most = DDP_MAX(most, ddp_split_send_at(&args, comm->size, r, comm->size));
    return most * ddp_dtype_size(shape->dtype);
}

static int flat_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    const size_t bytes =
        shape->split != NULL
            ? split_published_bytes(comm, shape)
            : published_bytes(shape->coll, comm->size, shape->count * ddp_dtype_size(shape->dtype));
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

/* Returns the index of the chunk that this rank combines from the data of all ranks. Returns -1 if
 * this rank copies data instead, or receives none. */
static int combined_chunk(const struct flat_call *call)
{
    switch (call->coll) {
    case DDP_ALLREDUCE:
        return 0;
    case DDP_REDUCE_SCATTER:
        return call->comm->rank;
    case DDP_REDUCE:
        return call->comm->rank == call->args->root ? 0 : -1;
    default:
        return -1;
    }
}

/* Copies chunk number `chunk` of every rank's data to recv, in rank order. */
static void collect(const struct flat_call *call, int chunk)
{
    unsigned char *recv = call->args->recv;
    for (int r = 0; r < call->comm->size; r++)
        ddp_coll_copy(call->comm, recv + (size_t)r * call->chunk, input_of(call, r, chunk),
                      call->chunk, false);
}

static void flat_move(const struct flat_call *call)
{
    struct ddp_comm *comm = call->comm;
    const struct ddp_coll_args *args = call->args;
    const int root = args->root, before = ddp_rank_at(comm->rank, -1, comm->size);

    switch (call->coll) {
    case DDP_ALL_GATHER:
        collect(call, 0);
        break;
    case DDP_GATHER:
        if (comm->rank == root)
            collect(call, 0);
        break;
    case DDP_ALL_TO_ALL:
        collect(call, comm->rank);
        break;
    case DDP_BROADCAST:
        ddp_coll_copy(comm, args->recv, input_of(call, root, 0), call->chunk, false);
        break;
    case DDP_SCATTER:
        ddp_coll_copy(comm, args->recv, input_of(call, root, comm->rank), call->chunk, false);
        break;
    case DDP_SEND_RECV:
        ddp_coll_copy(comm, args->recv, input_of(call, before, 0), call->chunk, false);
        break;
    default: /* reduce, on a rank that is not the root */
        break;
    }
}

/* Runs a collective without a split. Each caller passes a constant `coll`, so that the compiler
 * removes the branches that depend on it. They would take about 2 ns per call. */
static inline __attribute__((always_inline)) int flat_run(struct ddp_comm *comm,
                                                          const struct ddp_coll_args *args,
                                                          enum ddp_coll coll, struct ddp_err *err)
{
    const uint64_t sequence = ++comm->shm->sequence[DDP_FLAGS_FLAT];
    struct flat_call call = {
        .comm = comm,
        .args = args,
        .coll = coll,
        .chunk = ddp_coll_array_bytes(args),
        .parity = (int)(sequence & 1),
    };
    const int flag_slot = DDP_FLAGS_FLAT + call.parity;
    const int chunk = combined_chunk(&call);
    const void *src[DDP_REDUCE_MAX];

    call.bytes = published_bytes(coll, comm->size, call.chunk);
    if (call.bytes != 0 && (comm->rank == args->root || !has_source_root(coll)))
        memcpy(slot_of(&call, comm->rank), args->send, call.bytes);
    ddp_shm_post(comm, flag_slot, sequence);
    /* Do this work while the flags propagate. */
    for (int r = 0; chunk >= 0 && r < comm->size; r++)
        src[r] = input_of(&call, r, chunk);
    struct ddp_reduce reduce;
    ddp_reduce_all(&reduce, comm, args, &args->recv, src, args->count);
    DDP_TRY(ddp_shm_wait_all(comm, flag_slot, sequence, err));
    if (chunk >= 0)
        comm->device->reduce(&reduce);
    else if (call.chunk != 0)
        flat_move(&call);
    return 0;
}

/* Returns the address of the part that rank r has for this rank. */
static const unsigned char *part_of(const struct flat_call *call, const struct ddp_split_map *map,
                                    int r)
{
    return input_of(call, r, 0) + map->peer[r].remote_at;
}

/* Combines this rank's part of the data of all ranks. */
static void split_combine(const struct flat_call *call, const struct ddp_split_map *map)
{
    struct ddp_comm *comm = call->comm;
    const struct ddp_coll_args *args = call->args;
    const size_t count = map->peer[comm->rank].recv_bytes / ddp_dtype_size(args->dtype);
    const void *src[DDP_REDUCE_MAX];
    struct ddp_reduce reduce;

    for (int r = 0; r < comm->size; r++)
        src[r] = part_of(call, map, r);
    ddp_reduce_all(&reduce, comm, args, &args->recv, src, count);
    if (count != 0)
        comm->device->reduce(&reduce);
}

/* Runs the collectives with a split. All ranks store their data in the same kind of place: beside
 * the flags or in the data slots. */
static int split_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                     struct ddp_err *err)
{
    const struct ddp_split_map *map = ddp_split_map_in(comm, args, scratch);
    const uint64_t sequence = ++comm->shm->sequence[DDP_FLAGS_FLAT];
    const struct flat_call call = {
        .comm = comm, .args = args, .bytes = map->most_sent, .parity = (int)(sequence & 1)};
    const int flag_slot = DDP_FLAGS_FLAT + call.parity;

    if (map->sent != 0)
        memcpy(slot_of(&call, comm->rank), args->send, map->sent);
    ddp_shm_post(comm, flag_slot, sequence);
    DDP_TRY(ddp_shm_wait_all(comm, flag_slot, sequence, err));
    if (ddp_coll_reduces(args->coll))
        split_combine(&call, map);
    for (int r = 0; r < comm->size && !ddp_coll_reduces(args->coll); r++)
        ddp_coll_copy(comm, (unsigned char *)args->recv + map->peer[r].recv_at,
                      part_of(&call, map, r), map->peer[r].recv_bytes, false);
    return 0;
}

#define FLAT_ALGORITHM(symbol, kind, run_, text, ...)                                              \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "flat",                                                                            \
        .coll = kind,                                                                              \
        .summary = "shared memory, small messages: " text ", one step",                            \
        .needs = DDP_NEEDS_SHARED,                                                                 \
        .supports = flat_supports,                                                                 \
        .run = run_,                                                                               \
        .cost_model = DDP_COST_FLAT,                                                               \
        __VA_ARGS__}
#define FLAT(symbol, kind, text)                                                                   \
    static int symbol##_run(struct ddp_comm *comm, const struct ddp_coll_args *args,               \
                            void *scratch, struct ddp_err *err)                                    \
    {                                                                                              \
        (void)scratch;                                                                             \
        return flat_run(comm, args, kind, err);                                                    \
    }                                                                                              \
    FLAT_ALGORITHM(symbol, kind, symbol##_run, text)
#define SPLIT(symbol, kind, text)                                                                  \
    FLAT_ALGORITHM(symbol, kind, split_run, text, .scratch_bytes = ddp_split_map_bytes)
FLAT(allreduce_flat, DDP_ALLREDUCE, "every rank reads all inputs");
FLAT(reduce_scatter_flat, DDP_REDUCE_SCATTER, "each rank sums its chunk of all inputs");
FLAT(all_gather_flat, DDP_ALL_GATHER, "every rank reads all inputs");
FLAT(broadcast_flat, DDP_BROADCAST, "every rank reads the root's input");
FLAT(reduce_flat, DDP_REDUCE, "the root sums all inputs");
FLAT(all_to_all_flat, DDP_ALL_TO_ALL, "each rank reads its chunk of all inputs");
SPLIT(all_to_all_v_flat, DDP_ALL_TO_ALL_V, "each rank reads its part of all inputs");
SPLIT(all_gather_v_flat, DDP_ALL_GATHER_V, "every rank reads all inputs");
SPLIT(reduce_scatter_v_flat, DDP_REDUCE_SCATTER_V, "each rank sums its part of all inputs");
FLAT(gather_flat, DDP_GATHER, "the root reads all inputs");
FLAT(scatter_flat, DDP_SCATTER, "each rank reads its chunk of the root's input");
FLAT(send_recv_flat, DDP_SEND_RECV, "each rank reads the input of the rank before it");
