/* All-to-all "direct": zero-copy on registered memory.
 *
 * Out of place, each rank copies its chunk of every other rank's send buffer into its own recv
 * buffer, as soon as that rank has entered. In place, two ranks *swap* the chunks that they have
 * for each other. The lower rank swaps the first half of both chunks, and the higher rank swaps the
 * second half. Blocks are small, so that they stay in the first-level cache.
 *
 * Cost for buffers of S bytes on n ranks: 2 steps. Each rank reads and writes S bytes, in place
 * (n-1)/n S. The total is 2nS bytes, in place 2(n-1)S. No messages are sent. */
#include "coll/coll_direct.h"

#define BLOCK_BYTES ((size_t)4 << 10)

/* Swaps a[bytes] and b[bytes], which must not overlap. */
static void swap_bytes(unsigned char *a, unsigned char *b, size_t bytes)
{
    unsigned char block[BLOCK_BYTES];

    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        const size_t n = DDP_MIN(BLOCK_BYTES, bytes - at);
        memcpy(block, a + at, n);
        memcpy(a + at, b + at, n);
        memcpy(b + at, block, n);
    }
}

static int run_in_place(struct ddp_comm *comm, const struct ddp_coll_args *args,
                        struct ddp_err *err)
{
    const size_t chunk = ddp_coll_array_bytes(args);
    const size_t half = chunk / 2 / DDP_CACHE_LINE * DDP_CACHE_LINE;

    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        const size_t begin = comm->rank < peer ? 0 : half;
        const size_t end = comm->rank < peer ? half : chunk;
        DDP_TRY(ddp_direct_wait(comm, peer, err));
        swap_bytes((unsigned char *)args->recv + chunk * (size_t)peer + begin,
                   ddp_direct_recv_of(comm, peer) + chunk * (size_t)comm->rank + begin,
                   end - begin);
    }
    return 0;
}

static int run_out_of_place(struct ddp_comm *comm, const struct ddp_coll_args *args,
                            struct ddp_err *err)
{
    const size_t chunk = ddp_coll_array_bytes(args), own = chunk * (size_t)comm->rank;
    unsigned char *recv = args->recv;

    ddp_direct_move(comm, args, recv + own, (const unsigned char *)args->send + own, chunk);
    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        DDP_TRY(ddp_direct_wait(comm, peer, err));
        ddp_direct_move(comm, args, recv + chunk * (size_t)peer,
                        ddp_direct_send_of(comm, peer) + own, chunk);
    }
    return 0;
}

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    ddp_direct_enter(comm, args);
    DDP_TRY(args->send == args->recv ? run_in_place(comm, args, err)
                                     : run_out_of_place(comm, args, err));
    ddp_direct_leave(comm);
    return ddp_direct_wait_all(comm, err);
}

static void direct_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes =
        (double)ddp_coll_message_bytes(shape->coll, ranks, shape->count, shape->dtype);
    *cost = (struct ddp_coll_cost){
        .steps = 2,
        .memory_bytes = 2.0 * (ranks - shape->in_place) * bytes,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_all_to_all_direct = {
    .name = "direct",
    .coll = DDP_ALL_TO_ALL,
    .summary =
        "registered memory: each rank copies its chunk of all ranks' send buffers, zero-copy",
    .supports = ddp_direct_supports,
    .run = direct_run,
    .cost = direct_cost,
};
