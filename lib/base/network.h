/* Facts about a network interface (NIC) of this host and about TCP, and counters of both. The TCP
 * counters are those of this process's network namespace. All counters include the traffic of other
 * programs. A value that cannot be read is "" or -1, never a guess. */
#ifndef DDP_BASE_NETWORK_H
#define DDP_BASE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_NIC_NAME_BYTES 16 /* IFNAMSIZ of Linux */

struct ddp_nic {
    char name[DDP_NIC_NAME_BYTES]; /* interface, for example "eth0"; "": none */
    char driver[32];               /* "": a virtual interface has none */
    int64_t speed_Mbps;            /* speed of the link; -1: a virtual interface has none */
    int64_t mtu;                   /* largest packet, in bytes */
};

struct ddp_network_facts {
    struct ddp_nic nic;
    char congestion_control[24]; /* of TCP, for new connections: "cubic", ... */
};

/* Reads the facts. `nic` is the name of an interface, or "". `root` is the folder that contains
 * proc/ and sys/: "" except in tests. */
void ddp_network_facts_read(const char *root, const char *nic, struct ddp_network_facts *out);
/* Writes the facts about an interface, for example "eth0 (mlx5_core), 25 Gbit/s, MTU 9000". `out`
 * becomes "" if the interface has no name. */
void ddp_nic_text(const struct ddp_nic *nic, char *out, size_t out_bytes);

/* Counters that show whether the network disturbed a measurement. No counter decreases while the
 * host runs. */
enum ddp_network_counter {
    DDP_NET_SEGMENTS,    /* TCP segments that were sent, without retransmissions */
    DDP_NET_RETRANSMITS, /* TCP segments that were sent again */
    DDP_NET_TIMEOUTS,    /* expired retransmission timers of TCP */
    /* TCP segments that arrived, but were dropped because a receive buffer or queue was full.
     * Dropped requests for new connections (ListenDrops) do not count. */
    DDP_NET_TCP_DROPS,
    DDP_NET_NIC_ERRORS, /* packets that the interface received or sent with errors */
    /* Packets that the interface or Linux dropped. A few drops are normal, because packets of
     * protocols that no program on this host uses are dropped, too. */
    DDP_NET_NIC_DROPS,
    DDP_NET_COUNTERS
};

/* Reads the counters into `out` [DDP_NET_COUNTERS]. `root` and `nic` mean the same as in
 * ddp_network_facts_read. Do not call this function in timed regions, because it opens files. */
void ddp_network_count(const char *root, const char *nic, int64_t *out);
/* Subtracts the counters in `before` [DDP_NET_COUNTERS] from those in `after` [DDP_NET_COUNTERS].
 * If one of the two values of a counter is unknown, the difference is unknown. */
void ddp_network_count_since(const int64_t *before, int64_t *after);

/* An address of an interface of this host. */
struct ddp_nic_address {
    char name[DDP_NIC_NAME_BYTES]; /* of the interface */
    unsigned char bytes[16];       /* in network byte order; IPv4 uses 4 of them */
    int32_t family;                /* AF_INET or AF_INET6; 0: no address */
};

/* Writes at most `most` addresses to `out`: those of the interfaces that are up. Leaves out the
 * loopback interface and IPv6 addresses that are valid on one link only. Returns the number of
 * addresses written. */
int ddp_nic_addresses(struct ddp_nic_address *out, int most);
/* Finds the address from which this host would send packets to the address `to`. Sends nothing.
 * `own` [n] holds the addresses of this host. Returns the index of the found address in `own`.
 * Returns -1 if there is no route, if the address is not in `own`, or if `to` is itself in
 * `own`. */
int ddp_nic_route(const struct ddp_nic_address *to, const struct ddp_nic_address *own, int n);
/* Writes the name of the interface of the default route, or "" if there is none. */
void ddp_nic_default(char name[DDP_NIC_NAME_BYTES]);

/* Finds out which hosts answer. Sets answers[i] to true if the host with the address to[i] accepts
 * or refuses a TCP connection before the timeout, and to false otherwise. An address of family 0
 * does not answer. If no connection can be tried, for example because no descriptor is free,
 * answers[i] becomes true, because nothing is known about the host. A firewall may drop the
 * requests, so a host that does not answer is not necessarily down. The function opens up to n
 * sockets at a time. */
void ddp_nic_answers(const struct ddp_nic_address *to, int n, int64_t timeout_ns, bool *answers);

#ifdef __cplusplus
}
#endif
#endif
