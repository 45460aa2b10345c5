#include "base/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define ADDRESSES_MAX 32
#define DISCARD_PORT  9

/* Writes the path ROOT/FOLDER/NAME/FILE. Returns false if it does not fit. */
static bool path_of(char path[PATH_MAX], const char *root, const char *folder, const char *name,
                    const char *file)
{
    const int n = snprintf(path, PATH_MAX, "%s%s%s%s", root, folder, name, file);
    return n > 0 && n < PATH_MAX;
}

/* Reads the first word of a file. Stores "" if the file cannot be read. */
static void read_word(const char *path, char *out, size_t out_bytes)
{
    char word[64] = "";
    FILE *f = fopen(path, "re");
    if (f != NULL && fscanf(f, "%63s", word) != 1)
        word[0] = '\0';
    if (f != NULL)
        fclose(f);
    ddp_printable(word, out, out_bytes);
}

/* Returns the number in /sys/class/net/NIC/FILE, or -1. Reading the speed of a virtual interface
 * fails, or gives -1. */
static int64_t read_nic(const char *root, const char *nic, const char *file)
{
    char path[PATH_MAX], word[32], *end;
    if (nic[0] == '\0' || !path_of(path, root, "/sys/class/net/", nic, file))
        return -1;
    read_word(path, word, sizeof word);
    const long long v = strtoll(word, &end, 10);
    return end == word || *end != '\0' || v < 0 ? -1 : v;
}

static void read_driver(const char *root, const char *nic, char *out, size_t out_bytes)
{
    char path[PATH_MAX], target[PATH_MAX];
    if (!path_of(path, root, "/sys/class/net/", nic, "/device/driver"))
        return;
    const ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    ddp_printable(slash != NULL ? slash + 1 : target, out, out_bytes);
}

void ddp_network_facts_read(const char *root, const char *nic, struct ddp_network_facts *out)
{
    char path[PATH_MAX];
    *out = (struct ddp_network_facts){.nic.speed_Mbps = -1, .nic.mtu = -1};
    if (path_of(path, root, "/proc/sys/net/ipv4/tcp_congestion_control", "", ""))
        read_word(path, out->congestion_control, sizeof out->congestion_control);
    if (nic[0] == '\0')
        return;
    ddp_printable(nic, out->nic.name, sizeof out->nic.name);
    read_driver(root, nic, out->nic.driver, sizeof out->nic.driver);
    out->nic.speed_Mbps = read_nic(root, nic, "/speed");
    out->nic.mtu = read_nic(root, nic, "/mtu");
}

void ddp_nic_text(const struct ddp_nic *nic, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s", nic->name);
    if (nic->name[0] == '\0')
        return;
    if (nic->driver[0] != '\0')
        ddp_text_append(out, out_bytes, " (%s)", nic->driver);
    if (nic->speed_Mbps >= 1000)
        ddp_text_append(out, out_bytes, ", %.4g Gbit/s", (double)nic->speed_Mbps / 1e3);
    else if (nic->speed_Mbps > 0)
        ddp_text_append(out, out_bytes, ", %" PRId64 " Mbit/s", nic->speed_Mbps);
    if (nic->mtu > 0)
        ddp_text_append(out, out_bytes, ", MTU %" PRId64, nic->mtu);
}

/* The counters of the files /proc/net/snmp (Tcp) and /proc/net/netstat (TcpExt). */
static const struct {
    const char *name;
    enum ddp_network_counter counter;
} tcp_counters[] = {
    {"OutSegs", DDP_NET_SEGMENTS},
    {"RetransSegs", DDP_NET_RETRANSMITS},
    {"TCPTimeouts", DDP_NET_TIMEOUTS},
    {"TCPBacklogDrop", DDP_NET_TCP_DROPS},   /* the backlog of a socket in use */
    {"TCPRcvQDrop", DDP_NET_TCP_DROPS},      /* the receive queue */
    {"RcvPruned", DDP_NET_TCP_DROPS},        /* the receive queue, which was too large */
    {"OfoPruned", DDP_NET_TCP_DROPS},        /* the queue of segments out of order */
    {"TCPOFODrop", DDP_NET_TCP_DROPS},       /* the same queue, which was full */
    {"TCPZeroWindowDrop", DDP_NET_TCP_DROPS} /* the receive window was closed */
};

