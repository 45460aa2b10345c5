/* Compressed all-reduces of buckets in device memory (compressed.h).
 *
 * 16-bit compressors convert the bucket, all-reduce it and convert it back. `none` all-reduces in
 * place. Sparse compressors send lists of indices and values, 8 bytes per entry. The entries of
 * lists are summed in rank order. Lists are exchanged in one of three ways:
 *
 * 1. top-K: all lists have the same length, so one all-gather exchanges them. A global top-K
 * (oktopk) on at most two ranks uses the same all-gather. Each rank then selects the k largest sums
 * itself.
 *
 * 2. threshold: the ranks first exchange the lengths of their lists. Then each rank sends its list
 * to all other ranks. The index range has DDP_LIST_BLOCKS blocks, and the memory for a received
 * list has room for the entries of one block. Longer lists are sent in several rounds. A round
 * sends as many blocks as fit into this memory.
 *
 * 3. oktopk on three or more ranks: as in sparse_oktopk.c, each rank sums one region of the
 * indices, and the ranks agree on the k largest sums of all regions. Here each call selects exactly
 * k sums, or all sums that are not 0 if these are fewer. A rank sends at most 24k(P - 1)/P bytes of
 * entries, and at most 528(P - 1) bytes of lengths, digits and regions.
 *
 * With oktopk, a rank's residual gets back the entries whose sums were not selected.
 *
 * The host waits for the stream before each exchange, because it reads the lengths of lists and
 * because the communicator has a stream of its own. If `timed` is set, the host also waits after
 * decoding. A deferred exchange (comm.h) of 16-bit values waits for nothing, because all of its
 * work is on the communicator's stream. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/sparse/sparse_coll.h"
#include "comm/backend.h"
#include "exchange/aggregate.h"
#include "exchange/compressed_device_impl.inc.h"

/* Returns the largest number of entries of a rank's list. */
static size_t capacity_of(const struct ddp_compress_spec *spec, size_t n)
{
    return spec->compressor->combine == DDP_COMBINE_GATHER ? spec->compressor->bound(spec, n) : 0;
}

/* Returns the number of entries for which `gathered` has memory per rank. */
static size_t room_of(const struct ddp_compress_spec *spec, size_t n)
{
    return spec->compressor->fixed_count ? capacity_of(spec, n)
                                         : (n + DDP_LIST_BLOCKS - 1) / DDP_LIST_BLOCKS;
}

/* Returns the bytes of a list of `capacity` entries. */
static size_t list_bytes(size_t capacity)
{
    return ddp_round_to_line(DDP_LIST_HEAD_BYTES + capacity * DDP_LIST_ENTRY_BYTES);
}

/* Returns the bytes of `gathered`. */
static size_t gathered_bytes(size_t room, int ranks)
{
    return ddp_round_to_line(DDP_MAX(room, (size_t)1) * (size_t)ranks * DDP_LIST_ENTRY_BYTES);
}

/* Returns the bytes of each of the arrays `out` and `in`. */
static size_t words_bytes(int ranks)
{
    return (size_t)ranks * DDP_LIST_WORDS * sizeof(uint32_t);
}

/* Rounds up as ddp_comm_alloc does (comm.h). */
static uint64_t block_bytes(uint64_t bytes)
{
    const uint64_t huge = (uint64_t)2 << 20, unit = bytes >= 2 * huge ? huge : 4096;
    return (bytes + unit - 1) / unit * unit + (unit == huge ? huge : 0);
}

static void device_bytes(const struct ddp_compressed_setup *setup, int ranks, uint64_t *registered,
                         uint64_t *private_bytes)
{
    const struct ddp_compress_spec *spec = &setup->spec;
    const struct ddp_compressor *c = spec->compressor;
    const size_t n = setup->n;
    *private_bytes = 0;
    if (ddp_compressor_is_lossless(c))
        *registered = 0;
    else if (c->combine == DDP_COMBINE_SUM)
        *registered = block_bytes(ddp_round_to_line(n * ddp_dtype_size(c->wire_dtype)));
    else
        *registered = block_bytes(list_bytes(capacity_of(spec, n))) +
                      block_bytes(gathered_bytes(room_of(spec, n), ranks)) +
                      2 * block_bytes(words_bytes(ranks));
}

static size_t topk_of(const struct ddp_device_exchange *x)
{
    return x->base.setup.spec.compressor->fixed_count ? x->capacity : 0;
}

static int no_memory(const struct ddp_device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    return ddp_fail(err, DDP_ENOMEM, "device '%s' has no memory to compress %zu elements",
                    s->device->name, s->n);
}

