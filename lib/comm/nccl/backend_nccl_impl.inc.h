/* Private header of backend nccl; includes NVIDIA's nccl.h.
 *
 *   backend_nccl.c          the backend's table; opening worlds and groups
 *   backend_nccl_open.c     NCCL's own communicators
 *   backend_nccl_load.c     loading the library
 *   backend_nccl_wait.c     waiting with a deadline; calls that may wait for other ranks; aborting
 *   backend_nccl_run.c      the collectives
 *   backend_nccl_memory.c   registered memory
 *   backend_nccl_absent.c   replaces all of them in a build without CUDA or nccl.h */
#ifndef DDP_COMM_BACKEND_NCCL_IMPL_INC_H
#define DDP_COMM_BACKEND_NCCL_IMPL_INC_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/backend.h"
#include "device/device.h"
#include "device/stream.h"

/* The functions that every supported version of the library has, and the functions that only later
 * versions have. */
#define DDP_NCCL_FUNCTIONS(X)                                                                      \
    X(GetVersion)                                                                                  \
    X(GetUniqueId)                                                                                 \
    X(GetErrorString)                                                                              \
    X(GetLastError)                                                                                \
    X(CommInitRankConfig)                                                                          \
    X(CommSplit)                                                                                   \
    X(CommFinalize)                                                                                \
    X(CommDestroy)                                                                                 \
    X(CommAbort)                                                                                   \
    X(CommGetAsyncError)                                                                           \
    X(MemAlloc)                                                                                    \
    X(MemFree)                                                                                     \
    X(CommRegister)                                                                                \
    X(CommDeregister)                                                                              \
    X(AllReduce)                                                                                   \
    X(Reduce)                                                                                      \
    X(Broadcast)                                                                                   \
    X(ReduceScatter)                                                                               \
    X(AllGather)                                                                                   \
    X(Send)                                                                                        \
    X(Recv)                                                                                        \
    X(GroupStart)                                                                                  \
    X(GroupEnd)
#define DDP_NCCL_LATER_FUNCTIONS(X)                                                                \
    X(CommWindowRegister)                                                                          \
    X(CommWindowDeregister)

/* The loaded NCCL library. */
struct ddp_nccl {
#define DDP_NCCL_MEMBER(name) __typeof__(nccl##name) *name;
    DDP_NCCL_FUNCTIONS(DDP_NCCL_MEMBER)
    DDP_NCCL_LATER_FUNCTIONS(DDP_NCCL_MEMBER)
#undef DDP_NCCL_MEMBER
    int version;
    char text[32]; /* "NCCL 2.28.9" */
};

/* State that all communicators of a process share. */
struct ddp_nccl_world {
    const struct ddp_nccl *api;
    const struct ddp_device *device;
    int index;      /* index of the GPU */
    int capability; /* the least compute capability of the ranks' GPUs; -1: unknown */
    struct ddp_gpu_options options;
    /* True if a call failed in some thread, or if the run was aborted. No collective begins
     * afterwards. */
    _Atomic(bool) failed;
    /* True if a thread of ddp_nccl_call is still inside NCCL after the rank has stopped waiting for
     * it. The thread may use memory, streams and communicators, so all of these remain until the
     * process ends. */
    _Atomic(bool) stuck;
    struct ddp_nccl_state *states; /* list of all open communicators, the newest first */
    struct ddp_nccl_block *blocks; /* list of the blocks of ddp_nccl_alloc, the newest first */
};

/* A block of ddp_nccl_alloc that is registered with a communicator. */
struct ddp_nccl_registration {
    struct ddp_nccl_registration *next;
    const void *ptr;
    void *handle;        /* from ncclCommRegister, or NULL */
    ncclWindow_t window; /* from ncclCommWindowRegister, or NULL */
};

/* State of one communicator. Only one thread at a time uses it. The graph and `scratch` are made
 * when they are first needed. */
struct ddp_nccl_state {
    struct ddp_nccl_world *world;
    struct ddp_nccl_state *next;              /* in world->states */
    struct ddp_comm *owner;                   /* the communicator that has this state */
    ncclComm_t comm;                          /* NULL after an abort */
    struct ddp_nccl_registration *registered; /* list */
    struct ddp_stream *stream;
    struct ddp_event *begin, *end; /* for ddp_nccl_run_many */
    bool selected;                 /* `thread` has selected the GPU */
    pthread_t thread;              /* the thread that used the communicator last */
    /* `graph` is the captured operation, or NULL. `graph_args` are its arguments. */
    struct ddp_graph *graph;
    struct ddp_coll_args graph_args;
    /* [seen_count]: the shapes of operations that have run. A shape is all arguments except `send`
     * and `recv`, which have no meaning here. A shape that is used again moves to the front. */
    struct ddp_coll_args *seen;
    size_t seen_count;
    /* [size of the group], or NULL before the first message. Bit 0 of a peer's byte is set if this
     * rank has sent the peer a message, and bit 1 if this rank has received a message from the peer
     * (ddp_nccl_messages). The first message of a pair takes longer, because NCCL connects the
     * pair. */
    unsigned char *met;
    /* Copy of the input of an in-place all-to-all. */
    void *scratch;
    size_t scratch_bytes;
    void *word; /* one f32 on the GPU; a barrier sums it */
    /* The flight recorder that comm->flight pointed to before the side channel's recorder replaced
     * it. */
    struct ddp_flight *own_flight;
};

