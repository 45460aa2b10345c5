/* Compressed all-reduces of buckets in host memory (compressed.h). */
#include "exchange/compressed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/sparse/sparse_coll.h"
#include "exchange/aggregate.h"
#include "exchange/block_exchange.h"
#include "exchange/compressed_impl.h"

/* Zeroed memory. `raw` is the allocation. `at` is its first address that is aligned to a cache
 * line. */
struct block {
    void *raw, *at;
};

/* Members marked SUM, BLOCKS, GATHER or ROUNDS are used only by compressors with that value of
 * `combine` (compress.h). */
struct host {
    struct ddp_compressed base;
    const struct ddp_compressor *compressor;
    /* encode.dense (SUM, BLOCKS, ROUNDS) or encode.list (GATHER) is the encoded form. */
    struct ddp_encode encode;
    struct block state, residual, scratch;
    /* SUM, GATHER, ROUNDS: registered memory of the encoded form. NULL if data is sent as it is. */
    void *wire;
    struct ddp_block_exchange blocks; /* BLOCKS */
    /* SUM, ROUNDS: the algorithm, NULL for auto. */
    const struct ddp_coll_alg *dense_alg;
    /* SUM: the all-reduce of the encoded form. ROUNDS: the all-reduce of data, if the first
     * exchanges are dense. */
    struct ddp_coll_plan plan;
    /* ROUNDS: the all-reduce of each round, and the array of setup.tensors. */
    struct ddp_coll_plan round_plan[DDP_ROUNDS_MAX];
    struct ddp_tensor *tensors;
    /* GATHER: the algorithm and its arguments. Its scratch memory is `scratch`. */
    const struct ddp_sparse_alg *alg;
    struct ddp_sparse_args args;
    /* Bytes that other ranks receive from this rank without a message: per run (SUM, BLOCKS) or per
     * entry (GATHER). NaN if the algorithm sends messages, because their bytes are counted. */
    double mapped_bytes;
};

/* The list length of the compressor `threshold` is not known in advance. THRESHOLD_EXPECTED is the
 * length for which `auto` chooses an algorithm. THRESHOLD_CHECKED is the length that memory checks
 * assume. */
#define THRESHOLD_EXPECTED(n) ((n) / 100 + 1)
#define THRESHOLD_CHECKED(n)  ((n) / 16 + 1)

