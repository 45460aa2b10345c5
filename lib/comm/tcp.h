/* TCP sockets with deadlines: what the rendezvous of ranks over a network needs, IPv4 and IPv6.
 *
 * All sockets are non-blocking and close on exec; every call polls until its deadline (ddp_now_ns,
 * INT64_MAX: none). They say what went wrong as an errno value, ETIMEDOUT for a deadline that
 * passed and EPIPE for a peer that closed, because callers put it into words of their own. Nothing
 * here raises SIGPIPE. */
#ifndef DDP_COMM_TCP_H
#define DDP_COMM_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_TCP_ADDRESSES_MAX 16

struct ddp_tcp_address {
    struct sockaddr_storage at; /* without a port */
    socklen_t bytes;
};

/* Addresses of a name or of a number, IPv4 and IPv6, [DDP_TCP_ADDRESSES_MAX]; *count of them.
 * Tries a name again while its server does not answer. DDP_EMISMATCH when there is no such host. */
int ddp_tcp_resolve(const char *host, int64_t deadline_ns, struct ddp_tcp_address *out, int *count,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Does the name stand for this host alone: "localhost", 127.x.y.z, ::1? */
bool ddp_tcp_is_loopback(const char *host);
bool ddp_tcp_address_is_loopback(const struct sockaddr_storage *at);

/* Listens on a port, 0: one that is free; on one address of this host, NULL: on all, of both
 * families. *fd, and *bound: the port. Returns 0 or an errno value (EADDRINUSE). */
int ddp_tcp_listen(const struct ddp_tcp_address *only, int port, int *fd, int *bound);
/* The next connection, or -1 when there is none. */
int ddp_tcp_accept(int fd, struct sockaddr_storage *from);
int ddp_tcp_connect(const struct ddp_tcp_address *to, int port, int64_t deadline_ns, int *fd);
/* All bytes, or the errno value. */
int ddp_tcp_send(int fd, const void *data, size_t bytes, int64_t deadline_ns);
int ddp_tcp_receive(int fd, void *data, size_t bytes, int64_t deadline_ns);
/* What is there now, up to `bytes`; adds to *got. EAGAIN: nothing more yet. 0: all are there. */
int ddp_tcp_receive_some(int fd, void *data, size_t bytes, size_t *got);
/* Milliseconds for poll(2) until the deadline, rounded up, at most `most`. */
int ddp_tcp_poll_ms(int64_t deadline_ns, int most);

#ifdef __cplusplus
}
#endif
#endif
