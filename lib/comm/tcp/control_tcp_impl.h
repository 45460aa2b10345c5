/* Private header of the TCP side channel.
 *
 *   control_tcp.c        all-gathers; opening and closing
 *   control_tcp_lost.c   lost ranks: detection, and the message to the others
 *
 * All data is sent in *frames*. A frame is a head, followed by bytes. A leaf (any rank but 0) sends
 * DATA, and rank 0 answers with RESULT, which holds the data of all ranks. ABORT may come at any
 * time. BYE precedes an orderly close. */
#ifndef DDP_COMM_TCP_CONTROL_TCP_IMPL_H
#define DDP_COMM_TCP_CONTROL_TCP_IMPL_H

#include <poll.h>

#include "comm/tcp/control_tcp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_FRAME_MAGIC 0x6d616664u /* "dfam" */
/* A leaf waits this much longer than rank 0, because rank 0 can report which ranks are missing. */
#define DDP_CONTROL_GRACE_NS   INT64_C(2000000000)
#define DDP_CONTROL_GOODBYE_NS INT64_C(500000000)
#define DDP_CONTROL_TEXT_BYTES 240

enum ddp_control_kind { DDP_FRAME_DATA = 1, DDP_FRAME_RESULT, DDP_FRAME_ABORT, DDP_FRAME_BYE };

struct ddp_control_frame {
    uint32_t magic, kind;
    /* seq: number of the all-gather. bytes: number of bytes after the head, DDP_CONTROL_TEXT_BYTES
     * for ABORT and 0 for BYE. */
    uint64_t seq, bytes;
    /* ABORT only: the error code, and the world rank that caused it (-1: unknown). */
    int32_t code, rank;
};

/* The part of a peer's frame that has arrived. */
struct ddp_control_share {
    struct ddp_control_frame head;
    size_t got_head, got;
    bool gone; /* the peer has sent BYE */
};

/* State that all communicators of a process share. */
struct ddp_control_world {
    uint64_t token;
    struct ddp_listener listener;
    struct ddp_endpoint *endpoint; /* [size of the world] */
};

struct ddp_tcp_control {
    struct ddp_control_world *world;
    struct ddp_connections connections;
    struct ddp_control_share *share; /* [size]; a leaf uses only share[0].gone */
    struct pollfd *polled;           /* [size] */
    uint64_t seq;
    bool failed;
    char why[DDP_CONTROL_TEXT_BYTES]; /* the first failure */
};

static inline struct ddp_tcp_control *ddp_control_of(const struct ddp_comm *comm)
{
    return (struct ddp_tcp_control *)comm->state;
}

/* Stores the failure in c->why if it is the communicator's first, aborts the communicator
 * (ddp_control_abort) and returns DDP_ELOST. rank: the lost rank of the group, -1 if unknown. */
int ddp_control_lose(struct ddp_comm *comm, int rank, struct ddp_err *err, const char *text);
/* Like ddp_control_lose, for the connection to `rank`, which failed with errno value `error`. */
int ddp_control_lose_peer(struct ddp_comm *comm, int rank, int error, struct ddp_err *err);
/* Like ddp_control_lose, for a passed deadline. On rank 0 the message names the missing ranks. */
int ddp_control_expire(struct ddp_comm *comm, struct ddp_err *err);
/* Handles an ABORT frame whose head was received from `fd`. Reads the text into c->why, aborts the
 * communicator and returns DDP_ELOST. */
int ddp_control_receive_abort(struct ddp_comm *comm, int fd, const struct ddp_control_frame *head,
                              struct ddp_err *err);
/* Fails unless the frame from `rank` has the expected kind, bytes and sequence number. */
int ddp_control_check_frame(struct ddp_comm *comm, int rank, const struct ddp_control_frame *head,
                            enum ddp_control_kind kind, uint64_t bytes, struct ddp_err *err);
/* Marks the communicator failed and sends ABORT with c->why on every connection. Does nothing if it
 * is marked already. */
void ddp_control_abort(struct ddp_tcp_control *c, int code, int rank);

#ifdef __cplusplus
}
#endif
#endif
