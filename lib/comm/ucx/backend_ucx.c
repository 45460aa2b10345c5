/* Backend ucx: messages over UCX, which uses InfiniBand, RoCE, TCP and shared memory. The backend
 * needs no MPI. The ranks exchange the addresses of their UCX workers over the side channel
 * (bootstrap.h). UCX then carries messages. UCX also carries barriers and small all-gathers, unless
 * all ranks share the memory of one host. The side channel carries aborts, and it reports lost
 * ranks that UCX does not report.
 *
 * The binary does not link UCX. The calls of UCX are in the module ddpbench-ucx.so (ucx_module.c),
 * which backend_ucx_load.c loads.
 *
 * The 64 bits of a UCX tag are the number of the communicator (24 bits), the sender's world rank
 * (12 bits) and the tag of the message (28 bits). The highest of these 28 bits marks messages of
 * barriers and all-gathers. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"
#include "comm/backend.h"
#include "comm/bootstrap.h"
#include "comm/hosts.h"
#include "comm/control_tcp.h"
#include "comm/ucx/ucx_impl.h"
#include "comm/waiter.h"
#include "launch/segment.h"

#define CONTEXT_SHIFT 40
#define SOURCE_SHIFT  28
#define TAG_BITS      27 /* of the messages of ddp_comm_isend */
#define INTERNAL      (UINT64_C(1) << TAG_BITS)
#define CONTEXT_MAX   ((1u << 24) - 1)
#define RANKS_MAX     4096
/* Communicator number of the messages in which the members of a new group agree on the number of
 * the group. The number of the world is 0. */
#define CONTEXT_SETUP CONTEXT_MAX

/* After a failure, a rank waits at most this long until our launcher or the side channel reports
 * the cause. */
#define CAUSE_NS INT64_C(500000000)
/* A waiting rank checks the side channel at most once in LOOK_NS. Only every LOOK_POLLS-th poll
 * reads the clock for this check. */
#define LOOK_NS    INT64_C(100000000)
#define LOOK_POLLS 64

/* A block of ddp_comm_alloc. */
struct block {
    struct block *next;
    void *ptr, *handle; /* handle: UCX's handle of the registration */
    size_t bytes;
    bool is_private; /* private pages, not memory that the ranks of this host share */
};

/* State that all communicators of a process share. */
struct world {
    const struct ddp_ucx_module *module;
    struct ddp_ucx *ucx;
    struct ddp_comm *comm, *side; /* the world, and its side channel */
    /* the flight recorder that the world used before it used the recorder of the side channel */
    struct ddp_flight *own_flight;
    char (*host)[64];      /* [size] the host name of each rank */
    uint32_t next_context; /* this rank has not used this number or a larger one */
    struct block *blocks;
    /* True if several threads of this rank use the world. `lock` then protects next_context,
     * `blocks` and the members below, and the calls of the module and of the side channel. Only one
     * thread uses the world while it is opened or closed, so no lock is needed then. */
    bool threads;
    pthread_mutex_t lock;
    int64_t looked_ns; /* time of the last check of the side channel */
    unsigned polls;
    char why[240]; /* the first failure */
    _Atomic(bool) failed;
};

struct state {
    struct world *world;
    uint32_t context;
    /* Memory for an all-gather. */
    char *gather;
    size_t gather_bytes;
};

static struct state *state_of(const struct ddp_comm *comm)
{
    return comm->state;
}

static void take(struct world *w)
{
    if (w->threads)
        pthread_mutex_lock(&w->lock);
}

static void release(struct world *w)
{
    if (w->threads)
        pthread_mutex_unlock(&w->lock);
}

/* Returns whether our launcher started the ranks. The side channel then uses the launcher's
 * segment. */
static bool is_own(const struct world *w)
{
    return (w->side->backend->caps & DDP_CAP_MAP) != 0;
}

/* Sets the abort word of this host. The word can name only ranks of this host, so it names `rank`
 * if that rank is on this host, and otherwise this rank. */
static void abort_host(struct world *w, int rank, int code)
{
    const struct ddp_hosts *hosts = w->comm->hosts;
    struct ddp_comm *local = hosts != NULL ? hosts->local : NULL;
    if (local == NULL)
        return;
    const bool here = rank >= 0 && hosts->of[rank] == hosts->mine;
    ddp_segment_abort(local->rank_info.segment, here ? hosts->local_rank[rank] : local->rank,
                      local->rank, code);
}

