/* Algorithm "native". It calls the backend's library, whose cost is not modelled. */
#include "coll/coll.h"

static int native_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                           struct ddp_err *err)
{
    const struct ddp_coll_args args = {
        .coll = shape->coll,
        .count = shape->count,
        .dtype = shape->dtype,
        .op = shape->op,
        .root = shape->root,
        .split = shape->split,
    };
    return comm->backend->native_supports(comm, &args, err);
}

static int native_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    return comm->backend->native(comm, args, err);
}

#define NATIVE(symbol, kind, text)                                                                 \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "native",                                                                          \
        .coll = kind,                                                                              \
        .summary = "the backend library's own " text,                                              \
        .needs = DDP_NEEDS_LIBRARY,                                                                \
        .supports = native_supports,                                                               \
        .run = native_run,                                                                         \
        .cost_model = DDP_COST_UNKNOWN,                                                            \
    }
NATIVE(allreduce_native, DDP_ALLREDUCE, "all-reduce");
NATIVE(reduce_scatter_native, DDP_REDUCE_SCATTER, "reduce-scatter");
NATIVE(all_gather_native, DDP_ALL_GATHER, "all-gather");
NATIVE(broadcast_native, DDP_BROADCAST, "broadcast");
NATIVE(reduce_native, DDP_REDUCE, "reduce");
NATIVE(all_to_all_native, DDP_ALL_TO_ALL, "all-to-all");
NATIVE(all_to_all_v_native, DDP_ALL_TO_ALL_V, "uneven all-to-all");
NATIVE(all_gather_v_native, DDP_ALL_GATHER_V, "uneven all-gather");
NATIVE(reduce_scatter_v_native, DDP_REDUCE_SCATTER_V, "uneven reduce-scatter");
NATIVE(gather_native, DDP_GATHER, "gather");
NATIVE(scatter_native, DDP_SCATTER, "scatter");
NATIVE(send_recv_native, DDP_SEND_RECV, "send and receive");
NATIVE(barrier_native, DDP_BARRIER, "barrier");
