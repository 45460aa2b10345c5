/* Rendezvous: processes that know a rank, a size and one address find each other over TCP, without
 * any MPI. Rank 0, the *hub*, listens; the others connect, again and again until the deadline, and
 * say who they are. What comes of it is a star of connections.
 *
 * A *hello* has a magic number, a version, the job's token, rank and size, all of fixed length, and
 * is looked at field by field. What is no hello, or is not complete within seconds, is a stranger:
 * its connection is closed and the others go on. Another job's rank, and a second process of one
 * rank, are told so and go on looking, for their own hub may listen on the next port. A rank of
 * this job that says another size is an error on both sides, at once. When somebody is missing at
 * the deadline the hub names all who are, and tells those who came.
 *
 * torchrun's own store may listen on MASTER_PORT, and a port beside it may be taken: there are
 * `ports` ports in a row, the hub takes the first it can have, the others look on all.
 * What it does not do: prove who somebody is. A token keeps jobs apart by accident, not by force;
 * the network is trusted as MPI and NCCL trust it. */
#ifndef DDP_COMM_RENDEZVOUS_H
#define DDP_COMM_RENDEZVOUS_H

#include "comm/tcp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most ranks: each is a connection of the hub. */
#define DDP_RENDEZVOUS_RANKS_MAX 4096
/* Ports from the first on that are tried. */
#define DDP_RENDEZVOUS_PORTS 8

/* Where a job meets. token: the same on all its ranks, another job's differs. */
struct ddp_meeting {
    char host[256];
    int port, ports;
    uint64_t token;
};

/* A rank's own listening socket, where the ranks of a later group may find it; and those who came
 * before the group they are for (rendezvous_hub.c). */
struct ddp_listener {
    int fd, port;
    struct ddp_guest *guests;
    int guest_count;
};

/* Where a rank listens, as the hub sees its host. */
struct ddp_endpoint {
    struct ddp_tcp_address address;
    int32_t port, reserved;
};

/* Connections of one group. hub: peer [size], -1 at itself; others: peer[0] is the hub's. */
struct ddp_star {
    int rank, size;
    int *peer;
};

/* All ranks of a job meet: fills *star, this rank's *listener and endpoint [size] of all.
 * Collective. DDP_ELOST: somebody is missing, or left; DDP_EMISMATCH: sizes differ, or the port is
 * another job's. Nothing is left open then. */
int ddp_rendezvous_world(const struct ddp_meeting *meeting, int rank, int size, int64_t timeout_ns,
                         struct ddp_star *star, struct ddp_listener *listener,
                         struct ddp_endpoint *endpoint, struct ddp_err *err) DDP_MUST_CHECK;
/* The same of `size` ranks of it; this is the group's `rank`-th. hub: where its 0-th listens, NULL
 * there. context: which group, the same on all its ranks and no other's; not 0. */
int ddp_rendezvous_group(uint64_t token, uint64_t context, int rank, int size,
                         const struct ddp_endpoint *hub, struct ddp_listener *listener,
                         int64_t timeout_ns, struct ddp_star *star,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_star_close(struct ddp_star *star);      /* {0} is fine */
void ddp_listener_close(struct ddp_listener *l); /* fd -1 is fine */

#ifdef __cplusplus
}
#endif
#endif
