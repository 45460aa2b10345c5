/* Compressed all-reduces of buckets in device memory (compressed.h).
 *
 * 16-bit compressors convert the bucket, all-reduce it and convert it back. `none` all-reduces in
 * place. With a sparse compressor each rank's list has a fixed capacity and is always sent in full.
 * The host therefore never needs the length of a list, which stays on the device. Lists are added
 * in rank order. For a global top-K (oktopk) every rank selects the k largest sums in each call.
 * Entries that this rank sent but that were not selected return to its residual. The host waits for
 * the stream before the exchange and, if `timed` is set, after decoding. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/sparse/sparse_coll.h"
#include "comm/backend.h"
#include "device/stream_kernels.h"
#include "exchange/aggregate.h"
#include "exchange/compressed_impl.h"

/* A list begins with its length, which has a cache line of its own. */
#define HEAD_BYTES ((size_t)DDP_CACHE_LINE)

/* Counters in device memory. */
struct tally {
    uint64_t overflows, sent;
};

struct device_exchange {
    struct ddp_compressed base;
    bool sparse, lossless;
    /* capacity: entries of a list. part_bytes: size of a list, a multiple of the cache line. */
    size_t capacity, wire_bytes, part_bytes;
    /* wire: 16-bit values [n], or this rank's list (length, indices, values). NULL if data is sent
     * unchanged. gathered: the lists of all ranks, or NULL if nothing is sparse. chosen: the list
     * that a global top-K selects, or NULL without a global top-K. */
    void *wire, *gathered, *chosen;
    float *residual;
    void *scratch;
    size_t scratch_bytes;
    struct tally *tally;
    struct ddp_coll_plan plan;
    double wire_per_run; /* bytes that the other ranks receive from this rank per run */
};

size_t ddp_compressed_capacity(const struct ddp_compress_spec *spec, size_t n, bool feedback)
{
    const struct ddp_compressor *c = spec->compressor;
    if (c->combine == DDP_COMBINE_SUM)
        return 0;
    return c->fixed_count || !feedback ? c->bound(spec, n) : (n + 7) / 8;
}

/* Returns the bytes of a list of `capacity` entries. */
static size_t list_bytes(size_t capacity)
{
    return HEAD_BYTES + 2 * ddp_round_to_line(capacity * sizeof(float));
}

/* Rounds up as ddp_comm_alloc does (comm.h). */
static uint64_t block_bytes(uint64_t bytes)
{
    const uint64_t huge = (uint64_t)2 << 20, unit = bytes >= 2 * huge ? huge : 4096;
    return (bytes + unit - 1) / unit * unit + (unit == huge ? huge : 0);
}

static void device_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks, bool feedback,
                         uint64_t *registered, uint64_t *private_bytes)
{
    const struct ddp_compressor *c = spec->compressor;
    const size_t part = list_bytes(ddp_compressed_capacity(spec, n, feedback));
    *private_bytes = 0;
    if (ddp_compressor_is_lossless(c))
        *registered = 0;
    else if (c->combine == DDP_COMBINE_SUM)
        *registered = block_bytes(ddp_round_to_line(n * ddp_dtype_size(c->wire_dtype)));
    else
        *registered = block_bytes(part) + block_bytes((uint64_t)part * (uint64_t)ranks);
}

/* Returns the list that is stored at `memory`. */
static struct ddp_stream_list list_at(const struct device_exchange *x, void *memory)
{
    unsigned char *at = memory;
    const size_t values = ddp_round_to_line(x->capacity * sizeof(uint32_t));
    return (struct ddp_stream_list){.index = (uint32_t *)(void *)(at + HEAD_BYTES),
                                    .value = (float *)(void *)(at + HEAD_BYTES + values),
                                    .count = (uint32_t *)(void *)at,
                                    .capacity = x->capacity};
}

/* Returns the list of rank r among the gathered lists. */
static struct ddp_stream_list list_of(const struct device_exchange *x, int r)
{
    return list_at(x, (unsigned char *)x->gathered + (size_t)r * x->part_bytes);
}

static size_t topk_of(const struct device_exchange *x)
{
    return x->base.setup.spec.compressor->fixed_count ? x->capacity : 0;
}

