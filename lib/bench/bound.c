#include "bench/bound.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define TAG 29997
/* Largest size that is measured. It exceeds most caches, so larger sizes are assumed to have the
 * same speed. */
#define MOST_BYTES ((size_t)128 << 20)
/* A round repeats small work, at most 16 times, until it has moved about this many bytes. Otherwise
 * the clock's resolution would matter. */
#define ROUND_BYTES ((size_t)512 << 10)
/* Number of rounds. The fastest round counts. Buffers above FEW_BYTES get fewer rounds, because
 * each round takes long. */
#define ROUNDS_MAX 6
#define ROUNDS_FEW 3
#define FEW_BYTES  ((size_t)16 << 20)

/* Speeds for buffers or messages of `bytes` bytes while all ranks are active. NaN: not measured
 * yet. */
struct speed {
    size_t bytes;
    double copy_GBps, add_GBps; /* GB/s read and written by all ranks together */
    double message_ns;          /* time of one message */
};

struct ddp_bound {
    struct ddp_bound_setup setup;
    struct speed *speeds;
    int count;
    int64_t *all; /* [size][ROUNDS_MAX]: scratch */
};

/* An operation to time, on `bytes` bytes. */
struct work {
    struct ddp_bound *bound;
    size_t bytes;
    int (*run)(const struct work *w, struct ddp_err *err);
};

int ddp_bound_create(const struct ddp_bound_setup *setup, struct ddp_bound **out,
                     struct ddp_err *err)
{
    struct ddp_bound *b;
    DDP_TRY(DDP_NEW(&b, 1, err));
    const int rc = DDP_NEW(&b->all, (size_t)setup->comm->size * ROUNDS_MAX, err);
    if (rc != 0) {
        free(b);
        return rc;
    }
    b->setup = *setup;
    *out = b;
    return 0;
}

void ddp_bound_destroy(struct ddp_bound *b)
{
    if (!b)
        return;
    free(b->speeds);
    free(b->all);
    free(b);
}

/* Copies: b = a. */
static int copy(const struct work *w, struct ddp_err *err)
{
    const struct ddp_bound_setup *s = &w->bound->setup;
    (void)err;
    s->comm->device->copy(s->b, s->a, w->bytes);
    return 0;
}

static int copy_nt(const struct work *w, struct ddp_err *err)
{
    const struct ddp_bound_setup *s = &w->bound->setup;
    (void)err;
    s->comm->device->copy_nt(s->b, s->a, w->bytes);
    return 0;
}

/* Adds: a += b. Non-temporal stores would not be faster, because the lines of a are read anyway. */
static int add(const struct work *w, struct ddp_err *err)
{
    const struct ddp_bound_setup *s = &w->bound->setup;
    void *const dst[] = {s->a};
    const void *const src[] = {s->a, s->b};
    const struct ddp_reduce r = {.dst = dst,
                                 .dst_count = 1,
                                 .src = src,
                                 .src_count = 2,
                                 .count = w->bytes / sizeof(float),
                                 .dtype = DDP_F32,
                                 .op = DDP_SUM,
                                 .divisor = 1};
    (void)err;
    s->comm->device->reduce(&r);
    return 0;
}

/* Sends a to the next rank and receives the previous rank's a in b. */
static int shift(const struct work *w, struct ddp_err *err)
{
    const struct ddp_bound_setup *s = &w->bound->setup;
    struct ddp_comm *group = s->group;
    const int n = group->size, next = (group->rank + 1) % n, previous = (group->rank + n - 1) % n;
    struct ddp_request request[2];
    DDP_TRY(ddp_comm_irecv(group, previous, TAG, s->b, w->bytes, &request[0], err));
    DDP_TRY(ddp_comm_isend(group, next, TAG, s->a, w->bytes, &request[1], err));
    return ddp_comm_wait(group, request, 2, err);
}