/* Allocates the memory that only sparse exchanges need, except registered memory. */
static int prepare_sparse(struct ddp_device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const size_t ranks = (size_t)s->comm->size, bounds = DDP_MAX(ranks, (size_t)DDP_LIST_BLOCKS);
    const bool chooses = s->spec.compressor->global_topk && !x->regions;
    x->scratch_bytes = s->device->stream_kernels->select_scratch(s->n, topk_of(x));
    if (x->scratch_bytes > 0)
        x->scratch = s->device->alloc(x->scratch_bytes);
    if (chooses)
        x->chosen = s->device->alloc(list_bytes(x->capacity));
    x->host_bytes =
        sizeof *x->host + (ranks * (DDP_LIST_WORDS + 2) + 2 * bounds) * sizeof(uint32_t);
    x->host = s->device->streams->host_alloc(x->host_bytes);
    if ((x->scratch_bytes > 0 && x->scratch == NULL) || x->host == NULL ||
        (chooses && x->chosen == NULL))
        return no_memory(x, err);
    x->host->got = (uint32_t *)(void *)(x->host + 1);
    x->host->given = x->host->got + ranks * DDP_LIST_WORDS;
    x->host->current = x->host->given + ranks;
    x->host->bound = x->host->current + ranks;
    x->host->before = x->host->bound + bounds;
    DDP_TRY(DDP_NEW(&x->message, 2 * ranks, err));
    DDP_TRY(DDP_NEW(&x->round, ranks, err));
    DDP_TRY(DDP_NEW(&x->selection, 3 * ranks, err));
    return DDP_NEW(&x->region, ranks + 1, err);
}

/* Does the local part of create, before any communication. */
static int prepare(struct ddp_device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_device *d = s->device;
    const struct ddp_compressor *c = s->spec.compressor;
    if (c->combine == DDP_COMBINE_BLOCKS || c->combine == DDP_COMBINE_ROUNDS)
        return ddp_fail(err, DDP_EUNAVAIL, "device '%s' does not have the compressor '%s'", d->name,
                        c->name);
    x->sparse = c->combine == DDP_COMBINE_GATHER;
    x->lossless = ddp_compressor_is_lossless(c);
    x->regions = c->global_topk && s->comm->size > 2;
    x->gathers = x->sparse && c->fixed_count && !x->regions;
    x->capacity = capacity_of(&s->spec, s->n);
    x->room = x->sparse ? room_of(&s->spec, s->n) : 0;
    x->wire_bytes = x->sparse ? list_bytes(x->capacity)
                              : ddp_round_to_line(s->n * ddp_dtype_size(c->wire_dtype));
    if (x->sparse)
        DDP_TRY(prepare_sparse(x, err));
    x->tally = d->alloc(sizeof *x->tally);
    if (s->feedback && !x->lossless)
        x->residual = d->alloc(s->n * sizeof(float));
    if (x->tally == NULL || (s->feedback && !x->lossless && x->residual == NULL))
        return no_memory(x, err);
    d->streams->fill(s->stream, x->tally, 0, sizeof *x->tally);
    if (x->residual != NULL)
        d->streams->fill(s->stream, x->residual, 0, s->n * sizeof(float));
    return 0;
}

/* Plans the all-gather of lists of equal length, or the all-reduce of arrays. */
static int prepare_plan(struct ddp_device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const double ranks = s->comm->size;
    const size_t list = x->capacity * DDP_LIST_ENTRY_BYTES;
    const enum ddp_dtype dtype = s->spec.compressor->wire_dtype;
    struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                 .send = x->lossless ? s->data : x->wire,
                                 .recv = x->lossless ? s->data : x->wire,
                                 .count = s->n,
                                 .dtype = dtype,
                                 .op = x->lossless && s->average ? DDP_AVG : DDP_SUM};
    const struct ddp_coll_alg *alg = NULL;
    DDP_TRY(x->sparse ? ddp_sparse_named(s->algorithm, s->spec.compressor->global_topk, true,
                                         &x->alg, err)
                      : ddp_allreduce_find(s->algorithm, &alg, err));
    if (x->sparse && !x->gathers)
        return 0;
    if (x->sparse)
        args = (struct ddp_coll_args){.coll = DDP_ALL_GATHER,
                                      .send = ddp_device_list_at(x, x->wire).index,
                                      .recv = x->gathered,
                                      .count = list,
                                      .dtype = DDP_U8};
    x->wire_per_run = x->sparse
                          ? (ranks - 1) * (double)list
                          : 2 * (ranks - 1) / ranks * (double)s->n * (double)ddp_dtype_size(dtype);
    return ddp_coll_plan_init(&x->plan, s->comm, alg, &args, err);
}

