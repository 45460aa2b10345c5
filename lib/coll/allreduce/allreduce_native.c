/* All-reduce "native": calls the backend's library (such as MPI_Allreduce), whose cost is not
 * modelled. */
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
    };
    if (!(comm->backend->caps & DDP_CAP_NATIVE))
        return ddp_fail(err, DDP_EUNAVAIL, "backend '%s' has no native collectives",
                        comm->backend->name);
    return comm->backend->native_supports(comm, &args, err);
}

static int native_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    return comm->backend->native(comm, args, err);
}

static void native_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    (void)ranks;
    (void)shape;
    *cost = (struct ddp_coll_cost){.modelled = false};
}

const struct ddp_coll_alg ddp_alg_allreduce_native = {
    .name = "native",
    .coll = DDP_ALLREDUCE,
    .summary = "the backend library's own all-reduce",
    .supports = native_supports,
    .run = native_run,
    .cost = native_cost,
};
