/* Backend nccl in a build without CUDA or without NCCL's header. Calls fail with the reason. */
#include "comm/backend.h"

static int absent(struct ddp_err *err)
{
    ddp_fail(err, DDP_EUNAVAIL,
             "not built: this ddpbench was compiled without CUDA or without nccl.h");
    return ddp_hint(
        err,
        "install the CUDA toolkit and the headers of NCCL 2.28 or later, then run `make CUDA=1`");
}

static int nccl_probe(const char *module_dir, struct ddp_err *err)
{
    return absent(err);
}

static int nccl_places(void)
{
    return 0;
}

static int nccl_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                     struct ddp_err *err)
{
    return absent(err);
}

static void nccl_finalize(struct ddp_comm *comm)
{
}

static void nccl_abort(struct ddp_comm *comm, int code)
{
}

static int nccl_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    return absent(err);
}

static int nccl_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    return absent(err);
}

static int nccl_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                                struct ddp_err *err)
{
    return absent(err);
}

extern const struct ddp_backend ddp_backend_nccl; /* backend_list.h */
const struct ddp_backend ddp_backend_nccl = {
    .name = "nccl",
    .summary = "one GPU per rank over NVIDIA's NCCL, started by ddpbench, mpiexec or torchrun",
    .caps = DDP_CAP_DEVICE | DDP_CAP_ANY_LAUNCHER,
    .places = nccl_places,
    .probe = nccl_probe,
    .init = nccl_init,
    .finalize = nccl_finalize,
    .abort = nccl_abort,
    .group = nccl_group,
    .barrier = nccl_barrier,
    .exchange = nccl_allgather_bytes,
};
