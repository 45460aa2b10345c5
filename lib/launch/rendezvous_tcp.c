/* The client of a rendezvous, and the set-up of server and clients. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "launch/rendezvous_impl.h"

#define CONNECT_NS INT64_C(2000000000) /* time limit of one attempt to connect */
/* Time limit for the answer to a hello that is for the world, not for a group. The process that
 * listens on the port may not be a rendezvous server, and may never answer. */
#define ANSWER_NS INT64_C(5000000000)
/* Pause between two rounds of attempts. The pause grows by half each time, up to PAUSE_MOST. */
#define PAUSE_NS   INT64_C(20000000)
#define PAUSE_MOST INT64_C(500000000)
/* Extra time after the deadline, in which a client waits for the server's message about missing
 * ranks. */
#define GRACE_NS INT64_C(3000000000)

/* The state of a client while it searches for the server. */
struct rendezvous_client {
    const struct ddp_rendezvous_job *job;
    struct ddp_listener *listener;
    struct ddp_endpoint *endpoint;
    /* The reason why the client last continued its search; "": none. */
    char last_answer[240];
};

/* Opens this rank's listener for later groups. In two cases the rank listens only on the local
 * address of the connection `fd`: (1) the job's host is "localhost" or a loopback address, (2) the
 * job has no secret, and the local address of `fd` is not a loopback address. Otherwise the rank
 * listens on all addresses. A host name that resolves to 127.0.1.1 is not case (1), because ranks
 * on other hosts may need to connect. */
static int open_listener(struct rendezvous_client *s, int fd, struct ddp_err *err)
{
    struct ddp_tcp_address own = {.bytes = sizeof own.at};
    if (s->listener->fd >= 0)
        return 0;
    const bool known = getsockname(fd, (struct sockaddr *)&own.at, &own.bytes) == 0;
    const bool only = known && (s->job->inside ||
                                (!s->job->key.has_secret && !ddp_tcp_address_is_loopback(&own.at)));
    const int rc = ddp_tcp_listen(only ? &own : NULL, 0, &s->listener->fd, &s->listener->port);
    return rc == 0 ? 0 : ddp_fail_errno(err, DDP_EUNAVAIL, rc, "cannot listen on any port");
}

/* Receives the rest of an answer, whose magic number has been received. */
static bool receive_answer_text(int fd, int64_t deadline_ns, struct ddp_answer *a)
{
    char clean[sizeof a->text];
    if (ddp_tcp_receive(fd, &a->verdict, sizeof *a - sizeof a->magic, deadline_ns) != 0)
        return false;
    a->text[sizeof a->text - 1] = '\0';
    ddp_printable(a->text, clean, sizeof clean);
    memcpy(a->text, clean, sizeof clean);
    return true;
}

/* Receives an answer. Returns false if no answer came or if it is not from a rendezvous server. */
static bool receive_answer(int fd, int64_t deadline_ns, struct ddp_answer *a)
{
    return ddp_tcp_receive(fd, &a->magic, sizeof a->magic, deadline_ns) == 0 &&
           a->magic == DDP_ANSWER_MAGIC && receive_answer_text(fd, deadline_ns, a);
}

static int refused(const struct ddp_answer *a, struct ddp_err *err)
{
    const bool known = a->code == DDP_EMISMATCH || a->code == DDP_ELOST || a->code == DDP_ENOMEM;
    return ddp_fail(err, known ? a->code : DDP_ELOST, "%s", a->text);
}

/* Waits until all ranks are connected. Called after DDP_ANSWER_ACCEPTED. */
static int wait_ready(const struct rendezvous_client *s, int fd, struct ddp_err *err)
{
    const struct ddp_rendezvous_job *p = s->job;
    const int64_t until = p->deadline_ns + GRACE_NS;
    struct ddp_answer a;
    if (!receive_answer(fd, until, &a))
        return ddp_fail(err, DDP_ELOST, "rank 0 at %s left before all ranks were connected",
                        p->where);
    if (a.verdict != DDP_ANSWER_READY) {
        const int rc = refused(&a, err);
        if (err != NULL)
            err->agreed = true; /* the server sends the error to all clients and returns it, too */
        return rc;
    }
    if (s->endpoint == NULL)
        return 0;
    const int rc = ddp_tcp_receive(fd, s->endpoint, (size_t)p->size * sizeof *s->endpoint, until);
    return rc == 0 ? 0 : ddp_fail_errno(err, DDP_ELOST, rc, "rank 0 at %s was lost", p->where);
}

/* Sends a hello, and proves that this rank knows the job's secret. Returns true and the server's
 * answer. Returns false if the peer is no server of this job: it sent no answer in time, or it did
 * not prove that it knows the secret. The search for the server then goes on. */
