/* The backend seam: how ranks reach each other. One file and one line in backend_list.h add one.
 *
 * Callers use comm.h; this is for those who write a backend. All functions but probe take a
 * communicator whose generic members are set. A function that cannot exist is NULL and its
 * capability bit is off; ddp_backend_check() proves that bits and pointers agree when the program
 * starts. */
#ifndef DDP_COMM_BACKEND_H
#define DDP_COMM_BACKEND_H

#include "base/coll_kind.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_backend_cap {
    DDP_CAP_P2P = 1 << 0, /* isend, irecv, test */
    DDP_CAP_MAP = 1 << 1, /* peers' registered memory and shared flags can be touched directly:
                             comm->shm is set */
    DDP_CAP_REGISTERED = 1 << 2,   /* alloc gives memory the backend treats better than malloc's */
    DDP_CAP_NATIVE = 1 << 3,       /* has collectives of its own */
    DDP_CAP_LAUNCHED = 1 << 4,     /* needs an outside launcher (mpiexec) */
    DDP_CAP_SELF = 1 << 5,         /* one rank only */
    DDP_CAP_DEVICE = 1 << 7,       /* what it moves lies in the memory of comm->device, a GPU */
    DDP_CAP_ANY_LAUNCHER = 1 << 8, /* our own launcher or an outside one */
    DDP_CAP_AVG_FIRST = 1 << 9,    /* native averages multiply by 1/P, in the type, and then sum */
    DDP_CAP_HOSTS = 1 << 6 /* init finds out which ranks share a host (hosts.h), so there may be
                              registered memory, and comm->shm where all ranks share one */
};

/* One collective call, for native() and for the algorithms alike. send: [count_in]; recv:
 * [count_out]; in place: see coll.h. */
struct ddp_coll_args {
    enum ddp_coll coll;
    const void *send;
    void *recv;
    size_t count; /* elements; per collective as coll.h says */
    enum ddp_dtype dtype;
    enum ddp_op op;
    int root;
};

struct ddp_backend {
    const char *name, *summary;
    unsigned caps;
    /* Version of the library behind it ("Open MPI 4.1.4"), NULL when there is none or it is not
     * loaded. */
    const char *(*library)(void);
    /* Opens that library; DDP_EUNAVAIL says why it cannot be. NULL: there is none to open alone. */
    int (*load)(struct ddp_err *err);
    /* The same of its devices ("CUDA 13.0, ..."); may be NULL. */
    const char *(*device_library)(void);
    /* Ranks of this host that can each have a device of their own; NULL: any number. */
    int (*places)(void);
    /* Usable here, without starting anything heavy? module_dir as in ddp_comm_options. */
    int (*probe)(const char *module_dir, struct ddp_err *err);
    int (*init)(struct ddp_comm *comm, const struct ddp_comm_options *options, struct ddp_err *err);
    void (*finalize)(struct ddp_comm *comm); /* also for groups; comm->parent tells */
    void (*abort)(struct ddp_comm *comm, int code);
    int (*group)(struct ddp_comm *parent, struct ddp_comm *child,
                 struct ddp_err *err); /* child: rank, size, world_rank set */
    int (*barrier)(struct ddp_comm *comm, struct ddp_err *err);
    int (*exchange)(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                    struct ddp_err *err);
    /* Is everybody still there? Never blocks; DDP_ELOST with who was lost. For backends that have
     * no abort word, beside waits for something else. NULL: none. */
    int (*look)(struct ddp_comm *comm, struct ddp_err *err);
    int (*alloc)(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err);
    void (*free)(struct ddp_comm *comm, void *ptr);
    void *(*map)(struct ddp_comm *comm, int peer, const void *ptr);
    int (*isend)(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                 struct ddp_request *req, struct ddp_err *err);
    int (*irecv)(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                 struct ddp_request *req, struct ddp_err *err);
    int (*test)(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err);
    /* Whether native() can do this collective, dtype and op; the reason in err when not. */
    int (*native_supports)(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                           struct ddp_err *err);
    int (*native)(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err);
    /* ns that the last native() took by the device's own clock, -1: not known. May be NULL. */
    double (*device_ns)(struct ddp_comm *comm);
};

/* All backends of backend_list.h in order, NULL-terminated. */
const struct ddp_backend *const *ddp_backend_all(void);
const struct ddp_backend *ddp_backend_find(const char *name); /* NULL when unknown */
/* DDP_EINTERNAL when a table's bits and pointers disagree. */
int ddp_backend_check(struct ddp_err *err) DDP_MUST_CHECK;

/* A backend module (ddpbench-mpi-openmpi.so) exports `const struct ddp_backend_module
 * ddp_backend_module`. */
#define DDP_MODULE_ABI 1
struct ddp_backend_module {
    int abi;
    const char *flavour; /* "openmpi", "mpich" */
    const char *commit;  /* of the build; must equal the binary's */
    const struct ddp_backend *backend;
};

#ifdef __cplusplus
}
#endif
#endif
