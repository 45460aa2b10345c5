/* The rendezvous server. One loop polls the listening socket, the pending connections
 * (rendezvous_impl.h) and the accepted peers. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit.h"
#include "diag/flight_report.h"
#include "launch/rendezvous_impl.h"

#define HELLO_NS    INT64_C(5000000000) /* time limit of a connection for hello and proof */
#define GOODBYE_NS  INT64_C(1000000000) /* time limit for sending an answer */
#define PENDING_MAX 512                 /* maximum number of connections that are not admitted */
#define YOUNG_NS    INT64_C(250000000)  /* younger connections are not closed to make room */
#define PAUSE_MS    100
#define FULL_MS     20 /* pause before the server accepts again after it had no room */
#define PEERS_NS    INT64_C(100000000) /* interval at which the accepted peers are checked */

struct server {
    const struct ddp_rendezvous_job *job;
    struct ddp_listener *listener;
    int *peer;
    struct ddp_endpoint *endpoint;
    struct pollfd *polled; /* [max(1 + polled_pending, size)] */
    int polled_pending, polled_max;
    int64_t peers_due_ns; /* time of the next check of the peers */
    int missing;
    bool full;    /* there was no room for a new connection */
    int unproven; /* connections that ended without a right proof */
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
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&g->from;
    *e = (struct ddp_endpoint){.family = AF_INET, .port = (uint16_t)g->hello.port};
    if (g->from.ss_family == AF_INET) {
        memcpy(e->address, &four->sin_addr, sizeof four->sin_addr);
    } else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        memcpy(e->address, six->sin6_addr.s6_addr + 12, sizeof four->sin_addr);
    } else {
        e->family = AF_INET6;
        e->scope = six->sin6_scope_id;
        memcpy(e->address, &six->sin6_addr, sizeof six->sin6_addr);
    }
}

/* Handles an admitted connection of this group: accepts or refuses the rank. */
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

/* Accepts the admitted connections of this group. The others stay pending until this rank serves
 * their group. */
static int evaluate_all_pending(struct server *h, struct ddp_err *err)
{
    struct ddp_listener *l = h->listener;
    int rc = 0;
    for (int i = l->pending_count - 1; i >= 0 && rc == 0; i--) {
        if (l->pending[i].stage != DDP_STAGE_ADMITTED ||
            l->pending[i].hello.context != h->job->context)
            continue;
        rc = accept_rank(h, &l->pending[i], err);
        drop_pending(l, i);
    }
    return rc;
}

/* Reads the bytes that have arrived on a pending connection. Returns 0 if the message of this stage
 * is complete, and EAGAIN if bytes of it are missing or an admitted client has sent nothing.
 * Returns another errno value if the connection failed or an admitted client has sent something. */
static int receive_some(struct ddp_pending_connection *g)
{
    char byte;
    if (g->stage == DDP_STAGE_HELLO)
        return ddp_tcp_receive_some(g->fd, &g->hello, sizeof g->hello, &g->got);
    if (g->stage == DDP_STAGE_PROOF)
        return ddp_tcp_receive_some(g->fd, g->proof, sizeof g->proof, &g->got);
    /* An admitted client must not send anything before it is accepted. */
    return recv(g->fd, &byte, 1, MSG_PEEK) < 0 ? errno : EPIPE;
}

/* Handles the bytes that have arrived on a pending connection. */
static void receive_pending(struct server *h, int i)
{
    struct ddp_listener *l = h->listener;
    struct ddp_pending_connection *g = &l->pending[i];
    const struct ddp_job_key *key = &h->job->key;
    const int64_t until = ddp_now_ns() + GOODBYE_NS;
    struct ddp_answer refusal;
    const enum ddp_admission_stage stage = g->stage;
    const int rc = receive_some(g);
    enum ddp_admission next = DDP_ADMISSION_CLOSE;
    if (stage == DDP_STAGE_ADMITTED && rc == EAGAIN)
        return;
    if (stage != DDP_STAGE_ADMITTED && (rc == 0 || rc == EAGAIN))
        next = ddp_admission_next(g, key, h->job->where, &refusal);
    if (next == DDP_ADMISSION_MORE || next == DDP_ADMISSION_ADMIT)
        return;
    if (next == DDP_ADMISSION_CHALLENGE &&
        ddp_tcp_send(g->fd, &g->challenge, sizeof g->challenge, until) == 0)
        return;
    if (next == DDP_ADMISSION_REFUSE)
        (void)!ddp_tcp_send(g->fd, &refusal, sizeof refusal, until);
    h->unproven += stage == DDP_STAGE_PROOF;
    close_pending(l, i);
}

/* Returns whether another connection may be accepted. If PENDING_MAX connections wait for their
 * admission, or if `is_full` is set, first closes the connection that has waited longest for its
 * admission. This connection is most likely from an unknown peer. Does not close a connection that
 * has waited for less than YOUNG_NS, because it may be from a rank that has had no time to
 * answer. */
static bool make_room(struct ddp_listener *l, bool is_full)
{
    int oldest = -1, count = 0;
    for (int i = 0; i < l->pending_count; i++) {
        if (l->pending[i].stage == DDP_STAGE_ADMITTED)
            continue;
        count++;
        if (oldest < 0 || l->pending[i].until_ns < l->pending[oldest].until_ns)
            oldest = i;
    }
    if (!is_full && count < PENDING_MAX)
        return true;
    if (oldest < 0 || ddp_now_ns() < l->pending[oldest].until_ns - HELLO_NS + YOUNG_NS)
        return false;
    close_pending(l, oldest);
    return true;
}

