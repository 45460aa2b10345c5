/* Communicators: a group of ranks and what they can do with each other's memory.
 *
 * This is what algorithms (lib/coll) are written against. A communicator belongs to one thread at a
 * time. Every wait in here polls two things besides its own condition: the world's abort word, and
 * a deadline `timeout_ns` after the wait began (not ddp_comm_agree_untimed). Either ends the call
 * with DDP_ELOST on this rank; no later call on the communicator succeeds ("a collective fails on
 * all ranks or on none"). What it does not do: reductions, algorithms, printing. */
#ifndef DDP_COMM_COMM_H
#define DDP_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"
#include "comm/flight.h"
#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_backend;
struct ddp_comm_shm;
struct ddp_hosts;

/* Where a rank stands; filled by our launcher or from mpiexec's variables. */
struct ddp_place {
    int rank, size;             /* of the world */
    int local_rank, local_size; /* on this host */
    bool oversubscribed; /* more local ranks than usable cores: waits yield instead of spinning */
    int segment_fd;      /* shared segment of our launcher, -1 without one */
    void *segment;       /* its mapping in this process (threads share one), or NULL */
};

/* For backends on GPUs. share: several ranks a GPU (gpu_share.h). window: registered memory is a
 * window of all ranks. graph: collectives run as captured graphs. */
struct ddp_gpu_options {
    bool share, window, graph;
};

struct ddp_comm_options {
    int64_t timeout_ns;  /* deadline of every wait; > 0 */
    uint64_t heap_bytes; /* registered memory a rank may need at once (address space is reserved,
                            pages come with use) */
    const struct ddp_device *device;
    const char *module_dir; /* where backend modules lie; NULL: beside the binary */
    bool threads;           /* a second thread will use communicators of its own (coll/async.h) */
    /* Called, with the line to say, before the process is ended because a library's blocking start
     * (watchdog.h) or a wait between hosts outlasted the deadline. NULL: nothing is said. */
    void (*on_expire)(void *arg, const char *story);
    void *on_expire_arg;
    struct ddp_gpu_options gpu;
    bool inside_host; /* hosts.c's own: this world is of one host of another world */
};

/* The members algorithms read; all others are the backend's. rank/size are of this group;
 * world_rank[size] maps to the world. flight: this rank's recorder. shm: the shared-flags face
 * (comm_shm.h) of a backend with DDP_CAP_MAP, or of ranks that all share one host (hosts.h), else
 * NULL. hosts: which ranks share a host; NULL where that is not asked (one host, or nobody else).
 * control: barriers and exchanges go by this one (bootstrap.h); owned by the backend; NULL: by the
 * backend itself. correctness_only: what it takes means nothing.
 * id: the same on all its ranks, 0 the world. collectives, controls: how many this rank has
 * entered, the same on all.
 */
struct ddp_comm {
    const struct ddp_backend *backend;
    void *state;
    int rank, size;
    int *world_rank;
    struct ddp_place place;
    const struct ddp_device *device;
    int64_t timeout_ns;
    struct ddp_flight *flight;
    struct ddp_comm_shm *shm;
    struct ddp_hosts *hosts;
    struct ddp_comm *parent; /* NULL for the world */
    struct ddp_comm *control;
    bool correctness_only;
    int64_t init_ns;     /* that this rank took to open it */
    uint64_t wire_bytes; /* bytes this rank has sent by ddp_comm_isend so far */
    uint64_t wire_messages;
    uint64_t id, collectives, controls;
    void (*on_expire)(void *arg, const char *story); /* as in ddp_comm_options */
    void *on_expire_arg;
    size_t cache_share; /* bytes of last-level cache for a rank of the world (base/cache.h) */
    bool patient; /* long waits sleep: the thread waits for a network beside one that computes */
};

/* Notes in the recorder that this rank enters an operation of all ranks of the group; what: enum
 * ddp_coll, or control traffic (DDP_FLIGHT_EXCHANGE, DDP_FLIGHT_ALLOC). Returns the index for
 * ddp_flight_leave. */
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

/* Opens the world communicator. Collective: all ranks of `place`. The backend's own deadline covers
 * init. */
int ddp_comm_create(const struct ddp_backend *backend, const struct ddp_place *place,
                    const struct ddp_comm_options *options, struct ddp_comm **out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Collective when healthy; after a failure it only frees. NULL is fine. */
void ddp_comm_destroy(struct ddp_comm *comm);
/* A communicator over ranks[n] of `parent` (ascending, distinct, this rank among them). Collective
 * over those ranks only; each group alive at a time takes one of the backend's channels (at least
 * 64). DDP_EUSAGE when ranks are illegal. */
int ddp_comm_group(struct ddp_comm *parent, const int *ranks, int n, struct ddp_comm **out,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Releases all ranks of the world from their waits with DDP_ELOST; returns at once. code: why, an
 * enum ddp_code. */
void ddp_comm_abort(struct ddp_comm *comm, int code);

/* Untimed control traffic: every rank's `bytes` bytes at mine, into all[size * bytes] in rank
 * order. Collective. */
int ddp_comm_exchange(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* No rank leaves before all have entered. */
int ddp_comm_barrier(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* Do all ranks agree? rc of every rank is exchanged; returns the first non-zero one (by rank), on
 * all ranks alike; err says which rank when it was not this one. For errors found between
 * collectives. */
int ddp_comm_agree(struct ddp_comm *comm, int rc, struct ddp_err *err) DDP_MUST_CHECK;
/* The same call on a rank that is idle while others work on a group without it. The wait has no
 * deadline, because the work may take longer than any: the deadlines of the working ranks guard the
 * run, and an abort or a lost connection still ends the wait. The working ranks call
 * ddp_comm_agree. */
int ddp_comm_agree_untimed(struct ddp_comm *comm, int rc, struct ddp_err *err) DDP_MUST_CHECK;
/* The length of a wait that begins now: timeout_ns, or far more than any run takes. */
int64_t ddp_comm_wait_ns(const struct ddp_comm *comm);

/* Registered memory: zero-copy where the backend can. Collective: same bytes on all ranks of the
 * WORLD, same order; aligned to 4096 (2 MiB from 4 MiB up). Backends without registered memory give
 * private pages. Not zeroed. */
int ddp_comm_alloc(struct ddp_comm *comm, size_t bytes, void **out,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_comm_free(struct ddp_comm *comm, void *ptr);
/* Does ddp_comm_alloc give registered memory here? If not, `why` (at least 256 bytes, may be NULL)
 * says why. The same on all ranks. */
bool ddp_comm_has_registered(const struct ddp_comm *comm, char *why, size_t why_bytes);
/* Where rank `peer` (of this group) sees... its own copy of the registered block that holds ptr:
 * the address in THIS process. NULL when ptr is not registered or the backend cannot map. */
void *ddp_comm_map(struct ddp_comm *comm, int peer, const void *ptr);

/* Point to point. A request is the caller's memory; it must stay until waited for. Messages between
 * a pair with equal tag keep their order. bytes 0 is legal. A message must be exactly as long as
 * its receive, else DDP_EMISMATCH. impl and u[0..6] are the backend's; u[7] is comm_p2p.c's. */
struct ddp_request {
    void *impl[4];
    uint64_t u[8];
    bool active;
};
int ddp_comm_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_comm_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
/* *done says whether it is finished; drives progress. */
int ddp_comm_test(struct ddp_comm *comm, struct ddp_request *req, bool *done,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for all of req[n], up to the deadline. */
int ddp_comm_wait(struct ddp_comm *comm, struct ddp_request *req, int n,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