/* Sets *ns to the time of one run. A round takes as long as its slowest rank. */
static int time_of(const struct work *w, double *ns, struct ddp_err *err)
{
    struct ddp_comm *comm = w->bound->setup.comm;
    const int rounds = w->bytes <= FEW_BYTES ? ROUNDS_MAX : ROUNDS_FEW;
    const int repeat = (int)DDP_MAX(ROUND_BYTES / DDP_MAX(w->bytes, ROUND_BYTES / 16), 1);
    int64_t mine[ROUNDS_MAX];
    *ns = INFINITY;
    for (int i = 0; i < rounds; i++) {
        DDP_TRY(ddp_comm_barrier(comm, err));
        const int64_t begin = ddp_now_ns();
        for (int k = 0; k < repeat; k++)
            DDP_TRY(w->run(w, err));
        mine[i] = ddp_now_ns() - begin;
    }
    int64_t *all = w->bound->all;
    DDP_TRY(ddp_comm_allgather_bytes(comm, mine, all, (size_t)rounds * sizeof *mine, err));
    for (int i = 0; i < rounds; i++) {
        int64_t slowest = 1;
        for (int r = 0; r < comm->size; r++)
            slowest = DDP_MAX(slowest, all[r * rounds + i]);
        *ns = fmin(*ns, (double)slowest / repeat);
    }
    return 0;
}

/* Returns the entry for `bytes`, and creates it if necessary. Returns NULL if there is no
 * memory. */
static struct speed *speed_of(struct ddp_bound *b, size_t bytes, struct ddp_err *err)
{
    for (int i = 0; i < b->count; i++)
        if (b->speeds[i].bytes == bytes)
            return &b->speeds[i];
    if (DDP_RESIZE(&b->speeds, (size_t)b->count + 1, err) != 0)
        return NULL;
    b->speeds[b->count] = (struct speed){bytes, NAN, NAN, NAN};
    return &b->speeds[b->count++];
}

/* Measures `run`. Raises *GBps to the measured speed if that is higher. moved: bytes read and
 * written per byte of the buffer. */
static int measure_memory(struct ddp_bound *b, size_t bytes,
                          int (*run)(const struct work *, struct ddp_err *), double moved,
                          double *GBps, struct ddp_err *err)
{
    const struct work w = {b, bytes, run};
    double ns;
    DDP_TRY(time_of(&w, &ns, err));
    *GBps = fmax(*GBps, moved * (double)bytes * b->setup.comm->size / ns); /* from NaN, too */
    return 0;
}

/* Sets *GBps to the speed of all ranks together for the memory traffic of a collective. */
static int memory_speed(struct ddp_bound *b, enum ddp_coll coll, size_t bytes, double *GBps,
                        struct ddp_err *err)
{
    bytes = DDP_MIN(bytes, MOST_BYTES);
    struct speed *speed = speed_of(b, bytes, err);
    DDP_TRY(ddp_comm_agree(b->setup.comm, speed ? 0 : DDP_ENOMEM, err));
    /* Verification may have left NaN or denormal numbers in the buffers. Adding those is slower. */
    memset(b->setup.a, 0, bytes);
    memset(b->setup.b, 0, bytes);
    if (isnan(speed->copy_GBps)) {
        DDP_TRY(measure_memory(b, bytes, copy, 2, &speed->copy_GBps, err));
        DDP_TRY(measure_memory(b, bytes, copy_nt, 2, &speed->copy_GBps, err));
    }
    if (ddp_coll_reduces(coll) && isnan(speed->add_GBps))
        DDP_TRY(measure_memory(b, bytes, add, 3, &speed->add_GBps, err));
    *GBps = ddp_coll_reduces(coll) ? fmax(speed->copy_GBps, speed->add_GBps) : speed->copy_GBps;
    return 0;
}

