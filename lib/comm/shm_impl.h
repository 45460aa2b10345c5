/* Inside the shm backend: what its files share. Nobody else includes this.
 *
 * A world (struct ddp_shm_world) is one rank's view of the segment: registered heap and
 * point-to-point engine, shared by the world's communicator and all its groups. A communicator's
 * state (struct ddp_shm_state) adds the channel of its group. */
#ifndef DDP_COMM_SHM_IMPL_H
#define DDP_COMM_SHM_IMPL_H

#include <pthread.h>

#include "comm/backend.h"
#include "comm/comm_shm.h"
#include "comm/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Registered memory of this rank: first fit over a list sorted by offset. Every rank makes the same
 * calls in the same order, so offsets agree without a word. */
struct ddp_shm_block {
    size_t offset, bytes;
};
struct ddp_shm_heap {
    unsigned char *base;
    size_t bytes;
    struct ddp_shm_block *blocks;
    size_t count, capacity;
};

/* A message that came before its receive; got < total while it is still arriving. */
struct ddp_shm_message {
    struct ddp_shm_message *next;
    uint64_t context, got, total;
    int32_t tag;
    unsigned char *data;
};

/* What this rank has open with one other. Sending: requests in order, the first one moves. tail:
 * slots filled; head_seen: the receiver's head when last looked at. Receiving: posted receives in
 * order, early messages in order, and the message whose slots are arriving now, into a receive's
 * buffer or an early message (both NULL: it is dropped). */
struct ddp_shm_peer {
    struct ddp_request *sends, *sends_last;
    uint64_t tail, head_seen;
    struct ddp_request *posted, *posted_last;
    struct ddp_shm_message *early, *early_last;
    uint64_t head;
    bool arriving;
    struct ddp_request *into_request;
    struct ddp_shm_message *into_message;
    uint64_t got, total;
};

/* lock: guards peer[] when two threads of this rank use communicators of their own
 * (ddp_comm_options.threads); not taken otherwise. */
struct ddp_shm_world {
    struct ddp_segment *segment;
    int me, ranks;
    bool threads;
    pthread_mutex_t lock;
    struct ddp_shm_heap heap;
    struct ddp_shm_peer *peer; /* [ranks] */
    unsigned ticks;
};

/* context: marks the messages of this communicator: channel | generation << 8. */
struct ddp_shm_state {
    struct ddp_shm_world *world;
    int channel;
    uint64_t context;
    struct ddp_comm_shm shm;
};
#define DDP_SHM_CONTROL (UINT64_C(1) << 63) /* in a context: messages of this backend itself */

static inline struct ddp_shm_state *ddp_shm_state_of(const struct ddp_comm *comm)
{
    return (struct ddp_shm_state *)comm->state;
}

/* shm_heap.c */
void ddp_shm_heap_init(struct ddp_shm_heap *heap, unsigned char *base, size_t bytes);
void ddp_shm_heap_release(
    struct ddp_shm_heap *heap); /* gives the pages of what is left back, too */
int ddp_shm_alloc(struct ddp_comm *comm, size_t bytes, void **out,
                  struct ddp_err *err) DDP_MUST_CHECK;
void ddp_shm_free(struct ddp_comm *comm, void *ptr);
void *ddp_shm_map(struct ddp_comm *comm, int peer, const void *ptr);

/* A request's u[] and its state. impl[0]: buffer; impl[1]: next in its list. */
enum ddp_shm_request_field {
    DDP_REQ_BYTES,
    DDP_REQ_MOVED,
    DDP_REQ_TAG,
    DDP_REQ_CONTEXT,
    DDP_REQ_STATE,
    DDP_REQ_LENGTH, /* of the message, when it is not the receive's */
    DDP_REQ_PEER
};
enum ddp_shm_request_state { DDP_REQ_PENDING, DDP_REQ_DONE, DDP_REQ_WRONG_LENGTH };

/* shm_pipe.c: the rings; under the lock. */
int ddp_shm_pipe_init(struct ddp_shm_world *world, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_shm_pipe_release(struct ddp_shm_world *world);
/* Moves the sends to `target` as far as there are free slots. */
void ddp_shm_pipe_push(struct ddp_shm_world *world, int target);
/* Moves all that can move. */
int ddp_shm_pipe_progress(struct ddp_shm_world *world, struct ddp_err *err) DDP_MUST_CHECK;
/* A receive whose message is there, or on its way, already: served, true. */
bool ddp_shm_pipe_take_early(struct ddp_shm_peer *p, struct ddp_request *req);
/* The world was given up: callers return and their requests with them, so none is touched again. */
void ddp_shm_pipe_forget(struct ddp_shm_world *world);

/* shm_p2p.c. `target`, `source`: ranks of the world. */
void ddp_shm_p2p_send(struct ddp_shm_world *world, int target, uint64_t context, int tag,
                      const void *buf, size_t bytes, struct ddp_request *req);
void ddp_shm_p2p_recv(struct ddp_shm_world *world, int source, uint64_t context, int tag, void *buf,
                      size_t bytes, struct ddp_request *req);
int ddp_shm_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                  struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_shm_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                  struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_shm_test(struct ddp_comm *comm, struct ddp_request *req, bool *done,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* shm_group.c: channels. */
void ddp_shm_channel_attach(struct ddp_comm *comm, int channel, uint64_t generation);
void ddp_shm_channel_leave(struct ddp_comm *comm);
int ddp_shm_group(struct ddp_comm *parent, struct ddp_comm *child,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
