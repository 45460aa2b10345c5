/* TCP sockets with deadlines, IPv4 and IPv6, for the rendezvous of ranks over a network.
 *
 * All sockets that these functions open are non-blocking and close on exec. `deadline_ns` is a time
 * of ddp_now_ns at which a call stops waiting; INT64_MAX means no deadline. The functions that
 * listen, connect, send or receive return 0 or an errno value. ETIMEDOUT means that the deadline
 * passed, and EPIPE means that the peer closed the connection. No function raises SIGPIPE. */
#ifndef DDP_LAUNCH_TCP_H
#define DDP_LAUNCH_TCP_H

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

/* Resolves a host name or address. Writes the addresses to `out` [DDP_TCP_ADDRESSES_MAX] and
 * their number to *count. Retries until the deadline while the name server does not answer. The
 * last attempt may end after the deadline. Returns DDP_EMISMATCH if the host is not found or the
 * name server does not answer in time. */
int ddp_tcp_resolve(const char *host, int64_t deadline_ns, struct ddp_tcp_address *out, int *count,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the name always means this host: "localhost", 127.x.y.z, ::1 or
 * ::ffff:127.x.y.z. */
bool ddp_tcp_is_loopback(const char *host);
bool ddp_tcp_address_is_loopback(const struct sockaddr_storage *at);

/* Listens on `port`, or on a free port if `port` is 0. `only` is the address of this host to listen
 * on. If it is NULL, the socket listens on all IPv4 and IPv6 addresses of this host. Stores the
 * socket in *fd and the port in *bound. Returns EADDRINUSE if the port is in use. */
int ddp_tcp_listen(const struct ddp_tcp_address *only, int port, int *fd, int *bound);
/* Returns the next connection, or -1 if there is none or accept fails. */
int ddp_tcp_accept(int fd, struct sockaddr_storage *from);
int ddp_tcp_connect(const struct ddp_tcp_address *to, int port, int64_t deadline_ns, int *fd);
/* These two functions send or receive all bytes. They also accept a blocking stream socket, but
 * then they ignore `deadline_ns`. */
int ddp_tcp_send(int fd, const void *data, size_t bytes, int64_t deadline_ns);
int ddp_tcp_receive(int fd, void *data, size_t bytes, int64_t deadline_ns);
/* Receives a message of `bytes` bytes in several calls. *got is the number of bytes that earlier
 * calls have stored in `data`. Each call appends the bytes that have arrived since, and increases
 * *got. Returns EAGAIN until the message is complete. */
int ddp_tcp_receive_some(int fd, void *data, size_t bytes, size_t *got);
/* Returns the timeout for poll(2): the milliseconds until the deadline, rounded up, but at most
 * `most`. */
int ddp_tcp_poll_ms(int64_t deadline_ns, int most);

#ifdef __cplusplus
}
#endif
#endif