/* Ends the waits of all ranks. `rank` is the world rank to blame, or -1. Reports w->why to the
 * other ranks if the side channel is TCP. Only the first call has an effect. Call this function
 * under the lock. */
static void abort_all(struct world *w, int rank, int code)
{
    struct ddp_comm *side = w->side;
    if (atomic_exchange(&w->failed, true))
        return;
    if (is_own(w))
        ddp_segment_abort(side->rank_info.segment, rank >= 0 ? rank : w->comm->rank, w->comm->rank,
                          code);
    else if (side->backend == &ddp_control_tcp)
        ddp_control_tcp_lost(side, rank, w->why);
    else
        ddp_comm_abort(side, code);
    /* Set the abort word after the abort of the side channel, so that a rank of this host that sees
     * the word can read the reason from the side channel. */
    if (!is_own(w))
        abort_host(w, rank, code);
}

/* Fails with the text of the first failure. If no failure was known, `text` is the first failure,
 * and this function reports it to all ranks. Call this function under the lock. */
static int lose(struct ddp_comm *comm, int rank, const char *text, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    if (!atomic_load(&w->failed)) {
        snprintf(w->why, sizeof w->why, "%s", text);
        /* An abort of MPI's side channel ends this process, so report the failure first. */
        if (!is_own(w) && comm->on_expire != NULL)
            comm->on_expire(comm->on_expire_arg, w->why);
        abort_all(w, rank, DDP_ELOST);
    }
    return ddp_fail(err, DDP_ELOST, "%s", w->why);
}

/* Returns whether the side channel reports a failure, and writes its text to `text`. */
static bool side_failed(struct ddp_comm *side, char *text, size_t text_bytes)
{
    struct ddp_err why = DDP_ERR_INIT;
    const int rc =
        side->backend->look != NULL ? side->backend->look(side, &why) : ddp_wait_check(side, &why);
    if (rc != 0)
        snprintf(text, text_bytes, "%s", why.text);
    return rc != 0;
}

/* Waits until our launcher has set the abort word, at most CAUSE_NS. The launcher knows how a dead
 * rank ended, so its report is better than that of UCX. */
static void wait_for_launcher(const struct world *w)
{
    const int64_t deadline = ddp_now_ns() + CAUSE_NS;
    while (!ddp_segment_aborted(w->side->rank_info.segment, NULL, NULL, NULL) &&
           ddp_now_ns() < deadline)
        ddp_sleep_ns(1000000);
}

/* Fails with DDP_ELOST if the run has failed on this or another rank. If `now` is set, every call
 * checks the side channel. Otherwise, at most one call in LOOK_NS checks the side channel. Call
 * this function under the lock. */
static int check_run(struct ddp_comm *comm, bool now, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    char text[240];
    const char *why;
    if (atomic_load(&w->failed))
        return ddp_fail(err, DDP_ELOST, "%s", w->why);
    const int lost = w->module->lost(w->ucx, &why);
    if (lost >= 0) {
        if (is_own(w)) {
            wait_for_launcher(w);
            DDP_TRY(ddp_wait_check(w->side, err));
        }
        snprintf(text, sizeof text, "rank %d on %s was lost: UCX: %s", lost, w->host[lost], why);
        return lose(comm, lost, text, err);
    }
    DDP_TRY(ddp_wait_check(w->side, err));
    if (!now && ++w->polls % LOOK_POLLS != 0)
        return 0;
    const int64_t time = ddp_now_ns();
    if (!now && time - w->looked_ns < LOOK_NS)
        return 0;
    w->looked_ns = time;
    if (!side_failed(w->side, text, sizeof text))
        return 0;
    const bool tcp = w->side->backend == &ddp_control_tcp;
    return lose(comm, tcp ? ddp_control_tcp_culprit(w->side) : -1, text, err);
}

/* Does the same as check_run, after the abort word of this host was set. If the rank that set the
 * word blames itself, the cause may be a failure on another host. The side channel reports such a
 * cause, perhaps later. Therefore this function repeats check_run until check_run fails, for at
 * most CAUSE_NS. Call this function under the lock. */
