/* Control traffic over a star of TCP connections. All travels in *frames*: a head, then bytes. A
 * leaf sends DATA, the hub answers RESULT with everybody's; ABORT may come at any time, and BYE
 * before a connection is closed in peace. */
#include "comm/control_tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "comm/launcher.h"
#include "comm/rank_list.h"

#define FRAME_MAGIC 0x6d616664u         /* "dfam" */
#define GRACE_NS    INT64_C(2000000000) /* a leaf waits longer: the hub knows who is missing */
#define GOODBYE_NS  INT64_C(500000000)
#define PAUSE_MS    200
#define TEXT_BYTES  240

enum kind { DATA = 1, RESULT, ABORT, BYE };

/* bytes: that follow; of ABORT TEXT_BYTES, of BYE none. seq: of the exchange. */
struct frame {
    uint32_t magic, kind;
    uint64_t seq, bytes;
    int32_t code, rank; /* of ABORT: why, and who is to blame; -1: nobody */
};

/* What the hub has of a leaf's contribution. */
struct share {
    struct frame head;
    size_t got_head, got;
    bool gone; /* in peace */
};

/* What the communicators of a process share. */
struct world {
    uint64_t token;
    struct ddp_listener listener;
    struct ddp_endpoint *endpoint; /* [size] of the world */
};

struct control {
    struct world *world;
    struct ddp_star star;
    struct share *share;   /* [size], the hub's */
    struct pollfd *polled; /* [size] */
    uint64_t seq;
    bool failed;
    char why[TEXT_BYTES]; /* what was the first failure */
};

static struct control *control_of(const struct ddp_comm *comm)
{
    return comm->state;
}

static void send_abort(struct control *c, int fd, int code, int rank)
{
    struct {
        struct frame head;
        char text[TEXT_BYTES];
    } m = {.head = {.magic = FRAME_MAGIC,
                    .kind = ABORT,
                    .seq = c->seq,
                    .bytes = TEXT_BYTES,
                    .code = code,
                    .rank = rank}};
    memcpy(m.text, c->why, sizeof m.text);
    if (fd >= 0)
        (void)!ddp_tcp_send(fd, &m, sizeof m, ddp_now_ns() + GOODBYE_NS);
}

/* Tells all there is a connection to. */
static void give_up(struct control *c, int code, int rank)
{
    if (c->failed)
        return;
    c->failed = true;
    for (int i = 0; i < (c->star.rank == 0 ? c->star.size : 1); i++)
        send_abort(c, c->star.peer[i], code, rank);
}

/* The first failure of this communicator; the words go to the others, too. rank: of the group. */
static int lose(struct ddp_comm *comm, int rank, struct ddp_err *err, const char *text)
{
    struct control *c = control_of(comm);
    if (!c->failed)
        ddp_printable(text, c->why, sizeof c->why);
    give_up(c, DDP_ELOST, rank >= 0 ? comm->world_rank[rank] : -1);
    return ddp_fail(err, DDP_ELOST, "%s", c->why);
}

static int lose_peer(struct ddp_comm *comm, int rank, int error, struct ddp_err *err)
{
    char text[TEXT_BYTES];
    if (error == EPIPE || error == ECONNRESET)
        snprintf(text, sizeof text, "rank %d was lost: its connection ended",
                 comm->world_rank[rank]);
    else
        snprintf(text, sizeof text, "rank %d was lost: %s", comm->world_rank[rank],
                 strerror(error));
    return lose(comm, rank, err, text);
}

/* Somebody gave up; rank said so. */
static int hear_abort(struct ddp_comm *comm, int fd, const struct frame *head, struct ddp_err *err)
{
    struct control *c = control_of(comm);
    char text[TEXT_BYTES] = "";
    if (head->bytes == sizeof text &&
        ddp_tcp_receive(fd, text, sizeof text, ddp_now_ns() + GOODBYE_NS) == 0)
        text[sizeof text - 1] = '\0';
    else
        text[0] = '\0';
    if (text[0] == '\0')
        snprintf(text, sizeof text, "the run was ended by another rank (code %d)", -head->code);
    ddp_printable(text, c->why, sizeof c->why);
    give_up(c, head->code, head->rank);
    return ddp_fail(err, DDP_ELOST, "%s", c->why);
}

/* Is a frame what this exchange wants? */
static int check_frame(struct ddp_comm *comm, int rank, const struct frame *head, enum kind kind,
                       uint64_t bytes, struct ddp_err *err)
{
    const struct control *c = control_of(comm);
    char text[TEXT_BYTES];
    if (head->magic == FRAME_MAGIC && head->kind == BYE) {
        snprintf(text, sizeof text, "rank %d has left, and rank %d has not", comm->world_rank[rank],
                 comm->world_rank[comm->rank]);
        return lose(comm, rank, err, text);
    }
    if (head->magic == FRAME_MAGIC && head->kind == kind && head->seq == c->seq &&
        head->bytes == bytes)
        return 0;
    snprintf(text, sizeof text,
             "rank %d exchanges %llu bytes as number %llu, rank %d %llu as number %llu",
             comm->world_rank[rank], (unsigned long long)head->bytes, (unsigned long long)head->seq,
             comm->world_rank[comm->rank], (unsigned long long)bytes, (unsigned long long)c->seq);
    return lose(comm, rank, err, text);
}

