/* Allocates memory with NCCL's allocator and registers it with the world's communicator, so that
 * NCCL can access it without a copy. A block is registered for this rank alone (ncclCommRegister),
 * or as a window of all ranks (ncclCommWindowRegister, which is collective). */
#include <stdlib.h>

#include "base/mem.h"
#include "comm/nccl/backend_nccl_impl.inc.h"

struct ddp_nccl_block {
    struct ddp_nccl_block *next;
    void *ptr, *handle;
    ncclWindow_t window;
};

static int register_window(struct ddp_comm *comm, struct ddp_nccl_block *b, size_t bytes,
                           struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    if (api->CommWindowRegister == NULL || api->CommWindowDeregister == NULL)
        return ddp_fail(err, DDP_EUNAVAIL, "%s has no windows; NCCL 2.27 or later is needed",
                        api->text);
    /* If windows are unusable (NCCL_P2P_DISABLE), the call may succeed and not set b->window. */
    b->window = NULL;
    return ddp_nccl_settle(
        comm, api->CommWindowRegister(s->comm, b->ptr, bytes, &b->window, NCCL_WIN_COLL_SYMMETRIC),
        "ncclCommWindowRegister", err);
}

static void release(struct ddp_comm *world, struct ddp_nccl_block *b)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(world);
    const struct ddp_nccl *api = s->world->api;
    struct ddp_err ignored = DDP_ERR_INIT;
    if (s->comm != NULL && b->handle != NULL)
        (void)!ddp_nccl_settle(world, api->CommDeregister(s->comm, b->handle), "ncclCommDeregister",
                               &ignored);
    if (s->comm != NULL && b->window != NULL)
        (void)!ddp_nccl_settle(world, api->CommWindowDeregister(s->comm, b->window),
                               "ncclCommWindowDeregister", &ignored);
    (void)api->MemFree(b->ptr);
    free(b);
}

int ddp_nccl_alloc(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    struct ddp_comm *world = ddp_comm_world(comm);
    struct ddp_nccl_state *s = ddp_nccl_state_of(world);
    const struct ddp_nccl *api = s->world->api;
    struct ddp_nccl_block *b;
    int rc;
    DDP_TRY(DDP_NEW(&b, 1, err));
    if (s->comm == NULL) {
        rc = ddp_fail(err, DDP_ELOST, "the communicator was aborted after a failure");
        goto err_block;
    }
    bytes = (DDP_MAX(bytes, 1) + NCCL_WIN_REQUIRED_ALIGNMENT - 1) / NCCL_WIN_REQUIRED_ALIGNMENT *
            NCCL_WIN_REQUIRED_ALIGNMENT;
    const ncclResult_t made = api->MemAlloc(&b->ptr, bytes);
    if (made != ncclSuccess) {
        rc = ddp_fail(err, DDP_ENOMEM, "ncclMemAlloc of %zu bytes: %s", bytes,
                      api->GetErrorString(made));
        goto err_block;
    }
    if (s->world->options.window)
        rc = register_window(world, b, bytes, err);
    else
        rc = ddp_nccl_settle(world, api->CommRegister(s->comm, b->ptr, bytes, &b->handle),
                             "ncclCommRegister", err);
    if (rc != 0)
        goto err_memory;
    b->next = s->world->blocks;
    s->world->blocks = b;
    *out = b->ptr;
    return 0;

err_memory:
    (void)api->MemFree(b->ptr);
err_block:
    free(b);
    return rc;
}

void ddp_nccl_free(struct ddp_comm *comm, void *ptr)
{
    struct ddp_comm *world = ddp_comm_world(comm);
    struct ddp_nccl_block **at = &ddp_nccl_state_of(world)->world->blocks;
    while (*at != NULL && (*at)->ptr != ptr)
        at = &(*at)->next;
    struct ddp_nccl_block *b = *at;
    struct ddp_nccl_state *s = ddp_nccl_state_of(world);
    if (b == NULL)
        return;
    if (s->graph != NULL) /* the graph may refer to the block */
        s->world->device->streams->graph_destroy(s->graph);
    s->graph = NULL;
    s->ran_args = false;
    *at = b->next;
    release(world, b);
}

void ddp_nccl_free_all(struct ddp_comm *world)
{
    struct ddp_nccl_world *w = ddp_nccl_state_of(world)->world;
    while (w->blocks != NULL)
        ddp_nccl_free(world, w->blocks->ptr);
}
