/* Private header of the shm backend.
 *
 * struct ddp_shm_world is one rank's view of the segment. It has the heap and the point-to-point
 * state, which the world's communicator and all its groups share. struct ddp_shm_state is the state
 * of one communicator. It points to the struct ddp_shm_world and has the parts that belong to this
 * communicator alone: its channel (one set of flag slots, message slots and rings of the segment)
 * and the context id that marks its messages. */
#ifndef DDP_COMM_SHM_SHM_IMPL_H
#define DDP_COMM_SHM_SHM_IMPL_H

#include <pthread.h>

#include "comm/backend.h"
#include "comm/shm/comm_shm.h"
#include "launch/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Registered memory of this rank. `blocks` lists the allocated blocks, sorted by offset. A new
 * block takes the first gap that is large enough. All ranks make the same calls in the same order,
 * so the offsets agree on all ranks. */
struct ddp_shm_block {
    size_t offset, bytes;
};
struct ddp_shm_heap {
    unsigned char *base;
    size_t bytes;
    struct ddp_shm_block *blocks;
    size_t count, capacity;
};

/* An early message is a message that began to arrive before its receive was posted. While the
 * message is arriving, got < total. */
struct ddp_shm_message {
    struct ddp_shm_message *next;
    uint64_t context, got, total;
    int32_t tag;
    unsigned char *data;
};

/* Open (unfinished) sends to one peer, and open receives from the same peer. */
struct ddp_shm_peer {
    /* Open sends in the order of the calls. The first send is being copied to the ring. */
    struct ddp_request *sends, *sends_last;
    uint64_t tail, head_seen; /* slots filled, and the receiver's `head` when it was last read */
    /* Posted receives in the order of the calls. */
    struct ddp_request *posted, *posted_last;
    /* Early messages in the order of arrival. */
    struct ddp_shm_message *early, *early_last;
    uint64_t head; /* slots emptied */
    /* True while a message is arriving. The message goes to into_request or into_message. If both
     * are NULL, the message is discarded. */
    bool arriving;
    struct ddp_request *into_request;
    struct ddp_shm_message *into_message;
    uint64_t got, total;
};

struct ddp_shm_world {
    struct ddp_segment *segment;
    int me, ranks;
    bool threads; /* two threads of this rank use communicators (ddp_comm_options.threads) */
    pthread_mutex_t lock; /* guards peer[]; used only if `threads` is set */
    struct ddp_shm_heap heap;
    struct ddp_shm_peer *peer; /* [ranks] */
    unsigned ticks;            /* number of calls of ddp_shm_pipe_progress */
};

struct ddp_shm_state {
    struct ddp_shm_world *world;
    int channel;
    uint64_t context; /* marks the messages of this communicator: channel | generation << 8 */
    struct ddp_comm_shm shm;
};
/* bit of a context that marks messages of the backend itself */
#define DDP_SHM_CONTROL (UINT64_C(1) << 63)

static inline struct ddp_shm_state *ddp_shm_state_of(const struct ddp_comm *comm)
{
    return (struct ddp_shm_state *)comm->state;
}

/* shm_heap.c */
void ddp_shm_heap_init(struct ddp_shm_heap *heap, unsigned char *base, size_t bytes);
/* Frees the list of blocks. Gives the pages of remaining large blocks back to the kernel. */
void ddp_shm_heap_release(struct ddp_shm_heap *heap);
int ddp_shm_alloc(struct ddp_comm *comm, size_t bytes, void **out,
                  struct ddp_err *err) DDP_MUST_CHECK;
void ddp_shm_free(struct ddp_comm *comm, void *ptr);
void *ddp_shm_map(struct ddp_comm *comm, int peer, const void *ptr);

/* Indices of a request's u[]. impl[0] is the buffer, and impl[1] is the next request of the
 * list. */
enum ddp_shm_request_field {
    DDP_REQ_BYTES,
    DDP_REQ_MOVED,
    DDP_REQ_TAG,
    DDP_REQ_CONTEXT,
    DDP_REQ_STATE,
    DDP_REQ_LENGTH, /* length of the message, if the receive expects another length */
    DDP_REQ_PEER
};
enum ddp_shm_request_state { DDP_REQ_PENDING, DDP_REQ_DONE, DDP_REQ_WRONG_LENGTH };

/* shm_pipe.c: the rings of the point-to-point messages. The caller of each of these functions,
 * except init and release, holds the lock of struct ddp_shm_world. */
int ddp_shm_pipe_init(struct ddp_shm_world *world, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_shm_pipe_release(struct ddp_shm_world *world);
/* Copies open sends to `target` into free slots of the ring. */
void ddp_shm_pipe_push(struct ddp_shm_world *world, int target);
/* Advances all open sends and receives as far as possible now. */
int ddp_shm_pipe_progress(struct ddp_shm_world *world, struct ddp_err *err) DDP_MUST_CHECK;
/* Gives the first matching early message, which has arrived or is arriving, to a receive. Returns
 * false if there is no such message. */
bool ddp_shm_pipe_take_early(struct ddp_shm_peer *p, struct ddp_request *req);
/* Forgets all open requests after an abort, because their callers then stop waiting and the memory
 * of the requests becomes invalid. */
void ddp_shm_pipe_drop(struct ddp_shm_world *world);

/* shm_p2p.c. `target` and `source` are ranks of the world. */
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