/* The deadline: the hub knows who is missing. */
static int expire(struct ddp_comm *comm, struct ddp_err *err)
{
    struct control *c = control_of(comm);
    unsigned char missing[DDP_RENDEZVOUS_RANKS_MAX] = {0};
    char text[TEXT_BYTES], list[100] = "0", time[32], doing[160];
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
    if (!c->failed && comm->on_expire != NULL)
        comm->on_expire(comm->on_expire_arg, text);
    return lose(comm, first, err, text);
}

/* Hub: what is there of a leaf's share. *done: all of it. */
static int receive_share(struct ddp_comm *comm, int rank, void *to, size_t bytes, bool *done,
                         struct ddp_err *err)
{
    struct control *c = control_of(comm);
    struct share *s = &c->share[rank];
    const int fd = c->star.peer[rank];
    const bool fresh = s->got_head < sizeof s->head;
    int rc = ddp_tcp_receive_some(fd, &s->head, sizeof s->head, &s->got_head);
    *done = false;
    if (rc == EAGAIN)
        return 0;
    if (rc != 0)
        return lose_peer(comm, rank, rc, err);
    if (fresh && s->head.magic == FRAME_MAGIC && s->head.kind == ABORT)
        return hear_abort(comm, fd, &s->head, err);
    if (fresh)
        DDP_TRY(check_frame(comm, rank, &s->head, DATA, bytes, err));
    rc = ddp_tcp_receive_some(fd, to, bytes, &s->got);
    if (rc != 0 && rc != EAGAIN)
        return lose_peer(comm, rank, rc, err);
    *done = rc == 0;
    return 0;
}

static int collect(struct ddp_comm *comm, char *all, size_t bytes, struct ddp_err *err)
{
    struct control *c = control_of(comm);
    const int64_t deadline = ddp_now_ns() + comm->timeout_ns;
    int missing = comm->size - 1;
    for (int r = 0; r < comm->size; r++) {
        c->polled[r] = (struct pollfd){.fd = c->star.peer[r], .events = POLLIN};
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
                c->polled[r].fd = -1; /* what it says next belongs to the next exchange */
                missing--;
            }
        }
    }
    return 0;
}

static int by_hub(struct ddp_comm *comm, const void *mine, char *all, size_t bytes,
                  struct ddp_err *err)
{
    struct control *c = control_of(comm);
    const size_t sum = bytes * (size_t)comm->size;
    const struct frame head = {.magic = FRAME_MAGIC, .kind = RESULT, .seq = c->seq, .bytes = sum};
    if (bytes > 0)
        memmove(all, mine, bytes);
    DDP_TRY(collect(comm, all, bytes, err));
    const int64_t deadline = ddp_now_ns() + comm->timeout_ns;
    for (int r = 1; r < comm->size; r++) {
        int rc = ddp_tcp_send(c->star.peer[r], &head, sizeof head, deadline);
        if (rc == 0)
            rc = ddp_tcp_send(c->star.peer[r], all, sum, deadline);
        if (rc != 0)
            return lose_peer(comm, r, rc, err);
    }
    return 0;
}

static int by_leaf(struct ddp_comm *comm, const void *mine, char *all, size_t bytes,
                   struct ddp_err *err)
{
    struct control *c = control_of(comm);
    const int64_t deadline = ddp_now_ns() + comm->timeout_ns + GRACE_NS;
    const size_t sum = bytes * (size_t)comm->size;
    const int fd = c->star.peer[0];
    struct frame head = {.magic = FRAME_MAGIC, .kind = DATA, .seq = c->seq, .bytes = bytes};
    /* When that fails the hub may have said why before it left. */
    int rc = ddp_tcp_send(fd, &head, sizeof head, deadline);
    if (rc == 0)
        rc = ddp_tcp_send(fd, mine, bytes, deadline);
    if (rc == 0 || rc == EPIPE || rc == ECONNRESET)
        rc = ddp_tcp_receive(fd, &head, sizeof head, deadline);
    if (rc == ETIMEDOUT)
        return expire(comm, err);
    if (rc != 0)
        return lose_peer(comm, 0, rc, err);
    if (head.magic == FRAME_MAGIC && head.kind == ABORT)
        return hear_abort(comm, fd, &head, err);
    DDP_TRY(check_frame(comm, 0, &head, RESULT, sum, err));
    rc = ddp_tcp_receive(fd, all, sum, deadline);
    return rc == 0 ? 0 : lose_peer(comm, 0, rc, err);
}

static int tcp_exchange(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                        struct ddp_err *err)
{
    struct control *c = control_of(comm);
    if (c->failed)
        return ddp_fail(err, DDP_ELOST, "%s", c->why);
    c->seq++;
    return comm->rank == 0 ? by_hub(comm, mine, all, bytes, err)
                           : by_leaf(comm, mine, all, bytes, err);
}

