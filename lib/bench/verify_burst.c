#include "bench/verify_burst.h"

#include <sched.h>

#include "base/clock.h"
#include "base/rng.h"
#include "comm/backend.h"
#include "comm/hosts.h"

/* A delay. It is longer than a short operation and the work between two operations. */
#define DELAY_NS 40000
/* After a stall, the thread does not stall for this long, so that long operations with many copies
 * do not become much slower. */
#define PAUSE_NS (2 * DELAY_NS)

/* Messages of at most SMALL_BYTES get a burst of SMALL_COUNT operations, others of LARGE_COUNT. */
#define SMALL_BYTES ((uint64_t)1 << 20)
#define SMALL_COUNT 12
#define LARGE_COUNT 4

/* The stalls of the burst that this thread runs. The kernels of a device have no argument that could
 * hold them. */
static _Thread_local struct {
    const struct ddp_device *device; /* does the work after the stall */
    uint64_t calls;
    int64_t ready_ns; /* no stall before this time */
} stalls;

static void delay(void)
{
    const int64_t until = ddp_now_ns() + DELAY_NS;
    while (ddp_now_ns() < until)
        sched_yield();
}

/* Stalls in about every second call, but not within PAUSE_NS of the last stall. */
static void stall(void)
{
    if (ddp_mix64(stalls.calls++) % 2 != 0 || ddp_now_ns() < stalls.ready_ns)
        return;
    delay();
    stalls.ready_ns = ddp_now_ns() + PAUSE_NS;
}

static void stalling_copy(void *dst, const void *src, size_t bytes)
{
    stall();
    stalls.device->copy(dst, src, bytes);
}

static void stalling_copy_nt(void *dst, const void *src, size_t bytes)
{
    stall();
    stalls.device->copy_nt(dst, src, bytes);
}

static void stalling_reduce(const struct ddp_reduce *r)
{
    stall();
    stalls.device->reduce(r);
}

static void stalling_scatter_add(float *dst, const struct ddp_sparse *s)
{
    stall();
    stalls.device->grad->scatter_add(dst, s);
}

static void stalling_merge(struct ddp_sparse *out, const struct ddp_sparse *a,
                           const struct ddp_sparse *b)
{
    stall();
    stalls.device->grad->merge(out, a, b);
}

int ddp_burst_count(uint64_t bytes)
{
    return bytes <= SMALL_BYTES ? SMALL_COUNT : LARGE_COUNT;
}

void ddp_burst_open(struct ddp_burst *b, struct ddp_comm *comm)
{
    *b = (struct ddp_burst){.comm = comm, .device = comm->device};
    if (comm->size == 1 || comm->backend->caps & DDP_CAP_DEVICE)
        return;
    /* Ranks stall in different calls. */
    stalls.calls = (uint64_t)comm->rank << 32;
    stalls.ready_ns = 0;
    stalls.device = comm->device;
    b->stalling = *comm->device;
    b->stalling.copy = stalling_copy;
    b->stalling.copy_nt = stalling_copy_nt;
    b->stalling.reduce = stalling_reduce;
    if (comm->device->grad != NULL) {
        b->grad = *comm->device->grad;
        b->grad.scatter_add = stalling_scatter_add;
        b->grad.merge = stalling_merge;
        b->stalling.grad = &b->grad;
    }
    comm->device = &b->stalling;
    b->local = comm->hosts != NULL ? comm->hosts->local : NULL;
    if (b->local != NULL) {
        b->local_device = b->local->device;
        b->local->device = &b->stalling;
    }
}

void ddp_burst_close(struct ddp_burst *b)
{
    b->comm->device = b->device;
    if (b->local != NULL)
        b->local->device = b->local_device;
}

void ddp_burst_wait(const struct ddp_comm *comm, int index)
{
    /* In every third operation no rank is late. */
    if (comm->size > 1 && index % 3 != 2 &&
        ddp_mix64((uint64_t)index) % (uint64_t)comm->size == (uint64_t)comm->rank)
        delay();
}