/* Does the local part of create, before any communication. */
static int prepare(struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_device *d = s->device;
    const struct ddp_compressor *c = s->spec.compressor;
    x->sparse = c->combine == DDP_COMBINE_GATHER;
    x->lossless = ddp_compressor_is_lossless(c);
    x->capacity = ddp_compressed_capacity(&s->spec, s->n, s->feedback);
    x->part_bytes = list_bytes(x->capacity);
    x->wire_bytes =
        x->sparse ? x->part_bytes : ddp_round_to_line(s->n * ddp_dtype_size(c->wire_dtype));
    if (x->sparse)
        x->scratch_bytes = d->stream_kernels->select_scratch(s->n, topk_of(x));
    x->tally = d->alloc(sizeof *x->tally);
    if (x->scratch_bytes > 0)
        x->scratch = d->alloc(x->scratch_bytes);
    if (s->feedback && !x->lossless)
        x->residual = d->alloc(s->n * sizeof(float));
    if (c->global_topk)
        x->chosen = d->alloc(x->part_bytes);
    if (x->tally == NULL || (x->scratch_bytes > 0 && x->scratch == NULL) ||
        (s->feedback && !x->lossless && x->residual == NULL) ||
        (c->global_topk && x->chosen == NULL))
        return ddp_fail(err, DDP_ENOMEM, "no memory of device '%s' to compress %zu elements",
                        d->name, s->n);
    d->streams->fill(s->stream, x->tally, 0, sizeof *x->tally);
    if (x->residual != NULL)
        d->streams->fill(s->stream, x->residual, 0, s->n * sizeof(float));
    return 0;
}

/* Accepts only algorithms that gather all lists in full. The other algorithms of sparse_coll.h
 * decide on the CPU which entries to send. */
static int check_sparse(const struct device_exchange *x, const char *name, struct ddp_err *err)
{
    const bool selects = x->base.setup.spec.compressor->global_topk;
    if (name == NULL || strcmp(name, "auto") == 0)
        return 0;
    const struct ddp_sparse_alg *alg = ddp_sparse_find(name);
    if (alg == NULL || alg->selects != selects)
        return ddp_fail(err, DDP_EUSAGE,
                        "unknown algorithm '%s' for a sparse all-reduce on a device; legal: auto%s",
                        name, selects ? "" : ", allgather");
    if (strcmp(name, "allgather") == 0)
        return 0;
    return ddp_fail(err, DDP_EUNAVAIL, "algorithm '%s' does not run on a device; use 'auto'", name);
}

static int prepare_plan(struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const double ranks = s->comm->size;
    void *wire = x->lossless ? s->data : x->wire;
    const struct ddp_coll_args gather = {.coll = DDP_ALL_GATHER,
                                         .send = x->wire,
                                         .recv = x->gathered,
                                         .count = x->part_bytes,
                                         .dtype = DDP_U8},
                               sum = {.coll = DDP_ALLREDUCE,
                                      .send = wire,
                                      .recv = wire,
                                      .count = s->n,
                                      .dtype = s->spec.compressor->wire_dtype,
                                      .op = x->lossless && s->average ? DDP_AVG : DDP_SUM};
    const struct ddp_coll_alg *alg = NULL;
    DDP_TRY(x->sparse ? check_sparse(x, s->algorithm, err)
                      : ddp_allreduce_find(s->algorithm, &alg, err));
    x->wire_per_run = x->sparse ? (ranks - 1) * (double)x->part_bytes
                                : 2 * (ranks - 1) / ranks * (double)s->n *
                                      (double)ddp_dtype_size(s->spec.compressor->wire_dtype);
    return ddp_coll_plan_init(&x->plan, s->comm, alg, x->sparse ? &gather : &sum, err);
}