static int tcp_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    char nothing = 0;
    return tcp_exchange(comm, &nothing, &nothing, 0, err);
}

/* Of one connection, without taking anything that an exchange will want. */
static int look_at(struct ddp_comm *comm, int rank, int fd, struct ddp_err *err)
{
    struct control *c = control_of(comm);
    struct frame head;
    const ssize_t n = recv(fd, &head, sizeof head, MSG_PEEK);
    if (c->share[rank].gone || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    if (n <= 0)
        return lose_peer(comm, rank, n == 0 ? EPIPE : errno, err);
    if ((size_t)n < sizeof head || head.magic != FRAME_MAGIC)
        return 0;
    c->share[rank].gone = head.kind == BYE;
    if (head.kind != ABORT)
        return 0;
    if (recv(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        head.bytes = 0;
    return hear_abort(comm, fd, &head, err);
}

static int tcp_look(struct ddp_comm *comm, struct ddp_err *err)
{
    struct control *c = control_of(comm);
    if (c->failed)
        return ddp_fail(err, DDP_ELOST, "%s", c->why);
    if (comm->rank != 0)
        return look_at(comm, 0, c->star.peer[0], err);
    for (int r = 1; r < comm->size; r++)
        DDP_TRY(look_at(comm, r, c->star.peer[r], err));
    return 0;
}

static void tcp_abort(struct ddp_comm *comm, int code)
{
    struct control *c = control_of(comm);
    const int me = comm->world_rank[comm->rank];
    if (!c->failed)
        snprintf(c->why, sizeof c->why, "rank %d failed or was lost (code %d)", me, -code);
    give_up(c, code, me);
}

static void control_free(struct control *c)
{
    if (c == NULL)
        return;
    ddp_star_close(&c->star);
    free(c->share);
    free(c->polled);
    free(c);
}

static void world_free(struct world *w)
{
    if (w == NULL)
        return;
    ddp_listener_close(&w->listener);
    free(w->endpoint);
    free(w);
}

static struct control *control_create(int size, struct ddp_err *err)
{
    struct control *c = ddp_calloc(1, sizeof *c);
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

int ddp_control_tcp_open(struct ddp_comm *comm, const struct ddp_meeting *meeting,
                         struct ddp_err *err)
{
    struct world *w = ddp_calloc(1, sizeof *w);
    struct control *c = control_create(comm->size, err);
    int rc = DDP_ENOMEM;
    if (w != NULL) {
        w->listener.fd = -1;
        w->endpoint = ddp_calloc((size_t)comm->size, sizeof *w->endpoint);
    }
    if (w == NULL || c == NULL || w->endpoint == NULL) {
        ddp_fail(err, DDP_ENOMEM, "no memory for a communicator");
        goto err_free;
    }
    w->token = meeting->token;
    DDP_TRY_GOTO(ddp_rendezvous_world(meeting, comm->rank, comm->size, comm->timeout_ns, &c->star,
                                      &w->listener, w->endpoint, err),
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
    struct ddp_meeting meeting;
    (void)options;
    DDP_TRY(ddp_launcher_meeting(ddp_conf_get(DDP_CONF_PORT), &meeting, err));
    return ddp_control_tcp_open(comm, &meeting, err);
}

static int tcp_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct control *p = control_of(parent);
    struct control *c = control_create(child->size, err);
    if (c == NULL)
        return DDP_ENOMEM;
    c->world = p->world;
    const int rc = ddp_rendezvous_group(p->world->token, child->id, child->rank, child->size,
                                        &p->world->endpoint[child->world_rank[0]],
                                        &p->world->listener, child->timeout_ns, &c->star, err);
    if (rc == 0)
        child->state = c;
    else
        control_free(c);
    return rc;
}

static void tcp_finalize(struct ddp_comm *comm)
{
    struct control *c = control_of(comm);
    const struct frame bye = {.magic = FRAME_MAGIC, .kind = BYE, .seq = c->seq};
    for (int i = 0; !c->failed && i < (comm->rank == 0 ? comm->size : 1); i++) {
        if (c->star.peer[i] >= 0)
            (void)!ddp_tcp_send(c->star.peer[i], &bye, sizeof bye, ddp_now_ns() + GOODBYE_NS);
    }
    if (comm->parent == NULL)
        world_free(c->world);
    control_free(c);
}

static int tcp_probe(const char *module_dir, struct ddp_err *err)
{
    struct ddp_meeting meeting;
    (void)module_dir;
    return ddp_launcher_meeting(ddp_conf_get(DDP_CONF_PORT), &meeting, err);
}

const struct ddp_backend ddp_control_tcp = {
    .name = "tcp",
    .summary = "control traffic over TCP",
    .probe = tcp_probe,
    .init = tcp_init,
    .finalize = tcp_finalize,
    .abort = tcp_abort,
    .group = tcp_group,
    .barrier = tcp_barrier,
    .exchange = tcp_exchange,
    .look = tcp_look,
};