static bool introduce(struct rendezvous_client *s, int fd, struct ddp_answer *a)
{
    const struct ddp_rendezvous_job *p = s->job;
    const int64_t soon = DDP_MIN(ddp_now_ns() + ANSWER_NS, p->deadline_ns),
                  until = p->context != 0 ? p->deadline_ns : soon;
    struct ddp_hello hello = {.magic = DDP_HELLO_MAGIC,
                              .version = DDP_HELLO_VERSION,
                              .rank = (uint32_t)p->rank,
                              .size = (uint32_t)p->size,
                              .port = (uint32_t)s->listener->port,
                              .token = p->key.token,
                              .context = p->context,
                              .has_secret = p->key.has_secret};
    struct ddp_challenge c;
    unsigned char proof[DDP_SHA256_BYTES];
    if ((p->key.has_secret && !ddp_random_bytes(hello.nonce, sizeof hello.nonce)) ||
        ddp_tcp_send(fd, &hello, sizeof hello, soon) != 0)
        return false;
    if (!p->key.has_secret)
        return receive_answer(fd, until, a);
    if (ddp_tcp_receive(fd, &c, sizeof c.magic, until) != 0)
        return false;
    if (c.magic == DDP_ANSWER_MAGIC) {
        /* Anybody may have sent this answer, so it does not end the search. */
        if (receive_answer_text(fd, until, a))
            memcpy(s->last_answer, a->text, sizeof s->last_answer);
        return false;
    }
    if (c.magic != DDP_CHALLENGE_MAGIC ||
        ddp_tcp_receive(fd, c.nonce, sizeof c - sizeof c.magic, until) != 0)
        return false;
    ddp_rendezvous_prove(&p->key, true, &hello, c.nonce, proof);
    if (!ddp_equal_in_constant_time(proof, c.proof, sizeof proof)) {
        snprintf(s->last_answer, sizeof s->last_answer,
                 "the process that listens there does not know the secret of rank %d "
                 "(DDPBENCH_SECRET)",
                 p->rank);
        return false;
    }
    ddp_rendezvous_prove(&p->key, false, &hello, c.nonce, proof);
    return ddp_tcp_send(fd, proof, sizeof proof, soon) == 0 && receive_answer(fd, until, a);
}

/* Tries one port. *out becomes the connection to the server, or -1 if the search goes on. An error
 * ends the search. */
static int try_port(struct rendezvous_client *s, const struct ddp_tcp_address *address, int port,
                    int *out, struct ddp_err *err)
{
    const struct ddp_rendezvous_job *p = s->job;
    struct ddp_answer a;
    int fd, rc;
    *out = -1;
    if (ddp_tcp_connect(address, port, DDP_MIN(ddp_now_ns() + CONNECT_NS, p->deadline_ns), &fd) !=
        0)
        return 0;
    DDP_TRY_GOTO(open_listener(s, fd, err), err_fd);
    if (!introduce(s, fd, &a))
        goto err_fd; /* rc is 0 */
    if (a.verdict == DDP_ANSWER_OTHER_JOB || a.verdict == DDP_ANSWER_TAKEN) {
        memcpy(s->last_answer, a.text, sizeof s->last_answer);
        goto err_fd;
    }
    if (a.verdict != DDP_ANSWER_ACCEPTED) {
        rc = refused(&a, err);
        goto err_fd;
    }
    DDP_TRY_GOTO(wait_ready(s, fd, err), err_fd);
    *out = fd;
    return 0;
err_fd:
    close(fd);
    return rc;
}

static int report_not_found(const struct rendezvous_client *s, struct ddp_err *err)
{
    char time[32];
    ddp_format_ns((double)s->job->timeout_ns, time, sizeof time);
    if (s->last_answer[0] != '\0') {
        ddp_fail(err, DDP_EMISMATCH, "rank %d found no rank 0 of its job at %.100s within %s: %s",
                 s->job->rank, s->job->where, time, s->last_answer);
        return ddp_hint(err, "give each job a MASTER_PORT of its own, at least %d apart",
                        DDP_RENDEZVOUS_PORTS + 1);
    }
    ddp_fail(err, DDP_ELOST, "rank %d could not reach rank 0 at %s within %s", s->job->rank,
             s->job->where, time);
    return ddp_hint(err, "was rank 0 started, and is its port open to this host?");
}

static void address_of(const struct ddp_endpoint *e, struct ddp_tcp_address *out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&out->at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&out->at;
    *out = (struct ddp_tcp_address){.at.ss_family = e->family, .bytes = sizeof *four};
    if (e->family == AF_INET6) {
        memcpy(&six->sin6_addr, e->address, sizeof six->sin6_addr);
        six->sin6_scope_id = e->scope;
        out->bytes = sizeof *six;
    } else {
        memcpy(&four->sin_addr, e->address, sizeof four->sin_addr);
    }
}