static void device_destroy(struct ddp_compressed *base)
{
    struct device_exchange *x = (struct device_exchange *)base;
    struct ddp_err ignored = DDP_ERR_INIT;
    if (x == NULL)
        return;
    const struct ddp_compressed_setup *s = &x->base.setup;
    (void)!s->device->streams->wait(s->stream, &ignored);
    ddp_coll_plan_release(&x->plan);
    if (x->gathered != NULL)
        ddp_comm_free(s->comm, x->gathered);
    if (x->wire != NULL)
        ddp_comm_free(s->comm, x->wire);
    if (x->residual != NULL)
        s->device->free(x->residual, s->n * sizeof(float));
    if (x->chosen != NULL)
        s->device->free(x->chosen, x->part_bytes);
    if (x->scratch != NULL)
        s->device->free(x->scratch, x->scratch_bytes);
    if (x->tally != NULL)
        s->device->free(x->tally, sizeof *x->tally);
    free(x);
}

static int device_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                         struct ddp_err *err)
{
    struct ddp_comm *comm = setup->comm;
    struct device_exchange *x;
    int rc = DDP_NEW(&x, 1, err);
    if (rc == 0) {
        x->base.setup = *setup;
        rc = prepare(x, err);
    }
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_free);
    if (!x->lossless)
        DDP_TRY_GOTO(ddp_comm_alloc(comm, x->wire_bytes, &x->wire, err), err_free);
    if (x->sparse)
        DDP_TRY_GOTO(ddp_comm_alloc(comm, x->part_bytes * (size_t)comm->size, &x->gathered, err),
                     err_free);
    /* The whole buffer is sent, so initialise the part behind the list's end too. */
    if (!x->lossless)
        setup->device->streams->fill(setup->stream, x->wire, 0, x->wire_bytes);
    rc = prepare_plan(x, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_free);
    *out = &x->base;
    return 0;

err_free:
    device_destroy(x != NULL ? &x->base : NULL);
    return rc;
}

/* a += b, both [n]. */
static void add(const struct device_exchange *x, float *a, const float *b)
{
    void *const dst[] = {a};
    const void *const src[] = {a, b};
    const struct ddp_reduce sum = {.dst = dst,
                                   .dst_count = 1,
                                   .src = src,
                                   .src_count = 2,
                                   .count = x->base.setup.n,
                                   .dtype = DDP_F32,
                                   .op = DDP_SUM,
                                   .divisor = 1};
    x->base.setup.device->stream_kernels->reduce(x->base.setup.stream, &sum);
}

/* Returns the factor for this rank's values: 1/P for an average, otherwise 1. */
static float share_of(const struct device_exchange *x)
{
    return x->base.setup.average ? 1 / (float)x->base.setup.comm->size : 1;
}

/* Multiplies values [n] by share_of(x). */
static void divide(const struct device_exchange *x, float *values, size_t n)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    if (share_of(x) != 1)
        s->device->stream_kernels->scale(s->stream, values, n, share_of(x));
}

/* Scales data and converts it to 16 bits. With feedback, adds the residual in between. */
static void encode_narrow(struct device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const enum ddp_dtype type = s->spec.compressor->wire_dtype;
    const double argument = s->spec.argument;
    const double share = share_of(x);
    float clip = 0; /* no clip */
    /* The clip limit is for the gradient before it is scaled, as in comp_fp16.c. The kernel clips
     * the scaled gradient, so the limit is multiplied by the same factor. It must not underflow
     * to 0. */
    if (!isnan(argument))
        clip = fmaxf((float)fmin(argument * share, ddp_compress_f16_limit(share)), FLT_TRUE_MIN);
    if (x->residual == NULL) {
        k->narrow(s->stream, x->wire, s->data, s->n, type, share_of(x), clip, NULL);
        return;
    }
    divide(x, s->data, s->n);
    add(x, s->data, x->residual);
    k->narrow(s->stream, x->wire, s->data, s->n, type, 1, clip, NULL);
    k->narrow_residual(s->stream, x->residual, s->data, x->wire, s->n, type);
}

static void encode_list(struct device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const struct ddp_stream_select select = {.in = s->data,
                                             .residual = x->residual,
                                             .n = s->n,
                                             .out = list_at(x, x->wire),
                                             .scratch = x->scratch,
                                             .scratch_bytes = x->scratch_bytes};
    if (topk_of(x) > 0)
        k->select_topk(s->stream, &select, topk_of(x));
    else
        k->select_threshold(s->stream, &select, (float)s->spec.argument);
    /* A global top-K scales the sums instead, because some entries return to the unscaled residual.
     */
    if (x->chosen == NULL)
        divide(x, select.out.value, x->capacity);
    k->add_count(s->stream, &x->tally->sent, select.out.count);
}

