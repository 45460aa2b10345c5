/* A communicator is a group of ranks with the operations between them.
 *
 * The algorithms in lib/coll use this header. Only one thread at a time may use a communicator. A
 * wait fails with DDP_ELOST if the world is aborted or if the deadline of the wait passes. All
 * later operations on the communicator then fail, too. With MPI, the process may end before the
 * call returns. The deadline of a wait is at least timeout_ns after the start of the wait. Only
 * ddp_comm_agree_idle may wait without a deadline. */
#ifndef DDP_COMM_COMM_H
#define DDP_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"
#include "base/network.h"
#include "device/device.h"
#include "diag/flight.h"
#include "launch/rank_info.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_backend;
struct ddp_comm_shm;
struct ddp_hosts;

/* Options of backends on GPUs. */
struct ddp_gpu_options {
    /* `share`: several ranks use one GPU (gpu_share.h). `window`: registered memory becomes an NCCL
     * window of all ranks. `graph`: collectives run as captured CUDA graphs. `nonblocking`: NCCL's
     * communicators are non-blocking. */
    bool share, window, graph, nonblocking;
};

/* The result of making windows of registered memory (ddp_gpu_options.window). DDP_NOT_SYMMETRIC
 * means that NCCL could not make a window, so each rank registered its memory alone. */
enum ddp_symmetric { DDP_SYMMETRIC_NONE, DDP_SYMMETRIC, DDP_NOT_SYMMETRIC };

struct ddp_comm_options {
    int64_t timeout_ns; /* minimum time until the deadline of a wait; > 0 */
    /* Largest number of bytes of registered memory that a rank needs at the same time. Only address
     * space is reserved for them. */
    uint64_t heap_bytes;
    const struct ddp_device *device;
    const char *module_dir; /* folder of the backend modules; NULL: the binary's folder */
    /* a second thread will use other communicators at the same time (coll/async.h) */
    bool threads;
    /* Called with a report before a failed wait ends this process. Such a wait is a blocking call
     * of a library (watchdog.h), a wait of ranks that share no memory, or a wait of backend ucx
     * under mpiexec or srun. May be NULL. */
    void (*on_expire)(void *arg, const char *report_text);
    void *on_expire_arg;
    struct ddp_gpu_options gpu;
    bool inside_host; /* DDPBENCH_SIMULATE_HOSTS (hosts.h) does not apply to this world */
};

/* A communicator. Algorithms read the members; comm.c and the backend write them. */
struct ddp_comm {
    const struct ddp_backend *backend;
    void *state;     /* private to the backend */
    int rank, size;  /* in this group */
    int *world_rank; /* [size] the world rank of each rank */
    struct ddp_rank_info rank_info;
    const struct ddp_device *device;
    int device_index; /* with DDP_CAP_DEVICE (backend.h): index of this rank's GPU */
    int64_t timeout_ns;
    struct ddp_flight *flight; /* this rank's flight recorder */
    /* The shm context (comm_shm.h) if the backend has DDP_CAP_MAP, or if all ranks of the world
     * share the memory of one host (hosts.h). NULL otherwise. */
    struct ddp_comm_shm *shm;
    struct ddp_hosts *hosts; /* which ranks share a host (hosts.h); may be NULL */
    /* Set by ddp_comm_find_nic (comm_network.h). `host` is equal for ranks of one host. `nic` is
     * the network interface that carries the traffic of this host. In a world of several hosts,
     * `nic` includes an address of the interface. nic.name is "" before the call, and if no
     * interface was found. */
    uint64_t host;
    struct ddp_nic_address nic;
    struct ddp_comm *parent; /* NULL for the world */
    /* Side channel for barriers and all-gathers (bootstrap.h), owned by the backend. NULL if the
     * backend carries barriers and all-gathers itself. */
    struct ddp_comm *control;
    /* A wait on this communicator also calls the backend function `look` (backend.h) for the
     * communicator `watched`. The call makes progress with messages and finds lost ranks. May be
     * NULL. */
    struct ddp_comm *watched;
    bool correctness_only; /* timings on this communicator are meaningless */
    /* The state of the block that was registered last. DDP_SYMMETRIC_NONE: the options requested no
     * windows, or no block has been registered. */
    enum ddp_symmetric symmetric;
    int64_t init_ns; /* time that this rank took to open the communicator */
    /* bytes and messages that this rank has sent with ddp_comm_isend and ddp_comm_exchange */
    uint64_t wire_bytes;
    uint64_t wire_messages;
    /* `id` identifies the communicator on all its ranks; it is 0 for the world. `collectives` and
     * `controls` count the collectives and the control operations (ddp_comm_enter) that this rank
     * has entered. An operation has the same number on all ranks. */
    uint64_t id, collectives, controls;
    void (*on_expire)(void *arg, const char *report_text); /* as in ddp_comm_options */
    void *on_expire_arg;
    size_t cache_share; /* bytes of last-level cache per rank of the world (base/cpuinfo.h) */
    /* True if long waits sleep, so that a computing thread can use the core. */
    bool sleeps_in_waits;
    /* True if a collective may return as soon as it is on the stream (ddp_comm_stream). The caller
     * then waits with ddp_comm_wait_stream. */
    bool deferred;
};

