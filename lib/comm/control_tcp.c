/* The side channel over TCP.
 *
 * All data is sent in *frames*. A frame is a head, followed by data. For an all-gather, each leaf
 * (any rank except rank 0) sends a DATA frame, and rank 0 answers with a RESULT frame, which holds
 * the data of all ranks. An ABORT frame may come at any time. A BYE frame is sent before a
 * connection is closed without a failure. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "comm/control_tcp.h"
#include "diag/flight_report.h"
#include "launch/launcher.h"

#define DDP_FRAME_MAGIC 0x6d616664u /* "dfam" */
/* A leaf waits this much longer than rank 0, so that rank 0 reports the failure first. Only rank 0
 * knows which ranks are missing. */
#define DDP_CONTROL_GRACE_NS   INT64_C(2000000000)
#define DDP_CONTROL_GOODBYE_NS INT64_C(500000000)
#define DDP_CONTROL_TEXT_BYTES 240
#define DDP_CONTROL_HOST_BYTES 64

enum ddp_control_kind { DDP_FRAME_DATA = 1, DDP_FRAME_RESULT, DDP_FRAME_ABORT, DDP_FRAME_BYE };

struct ddp_control_frame {
    uint32_t magic, kind;
    /* `seq` is the number of the all-gather. `bytes` is the number of bytes after the head, which
     * is DDP_CONTROL_TEXT_BYTES for ABORT and 0 for BYE. */
    uint64_t seq, bytes;
    /* ABORT only: the error code, and the world rank that caused the error (-1: unknown). */
    int32_t code, rank;
};

/* The state of a connection: how much of the peer's current frame has arrived. */
struct ddp_control_share {
    struct ddp_control_frame head;
    size_t got_head, got;
    bool gone; /* the peer has sent BYE */
};

/* State that all communicators of a process share. */
struct ddp_control_world {
    struct ddp_job_key key;
    struct ddp_listener listener;
    struct ddp_endpoint *endpoint; /* [size of the world] */
    /* [size of the world] the host name of each rank; "" until the ranks have exchanged the
     * names */
    char (*host)[DDP_CONTROL_HOST_BYTES];
};

struct ddp_tcp_control {
    struct ddp_control_world *world;
    struct ddp_connections connections;
    struct ddp_control_share *share; /* [size]; a leaf uses only share[0].gone */
    struct pollfd *polled;           /* [size] */
    uint64_t seq;
    bool failed;
    char why[DDP_CONTROL_TEXT_BYTES]; /* the first failure */
    int culprit;                      /* the world rank that caused the failure; -1: unknown */
};

static struct ddp_tcp_control *control_of(const struct ddp_comm *comm)
{
    return (struct ddp_tcp_control *)comm->state;
}

#define PAUSE_MS 200

const struct ddp_listener *ddp_control_tcp_listener(const struct ddp_comm *comm)
{
    return &control_of(comm)->world->listener;
}

int ddp_control_tcp_culprit(const struct ddp_comm *comm)
{
    const struct ddp_tcp_control *c = control_of(comm);
    return c->failed ? c->culprit : -1;
}

static void send_abort(struct ddp_tcp_control *c, int fd, int code, int rank)
{
    struct {
        struct ddp_control_frame head;
        char text[DDP_CONTROL_TEXT_BYTES];
    } m = {.head = {.magic = DDP_FRAME_MAGIC,
                    .kind = DDP_FRAME_ABORT,
                    .seq = c->seq,
                    .bytes = DDP_CONTROL_TEXT_BYTES,
                    .code = code,
                    .rank = rank}};
    memcpy(m.text, c->why, sizeof m.text);
    if (fd >= 0)
        (void)!ddp_tcp_send(fd, &m, sizeof m, ddp_now_ns() + DDP_CONTROL_GOODBYE_NS);
}

/* Marks the communicator as failed, with world rank `rank` as the cause (-1: unknown), and sends
 * ABORT with c->why on every connection. Does nothing if the communicator is already marked. */
static void abort_all(struct ddp_tcp_control *c, int code, int rank)
{
    if (c->failed)
        return;
    c->failed = true;
    c->culprit = rank;
    for (int i = 0; i < (c->connections.rank == 0 ? c->connections.size : 1); i++)
        send_abort(c, c->connections.peer[i], code, rank);
}