static int block_init(struct block *b, size_t bytes, struct ddp_err *err)
{
    if (bytes == 0)
        return 0;
    b->raw = bytes < SIZE_MAX - DDP_CACHE_LINE ? calloc(1, bytes + DDP_CACHE_LINE) : NULL;
    if (b->raw == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu bytes of a compressed exchange", bytes);
    b->at = (void *)(((uintptr_t)b->raw + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE);
    return 0;
}

/* Returns the registered bytes of the encoded form of SUM and GATHER. A list holds all indices,
 * then all values. The values begin at a new cache line. */
static size_t wire_bytes(const struct ddp_compress_spec *spec, size_t n)
{
    const struct ddp_compressor *c = spec->compressor;
    if (c->combine == DDP_COMBINE_SUM)
        return ddp_compressor_is_lossless(c) ? 0 : n * ddp_dtype_size(c->wire_dtype);
    return 2 * ddp_round_to_line(c->bound(spec, n) * sizeof(float));
}

/* Returns the registered bytes of all rounds. */
static size_t rounds_bytes(const struct ddp_compressed_setup *setup)
{
    const struct ddp_compressor *c = setup->spec.compressor;
    const struct ddp_tensor flat = ddp_compress_flat(setup->n);
    const struct ddp_tensors one = {&flat, 1};
    const struct ddp_tensors *tensors = setup->tensors.n > 0 ? &setup->tensors : &one;
    return c->span(&setup->spec, tensors, c->rounds).first * sizeof(float);
}

static size_t state_bytes(const struct ddp_compress_spec *spec, size_t n)
{
    const struct ddp_compressor *c = spec->compressor;
    return c->state_bytes != NULL ? c->state_bytes(spec, n) : 0;
}

static bool is_blocks(const struct ddp_compressor *c)
{
    return c->combine == DDP_COMBINE_BLOCKS;
}

static bool has_rounds(const struct ddp_compressor *c)
{
    return c->combine == DDP_COMBINE_ROUNDS;
}

/* Chooses the sparse algorithm and checks that it supports the setup. */
static int choose_sparse(struct host *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const size_t most = x->args.most;

    DDP_TRY(ddp_sparse_named(s->algorithm, x->compressor->global_topk, false, &x->alg, err));
    if (x->alg != NULL)
        return ddp_sparse_supports(x->alg, s->comm, s->n, err);
    const size_t expected =
        x->compressor->fixed_count ? most : DDP_MIN(most, THRESHOLD_EXPECTED(s->n));
    x->alg = ddp_sparse_auto(s->comm, s->n, expected, err);
    return x->alg != NULL ? 0 : DDP_EUNAVAIL;
}

/* Checks the name of the algorithm. Each compressor that quantises blocks has exactly one
 * algorithm. */
static int check_blocks(const struct ddp_compressed_setup *s, struct ddp_err *err)
{
    const char *name = ddp_block_exchange_name(s->spec.compressor);
    if (s->algorithm == NULL || strcmp(s->algorithm, "auto") == 0 ||
        strcmp(s->algorithm, name) == 0)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "unknown algorithm '%s' for %s; legal: auto, %s", s->algorithm,
                    s->spec.text, name);
}

/* Copies the tensors of the setup. Without tensors, the bucket becomes one matrix. */
static int copy_tensors(struct host *x, struct ddp_err *err)
{
    struct ddp_compressed_setup *s = &x->base.setup;
    const int n = DDP_MAX(s->tensors.n, 1);
    DDP_TRY(DDP_NEW(&x->tensors, (size_t)n, err));
    x->tensors[0] = ddp_compress_flat(s->n);
    if (s->tensors.n > 0)
        memcpy(x->tensors, s->tensors.v, (size_t)n * sizeof *x->tensors);
    s->tensors = (struct ddp_tensors){x->tensors, n};
    return 0;
}

/* Does the local part of create, before any communication. */
static int prepare(struct host *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_compress_spec *spec = &x->base.setup.spec;

    if (s->comm->device->grad == NULL)
        return ddp_fail(err, DDP_EUNAVAIL, "device '%s' cannot compress", s->comm->device->name);
    if (x->compressor->combine == DDP_COMBINE_GATHER) {
        x->args = (struct ddp_sparse_args){
            .result = s->data,
            .n = s->n,
            .most = x->compressor->bound(spec, s->n),
            .fixed = x->compressor->fixed_count,
            .scale = s->average ? 1 / (float)s->comm->size : 1,
        };
        x->args.k = x->args.most;
        DDP_TRY(choose_sparse(x, err));
        DDP_TRY(block_init(&x->scratch, x->alg->scratch_bytes(s->comm, s->n, x->args.most), err));
    } else if (is_blocks(x->compressor)) {
        DDP_TRY(check_blocks(s, err));
    } else {
        DDP_TRY(ddp_allreduce_find(s->algorithm, &x->dense_alg, err));
    }
    if (has_rounds(x->compressor))
        DDP_TRY(copy_tensors(x, err));
    DDP_TRY(block_init(&x->state, state_bytes(spec, s->n), err));
    if (s->feedback && !ddp_compressor_is_lossless(x->compressor))
        DDP_TRY(block_init(&x->residual, DDP_MAX(s->n, (size_t)1) * sizeof(float), err));
    return 0;
}

/* Sets wire_counted and mapped_bytes. `needs`: enum ddp_coll_needs of the algorithms. If they send
 * messages, mapped_bytes is NaN. Otherwise it is `ring_bytes`, the bytes that a ring of messages
 * would send. */
static void model_bytes(struct host *x, unsigned needs, double ring_bytes)
{
    x->base.counters.wire_counted = !(needs & DDP_NEEDS_LIBRARY);
    x->mapped_bytes =
        (needs & DDP_NEEDS_MESSAGES) && x->base.setup.comm->size > 1 ? NAN : ring_bytes;
}

/* Sets mapped_bytes per entry. If the algorithm sends messages, mapped_bytes is NaN. Otherwise
 * every other rank reads all entries of this rank, 8 bytes each. */
static void model_sparse(struct host *x)
{
    const int ranks = x->base.setup.comm->size;
    struct ddp_coll_cost cost;
    bool exact;

    x->alg->cost(ranks, x->args.n, x->args.most, &cost, &exact);
    x->mapped_bytes = cost.sent_bytes > 0 ? NAN : 8.0 * (ranks - 1);
}

/* Plans the all-reduce of the 16-bit buffer, or of data itself if nothing is encoded. */
static int prepare_dense(struct host *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const bool lossless = ddp_compressor_is_lossless(x->compressor);
    void *wire = lossless ? s->data : x->wire;
    const struct ddp_coll_args args = {
        .coll = DDP_ALLREDUCE,
        .send = wire,
        .recv = wire,
        .count = s->n,
        .dtype = x->compressor->wire_dtype,
        .op = lossless && s->average ? DDP_AVG : DDP_SUM,
    };

    x->encode.dense = wire;
    DDP_TRY(ddp_coll_plan_init(&x->plan, s->comm, x->dense_alg, &args, err));
    const double ranks = s->comm->size;
    model_bytes(x, x->plan.alg->needs, 2 * (ranks - 1) / ranks * (double)x->plan.bytes);
    return 0;
}

/* Plans the all-reduce of each round, and of data if the first exchanges are dense. */
static int prepare_rounds(struct host *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    unsigned needs = 0;
    struct ddp_coll_args args = {
        .coll = DDP_ALLREDUCE, .dtype = DDP_F32, .op = s->average ? DDP_AVG : DDP_SUM};
    x->base.rounds = x->wire;
    x->base.rounds_count = rounds_bytes(s) / sizeof(float);
    memset(x->wire, 0, rounds_bytes(s));
    if (s->spec.dense_runs > 0) {
        args.send = args.recv = s->data;
        args.count = s->n;
        DDP_TRY(ddp_coll_plan_init(&x->plan, s->comm, x->dense_alg, &args, err));
        needs |= x->plan.alg->needs;
    }
    args.op = DDP_SUM;
    for (int r = 0; r < x->compressor->rounds; r++) {
        const struct ddp_span span = x->compressor->span(&s->spec, &s->tensors, r);
        args.send = args.recv = (float *)x->wire + span.first;
        args.count = span.count;
        DDP_TRY(ddp_coll_plan_init(&x->round_plan[r], s->comm, x->dense_alg, &args, err));
        needs |= x->round_plan[r].alg->needs;
    }
    x->base.counters.wire_counted = !(needs & DDP_NEEDS_LIBRARY);
    return 0;
}

/* Opens the exchange of quantised blocks. Collective. */
static int open_blocks(struct host *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    struct ddp_block_exchange *b = &x->blocks;
    DDP_TRY(ddp_block_exchange_open(b, s->comm, &s->spec, s->n, err));
    const unsigned first = b->first.alg->needs;
    const unsigned second = b->two_phase ? b->second.alg->needs : first;
    /* Bytes are counted only if both collectives send messages. */
    const unsigned both = first & second & DDP_NEEDS_MESSAGES;
    const unsigned any = (first | second) & DDP_NEEDS_LIBRARY;
    x->encode.dense = b->wire;
    model_bytes(x, both | any, ddp_block_exchange_sent_bytes(&s->spec, s->n, s->comm->size));
    return 0;
}

static void prepare_encode(struct host *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const bool divides =
        s->average && !ddp_compressor_is_lossless(x->compressor) && !x->compressor->global_topk;

    x->encode = (struct ddp_encode){
        .device = s->comm->device,
        .spec = &x->base.setup.spec,
        .in = s->data,
        .residual = x->residual.at,
        .n = s->n,
        .scale = divides ? 1 / (float)s->comm->size : 1,
        .state = x->state.at,
        .tensors = &x->base.setup.tensors,
        .ranks = s->comm->size,
        .average = s->average,
        .out = s->data,
        .dense = has_rounds(x->compressor) ? x->wire : NULL,
    };
    if (x->compressor->combine == DDP_COMBINE_GATHER) {
        unsigned char *wire = x->wire;
        x->encode.list.index = (uint32_t *)(void *)wire;
        x->encode.list.value = (float *)(void *)(wire + wire_bytes(&s->spec, s->n) / 2);
        x->args.rejected = x->residual.at;
        model_sparse(x);
    }
}

static void host_destroy(struct ddp_compressed *base)
{
    struct host *x = (struct host *)base;
    if (x == NULL)
        return;
    for (int r = 0; r < DDP_ROUNDS_MAX; r++)
        ddp_coll_plan_release(&x->round_plan[r]);
    ddp_coll_plan_release(&x->plan);
    ddp_block_exchange_close(&x->blocks);
    if (x->wire != NULL)
        ddp_comm_free(x->base.setup.comm, x->wire);
    free(x->tensors);
    free(x->scratch.raw);
    free(x->residual.raw);
    free(x->state.raw);
    free(x);
}

static int host_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                       struct ddp_err *err)
{
    struct host *x;
    int rc = DDP_NEW(&x, 1, err);

    if (rc == 0) {
        x->base.setup = *setup;
        x->compressor = setup->spec.compressor;
        x->base.counters.wire_counted = true;
        rc = prepare(x, err);
    }
    DDP_TRY_GOTO(ddp_comm_agree(setup->comm, rc, err), err_free);
    const size_t bytes =
        has_rounds(x->compressor) ? rounds_bytes(setup) : wire_bytes(&setup->spec, setup->n);
    if (!ddp_compressor_is_lossless(x->compressor) && !is_blocks(x->compressor))
        DDP_TRY_GOTO(
            ddp_comm_alloc(setup->comm, DDP_MAX(bytes, (size_t)DDP_CACHE_LINE), &x->wire, err),
            err_free);
    prepare_encode(x);
    if (is_blocks(x->compressor))
        DDP_TRY_GOTO(open_blocks(x, err), err_free);
    rc = x->compressor->combine == DDP_COMBINE_SUM ? prepare_dense(x, err)
         : has_rounds(x->compressor)               ? prepare_rounds(x, err)
                                                   : 0;
    DDP_TRY_GOTO(ddp_comm_agree(setup->comm, rc, err), err_free);
    *out = &x->base;
    return 0;

err_free:
    host_destroy(x != NULL ? &x->base : NULL);
    return rc;
}