static int check_aborted(struct ddp_comm *comm, struct ddp_err *err)
{
    const struct ddp_comm *local = state_of(comm)->world->comm->hosts->local;
    const int64_t deadline = ddp_now_ns() + CAUSE_NS;
    int culprit = -1, setter = -1;
    ddp_segment_aborted(local->rank_info.segment, &culprit, &setter, NULL);
    int rc = check_run(comm, true, err);
    while (rc == 0 && culprit == setter && setter != local->rank && ddp_now_ns() < deadline) {
        ddp_sleep_ns(1000000);
        rc = check_run(comm, true, err);
    }
    return rc;
}

/* Returns whether the abort word of this host is set. */
static bool host_aborted(const struct world *w)
{
    const struct ddp_hosts *hosts = w->comm->hosts;
    return hosts != NULL && hosts->local != NULL &&
           ddp_segment_aborted(hosts->local->rank_info.segment, NULL, NULL, NULL);
}

static int ucx_look(struct ddp_comm *comm, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    take(w);
    if (!atomic_load(&w->failed))
        w->module->progress(w->ucx);
    const int rc = host_aborted(w) ? check_aborted(comm, err) : check_run(comm, false, err);
    release(w);
    return rc;
}

/* Handles the error `own` of a message to or from world rank `peer`. If the connection was lost,
 * the run has failed. Call this function under the lock. */
static int message_failed(struct ddp_comm *comm, int peer, const struct ddp_err *own,
                          struct ddp_err *err)
{
    char text[240];
    if (own->code != DDP_ELOST)
        return ddp_fail_copy(err, own);
    DDP_TRY(check_run(comm, true, err));
    snprintf(text, sizeof text, "rank %d on %s was lost: %.120s", peer,
             state_of(comm)->world->host[peer], own->text);
    return lose(comm, peer, text, err);
}

static uint64_t tag_of(const struct ddp_comm *comm, int source, uint64_t tag)
{
    return (uint64_t)state_of(comm)->context << CONTEXT_SHIFT |
           (uint64_t)comm->world_rank[source] << SOURCE_SHIFT | tag;
}

/* In the requests of this backend, impl[0] holds the module's request, u[0] the bytes, u[1] whether
 * the request is a receive, u[2] the bytes that arrived, and u[3] the world rank of the peer. */

/* Begins a message of `bytes` bytes to or from rank `peer`. Fills *req and takes the lock. After
 * success the caller starts the message and calls end_start. After a failure the lock is free. */
static int begin_start(struct ddp_comm *comm, int peer, bool receives, size_t bytes,
                       struct ddp_request *req, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    req->u[0] = bytes;
    req->u[1] = receives;
    req->u[3] = (uint64_t)comm->world_rank[peer];
    take(w);
    const int rc = check_run(comm, false, err);
    if (rc != 0)
        release(w);
    return rc;
}

/* Handles the outcome of the module's call, `rc` and *own, and releases the lock. */
static int end_start(struct ddp_comm *comm, const struct ddp_request *req, int rc,
                     const struct ddp_err *own, struct ddp_err *err)
{
    if (rc != 0)
        rc = message_failed(comm, (int)req->u[3], own, err);
    release(state_of(comm)->world);
    return rc;
}

static int start_send(struct ddp_comm *comm, int dst, uint64_t tag, const void *buf, size_t bytes,
                      struct ddp_request *req, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    struct ddp_err own = DDP_ERR_INIT;
    DDP_TRY(begin_start(comm, dst, false, bytes, req, err));
    const int rc = w->module->isend(w->ucx, comm->world_rank[dst], tag_of(comm, comm->rank, tag),
                                    buf, bytes, &req->impl[0], &own);
    return end_start(comm, req, rc, &own, err);
}

static int start_receive(struct ddp_comm *comm, int src, uint64_t tag, void *buf, size_t bytes,
                         struct ddp_request *req, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    struct ddp_err own = DDP_ERR_INIT;
    DDP_TRY(begin_start(comm, src, true, bytes, req, err));
    const int rc =
        w->module->irecv(w->ucx, tag_of(comm, src, tag), buf, bytes, &req->impl[0], &own);
    return end_start(comm, req, rc, &own, err);
}

static int check_tag(int tag, struct ddp_err *err)
{
    return tag >= 0 && tag < 1 << TAG_BITS
               ? 0
               : ddp_fail(err, DDP_EUSAGE, "tag %d is not between 0 and %d", tag,
                          (1 << TAG_BITS) - 1);
}

