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
/* A round repeats short work until it has moved about REPEAT_BYTES or taken about REPEAT_NS, but at
 * most REPEAT_MAX times. Otherwise the resolution of the clock would matter. */
#define REPEAT_BYTES ((size_t)512 << 10)
#define REPEAT_NS    100000
#define REPEAT_MAX   16
/* A run does the work once. The number of rounds is LOOP_BYTES divided by the bytes that one rank
 * moves in one run. For messages it is MESSAGE_BYTES divided by these bytes, because networks are
 * slower than memory. The number is reduced if so many rounds do not fit into ROUNDS_NS, or if the
 * point has few iterations (ddp_bound_setup). It always lies between ROUNDS_MIN and ROUNDS_MAX. If
 * ranks share a core, there are ROUNDS_MIN rounds. */
#define LOOP_BYTES    ((size_t)1 << 30)
#define MESSAGE_BYTES ((size_t)64 << 20)
#define ROUNDS_MIN    4
#define ROUNDS_MAX    1000
#define ROUNDS_NS     50000000
/* If other programs use the cores, the ranks wait long for each other before each round. After
 * every CHECK_ROUNDS rounds, the rounds end if they have taken more than LATE_FACTOR times as long
 * as all of their work should take, plus LATE_NS. */
#define CHECK_ROUNDS 16
#define LATE_FACTOR  2
#define LATE_NS      1000000
/* A round of loops that reads and writes at least 2 * SLICE_BYTES per rank is cut into slices of
 * about SLICE_BYTES or more. Other rounds have one slice. For each slice, the shortest time in any
 * round counts, and the bound is the sum of these times. An interruption therefore spoils one slice
 * and not the whole round. Between slices the ranks wait for each other, untimed, so that all of
 * them are active in each slice. */
#define SLICE_BYTES ((size_t)4 << 20)
#define SLICES_MAX  ((int)(2 * MOST_BYTES / SLICE_BYTES))
/* Largest number of durations that one measurement stores. */
#define TIMES_MAX DDP_MAX(ROUNDS_MAX, SLICES_MAX *ROUNDS_MIN)
/* If the rounds of a loop are cut into slices, they are measured in several batches, at most
 * BATCHES_MAX. Another batch follows as long as the last one has reduced the fastest time by at
 * least the fraction SETTLED. A large L3 cache that other programs share fills with the arrays only
 * after many rounds, so a later batch may be faster. There is one batch if ranks share a core. */
#define BATCHES_MAX 4
#define SETTLED     0.02
/* Loops with several sources or destinations, except add_plain, process blocks of this size, which
 * stay in the L1 or L2 cache. */
#define BLOCK_BYTES ((size_t)16 << 10)
/* A copy to several destinations is also measured with blocks of this size, which stay in the L2
 * cache. Non-temporal stores to more than a few KiB in a row are faster on some processors. */
#define COPY_BLOCK_BYTES ((size_t)256 << 10)

struct ddp_bound {
    struct ddp_bound_setup setup;
    int64_t *all;         /* [size][TIMES_MAX]: scratch */
    unsigned char *block; /* [BLOCK_BYTES]: sums before they are stored */
    bool shares_cores;    /* on some host, ranks share a core; the same on all ranks */
};

/* The bytes that one rank reads and writes, if all ranks get an equal share: `reads` arrays of
 * `chunk` bytes are added, and the sum is stored to `writes` arrays of `chunk` bytes. */
struct share {
    size_t chunk;
    int reads, writes;
    bool overwrites; /* the destinations are the first `writes` sources */
    bool inside;     /* sources and destinations lie in buffer `a`, and `b` keeps the input */
    size_t input;    /* bytes that are restored from `b` before a round; 0: none */
    /* The bytes of a rank's chunk in the collective, divided by `chunk`. `chunk` is smaller if
     * MOST_BYTES limits it, or if it was rounded down to cache lines. */
    double scale;
};