/* If other hosts cannot use an address, replaces it with the address at which this rank reached the
 * server. The server's own address is replaced, because the server leaves it empty. The addresses
 * of ranks that connected to the server by loopback are replaced, too. */
static void repair_endpoints(struct ddp_endpoint *endpoint, int size,
                             const struct ddp_tcp_address *server, int server_port)
{
    const bool inside = ddp_tcp_address_is_loopback(&server->at);
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&server->at;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&server->at;
    endpoint[0].port = (uint16_t)server_port;
    for (int r = 0; r < size; r++) {
        struct ddp_endpoint *e = &endpoint[r];
        struct ddp_tcp_address a;
        address_of(e, &a);
        if (e->family != 0 && (inside || !ddp_tcp_address_is_loopback(&a.at)))
            continue;
        e->family = server->at.ss_family;
        e->scope = e->family == AF_INET6 ? six->sin6_scope_id : 0;
        if (e->family == AF_INET6)
            memcpy(e->address, &six->sin6_addr, sizeof six->sin6_addr);
        else
            memcpy(e->address, &four->sin_addr, sizeof four->sin_addr);
    }
}

int ddp_rendezvous_join(const struct ddp_rendezvous_job *job, const struct ddp_tcp_address *address,
                        int count, int port, int ports, struct ddp_listener *listener, int *fd,
                        struct ddp_endpoint *endpoint, struct ddp_err *err)
{
    struct rendezvous_client s = {.job = job, .listener = listener, .endpoint = endpoint};
    for (int64_t pause = PAUSE_NS;; pause = DDP_MIN(pause + pause / 2, PAUSE_MOST)) {
        for (int i = 0; i < ports; i++) {
            for (int a = 0; a < count; a++) {
                DDP_TRY(try_port(&s, &address[a], port + i, fd, err));
                if (*fd < 0)
                    continue;
                if (endpoint != NULL)
                    repair_endpoints(endpoint, job->size, &address[a], port + i);
                return 0;
            }
        }
        if (ddp_now_ns() >= job->deadline_ns)
            return report_not_found(&s, err);
        ddp_sleep_ns(pause);
    }
}

/* Tries the addresses in order, and listens on `port` of the first one that works. Returns 0 or
 * an errno value. */
static int listen_on_first(const struct ddp_tcp_address *address, int count, int port,
                           struct ddp_listener *listener)
{
    int rc = EADDRNOTAVAIL;
    for (int a = 0; a < count; a++) {
        const int error = ddp_tcp_listen(&address[a], port, &listener->fd, &listener->port);
        if (error == 0)
            return 0;
        rc = error == EADDRNOTAVAIL ? rc : error;
    }
    return rc;
}

/* Returns whether rank 0 listens only on the addresses of the configured host. It does so if the
 * host is "localhost" or a loopback address, or if there is no secret and one of the addresses is a
 * network address. Debian's installer makes the name of a host resolve to 127.0.1.1 on the host
 * itself. The network address of such a host is not known here, so rank 0 listens on all
 * addresses. */
static bool is_bound(const struct ddp_rendezvous_config *m, const struct ddp_tcp_address *address,
                     int count)
{
    bool network = false;
    for (int a = 0; a < count; a++)
        network = network || !ddp_tcp_address_is_loopback(&address[a].at);
    return ddp_tcp_is_loopback(m->host) || (!m->key.has_secret && network);
}

/* Listens on the first free port of the rendezvous. */
static int open_server(const struct ddp_rendezvous_config *m, const struct ddp_tcp_address *address,
                       int count, struct ddp_listener *listener, struct ddp_err *err)
{
    const bool only = is_bound(m, address, count);
    int rc = EADDRINUSE;
    for (int i = 0; i < m->ports && (rc == EADDRINUSE || rc == EACCES); i++)
        rc = only ? listen_on_first(address, count, m->port + i, listener)
                  : ddp_tcp_listen(NULL, m->port + i, &listener->fd, &listener->port);
    if (rc == 0)
        return 0;
    if (rc == EADDRNOTAVAIL && only) {
        ddp_fail(err, DDP_EUNAVAIL,
                 "rank 0 has no job secret, and '%.200s' is no address of its host", m->host);
        return ddp_hint(err,
                        "without a secret rank 0 listens only on the address of MASTER_ADDR; set "
                        "DDPBENCH_SECRET on all ranks, or MASTER_ADDR to an address of rank 0");
    }
    if (m->ports > 1)
        ddp_fail_errno(err, DDP_EUNAVAIL, rc, "rank 0 cannot listen on any port from %d to %d",
                       m->port, m->port + m->ports - 1);
    else
        ddp_fail_errno(err, DDP_EUNAVAIL, rc, "rank 0 cannot listen on port %d", m->port);
    return ddp_hint(err, "set DDPBENCH_PORT, or another MASTER_PORT, on all ranks");
}