static int ucx_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    DDP_TRY(check_tag(tag, err));
    return start_send(comm, dst, (uint64_t)tag, buf, bytes, req, err);
}

static int ucx_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    DDP_TRY(check_tag(tag, err));
    return start_receive(comm, src, (uint64_t)tag, buf, bytes, req, err);
}

/* Tests a request before and after one call of UCX's progress function. Call this function under
 * the lock. */
static int test_locked(struct ddp_comm *comm, struct ddp_request *req, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    for (int attempt = 0; attempt < 2 && req->impl[0] != NULL; attempt++) {
        struct ddp_err own = DDP_ERR_INIT;
        size_t got = 0;
        if (atomic_load(&w->failed))
            break;
        if (attempt == 1)
            w->module->progress(w->ucx);
        if (w->module->test(w->ucx, &req->impl[0], req->u[1], &got, &own) != 0)
            return message_failed(comm, (int)req->u[3], &own, err);
        req->u[2] = got;
    }
    return req->impl[0] != NULL ? check_run(comm, false, err) : 0;
}

static int ucx_test(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    if (ddp_wait_check(comm, NULL) != 0) {
        take(w);
        const int rc = host_aborted(w) ? check_aborted(comm, err) : check_run(comm, true, err);
        release(w);
        return rc != 0 ? rc : ddp_wait_check(comm, err);
    }
    if (req->impl[0] != NULL) {
        take(w);
        const int rc = test_locked(comm, req, err);
        release(w);
        DDP_TRY(rc);
    }
    *done = req->impl[0] == NULL;
    if (!*done || !req->u[1] || req->u[2] == req->u[0])
        return 0;
    return ddp_fail(err, DDP_EMISMATCH, "received a message of %llu bytes, but expected %llu",
                    (unsigned long long)req->u[2], (unsigned long long)req->u[0]);
}

/* Sends `bytes` bytes to rank `to` and receives `bytes` bytes from rank `from`, as part of a
 * barrier or an all-gather. */
static int send_receive(struct ddp_comm *comm, int to, const void *out, int from, void *in,
                        size_t bytes, uint64_t tag, struct ddp_err *err)
{
    struct ddp_request req[2] = {{.active = true, .u[7] = (uint64_t)from},
                                 {.active = true, .u[7] = (uint64_t)to}};
    DDP_TRY(start_receive(comm, from, INTERNAL | tag, in, bytes, &req[0], err));
    DDP_TRY(start_send(comm, to, INTERNAL | tag, out, bytes, &req[1], err));
    return ddp_comm_wait(comm, req, 2, err);
}

/* A dissemination barrier: in round k, each rank sends an empty message to the rank that is 2^k
 * ranks after it. */
static int ucx_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    const int n = comm->size;
    char nothing = 0;
    for (int step = 1; step < n; step *= 2)
        DDP_TRY(send_receive(comm, (comm->rank + step) % n, &nothing, (comm->rank - step + n) % n,
                             &nothing, 0, 0, err));
    return 0;
}

/* Bruck's all-gather: before each round, a rank has the data of `step` ranks, beginning with its
 * own. In the round, rank r receives from rank r + step the data of the next `step` ranks, or of
 * fewer ranks in the last round. */
static int ucx_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                               struct ddp_err *err)
{
    struct state *s = state_of(comm);
    const int n = comm->size;
    const size_t whole = bytes * (size_t)n, first = bytes * (size_t)comm->rank;
    if (whole == 0)
        return ucx_barrier(comm, err);
    if (whole > s->gather_bytes) {
        DDP_TRY(ddp_comm_abort_if(comm, DDP_RESIZE(&s->gather, whole, err)));
        s->gather_bytes = whole;
    }
    memcpy(s->gather, mine, bytes);
    for (int step = 1; step < n; step *= 2) {
        const size_t count = (size_t)DDP_MIN(step, n - step) * bytes;
        DDP_TRY(send_receive(comm, (comm->rank - step + n) % n, s->gather, (comm->rank + step) % n,
                             s->gather + (size_t)step * bytes, count, 1, err));
    }
    memcpy((char *)all + first, s->gather, whole - first);
    memcpy(all, s->gather + (whole - first), first);
    return 0;
}

/* The facts that a rank sends over the side channel. */
struct card {
    uint64_t address_bytes, identity; /* identity: ddp_hosts_identity of the host */
    char library[48], host[64];
};

