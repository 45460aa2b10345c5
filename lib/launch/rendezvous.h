/* Rendezvous: the ranks of a job connect to each other over TCP, without MPI. Each rank needs its
 * number, the number of ranks and one address. Rank 0 is the *rendezvous server*, which listens.
 * The other ranks are its clients. A client repeats its attempts to connect until one succeeds or
 * the deadline passes. Once connected, it sends a hello with its rank. The result is one connection
 * between rank 0 and every other rank.
 *
 * A *hello* is a message of fixed length with a magic number, a version, the job's token, the rank
 * and the number of ranks. The server checks each field. If a connection sends something else, or
 * does not complete the handshake (hello and proof) within 5 s, it is from an unknown peer. The
 * server closes the connection and continues. A client of another version gets an answer and fails.
 * A client of another job gets an answer and continues its search, because its own server may
 * listen on the next port. A second process with the same rank also continues its search. If a
 * client of this job has another number of ranks, server and client fail at once. If ranks are
 * missing at the deadline, the server fails with an error that names the missing ranks, and sends
 * the error to all connected clients.
 *
 * The token keeps jobs apart, but it consists of public facts. If the job has a *secret*, server
 * and client prove to each other that they know it. The hello holds a random nonce. The server
 * answers with a nonce of its own and a proof. A proof is an HMAC-SHA-256 of the hello and the
 * server's nonce, and its key is the hash of the secret. If the server's proof is right, the client
 * sends its own proof. Both nonces are new for every connection, so recorded messages prove
 * nothing. The server admits only clients with a right proof. A client with a secret believes an
 * answer only after a right proof, and otherwise continues its search. The secret itself is never
 * sent. Without a secret, any process that can connect may take the place of a rank. Therefore the
 * ranks then listen only on the address of MASTER_ADDR and on the addresses that they use to reach
 * it. Exception: if MASTER_ADDR is a host name other than "localhost" that resolves only to
 * loopback addresses on rank 0's host, the ranks of this host listen on all addresses.
 *
 * The handshake protects only the joining of the job. The connections are not encrypted, and an
 * attacker who can change the packets of a connection can change its data. UCX and NCCL open
 * connections of their own, which this handshake does not protect.
 *
 * torchrun's own store may listen on MASTER_PORT, and neighbouring ports may be in use. The server
 * therefore takes the first free port of `ports` consecutive ports, and clients try all of them. */
#ifndef DDP_LAUNCH_RENDEZVOUS_H
#define DDP_LAUNCH_RENDEZVOUS_H

#include "base/sha256.h"
#include "launch/tcp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of ranks. Rank 0 needs a connection to every other rank. */
#define DDP_RENDEZVOUS_RANKS_MAX 4096
/* Number of consecutive ports that clients try. */
#define DDP_RENDEZVOUS_PORTS 8

/* The values that all ranks of a job share, and by which they recognise each other. */
struct ddp_job_key {
    uint64_t token; /* a hash of public facts; different in another job */
    bool has_secret;
    unsigned char secret[DDP_SHA256_BYTES]; /* the SHA-256 of the job's secret */
};

/* Address at which the ranks of a job meet. */
struct ddp_rendezvous_config {
    char host[256];
    int port, ports; /* the first port, and the number of consecutive ports */
    bool late_name;  /* the name of the host may be unknown at first, so look it up again */
    struct ddp_job_key key;
};

/* A rank's listening socket. Rank 0 of the world or of a group accepts the other ranks on it. */
struct ddp_listener {
    int fd, port;
    /* Connections that are not admitted yet, and connections for a group that this rank has not
     * opened yet. */
    struct ddp_pending_connection *pending;
    int pending_count;
};

/* The address and port at which a rank listens, as rank 0 sees them. A client replaces an empty or
 * loopback address by the address at which it reached rank 0. The struct is sent as it is. */
struct ddp_endpoint {
    uint16_t family, port;     /* AF_INET, AF_INET6, or 0 if there is no address */
    uint32_t scope;            /* AF_INET6 only: the interface of a link-local address */
    unsigned char address[16]; /* AF_INET uses the first 4 bytes */
};

struct ddp_connections {
    int rank, size;
    /* On rank 0: [size] sockets, -1 for rank 0 itself. On other ranks: peer[0] is the connection to
     * rank 0. */
    int *peer;
};

/* Connects all ranks of a job. Fills *connections and this rank's *listener, and endpoint [size]
 * with the addresses at which the ranks listen. Collective. Returns DDP_ELOST if a rank is missing
 * or has left, and DDP_EUNAVAIL if a rank finds no free port or there are too many ranks. Returns
 * DDP_EMISMATCH if the host cannot be found, if the ranks disagree on the number of ranks, on the
 * version or on the use of a secret, or if the port belongs to another job. After an error all
 * sockets are closed. */
int ddp_rendezvous_world(const struct ddp_rendezvous_config *config, int rank, int size,
                         int64_t timeout_ns, struct ddp_connections *connections,
                         struct ddp_listener *listener, struct ddp_endpoint *endpoint,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Connects `size` ranks of a job as a group, of which this rank is number `rank`. `server` is the
 * address at which rank 0 of the group listens; rank 0 ignores it. `context` is the id of the
 * group. The id is not 0, and no other group has the same id. Collective over the group. Fails as
 * ddp_rendezvous_world does, but keeps `listener` open. */
int ddp_rendezvous_group(const struct ddp_job_key *key, uint64_t context, int rank, int size,
                         const struct ddp_endpoint *server, struct ddp_listener *listener,
                         int64_t timeout_ns, struct ddp_connections *connections,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_connections_close(struct ddp_connections *connections); /* {0} is allowed */
void ddp_listener_close(struct ddp_listener *l);                 /* fd -1 is allowed */

#ifdef __cplusplus
}
#endif
#endif