/* Returns the key of the random numbers of a rank in this run. */
static uint64_t key_of(const struct host *x, int rank)
{
    return ddp_compress_key(x->base.setup.seed, rank, (uint64_t)x->base.counters.runs);
}

static void encode(struct host *x)
{
    struct ddp_encode *e = &x->encode;
    e->key = key_of(x, x->base.setup.comm->rank);
    ddp_feedback_encode(e);
    x->base.counters.values_total += (double)e->n;
    x->base.counters.values_sent +=
        (double)(x->compressor->combine == DDP_COMBINE_GATHER ? e->list.count : e->n);
}

static int exchange(struct host *x, struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    const uint64_t before = comm->wire_bytes;

    if (x->compressor->combine == DDP_COMBINE_SUM) {
        DDP_TRY(ddp_coll_run(comm, &x->plan, err));
    } else if (is_blocks(x->compressor)) {
        DDP_TRY(ddp_block_exchange_run(&x->blocks, key_of(x, comm->size), err));
    } else {
        x->args.mine = x->encode.list;
        DDP_TRY(ddp_sparse_run(comm, x->alg, &x->args, x->scratch.at, err));
    }
    if (isnan(x->mapped_bytes))
        x->base.counters.wire_bytes += (double)(comm->wire_bytes - before);
    else if (x->compressor->combine == DDP_COMBINE_GATHER)
        x->base.counters.wire_bytes += x->mapped_bytes * (double)x->encode.list.count;
    else
        x->base.counters.wire_bytes += x->mapped_bytes;
    return 0;
}

