/* Communicators: the part that is the same for all backends. */
#include "comm/comm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuinfo.h"
#include "base/clock.h"
#include "base/coll_kind.h"
#include "base/fault.h"
#include "base/mem.h"
#include "comm/backend.h"
#include "comm/comm_id.h"
#include "comm/comm_pages.h"
#include "comm/hosts.h"
#include "comm/shm/comm_shm.h"
#include "comm/waiter.h"
#include "launch/segment.h"

/* A communicator and the members that only this file uses. */
struct comm_box {
    struct ddp_comm comm; /* must be first: box and communicator have the same address */
    /* Private memory of backends without registered memory. */
    struct ddp_comm_pages pages;
    /* The flight recorder if no segment holds it. */
    struct ddp_flight *own_flight;
    struct ddp_comm_ids ids;
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
    ddp_comm_ids_release(&box->ids);
    free(box->own_flight);
    free(box->comm.world_rank);
    free(box);
}

static int find_flight(struct comm_box *box, struct ddp_err *err)
{
    const struct ddp_rank_info *rank_info = &box->comm.rank_info;
    if (rank_info->segment != NULL) {
        box->comm.flight = &ddp_segment_rank_of(rank_info->segment, rank_info->rank)->flight;
        return 0;
    }
    box->own_flight = ddp_calloc(1, sizeof *box->own_flight);
    if (box->own_flight == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a flight recorder");
    box->comm.flight = box->own_flight;
    return 0;
}

int ddp_comm_create(const struct ddp_backend *backend, const struct ddp_rank_info *rank_info,
                    const struct ddp_comm_options *options, struct ddp_comm **out,
                    struct ddp_err *err)
{
    assert(options->timeout_ns > 0);
    if (rank_info->size < 1 || rank_info->rank < 0 || rank_info->rank >= rank_info->size)
        return ddp_fail(err, DDP_EMISMATCH, "rank %d is not possible in a world of %d ranks",
                        rank_info->rank, rank_info->size);
    struct comm_box *box = box_create(rank_info->size, err);
    if (box == NULL)
        return DDP_ENOMEM;
    struct ddp_comm *comm = &box->comm;
    comm->backend = backend;
    comm->rank_info = *rank_info;
    comm->rank = rank_info->rank;
    comm->device = options->device;
    comm->cache_share = ddp_cache_share(rank_info->local_size);
    comm->timeout_ns = options->timeout_ns;
    comm->on_expire = options->on_expire;
    comm->on_expire_arg = options->on_expire_arg;
    for (int r = 0; r < comm->size; r++)
        comm->world_rank[r] = r;

    const int64_t began = ddp_now_ns();
    int rc = 0;
    DDP_TRY_GOTO(find_flight(box, err), err_box);
    ddp_flight_phase(comm->flight, "init");
    DDP_TRY_GOTO(DDP_FAULT(COMM_INIT, rank_info->rank, err), err_box);
    DDP_TRY_GOTO(backend->init(comm, options, err), err_box);
    if ((backend->caps & DDP_CAP_MAP) != 0 && !options->inside_host)
        DDP_TRY_GOTO(ddp_hosts_simulate(comm, err), err_hosts);
    comm->init_ns = ddp_now_ns() - began;
    *out = comm;
    return 0;

err_hosts:
    ddp_comm_abort(comm, rc);
    ddp_hosts_close(comm);
    backend->finalize(comm);
err_box:
    box_destroy(box);
    return rc;
}

void ddp_comm_destroy(struct ddp_comm *comm)
{
    if (comm == NULL)
        return;
    ddp_hosts_close(comm);
    comm->backend->finalize(comm);
    box_destroy((struct comm_box *)comm);
}

/* Fails unless ranks [n] are ascending and distinct ranks of the parent and include this rank.
 * *mine becomes this rank's number in the group. */
static int check_group(const struct ddp_comm *parent, const int *ranks, int n, int *mine,
                       struct ddp_err *err)
{
    *mine = -1;
    if (n < 1 || n > parent->size)
        return ddp_fail(err, DDP_EUSAGE,
                        "a group of %d ranks is not possible in a communicator of %d", n,
                        parent->size);
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->size)
            return ddp_fail(err, DDP_EUSAGE,
                            "a group must not include rank %d of a communicator of %d", ranks[i],
                            parent->size);
        if (i > 0 && ranks[i] <= ranks[i - 1])
            return ddp_fail(err, DDP_EUSAGE,
                            "the ranks of a group must ascend, but rank %d follows rank %d",
                            ranks[i], ranks[i - 1]);
        if (ranks[i] == parent->rank)
            *mine = i;
    }
    if (*mine < 0)
        return ddp_fail(err, DDP_EUSAGE, "a group must include rank %d, which opens it",
                        parent->rank);
    return 0;
}