/* Connects this rank to all ranks. cards [size]; `addresses` holds `longest` bytes for each
 * rank. */
static int connect_all(struct ddp_comm *comm, struct world *w, const struct card *cards,
                       const char *addresses, size_t longest, struct ddp_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        if (strncmp(cards[r].library, cards[0].library, sizeof cards[r].library) != 0)
            return ddp_fail(err, DDP_EMISMATCH,
                            "rank 0 on %.63s has %.47s, but rank %d on %.63s has %.47s",
                            cards[0].host, cards[0].library, r, cards[r].host, cards[r].library);
        memcpy(w->host[r], cards[r].host, sizeof w->host[r]);
        const int rc = w->module->connect(w->ucx, r, addresses + (size_t)r * longest,
                                          cards[r].identity == cards[comm->rank].identity, err);
        if (rc != 0) {
            char text[300];
            snprintf(text, sizeof text, "no connection to rank %d on %.63s: %.180s", r,
                     cards[r].host, err->text);
            err->code = 0;
            return ddp_fail(err, rc, "%s", text);
        }
    }
    return 0;
}

/* Exchanges the addresses of the workers over the side channel, and connects this rank to all
 * ranks. */
static int exchange_addresses(struct ddp_comm *comm, struct world *w, struct ddp_err *err)
{
    struct ddp_sysinfo host;
    struct card mine = {0}, *cards = NULL;
    char *own = NULL, *all = NULL;
    const void *address = NULL;
    size_t bytes = 0, longest = 0;
    ddp_sysinfo_read(&host);
    mine.identity = ddp_hosts_identity(&host);
    snprintf(mine.host, sizeof mine.host, "%.63s", host.host);
    snprintf(mine.library, sizeof mine.library, "%s", w->module->library());
    int rc = DDP_NEW(&cards, (size_t)comm->size, err);
    if (rc == 0)
        rc = DDP_NEW(&w->host, (size_t)comm->size, err);
    if (rc == 0)
        rc = w->module->address(w->ucx, &address, &bytes, err);
    DDP_TRY_GOTO(ddp_comm_agree(w->side, rc, err), out);
    mine.address_bytes = bytes;
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(w->side, &mine, cards, sizeof mine, err), out);
    for (int r = 0; r < comm->size; r++)
        longest = DDP_MAX(longest, cards[r].address_bytes);
    rc = DDP_NEW(&own, longest, err);
    if (rc == 0)
        rc = DDP_NEW(&all, longest * (size_t)comm->size, err);
    DDP_TRY_GOTO(ddp_comm_agree(w->side, rc, err), out);
    memcpy(own, address, bytes);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(w->side, own, all, longest, err), out);
    rc = ddp_comm_agree(w->side, connect_all(comm, w, cards, all, longest, err), err);
out:
    free(all);
    free(own);
    free(cards);
    return rc;
}

static void world_free(struct world *w)
{
    pthread_mutex_destroy(&w->lock);
    free(w->host);
    free(w);
}

static void state_free(struct state *s)
{
    if (s == NULL)
        return;
    free(s->gather);
    free(s);
}

/* Opens the worker and connects it. The side channel must be open, because the ranks agree on
 * errors over it. */
static int open_worker(struct ddp_comm *comm, const struct ddp_comm_options *options,
                       struct world *w, struct ddp_err *err)
{
    int rc = comm->size > RANKS_MAX
                 ? ddp_fail(err, DDP_EUNAVAIL, "backend ucx connects at most %d ranks", RANKS_MAX)
                 : ddp_ucx_load(options->module_dir, err);
    if (rc == 0) {
        w->module = ddp_ucx_loaded();
        rc = w->module->open(comm->size, &w->ucx, err);
    }
    DDP_TRY(ddp_comm_agree(w->side, rc, err));
    return exchange_addresses(comm, w, err);
}