/* Work whose time is measured. */
struct work {
    struct ddp_bound *bound;
    const struct share *share; /* NULL: messages */
    size_t length;             /* bytes of a chunk, or of a message */
    size_t bytes;              /* bytes that one run reads and writes, or sends */
    size_t block;              /* bytes that are copied to one destination before the next one */
    /* Does the work on the bytes [at, at + bytes) of every chunk. */
    int (*run)(const struct work *w, size_t at, size_t bytes, struct ddp_err *err);
};

static int agree_on_cores(struct ddp_bound *b, struct ddp_err *err)
{
    const struct ddp_comm *comm = b->setup.comm;
    const char mine = comm->rank_info.oversubscribed;
    char *all = (char *)b->all; /* [size] */
    DDP_TRY(ddp_comm_allgather_bytes(b->setup.comm, &mine, all, 1, err));
    for (int r = 0; r < comm->size; r++)
        b->shares_cores |= all[r];
    return 0;
}

int ddp_bound_create(const struct ddp_bound_setup *setup, struct ddp_bound **out,
                     struct ddp_err *err)
{
    struct ddp_bound *b;
    int rc = DDP_NEW(&b, 1, err);
    if (rc == 0)
        rc = DDP_NEW(&b->all, (size_t)setup->comm->size * TIMES_MAX, err);
    if (rc == 0 && !(b->block = ddp_alloc_pages(BLOCK_BYTES)))
        rc = ddp_fail_memory(err, 1, BLOCK_BYTES, __func__);
    DDP_TRY_GOTO(ddp_comm_agree(setup->comm, rc, err), err_bound);
    memset(b->block, 0, BLOCK_BYTES);
    b->setup = *setup;
    DDP_TRY_GOTO(agree_on_cores(b, err), err_bound);
    *out = b;
    return 0;
err_bound:
    ddp_bound_destroy(b);
    return rc;
}

void ddp_bound_destroy(struct ddp_bound *b)
{
    if (!b)
        return;
    if (b->block)
        ddp_free_pages(b->block, BLOCK_BYTES);
    free(b->all);
    free(b);
}

static unsigned char *source(const struct work *w, int i)
{
    return (unsigned char *)w->bound->setup.a + (size_t)i * w->share->chunk;
}

static unsigned char *destination(const struct work *w, int i)
{
    const struct share *s = w->share;
    void *const base = s->inside ? w->bound->setup.a : w->bound->setup.b;
    const int skipped = s->inside && !s->overwrites ? s->reads : 0;
    return (unsigned char *)base + (size_t)(skipped + i) * s->chunk;
}

/* Adds the bytes [at, at + bytes) of all sources, and stores the sum to dst [dst_count]. */
static void add(const struct work *w, size_t at, size_t bytes, void *const *dst, int dst_count)
{
    const void *src[DDP_REDUCE_MAX];
    for (int i = 0; i < w->share->reads; i++)
        src[i] = source(w, i) + at;
    const struct ddp_reduce r = {.dst = dst,
                                 .dst_count = dst_count,
                                 .src = src,
                                 .src_count = w->share->reads,
                                 .count = bytes / sizeof(float),
                                 .dtype = DDP_F32,
                                 .op = DDP_SUM,
                                 .divisor = 1};
    w->bound->setup.comm->device->reduce(&r);
}

/* Adds all sources and stores the sum to all destinations in one pass, with plain stores. */
static int add_plain(const struct work *w, size_t at, size_t bytes, struct ddp_err *err)
{
    void *dst[DDP_REDUCE_MAX];
    (void)err;
    for (int i = 0; i < w->share->writes; i++)
        dst[i] = destination(w, i) + at;
    add(w, at, bytes, dst, w->share->writes);
    return 0;
}

/* Copies or adds block by block. `copy` stores a block to a destination. */
static void by_block(const struct work *w, size_t at, size_t bytes,
                     void (*copy)(void *dst, const void *src, size_t bytes))
{
    const struct share *s = w->share;
    void *const sum[] = {w->bound->block};
    for (const size_t end = at + bytes; at < end; at += w->block) {
        const size_t some = DDP_MIN(w->block, end - at);
        const void *from = s->reads > 1 ? sum[0] : source(w, 0) + at;
        if (s->reads > 1)
            add(w, at, some, sum, 1);
        for (int i = 0; i < s->writes; i++)
            copy(destination(w, i) + at, from, some);
    }
}

