/* Creates and destroys compressed all-reduces. compressed.c runs them. */
#include "exchange/compressed_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The list length of the compressor `threshold` is not known in advance. THRESHOLD_EXPECTED is the
 * length for which `auto` chooses an algorithm. THRESHOLD_CHECKED is the length that memory checks
 * assume. */
#define THRESHOLD_EXPECTED(n) ((n) / 100 + 1)
#define THRESHOLD_CHECKED(n)  ((n) / 16 + 1)

static int block_init(struct ddp_compressed_block *b, size_t bytes, struct ddp_err *err)
{
    if (bytes == 0)
        return 0;
    b->raw = bytes < SIZE_MAX - DDP_CACHE_LINE ? calloc(1, bytes + DDP_CACHE_LINE) : NULL;
    if (b->raw == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu bytes of a compressed exchange", bytes);
    b->at = (void *)(((uintptr_t)b->raw + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE);
    return 0;
}

/* Returns the registered bytes of the encoded form. A list holds all indices, then all values. The
 * values begin at a new cache line. */
static size_t wire_bytes(const struct ddp_compress_spec *spec, size_t n)
{
    const struct ddp_compressor *c = spec->compressor;
    if (c->combine == DDP_COMBINE_SUM)
        return ddp_compressor_is_lossless(c) ? 0 : n * ddp_dtype_size(c->wire_dtype);
    return 2 * ddp_round_to_line(c->bound(spec, n) * sizeof(float));
}

static size_t state_bytes(const struct ddp_compress_spec *spec, size_t n)
{
    const struct ddp_compressor *c = spec->compressor;
    return c->state_bytes != NULL ? c->state_bytes(spec, n) : 0;
}

static int unknown_algorithm(const char *name, bool sparse, bool selects, struct ddp_err *err)
{
    char legal[256] = "auto";
    const struct ddp_sparse_alg *const *s = ddp_sparse_algorithms();
    const struct ddp_coll_alg *const *a = ddp_coll_algorithms();

    for (; sparse && *s != NULL; s++)
        if ((*s)->selects == selects)
            snprintf(legal + strlen(legal), sizeof legal - strlen(legal), ", %s", (*s)->name);
    for (; !sparse && *a != NULL; a++)
        if ((*a)->coll == DDP_ALLREDUCE)
            snprintf(legal + strlen(legal), sizeof legal - strlen(legal), ", %s", (*a)->name);
    return ddp_fail(err, DDP_EUSAGE, "unknown algorithm '%s' for a %s all-reduce; legal: %s", name,
                    sparse ? "sparse" : "dense", legal);
}

static bool is_auto(const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0;
}

/* Chooses the sparse algorithm and checks that it supports the setup. */
static int choose_sparse(struct ddp_compressed *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->setup;
    const bool selects = x->compressor->global_topk;
    const size_t most = x->args.most;

    if (is_auto(s->algorithm) && !selects) {
        const size_t expected =
            x->compressor->fixed_count ? most : DDP_MIN(most, THRESHOLD_EXPECTED(s->n));
        x->alg = ddp_sparse_auto(s->comm, s->n, expected, err);
        return x->alg != NULL ? 0 : DDP_EUNAVAIL;
    }
    const char *name = is_auto(s->algorithm) ? "oktopk" : s->algorithm;
    x->alg = ddp_sparse_find(name);
    if (x->alg == NULL || x->alg->selects != selects)
        return unknown_algorithm(name, true, selects, err);
    return x->alg->supports(s->comm, s->n, most, err);
}

static int check_dense(const struct ddp_compressed *x, struct ddp_err *err)
{
    const char *name = x->setup.algorithm;
    if (!is_auto(name) && ddp_coll_find(DDP_ALLREDUCE, name) == NULL)
        return unknown_algorithm(name, false, false, err);
    return 0;
}

/* Does the local part of create, before any communication. */
static int prepare(struct ddp_compressed *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->setup;
    const struct ddp_compress_spec *spec = &x->setup.spec;

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
    } else {
        DDP_TRY(check_dense(x, err));
    }
    DDP_TRY(block_init(&x->state, state_bytes(spec, s->n), err));
    if (s->feedback && !ddp_compressor_is_lossless(x->compressor))
        DDP_TRY(block_init(&x->residual, DDP_MAX(s->n, (size_t)1) * sizeof(float), err));
    return 0;
}

/* Sets mapped_bytes, the bytes that other ranks receive from this rank without a message.
 * Algorithms without messages and calls of the backend's library are assumed to move as many bytes
 * as a ring. */
static void model_dense(struct ddp_compressed *x)
{
    const double ranks = x->setup.comm->size;
    const unsigned needs = x->plan.alg->needs;

    x->counters.wire_counted = !(needs & DDP_NEEDS_LIBRARY);
    x->mapped_bytes = (needs & DDP_NEEDS_MESSAGES) && ranks > 1
                          ? NAN
                          : 2 * (ranks - 1) / ranks * (double)x->plan.bytes;
}

/* Sets mapped_bytes per entry. Every other rank reads all entries of this rank, 8 bytes each. */
static void model_sparse(struct ddp_compressed *x)
{
    const int ranks = x->setup.comm->size;
    struct ddp_coll_cost cost;
    bool exact;

    x->alg->cost(ranks, x->args.n, x->args.most, &cost, &exact);
    x->mapped_bytes = cost.sent_bytes > 0 ? NAN : 8.0 * (ranks - 1);
}

/* Plans the all-reduce of the 16-bit buffer, or of data itself if nothing is encoded. */
static int prepare_dense(struct ddp_compressed *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->setup;
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
    const struct ddp_coll_alg *alg =
        is_auto(s->algorithm) ? NULL : ddp_coll_find(DDP_ALLREDUCE, s->algorithm);

    x->encode.dense = wire;
    DDP_TRY(ddp_coll_plan_init(&x->plan, s->comm, alg, &args, err));
    model_dense(x);
    return 0;
}

static void prepare_encode(struct ddp_compressed *x)
{
    const struct ddp_compressed_setup *s = &x->setup;
    const bool divides =
        s->average && !ddp_compressor_is_lossless(x->compressor) && !x->compressor->global_topk;

    x->encode = (struct ddp_encode){
        .device = s->comm->device,
        .spec = &x->setup.spec,
        .in = s->data,
        .residual = x->residual.at,
        .n = s->n,
        .scale = divides ? 1 / (float)s->comm->size : 1,
        .state = x->state.at,
    };
    if (x->compressor->combine == DDP_COMBINE_GATHER) {
        unsigned char *wire = x->wire;
        x->encode.list.index = (uint32_t *)(void *)wire;
        x->encode.list.value = (float *)(void *)(wire + wire_bytes(&s->spec, s->n) / 2);
        x->args.rejected = x->residual.at;
        model_sparse(x);
    }
}

int ddp_compressed_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                          struct ddp_err *err)
{
    struct ddp_compressed *x = ddp_calloc(1, sizeof *x);
    int rc = x != NULL ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for a compressed exchange");

    if (rc == 0) {
        x->setup = *setup;
        x->compressor = setup->spec.compressor;
        x->counters.wire_counted = true;
        rc = prepare(x, err);
    }
    DDP_TRY_GOTO(ddp_comm_agree(setup->comm, rc, err), err_free);
    const size_t bytes = wire_bytes(&setup->spec, setup->n);
    if (!ddp_compressor_is_lossless(x->compressor))
        DDP_TRY_GOTO(
            ddp_comm_alloc(setup->comm, DDP_MAX(bytes, (size_t)DDP_CACHE_LINE), &x->wire, err),
            err_free);
    prepare_encode(x);
    rc = x->compressor->combine == DDP_COMBINE_SUM ? prepare_dense(x, err) : 0;
    DDP_TRY_GOTO(ddp_comm_agree(setup->comm, rc, err), err_free);
    *out = x;
    return 0;

err_free:
    ddp_compressed_destroy(x);
    return rc;
}

void ddp_compressed_destroy(struct ddp_compressed *x)
{
    if (x == NULL)
        return;
    ddp_coll_plan_release(&x->plan);
    if (x->wire != NULL)
        ddp_comm_free(x->setup.comm, x->wire);
    free(x->scratch.raw);
    free(x->residual.raw);
    free(x->state.raw);
    free(x);
}

void ddp_compressed_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks, bool feedback,
                          uint64_t *registered, uint64_t *private_bytes)
{
    const struct ddp_compressor *c = spec->compressor;
    const struct ddp_comm comm = {.size = ranks}; /* scratch_bytes reads only the size. */
    uint64_t scratch = 0;

    if (c->combine == DDP_COMBINE_GATHER) {
        const size_t bound = c->bound(spec, n);
        const size_t most = c->fixed_count ? bound : DDP_MIN(bound, THRESHOLD_CHECKED(n));
        for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++)
            if ((*a)->selects == c->global_topk)
                scratch = DDP_MAX(scratch, (*a)->scratch_bytes(&comm, n, most));
    }
    *registered = wire_bytes(spec, n);
    *private_bytes = scratch + state_bytes(spec, n) +
                     (feedback && !ddp_compressor_is_lossless(c) ? n * sizeof(float) : 0);
}