/* Number of elements that are decoded at a time, a multiple of every quantised block. Decoding
 * reads each element twice: to check for overflow, and to convert it. The second read is from the
 * cache. */
#define BLOCK ((size_t)4096)

/* Returns the mask of the exponent bits. In an infinity or a NaN all of these bits are 1. */
static uint16_t exponent_of(enum ddp_dtype dtype)
{
    return dtype == DDP_F16 ? 0x7c00 : 0x7f80;
}

static bool any_not_finite(const uint16_t *wire, size_t count, uint16_t exponent)
{
    unsigned found = 0;
    for (size_t i = 0; i < count; i++)
        found |= (wire[i] & exponent) == exponent;
    return found != 0;
}

/* Returns the number of elements that are infinite or NaN in the result but finite in data, the
 * input of this rank. */
static uint64_t count_overflows(const uint16_t *wire, const float *data, size_t count,
                                uint16_t exponent)
{
    uint64_t overflows = 0;
    for (size_t i = 0; i < count; i++)
        overflows += (wire[i] & exponent) == exponent && isfinite(data[i]);
    return overflows;
}

/* Decodes the sums. Counts the elements that are infinite or NaN in the result but finite in data,
 * the input of this rank. */
static void decode_blocks(struct host *x)
{
    float *data = x->base.setup.data, sum[BLOCK];

    for (size_t i = 0; i < x->base.setup.n; i += BLOCK) {
        const size_t count = DDP_MIN(BLOCK, x->base.setup.n - i);
        if (ddp_block_exchange_may_overflow(&x->blocks, i, count)) {
            ddp_block_exchange_decode(&x->blocks, i, count, sum);
            for (size_t j = 0; j < count; j++)
                x->base.counters.overflow_count += !isfinite(sum[j]) && isfinite(data[i + j]);
        }
        ddp_block_exchange_decode(&x->blocks, i, count, data + i);
    }
}