static int ucx_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                    struct ddp_err *err)
{
    int rc;
    struct world *w;
    struct state *s = NULL;
    struct ddp_flight *own_flight = comm->flight;
    DDP_TRY(DDP_NEW(&w, 1, err));
    pthread_mutex_init(&w->lock, NULL);
    w->threads = options->threads;
    w->comm = comm;
    w->own_flight = own_flight;
    w->next_context = 1;
    DDP_TRY_GOTO(DDP_NEW(&s, 1, err), err_world);
    s->world = w;
    DDP_TRY_GOTO(ddp_bootstrap_open(comm, options, err), err_world);
    /* With comm->control set, barriers and all-gathers would use the side channel instead of
     * UCX. */
    w->side = comm->control;
    comm->control = NULL;
    DDP_TRY_GOTO(open_worker(comm, options, w, err), err_side);
    comm->state = s;
    rc = is_own(w) ? ddp_hosts_within(comm, w->side, err) : ddp_hosts_open(comm, options, err);
    if (rc == 0)
        return 0;
    if (rc != DDP_EUSAGE) /* all ranks get DDP_EUSAGE, so no rank waits */
        ddp_comm_abort(comm, rc);
    ddp_hosts_close(comm);
    comm->state = NULL;
err_side:
    if (w->ucx != NULL)
        w->module->close(w->ucx, false);
    comm->control = w->side;
    ddp_bootstrap_close(comm);
    comm->flight = own_flight;
err_world:
    state_free(s);
    world_free(w);
    return rc;
}

/* Sets the communicator number of the child to the largest next_context of the members, because no
 * member has used this number. The members exchange the values of next_context in messages with the
 * number CONTEXT_SETUP. The messages of different groups do not mix, because any two ranks open
 * their common groups in the same order. */
static int agree_on_context(struct ddp_comm *child, struct ddp_err *err)
{
    struct state *s = state_of(child);
    uint32_t *all;
    DDP_TRY(ddp_comm_abort_if(child, DDP_NEW(&all, (size_t)child->size, err)));
    s->context = CONTEXT_SETUP;
    take(s->world);
    const uint32_t mine = s->world->next_context;
    release(s->world);
    int rc = ucx_allgather_bytes(child, &mine, all, sizeof mine, err);
    uint32_t most = 0;
    for (int r = 0; rc == 0 && r < child->size; r++)
        most = DDP_MAX(most, all[r]);
    free(all);
    DDP_TRY(rc);
    if (most >= CONTEXT_SETUP)
        return ddp_fail(err, DDP_EUNAVAIL, "this run has made %u groups, which is the limit", most);
    s->context = most;
    take(s->world);
    s->world->next_context = DDP_MAX(s->world->next_context, most + 1);
    release(s->world);
    return 0;
}

static int ucx_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct state *s;
    DDP_TRY(ddp_comm_abort_if(parent, DDP_NEW(&s, 1, err)));
    s->world = state_of(parent)->world;
    child->state = s;
    const int rc = agree_on_context(child, err);
    if (rc == 0)
        return 0;
    child->state = NULL;
    state_free(s);
    return rc;
}

/* Waits until UCX has sent all bytes of earlier messages. */
static int flush(struct ddp_comm *comm, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    struct ddp_request req = {
        .active = true, .u[3] = (uint64_t)comm->rank, .u[7] = (uint64_t)comm->rank};
    struct ddp_err own = DDP_ERR_INIT;
    take(w);
    int rc = check_run(comm, true, err);
    if (rc != 0) {
        release(w);
        return rc;
    }
    rc = w->module->flush(w->ucx, &req.impl[0], &own);
    DDP_TRY(end_start(comm, &req, rc, &own, err));
    return ddp_comm_wait(comm, &req, 1, err);
}

/* Frees the structs of the blocks that the caller has not freed. If `orderly` is true, also ends
 * the registrations and frees private pages. Shared blocks belong to a communicator that
 * ddp_hosts_close has already closed. */
static void release_blocks(struct world *w, bool orderly)
{
    while (w->blocks != NULL) {
        struct block *b = w->blocks;
        w->blocks = b->next;
        if (orderly)
            w->module->unmap(w->ucx, b->handle);
        if (orderly && b->is_private)
            ddp_free_pages(b->ptr, b->bytes);
        free(b);
    }
}

/* A rank closes its connections only after all ranks have sent their messages and entered a
 * barrier. After a failure another rank may never enter the barrier. The connections then stay open
 * until the process ends. */
static void ucx_finalize(struct ddp_comm *comm)
{
    struct state *s = state_of(comm);
    struct world *w = s->world;
    struct ddp_err ignored = DDP_ERR_INIT;
    if (comm->parent == NULL) {
        ddp_flight_phase(comm->flight, "finalize");
        const bool orderly =
            !w->failed && flush(comm, &ignored) == 0 && ddp_comm_barrier(w->side, &ignored) == 0;
        release_blocks(w, orderly);
        w->module->close(w->ucx, orderly);
        comm->control = w->side;
        ddp_bootstrap_close(comm);
        comm->flight = w->own_flight;
        world_free(w);
    }
    state_free(s);
}

