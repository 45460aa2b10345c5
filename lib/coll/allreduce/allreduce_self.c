/* All-reduce "self". It is for one rank only, so the result is the input. It measures the overhead
 * of the benchmark itself.
 *
 * Cost for S bytes: no steps. In place, nothing is done. Otherwise S bytes are read and written. */
#include "coll/coll.h"

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
    if (args->send != args->recv && args->count != 0)
        comm->device->copy(args->recv, args->send, args->count * ddp_dtype_size(args->dtype));
    return 0;
}

static void self_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes =
        (double)ddp_coll_message_bytes(shape->coll, ranks, shape->count, shape->dtype);
    *cost = (struct ddp_coll_cost){
        .memory_bytes = shape->in_place ? 0 : 2 * bytes,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_allreduce_self = {
    .name = "self",
    .coll = DDP_ALLREDUCE,
    .summary = "one rank: a copy, or nothing",
    .supports = self_supports,
    .run = self_run,
    .cost = self_cost,
};