static void device_destroy(struct ddp_compressed *base)
{
    struct ddp_device_exchange *x = (struct ddp_device_exchange *)base;
    struct ddp_err ignored = DDP_ERR_INIT;
    if (x == NULL)
        return;
    const struct ddp_compressed_setup *s = &x->base.setup;
    (void)!s->device->streams->wait(s->stream, &ignored);
    ddp_coll_plan_release(&x->plan);
    if (x->in != NULL)
        ddp_comm_free(s->comm, x->in);
    if (x->out != NULL)
        ddp_comm_free(s->comm, x->out);
    if (x->gathered != NULL)
        ddp_comm_free(s->comm, x->gathered);
    if (x->wire != NULL)
        ddp_comm_free(s->comm, x->wire);
    if (x->residual != NULL)
        s->device->free(x->residual, s->n * sizeof(float));
    if (x->chosen != NULL)
        s->device->free(x->chosen, list_bytes(x->capacity));
    if (x->scratch != NULL)
        s->device->free(x->scratch, x->scratch_bytes);
    if (x->host != NULL)
        s->device->streams->host_free(x->host, x->host_bytes);
    if (x->tally != NULL)
        s->device->free(x->tally, sizeof *x->tally);
    free(x->message);
    free(x->round);
    free(x->region);
    free(x->selection);
    free(x);
}

/* Allocates the registered memory that only sparse exchanges need. Collective. */
static int alloc_sparse(struct ddp_device_exchange *x, struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    void *memory;
    DDP_TRY(ddp_comm_alloc(comm, gathered_bytes(x->room, comm->size), &x->gathered, err));
    DDP_TRY(ddp_comm_alloc(comm, words_bytes(comm->size), &memory, err));
    x->out = memory;
    DDP_TRY(ddp_comm_alloc(comm, words_bytes(comm->size), &memory, err));
    x->in = memory;
    return 0;
}

static int device_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                         struct ddp_err *err)
{
    struct ddp_comm *comm = setup->comm;
    struct ddp_device_exchange *x;
    int rc = DDP_NEW(&x, 1, err);
    if (rc == 0) {
        x->base.setup = *setup;
        rc = prepare(x, err);
    }
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_free);
    if (!x->lossless)
        DDP_TRY_GOTO(ddp_comm_alloc(comm, x->wire_bytes, &x->wire, err), err_free);
    if (x->sparse)
        DDP_TRY_GOTO(alloc_sparse(x, err), err_free);
    /* Initialise the whole buffer, including the part behind the last value. */
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

/* Scales data, adds the residual if there is one, and converts the sums to 16 bits. */
static void encode_narrow(struct ddp_device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const enum ddp_dtype type = s->spec.compressor->wire_dtype;
    const double argument = s->spec.argument;
    const double share = ddp_device_share(x);
    float clip = 0; /* no clip */
    /* The clip limit is for the gradient before it is scaled, as in comp_fp16.c. The kernel clips
     * the scaled gradient, so the limit is multiplied by the same factor. The product must not
     * underflow to 0, because 0 means no limit. */
    if (!isnan(argument))
        clip = fmaxf((float)fmin(argument * share, ddp_compress_f16_limit(share)), FLT_TRUE_MIN);
    if (x->residual == NULL) {
        k->narrow(s->stream, x->wire, s->data, s->n, type, ddp_device_share(x), clip, NULL);
        return;
    }
    ddp_device_divide(x, s->data, s->n);
    ddp_device_add(x, s->data, x->residual);
    k->narrow(s->stream, x->wire, s->data, s->n, type, 1, clip, NULL);
    k->narrow_residual(s->stream, x->residual, s->data, x->wire, s->n, type);
}

static void encode_list(struct ddp_device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const struct ddp_stream_select select = {.in = s->data,
                                             .residual = x->residual,
                                             .n = s->n,
                                             .out = ddp_device_list_at(x, x->wire),
                                             .scratch = x->scratch,
                                             .scratch_bytes = x->scratch_bytes};
    if (topk_of(x) > 0)
        k->select_topk(s->stream, &select, topk_of(x));
    else
        k->select_threshold(s->stream, &select, (float)s->spec.argument);
    /* A global top-K scales the sums instead, because some entries return to the unscaled residual.
     */
    if (!s->spec.compressor->global_topk)
        ddp_device_divide(x, select.out.value, x->capacity);
    k->add_count(s->stream, &x->tally->sent, select.out.count);
}

