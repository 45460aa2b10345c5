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
#include "base/rng.h"
#include "comm/backend.h"
#include "comm/comm_pages.h"
#include "comm/hosts.h"
#include "comm/waiter.h"
#include "launch/segment.h"

/* The number of groups that a communicator has made of one set of ranks. */
struct made {
    uint64_t ranks_hash, count;
};

/* A communicator with additional members that only this file uses. */
struct comm_box {
    struct ddp_comm comm; /* must be first: box and communicator have the same address */
    /* Private memory of backends without registered memory. */
    struct ddp_comm_pages pages;
    /* This rank's flight recorder, if no segment holds it. */
    struct ddp_flight *own_flight;
    struct made *made; /* [made_count] */
    size_t made_count;
};

static int box_create(int size, struct comm_box **out, struct ddp_err *err)
{
    struct comm_box *box;
    DDP_TRY(DDP_NEW(&box, 1, err));
    box->comm.size = size;
    const int rc = DDP_NEW(&box->comm.world_rank, (size_t)size, err);
    if (rc == 0)
        *out = box;
    else
        free(box);
    return rc;
}

static void box_destroy(struct comm_box *box)
{
    ddp_comm_pages_release(&box->pages);
    free(box->made);
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
    DDP_TRY(DDP_NEW(&box->own_flight, 1, err));
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
    struct comm_box *box;
    DDP_TRY(box_create(rank_info->size, &box, err));
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

/* Fails unless `ranks` [n] holds ranks of the parent in ascending order, without duplicates, and
 * includes this rank. *mine becomes this rank's number in the group. */
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
                            "rank %d is not among the %d ranks of the communicator", ranks[i],
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

/* Sets child->id (never 0) from the parent's id, the child's world_rank [size], and the number of
 * groups that the parent made of these ranks before. This number is the same on all members,
 * because every member was in all of these groups. Therefore all members compute the same id
 * without messages, and two groups almost certainly have different ids. Reports about a hang use
 * the id to find the operations of the same group on different ranks. */
static int make_id(struct comm_box *parent, struct ddp_comm *child, struct ddp_err *err)
{
    const uint64_t hash =
        ddp_fnv1a(DDP_FNV_INIT, child->world_rank, (size_t)child->size * sizeof *child->world_rank);
    size_t i = 0;
    while (i < parent->made_count && parent->made[i].ranks_hash != hash)
        i++;
    if (i == parent->made_count) {
        struct made *more = ddp_realloc_array(parent->made, i + 1, sizeof *more);
        if (more == NULL)
            return ddp_fail_memory(err, i + 1, sizeof *more, __func__);
        more[i] = (struct made){.ranks_hash = hash};
        parent->made = more;
        parent->made_count++;
    }
    child->id = ddp_mix64(hash ^ ddp_mix64(parent->comm.id + ++parent->made[i].count)) | 1;
    return 0;
}

int ddp_comm_group(struct ddp_comm *parent, const int *ranks, int n, struct ddp_comm **out,
                   struct ddp_err *err)
{
    int mine;
    DDP_TRY(check_group(parent, ranks, n, &mine, err));
    int rc = DDP_FAULT(GROUP, parent->rank_info.rank, err);
    struct comm_box *box = NULL;
    if (rc == 0)
        rc = box_create(n, &box, err);
    DDP_TRY(ddp_comm_abort_if(parent, rc));
    struct ddp_comm *child = &box->comm;
    child->backend = parent->backend;
    child->rank_info = parent->rank_info;
    child->rank = mine;
    child->device = parent->device;
    child->timeout_ns = parent->timeout_ns;
    child->on_expire = parent->on_expire;
    child->on_expire_arg = parent->on_expire_arg;
    child->flight = parent->flight;
    /* A group keeps the cache share of a rank of the world, because several groups may run at the
     * same time. */
    child->cache_share = parent->cache_share;
    child->correctness_only = parent->correctness_only;
    child->host = parent->host;
    child->nic = parent->nic;
    child->parent = parent;
    for (int i = 0; i < n; i++)
        child->world_rank[i] = parent->world_rank[ranks[i]];

    rc = make_id((struct comm_box *)parent, child, err);
    DDP_TRY_GOTO(ddp_comm_abort_if(parent, rc), err_box);
    DDP_TRY_GOTO(parent->backend->group(parent, child, err), err_box);
    if (parent->hosts != NULL)
        DDP_TRY_GOTO(ddp_hosts_group(parent, child, ranks, err), err_group);
    *out = child;
    return 0;

err_group:
    /* Other members may have opened their groups and wait for this rank, so end their waits. */
    ddp_comm_abort(parent, rc);
    ddp_hosts_close(child);
    parent->backend->finalize(child);
err_box:
    box_destroy(box);
    return rc;
}

void ddp_comm_abort(struct ddp_comm *comm, int code)
{
    comm->backend->abort(comm, code);
}

int ddp_comm_abort_if(struct ddp_comm *comm, int rc)
{
    if (rc != 0)
        ddp_comm_abort(comm, rc);
    return rc;
}

struct ddp_comm *ddp_comm_world(const struct ddp_comm *comm)
{
    while (comm->parent != NULL)
        comm = comm->parent;
    return (struct ddp_comm *)(uintptr_t)comm;
}

int ddp_comm_rank_of(const struct ddp_comm *comm, int world_rank)
{
    int r = 0;
    while (r < comm->size - 1 && comm->world_rank[r] != world_rank)
        r++;
    return r;
}

/* Fails if the abort word of shared memory is set. No collective may begin after an abort. */
static int check_alive(const struct ddp_comm *comm, struct ddp_err *err)
{
    return ddp_wait_check(comm->control != NULL ? comm->control : comm, err);
}

/* Returns the communicator that carries the barriers and all-gathers of comm. If comm has a side
 * channel, the following applies to the side channel instead of comm. If all ranks share the memory
 * of one host, returns the shm communicator of the host, because its waits have a deadline.
 * Otherwise returns comm (or the side channel) itself. */
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

/* The data that a rank sends in ddp_comm_agree. */
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
    struct verdict *all;
    const int no_memory = DDP_NEW(&all, (size_t)comm->size, err);
    if (no_memory != 0) /* without memory this rank cannot take part, so it ends the run */
        return ddp_comm_abort_if(comm, rc != 0 ? rc : no_memory);
    struct ddp_err lost = DDP_ERR_INIT;
    int result = ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, &lost);
    if (result != 0) {
        /* This rank's own error explains more than the error of the failed all-gather. */
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

/* Returns the communicator that owns the registered memory of comm: comm itself, or the shm
 * communicator of this host. Returns NULL if there is no registered memory. */
static struct ddp_comm *memory_of(const struct ddp_comm *comm)
{
    if (comm->backend->alloc != NULL)
        return (struct ddp_comm *)(uintptr_t)comm;
    return comm->hosts != NULL ? comm->hosts->local : NULL;
}

struct ddp_stream *ddp_comm_stream(struct ddp_comm *comm)
{
    return comm->backend->stream != NULL ? comm->backend->stream(comm) : NULL;
}

int ddp_comm_wait_stream(struct ddp_comm *comm, unsigned what, unsigned dtype, uint64_t bytes,
                         struct ddp_err *err)
{
    const uint64_t index = ddp_comm_enter(comm, what, dtype, bytes);
    const int rc = comm->backend->wait_stream(comm, err);
    ddp_flight_leave(comm->flight, index, rc != 0);
    return rc;
}

bool ddp_comm_has_registered(const struct ddp_comm *comm, char *why, size_t why_bytes)
{
    const bool has = memory_of(comm) != NULL;
    if (!has && why != NULL)
        snprintf(why, why_bytes, "%s",
                 comm->hosts != NULL ? comm->hosts->why
                 : (comm->backend->caps & DDP_CAP_HOSTS) != 0
                     ? "registered memory needs at least two ranks"
                     : "the backend does not support it");
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
    const struct ddp_hosts *hosts = comm->hosts;
    if (hosts == NULL || hosts->local == NULL || hosts->of[peer] != hosts->mine)
        return NULL;
    return hosts->local->backend->map(hosts->local, hosts->local_rank[peer], ptr);
}
