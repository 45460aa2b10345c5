/* The backend interface: the functions through which the ranks of a communicator reach each other.
 * A new backend is one file and one line in backend_list.h.
 *
 * Callers use comm.h; this header is for backends. comm.c sets the generic members of a
 * communicator before it passes the communicator to a backend. The functions of the capabilities
 * P2P, MAP, REGISTERED and NATIVE are NULL if the bit of the capability is not set.
 * ddp_backend_check() checks the bits and the functions before a command starts ranks. */
#ifndef DDP_COMM_BACKEND_H
#define DDP_COMM_BACKEND_H

#include "base/coll_kind.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_backend_cap {
    DDP_CAP_P2P = 1 << 0, /* has isend, irecv and test */
    /* Ranks can access peers' registered memory and shared flags directly; comm->shm is set. */
    DDP_CAP_MAP = 1 << 1,
    /* has alloc and free */
    DDP_CAP_REGISTERED = 1 << 2,
    DDP_CAP_NATIVE = 1 << 3,       /* has collectives of its own */
    DDP_CAP_LAUNCHED = 1 << 4,     /* needs an outside launcher (mpiexec, srun) */
    DDP_CAP_SELF = 1 << 5,         /* one rank only */
    DDP_CAP_DEVICE = 1 << 7,       /* buffers lie in the memory of comm->device, a GPU */
    DDP_CAP_ANY_LAUNCHER = 1 << 8, /* works with our own launcher and with an outside one */
    /* To average, native() multiplies the inputs by 1/size in the data type, and then sums them. */
    DDP_CAP_AVG_FIRST = 1 << 9,
    /* init finds out which ranks share a host (hosts.h). If the ranks of each host share memory,
     * comm->hosts->local provides registered memory. If all ranks share the memory of one host,
     * init also sets comm->shm. */
    DDP_CAP_HOSTS = 1 << 6
};

/* The arguments of one collective call, for native() and for the algorithms. coll/coll.h defines
 * the sizes of the arrays, the meaning of `count`, and calls in place. */
struct ddp_coll_args {
    enum ddp_coll coll;
    const void *send; /* input; coll.h defines its size */
    void *recv;       /* output; coll.h defines its size */
    size_t count;     /* number of elements; see coll.h for each collective */
    enum ddp_dtype dtype;
    enum ddp_op op;
    int root;
    /* The table of a collective in which the ranks send different numbers of elements, for n ranks.
     * All-to-all-v, [n][n]: row r has the number of elements that rank r sends to each rank.
     * All-gather-v, [n]: entry r has the number of elements that rank r sends to every rank.
     * Reduce-scatter-v, [n]: entry r has the number of elements that every rank sends to rank r.
     * NULL: every rank sends `count` elements to every rank. */
    const size_t *split;
    /* A hash of the whole table, which is the same on all ranks. ddp_coll_plan_init sets it. 0:
     * there is no table. */
    uint64_t split_hash;
};

/* Returns the number of elements that rank `from` sends to rank `to`. `ranks` is the size of the
 * group. */
static inline size_t ddp_split_part(const struct ddp_coll_args *args, int ranks, int from, int to)
{
    if (args->split == NULL)
        return args->count;
    if (ddp_coll_split_is_row(args->coll))
        return args->split[args->coll == DDP_ALL_GATHER_V ? from : to];
    return args->split[(size_t)from * (size_t)ranks + (size_t)to];
}

/* Largest `count` of native_many if device_ns is not NULL. The device then starts only when all
 * calls are in its queue, and the queue has room for a limited number of calls. */
#define DDP_NATIVE_HELD_MOST 16