static int store_plain(const struct work *w, size_t at, size_t bytes, struct ddp_err *err)
{
    (void)err;
    by_block(w, at, bytes, w->bound->setup.comm->device->copy);
    return 0;
}

static int store_nt(const struct work *w, size_t at, size_t bytes, struct ddp_err *err)
{
    (void)err;
    by_block(w, at, bytes, w->bound->setup.comm->device->copy_nt);
    return 0;
}

/* Sends buffer `a` to the next rank, and receives the buffer `a` of the previous rank in buffer
 * `b`. */
static int shift(const struct work *w, size_t at, size_t bytes, struct ddp_err *err)
{
    const struct ddp_bound_setup *s = &w->bound->setup;
    struct ddp_comm *group = s->group;
    const int n = group->size, next = (group->rank + 1) % n, previous = (group->rank + n - 1) % n;
    struct ddp_request request[2];
    (void)at; /* a message has one slice */
    DDP_TRY(ddp_comm_irecv(group, previous, TAG, s->b, bytes, &request[0], err));
    DDP_TRY(ddp_comm_isend(group, next, TAG, s->a, bytes, &request[1], err));
    return ddp_comm_wait(group, request, 2, err);
}

/* Runs one round and stores the time of each slice in ns[slices]. */
static int run_round(const struct work *w, int slices, int repeat, int64_t *ns, struct ddp_err *err)
{
    const struct ddp_bound_setup *s = &w->bound->setup;
    const size_t line = DDP_CACHE_LINE;
    if (w->share && w->share->input > 0) /* as the sampler does before an iteration in place */
        memcpy(s->a, s->b, w->share->input);
    for (int i = 0; i < slices; i++) {
        const size_t at = w->length / line * (size_t)i / (size_t)slices * line;
        const size_t next = w->length / line * (size_t)(i + 1) / (size_t)slices * line;
        const size_t end = i + 1 == slices ? w->length : next;
        DDP_TRY(ddp_comm_barrier(s->comm, err));
        const int64_t begin = ddp_now_ns();
        for (int k = 0; k < repeat; k++)
            DDP_TRY(w->run(w, at, end - at, err));
        ns[i] = ddp_now_ns() - begin;
    }
    return 0;
}

/* The rounds of a measurement. */
struct rounds {
    int slices, rounds;
    int repeat;       /* runs in a round */
    int64_t limit_ns; /* the rounds end early if they take longer */
};

/* Chooses the number of rounds, and of repetitions in a round, from the bytes and from the time of
 * one run. If ranks share a core, there are the fewest rounds, because each round takes long. */
static int choose_rounds(const struct work *w, struct rounds *out, struct ddp_err *err)
{
    struct ddp_comm *comm = w->bound->setup.comm;
    const size_t total = w->share ? LOOP_BYTES : MESSAGE_BYTES;
    int64_t slices_ns[SLICES_MAX], *all = w->bound->all, mine = 0, once = 1;
    DDP_TRY(run_round(w, out->slices, 1, slices_ns, err));
    for (int i = 0; i < out->slices; i++)
        mine += slices_ns[i];
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        once = DDP_MAX(once, all[r]);
    int64_t repeat = (int64_t)DDP_MAX(REPEAT_BYTES / DDP_MAX(w->bytes, 1), 1);
    repeat = DDP_MIN(repeat, REPEAT_MAX);
    repeat = DDP_MIN(DDP_MAX(REPEAT_NS / once, 1), repeat);
    int64_t rounds = (int64_t)DDP_MAX(total / DDP_MAX(w->bytes, 1), ROUNDS_MIN);
    rounds = DDP_MIN(rounds, ROUNDS_MAX);
    if (w->bound->setup.iters > 0)
        rounds = DDP_MIN(DDP_MAX(DDP_BOUND_ROUNDS * w->bound->setup.iters, ROUNDS_MIN), rounds);
    rounds = DDP_MIN(DDP_MAX(ROUNDS_NS / (once * repeat), ROUNDS_MIN), rounds);
    if (w->bound->shares_cores)
        rounds = ROUNDS_MIN;
    out->rounds = (int)rounds;
    out->repeat = (int)repeat;
    out->limit_ns = LATE_FACTOR * rounds * repeat * once + LATE_NS;
    return 0;
}