static void close_silent(struct ddp_listener *l)
{
    const int64_t now = ddp_now_ns();
    for (int i = l->pending_count - 1; i >= 0; i--) {
        if (l->pending[i].stage != DDP_STAGE_ADMITTED && now >= l->pending[i].until_ns)
            close_pending(l, i);
    }
}

/* Accepts the new connections for which there is room. The others wait, and h->full becomes true.
 * If there is no memory, closes the connection. A rank whose connection was closed connects
 * again. */
static void accept_pending(struct server *h)
{
    struct ddp_listener *l = h->listener;
    struct sockaddr_storage from = {0};
    while (!h->full) {
        struct ddp_pending_connection *more = NULL;
        h->full = !make_room(l, false);
        const int fd = h->full ? -1 : ddp_tcp_accept(l->fd, &from);
        if (fd < 0 && !h->full && (errno == EMFILE || errno == ENFILE))
            h->full = !make_room(l, true);
        else if (fd < 0)
            return;
        if (fd < 0)
            continue;
        if (l->pending_count < DDP_RENDEZVOUS_RANKS_MAX + PENDING_MAX)
            more = ddp_realloc_array(l->pending, (size_t)l->pending_count + 1, sizeof *more);
        if (more == NULL) {
            close(fd);
            continue;
        }
        l->pending = more;
        more[l->pending_count++] = (struct ddp_pending_connection){
            .fd = fd, .until_ns = ddp_now_ns() + HELLO_NS, .from = from};
        receive_pending(h, l->pending_count - 1); /* the hello has often arrived already */
    }
}

/* Fails if an accepted peer has left. A peer sends nothing, so any event means that it has left. */
static int check_peers(struct server *h, struct ddp_err *err)
{
    const int64_t now = ddp_now_ns();
    if (now < h->peers_due_ns)
        return 0;
    h->peers_due_ns = now + PEERS_NS;
    for (int r = 0; r < h->job->size; r++) /* poll ignores negative descriptors */
        h->polled[r] = (struct pollfd){.fd = h->peer[r], .events = POLLIN};
    if (poll(h->polled, (nfds_t)h->job->size, 0) <= 0)
        return 0;
    for (int r = 1; r < h->job->size; r++) {
        if (h->polled[r].revents == 0)
            continue;
        close(h->peer[r]);
        h->peer[r] = -1;
        return ddp_fail(err, DDP_ELOST, "rank %d left while other ranks were missing", r);
    }
    return 0;
}

/* Makes room in the array for poll, and fills it: listener, pending connections. */
static int fill_polled(struct server *h)
{
    const struct ddp_listener *l = h->listener;
    const int n = DDP_MAX(1 + l->pending_count, h->job->size);
    if (n > h->polled_max) {
        struct pollfd *more = ddp_realloc_array(h->polled, (size_t)n, sizeof *more);
        if (more == NULL)
            return DDP_ENOMEM;
        h->polled = more;
        h->polled_max = n;
    }
    h->polled_pending = l->pending_count;
    h->polled[0] = (struct pollfd){.fd = h->full ? -1 : l->fd, .events = POLLIN};
    for (int i = 0; i < l->pending_count; i++)
        h->polled[1 + i] = (struct pollfd){.fd = l->pending[i].fd, .events = POLLIN};
    return 0;
}

/* Waits at most PAUSE_MS for events of the listener and of pending connections, and handles
 * them. */
static int receive_all(struct server *h, struct ddp_err *err)
{
    struct ddp_listener *l = h->listener;
    if (fill_polled(h) != 0)
        return ddp_fail_memory(err, (size_t)h->polled_max, sizeof *h->polled, __func__);
    const int n = poll(h->polled, (nfds_t)(1 + h->polled_pending),
                       ddp_tcp_poll_ms(h->job->deadline_ns, h->full ? FULL_MS : PAUSE_MS));
    if (n < 0)
        return errno == EINTR ? 0 : ddp_fail_errno(err, DDP_EINTERNAL, errno, "poll");
    for (int i = h->polled_pending - 1; i >= 0; i--) {
        if (h->polled[1 + i].revents != 0)
            receive_pending(h, i);
    }
    if (h->polled[0].revents != 0 || h->full) {
        h->full = false;
        accept_pending(h);
    }
    close_silent(l);
    return check_peers(h, err);
}

/* Raises the limit on open files, because this process needs one file for each rank. A failure is
 * ignored here. If the limit is too low, some ranks cannot connect and are reported as missing. */
static void raise_file_limit(int size)
{
    const rlim_t wanted = (rlim_t)size + PENDING_MAX + 256;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = DDP_MIN(wanted, limit.rlim_max);
    (void)setrlimit(RLIMIT_NOFILE, &limit);
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
    ddp_fail(err, DDP_ELOST, "rank%s %s of %d did not connect to %s within %s",
             h->missing == 1 ? "" : "s", list, size, h->job->where, time);
    if (h->unproven > 0)
        return ddp_hint(err,
                        "%d connections did not prove that they know the job's secret: is "
                        "DDPBENCH_SECRET the same on all ranks?",
                        h->unproven);
    if (h->job->inside && h->endpoint != NULL)
        return ddp_hint(err,
                        "were they started? Other hosts cannot reach this loopback address; if "
                        "ranks run there, set MASTER_ADDR to a network address of rank 0");
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
    raise_file_limit(job->size);
    for (;;) {
        DDP_TRY_GOTO(evaluate_all_pending(&h, err), out);
        if (h.missing == 0)
            break;
        if (ddp_now_ns() >= job->deadline_ns) {
            rc = report_missing(&h, err);
            goto out;
        }
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
