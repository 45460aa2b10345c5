/* Communicators: what is the same for all backends. Point to point is in comm_p2p.c. */
#include "comm/comm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/coll_kind.h"
#include "base/mem.h"
#include "comm/backend.h"
#include "comm/comm_pages.h"
#include "comm/segment.h"
#include "comm/waiter.h"

/* A communicator with what only this file needs. pages: private memory of backends without
 * registered memory. own_flight: the recorder where no segment has one. */
struct comm_box {
    struct ddp_comm comm; /* first: boxes and communicators have one address */
    struct ddp_comm_pages pages;
    struct ddp_flight *own_flight;
};

static struct comm_box *box_create(int size, struct ddp_err *err)
{
    struct comm_box *box = ddp_calloc(1, sizeof *box);
    int *world_rank = ddp_calloc((size_t)size, sizeof *world_rank);
    if (box == NULL || world_rank == NULL) {
        free(box);
        free(world_rank);
        ddp_fail(err, DDP_ENOMEM, "no memory for a communicator of %d ranks", size);
        return NULL;
    }
    box->comm.size = size;
    box->comm.world_rank = world_rank;
    return box;
}

static void box_destroy(struct comm_box *box)
{
    ddp_comm_pages_release(&box->pages);
    free(box->own_flight);
    free(box->comm.world_rank);
    free(box);
}

static int find_flight(struct comm_box *box, struct ddp_err *err)
{
    const struct ddp_place *place = &box->comm.place;
    if (place->segment != NULL) {
        box->comm.flight = &ddp_segment_rank_of(place->segment, place->rank)->flight;
        return 0;
    }
    box->own_flight = ddp_calloc(1, sizeof *box->own_flight);
    if (box->own_flight == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a flight recorder");
    box->comm.flight = box->own_flight;
    return 0;
}

int ddp_comm_create(const struct ddp_backend *backend, const struct ddp_place *place,
                    const struct ddp_comm_options *options, struct ddp_comm **out,
                    struct ddp_err *err)
{
    assert(options->timeout_ns > 0);
    if (place->size < 1 || place->rank < 0 || place->rank >= place->size)
        return ddp_fail(err, DDP_EMISMATCH, "rank %d of %d ranks: impossible", place->rank,
                        place->size);
    struct comm_box *box = box_create(place->size, err);
    if (box == NULL)
        return DDP_ENOMEM;
    struct ddp_comm *comm = &box->comm;
    comm->backend = backend;
    comm->place = *place;
    comm->rank = place->rank;
    comm->device = options->device;
    comm->timeout_ns = options->timeout_ns;
    for (int r = 0; r < comm->size; r++)
        comm->world_rank[r] = r;

    int rc = 0;
    DDP_TRY_GOTO(find_flight(box, err), err_box);
    ddp_flight_phase(comm->flight, "init");
    DDP_TRY_GOTO(backend->init(comm, options, err), err_box);
    *out = comm;
    return 0;

err_box:
    box_destroy(box);
    return rc;
}

void ddp_comm_destroy(struct ddp_comm *comm)
{
    if (comm == NULL)
        return;
    comm->backend->finalize(comm);
    box_destroy((struct comm_box *)comm);
}

/* Ascending, distinct, in the parent, and this rank among them; its place in *mine. */
static int check_group(const struct ddp_comm *parent, const int *ranks, int n, int *mine,
                       struct ddp_err *err)
{
    *mine = -1;
    if (n < 1 || n > parent->size)
        return ddp_fail(err, DDP_EUSAGE, "a group of %d ranks out of %d", n, parent->size);
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->size)
            return ddp_fail(err, DDP_EUSAGE, "a group with rank %d, out of %d", ranks[i],
                            parent->size);
        if (i > 0 && ranks[i] <= ranks[i - 1])
            return ddp_fail(err, DDP_EUSAGE, "a group with rank %d after rank %d: not ascending",
                            ranks[i], ranks[i - 1]);
        if (ranks[i] == parent->rank)
            *mine = i;
    }
    if (*mine < 0)
        return ddp_fail(err, DDP_EUSAGE, "a group made by rank %d, which is not in it",
                        parent->rank);
    return 0;
}