/* Stores the failure in c->why if it is the first failure of the communicator, aborts the
 * communicator (abort_all) and returns DDP_ELOST. `rank` is the lost rank of the group, or -1 if
 * unknown. */
static int lose(struct ddp_comm *comm, int rank, struct ddp_err *err, const char *text)
{
    struct ddp_tcp_control *c = control_of(comm);
    if (!c->failed)
        ddp_printable(text, c->why, sizeof c->why);
    abort_all(c, DDP_ELOST, rank >= 0 ? comm->world_rank[rank] : -1);
    return ddp_fail(err, DDP_ELOST, "%s", c->why);
}

/* Calls lose() after the connection to `rank` has failed with the errno value `error`. */
static int lose_peer(struct ddp_comm *comm, int rank, int error, struct ddp_err *err)
{
    char text[DDP_CONTROL_TEXT_BYTES];
    const char *host = control_of(comm)->world->host[comm->world_rank[rank]];
    const bool ended = error == EPIPE || error == ECONNRESET;
    snprintf(text, sizeof text, "rank %d%s%s was lost: %s", comm->world_rank[rank],
             host[0] != '\0' ? " on " : "", host, ended ? "its connection ended" : strerror(error));
    return lose(comm, rank, err, text);
}

void ddp_control_tcp_lost(struct ddp_comm *comm, int rank, const char *text)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    (void)!lose(comm, rank, &ignored, text);
}

/* Handles an ABORT frame whose head was received from `fd`. Reads the text into c->why, aborts the
 * communicator and returns DDP_ELOST. */
static int receive_abort(struct ddp_comm *comm, int fd, const struct ddp_control_frame *head,
                         struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
    char text[DDP_CONTROL_TEXT_BYTES] = "";
    if (head->bytes == sizeof text &&
        ddp_tcp_receive(fd, text, sizeof text, ddp_now_ns() + DDP_CONTROL_GOODBYE_NS) == 0)
        text[sizeof text - 1] = '\0';
    else
        text[0] = '\0';
    if (text[0] == '\0')
        snprintf(text, sizeof text, "the run was ended by another rank (code %d)", -head->code);
    ddp_printable(text, c->why, sizeof c->why);
    abort_all(c, head->code, head->rank);
    return ddp_fail(err, DDP_ELOST, "%s", c->why);
}

/* Fails unless the frame from `rank` has the expected kind, bytes and sequence number. */
static int check_frame(struct ddp_comm *comm, int rank, const struct ddp_control_frame *head,
                       enum ddp_control_kind kind, uint64_t bytes, struct ddp_err *err)
{
    const struct ddp_tcp_control *c = control_of(comm);
    char text[DDP_CONTROL_TEXT_BYTES];
    if (head->magic == DDP_FRAME_MAGIC && head->kind == DDP_FRAME_BYE) {
        snprintf(text, sizeof text, "rank %d has left the run, but rank %d has not",
                 comm->world_rank[rank], comm->world_rank[comm->rank]);
        return lose(comm, rank, err, text);
    }
    if (head->magic == DDP_FRAME_MAGIC && head->kind == kind && head->seq == c->seq &&
        head->bytes == bytes)
        return 0;
    snprintf(text, sizeof text,
             "rank %d sent %llu bytes in exchange number %llu, but rank %d expected %llu bytes in "
             "exchange number %llu",
             comm->world_rank[rank], (unsigned long long)head->bytes, (unsigned long long)head->seq,
             comm->world_rank[comm->rank], (unsigned long long)bytes, (unsigned long long)c->seq);
    return lose(comm, rank, err, text);
}

/* Calls lose() after the deadline has passed. On rank 0 the message names the missing ranks. */
static int expire(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
    unsigned char missing[DDP_RENDEZVOUS_RANKS_MAX] = {0};
    char text[DDP_CONTROL_TEXT_BYTES], list[100] = "0", time[32], doing[160];
    int first = 0, many = 1;
    ddp_format_ns((double)comm->timeout_ns, time, sizeof time);
    ddp_flight_describe(comm->flight, doing, sizeof doing);
    if (comm->rank == 0) {
        for (int r = comm->size - 1; r > 0; r--) {
            missing[r] = c->polled[r].fd >= 0;
            first = missing[r] ? r : first;
        }
        many = ddp_rank_list(missing, comm->size, 1, list, sizeof list);
    }
    snprintf(text, sizeof text, "rank %d waited %s for rank%s %s in %.120s",
             comm->world_rank[comm->rank], time, many == 1 ? "" : "s", list, doing);
    return lose(comm, first, err, text);
}

