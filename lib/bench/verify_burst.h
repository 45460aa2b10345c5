/* Provokes races in a burst: back-to-back operations with changing inputs and no barrier between
 * them.
 *
 * A rank that reads another rank's data too early, or overwrites data too early, gives a wrong
 * result only if the ranks are far enough apart in time. In a burst, ranks are therefore delayed in
 * two ways. Before two of every three operations, one pseudo-randomly chosen rank waits
 * (ddp_burst_wait). Inside an operation, a rank's kernels for copies, reductions and sparse lists
 * sometimes wait before they run. Such a wait is a *stall*. A stall can fall between the wait for a
 * flag and the access to another rank's data. The other ranks can then run ahead as far as the
 * algorithm lets them. A correct algorithm gives the right result with all delays. Nothing here
 * runs in a timed region. */
#ifndef DDP_BENCH_VERIFY_BURST_H
#define DDP_BENCH_VERIFY_BURST_H

#include "bench/verify_exchange.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The devices that ddp_burst_open has replaced. */
struct ddp_burst {
    struct ddp_comm *comm;  /* the communicator on which the operations run */
    struct ddp_comm *local; /* the shm communicator of the ranks of a host; NULL: none */
    /* The devices of comm and local before the burst. */
    const struct ddp_device *device, *local_device;
    struct ddp_device stalling; /* comm->device with stalls */
    struct ddp_grad_kernels grad;
};

/* Returns the number of operations of a burst whose message has `bytes` bytes. */
int ddp_burst_count(uint64_t bytes);
/* Begins a burst: gives `comm` a device that stalls. Only the calling thread may run operations on
 * comm until ddp_burst_close. Does nothing if there is only one rank, or if the ranks exchange data
 * of a device (DDP_CAP_DEVICE). comm and *b are borrowed until ddp_burst_close. */
void ddp_burst_open(struct ddp_burst *b, struct ddp_comm *comm);
void ddp_burst_close(struct ddp_burst *b);
/* Waits before operation number `index` of a burst if this is the rank that is delayed. */
void ddp_burst_wait(const struct ddp_comm *comm, int index);

/* A burst of compressed exchanges in host memory. */
struct ddp_exchange_burst {
    struct ddp_comm *all;  /* all ranks */
    struct ddp_comm *comm; /* the ranks that exchange */
    struct ddp_compressed *x;
    struct ddp_verify_exchange *verify; /* knows the residual and the number of exchanges */
    float *data;                        /* [n]: the data of x */
    size_t n;
    uint64_t step; /* the exchanges have the inputs of this step and of the following steps */
};
/* Returns the number of exchanges of a burst of n elements. All results must be stored, because a
 * check between two exchanges would synchronise the ranks. The number is therefore 0 if n is so
 * large that the results need too much memory. */
int ddp_exchange_burst_count(size_t n);
/* Runs and verifies the burst. Returns DDP_EDATA on all ranks if a result is wrong. Collective over
 * `all`. */
int ddp_exchange_burst(const struct ddp_exchange_burst *b, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
