/* Backend self: one rank that does not communicate. Runs with this backend measure the overhead of
 * the benchmark itself. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/backend.h"
#include "comm/comm_pages.h"

static int self_probe(const char *module_dir, struct ddp_err *err)
{
    return 0;
}

static int self_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct ddp_comm_pages *pages;
    DDP_TRY(DDP_NEW(&pages, 1, err));
    child->state = pages;
    return 0;
}

static int self_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                     struct ddp_err *err)
{
    if (comm->size != 1) {
        ddp_fail(err, DDP_EUSAGE, "backend 'self' runs one rank, not %d", comm->size);
        return ddp_hint(err, "use --ranks 1, or --backend shm");
    }
    return self_group(NULL, comm, err);
}

static void self_finalize(struct ddp_comm *comm)
{
    ddp_comm_pages_release(comm->state);
    free(comm->state);
}

static void self_abort(struct ddp_comm *comm, int code)
{
}

static int self_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    return 0;
}

static int self_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                                struct ddp_err *err)
{
    if (bytes > 0)
        memmove(all, mine, bytes);
    return 0;
}

static int self_alloc(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    return ddp_comm_pages_alloc(comm->state, bytes, out, err);
}

static void self_free(struct ddp_comm *comm, void *ptr)
{
    ddp_comm_pages_free(comm->state, ptr);
}

extern const struct ddp_backend ddp_backend_self;
const struct ddp_backend ddp_backend_self = {
    .name = "self",
    .summary = "one rank alone: measures the overhead of ddpbench itself",
    .caps = DDP_CAP_REGISTERED | DDP_CAP_SELF,
    .probe = self_probe,
    .init = self_init,
    .finalize = self_finalize,
    .abort = self_abort,
    .group = self_group,
    .barrier = self_barrier,
    .exchange = self_allgather_bytes,
    .alloc = self_alloc,
    .free = self_free,
};