/* Runs on rank 0. Receives the available bytes of a leaf's DATA frame. Sets *done to whether the
 * frame is complete. */
static int receive_share(struct ddp_comm *comm, int rank, void *to, size_t bytes, bool *done,
                         struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
    struct ddp_control_share *s = &c->share[rank];
    const int fd = c->connections.peer[rank];
    const bool fresh = s->got_head < sizeof s->head;
    int rc = ddp_tcp_receive_some(fd, &s->head, sizeof s->head, &s->got_head);
    *done = false;
    if (rc == EAGAIN)
        return 0;
    if (rc != 0)
        return lose_peer(comm, rank, rc, err);
    if (fresh && s->head.magic == DDP_FRAME_MAGIC && s->head.kind == DDP_FRAME_ABORT)
        return receive_abort(comm, fd, &s->head, err);
    if (fresh)
        DDP_TRY(check_frame(comm, rank, &s->head, DDP_FRAME_DATA, bytes, err));
    rc = ddp_tcp_receive_some(fd, to, bytes, &s->got);
    if (rc != 0 && rc != EAGAIN)
        return lose_peer(comm, rank, rc, err);
    *done = rc == 0;
    return 0;
}

static int collect(struct ddp_comm *comm, char *all, size_t bytes, struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
    const int64_t deadline = ddp_now_ns() + ddp_comm_wait_ns(comm);
    int missing = comm->size - 1;
    for (int r = 0; r < comm->size; r++) {
        c->polled[r] = (struct pollfd){.fd = c->connections.peer[r], .events = POLLIN};
        c->share[r].got_head = c->share[r].got = 0;
    }
    while (missing > 0) {
        if (ddp_now_ns() >= deadline)
            return expire(comm, err);
        const int n = poll(c->polled, (nfds_t)comm->size, ddp_tcp_poll_ms(deadline, PAUSE_MS));
        if (n < 0 && errno != EINTR)
            return lose_peer(comm, 0, errno, err);
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
    struct ddp_tcp_control *c = control_of(comm);
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
            return lose_peer(comm, r, rc, err);
    }
    return 0;
}

static int by_leaf(struct ddp_comm *comm, const void *mine, char *all, size_t bytes,
                   struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
    const int64_t deadline = ddp_now_ns() + ddp_comm_wait_ns(comm) + DDP_CONTROL_GRACE_NS;
    const size_t sum = bytes * (size_t)comm->size;
    const int fd = c->connections.peer[0];
    struct ddp_control_frame head = {
        .magic = DDP_FRAME_MAGIC, .kind = DDP_FRAME_DATA, .seq = c->seq, .bytes = bytes};
    /* If sending fails because rank 0 has closed the connection, rank 0 may have sent the reason
     * before it closed the connection. Therefore the answer of rank 0 is read in this case, too. */
    int rc = ddp_tcp_send(fd, &head, sizeof head, deadline);
    if (rc == 0)
        rc = ddp_tcp_send(fd, mine, bytes, deadline);
    if (rc == 0 || rc == EPIPE || rc == ECONNRESET)
        rc = ddp_tcp_receive(fd, &head, sizeof head, deadline);
    if (rc == ETIMEDOUT)
        return expire(comm, err);
    if (rc != 0)
        return lose_peer(comm, 0, rc, err);
    if (head.magic == DDP_FRAME_MAGIC && head.kind == DDP_FRAME_ABORT)
        return receive_abort(comm, fd, &head, err);
    DDP_TRY(check_frame(comm, 0, &head, DDP_FRAME_RESULT, sum, err));
    rc = ddp_tcp_receive(fd, all, sum, deadline);
    return rc == 0 ? 0 : lose_peer(comm, 0, rc, err);
}

static int tcp_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                               struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
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

/* Checks one connection for a lost rank or an ABORT frame. Does not consume bytes that belong to an
 * all-gather. */
