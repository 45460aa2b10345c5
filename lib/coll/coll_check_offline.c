/* Checks an algorithm without a communicator. */
#include "coll/coll.h"
#include "comm/shm/comm_shm.h"

int ddp_coll_check_offline(const struct ddp_coll_alg *alg, const struct ddp_backend *backend,
                           int ranks, const struct ddp_coll_shape *shape, struct ddp_err *err)
{
    /* For a world on one host, supports() reads only these members (comm.h). No collective runs on
     * this communicator. */
    struct ddp_comm_shm mapped = {.spin = 0};
    const struct ddp_comm comm = {
        .backend = backend,
        .size = ranks,
        .shm = (backend->caps & DDP_CAP_MAP) != 0 ? &mapped : NULL,
    };
    return alg->supports(&comm, shape, err);
}