int ddp_comm_group(struct ddp_comm *parent, const int *ranks, int n, struct ddp_comm **out,
                   struct ddp_err *err)
{
    int mine;
    DDP_TRY(check_group(parent, ranks, n, &mine, err));
    int rc = DDP_FAULT(GROUP, parent->rank_info.rank, err);
    struct comm_box *box = rc == 0 ? box_create(n, err) : NULL;
    if (box == NULL) {
        rc = rc != 0 ? rc : DDP_ENOMEM;
        goto err_alone;
    }
    struct ddp_comm *child = &box->comm;
    child->backend = parent->backend;
    child->rank_info = parent->rank_info;
    child->rank = mine;
    child->device = parent->device;
    child->timeout_ns = parent->timeout_ns;
    child->on_expire = parent->on_expire;
    child->on_expire_arg = parent->on_expire_arg;
    child->flight = parent->flight;
    /* The share of a rank of the world, because groups run at the same time. */
    child->cache_share = parent->cache_share;
    child->correctness_only = parent->correctness_only;
    child->parent = parent;
    for (int i = 0; i < n; i++)
        child->world_rank[i] = parent->world_rank[ranks[i]];

    DDP_TRY_GOTO(ddp_comm_id_make(&((struct comm_box *)parent)->ids, parent, child, err),
                 err_unmade);
    DDP_TRY_GOTO(parent->backend->group(parent, child, err), err_box);
    if (parent->hosts != NULL)
        DDP_TRY_GOTO(ddp_hosts_group(parent, child, ranks, err), err_group);
    *out = child;
    return 0;

err_group:
    /* The other members have opened their groups, so end their waits. */
    ddp_comm_abort(parent, rc);
    ddp_hosts_close(child);
    parent->backend->finalize(child);
err_box:
    box_destroy(box);
    return rc;

err_unmade:
    box_destroy(box);
err_alone:
    /* The other members wait for this rank, now or later. */
    ddp_comm_abort(parent, rc);
    return rc;
}

void ddp_comm_abort(struct ddp_comm *comm, int code)
{
    comm->backend->abort(comm, code);
}

/* Fails if the world was aborted, so that no collective begins. */
static int check_alive(const struct ddp_comm *comm, struct ddp_err *err)
{
    if (comm->control != NULL)
        return check_alive(comm->control, err);
    if (comm->shm != NULL && atomic_load_explicit(comm->shm->abort_word, memory_order_acquire) != 0)
        return ddp_wait_aborted(comm, err);
    return 0;
}

/* Returns the communicator that carries the barriers and all-gathers of comm. A side channel takes
 * the place of comm. If all ranks share memory, the host's shm communicator is used, because its
 * waits have a deadline. */
static struct ddp_comm *by_memory(struct ddp_comm *comm)
{
    if (comm->control != NULL)
        return by_memory(comm->control);
    const bool one_host = comm->hosts != NULL && comm->hosts->count == 1;
    return one_host && comm->hosts->local != NULL ? comm->hosts->local : comm;
}