/* Sets *ns to the time of one message of `bytes` bytes while every rank sends one. */
static int message_time(struct ddp_bound *b, size_t bytes, double *ns, struct ddp_err *err)
{
    const size_t some = DDP_MIN(bytes, MOST_BYTES);
    struct speed *speed = speed_of(b, some, err);
    DDP_TRY(ddp_comm_agree(b->setup.comm, speed ? 0 : DDP_ENOMEM, err));
    if (isnan(speed->message_ns)) {
        const struct work w = {b, some, shift};
        DDP_TRY(time_of(&w, &speed->message_ns, err));
    }
    *ns = speed->message_ns * (some > 0 ? (double)bytes / (double)some : 1);
    return 0;
}

static double steps_of(const struct ddp_coll_cost *cost, const struct ddp_point_spec *spec)
{
    if (cost->modelled)
        return cost->steps;
    return spec->coll == DDP_SEND_RECV ? 1 : ceil(log2(spec->ranks));
}

/* Fills the bound of an algorithm that sends messages. */
static int by_messages(struct ddp_bound *b, const struct ddp_coll_cost *cost, struct ddp_point *p,
                       struct ddp_err *err)
{
    const struct ddp_point_spec *s = &p->spec;
    double ns;
    DDP_TRY(message_time(b, s->size_bytes, &ns, err));
    snprintf(p->bound_kind, sizeof p->bound_kind, "point-to-point");
    if (s->size_bytes < DDP_BOUND_BYTES) {
        p->bound_ns = steps_of(cost, s) * ns;
        return 0;
    }
    const double sent = cost->modelled
                            ? cost->sent_bytes
                            : (double)s->size_bytes * ddp_coll_busbw_factor(s->coll, s->ranks);
    p->bound_GBps = (double)s->size_bytes / ns;
    p->bound_ns = sent / p->bound_GBps;
    return 0;
}

/* Fills the bound of an operation in shared memory. */
static int by_memory(struct ddp_bound *b, const struct ddp_coll_cost *cost, struct ddp_point *p,
                     struct ddp_err *err)
{
    const struct ddp_point_spec *s = &p->spec;
    if (s->size_bytes < DDP_BOUND_BYTES) {
        snprintf(p->bound_kind, sizeof p->bound_kind, "latency");
        p->bound_ns = steps_of(cost, s) * fmin(p->pingpong_ns[0], p->pingpong_ns[1]) / 2;
        return 0;
    }
    snprintf(p->bound_kind, sizeof p->bound_kind, "memory");
    const size_t bytes = s->placement == DDP_IN_PLACE
                             ? s->size_bytes / 2 / DDP_CACHE_LINE * DDP_CACHE_LINE
                             : s->size_bytes;
    DDP_TRY(memory_speed(b, s->coll, bytes, &p->bound_GBps, err));
    p->bound_ns = cost->memory_bytes * DDP_MAX(s->groups, 1) / p->bound_GBps;
    return 0;
}

int ddp_bound_fill(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                   const struct ddp_coll_shape *shape, struct ddp_point *p, struct ddp_err *err)
{
    struct ddp_coll_cost cost = {0};
    const struct ddp_point_spec *s = &p->spec;
    const struct ddp_comm *group = b->setup.group;
    const bool idle = ddp_coll_is_idle(s->coll, s->count); /* the collective has nothing to do */
    if (s->ranks < 2 || s->size_bytes > b->setup.bytes || idle)
        return 0;
    ddp_coll_cost_of(alg, s->ranks, shape, &cost);
    const bool messages = !cost.modelled || cost.messages > 0;
    const bool sends = group->backend->caps & DDP_CAP_P2P;
    if (strcmp(s->backend, "shm") != 0 && messages && sends)
        DDP_TRY(by_messages(b, &cost, p, err));
    else if (cost.modelled)
        DDP_TRY(by_memory(b, &cost, p, err));
    p->bound_fraction = p->bound_ns / p->time_ns.median;
    if (p->bound_ns > 0 && isfinite(p->bound_fraction))
        return 0;
    p->bound_kind[0] = '\0';
    p->bound_ns = p->bound_GBps = p->bound_fraction = NAN;
    return 0;
}