static int open_connections(struct ddp_connections *connections, int rank, int size,
                            struct ddp_err *err)
{
    const int peers = rank == 0 ? size : 1;
    if (size > DDP_RENDEZVOUS_RANKS_MAX)
        return ddp_fail(err, DDP_EUNAVAIL, "%d ranks are too many: at most %d can connect over TCP",
                        size, DDP_RENDEZVOUS_RANKS_MAX);
    *connections = (struct ddp_connections){.rank = rank, .size = size};
    DDP_TRY(DDP_NEW(&connections->peer, (size_t)peers, err));
    for (int i = 0; i < peers; i++)
        connections->peer[i] = -1;
    return 0;
}

/* Resolves the host of the rendezvous. */
static int resolve(const struct ddp_rendezvous_config *config, int64_t deadline_ns,
                   struct ddp_tcp_address *address, int *count, struct ddp_err *err)
{
    for (;;) {
        struct ddp_err failure = DDP_ERR_INIT;
        const int rc = ddp_tcp_resolve(config->host, deadline_ns, address, count, &failure);
        if (rc == 0)
            return 0;
        if (!config->late_name || ddp_now_ns() >= deadline_ns)
            return ddp_fail_copy(err, &failure);
        ddp_sleep_ns(PAUSE_MOST);
    }
}

int ddp_rendezvous_world(const struct ddp_rendezvous_config *config, int rank, int size,
                         int64_t timeout_ns, struct ddp_connections *connections,
                         struct ddp_listener *listener, struct ddp_endpoint *endpoint,
                         struct ddp_err *err)
{
    struct ddp_tcp_address address[DDP_TCP_ADDRESSES_MAX];
    char where[320];
    int count, rc;
    struct ddp_rendezvous_job job = {.key = config->key,
                                     .rank = rank,
                                     .size = size,
                                     .timeout_ns = timeout_ns,
                                     .deadline_ns = ddp_now_ns() + timeout_ns,
                                     .inside = ddp_tcp_is_loopback(config->host),
                                     .where = where};
    *listener = (struct ddp_listener){.fd = -1};
    snprintf(where, sizeof where, "%s port %d", config->host, config->port);
    memset(endpoint, 0, (size_t)size * sizeof *endpoint);
    DDP_TRY(open_connections(connections, rank, size, err));
    DDP_TRY_GOTO(resolve(config, job.deadline_ns, address, &count, err), err_connections);
    if (rank == 0) {
        DDP_TRY_GOTO(open_server(config, address, count, listener, err), err_connections);
        snprintf(where, sizeof where, "%s port %d", config->host, listener->port);
        rc = ddp_rendezvous_serve(&job, listener, connections->peer, endpoint, err);
    } else {
        if (config->ports > 1)
            snprintf(where, sizeof where, "%s ports %d to %d", config->host, config->port,
                     config->port + config->ports - 1);
        rc = ddp_rendezvous_join(&job, address, count, config->port, config->ports, listener,
                                 connections->peer, endpoint, err);
    }
    if (rc == 0)
        return 0;
    ddp_listener_close(listener);
err_connections:
    ddp_connections_close(connections);
    return rc;
}

int ddp_rendezvous_group(const struct ddp_job_key *key, uint64_t context, int rank, int size,
                         const struct ddp_endpoint *server, struct ddp_listener *listener,
                         int64_t timeout_ns, struct ddp_connections *connections,
                         struct ddp_err *err)
{
    const struct ddp_rendezvous_job job = {.key = *key,
                                           .context = context,
                                           .rank = rank,
                                           .size = size,
                                           .timeout_ns = timeout_ns,
                                           .deadline_ns = ddp_now_ns() + timeout_ns,
                                           .where = "the first rank of a group"};
    struct ddp_tcp_address address;
    int rc;
    DDP_TRY(open_connections(connections, rank, size, err));
    if (rank == 0) {
        rc = ddp_rendezvous_serve(&job, listener, connections->peer, NULL, err);
    } else {
        address_of(server, &address);
        rc = ddp_rendezvous_join(&job, &address, 1, server->port, 1, listener, connections->peer,
                                 NULL, err);
    }
    if (rc != 0)
        ddp_connections_close(connections);
    return rc;
}

void ddp_connections_close(struct ddp_connections *connections)
{
    for (int i = 0;
         connections->peer != NULL && i < (connections->rank == 0 ? connections->size : 1); i++) {
        if (connections->peer[i] >= 0)
            close(connections->peer[i]);
    }
    free(connections->peer);
    *connections = (struct ddp_connections){0};
}

void ddp_listener_close(struct ddp_listener *l)
{
    for (int i = 0; i < l->pending_count; i++)
        close(l->pending[i].fd);
    free(l->pending);
    if (l->fd >= 0)
        close(l->fd);
    *l = (struct ddp_listener){.fd = -1};
}
