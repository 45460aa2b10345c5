/* What travels when ranks meet. Nobody but rendezvous*.c includes this; tests do, to say it wrong.
 */
#ifndef DDP_COMM_RENDEZVOUS_IMPL_H
#define DDP_COMM_RENDEZVOUS_IMPL_H

#include "comm/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers in the byte order of the host: a host of the other order has another magic number. */
#define DDP_HELLO_MAGIC   UINT64_C(0x6f6c6c6568706464) /* "ddphello" */
#define DDP_ANSWER_MAGIC  UINT64_C(0x7265776e61706464) /* "ddpanwer" */
#define DDP_HELLO_VERSION 1

struct ddp_hello {
    uint64_t magic;
    uint32_t version, rank, size, port; /* port: where this rank listens */
    uint64_t token, context;            /* context 0: the world, else a group */
};

/* ACCEPTED: wait for READY, which the endpoints [size] of all follow when context is 0. OTHER: the
 * hub of another job; TAKEN: that rank is here already. REFUSED: an error of both. */
enum ddp_verdict_of_hub {
    DDP_HUB_ACCEPTED = 1,
    DDP_HUB_READY,
    DDP_HUB_OTHER,
    DDP_HUB_TAKEN,
    DDP_HUB_REFUSED
};

struct ddp_answer {
    uint64_t magic;
    uint32_t verdict;
    int32_t code; /* of REFUSED */
    char text[240];
};

/* A connection that has not yet said all of its hello, or waits for the group it is for. */
struct ddp_guest {
    int fd;
    int64_t until_ns;
    size_t got;
    struct ddp_hello hello;
    struct sockaddr_storage from;
};

/* One meeting, seen by its hub or by who joins. */
struct ddp_party {
    uint64_t token, context;
    int rank, size;
    int64_t deadline_ns, timeout_ns;
    bool inside;       /* the meeting's name is of this host alone: nobody else can come */
    const char *where; /* for people */
};

/* The hub's side: peer [size], -1 at rank 0; endpoint [size], NULL in a group. */
int ddp_rendezvous_host(const struct ddp_party *party, struct ddp_listener *listener, int *peer,
                        struct ddp_endpoint *endpoint, struct ddp_err *err) DDP_MUST_CHECK;
/* The others': *fd the connection to the hub; endpoint as above. address [count]; ports: of a row
 * from `port` on. listener: this rank's own, opened when its fd is -1. */
int ddp_rendezvous_join(const struct ddp_party *party, const struct ddp_tcp_address *address,
                        int count, int port, int ports, struct ddp_listener *listener, int *fd,
                        struct ddp_endpoint *endpoint, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