static void decode(struct host *x)
{
    const enum ddp_dtype dtype = x->compressor->wire_dtype;
    const uint16_t *wire = x->wire;
    float *data = x->base.setup.data;

    if (is_blocks(x->compressor))
        decode_blocks(x);
    if (x->compressor->combine != DDP_COMBINE_SUM || ddp_compressor_is_lossless(x->compressor))
        return;
    for (size_t i = 0; i < x->base.setup.n; i += BLOCK) {
        const size_t count = DDP_MIN(BLOCK, x->base.setup.n - i);
        const uint16_t exponent = exponent_of(dtype);
        if (any_not_finite(wire + i, count, exponent))
            x->base.counters.overflow_count += count_overflows(wire + i, data + i, count, exponent);
        x->base.setup.comm->device->grad->widen(data + i, wire + i, count, dtype);
    }
}

/* Runs one all-reduce of ROUNDS. Counts its bytes by the same rule as model_bytes. */
static int reduce(struct host *x, struct ddp_coll_plan *plan, struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    struct ddp_compressed_counters *counters = &x->base.counters;
    const uint64_t before = comm->wire_bytes;
    const double ranks = comm->size, count = (double)plan->args.count;
    const int64_t start = ddp_now_ns();
    DDP_TRY(ddp_coll_run(comm, plan, err));
    counters->exchange_ns += ddp_now_ns() - start;
    counters->values_sent += count;
    counters->wire_bytes += plan->alg->needs & DDP_NEEDS_MESSAGES && comm->size > 1
                                ? (double)(comm->wire_bytes - before)
                                : 2 * (ranks - 1) / ranks * (double)plan->bytes;
    return 0;
}

static int run_rounds(struct host *x, struct ddp_err *err)
{
    const struct ddp_compressor *c = x->compressor;
    struct ddp_compressed_counters *counters = &x->base.counters;
    const bool dense = counters->runs < x->base.setup.spec.dense_runs;
    counters->runs++;
    counters->values_total += (double)x->base.setup.n;
    if (dense)
        return reduce(x, &x->plan, err);
    for (int r = 0; r < c->rounds; r++) {
        const int64_t start = ddp_now_ns();
        c->round(&x->encode, r);
        counters->encode_ns += ddp_now_ns() - start;
        DDP_TRY(reduce(x, &x->round_plan[r], err));
    }
    const int64_t start = ddp_now_ns();
    c->round(&x->encode, c->rounds);
    counters->decode_ns += ddp_now_ns() - start;
    return 0;
}