/* Sets *stop on all ranks to whether the rounds have taken too long on any rank. late: whether they
 * have taken too long on this rank. */
static int agree_to_stop(const struct work *w, bool late, bool *stop, struct ddp_err *err)
{
    struct ddp_comm *comm = w->bound->setup.comm;
    char *all = (char *)w->bound->all; /* [size] */
    DDP_TRY(ddp_comm_allgather_bytes(comm, &late, all, 1, err));
    for (int r = 0; r < comm->size; r++)
        *stop |= all[r];
    return 0;
}

/* Lowers *ns to the time of one run if this time is shorter. The time of a slice is its duration on
 * the slowest rank. */
static int time_rounds(const struct work *w, const struct rounds *of, double *ns,
                       struct ddp_err *err)
{
    struct ddp_comm *comm = w->bound->setup.comm;
    const int64_t begin = ddp_now_ns();
    int64_t mine[TIMES_MAX], *all = w->bound->all;
    int times = 0;
    double sum = 0;
    bool stop = false;
    for (int i = 0; i < of->rounds && !stop; i++, times += of->slices) {
        if (i > 0 && i % CHECK_ROUNDS == 0)
            DDP_TRY(agree_to_stop(w, ddp_now_ns() - begin > of->limit_ns, &stop, err));
        DDP_TRY(run_round(w, of->slices, of->repeat, mine + times, err));
    }
    DDP_TRY(ddp_comm_allgather_bytes(comm, mine, all, (size_t)times * sizeof *mine, err));
    for (int slice = 0; slice < of->slices; slice++) {
        int64_t fastest = INT64_MAX;
        for (int i = slice; i < times; i += of->slices) {
            int64_t slowest = 1;
            for (int r = 0; r < comm->size; r++)
                slowest = DDP_MAX(slowest, all[r * times + i]);
            fastest = DDP_MIN(fastest, slowest);
        }
        sum += (double)fastest;
    }
    *ns = fmin(*ns, sum / of->repeat); /* fmin also replaces a NaN */
    return 0;
}

/* Lowers *ns to the shortest time of one run in any batch, if this time is shorter. */
static int time_of(const struct work *w, double *ns, struct ddp_err *err)
{
    struct rounds rounds = {.slices = w->share ? (int)DDP_MAX(w->bytes / SLICE_BYTES, 1) : 1};
    double best = NAN;
    DDP_TRY(choose_rounds(w, &rounds, err));
    for (int batch = 0; batch < BATCHES_MAX; batch++) {
        const double before = best;
        DDP_TRY(time_rounds(w, &rounds, &best, err));
        if (rounds.slices == 1 || w->bound->shares_cores || best > (1 - SETTLED) * before)
            break;
    }
    *ns = fmin(*ns, best);
    return 0;
}

/* Sets *out to the share of one rank in a call with messages of s->size_bytes bytes. Counts only
 * arrays that the collective must read or write, and counts each of them once. Calculates with at
 * most DDP_REDUCE_MAX ranks. */
