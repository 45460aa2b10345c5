/* The messages of a rendezvous, and the functions of its server and its clients. */
#ifndef DDP_LAUNCH_RENDEZVOUS_IMPL_H
#define DDP_LAUNCH_RENDEZVOUS_IMPL_H

#include "launch/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are in the byte order of the host. A host with the other byte order sends another magic
 * number and is refused. */
#define DDP_HELLO_MAGIC   UINT64_C(0x6f6c6c6568706464) /* "ddphello" */
#define DDP_ANSWER_MAGIC  UINT64_C(0x7265776e61706464) /* "ddpanwer" */
#define DDP_HELLO_VERSION 1

struct ddp_hello {
    uint64_t magic;
    uint32_t version, rank, size, port; /* port: where this rank listens */
    uint64_t token, context;            /* context: 0 for the world, else the id of a group */
};

/* The server's answers to a hello. */
enum ddp_answer_verdict {
    DDP_ANSWER_ACCEPTED = 1, /* wait for READY */
    DDP_ANSWER_READY,     /* all ranks are connected; with context 0 the endpoints [size] follow */
    DDP_ANSWER_OTHER_JOB, /* this server belongs to another job */
    DDP_ANSWER_TAKEN,     /* another process is already connected as this rank */
    DDP_ANSWER_REFUSED    /* the client fails with `code` and `text` of the answer */
};

struct ddp_answer {
    uint64_t magic;
    uint32_t verdict;
    int32_t code; /* REFUSED only */
    char text[240];
};

/* A pending connection. Its hello is incomplete, or its hello is for a group that this rank has not
 * opened yet. */
struct ddp_pending_connection {
    int fd;
    int64_t until_ns; /* time at which the connection is closed */
    size_t got;       /* bytes of `hello` received */
    struct ddp_hello hello;
    struct sockaddr_storage from;
};

/* One rendezvous, as one rank sees it. */
struct ddp_rendezvous_job {
    uint64_t token, context;
    int rank, size;
    int64_t deadline_ns, timeout_ns;
    bool inside;       /* the address is a loopback address, so all ranks are on this host */
    const char *where; /* address and port for messages */
};

/* Runs the server. Fills peer [size] with sockets (-1 for rank 0), and endpoint [size]. `endpoint`
 * is NULL in a group. */
int ddp_rendezvous_serve(const struct ddp_rendezvous_job *job, struct ddp_listener *listener,
                         int *peer, struct ddp_endpoint *endpoint,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Runs a client. Tries the ports [port, port + ports) of each address [count] until the deadline.
 * Stores the connection to the server in *fd, and fills endpoint as ddp_rendezvous_serve does.
 * `listener` is this rank's own listener. If listener->fd is -1, opens the listener. */
int ddp_rendezvous_join(const struct ddp_rendezvous_job *job, const struct ddp_tcp_address *address,
                        int count, int port, int ports, struct ddp_listener *listener, int *fd,
                        struct ddp_endpoint *endpoint, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
