/* The rendezvous server: one poll loop over the listening socket, the pending connections
 * (rendezvous.h) and the accepted peers. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit.h"
#include "diag/flight_report.h"
#include "launch/rendezvous_impl.h"

#define HELLO_NS    INT64_C(5000000000) /* time limit for a complete hello */
#define GOODBYE_NS  INT64_C(1000000000) /* time limit for sending an answer */
#define PENDING_MAX 64                  /* maximum number of connections with an incomplete hello */
#define PAUSE_MS    100

struct server {
    const struct ddp_rendezvous_job *job;
    struct ddp_listener *listener;
    int *peer;
    struct ddp_endpoint *endpoint;
    struct pollfd *polled; /* [1 + polled_pending + size] */
    int polled_pending, polled_max;
    int missing;
};

static void answer(int fd, uint32_t verdict, int code, const char *text, int64_t deadline_ns)
{
    struct ddp_answer a = {.magic = DDP_ANSWER_MAGIC, .verdict = verdict, .code = code};
    snprintf(a.text, sizeof a.text, "%s", text);
    (void)!ddp_tcp_send(fd, &a, sizeof a, deadline_ns);
}

static void report_all(const struct server *h, int rc, const struct ddp_err *err)
{
    const int64_t until = ddp_now_ns() + GOODBYE_NS;
    for (int r = 1; r < h->job->size; r++) {
        if (h->peer[r] >= 0)
            answer(h->peer[r], DDP_ANSWER_REFUSED, rc, err->text, until);
    }
}

/* Sends an answer that ends a pending connection, and closes the connection. */
static void refuse(const struct ddp_pending_connection *g, uint32_t verdict, const char *text)
{
    answer(g->fd, verdict, DDP_EMISMATCH, text, ddp_now_ns() + GOODBYE_NS);
    close(g->fd);
}

static void drop_pending(struct ddp_listener *l, int i)
{
    l->pending[i] = l->pending[--l->pending_count];
}

static void close_pending(struct ddp_listener *l, int i)
{
    close(l->pending[i].fd);
    drop_pending(l, i);
}

/* Stores the address at which a rank listens. An IPv4 address that came through an IPv6 socket is
 * stored as IPv4, which hosts without IPv6 can use, too. */
