#include "bench/verify_burst.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/backend.h"
#include "comm/hosts.h"

/* Length of a delay. It is longer than a short operation, so that the other ranks can be a whole
 * operation ahead of the delayed rank. */
#define DELAY_NS 40000
/* After a stall, the thread does not stall again within this time, so that long operations with
 * many copies do not become much slower. */
#define PAUSE_NS (2 * DELAY_NS)

/* Messages of at most SMALL_BYTES get a burst of SMALL_COUNT operations. Larger messages get
 * LARGE_COUNT. */
#define SMALL_BYTES ((uint64_t)1 << 20)
#define SMALL_COUNT 12
#define LARGE_COUNT 4

/* A burst of compressed exchanges has up to EXCHANGES_MAX exchanges, whose results and residuals
 * fit into HISTORY_BYTES. */
#define EXCHANGES_MAX 8
#define HISTORY_BYTES ((size_t)4 << 20)

/* The state of the stalls in the burst that this thread runs. The kernels of a device have no
 * argument that could hold this state. */
static _Thread_local struct {
    const struct ddp_device *device; /* does the work after the stall */
    uint64_t calls;
    int64_t ready_ns; /* no stall before this time */
    bool yields;
} stalls;

/* yields: other ranks need this core to run ahead. Without this need the thread does not yield,
 * because another program could then hold the core for milliseconds. */
static void delay(bool yields)
{
    const int64_t until = ddp_now_ns() + DELAY_NS;
    while (ddp_now_ns() < until)
        if (yields)
            sched_yield();
}

/* Stalls in about every second call, but not within PAUSE_NS of the last stall. */
static void stall(void)
{
    if (ddp_mix64(stalls.calls++) % 2 != 0 || ddp_now_ns() < stalls.ready_ns)
        return;
    delay(stalls.yields);
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
    /* Start from another number on each rank, so that the ranks stall in different calls. */
    stalls.calls = (uint64_t)comm->rank << 32;
    stalls.ready_ns = 0;
    stalls.yields = comm->rank_info.oversubscribed;
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
        delay(comm->rank_info.oversubscribed);
}

int ddp_exchange_burst_count(size_t n)
{
    const size_t fit = HISTORY_BYTES / (2 * sizeof(float) * DDP_MAX(n, (size_t)1));
    return fit < 2 ? 0 : (int)DDP_MIN(fit, (size_t)EXCHANGES_MAX);
}

/* result, residual [count][n], rounds [count][rounds_count] (ddp_compressed_rounds): contents after
 * each exchange. sent [count]: number of values that this rank sent. */
struct history {
    int count;
    float *result, *residual, *rounds;
    size_t rounds_count;
    double sent[EXCHANGES_MAX];
};

/* Runs the exchanges back to back, and stores their results. */
static int run_exchanges(const struct ddp_exchange_burst *b, struct history *h, struct ddp_err *err)
{
    const float *residual = ddp_compressed_residual(b->x);
    size_t count;
    const float *rounds = ddp_compressed_rounds(b->x, &count);
    struct ddp_compressed_counters before, after;
    for (int i = 0; i < h->count; i++) {
        const size_t at = (size_t)i * b->n;
        ddp_burst_wait(b->comm, i);
        DDP_TRY(ddp_verify_exchange_draw(b->verify, b->step + (uint64_t)i, b->data, err));
        ddp_compressed_counters(b->x, &before);
        DDP_TRY(ddp_compressed_run(b->x, err));
        ddp_compressed_counters(b->x, &after);
        h->sent[i] = after.values_sent - before.values_sent;
        memcpy(h->result + at, b->data, b->n * sizeof(float));
        if (residual != NULL)
            memcpy(h->residual + at, residual, b->n * sizeof(float));
        if (rounds != NULL)
            memcpy(h->rounds + (size_t)i * count, rounds, count * sizeof(float));
    }
    return 0;
}

/* Checks the stored results in order. Draws the inputs again. */
static int check_exchanges(const struct ddp_exchange_burst *b, const struct history *h,
                           struct ddp_err *err)
{
    const bool has_residual = ddp_compressed_residual(b->x) != NULL;
    for (int i = 0; i < h->count; i++) {
        const size_t at = (size_t)i * b->n;
        int rc = ddp_verify_exchange_input(b->verify, b->step + (uint64_t)i, b->data, err);
        DDP_TRY(ddp_comm_agree(b->all, rc, err));
        rc = ddp_verify_exchange_check(b->verify, h->result + at,
                                       has_residual ? h->residual + at : NULL,
                                       h->rounds + (size_t)i * h->rounds_count, h->sent[i], err);
        DDP_TRY(ddp_comm_agree(b->all, rc, err));
    }
    return 0;
}

int ddp_exchange_burst(const struct ddp_exchange_burst *b, struct ddp_err *err)
{
    struct history h = {.count = ddp_exchange_burst_count(b->n)};
    struct ddp_burst burst;
    const size_t floats = (size_t)h.count * b->n;
    ddp_compressed_rounds(b->x, &h.rounds_count);
    int rc = DDP_NEW(&h.result, floats, err);
    if (rc == 0)
        rc = DDP_NEW(&h.residual, floats, err);
    if (rc == 0)
        rc = DDP_NEW(&h.rounds, (size_t)h.count * h.rounds_count, err);
    DDP_TRY_GOTO(ddp_comm_agree(b->all, rc, err), out);
    ddp_burst_open(&burst, b->comm);
    rc = run_exchanges(b, &h, err);
    ddp_burst_close(&burst);
    DDP_TRY_GOTO(ddp_comm_agree(b->all, rc, err), out);
    rc = check_exchanges(b, &h, err);
out:
    free(h.result);
    free(h.rounds);
    free(h.residual);
    return rc;
}