static int host_run(struct ddp_compressed *base, struct ddp_err *err)
{
    struct host *x = (struct host *)base;
    if (has_rounds(x->compressor))
        return run_rounds(x, err);
    const int64_t start = ddp_now_ns();
    encode(x);
    const int64_t encoded = ddp_now_ns();
    DDP_TRY(exchange(x, err));
    const int64_t exchanged = ddp_now_ns();
    decode(x);
    x->base.counters.runs++;
    x->base.counters.encode_ns += encoded - start;
    x->base.counters.exchange_ns += exchanged - encoded;
    x->base.counters.decode_ns += ddp_now_ns() - exchanged;
    return 0;
}

static void host_counters(const struct ddp_compressed *x, struct ddp_compressed_counters *out)
{
    *out = x->counters;
}

static const float *host_residual(const struct ddp_compressed *x)
{
    return ((const struct host *)x)->residual.at;
}

static const char *host_algorithm(const struct ddp_compressed *base)
{
    const struct host *x = (const struct host *)base;
    if (is_blocks(x->compressor))
        return ddp_block_exchange_name(x->compressor);
    if (has_rounds(x->compressor))
        return x->round_plan[0].alg->name;
    return x->alg != NULL ? x->alg->name : x->plan.alg->name;
}

static void host_bytes(const struct ddp_compressed_setup *setup, int ranks, uint64_t *registered,
                       uint64_t *private_bytes)
{
    const struct ddp_compress_spec *spec = &setup->spec;
    const struct ddp_compressor *c = spec->compressor;
    const size_t n = setup->n;
    const struct ddp_comm comm = {.size = ranks}; /* scratch_bytes reads only the size. */
    uint64_t scratch = 0;

    if (c->combine == DDP_COMBINE_GATHER) {
        const size_t bound = c->bound(spec, n);
        const size_t most = c->fixed_count ? bound : DDP_MIN(bound, THRESHOLD_CHECKED(n));
        for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++)
            if ((*a)->selects == c->global_topk)
                scratch = DDP_MAX(scratch, (*a)->scratch_bytes(&comm, n, most));
    }
    *registered = is_blocks(c)    ? ddp_block_exchange_bytes(spec, n, ranks)
                  : has_rounds(c) ? rounds_bytes(setup)
                                  : wire_bytes(spec, n);
    *private_bytes = scratch + state_bytes(spec, n) +
                     (setup->feedback && !ddp_compressor_is_lossless(c) ? n * sizeof(float) : 0);
}

static const struct ddp_compressed_ops host_ops = {
    .create = host_create,
    .destroy = host_destroy,
    .run = host_run,
    .counters = host_counters,
    .residual = host_residual,
    .algorithm = host_algorithm,
    .bytes = host_bytes,
};

static const struct ddp_compressed_ops *ops_of(bool on_device)
{
    return on_device ? &ddp_compressed_on_device : &host_ops;
}

int ddp_compressed_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                          struct ddp_err *err)
{
    const struct ddp_compressed_ops *ops = ops_of(setup->device != NULL);
    DDP_TRY(ops->create(setup, out, err));
    (*out)->ops = ops;
    return 0;
}

void ddp_compressed_destroy(struct ddp_compressed *x)
{
    if (x != NULL)
        x->ops->destroy(x);
}

int ddp_compressed_run(struct ddp_compressed *x, struct ddp_err *err)
{
    return x->ops->run(x, err);
}

void ddp_compressed_counters(const struct ddp_compressed *x, struct ddp_compressed_counters *out)
{
    x->ops->counters(x, out);
}

const float *ddp_compressed_residual(const struct ddp_compressed *x)
{
    return x->ops->residual(x);
}

const float *ddp_compressed_rounds(const struct ddp_compressed *x, size_t *count)
{
    *count = x->rounds_count;
    return x->rounds;
}

const char *ddp_compressed_algorithm(const struct ddp_compressed *x)
{
    return x->ops->algorithm(x);
}

void ddp_compressed_bytes(const struct ddp_compressed_setup *setup, int ranks, uint64_t *registered,
                          uint64_t *private_bytes)
{
    ops_of(setup->device != NULL)->bytes(setup, ranks, registered, private_bytes);
}
