/* Inside backend nccl: what its files share, on NVIDIA's own header. Nobody else includes this.
 *
 *   backend_nccl.c          the table; what a world and a group are made of
 *   backend_nccl_open.c     NCCL's own communicators
 *   backend_nccl_load.c     the library, opened when first needed
 *   backend_nccl_wait.c     waiting beside a deadline; giving up
 *   backend_nccl_run.c      the collectives
 *   backend_nccl_memory.c   memory of the library, registered or not
 *   backend_nccl_absent.c   instead of all of them in a build without CUDA */
#ifndef DDP_COMM_BACKEND_NCCL_IMPL_INC_H
#define DDP_COMM_BACKEND_NCCL_IMPL_INC_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/backend.h"
#include "device/device.h"
#include "device/stream.h"

/* Functions of the library: those that must be there, and those that later versions brought. */
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

/* The library of this process. text: "NCCL 2.28.9". */
struct ddp_nccl {
#define DDP_NCCL_MEMBER(name) __typeof__(nccl##name) *name;
    DDP_NCCL_FUNCTIONS(DDP_NCCL_MEMBER)
    DDP_NCCL_LATER_FUNCTIONS(DDP_NCCL_MEMBER)
#undef DDP_NCCL_MEMBER
    int version;
    char text[32];
};

/* What the communicators of a process share. failed: a call failed or the run was given up, in
 * whatever thread; then nothing that waits is called. */
struct ddp_nccl_world {
    const struct ddp_nccl *api;
    const struct ddp_device *device;
    int index; /* of the GPU */
    struct ddp_gpu_options options;
    _Atomic(bool) failed;
    struct ddp_nccl_block *blocks; /* of the world's memory */
};

/* One communicator, which belongs to one thread at a time. begin, end: around the last operation.
 * scratch: what in-place moves need; made by the first call that needs it, which is one of warm-up
 * or of verification, as is the graph of `graph_args`. */
struct ddp_nccl_state {
    struct ddp_nccl_world *world;
    ncclComm_t comm; /* NULL: aborted */
    struct ddp_stream *stream;
    struct ddp_event *begin, *end;
    bool timed;       /* begin and end have happened */
    bool selected;    /* the GPU, by `thread` */
    pthread_t thread; /* that used it last */
    struct ddp_graph *graph;
    struct ddp_coll_args graph_args;
    bool ran_args; /* graph_args ran once without a graph */
    void *scratch;
    size_t scratch_bytes;
    void *word; /* [1] f32: what a barrier sums */
    struct ddp_flight *own_flight;
};

static inline struct ddp_nccl_state *ddp_nccl_state_of(const struct ddp_comm *comm)
{
    return (struct ddp_nccl_state *)comm->state;
}

/* backend_nccl_load.c. DDP_EUNAVAIL says where it was looked for, or what is wrong with it. */
int ddp_nccl_load(const struct ddp_nccl **out, struct ddp_err *err) DDP_MUST_CHECK;
const char *ddp_nccl_text(void); /* NULL until loaded */

/* backend_nccl_open.c. The communicator of comm's state, by an id of its own. Collective. */
int ddp_nccl_open(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* The same for a group of all ranks: split off its parent. All ranks of a parent must call
 * ncclCommSplit, so a smaller group, which is made by its members alone, has an id. Collective. */
int ddp_nccl_split(struct ddp_comm *parent, struct ddp_comm *child,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_nccl_close(struct ddp_comm *comm);

/* backend_nccl_wait.c. Waits until the call on comm's communicator that returned `result` is done,
 * up to the deadline. ncclSuccess does not mean that it is done: ncclCommSplit and
 * ncclCommWindowRegister return it while a thread of NCCL still works, so ncclCommGetAsyncError is
 * asked after every call. function: its name, for messages. Anything but 0 has aborted the
 * communicator. */
int ddp_nccl_settle(struct ddp_comm *comm, ncclResult_t result, const char *function,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Until the stream has done all it was given. */
int ddp_nccl_wait(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* Ends what is under way on the GPU, for ever. */
void ddp_nccl_give_up(struct ddp_comm *comm);

/* backend_nccl_run.c */
int ddp_nccl_supports(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                      struct ddp_err *err) DDP_MUST_CHECK;
int ddp_nccl_run(struct ddp_comm *comm, const struct ddp_coll_args *args,
                 struct ddp_err *err) DDP_MUST_CHECK;
double ddp_nccl_device_ns(struct ddp_comm *comm);

/* backend_nccl_memory.c */
int ddp_nccl_alloc(struct ddp_comm *comm, size_t bytes, void **out,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_nccl_free(struct ddp_comm *comm, void *ptr);
void ddp_nccl_free_all(struct ddp_comm *world);

#endif
