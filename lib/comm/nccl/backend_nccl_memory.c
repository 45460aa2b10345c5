/* Allocates memory with NCCL's allocator and registers it with every communicator that may run an
 * operation on the memory, so that NCCL can access the memory without a copy. Each rank registers
 * its block alone (ncclCommRegister), or all ranks register their blocks together as a window
 * (ncclCommWindowRegister). Registrations belong to one NCCL communicator. */
#include <stdlib.h>

#include "base/mem.h"
#include "comm/nccl/backend_nccl_impl.inc.h"

struct ddp_nccl_block {
    struct ddp_nccl_block *next;
    void *ptr;
    size_t bytes;
    const struct ddp_comm *owner; /* the communicator that allocated the block */
};

/* The arguments of ncclCommWindowRegister. */
struct window_args {
    const struct ddp_nccl *api;
    ncclComm_t comm;
    void *ptr;
    size_t bytes;
    ncclWindow_t *out;
};

static ncclResult_t make_window(void *arg)
{
    const struct window_args *a = arg;
    return a->api->CommWindowRegister(a->comm, a->ptr, a->bytes, a->out, NCCL_WIN_COLL_SYMMETRIC);
}

/* Sets r->window, or leaves it NULL if the GPUs have no symmetric memory, for example because of
 * NCCL_P2P_DISABLE. Returns DDP_EUNAVAIL if the library has no windows. */
static int register_window(struct ddp_comm *comm, const struct ddp_nccl_block *b,
                           struct ddp_nccl_registration *r, struct ddp_err *err)
{
    const struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    if (api->CommWindowRegister == NULL || api->CommWindowDeregister == NULL)
        return ddp_fail(err, DDP_EUNAVAIL, "%s has no windows; NCCL 2.27 or later is needed",
                        api->text);
    const struct window_args args = {api, s->comm, b->ptr, b->bytes, &r->window};
    return ddp_nccl_call(comm, make_window, &args, sizeof args, "ncclCommWindowRegister", err);
}

/* Registers the block with the communicator. If NCCL cannot make a window, registers the block for
 * this rank alone and sets comm->symmetric to DDP_NOT_SYMMETRIC. */
static int register_block(struct ddp_comm *comm, const struct ddp_nccl_block *b,
                          struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const bool window = s->world->options.window;
    struct ddp_nccl_registration *r;
    if (s->comm == NULL || s->world->failed)
        return ddp_fail(err, DDP_ELOST, "the communicator was aborted after a failure");
    DDP_TRY(DDP_NEW(&r, 1, err));
    r->ptr = b->ptr;
    int rc = window ? register_window(comm, b, r, err) : 0;
    if (window)
        comm->symmetric = r->window != NULL ? DDP_SYMMETRIC : DDP_NOT_SYMMETRIC;
    if (rc == 0 && r->window == NULL)
        rc = ddp_nccl_settle(comm,
                             s->world->api->CommRegister(s->comm, b->ptr, b->bytes, &r->handle),
                             "ncclCommRegister", err);
    if (rc != 0) {
        if (!s->world->stuck) /* a thread that is stuck in NCCL may still write r->window */
            free(r);
        return rc;
    }
    r->next = s->registered;
    s->registered = r;
    return 0;
}

static void unregister(struct ddp_nccl_state *s, struct ddp_nccl_registration *r)
{
    const struct ddp_nccl *api = s->world->api;
    struct ddp_err ignored = DDP_ERR_INIT;
    if (s->comm != NULL && !s->world->failed && r->handle != NULL)
        (void)!ddp_nccl_settle(s->owner, api->CommDeregister(s->comm, r->handle),
                               "ncclCommDeregister", &ignored);
    if (s->comm != NULL && !s->world->failed && r->window != NULL)
        (void)!ddp_nccl_settle(s->owner, api->CommWindowDeregister(s->comm, r->window),
                               "ncclCommWindowDeregister", &ignored);
    free(r);
}

/* Ends the registration of a block with a communicator, if the block is registered. A graph may
 * refer to the block, so this function destroys the graph first. */