static int look_at(struct ddp_comm *comm, int rank, int fd, struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
    struct ddp_control_frame head;
    const ssize_t n = recv(fd, &head, sizeof head, MSG_PEEK);
    if (c->share[rank].gone || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    if (n <= 0)
        return lose_peer(comm, rank, n == 0 ? EPIPE : errno, err);
    if ((size_t)n < sizeof head || head.magic != DDP_FRAME_MAGIC)
        return 0;
    c->share[rank].gone = head.kind == DDP_FRAME_BYE;
    if (head.kind != DDP_FRAME_ABORT)
        return 0;
    if (recv(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        head.bytes = 0;
    return receive_abort(comm, fd, &head, err);
}

static int tcp_look(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_tcp_control *c = control_of(comm);
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
    struct ddp_tcp_control *c = control_of(comm);
    const int me = comm->world_rank[comm->rank];
    if (!c->failed)
        snprintf(c->why, sizeof c->why, "rank %d failed or was lost (code %d)", me, -code);
    abort_all(c, code, me);
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
    free(w->host);
    free(w);
}

static int control_create(int size, struct ddp_tcp_control **out, struct ddp_err *err)
{
    DDP_TRY(DDP_NEW(out, 1, err));
    DDP_TRY(DDP_NEW(&(*out)->share, (size_t)size, err));
    return DDP_NEW(&(*out)->polled, (size_t)size, err);
}

/* Exchanges the host names, so that messages about a lost rank can name its host. */
static int exchange_hosts(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_sysinfo info;
    char mine[DDP_CONTROL_HOST_BYTES] = "";
    char(*all)[DDP_CONTROL_HOST_BYTES];
    ddp_sysinfo_read(&info);
    snprintf(mine, sizeof mine, "%.63s", info.host);
    DDP_TRY(DDP_NEW(&all, (size_t)comm->size, err));
    const int rc = tcp_allgather_bytes(comm, mine, all, sizeof mine, err);
    for (int r = 0; rc == 0 && r < comm->size; r++) {
        all[r][sizeof mine - 1] = '\0';
        ddp_printable(all[r], control_of(comm)->world->host[r], sizeof mine);
    }
    free(all);
    return rc;
}

static int tcp_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                    struct ddp_err *err)
{
    struct ddp_rendezvous_config config;
    struct ddp_control_world *w = NULL;
    struct ddp_tcp_control *c = NULL;
    int rc;
    (void)options;
    DDP_TRY(ddp_launcher_rendezvous(ddp_conf_get(DDP_CONF_PORT), ddp_conf_get(DDP_CONF_SECRET),
                                    &config, err));
    DDP_TRY_GOTO(DDP_NEW(&w, 1, err), err_free);
    w->listener.fd = -1;
    w->key = config.key;
    DDP_TRY_GOTO(DDP_NEW(&w->endpoint, (size_t)comm->size, err), err_free);
    DDP_TRY_GOTO(DDP_NEW(&w->host, (size_t)comm->size, err), err_free);
    DDP_TRY_GOTO(control_create(comm->size, &c, err), err_free);
    DDP_TRY_GOTO(ddp_rendezvous_world(&config, comm->rank, comm->size, comm->timeout_ns,
                                      &c->connections, &w->listener, w->endpoint, err),
                 err_free);
    c->world = w;
    comm->state = c;
    DDP_TRY_GOTO(exchange_hosts(comm, err), err_state);
    return 0;

err_state:
    comm->state = NULL;
err_free:
    control_free(c);
    world_free(w);
    return rc;
}

static int tcp_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct ddp_tcp_control *p = control_of(parent);
    struct ddp_tcp_control *c = NULL;
    int rc = control_create(child->size, &c, err);
    if (rc == 0)
        rc = ddp_rendezvous_group(&p->world->key, child->id, child->rank, child->size,
                                  &p->world->endpoint[child->world_rank[0]], &p->world->listener,
                                  child->timeout_ns, &c->connections, err);
    if (rc != 0) {
        control_free(c);
        return rc;
    }
    c->world = p->world;
    child->state = c;
    return 0;
}

static void tcp_finalize(struct ddp_comm *comm)
{
    struct ddp_tcp_control *c = control_of(comm);
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
    return ddp_launcher_rendezvous(ddp_conf_get(DDP_CONF_PORT), ddp_conf_get(DDP_CONF_SECRET),
                                   &config, err);
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
