#include "launch/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define RESOLVE_PAUSE_NS 200000000
#define BACKLOG          4096 /* the kernel reduces it to net.core.somaxconn */

int ddp_tcp_poll_ms(int64_t deadline_ns, int most)
{
    if (deadline_ns == INT64_MAX)
        return most;
    const int64_t left = deadline_ns - ddp_now_ns();
    return left <= 0 ? 0 : (int)DDP_MIN((left + 999999) / 1000000, (int64_t)most);
}

int ddp_tcp_resolve(const char *host, int64_t deadline_ns, struct ddp_tcp_address *out, int *count,
                    struct ddp_err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc;
    while ((rc = getaddrinfo(host, NULL, &hints, &found)) == EAI_AGAIN &&
           ddp_now_ns() < deadline_ns)
        ddp_sleep_ns(RESOLVE_PAUSE_NS);
    if (rc != 0)
        return ddp_fail(err, DDP_EMISMATCH, "cannot find the host '%.200s': %s", host,
                        gai_strerror(rc));
    *count = 0;
    for (const struct addrinfo *a = found; a != NULL && *count < DDP_TCP_ADDRESSES_MAX;
         a = a->ai_next) {
        if (a->ai_addrlen > sizeof out->at)
            continue;
        memset(&out[*count], 0, sizeof *out);
        memcpy(&out[*count].at, a->ai_addr, a->ai_addrlen);
        out[(*count)++].bytes = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return 0;
}

bool ddp_tcp_address_is_loopback(const struct sockaddr_storage *at)
{
    if (at->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)at;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)at;
    return at->ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
            (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127));
}

bool ddp_tcp_is_loopback(const char *host)
{
    struct sockaddr_storage at = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&at;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&at;
    if (strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &in->sin_addr) == 1)
        at.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1)
        at.ss_family = AF_INET6;
    return ddp_tcp_address_is_loopback(&at);
}

/* Makes the socket send small messages without delay, and detect peers that disappeared
 * (keepalive). */
static void set_no_delay(int fd)
{
    const int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

static socklen_t set_port(struct sockaddr_storage *at, int port)
{
    if (at->ss_family == AF_INET) {
        ((struct sockaddr_in *)(void *)at)->sin_port = htons((uint16_t)port);
        return sizeof(struct sockaddr_in);
    }
    ((struct sockaddr_in6 *)(void *)at)->sin6_port = htons((uint16_t)port);
    return sizeof(struct sockaddr_in6);
}

/* Opens a socket that listens on `at`. Returns 0 or an errno value. */
static int listen_on(struct sockaddr_storage *at, int port, int *fd)
{
    const int yes = 1, no = 0;
    int s = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0)
        return errno;
    /* Without this option, the port of a job that has just ended could not be used for a while
     * (TIME_WAIT). */
    (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (at->ss_family == AF_INET6)
        (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(s, (struct sockaddr *)at, set_port(at, port)) != 0 || listen(s, BACKLOG) != 0) {
        const int error = errno;
        close(s);
        return error;
    }
    *fd = s;
    return 0;
}

static int port_of(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
        return 0;
    return at.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)(void *)&at)->sin_port)
                                   : ntohs(((struct sockaddr_in6 *)(void *)&at)->sin6_port);
}

/* If `only` is NULL, opens one socket for both families, or an IPv4 socket on hosts without
 * IPv6. */
int ddp_tcp_listen(const struct ddp_tcp_address *only, int port, int *fd, int *bound)
{
    struct sockaddr_storage at = {.ss_family = AF_INET6};
    if (only != NULL)
        at = only->at;
    else
        ((struct sockaddr_in6 *)(void *)&at)->sin6_addr = in6addr_any;
    int rc = listen_on(&at, port, fd);
    if (only == NULL && (rc == EAFNOSUPPORT || rc == EADDRNOTAVAIL)) {
        memset(&at, 0, sizeof at);
        at.ss_family = AF_INET; /* the address 0.0.0.0 is all zero */
        rc = listen_on(&at, port, fd);
    }
    if (rc == 0)
        *bound = port_of(*fd);
    return rc;
}

int ddp_tcp_accept(int fd, struct sockaddr_storage *from)
{
    socklen_t bytes = sizeof *from;
    int s;
    do
        s = accept4(fd, (struct sockaddr *)from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (s < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (s >= 0)
        set_no_delay(s);
    return s;
}

/* Waits until fd is ready for `events`. */
static int wait_for(int fd, short events, int64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        const int n = poll(&p, 1, ddp_tcp_poll_ms(deadline_ns, 1000));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return errno;
        if (ddp_now_ns() >= deadline_ns)
            return ETIMEDOUT;
    }
}

int ddp_tcp_connect(const struct ddp_tcp_address *to, int port, int64_t deadline_ns, int *fd)
{
    struct sockaddr_storage at = to->at;
    int error = 0;
    socklen_t error_bytes = sizeof error;
    int s = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0)
        return errno;
    if (connect(s, (struct sockaddr *)&at, set_port(&at, port)) != 0) {
        error = errno;
        if (error == EINPROGRESS || error == EINTR) {
            error = wait_for(s, POLLOUT, deadline_ns);
            if (error == 0 && getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &error_bytes) != 0)
                error = errno;
        }
    }
    if (error != 0) {
        close(s);
        return error;
    }
    set_no_delay(s);
    *fd = s;
    return 0;
}

int ddp_tcp_send(int fd, const void *data, size_t bytes, int64_t deadline_ns)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n >= 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (errno == EAGAIN) {
            const int rc = wait_for(fd, POLLOUT, deadline_ns);
            if (rc != 0)
                return rc;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int ddp_tcp_receive_some(int fd, void *data, size_t bytes, size_t *got)
{
    while (*got < bytes) {
        const ssize_t n = recv(fd, (char *)data + *got, bytes - *got, 0);
        if (n == 0)
            return EPIPE;
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            *got += (size_t)n;
    }
    return 0;
}

int ddp_tcp_receive(int fd, void *data, size_t bytes, int64_t deadline_ns)
{
    size_t got = 0;
    int rc;
    while ((rc = ddp_tcp_receive_some(fd, data, bytes, &got)) == EAGAIN) {
        rc = wait_for(fd, POLLIN, deadline_ns);
        if (rc != 0)
            return rc;
    }
    return rc;
}