static void unregister_block(struct ddp_nccl_state *s, const void *ptr)
{
    struct ddp_nccl_registration **at = &s->registered;
    while (*at != NULL && (*at)->ptr != ptr)
        at = &(*at)->next;
    struct ddp_nccl_registration *r = *at;
    if (r == NULL)
        return;
    ddp_nccl_drop_graph(s);
    *at = r->next;
    unregister(s, r);
}

void ddp_nccl_unregister_all(struct ddp_comm *comm)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    while (s->registered != NULL)
        unregister_block(s, s->registered->ptr);
}

/* True if comm is `ancestor` or a group that was made of `ancestor`. */
static bool is_within(const struct ddp_comm *comm, const struct ddp_comm *ancestor)
{
    while (comm != NULL && comm != ancestor)
        comm = comm->parent;
    return comm != NULL;
}

int ddp_nccl_register_all(struct ddp_comm *comm, struct ddp_err *err)
{
    const struct ddp_nccl_world *w = ddp_nccl_state_of(comm)->world;
    for (const struct ddp_nccl_block *b = w->blocks; b != NULL; b = b->next)
        if (is_within(comm, b->owner))
            DDP_TRY(register_block(comm, b, err));
    return 0;
}

/* Frees a block that is not registered with any communicator. */
static void free_block(const struct ddp_nccl_world *w, struct ddp_nccl_block *b)
{
    (void)w->api->MemFree(b->ptr);
    free(b);
}

int ddp_nccl_alloc(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    struct ddp_nccl_world *w = s->world;
    struct ddp_nccl_block *b;
    if (s->comm == NULL || w->failed)
        return ddp_fail(err, DDP_ELOST, "the communicator was aborted after a failure");
    DDP_TRY(DDP_NEW(&b, 1, err));
    b->owner = comm;
    b->bytes = (DDP_MAX(bytes, 1) + NCCL_WIN_REQUIRED_ALIGNMENT - 1) / NCCL_WIN_REQUIRED_ALIGNMENT *
               NCCL_WIN_REQUIRED_ALIGNMENT;
    const ncclResult_t made = w->api->MemAlloc(&b->ptr, b->bytes);
    if (made != ncclSuccess) {
        const int rc = ddp_fail(err, DDP_ENOMEM, "ncclMemAlloc of %zu bytes: %s", b->bytes,
                                w->api->GetErrorString(made));
        free(b);
        return rc;
    }
    int rc = 0;
    for (struct ddp_nccl_state *t = w->states; t != NULL && rc == 0; t = t->next)
        if (is_within(t->owner, comm))
            rc = register_block(t->owner, b, err);
    if (rc == 0) {
        b->next = w->blocks;
        w->blocks = b;
        *out = b->ptr;
        return 0;
    }
    if (w->stuck) /* a thread that is stuck in NCCL may still use the block */
        return rc;
    for (struct ddp_nccl_state *t = w->states; t != NULL; t = t->next)
        unregister_block(t, b->ptr);
    free_block(w, b);
    return rc;
}

void ddp_nccl_free(struct ddp_comm *comm, void *ptr)
{
    struct ddp_nccl_world *w = ddp_nccl_state_of(comm)->world;
    struct ddp_nccl_block **at = &w->blocks;
    if (w->failed)
        return;
    while (*at != NULL && (*at)->ptr != ptr)
        at = &(*at)->next;
    struct ddp_nccl_block *b = *at;
    if (b == NULL)
        return;
    *at = b->next;
    for (struct ddp_nccl_state *t = w->states; t != NULL; t = t->next)
        unregister_block(t, ptr);
    free_block(w, b);
}

void ddp_nccl_free_all(struct ddp_comm *comm)
{
    struct ddp_nccl_world *w = ddp_nccl_state_of(comm)->world;
    for (struct ddp_nccl_block **at = &w->blocks; *at != NULL;) {
        struct ddp_nccl_block *b = *at;
        if (b->owner != comm && comm->parent != NULL) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        free_block(w, b);
    }
}