static inline struct ddp_nccl_state *ddp_nccl_state_of(const struct ddp_comm *comm)
{
    return (struct ddp_nccl_state *)comm->state;
}

/* backend_nccl.c. Returns the compute capability of this host's first GPU, or -1 if it is
 * unknown. */
int ddp_nccl_first_capability(void);

/* backend_nccl_load.c. Loads NCCL at the first call. Fails with DDP_EUNAVAIL and the reason. */
int ddp_nccl_load(const struct ddp_nccl **out, struct ddp_err *err) DDP_MUST_CHECK;
const char *ddp_nccl_text(void); /* NULL until loaded */

/* backend_nccl_open.c. Opens NCCL's communicator for `comm` with a new ncclUniqueId. Collective. */
int ddp_nccl_open(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* Opens NCCL's communicator for a group that has all ranks of the parent, by splitting the parent's
 * communicator. A smaller group uses ddp_nccl_open, because all ranks of the parent must call
 * ncclCommSplit, but only the members of a group call ddp_comm_group. Collective. */
int ddp_nccl_split(struct ddp_comm *parent, struct ddp_comm *child,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_nccl_close(struct ddp_comm *comm);

/* backend_nccl_wait.c. Makes a call of NCCL that may wait for other ranks, and waits up to the
 * deadline until the call is complete. `run` makes the call with a copy of `arg` [bytes] and
 * returns the call's result. `function` is the name of the call for error messages. On a blocking
 * communicator the call waits inside NCCL. It therefore runs in a thread of its own, while the
 * calling thread checks the deadline and the other ranks. If the calling thread stops waiting
 * before the call has returned, this function sets world->stuck. */
int ddp_nccl_call(struct ddp_comm *comm, ncclResult_t (*run)(void *arg), const void *arg,
                  size_t bytes, const char *function, struct ddp_err *err) DDP_MUST_CHECK;
/* Waits up to the deadline until the NCCL call that returned `result` is complete. `function` is
 * the name of the call for error messages. After ncclSuccess the call may still be incomplete:
 * ncclCommSplit and ncclCommWindowRegister return ncclSuccess while a thread of NCCL still works.
 * Therefore ddp_nccl_settle calls ncclCommGetAsyncError even after ncclSuccess. On failure,
 * ddp_nccl_settle aborts the communicator. */
int ddp_nccl_settle(struct ddp_comm *comm, ncclResult_t result, const char *function,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Waits until the stream is idle, up to the deadline. */
int ddp_nccl_wait(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* Destroys the captured graph, because ncclCommAbort does not return while a graph refers to the
 * communicator. Then aborts the NCCL communicator and its GPU kernels. The communicator cannot be
 * used again. If world->stuck is set, only marks the world as failed and releases a held stream
 * (device/stream.h). */
void ddp_nccl_abort(struct ddp_comm *comm);

/* backend_nccl_run.c */
int ddp_nccl_supports(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                      struct ddp_err *err) DDP_MUST_CHECK;
int ddp_nccl_run(struct ddp_comm *comm, const struct ddp_coll_args *args,
                 struct ddp_err *err) DDP_MUST_CHECK;
int ddp_nccl_run_many(struct ddp_comm *comm, const struct ddp_coll_args *args, int64_t count,
                      double *device_ns, struct ddp_err *err) DDP_MUST_CHECK;
/* Runs a barrier by NCCL. It is never captured as a graph. */
int ddp_nccl_barrier(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_nccl_messages(struct ddp_comm *comm, const struct ddp_comm_message *message, int n,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Destroys the captured graph, which refers to the communicator and to memory. */
void ddp_nccl_drop_graph(struct ddp_nccl_state *s);

/* backend_nccl_memory.c. Allocates a block, and registers it with comm and with all groups that
 * were made of comm. No operation may be in progress on these groups. */
int ddp_nccl_alloc(struct ddp_comm *comm, size_t bytes, void **out,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* After a failure the block remains until the communicator is closed, because operations may still
 * use the block. If world->stuck is set, the block remains until the process ends. */
void ddp_nccl_free(struct ddp_comm *comm, void *ptr);
/* Registers the blocks of all ancestors of comm with comm, which is a group that was just
 * opened. */
int ddp_nccl_register_all(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* Ends the registrations of comm, which is closed next. */
void ddp_nccl_unregister_all(struct ddp_comm *comm);
/* Frees the blocks that comm allocated, or all blocks if comm is the world. */
void ddp_nccl_free_all(struct ddp_comm *comm);

#endif
