/* The interface between backend ucx (backend_ucx.c), which is linked into the binary, and its
 * module ddpbench-ucx.so (ucx_module.c), which calls UCX. The module knows ranks only by their
 * numbers in the world. Only `close` waits for other ranks, for at most one second. Only one thread
 * at a time may call the functions for one struct ddp_ucx. */
#ifndef DDP_COMM_UCX_UCX_IMPL_H
#define DDP_COMM_UCX_UCX_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DDP_UCX_MODULE_ABI 1

struct ddp_ucx; /* a UCX context with one worker, and an endpoint per rank */

struct ddp_ucx_module {
    int abi;
    const char *commit;           /* commit of the module's build; must equal the binary's commit */
    const char *(*library)(void); /* "UCX 1.13.1" */
    int (*open)(int ranks, struct ddp_ucx **out, struct ddp_err *err);
    /* If `orderly` is true, ends all connections and frees `ucx`. No rank may still use a
     * connection of this worker. If `orderly` is false, does nothing, because UCX may still use the
     * worker and its messages. */
    void (*close)(struct ddp_ucx *ucx, bool orderly);
    /* Sets *out to the address at which other ranks reach this worker, and *bytes to its size. The
     * address is valid until close. */
    int (*address)(struct ddp_ucx *ucx, const void **out, size_t *bytes, struct ddp_err *err);
    /* Connects this worker to the worker of `rank`. If `same_host` is true, UCX may use shared
     * memory, but does not report that the rank is lost. */
    int (*connect)(struct ddp_ucx *ucx, int rank, const void *address, bool same_host,
                   struct ddp_err *err);
    /* Start a message. *request becomes the handle for `test`, or NULL if the message is a send
     * that is done already. */
    int (*isend)(struct ddp_ucx *ucx, int rank, uint64_t tag, const void *buf, size_t bytes,
                 void **request, struct ddp_err *err);
    int (*irecv)(struct ddp_ucx *ucx, uint64_t tag, void *buf, size_t bytes, void **request,
                 struct ddp_err *err);
    /* Makes *request NULL if the message is done or has failed. When a received message is done,
     * *got is its number of bytes. */
    int (*test)(struct ddp_ucx *ucx, void **request, bool receives, size_t *got,
                struct ddp_err *err);
    void (*progress)(struct ddp_ucx *ucx);
    /* Returns the first rank whose connection failed, or -1. *why becomes UCX's reason. */
    int (*lost)(const struct ddp_ucx *ucx, const char **why);
    /* Starts a flush, which is done when UCX has sent all bytes of earlier messages. `test` with
     * receives == false tests the request. */
    int (*flush)(struct ddp_ucx *ucx, void **request, struct ddp_err *err);
    /* Registers memory with the network devices. */
    int (*map)(struct ddp_ucx *ucx, void *ptr, size_t bytes, void **handle, struct ddp_err *err);
    void (*unmap)(struct ddp_ucx *ucx, void *handle);
    /* Writes the transports and devices of all connections, such as "tcp/eth0, posix/memory". */
    void (*transports)(const struct ddp_ucx *ucx, char *out, size_t out_bytes);
};

/* In backend_ucx_load.c. Loads the module, unless this process has loaded it before. `given_dir` is
 * module_dir of ddp_comm_options. */
int ddp_ucx_load(const char *given_dir, struct ddp_err *err) DDP_MUST_CHECK;
const struct ddp_ucx_module *ddp_ucx_loaded(void); /* NULL before ddp_ucx_load */
/* Implement the members `probe` and `library` of struct ddp_backend. */
int ddp_ucx_probe(const char *module_dir, struct ddp_err *err);
const char *ddp_ucx_library(void);

#endif