/* Records in the flight recorder that this rank enters an operation of the whole group. `what` is
 * an enum ddp_coll or a control operation (DDP_FLIGHT_EXCHANGE, DDP_FLIGHT_ALLOC). Returns the
 * index for ddp_flight_leave. */
static inline uint64_t ddp_comm_enter(struct ddp_comm *comm, unsigned what, unsigned dtype,
                                      uint64_t bytes)
{
    const bool control = what >= DDP_FLIGHT_SEND;
    struct ddp_flight_op op;
    op.what = what;
    op.dtype = dtype;
    op.bytes = bytes;
    op.group = comm->id;
    op.seq = control ? comm->controls++ : comm->collectives++;
    op.ranks = comm->size;
    return ddp_flight_enter_op(comm->flight, &op);
}

/* Opens the world communicator. Collective over all rank_info->size ranks. */
int ddp_comm_create(const struct ddp_backend *backend, const struct ddp_rank_info *rank_info,
                    const struct ddp_comm_options *options, struct ddp_comm **out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Frees a communicator. Collective unless the run failed. NULL is allowed. */
void ddp_comm_destroy(struct ddp_comm *comm);
/* Opens a group of n ranks of `parent`. The array `ranks` [n] is ascending, has no duplicates and
 * includes this rank. Collective over these ranks. A backend supports at least 64 open groups. The
 * errors include DDP_EUSAGE if `ranks` is invalid, and DDP_EUNAVAIL if the backend can open no more
 * groups. */
int ddp_comm_group(struct ddp_comm *parent, const int *ranks, int n, struct ddp_comm **out,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Ends the waits of all ranks of the world with DDP_ELOST. Does not wait for other ranks. With MPI,
 * the processes end instead. `code` is the error code of the cause. */
void ddp_comm_abort(struct ddp_comm *comm, int code);
/* Calls ddp_comm_abort if `rc` is not 0, because other ranks wait for this rank. Returns `rc`. */
int ddp_comm_abort_if(struct ddp_comm *comm, int rc) DDP_MUST_CHECK;
/* Returns the world that comm belongs to. */
struct ddp_comm *ddp_comm_world(const struct ddp_comm *comm);
/* Converts a world rank, which must be a member of comm, to its rank in comm. */
int ddp_comm_rank_of(const struct ddp_comm *comm, int world_rank);

/* An all-gather of small data, for use outside of timed regions. Each rank sends `bytes` bytes at
 * `mine`. The array `all` [size * bytes] receives the data of all ranks in rank order.
 * Collective. */
int ddp_comm_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                             struct ddp_err *err) DDP_MUST_CHECK;
/* A barrier: no rank leaves before all have entered. */
int ddp_comm_barrier(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* Makes all ranks return the same error code. Every rank passes its own `rc`. All ranks return the
 * `rc` of the lowest rank whose `rc` is not 0. They return 0 if there is no such rank. If the code
 * came from another rank, err holds the number of that rank and its error text. If the exchange of
 * the codes fails, a rank returns its own `rc`, or the error of the exchange if `rc` is 0.
 * Collective. */
int ddp_comm_agree(struct ddp_comm *comm, int rc, struct ddp_err *err) DDP_MUST_CHECK;
/* Replaces ddp_comm_agree on a rank that is idle, because `working` other ranks of the world work
 * in a group without this rank. The working ranks call ddp_comm_agree when their work is done.
 * Their work may take longer than timeout_ns. Therefore the watchdog of the idle rank (watchdog.h)
 * restarts the deadline whenever a working rank on the same host makes progress. The wait has no
 * deadline if no working rank is on this host, or if the ranks of this host share no memory. The
 * deadlines of the working ranks then end a run that hangs. An abort or a lost connection ends the
 * wait, too. */
int ddp_comm_agree_idle(struct ddp_comm *comm, int working, int rc,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the timeout of a wait that begins now. The timeout is timeout_ns. During
 * ddp_comm_agree_idle it is practically infinite, because the watchdog then checks the deadline. */
int64_t ddp_comm_wait_ns(const struct ddp_comm *comm);

/* Allocates registered memory. Some backends send from and receive into such memory without extra
 * copies. Backends without registered memory return private pages. The memory is not zeroed. It is
 * aligned to 4096 bytes, or to 2 MiB if it has 4 MiB or more. Collective: all ranks of the world
 * make the same calls in the same order. */
int ddp_comm_alloc(struct ddp_comm *comm, size_t bytes, void **out,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_comm_free(struct ddp_comm *comm, void *ptr);
/* Returns whether ddp_comm_alloc returns registered memory. The result is the same on all ranks. If
 * it is false, the reason is stored in `why` [why_bytes]. `why` may be NULL; else why_bytes must be
 * at least 256. */
bool ddp_comm_has_registered(const struct ddp_comm *comm, char *why, size_t why_bytes);
/* Returns the address, in this process, of the memory of rank `peer` that corresponds to `ptr`.
 * This memory is at the same offset in the peer's registered memory. `peer` is a rank of this
 * group. Returns NULL if `ptr` is not registered or the peer's memory cannot be mapped. */
void *ddp_comm_map(struct ddp_comm *comm, int peer, const void *ptr);

/* Returns the stream on which the collectives of the backend's library run, or NULL if they run on
 * no stream. The communicator owns the stream. The caller may put other work on the stream. The
 * stream runs this work and the collectives in the order of the calls. */
struct ddp_stream *ddp_comm_stream(struct ddp_comm *comm);
/* Waits until the stream of ddp_comm_stream is idle, up to the deadline. The stream must not be
 * NULL. The flight recorder shows the wait as a collective `what` of `bytes` bytes, so all ranks
 * make this call in the same order. */
int ddp_comm_wait_stream(struct ddp_comm *comm, unsigned what, unsigned dtype, uint64_t bytes,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* A point-to-point message. The caller owns the request and keeps it until the message is done.
 * Messages with the same tag from one rank to another arrive in order. 0 bytes are allowed. A send
 * and its receive must have the same length. Otherwise the receive fails with DDP_EMISMATCH. */
struct ddp_request {
    /* `impl` and u[0] to u[6] belong to the backend, and u[7] belongs to comm_p2p.c. */
    void *impl[4];
    uint64_t u[8];
    bool active;
};
int ddp_comm_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_comm_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
/* Makes progress with all open messages. Sets *done to whether the message of this request is
 * done. */
int ddp_comm_test(struct ddp_comm *comm, struct ddp_request *req, bool *done,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Waits until all requests req [n] are done, up to the deadline. */
int ddp_comm_wait(struct ddp_comm *comm, struct ddp_request *req, int n,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* A message to rank `peer` and a message from rank `peer`. If a length is 0, there is no message in
 * this direction. */
struct ddp_comm_message {
    int peer;
    const void *send;
    size_t send_bytes;
    void *recv;
    size_t recv_bytes;
    struct ddp_request request[2]; /* private to ddp_comm_exchange */
};
/* Sends and receives all messages of `message` [n] at the same time, and returns when all are done.
 * No two elements of `message` have the same peer. If the backend has DDP_CAP_DEVICE, the buffers
 * lie in memory of comm->device, and the caller first waits for streams that use them. Collective
 * over this rank and its peers. */
int ddp_comm_exchange(struct ddp_comm *comm, struct ddp_comm_message *message, int n,
                      struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