int ddp_comm_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                             struct ddp_err *err)
{
    DDP_TRY(check_alive(comm, err));
    DDP_TRY(DDP_FAULT(EXCHANGE, comm->rank_info.rank, err));
    uint64_t seq = ddp_comm_enter(comm, DDP_FLIGHT_EXCHANGE, 0, bytes);
    struct ddp_comm *by = by_memory(comm);
    int rc = by->backend->exchange(by, mine, all, bytes, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

int ddp_comm_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    DDP_TRY(check_alive(comm, err));
    DDP_TRY(DDP_FAULT(BARRIER, comm->rank_info.rank, err));
    uint64_t seq = ddp_comm_enter(comm, DDP_BARRIER, 0, 0);
    struct ddp_comm *by = by_memory(comm);
    int rc = by->backend->barrier(by, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

/* A rank's result in ddp_comm_agree. */
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
        /* This rank cannot send its error text without memory, so it only aborts. */
        ddp_comm_abort(comm, rc != 0 ? rc : DDP_ENOMEM);
        return rc != 0
                   ? rc
                   : ddp_fail(err, DDP_ENOMEM, "no memory for the results of %d ranks", comm->size);
    }
    struct ddp_err lost = DDP_ERR_INIT;
    int result = ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, &lost);
    if (result != 0) {
        /* This rank's own error explains more than the loss of other ranks. */
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

int ddp_comm_agree_idle(struct ddp_comm *comm, int working, int rc, struct ddp_err *err)
{
    atomic_store_explicit(&comm->flight->working, working, memory_order_release);
    rc = ddp_comm_agree(comm, rc, err);
    atomic_store_explicit(&comm->flight->working, 0, memory_order_release);
    return rc;
}

int64_t ddp_comm_wait_ns(const struct ddp_comm *comm)
{
    const bool idle = atomic_load_explicit(&comm->flight->working, memory_order_relaxed) > 0;
    return idle ? INT64_MAX / 2 : comm->timeout_ns;
}

/* Returns the communicator that owns registered memory: comm, or the one of this host. Returns NULL
 * if there is no registered memory. */
static struct ddp_comm *memory_of(const struct ddp_comm *comm)
{
    if (comm->backend->alloc != NULL)
        return (struct ddp_comm *)(uintptr_t)comm;
    return comm->hosts != NULL ? comm->hosts->local : NULL;
}

bool ddp_comm_has_registered(const struct ddp_comm *comm, char *why, size_t why_bytes)
{
    const bool has = memory_of(comm) != NULL;
    if (!has && why != NULL)
        snprintf(why, why_bytes, "%s",
                 comm->hosts != NULL                          ? comm->hosts->why
                 : (comm->backend->caps & DDP_CAP_HOSTS) != 0 ? "there is one rank"
                                                              : "the backend has none");
    return has;
}

/* Allocates memory on every host. Succeeds on all hosts or on none. */
static int alloc_on_hosts(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    struct ddp_comm *local = comm->hosts->local;
    void *ptr = NULL;
    int rc = local->backend->alloc(local, bytes, &ptr, err);
    if (comm->hosts->count > 1) {
        const int own = rc;
        rc = ddp_comm_agree(comm, own, err);
        if (rc != 0 && own == 0)
            local->backend->free(local, ptr);
    }
    if (rc == 0)
        *out = ptr;
    return rc;
}

static int alloc_memory(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    if (comm->backend->alloc != NULL)
        return comm->backend->alloc(comm, bytes, out, err);
    if (memory_of(comm) != NULL)
        return alloc_on_hosts(comm, bytes, out, err);
    return ddp_comm_pages_alloc(&((struct comm_box *)comm)->pages, bytes, out, err);
}

int ddp_comm_alloc(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    DDP_TRY(check_alive(comm, err));
    uint64_t seq = ddp_comm_enter(comm, DDP_FLIGHT_ALLOC, 0, bytes);
    int rc = alloc_memory(comm, bytes, out, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

void ddp_comm_free(struct ddp_comm *comm, void *ptr)
{
    struct ddp_comm *owner = memory_of(comm);
    if (ptr == NULL)
        return;
    if (owner != NULL)
        owner->backend->free(owner, ptr);
    else
        ddp_comm_pages_free(&((struct comm_box *)comm)->pages, ptr);
}

void *ddp_comm_map(struct ddp_comm *comm, int peer, const void *ptr)
{
    if (comm->backend->map != NULL)
        return comm->backend->map(comm, peer, ptr);
    struct ddp_comm *local = comm->hosts != NULL ? comm->hosts->local : NULL;
    if (local == NULL || comm->hosts->of[peer] != comm->hosts->mine)
        return NULL;
    int rank_info = 0;
    for (int r = 0; r < peer; r++)
        rank_info += comm->hosts->of[r] == comm->hosts->mine;
    return local->backend->map(local, rank_info, ptr);
}