static void ucx_transports(struct ddp_comm *comm, char *out, size_t out_bytes)
{
    struct world *w = state_of(comm)->world;
    take(w);
    w->module->transports(w->ucx, out, out_bytes);
    release(w);
}

static void ucx_abort(struct ddp_comm *comm, int code)
{
    struct world *w = state_of(comm)->world;
    take(w);
    if (w->why[0] == '\0')
        snprintf(w->why, sizeof w->why, "rank %d on %s failed or was lost (code %d)", w->comm->rank,
                 w->host[w->comm->rank], -code);
    abort_all(w, w->comm->rank, code);
    release(w);
}

static void give_back(struct ddp_comm *comm, const struct block *b)
{
    struct ddp_comm *local = comm->hosts != NULL ? comm->hosts->local : NULL;
    if (b->is_private)
        ddp_free_pages(b->ptr, b->bytes);
    else if (local != NULL)
        local->backend->free(local, b->ptr);
}

/* Allocates memory and registers it with the network devices. If the ranks of this host share
 * memory, allocates shared memory, else private pages. */
static int block_fill(struct ddp_comm *comm, struct block *b, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    struct ddp_comm *local = comm->hosts != NULL ? comm->hosts->local : NULL;
    b->is_private = local == NULL;
    if (local != NULL)
        DDP_TRY(local->backend->alloc(local, b->bytes, &b->ptr, err));
    else if ((b->ptr = ddp_alloc_pages(b->bytes)) == NULL)
        return ddp_fail(err, DDP_ENOMEM, "cannot allocate %zu bytes", b->bytes);
    take(w);
    const int rc = w->module->map(w->ucx, b->ptr, DDP_MAX(b->bytes, (size_t)1), &b->handle, err);
    release(w);
    if (rc != 0)
        give_back(comm, b);
    return rc;
}

static int ucx_alloc(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    struct world *w = state_of(comm)->world;
    struct block *b;
    DDP_TRY(ddp_comm_abort_if(comm, DDP_NEW(&b, 1, err)));
    b->bytes = bytes;
    const int own = block_fill(comm, b, err), rc = ddp_comm_agree(comm, own, err);
    take(w);
    if (rc == 0) {
        b->next = w->blocks;
        w->blocks = b;
        *out = b->ptr;
    } else if (own == 0) {
        w->module->unmap(w->ucx, b->handle);
    }
    release(w);
    if (rc != 0 && own == 0)
        give_back(comm, b);
    if (rc != 0)
        free(b);
    return rc;
}

static void ucx_free(struct ddp_comm *comm, void *ptr)
{
    struct world *w = state_of(comm)->world;
    take(w);
    struct block **link = &w->blocks;
    while (*link != NULL && (*link)->ptr != ptr)
        link = &(*link)->next;
    struct block *b = *link;
    if (b != NULL) {
        *link = b->next;
        w->module->unmap(w->ucx, b->handle);
    }
    release(w);
    if (b == NULL) /* no block has this address, which is a mistake of the caller */
        return;
    give_back(comm, b);
    free(b);
}

extern const struct ddp_backend ddp_backend_ucx; /* backend_list.h */
const struct ddp_backend ddp_backend_ucx = {
    .name = "ucx",
    .summary = "UCX between hosts, without MPI; torchrun, mpiexec, srun or ddpbench starts the "
               "ranks",
    .caps = DDP_CAP_P2P | DDP_CAP_REGISTERED | DDP_CAP_HOSTS | DDP_CAP_ANY_LAUNCHER,
    .library = ddp_ucx_library,
    .transports = ucx_transports,
    .probe = ddp_ucx_probe,
    .init = ucx_init,
    .finalize = ucx_finalize,
    .abort = ucx_abort,
    .group = ucx_group,
    .barrier = ucx_barrier,
    .exchange = ucx_allgather_bytes,
    .look = ucx_look,
    .alloc = ucx_alloc,
    .free = ucx_free,
    .isend = ucx_isend,
    .irecv = ucx_irecv,
    .test = ucx_test,
};
