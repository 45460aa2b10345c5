/* The messages of a rendezvous, and the functions of its server and its clients. */
#ifndef DDP_LAUNCH_RENDEZVOUS_IMPL_H
#define DDP_LAUNCH_RENDEZVOUS_IMPL_H

#include "launch/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are in the byte order of the host. A host with the other byte order sends another magic
 * number, so the server closes its connection. */
#define DDP_HELLO_MAGIC     UINT64_C(0x6f6c6c6568706464) /* "ddphello" */
#define DDP_ANSWER_MAGIC    UINT64_C(0x7265776e61706464) /* "ddpanwer" */
#define DDP_CHALLENGE_MAGIC UINT64_C(0x6c6c616863706464) /* "ddpchall" */
#define DDP_HELLO_VERSION   2
#define DDP_NONCE_BYTES     32

struct ddp_hello {
    uint64_t magic;
    uint32_t version, rank, size, port; /* port: where this rank listens */
    uint64_t token, context;            /* context: 0 for the world, else the id of a group */
    uint32_t has_secret, reserved;      /* has_secret: 1 if this rank knows the job's secret */
    unsigned char nonce[DDP_NONCE_BYTES];
};

/* The server's answer to a hello if the job has a secret. `proof` is ddp_rendezvous_prove of the
 * server. */
struct ddp_challenge {
    uint64_t magic;
    unsigned char nonce[DDP_NONCE_BYTES], proof[DDP_SHA256_BYTES];
};

/* The server's answers to a hello or, if the job has a secret, to the client's proof. */
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

/* The state of a pending connection. */
enum ddp_admission_stage {
    DDP_STAGE_HELLO,   /* its hello is incomplete */
    DDP_STAGE_PROOF,   /* the server has sent a challenge, and the proof is incomplete */
    DDP_STAGE_ADMITTED /* it may become a peer, now or when this rank opens the peer's group */
};

/* A pending connection. */
struct ddp_pending_connection {
    int fd;
    int64_t until_ns; /* time at which the connection is closed unless it is admitted */
    enum ddp_admission_stage stage;
    size_t got; /* bytes received of the message of this stage */
    struct ddp_hello hello;
    struct ddp_challenge challenge;
    unsigned char proof[DDP_SHA256_BYTES];
    struct sockaddr_storage from;
};

/* The server's next action for a pending connection. */
enum ddp_admission {
    DDP_ADMISSION_MORE,      /* wait for more bytes */
    DDP_ADMISSION_CLOSE,     /* an unknown peer: close the connection */
    DDP_ADMISSION_REFUSE,    /* send the answer, then close the connection */
    DDP_ADMISSION_CHALLENGE, /* send the challenge; the stage is now DDP_STAGE_PROOF */
    DDP_ADMISSION_ADMIT      /* the stage is now DDP_STAGE_ADMITTED */
};

/* Evaluates the bytes that have arrived (g->got). Reads and writes no socket. `where` is the
 * server's address for messages. Fills *refusal before it returns DDP_ADMISSION_REFUSE. Admits a
 * connection only if its hello has this job's token, a rank from 1 to size - 1 and a possible port
 * number. If the job has a secret, the client must also have sent a right proof. If the job has no
 * secret, the hello must not announce one. */
enum ddp_admission ddp_admission_next(struct ddp_pending_connection *g,
                                      const struct ddp_job_key *key, const char *where,
                                      struct ddp_answer *refusal);
/* Writes the proof that one end of a connection knows the job's secret. This end is the server if
 * `server` is true, else the client. */
void ddp_rendezvous_prove(const struct ddp_job_key *key, bool server, const struct ddp_hello *hello,
                          const unsigned char nonce[DDP_NONCE_BYTES],
                          unsigned char out[DDP_SHA256_BYTES]);
/* One rendezvous, as one rank sees it. */
struct ddp_rendezvous_job {
    struct ddp_job_key key;
    uint64_t context;
    int rank, size;
    int64_t deadline_ns, timeout_ns;
    bool inside;       /* the address is a loopback address, which only this host can reach */
    const char *where; /* address and port for messages */
};

/* Runs the server. Fills peer [size] with sockets (-1 for rank 0), and endpoint [size]. `endpoint`
 * is NULL in a group. */
int ddp_rendezvous_serve(const struct ddp_rendezvous_job *job, struct ddp_listener *listener,
                         int *peer, struct ddp_endpoint *endpoint,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Runs a client. Tries the ports [port, port + ports) of each address [count] until the deadline.
 * Stores the connection to the server in *fd. Fills endpoint [size] with the addresses of all
 * ranks; `endpoint` is NULL in a group. `listener` is this rank's own listener. If listener->fd is
 * -1, opens the listener. */
int ddp_rendezvous_join(const struct ddp_rendezvous_job *job, const struct ddp_tcp_address *address,
                        int count, int port, int ports, struct ddp_listener *listener, int *fd,
                        struct ddp_endpoint *endpoint, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