/* On entry data holds the sums over all ranks. On return data holds the k largest sums, scaled, and
 * 0 elsewhere. The residual, if there is one, gets back what this rank sent for the other sums. */
static void choose(struct device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const struct ddp_stream_list mine = list_at(x, x->wire);
    const struct ddp_stream_select select = {.in = s->data,
                                             .n = s->n,
                                             .out = list_at(x, x->chosen),
                                             .scratch = x->scratch,
                                             .scratch_bytes = x->scratch_bytes};
    k->select_topk(s->stream, &select, topk_of(x));
    s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    if (x->residual != NULL) {
        k->scatter(s->stream, s->data, &mine);
        k->scatter_zero(s->stream, s->data, &select.out);
        add(x, x->residual, s->data);
        s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    }
    divide(x, select.out.value, x->capacity);
    k->scatter(s->stream, s->data, &select.out);
}

static void decode(struct device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    if (x->lossless)
        return;
    if (!x->sparse) {
        k->widen_back(s->stream, s->data, x->wire, s->n, s->spec.compressor->wire_dtype,
                      &x->tally->overflows);
        return;
    }
    s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    for (int r = 0; r < s->comm->size; r++) {
        const struct ddp_stream_list list = list_of(x, r);
        k->scatter_add(s->stream, s->data, &list);
    }
    if (x->chosen != NULL)
        choose(x);
}

static int device_run(struct ddp_compressed *base, struct ddp_err *err)
{
    struct device_exchange *x = (struct device_exchange *)base;
    const struct ddp_compressed_setup *s = &x->base.setup;
    const int64_t begin = ddp_now_ns();
    if (x->sparse)
        encode_list(x);
    else if (!x->lossless)
        encode_narrow(x);
    DDP_TRY(s->device->streams->wait(s->stream, err));
    const int64_t encoded = s->timed ? ddp_now_ns() : begin;
    DDP_TRY(ddp_coll_run(s->comm, &x->plan, err));
    const int64_t exchanged = ddp_now_ns();
    decode(x);
    if (s->timed)
        DDP_TRY(s->device->streams->wait(s->stream, err));
    const int64_t end = ddp_now_ns();
    x->base.counters.runs++;
    x->base.counters.encode_ns += encoded - begin;
    x->base.counters.exchange_ns += (s->timed ? exchanged : end) - encoded;
    x->base.counters.decode_ns += s->timed ? end - exchanged : 0;
    return 0;
}

static void device_counters(const struct ddp_compressed *base, struct ddp_compressed_counters *out)
{
    const struct device_exchange *x = (const struct device_exchange *)base;
    const struct ddp_compressed_setup *s = &x->base.setup;
    struct ddp_err ignored = DDP_ERR_INIT;
    struct tally tally = {0};
    *out = x->base.counters;
    if (s->device->streams->wait(s->stream, &ignored) == 0)
        s->device->copy(&tally, x->tally, sizeof tally);
    out->overflow_count = tally.overflows;
    out->values_sent = x->sparse ? (double)tally.sent : (double)s->n * (double)out->runs;
    out->values_total = (double)s->n * (double)out->runs;
    out->wire_bytes = x->wire_per_run * (double)out->runs;
    out->wire_counted = false; /* Modelled as a ring. */
}

static const float *device_residual(const struct ddp_compressed *x)
{
    return ((const struct device_exchange *)x)->residual;
}

static const char *device_algorithm(const struct ddp_compressed *base)
{
    const struct device_exchange *x = (const struct device_exchange *)base;
    return x->sparse ? "allgather" : x->plan.alg->name;
}

const struct ddp_compressed_ops ddp_compressed_on_device = {
    .create = device_create,
    .destroy = device_destroy,
    .run = device_run,
    .counters = device_counters,
    .residual = device_residual,
    .algorithm = device_algorithm,
    .bytes = device_bytes,
};