/* On entry data holds the sums over all ranks. On return data holds the k largest sums, scaled, and
 * 0 elsewhere. The residual, if there is one, gets back the entries that this rank sent for the
 * other sums. */
static void choose(struct ddp_device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const struct ddp_stream_list mine = ddp_device_list_at(x, x->wire);
    const struct ddp_stream_select select = {.in = s->data,
                                             .n = s->n,
                                             .out = ddp_device_list_at(x, x->chosen),
                                             .scratch = x->scratch,
                                             .scratch_bytes = x->scratch_bytes};
    k->select_topk(s->stream, &select, topk_of(x));
    s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    if (x->residual != NULL) {
        k->scatter(s->stream, s->data, &mine);
        k->scatter_zero(s->stream, s->data, &select.out);
        ddp_device_add(x, x->residual, s->data);
        s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    }
    ddp_device_divide(x, select.out.value, x->capacity);
    k->scatter(s->stream, s->data, &select.out);
}

static void decode(struct ddp_device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    if (x->lossless || s->n == 0)
        return;
    if (!x->sparse) {
        s->device->stream_kernels->widen_back(s->stream, s->data, x->wire, s->n,
                                              s->spec.compressor->wire_dtype, &x->tally->overflows);
        return;
    }
    if (x->regions) {
        ddp_device_regions_store(x);
        return;
    }
    ddp_device_lists_sum(x);
    if (x->chosen != NULL)
        choose(x);
}

/* Prepares ddp_device_lists_sum for lists that all have `capacity` entries. */
static void note_gathered(struct ddp_device_exchange *x)
{
    x->first_block = 0;
    for (int r = 0; r < x->base.setup.comm->size; r++)
        x->host->current[r] = (uint32_t)x->capacity;
}

static int exchange(struct ddp_device_exchange *x, struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    const size_t n = x->base.setup.n;
    if (x->gathers)
        note_gathered(x);
    if (x->gathers || !x->sparse)
        return ddp_coll_run(comm, &x->plan, err);
    if (n == 0)
        return 0;
    const uint64_t before = comm->wire_bytes;
    const uint64_t index = ddp_comm_enter(comm, DDP_ALLREDUCE, DDP_F32, n * sizeof(float));
    const int rc =
        x->regions ? ddp_device_regions_exchange(x, err) : ddp_device_rounds_exchange(x, err);
    ddp_flight_leave(comm->flight, index, rc != 0);
    x->base.counters.wire_bytes += (double)(comm->wire_bytes - before);
    return rc;
}

static int device_run(struct ddp_compressed *base, struct ddp_err *err)
{
    struct ddp_device_exchange *x = (struct ddp_device_exchange *)base;
    const struct ddp_compressed_setup *s = &x->base.setup;
    const int64_t begin = ddp_now_ns();
    if (x->sparse && s->n > 0)
        encode_list(x);
    else if (!x->sparse && !x->lossless)
        encode_narrow(x);
    if (!s->comm->deferred)
        DDP_TRY(s->device->streams->wait(s->stream, err));
    const int64_t encoded = s->timed ? ddp_now_ns() : begin;
    DDP_TRY(exchange(x, err));
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
    const struct ddp_device_exchange *x = (const struct ddp_device_exchange *)base;
    const struct ddp_compressed_setup *s = &x->base.setup;
    struct ddp_err ignored = DDP_ERR_INIT;
    struct ddp_device_tally tally = {0};
    *out = x->base.counters;
    if (s->device->streams->wait(s->stream, &ignored) == 0)
        s->device->copy(&tally, x->tally, sizeof tally);
    out->overflow_count = tally.overflows;
    out->values_sent = x->sparse ? (double)tally.sent : (double)s->n * (double)out->runs;
    out->values_total = (double)s->n * (double)out->runs;
    out->wire_counted = x->sparse && !x->gathers;
    if (!out->wire_counted) /* modelled as a ring */
        out->wire_bytes = x->wire_per_run * (double)out->runs;
}

static const float *device_residual(const struct ddp_compressed *x)
{
    return ((const struct ddp_device_exchange *)x)->residual;
}

static const char *device_algorithm(const struct ddp_compressed *base)
{
    const struct ddp_device_exchange *x = (const struct ddp_device_exchange *)base;
    return x->sparse ? x->alg->name : x->plan.alg->name;
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
