/* Algorithm "self". It is for one rank only, so the result is equal to the input. Runs with this
 * algorithm measure the overhead of the benchmark itself. */
#include "coll/coll_p2p.h"

static int self_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    (void)shape;
    if (comm->size != 1)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm 'self' needs exactly one rank, but there are %d", comm->size);
    return 0;
}

static int self_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    (void)scratch;
    (void)err;
    if (args->coll != DDP_BARRIER)
        ddp_coll_copy(comm, args->recv, args->send, args->count * ddp_dtype_size(args->dtype),
                      false);
    return 0;
}

#define SELF(symbol, kind, text)                                                                   \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "self",                                                                            \
        .coll = kind,                                                                              \
        .summary = "one rank: " text,                                                              \
        .supports = self_supports,                                                                 \
        .run = self_run,                                                                           \
        .cost_model = DDP_COST_SELF,                                                               \
    }
SELF(allreduce_self, DDP_ALLREDUCE, "a copy, or nothing");
SELF(reduce_scatter_self, DDP_REDUCE_SCATTER, "a copy, or nothing");
SELF(all_gather_self, DDP_ALL_GATHER, "a copy, or nothing");
SELF(broadcast_self, DDP_BROADCAST, "a copy, or nothing");
SELF(reduce_self, DDP_REDUCE, "a copy, or nothing");
SELF(all_to_all_self, DDP_ALL_TO_ALL, "a copy, or nothing");
SELF(all_to_all_v_self, DDP_ALL_TO_ALL_V, "a copy");
SELF(all_gather_v_self, DDP_ALL_GATHER_V, "a copy");
SELF(reduce_scatter_v_self, DDP_REDUCE_SCATTER_V, "a copy");
SELF(gather_self, DDP_GATHER, "a copy, or nothing");
SELF(scatter_self, DDP_SCATTER, "a copy, or nothing");
SELF(send_recv_self, DDP_SEND_RECV, "a copy");
SELF(barrier_self, DDP_BARRIER, "nothing");
