/* TCP sockets with deadlines, IPv4 and IPv6, for the rendezvous of ranks over a network.
 *
 * All sockets are non-blocking and close on exec. A call with a deadline (ddp_now_ns; INT64_MAX:
 * none) waits at most until this time. Most functions return 0 or an errno value. ETIMEDOUT means
 * that the deadline passed, and EPIPE means that the peer closed the connection. No function raises
 * SIGPIPE. */
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

/* Resolves a host name or address. Writes the addresses to out [DDP_TCP_ADDRESSES_MAX] and their
 * number to *count. Retries while the name server does not answer; one attempt may exceed the
 * deadline. Returns DDP_EMISMATCH if the host is not found. */
int ddp_tcp_resolve(const char *host, int64_t deadline_ns, struct ddp_tcp_address *out, int *count,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the name always means this host: "localhost", 127.x.y.z or ::1. */
bool ddp_tcp_is_loopback(const char *host);
bool ddp_tcp_address_is_loopback(const struct sockaddr_storage *at);

/* Listens on `port`, or on a free port if `port` is 0. only: one address of this host; NULL: all
 * addresses of both families. Stores the socket in *fd and the port in *bound. Returns 0 or an
 * errno value (EADDRINUSE). */
int ddp_tcp_listen(const struct ddp_tcp_address *only, int port, int *fd, int *bound);
/* Returns the next connection, or -1 if there is none or accept fails. */
int ddp_tcp_accept(int fd, struct sockaddr_storage *from);
int ddp_tcp_connect(const struct ddp_tcp_address *to, int port, int64_t deadline_ns, int *fd);
/* These two functions send or receive all bytes, and return 0 or an errno value. They also work on
 * blocking stream sockets, without a deadline. */
int ddp_tcp_send(int fd, const void *data, size_t bytes, int64_t deadline_ns);
int ddp_tcp_receive(int fd, void *data, size_t bytes, int64_t deadline_ns);
/* Receives data that has arrived, and adds its size to *got, which never exceeds `bytes`. Returns 0
 * if all `bytes` bytes have arrived, EAGAIN if not, or another errno value. */
int ddp_tcp_receive_some(int fd, void *data, size_t bytes, size_t *got);
/* Returns the milliseconds until the deadline for poll(2), rounded up, at most `most`. */
int ddp_tcp_poll_ms(int64_t deadline_ns, int most);

#ifdef __cplusplus
}
#endif
#endif
