/* Inside control traffic over TCP: what its two files share. Nobody else includes this.
 *
 *   control_tcp.c        exchanges; opening and closing
 *   control_tcp_lost.c   who is lost, and how the others hear of it
 *
 * All travels in *frames*: a head, then bytes. A leaf sends DATA, the hub answers RESULT with
 * everybody's; ABORT may come at any time, and BYE before a connection is closed in peace. */
#ifndef DDP_COMM_CONTROL_TCP_IMPL_H
#define DDP_COMM_CONTROL_TCP_IMPL_H

#include <poll.h>

#include "comm/control_tcp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_FRAME_MAGIC 0x6d616664u /* "dfam" */
#define DDP_CONTROL_GRACE_NS                                                                       \
    INT64_C(2000000000) /* a leaf waits longer: the hub knows who is missing */
#define DDP_CONTROL_GOODBYE_NS INT64_C(500000000)
#define DDP_CONTROL_TEXT_BYTES 240

enum ddp_control_kind { DDP_FRAME_DATA = 1, DDP_FRAME_RESULT, DDP_FRAME_ABORT, DDP_FRAME_BYE };

/* bytes: that follow; of ABORT TEXT_BYTES, of BYE none. seq: of the exchange. */
struct ddp_control_frame {
    uint32_t magic, kind;
    uint64_t seq, bytes;
    int32_t code, rank; /* of ABORT: why, and who is to blame; -1: nobody */
};

/* What the hub has of a leaf's contribution. */
struct ddp_control_share {
    struct ddp_control_frame head;
    size_t got_head, got;
    bool gone; /* in peace */
};

/* What the communicators of a process share. */
struct ddp_control_world {
    uint64_t token;
    struct ddp_listener listener;
    struct ddp_endpoint *endpoint; /* [size] of the world */
};

struct ddp_control {
    struct ddp_control_world *world;
    struct ddp_star star;
    struct ddp_control_share *share; /* [size], the hub's */
    struct pollfd *polled;           /* [size] */
    uint64_t seq;
    bool failed;
    char why[DDP_CONTROL_TEXT_BYTES]; /* what was the first failure */
};

static inline struct ddp_control *ddp_control_of(const struct ddp_comm *comm)
{
    return (struct ddp_control *)comm->state;
}

/* The first failure is kept, and told to all. rank: of the group, -1: nobody in particular. */
int ddp_control_lose(struct ddp_comm *comm, int rank, struct ddp_err *err, const char *text);
/* error: an errno value of its connection. */
int ddp_control_lose_peer(struct ddp_comm *comm, int rank, int error, struct ddp_err *err);
/* The deadline has passed: the hub knows who is missing. */
int ddp_control_expire(struct ddp_comm *comm, struct ddp_err *err);
/* Somebody gave up; head: of the frame that says so. */
int ddp_control_hear_abort(struct ddp_comm *comm, int fd, const struct ddp_control_frame *head,
                           struct ddp_err *err);
/* Is a frame what this exchange wants? */
int ddp_control_check_frame(struct ddp_comm *comm, int rank, const struct ddp_control_frame *head,
                            enum ddp_control_kind kind, uint64_t bytes, struct ddp_err *err);
void ddp_control_give_up(struct ddp_control *c, int code, int rank);

#ifdef __cplusplus
}
#endif
#endif