static void share_of(const struct ddp_point_spec *s, struct share *out)
{
    const size_t n = (size_t)DDP_MIN(s->ranks, DDP_REDUCE_MAX);
    const bool inside = s->placement == DDP_IN_PLACE;
    size_t part = (size_t)s->size_bytes / n; /* one rank's chunk */
    *out = (struct share){.reads = 1, .writes = 1, .inside = inside, .input = part};
    switch (s->coll) {
    case DDP_ALLREDUCE:
    case DDP_ALL_TO_ALL:
    case DDP_ALL_TO_ALL_V: /* size_bytes is the mean of the ranks */
    case DDP_SEND_RECV:
        /* As many bytes are read as written. In place, a rank keeps its own chunk of an
         * all-to-all, and the other chunks are both read and written. */
        part = (size_t)s->size_bytes;
        out->input = inside ? part : 0;
        if (inside && s->coll == DDP_ALL_TO_ALL)
            part = part / n * (n - 1);
        out->overwrites = inside;
        if (inside || s->coll == DDP_ALLREDUCE) {
            out->reads = out->writes = 2;
            part /= 2;
        }
        break;
    case DDP_REDUCE_SCATTER:
    case DDP_REDUCE_SCATTER_V:
    case DDP_REDUCE:
        out->input = inside ? (size_t)s->size_bytes : 0;
        out->reads = (int)n;
        out->overwrites = inside;
        break;
    case DDP_ALL_GATHER:
    case DDP_ALL_GATHER_V:
    case DDP_BROADCAST: /* all ranks together read the message once, and each stores it */
        out->writes = (int)n - inside;
        break;
    default: /* gather, scatter: in place, the root keeps its own chunk */
        part = inside ? part / n * (n - 1) : part;
        break;
    }
    if (!inside)
        out->input = 0;
    const double wanted = (double)part;
    if (s->size_bytes > MOST_BYTES) {
        const double fits = (double)MOST_BYTES / (double)s->size_bytes;
        part = (size_t)(wanted * fits);
        out->input = (size_t)((double)out->input * fits);
    }
    out->chunk = part / DDP_CACHE_LINE * DDP_CACHE_LINE;
    out->scale = out->chunk > 0 ? wanted / (double)out->chunk : NAN;
}

/* Lowers *ns to the time of the loops that work block by block, if this time is shorter. */
static int time_stores(struct work *w, size_t block, double *ns, struct ddp_err *err)
{
    const struct share *s = w->share;
    w->block = s->reads > 1 || s->writes > 1 ? block : s->chunk;
    if (!s->overwrites) {
        w->run = store_nt;
        DDP_TRY(time_of(w, ns, err));
    }
    if (s->reads == 1) {
        w->run = store_plain;
        DDP_TRY(time_of(w, ns, err));
    }
    return 0;
}

/* Sets *ns to the shortest time in which all ranks move their shares. Sets *bytes to the bytes that
 * all ranks read and write. */
static int memory_time(struct ddp_bound *b, const struct ddp_point_spec *spec, double *bytes,
                       double *ns, struct ddp_err *err)
{
    struct share share;
    share_of(spec, &share);
    *ns = NAN;
    if (share.chunk == 0)
        return 0;
    struct work w = {.bound = b, .share = &share, .length = share.chunk, .run = add_plain};
    w.bytes = share.chunk * (size_t)(share.reads + share.writes);
    *bytes = share.scale * (double)w.bytes * b->setup.comm->size;
    /* Verification may have left denormal numbers in the buffers, which some processors add more
     * slowly. */
    memset(b->setup.a, 0, DDP_MIN((size_t)spec->size_bytes, MOST_BYTES));
    memset(b->setup.b, 0, DDP_MIN((size_t)spec->size_bytes, MOST_BYTES));
    DDP_TRY(time_of(&w, ns, err));
    DDP_TRY(time_stores(&w, BLOCK_BYTES, ns, err));
    if (share.reads == 1 && share.writes > 1 && share.chunk > BLOCK_BYTES)
        DDP_TRY(time_stores(&w, COPY_BLOCK_BYTES, ns, err));
    *ns *= share.scale;
    return 0;
}

static double steps_of(const struct ddp_coll_cost *cost, const struct ddp_point_spec *spec)
{
    if (cost->modelled)
        return cost->steps;
    return spec->coll == DDP_SEND_RECV ? 1 : ceil(log2(spec->ranks));
}