/* Adds the values of one line. `names` is the line with the names of these values. */
static void add_line(char *names, char *values, int64_t *out)
{
    char *rest_of_names = NULL, *rest_of_values = NULL;
    const char *name = strtok_r(names, " \n", &rest_of_names);
    const char *value = strtok_r(values, " \n", &rest_of_values);
    while (name != NULL && value != NULL) {
        for (size_t i = 0; i < DDP_COUNT_OF(tcp_counters); i++) {
            int64_t *sum = &out[tcp_counters[i].counter];
            if (strcmp(name, tcp_counters[i].name) == 0)
                *sum = DDP_MAX(*sum, 0) + strtoll(value, NULL, 10);
        }
        name = strtok_r(NULL, " \n", &rest_of_names);
        value = strtok_r(NULL, " \n", &rest_of_values);
    }
}

/* Adds the counters of a file that has a line of names beginning with `prefix`, and then a line of
 * values in the same order. */
static void add_file(const char *root, const char *file, const char *prefix, int64_t *out)
{
    char path[PATH_MAX], *names = NULL, *values = NULL;
    size_t names_bytes = 0, values_bytes = 0;
    FILE *f = path_of(path, root, file, "", "") ? fopen(path, "re") : NULL;
    bool found = false;
    while (f != NULL && !found && getline(&names, &names_bytes, f) > 0)
        found = strncmp(names, prefix, strlen(prefix)) == 0;
    if (found && getline(&values, &values_bytes, f) > 0 &&
        strncmp(values, prefix, strlen(prefix)) == 0)
        add_line(names, values, out);
    free(names);
    free(values);
    if (f != NULL)
        fclose(f);
}

void ddp_network_count(const char *root, const char *nic, int64_t *out)
{
    static const struct {
        const char *file;
        enum ddp_network_counter counter;
    } files[] = {
        {"/statistics/rx_errors", DDP_NET_NIC_ERRORS},
        {"/statistics/tx_errors", DDP_NET_NIC_ERRORS},
        {"/statistics/rx_dropped", DDP_NET_NIC_DROPS},
        {"/statistics/rx_missed_errors", DDP_NET_NIC_DROPS},
        {"/statistics/tx_dropped", DDP_NET_NIC_DROPS},
    };
    for (int i = 0; i < DDP_NET_COUNTERS; i++)
        out[i] = -1;
    add_file(root, "/proc/net/snmp", "Tcp:", out);
    add_file(root, "/proc/net/netstat", "TcpExt:", out);
    for (size_t i = 0; i < DDP_COUNT_OF(files); i++) {
        const int64_t v = read_nic(root, nic, files[i].file);
        int64_t *sum = &out[files[i].counter];
        if (v >= 0)
            *sum = DDP_MAX(*sum, 0) + v;
    }
}

void ddp_network_count_since(const int64_t *before, int64_t *after)
{
    for (int i = 0; i < DDP_NET_COUNTERS; i++)
        after[i] = before[i] < 0 || after[i] < 0 ? -1 : after[i] - before[i];
}

/* Copies an address. Returns false if the address is not an IP address, or is valid on one link
 * only. */
static bool copy_address(const struct sockaddr *from, struct ddp_nic_address *out)
{
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
        memcpy(out->bytes, &v4->sin_addr, sizeof v4->sin_addr);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;
        if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
            return false;
        memcpy(out->bytes, &v6->sin6_addr, sizeof v6->sin6_addr);
    } else {
        return false;
    }
    out->family = from->sa_family;
    return true;
}

int ddp_nic_addresses(struct ddp_nic_address *out, int most)
{
    struct ifaddrs *all;
    int n = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *a = all; a != NULL && n < most; a = a->ifa_next) {
        struct ddp_nic_address address = {.family = 0};
        if (a->ifa_addr == NULL || (a->ifa_flags & IFF_UP) == 0 ||
            (a->ifa_flags & IFF_LOOPBACK) != 0 || !copy_address(a->ifa_addr, &address))
            continue;
        snprintf(address.name, sizeof address.name, "%s", a->ifa_name);
        out[n++] = address;
    }
    freeifaddrs(all);
    return n;
}

/* Returns the index of the address in own [n], or -1. */
static int index_of(const struct ddp_nic_address *address, const struct ddp_nic_address *own, int n)
{
    for (int i = 0; i < n; i++)
        if (own[i].family == address->family &&
            memcmp(own[i].bytes, address->bytes, sizeof address->bytes) == 0)
            return i;
    return -1;
}

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Fills *out with an address and a port on which programs seldom listen. Returns the length of
 * the socket address. */