struct ddp_backend {
    const char *name, *summary;
    unsigned caps;
    /* Returns the name and version of the backend's library ("Open MPI 4.1.4"), or NULL if unknown.
     * This member may be NULL. */
    const char *(*library)(void);
    /* Opens the library, or fails with DDP_EUNAVAIL and the reason. This member is NULL if the
     * backend has no library, or if only init can open the library. */
    int (*load)(struct ddp_err *err);
    /* Returns the version of the device's software ("CUDA 13.0, ..."). This member may be NULL. */
    const char *(*device_library)(void);
    /* Writes the transports and network devices of this rank's connections, such as "tcp/eth0,
     * posix/memory". This member may be NULL. */
    void (*transports)(struct ddp_comm *comm, char *out, size_t out_bytes);
    /* Returns the number of devices of this host that ranks can use. This member is NULL if the
     * backend needs no devices. */
    int (*places)(void);
    /* Returns the memory of the first of these devices in bytes, or -1 if unknown. This member may
     * be NULL. */
    int64_t (*place_bytes)(void);
    /* Fails with the reason if this process cannot use the backend. Does not initialise a library
     * in this process. `module_dir` is the member of struct ddp_comm_options. */
    int (*probe)(const char *module_dir, struct ddp_err *err);
    int (*init)(struct ddp_comm *comm, const struct ddp_comm_options *options, struct ddp_err *err);
    /* Closes a world or a group; only a group has comm->parent set */
    void (*finalize)(struct ddp_comm *comm);
    void (*abort)(struct ddp_comm *comm, int code);
    /* Opens a group. The caller has set rank, size and world_rank of `child`. */
    int (*group)(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err);
    /* A barrier by the backend itself. ddp_comm_barrier may use the barrier of comm->control or of
     * comm->hosts->local instead. If comm->control is set and has no shared memory, a benchmark
     * also calls this member, because this barrier may release the ranks closer together. */
    int (*barrier)(struct ddp_comm *comm, struct ddp_err *err);
    /* Implements ddp_comm_allgather_bytes. */
    int (*exchange)(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                    struct ddp_err *err);
    /* Fails with DDP_ELOST and the reason if a rank is lost or the run was aborted. May also make
     * progress with earlier messages. Does not wait. A rank calls this function while it waits for
     * something else, such as its GPU. This member may be NULL. */
    int (*look)(struct ddp_comm *comm, struct ddp_err *err);
    int (*alloc)(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err);
    void (*free)(struct ddp_comm *comm, void *ptr);
    void *(*map)(struct ddp_comm *comm, int peer, const void *ptr);
    int (*isend)(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                 struct ddp_request *req, struct ddp_err *err);
    int (*irecv)(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                 struct ddp_request *req, struct ddp_err *err);
    int (*test)(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err);
    /* Fails with the reason if native() cannot run this collective with this dtype and op. */
    int (*native_supports)(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                           struct ddp_err *err);
    int (*native)(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err);
    /* Implements ddp_comm_exchange. If this member is NULL, ddp_comm_exchange uses isend and
     * irecv. */
    int (*messages)(struct ddp_comm *comm, const struct ddp_comm_message *message, int n,
                    struct ddp_err *err);
    /* Runs the same collective `count` times, and waits only once, for the last run. If device_ns
     * is not NULL, `count` is at most DDP_NATIVE_HELD_MOST, and the device begins only when all
     * ranks have put their calls on their devices. *device_ns then becomes the time in ns of one
     * call by the device's own clock, or -1 if unknown. This member may be NULL. */
    int (*native_many)(struct ddp_comm *comm, const struct ddp_coll_args *args, int64_t count,
                       double *device_ns, struct ddp_err *err);
    /* Implement ddp_comm_stream and ddp_comm_wait_stream. Either both members are set or both are
     * NULL. */
    struct ddp_stream *(*stream)(struct ddp_comm *comm);
    int (*wait_stream)(struct ddp_comm *comm, struct ddp_err *err);
};

/* All backends of backend_list.h in order, NULL-terminated. */
const struct ddp_backend *const *ddp_backend_all(void);
const struct ddp_backend *ddp_backend_find(const char *name); /* NULL if unknown */
/* Returns DDP_EINTERNAL if a backend lacks a required member, if the bits P2P, MAP, REGISTERED or
 * NATIVE and the pointers of their functions disagree, or if only one of `stream` and `wait_stream`
 * is set. */
int ddp_backend_check(struct ddp_err *err) DDP_MUST_CHECK;

/* Writes the folder of the backend modules to out [out_bytes]: `given`, or the binary's folder if
 * `given` is NULL. Returns DDP_EUNAVAIL if the folder cannot be found. */
int ddp_backend_module_dir(const char *given, char *out, size_t out_bytes) DDP_MUST_CHECK;

/* A module of backend mpi (ddpbench-mpi-openmpi.so) exports `const struct ddp_backend_module
 * ddp_backend_module`. */
#define DDP_MODULE_ABI 1
struct ddp_backend_module {
    int abi;
    const char *flavour; /* "openmpi", "mpich" */
    const char *commit;  /* commit of the module's build; must equal the binary's commit */
    const struct ddp_backend *backend;
};

#ifdef __cplusplus
}
#endif
#endif