/* One measurement of a bound. */
struct measured {
    const char *kind; /* "" if no bound is known */
    double ns;        /* the bound */
    double bytes;     /* bytes that are moved in `ns`; NaN for sizes below DDP_BOUND_BYTES */
};

/* Measures the bound of an algorithm that sends messages. */
static int by_messages(struct ddp_bound *b, const struct ddp_coll_cost *cost,
                       const struct ddp_point_spec *s, struct measured *out, struct ddp_err *err)
{
    const size_t some = DDP_MIN((size_t)s->size_bytes, MOST_BYTES);
    const struct work w = {.bound = b, .length = some, .bytes = some, .run = shift};
    /* With a split, a rank may receive more than any rank sends, so the bytes of the busiest rank
     * count. */
    const double sent = cost->modelled && !ddp_coll_has_split(s->coll) ? cost->sent_bytes
                                                                       : ddp_point_busiest_bytes(s);
    double ns = NAN;
    DDP_TRY(time_of(&w, &ns, err));
    out->kind = "point-to-point";
    if (s->size_bytes < DDP_BOUND_BYTES) {
        out->ns = steps_of(cost, s) * ns;
        return 0;
    }
    out->bytes = sent;
    out->ns = sent / (double)some * ns;
    return 0;
}

/* Measures the bound. pingpong_ns: the round trip. Collective. */
static int measure(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                   const struct ddp_coll_shape *shape, const struct ddp_point_spec *s,
                   double pingpong_ns, struct measured *out, struct ddp_err *err)
{
    struct ddp_coll_cost cost = {0};
    const struct ddp_comm *group = b->setup.group;
    const bool idle = ddp_coll_is_idle(s->coll, s->count); /* the collective has nothing to do */
    *out = (struct measured){.kind = "", .ns = NAN, .bytes = NAN};
    if (s->ranks < 2 || s->size_bytes > b->setup.bytes || idle)
        return 0;
    ddp_coll_cost_of(alg, s->ranks, shape, &cost);
    const bool messages = !cost.modelled || cost.messages > 0;
    const unsigned caps = group->backend->caps;
    const bool sends = (caps & DDP_CAP_P2P) != 0 && (caps & DDP_CAP_MAP) == 0;
    if (messages && sends)
        return by_messages(b, &cost, s, out, err);
    if (!cost.modelled)
        return 0;
    if (s->size_bytes >= DDP_BOUND_BYTES) {
        out->kind = "memory";
        return memory_time(b, s, &out->bytes, &out->ns, err);
    }
    out->kind = "latency";
    out->ns = cost.steps * pingpong_ns / 2;
    return 0;
}

int ddp_bound_before(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                     const struct ddp_coll_shape *shape, struct ddp_point *p, struct ddp_err *err)
{
    struct measured m;
    DDP_TRY(measure(b, alg, shape, &p->spec, p->pingpong_ns[0], &m, err));
    p->bound_before_ns = m.ns;
    return 0;
}

int ddp_bound_fill(struct ddp_bound *b, const struct ddp_coll_alg *alg,
                   const struct ddp_coll_shape *shape, struct ddp_point *p, struct ddp_err *err)
{
    struct measured m;
    DDP_TRY(measure(b, alg, shape, &p->spec, p->pingpong_ns[1], &m, err));
    p->bound_after_ns = m.ns;
    p->bound_ns = fmin(p->bound_before_ns, p->bound_after_ns); /* NaN only if both bounds are NaN */
    p->bound_GBps = m.bytes / p->bound_ns;
    p->bound_fraction = p->bound_ns / p->time_ns.median;
    snprintf(p->bound_kind, sizeof p->bound_kind, "%s", m.kind);
    if (p->bound_ns > 0 && isfinite(p->bound_fraction) && m.kind[0] != '\0')
        return 0;
    p->bound_kind[0] = '\0';
    p->bound_ns = p->bound_GBps = p->bound_fraction = NAN;
    p->bound_before_ns = p->bound_after_ns = NAN;
    return 0;
}