int ddp_comm_group(struct ddp_comm *parent, const int *ranks, int n, struct ddp_comm **out,
                   struct ddp_err *err)
{
    int mine;
    DDP_TRY(check_group(parent, ranks, n, &mine, err));
    struct comm_box *box = box_create(n, err);
    if (box == NULL)
        return DDP_ENOMEM;
    struct ddp_comm *child = &box->comm;
    child->backend = parent->backend;
    child->place = parent->place;
    child->rank = mine;
    child->device = parent->device;
    child->timeout_ns = parent->timeout_ns;
    child->flight = parent->flight;
    child->parent = parent;
    for (int i = 0; i < n; i++)
        child->world_rank[i] = parent->world_rank[ranks[i]];

    int rc = parent->backend->group(parent, child, err);
    if (rc != 0) {
        box_destroy(box);
        return rc;
    }
    *out = child;
    return 0;
}

void ddp_comm_abort(struct ddp_comm *comm, int code)
{
    comm->backend->abort(comm, code);
}

/* No collective begins on a world that was given up. */
static int check_alive(const struct ddp_comm *comm, struct ddp_err *err)
{
    if (comm->shm != NULL && atomic_load_explicit(comm->shm->abort_word, memory_order_acquire) != 0)
        return ddp_wait_aborted(comm, err);
    return 0;
}

int ddp_comm_exchange(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                      struct ddp_err *err)
{
    DDP_TRY(check_alive(comm, err));
    uint64_t seq = ddp_flight_enter(comm->flight, DDP_FLIGHT_EXCHANGE, 0, bytes);
    int rc = comm->backend->exchange(comm, mine, all, bytes, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

int ddp_comm_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    DDP_TRY(check_alive(comm, err));
    uint64_t seq = ddp_flight_enter(comm->flight, DDP_BARRIER, 0, 0);
    int rc = comm->backend->barrier(comm, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

/* What a rank says in ddp_comm_agree. */
struct verdict {
    int32_t code;
    char text[sizeof((struct ddp_err *)0)->text];
    char hint[sizeof((struct ddp_err *)0)->hint];
};

int ddp_comm_agree(struct ddp_comm *comm, int rc, struct ddp_err *err)
{
    struct verdict mine = {.code = rc};
    if (rc != 0 && err != NULL) {
        memcpy(mine.text, err->text, sizeof mine.text);
        memcpy(mine.hint, err->hint, sizeof mine.hint);
    }
    struct verdict *all = ddp_calloc((size_t)comm->size, sizeof *all);
    if (all == NULL) {
        /* The others cannot be told in words any more. */
        ddp_comm_abort(comm, rc != 0 ? rc : DDP_ENOMEM);
        return rc != 0 ? rc : ddp_fail(err, DDP_ENOMEM, "no memory for %d verdicts", comm->size);
    }
    struct ddp_err lost = DDP_ERR_INIT;
    int result = ddp_comm_exchange(comm, &mine, all, sizeof mine, &lost);
    if (result != 0) {
        /* An error of one's own says more than that the others are gone. */
        result = rc != 0 ? rc : ddp_fail(err, result, "%s", lost.text);
        free(all);
        return result;
    }
    for (int r = 0; r < comm->size && result == 0; r++) {
        result = all[r].code;
        if (result != 0 && r != comm->rank && err != NULL) {
            *err = DDP_ERR_INIT;
            err->code = result;
            err->rank = comm->world_rank[r];
            memcpy(err->text, all[r].text, sizeof err->text);
            memcpy(err->hint, all[r].hint, sizeof err->hint);
        }
    }
    if (err != NULL)
        err->agreed = result != 0;
    free(all);
    return result;
}

int ddp_comm_alloc(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    DDP_TRY(check_alive(comm, err));
    uint64_t seq = ddp_flight_enter(comm->flight, DDP_FLIGHT_ALLOC, 0, bytes);
    int rc;
    if (comm->backend->alloc != NULL)
        rc = comm->backend->alloc(comm, bytes, out, err);
    else
        rc = ddp_comm_pages_alloc(&((struct comm_box *)comm)->pages, bytes, out, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

void ddp_comm_free(struct ddp_comm *comm, void *ptr)
{
    if (ptr == NULL)
        return;
    if (comm->backend->free != NULL)
        comm->backend->free(comm, ptr);
    else
        ddp_comm_pages_free(&((struct comm_box *)comm)->pages, ptr);
}

void *ddp_comm_map(struct ddp_comm *comm, int peer, const void *ptr)
{
    return comm->backend->map != NULL ? comm->backend->map(comm, peer, ptr) : NULL;
}