static socklen_t fill(const struct ddp_nic_address *from, union socket_address *out)
{
    memset(out, 0, sizeof *out);
    out->any.sa_family = (sa_family_t)from->family;
    if (from->family == AF_INET) {
        memcpy(&out->v4.sin_addr, from->bytes, sizeof out->v4.sin_addr);
        out->v4.sin_port = htons(DISCARD_PORT);
        return sizeof out->v4;
    }
    memcpy(&out->v6.sin6_addr, from->bytes, sizeof out->v6.sin6_addr);
    out->v6.sin6_port = htons(DISCARD_PORT);
    return sizeof out->v6;
}

int ddp_nic_route(const struct ddp_nic_address *to, const struct ddp_nic_address *own, int n)
{
    /* Connecting a UDP socket sends nothing, but selects the route, and thus the local address. */
    union socket_address peer, self;
    socklen_t bytes = sizeof self;
    struct ddp_nic_address from = {.family = 0};
    if (index_of(to, own, n) >= 0)
        return -1;
    const socklen_t peer_bytes = fill(to, &peer);
    const int fd = socket(to->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const bool found = connect(fd, &peer.any, peer_bytes) == 0 &&
                       getsockname(fd, &self.any, &bytes) == 0 && copy_address(&self.any, &from);
    close(fd);
    return found ? index_of(&from, own, n) : -1;
}

void ddp_nic_default(char name[DDP_NIC_NAME_BYTES])
{
    /* These addresses are reserved for documentation (RFC 5737, RFC 3849), so only the default
     * route leads to them. */
    static const struct ddp_nic_address anywhere[] = {
        {.family = AF_INET, .bytes = {192, 0, 2, 1}},
        {.family = AF_INET6, .bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}},
    };
    struct ddp_nic_address own[ADDRESSES_MAX];
    const int n = ddp_nic_addresses(own, ADDRESSES_MAX);
    int i = -1;
    for (size_t k = 0; k < DDP_COUNT_OF(anywhere) && i < 0; k++)
        i = ddp_nic_route(&anywhere[k], own, n);
    snprintf(name, DDP_NIC_NAME_BYTES, "%s", i < 0 ? "" : own[i].name);
}

/* Begins to connect. Returns the descriptor if the connection is pending. Returns -1 if the result
 * is known already: *answers is then set to whether the host answers. Also returns -1 if no socket
 * can be opened, for example because no descriptor is free. *answers then does not change. */
static int begin_connect(const struct ddp_nic_address *to, bool *answers)
{
    union socket_address peer;
    if (to->family == 0) {
        *answers = false;
        return -1;
    }
    const socklen_t bytes = fill(to, &peer);
    const int fd = socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    const int error = connect(fd, &peer.any, bytes) == 0 ? 0 : errno;
    if (error == EINPROGRESS)
        return fd;
    *answers = error != EHOSTUNREACH && error != ENETUNREACH && error != ETIMEDOUT;
    close(fd);
    return -1;
}

void ddp_nic_answers(const struct ddp_nic_address *to, int n, int64_t timeout_ns, bool *answers)
{
    const int64_t deadline_ns = ddp_now_ns() + timeout_ns;
    struct pollfd *open = ddp_calloc((size_t)n, sizeof *open);
    int pending = 0;
    for (int i = 0; i < n; i++) {
        answers[i] = true;
        if (open == NULL)
            continue;
        open[i] = (struct pollfd){.fd = begin_connect(&to[i], &answers[i]), .events = POLLOUT};
        pending += open[i].fd >= 0;
    }
    while (pending > 0) {
        const int64_t left_ns = DDP_MAX(deadline_ns - ddp_now_ns(), 0);
        const int ready = poll(open, (nfds_t)n, (int)((left_ns + 999999) / 1000000));
        if (ready == 0 || (ready < 0 && errno != EINTR))
            break;
        for (int i = 0; i < n; i++) {
            int error = 0;
            socklen_t bytes = sizeof error;
            if (open[i].fd < 0 || open[i].revents == 0)
                continue;
            answers[i] = getsockopt(open[i].fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 &&
                         (error == 0 || error == ECONNREFUSED);
            close(open[i].fd);
            open[i].fd = -1;
            pending--;
        }
    }
    for (int i = 0; open != NULL && i < n; i++)
        if (open[i].fd >= 0) {
            answers[i] = false;
            close(open[i].fd);
        }
    free(open);
}