static void store_endpoint(struct server *h, const struct ddp_pending_connection *g)
{
    struct ddp_endpoint *e = &h->endpoint[g->hello.rank];
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&g->from;
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&e->address.at;
    memset(e, 0, sizeof *e);
    e->port = (int32_t)g->hello.port;
    e->address.at = g->from;
    e->address.bytes = sizeof e->address.at;
    if (g->from.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return;
    memset(&e->address.at, 0, sizeof e->address.at);
    four->sin_family = AF_INET;
    memcpy(&four->sin_addr, six->sin6_addr.s6_addr + 12, sizeof four->sin_addr);
}

/* Handles a complete hello of this job and group: accepts or refuses the rank. */
static int accept_rank(struct server *h, struct ddp_pending_connection *g, struct ddp_err *err)
{
    const struct ddp_rendezvous_job *p = h->job;
    const struct ddp_hello *hello = &g->hello;
    char text[240];
    if (hello->size != (uint32_t)p->size) {
        snprintf(text, sizeof text, "rank %u says there are %u ranks, but rank 0 says %d",
                 hello->rank, hello->size, p->size);
        refuse(g, DDP_ANSWER_REFUSED, text);
        return ddp_fail(err, DDP_EMISMATCH, "%s", text);
    }
    if (hello->rank == 0 || hello->rank >= hello->size || hello->port > 65535) {
        snprintf(text, sizeof text, "rank %u of %u with port %u is not a valid client of %s",
                 hello->rank, hello->size, hello->port, p->where);
        refuse(g, DDP_ANSWER_REFUSED, text);
        return 0;
    }
    if (h->peer[hello->rank] >= 0) {
        snprintf(text, sizeof text, "another process is already connected to %s as rank %u of %u",
                 p->where, hello->rank, hello->size);
        refuse(g, DDP_ANSWER_TAKEN, text);
        return 0;
    }
    h->peer[hello->rank] = g->fd;
    h->missing--;
    if (h->endpoint != NULL)
        store_endpoint(h, g);
    answer(g->fd, DDP_ANSWER_ACCEPTED, 0, "", ddp_now_ns() + GOODBYE_NS);
    return 0;
}

/* Handles a complete hello. Returns false if the hello is for another group. The connection then
 * stays pending until this rank serves that group. */
static bool evaluate_pending(struct server *h, struct ddp_pending_connection *g, int *rc,
                             struct ddp_err *err)
{
    const struct ddp_hello *hello = &g->hello;
    char text[240];
    if (hello->magic != DDP_HELLO_MAGIC) {
        close(g->fd);
    } else if (hello->version != DDP_HELLO_VERSION) {
        snprintf(text, sizeof text, "another version of ddpbench: protocol %u, not %d",
                 hello->version, DDP_HELLO_VERSION);
        refuse(g, DDP_ANSWER_REFUSED, text);
    } else if (hello->token != h->job->token) {
        snprintf(text, sizeof text, "%s belongs to another job", h->job->where);
        refuse(g, DDP_ANSWER_OTHER_JOB, text);
    } else if (hello->context != h->job->context) {
        g->until_ns = INT64_MAX;
        return false;
    } else {
        *rc = accept_rank(h, g, err);
    }
    return true;
}

static int evaluate_all_pending(struct server *h, struct ddp_err *err)
{
    struct ddp_listener *l = h->listener;
    int rc = 0;
    for (int i = l->pending_count - 1; i >= 0 && rc == 0; i--) {
        if (l->pending[i].got == sizeof l->pending[i].hello &&
            evaluate_pending(h, &l->pending[i], &rc, err))
            drop_pending(l, i);
    }
    return rc;
}

/* Reads the bytes that have arrived on a pending connection. Closes the connection if the bytes are
 * not a hello. */
static void receive_hello(struct ddp_listener *l, int i)
{
    struct ddp_pending_connection *g = &l->pending[i];
    if (g->got == sizeof g->hello) {
        /* The connection waits for its group, and its client must not send anything. */
        char byte;
        if (recv(g->fd, &byte, 1, MSG_PEEK) >= 0 || errno != EAGAIN)
            close_pending(l, i);
        return;
    }
    const int rc = ddp_tcp_receive_some(g->fd, &g->hello, sizeof g->hello, &g->got);
    const uint64_t magic = DDP_HELLO_MAGIC;
    if ((rc != 0 && rc != EAGAIN) ||
        memcmp(&g->hello.magic, &magic, DDP_MIN(g->got, sizeof magic)) != 0)
        close_pending(l, i);
}

static void close_silent(struct ddp_listener *l)
{
    const int64_t now = ddp_now_ns();
    for (int i = l->pending_count - 1; i >= 0; i--) {
        if (l->pending[i].got < sizeof l->pending[i].hello && now >= l->pending[i].until_ns)
            close_pending(l, i);
    }
}

/* If PENDING_MAX connections have an incomplete hello, closes the oldest of them. The oldest one is
 * most likely from an unknown peer. */
static void make_room(struct ddp_listener *l)
{
    int n = 0, oldest = -1;
    for (int i = 0; i < l->pending_count; i++) {
        if (l->pending[i].got == sizeof l->pending[i].hello)
            continue;
        n++;
        if (oldest < 0 || l->pending[i].until_ns < l->pending[oldest].until_ns)
            oldest = i;
    }
    if (n >= PENDING_MAX)
        close_pending(l, oldest);
}

/* Accepts all new connections. If there is no memory or no room, closes the new connection. A rank
 * whose connection was closed connects again. */
static void accept_pending(struct ddp_listener *l)
{
    struct sockaddr_storage from = {0};
    int fd;
    while ((fd = ddp_tcp_accept(l->fd, &from)) >= 0) {
        struct ddp_pending_connection *more = NULL;
        make_room(l);
        if (l->pending_count < DDP_RENDEZVOUS_RANKS_MAX)
            more = ddp_realloc_array(l->pending, (size_t)l->pending_count + 1, sizeof *more);
        if (more == NULL) {
            close(fd);
            continue;
        }
        l->pending = more;
        more[l->pending_count++] = (struct ddp_pending_connection){
            .fd = fd, .until_ns = ddp_now_ns() + HELLO_NS, .from = from};
    }
}

/* Fills the array for poll: listener, pending connections, peers. */
static int fill_polled(struct server *h, struct ddp_err *err)
{
    const struct ddp_listener *l = h->listener;
    const int n = 1 + l->pending_count + h->job->size;
    if (n > h->polled_max) {
        struct pollfd *more = ddp_realloc_array(h->polled, (size_t)n, sizeof *more);
        if (more == NULL)
            return ddp_fail_memory(err, (size_t)n, sizeof *more, __func__);
        h->polled = more;
        h->polled_max = n;
    }
    h->polled_pending = l->pending_count;
    h->polled[0] = (struct pollfd){.fd = l->fd, .events = POLLIN};
    for (int i = 0; i < l->pending_count; i++)
        h->polled[1 + i] = (struct pollfd){.fd = l->pending[i].fd, .events = POLLIN};
    for (int r = 0; r < h->job->size; r++) /* poll ignores negative descriptors */
        h->polled[1 + l->pending_count + r] = (struct pollfd){.fd = h->peer[r], .events = POLLIN};
    return 0;
}

static int receive_all(struct server *h, struct ddp_err *err)
{
    struct ddp_listener *l = h->listener;
    for (int r = 1; r < h->job->size; r++) {
        if (h->polled[1 + h->polled_pending + r].revents == 0)
            continue;
        close(h->peer[r]);
        h->peer[r] = -1; /* an accepted peer sends nothing, so any event means that it has left */
        return ddp_fail(err, DDP_ELOST, "rank %d left while other ranks were missing", r);
    }
    for (int i = h->polled_pending - 1; i >= 0; i--) {
        if (h->polled[1 + i].revents != 0)
            receive_hello(l, i);
    }
    if (h->polled[0].revents != 0)
        accept_pending(l);
    close_silent(l);
    return 0;
}

static int report_missing(const struct server *h, struct ddp_err *err)
{
    const int size = h->job->size;
    char list[160] = "?", time[32];
    unsigned char *here = ddp_calloc((size_t)size, 1);
    for (int r = 0; here != NULL && r < size; r++)
        here[r] = r == 0 || h->peer[r] >= 0;
    if (here != NULL)
        (void)!ddp_rank_list(here, size, 0, list, sizeof list);
    free(here);
    ddp_format_ns((double)h->job->timeout_ns, time, sizeof time);
    ddp_fail(err, DDP_ELOST, "rank%s %s of %d did not come to %s within %s",
             h->missing == 1 ? "" : "s", list, size, h->job->where, time);
    return ddp_hint(err, "were they started, and can they reach this host and port?");
}

static int send_ready(struct server *h, struct ddp_err *err)
{
    const size_t bytes = (size_t)h->job->size * sizeof *h->endpoint;
    for (int r = 1; r < h->job->size; r++) {
        answer(h->peer[r], DDP_ANSWER_READY, 0, "", h->job->deadline_ns + GOODBYE_NS);
        if (h->endpoint == NULL)
            continue;
        const int rc =
            ddp_tcp_send(h->peer[r], h->endpoint, bytes, h->job->deadline_ns + GOODBYE_NS);
        if (rc != 0)
            return ddp_fail_errno(err, DDP_ELOST, rc, "rank %d was lost", r);
    }
    return 0;
}

int ddp_rendezvous_serve(const struct ddp_rendezvous_job *job, struct ddp_listener *listener,
                         int *peer, struct ddp_endpoint *endpoint, struct ddp_err *err)
{
    struct server h = {.job = job,
                       .listener = listener,
                       .peer = peer,
                       .endpoint = endpoint,
                       .missing = job->size - 1};
    int rc = 0;
    for (int r = 0; r < job->size; r++)
        peer[r] = -1;
    for (;;) {
        DDP_TRY_GOTO(evaluate_all_pending(&h, err), out);
        if (h.missing == 0)
            break;
        if (ddp_now_ns() >= job->deadline_ns) {
            rc = report_missing(&h, err);
            goto out;
        }
        DDP_TRY_GOTO(fill_polled(&h, err), out);
        const int n = poll(h.polled, (nfds_t)(1 + h.polled_pending + job->size),
                           ddp_tcp_poll_ms(job->deadline_ns, PAUSE_MS));
        if (n < 0 && errno != EINTR) {
            rc = ddp_fail_errno(err, DDP_EINTERNAL, errno, "poll");
            goto out;
        }
        if (n >= 0)
            DDP_TRY_GOTO(receive_all(&h, err), out);
    }
    rc = send_ready(&h, err);
out:
    free(h.polled);
    if (rc == 0)
        return 0;
    report_all(&h, rc, err);
    for (int r = 0; r < job->size; r++) {
        if (peer[r] >= 0)
            close(peer[r]);
        peer[r] = -1;
    }
    return rc;
}
