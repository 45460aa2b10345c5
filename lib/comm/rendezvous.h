/* Rendezvous: processes that know their rank, the size and one address connect to each other over
 * TCP, without MPI. Rank 0 is the *rendezvous server*: it listens, and the other ranks are its
 * clients. A client tries to connect until the deadline and sends a hello with its rank. The result
 * is one connection between rank 0 and every other rank.
 *
 * A *hello* has a fixed length: magic number, version, the job's token, rank and size. The server
 * checks each field. A connection that sends anything else, or no complete hello within seconds, is
 * an unknown peer; the server closes it and continues. A rank of another job and a second process
 * of one rank get an answer and continue their search, because their own server may listen on the
 * next port. A rank of this job with another size is an error on both sides at once. If ranks are
 * missing at the deadline, the server names them and informs all connected clients.
 *
 * torchrun's own store may listen on MASTER_PORT, and neighbouring ports may be in use. The server
 * therefore takes the first free port of `ports` consecutive ones, and clients try all of them. A
 * token prevents mix-ups of jobs; it does not authenticate. The network is trusted, as it is by MPI
 * and NCCL. */
#ifndef DDP_COMM_RENDEZVOUS_H
#define DDP_COMM_RENDEZVOUS_H

#include "comm/tcp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of ranks; rank 0 has a connection to each. */
#define DDP_RENDEZVOUS_RANKS_MAX 4096
/* Number of consecutive ports that are tried. */
#define DDP_RENDEZVOUS_PORTS 8

/* Address at which the ranks of a job meet. */
struct ddp_rendezvous_config {
    char host[256];
    int port, ports; /* the first port, and the number of consecutive ports */
    uint64_t token;  /* the same on all ranks of a job, different in another job */
};

/* A rank's own listening socket, to which the ranks of a later group connect. */
struct ddp_listener {
    int fd, port;
    /* Connections whose hello is incomplete, or that belong to a group this rank has not opened
     * yet. */
    struct ddp_pending_connection *pending;
    int pending_count;
};

/* The address at which a rank listens, as rank 0 sees its host. */
struct ddp_endpoint {
    struct ddp_tcp_address address;
    int32_t port, reserved;
};

/* The connections of one group. */
struct ddp_connections {
    int rank, size;
    /* On rank 0: [size] sockets, -1 for itself. On other ranks: peer[0] is the connection to rank
     * 0. */
    int *peer;
};

/* Connects all ranks of a job. Fills *star, this rank's *listener and endpoint [size], where each
 * rank listens. Collective. Returns DDP_ELOST if a rank is missing or left, and DDP_EMISMATCH if
 * sizes differ or the port belongs to another job; all sockets are then closed. */
int ddp_rendezvous_world(const struct ddp_rendezvous_config *config, int rank, int size,
                         int64_t timeout_ns, struct ddp_connections *connections,
                         struct ddp_listener *listener, struct ddp_endpoint *endpoint,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Connects `size` ranks of a job as a group, of which this rank is number `rank`. server: where
 * rank 0 of the group listens; NULL on that rank. context: a non-zero id of the group, the same on
 * all its ranks and different from other groups'. Collective over the group. */
int ddp_rendezvous_group(uint64_t token, uint64_t context, int rank, int size,
                         const struct ddp_endpoint *server, struct ddp_listener *listener,
                         int64_t timeout_ns, struct ddp_connections *connections,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_connections_close(struct ddp_connections *connections); /* {0} is allowed */
void ddp_listener_close(struct ddp_listener *l);                 /* fd -1 is allowed */

#ifdef __cplusplus
}
#endif
#endif
