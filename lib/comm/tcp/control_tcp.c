/* The side channel over TCP: all-gathers, opening, closing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/mem.h"
#include "comm/tcp/control_tcp_impl.h"
#include "launch/launcher.h"

#define PAUSE_MS 200

/* Runs on rank 0. Receives the available bytes of a leaf's DATA frame. Sets *done to whether the
 * frame is complete. */
static int receive_share(struct ddp_comm *comm, int rank, void *to, size_t bytes, bool *done,
                         struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    struct ddp_control_share *s = &c->share[rank];
    const int fd = c->connections.peer[rank];
    const bool fresh = s->got_head < sizeof s->head;
    int rc = ddp_tcp_receive_some(fd, &s->head, sizeof s->head, &s->got_head);
    *done = false;
    if (rc == EAGAIN)
        return 0;
    if (rc != 0)
        return ddp_control_lose_peer(comm, rank, rc, err);
    if (fresh && s->head.magic == DDP_FRAME_MAGIC && s->head.kind == DDP_FRAME_ABORT)
        return ddp_control_receive_abort(comm, fd, &s->head, err);
    if (fresh)
        DDP_TRY(ddp_control_check_frame(comm, rank, &s->head, DDP_FRAME_DATA, bytes, err));
    rc = ddp_tcp_receive_some(fd, to, bytes, &s->got);
    if (rc != 0 && rc != EAGAIN)
        return ddp_control_lose_peer(comm, rank, rc, err);
    *done = rc == 0;
    return 0;
}

static int collect(struct ddp_comm *comm, char *all, size_t bytes, struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    const int64_t deadline = ddp_now_ns() + ddp_comm_wait_ns(comm);
    int missing = comm->size - 1;
    for (int r = 0; r < comm->size; r++) {
        c->polled[r] = (struct pollfd){.fd = c->connections.peer[r], .events = POLLIN};
        c->share[r].got_head = c->share[r].got = 0;
    }
    while (missing > 0) {
        if (ddp_now_ns() >= deadline)
            return ddp_control_expire(comm, err);
        const int n = poll(c->polled, (nfds_t)comm->size, ddp_tcp_poll_ms(deadline, PAUSE_MS));
        if (n < 0 && errno != EINTR)
            return ddp_control_lose_peer(comm, 0, errno, err);
        for (int r = 1; r < comm->size && n > 0; r++) {
            bool done = false;
            if (c->polled[r].fd < 0 || c->polled[r].revents == 0)
                continue;
            DDP_TRY(receive_share(comm, r, all + (size_t)r * bytes, bytes, &done, err));
            if (done) {
                c->polled[r].fd = -1; /* later bytes belong to the next all-gather */
                missing--;
            }
        }
    }
    return 0;
}

static int by_server(struct ddp_comm *comm, const void *mine, char *all, size_t bytes,
                     struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    const size_t sum = bytes * (size_t)comm->size;
    const struct ddp_control_frame head = {
        .magic = DDP_FRAME_MAGIC, .kind = DDP_FRAME_RESULT, .seq = c->seq, .bytes = sum};
    if (bytes > 0)
        memmove(all, mine, bytes);
    DDP_TRY(collect(comm, all, bytes, err));
    const int64_t deadline = ddp_now_ns() + ddp_comm_wait_ns(comm);
    for (int r = 1; r < comm->size; r++) {
        int rc = ddp_tcp_send(c->connections.peer[r], &head, sizeof head, deadline);
        if (rc == 0)
            rc = ddp_tcp_send(c->connections.peer[r], all, sum, deadline);
        if (rc != 0)
            return ddp_control_lose_peer(comm, r, rc, err);
    }
    return 0;
}

static int by_leaf(struct ddp_comm *comm, const void *mine, char *all, size_t bytes,
                   struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    const int64_t deadline = ddp_now_ns() + ddp_comm_wait_ns(comm) + DDP_CONTROL_GRACE_NS;
    const size_t sum = bytes * (size_t)comm->size;
    const int fd = c->connections.peer[0];
    struct ddp_control_frame head = {
        .magic = DDP_FRAME_MAGIC, .kind = DDP_FRAME_DATA, .seq = c->seq, .bytes = bytes};
    /* If sending fails, rank 0 may have sent the reason before it closed the connection, so read
     * the answer of rank 0 in any case. */
    int rc = ddp_tcp_send(fd, &head, sizeof head, deadline);
    if (rc == 0)
        rc = ddp_tcp_send(fd, mine, bytes, deadline);
    if (rc == 0 || rc == EPIPE || rc == ECONNRESET)
        rc = ddp_tcp_receive(fd, &head, sizeof head, deadline);
    if (rc == ETIMEDOUT)
        return ddp_control_expire(comm, err);
    if (rc != 0)
        return ddp_control_lose_peer(comm, 0, rc, err);
    if (head.magic == DDP_FRAME_MAGIC && head.kind == DDP_FRAME_ABORT)
        return ddp_control_receive_abort(comm, fd, &head, err);
    DDP_TRY(ddp_control_check_frame(comm, 0, &head, DDP_FRAME_RESULT, sum, err));
    rc = ddp_tcp_receive(fd, all, sum, deadline);
    return rc == 0 ? 0 : ddp_control_lose_peer(comm, 0, rc, err);
}

static int tcp_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                               struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    if (c->failed)
        return ddp_fail(err, DDP_ELOST, "%s", c->why);
    c->seq++;
    return comm->rank == 0 ? by_server(comm, mine, all, bytes, err)
                           : by_leaf(comm, mine, all, bytes, err);
}

static int tcp_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    char nothing = 0;
    return tcp_allgather_bytes(comm, &nothing, &nothing, 0, err);
}

/* Checks one connection for a lost rank or an ABORT frame. Leaves bytes that belong to an
 * all-gather. */
static int look_at(struct ddp_comm *comm, int rank, int fd, struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    struct ddp_control_frame head;
    const ssize_t n = recv(fd, &head, sizeof head, MSG_PEEK);
    if (c->share[rank].gone || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    if (n <= 0)
        return ddp_control_lose_peer(comm, rank, n == 0 ? EPIPE : errno, err);
    if ((size_t)n < sizeof head || head.magic != DDP_FRAME_MAGIC)
        return 0;
    c->share[rank].gone = head.kind == DDP_FRAME_BYE;
    if (head.kind != DDP_FRAME_ABORT)
        return 0;
    if (recv(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        head.bytes = 0;
    return ddp_control_receive_abort(comm, fd, &head, err);
}

static int tcp_look(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    if (c->failed)
        return ddp_fail(err, DDP_ELOST, "%s", c->why);
    if (comm->rank != 0)
        return look_at(comm, 0, c->connections.peer[0], err);
    for (int r = 1; r < comm->size; r++)
        DDP_TRY(look_at(comm, r, c->connections.peer[r], err));
    return 0;
}

static void tcp_abort(struct ddp_comm *comm, int code)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    const int me = comm->world_rank[comm->rank];
    if (!c->failed)
        snprintf(c->why, sizeof c->why, "rank %d failed or was lost (code %d)", me, -code);
    ddp_control_abort(c, code, me);
}

static void control_free(struct ddp_tcp_control *c)
{
    if (c == NULL)
        return;
    ddp_connections_close(&c->connections);
    free(c->share);
    free(c->polled);
    free(c);
}

static void world_free(struct ddp_control_world *w)
{
    if (w == NULL)
        return;
    ddp_listener_close(&w->listener);
    free(w->endpoint);
    free(w);
}

static struct ddp_tcp_control *control_create(int size, struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_calloc(1, sizeof *c);
    if (c != NULL) {
        c->share = ddp_calloc((size_t)size, sizeof *c->share);
        c->polled = ddp_calloc((size_t)size, sizeof *c->polled);
        if (c->share != NULL && c->polled != NULL)
            return c;
    }
    control_free(c);
    ddp_fail(err, DDP_ENOMEM, "no memory for a communicator of %d ranks", size);
    return NULL;
}

int ddp_control_tcp_open(struct ddp_comm *comm, const struct ddp_rendezvous_config *config,
                         struct ddp_err *err)
{
    struct ddp_control_world *w = ddp_calloc(1, sizeof *w);
    struct ddp_tcp_control *c = control_create(comm->size, err);
    int rc = DDP_ENOMEM;
    if (w != NULL) {
        w->listener.fd = -1;
        w->endpoint = ddp_calloc((size_t)comm->size, sizeof *w->endpoint);
    }
    if (w == NULL || c == NULL || w->endpoint == NULL) {
        ddp_fail(err, DDP_ENOMEM, "no memory for a communicator");
        goto err_free;
    }
    w->token = config->token;
    DDP_TRY_GOTO(ddp_rendezvous_world(config, comm->rank, comm->size, comm->timeout_ns,
                                      &c->connections, &w->listener, w->endpoint, err),
                 err_free);
    c->world = w;
    comm->state = c;
    return 0;

err_free:
    control_free(c);
    world_free(w);
    return rc;
}

static int tcp_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                    struct ddp_err *err)
{
    struct ddp_rendezvous_config config;
    (void)options;
    DDP_TRY(ddp_launcher_rendezvous(ddp_conf_get(DDP_CONF_PORT), &config, err));
    return ddp_control_tcp_open(comm, &config, err);
}

static int tcp_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct ddp_tcp_control *p = ddp_control_of(parent);
    struct ddp_tcp_control *c = control_create(child->size, err);
    if (c == NULL)
        return DDP_ENOMEM;
    c->world = p->world;
    const int rc =
        ddp_rendezvous_group(p->world->token, child->id, child->rank, child->size,
                             &p->world->endpoint[child->world_rank[0]], &p->world->listener,
                             child->timeout_ns, &c->connections, err);
    if (rc == 0)
        child->state = c;
    else
        control_free(c);
    return rc;
}

static void tcp_finalize(struct ddp_comm *comm)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    const struct ddp_control_frame bye = {
        .magic = DDP_FRAME_MAGIC, .kind = DDP_FRAME_BYE, .seq = c->seq};
    for (int i = 0; !c->failed && i < (comm->rank == 0 ? comm->size : 1); i++) {
        if (c->connections.peer[i] >= 0)
            (void)!ddp_tcp_send(c->connections.peer[i], &bye, sizeof bye,
                                ddp_now_ns() + DDP_CONTROL_GOODBYE_NS);
    }
    if (comm->parent == NULL)
        world_free(c->world);
    control_free(c);
}

static int tcp_probe(const char *module_dir, struct ddp_err *err)
{
    struct ddp_rendezvous_config config;
    (void)module_dir;
    return ddp_launcher_rendezvous(ddp_conf_get(DDP_CONF_PORT), &config, err);
}

const struct ddp_backend ddp_control_tcp = {
    .name = "tcp",
    .summary = "side channel over TCP",
    .probe = tcp_probe,
    .init = tcp_init,
    .finalize = tcp_finalize,
    .abort = tcp_abort,
    .group = tcp_group,
    .barrier = tcp_barrier,
    .exchange = tcp_allgather_bytes,
    .look = tcp_look,
};
