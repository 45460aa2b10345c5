/* Compressed all-reduces of buckets in device memory (compressed.h).
 *
 * 16-bit compressors convert the bucket, all-reduce it and convert it back. `none` all-reduces in
 * place. Sparse compressors send lists of indices and values, 8 bytes per entry. Every element is
 * summed in rank order:
 *
 * - top-K: all lists have the same length, so one all-gather exchanges them. A global top-K
 * (oktopk) on at most two ranks also does this. Each rank then selects the k largest sums itself.
 *
 * - threshold: the ranks first exchange the lengths of their lists. Then each rank sends its list
 *   to all other ranks. The index range has BLOCKS blocks, and the memory for a received list has
 *   room for the entries of one block. Longer lists are sent in several rounds. A round has as many
 *   blocks as fit.
 *
 * - oktopk on three or more ranks: as in sparse_oktopk.c, each rank sums one region of the indices,
 *   and the ranks agree on the k largest sums of all regions. Here each call selects exactly k
 * sums, or all sums that are not 0 if these are fewer. A rank sends at most 24k(P - 1)/P bytes of
 *   entries. The numbers that are sent in addition take at most 536(P - 1) bytes.
 *
 * What a rank sent for sums that were not selected returns to its residual. The host reads the
 * lengths of lists. Therefore it waits for the stream before each exchange, and also after decoding
 * if `timed` is set. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/sparse/sparse_coll.h"
#include "coll/pattern.h"
#include "comm/backend.h"
#include "device/stream_kernels.h"
#include "exchange/aggregate.h"
#include "exchange/compressed_impl.h"

/* A list begins with its length, which has a cache line of its own. */
#define HEAD_BYTES ((size_t)DDP_CACHE_LINE)

/* Bytes of the index and the value of an entry. */
#define ENTRY_BYTES (sizeof(uint32_t) + sizeof(float))

/* Number of blocks of the index range for a threshold. */
#define BLOCKS 8
/* Number of calls of oktopk that use the same regions. */
#define REGION_STEPS 64
/* Number of bits of a magnitude that one round of the selection handles. */
#define DIGIT_BITS 4
/* Largest number of words that a rank sends to another rank in exchange_words: the counts of all
 * digits, and the number of words that it has sent so far. */
#define WORDS (DDP_DIGITS + 1)

/* Counters in device memory. */
struct tally {
    uint64_t overflows, sent;
};

/* Memory that the host and the device access. The host writes to it only while no kernel uses it.
 * The arrays lie behind this struct. */
struct words {
    uint32_t *got;     /* [P * WORDS]: the words that arrived */
    uint32_t *given;   /* [P]: words to send */
    uint32_t *current; /* [P]: the length of each rank's list in the current round */
    uint32_t *bound;   /* [larger of P and BLOCKS]: bounds of split */
    uint32_t *before;  /* [larger of P and BLOCKS]: results of split */
};

/* The entries of this rank's list that it sends to a rank in the current round. */
struct round {
    size_t begin, count;
};

struct device_exchange {
    struct ddp_compressed base;
    bool sparse, lossless;
    bool gathers; /* one all-gather exchanges the lists */
    bool regions; /* oktopk on three or more ranks */
    /* capacity: largest number of entries of this rank's list. room: number of entries for which
     * `gathered` has memory per rank. */
    size_t capacity, room, wire_bytes;
    /* wire: 16-bit values [n], or this rank's list (length, indices, values). NULL if data is sent
     * unchanged. gathered: the lists of all ranks, or NULL if nothing is sparse. chosen: the list
     * that a global top-K selects on at most two ranks, else NULL. */
    void *wire, *gathered, *chosen;
    /* Device memory of exchange_words, each [P * WORDS]: the words to send, and those that
     * arrived. */
    uint32_t *out, *in;
    struct words *host;
    size_t host_bytes;
    struct ddp_comm_message *message; /* [2 P] */
    struct round *round;              /* [P] */
    size_t *region;                   /* [P + 1]: region r is [region[r], region[r + 1]) */
    uint32_t *selection;              /* [3 P]: memory of struct selection */
    int first_block;                  /* the first block of the current round */
    int64_t step;
    float *residual;
    void *scratch;
    size_t scratch_bytes;
    struct tally *tally;
    struct ddp_coll_plan plan;
    double wire_per_run; /* bytes that the other ranks receive from this rank per run */
};

/* Returns the largest number of entries of a rank's list. */
static size_t capacity_of(const struct ddp_compress_spec *spec, size_t n)
{
    return spec->compressor->combine == DDP_COMBINE_GATHER ? spec->compressor->bound(spec, n) : 0;
}

/* Returns the number of entries for which `gathered` has memory per rank. */
static size_t room_of(const struct ddp_compress_spec *spec, size_t n)
{
    return spec->compressor->fixed_count ? capacity_of(spec, n) : (n + BLOCKS - 1) / BLOCKS;
}

/* Returns the bytes of a list of `capacity` entries. */
static size_t list_bytes(size_t capacity)
{
    return ddp_round_to_line(HEAD_BYTES + capacity * ENTRY_BYTES);
}

/* Returns the bytes of `gathered`. */
static size_t gathered_bytes(size_t room, int ranks)
{
    return ddp_round_to_line(DDP_MAX(room, (size_t)1) * (size_t)ranks * ENTRY_BYTES);
}

/* Returns the bytes of `out`, and of `in`. */
static size_t words_bytes(int ranks)
{
    return (size_t)ranks * WORDS * sizeof(uint32_t);
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
    (void)feedback;
    const struct ddp_compressor *c = spec->compressor;
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

/* Returns the list that is stored at `memory`. */
static struct ddp_stream_list list_at(const struct device_exchange *x, void *memory)
{
    unsigned char *at = memory;
    return (struct ddp_stream_list){
        .index = (uint32_t *)(void *)(at + HEAD_BYTES),
        .value = (float *)(void *)(at + HEAD_BYTES + x->capacity * sizeof(uint32_t)),
        .count = (uint32_t *)(void *)at,
        .capacity = x->capacity};
}

/* Returns the list of rank r in `gathered`, which has `count` indices and then the values. The
 * kernels read its length from x->host->current[r]. */
static struct ddp_stream_list list_of(const struct device_exchange *x, int r, size_t count)
{
    uint32_t *at = (uint32_t *)x->gathered + 2 * (size_t)r * x->room;
    return (struct ddp_stream_list){.index = at,
                                    .value = (float *)(void *)(at + count),
                                    .count = &x->host->current[r],
                                    .capacity = count};
}

static size_t topk_of(const struct device_exchange *x)
{
    return x->base.setup.spec.compressor->fixed_count ? x->capacity : 0;
}

static int no_memory(const struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    return ddp_fail(err, DDP_ENOMEM, "no memory of device '%s' to compress %zu elements",
                    s->device->name, s->n);
}

/* Allocates the memory that only sparse exchanges need, except registered memory. */
static int prepare_sparse(struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const size_t ranks = (size_t)s->comm->size, bounds = DDP_MAX(ranks, (size_t)BLOCKS);
    const bool chooses = s->spec.compressor->global_topk && !x->regions;
    x->scratch_bytes = s->device->stream_kernels->select_scratch(s->n, topk_of(x));
    if (x->scratch_bytes > 0)
        x->scratch = s->device->alloc(x->scratch_bytes);
    if (chooses)
        x->chosen = s->device->alloc(list_bytes(x->capacity));
    x->host_bytes = sizeof *x->host + (ranks * (WORDS + 2) + 2 * bounds) * sizeof(uint32_t);
    x->host = s->device->streams->host_alloc(x->host_bytes);
    if ((x->scratch_bytes > 0 && x->scratch == NULL) || x->host == NULL ||
        (chooses && x->chosen == NULL))
        return no_memory(x, err);
    x->host->got = (uint32_t *)(void *)(x->host + 1);
    x->host->given = x->host->got + ranks * WORDS;
    x->host->current = x->host->given + ranks;
    x->host->bound = x->host->current + ranks;
    x->host->before = x->host->bound + bounds;
    DDP_TRY(DDP_NEW(&x->message, 2 * ranks, err));
    DDP_TRY(DDP_NEW(&x->round, ranks, err));
    DDP_TRY(DDP_NEW(&x->selection, 3 * ranks, err));
    return DDP_NEW(&x->region, ranks + 1, err);
}

/* Does the local part of create, before any communication. */
static int prepare(struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_device *d = s->device;
    const struct ddp_compressor *c = s->spec.compressor;
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

/* Returns the name of the sparse algorithm, as in sparse_list.h. */
static const char *sparse_name(const struct device_exchange *x)
{
    return x->base.setup.spec.compressor->global_topk ? "oktopk" : "allgather";
}

/* Accepts only the algorithms of this file. The other algorithms of sparse_coll.h merge lists on
 * the CPU. */
static int check_sparse(const struct device_exchange *x, const char *name, struct ddp_err *err)
{
    const bool selects = x->base.setup.spec.compressor->global_topk;
    if (name == NULL || strcmp(name, "auto") == 0 || strcmp(name, sparse_name(x)) == 0)
        return 0;
    const struct ddp_sparse_alg *alg = ddp_sparse_find(name);
    if (alg == NULL || alg->selects != selects)
        return ddp_fail(err, DDP_EUSAGE,
                        "unknown algorithm '%s' for a sparse all-reduce on a device; legal: auto, "
                        "%s",
                        name, sparse_name(x));
    return ddp_fail(err, DDP_EUNAVAIL, "algorithm '%s' does not run on a device; use 'auto'", name);
}

/* Plans the all-gather of lists of equal length, or the all-reduce of arrays. */
static int prepare_plan(struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const double ranks = s->comm->size;
    const size_t list = x->capacity * ENTRY_BYTES;
    const enum ddp_dtype dtype = s->spec.compressor->wire_dtype;
    struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                 .send = x->lossless ? s->data : x->wire,
                                 .recv = x->lossless ? s->data : x->wire,
                                 .count = s->n,
                                 .dtype = dtype,
                                 .op = x->lossless && s->average ? DDP_AVG : DDP_SUM};
    const struct ddp_coll_alg *alg = NULL;
    DDP_TRY(x->sparse ? check_sparse(x, s->algorithm, err)
                      : ddp_allreduce_find(s->algorithm, &alg, err));
    if (x->sparse && !x->gathers)
        return 0;
    if (x->sparse)
        args = (struct ddp_coll_args){.coll = DDP_ALL_GATHER,
                                      .send = list_at(x, x->wire).index,
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
    struct device_exchange *x = (struct device_exchange *)base;
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
static int alloc_sparse(struct device_exchange *x, struct ddp_err *err)
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
        DDP_TRY_GOTO(alloc_sparse(x, err), err_free);
    /* The whole buffer of 16-bit values is sent, so initialise the part behind the end too. */
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
    if (!s->spec.compressor->global_topk)
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

/* Sends `words` words to every rank and receives as many. If `same` is set, all ranks get out
 * [words]. Otherwise rank r gets the words from out [r * words] on. Stores the words of rank r at
 * x->host->got [r * words]. Waits for the stream. Collective. */
static int exchange_words(struct device_exchange *x, size_t words, bool same, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_ops *streams = s->device->streams;
    const size_t me = (size_t)s->comm->rank, bytes = words * sizeof *x->out;
    int count = 0;
    streams->copy(s->stream, x->in + me * words, x->out + (same ? 0 : me * words), bytes);
    DDP_TRY(streams->wait(s->stream, err));
    for (int i = 1; i < s->comm->size; i++) {
        const int peer = ddp_rank_at(s->comm->rank, i, s->comm->size);
        x->message[count++] = (struct ddp_comm_message){
            .peer = peer,
            .send = x->out + (same ? 0 : (size_t)peer * words),
            .send_bytes = bytes,
            .recv = x->in + (size_t)peer * words,
            .recv_bytes = bytes,
        };
    }
    DDP_TRY(ddp_comm_exchange(s->comm, x->message, count, err));
    streams->copy(s->stream, x->host->got, x->in, (size_t)s->comm->size * bytes);
    return streams->wait(s->stream, err);
}

/* Copies host->given [P] to x->out. */
static void put_given(struct device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    s->device->streams->copy(s->stream, x->out, x->host->given,
                             (size_t)s->comm->size * sizeof *x->out);
}

/* Returns `count` entries of this rank's list, from entry `begin` on. `length` is the length in
 * memory that the device can read. */
static struct ddp_stream_list part_of_mine(const struct device_exchange *x, size_t begin,
                                           size_t count, uint32_t *length)
{
    struct ddp_stream_list list = list_at(x, x->wire);
    list.index += begin;
    list.value += begin;
    list.count = length;
    list.capacity = count;
    return list;
}

/* Sends x->round[q] of this rank's list to each rank q, and receives count[r] entries from each
 * rank r. The received lists begin at list_of(x, r, count[r]). Collective. */
static int exchange_entries(struct device_exchange *x, const uint32_t *count, struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    for (int values = 0; values < 2; values++) {
        int n = 0;
        for (int i = 1; i < comm->size; i++) {
            const int peer = ddp_rank_at(comm->rank, i, comm->size);
            const struct ddp_stream_list mine = part_of_mine(x, x->round[peer].begin, 0, NULL),
                                         arriving = list_of(x, peer, count[peer]);
            x->message[n++] = (struct ddp_comm_message){
                .peer = peer,
                .send = values ? (const void *)mine.value : mine.index,
                .send_bytes = x->round[peer].count * sizeof(uint32_t),
                .recv = values ? (void *)arriving.value : arriving.index,
                .recv_bytes = count[peer] * sizeof(uint32_t),
            };
        }
        DDP_TRY(ddp_comm_exchange(comm, x->message, n, err));
    }
    return 0;
}

/* Plans the round of a threshold that begins with x->first_block. The round has as many blocks as
 * fit into the memory for received lists. Returns the end of these blocks. Sets host->current to
 * the number of entries of each rank, and x->round to this rank's entries. */
static int plan_round(struct device_exchange *x)
{
    const struct ddp_comm *comm = x->base.setup.comm;
    const uint32_t *counts = x->host->got; /* [P][BLOCKS] */
    uint32_t *current = x->host->current;
    size_t begin = 0;
    bool fits = true;
    int end = x->first_block;
    memset(current, 0, (size_t)comm->size * sizeof *current);
    for (; end < BLOCKS; end++) {
        for (int r = 0; r < comm->size; r++)
            fits = fits && current[r] + counts[r * BLOCKS + end] <= x->room;
        if (!fits)
            break;
        for (int r = 0; r < comm->size; r++)
            current[r] += counts[r * BLOCKS + end];
    }
    for (int b = 0; b < x->first_block; b++)
        begin += counts[comm->rank * BLOCKS + b];
    for (int r = 0; r < comm->size; r++)
        x->round[r] = (struct round){begin, current[comm->rank]};
    return end;
}

/* Adds the lists of a round to data in rank order. The first round sets data to 0 before. */
static void sum_round(struct device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const int me = s->comm->rank;
    if (x->first_block == 0)
        s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    for (int r = 0; r < s->comm->size; r++) {
        const size_t count = x->host->current[r];
        const struct ddp_stream_list list =
            r == me && !x->gathers
                ? part_of_mine(x, x->round[me].begin, count, &x->host->current[me])
                : list_of(x, r, count);
        s->device->stream_kernels->scatter_add(s->stream, s->data, &list);
    }
}

/* Exchanges the numbers of entries that each list has in each block, and checks them. Collective.
 */
static int exchange_lengths(struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_list mine = list_at(x, x->wire);
    const struct words *host = x->host;
    for (size_t b = 0; b < BLOCKS; b++)
        host->bound[b] = (uint32_t)DDP_MIN((b + 1) * x->room, s->n);
    s->device->stream_kernels->split(s->stream, &mine, host->bound, BLOCKS, host->before);
    DDP_TRY(s->device->streams->wait(s->stream, err));
    for (int b = BLOCKS - 1; b > 0; b--)
        host->before[b] -= host->before[b - 1];
    s->device->streams->copy(s->stream, x->out, host->before, BLOCKS * sizeof *x->out);
    DDP_TRY(exchange_words(x, BLOCKS, true, err));
    for (size_t i = 0; i < (size_t)s->comm->size * BLOCKS; i++)
        if (host->got[i] > x->room)
            return ddp_fail(err, DDP_EDATA,
                            "rank %d reported %u entries, but at most %zu are allowed",
                            s->comm->world_rank[i / BLOCKS], host->got[i], x->room);
    return 0;
}

/* Exchanges the lists of a threshold. On return the lists of the last round have not been added to
 * data yet. Collective. */
static int exchange_rounds(struct device_exchange *x, struct ddp_err *err)
{
    x->first_block = 0;
    DDP_TRY(exchange_lengths(x, err));
    for (;;) {
        const int end = plan_round(x);
        DDP_TRY(exchange_entries(x, x->host->current, err));
        if (end == BLOCKS)
            return 0;
        sum_round(x);
        DDP_TRY(x->base.setup.device->streams->wait(x->base.setup.stream, err));
        x->first_block = end;
    }
}

/* The functions from here to store_regions are oktopk on three or more ranks. */

/* Estimates the regions. Region r begins at the average index below which a rank has r/P of its
 * entries. Collective. */
static int estimate_regions(struct device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const size_t ranks = (size_t)s->comm->size;
    const struct ddp_stream_list mine = list_at(x, x->wire);
    uint64_t sum = 0;
    for (size_t r = 0; r < ranks; r++)
        s->device->streams->copy(s->stream, x->out + r, mine.index + r * x->capacity / ranks,
                                 sizeof *x->out);
    DDP_TRY(exchange_words(x, 1, false, err));
    for (size_t r = 0; r < ranks; r++)
        sum += x->host->got[r];
    x->host->given[0] = (uint32_t)(sum / ranks);
    put_given(x);
    DDP_TRY(exchange_words(x, 1, true, err));
    x->region[0] = 0;
    x->region[ranks] = s->n;
    for (size_t r = 1; r < ranks; r++)
        x->region[r] = x->host->got[r];
    for (size_t r = 0; r < ranks; r++)
        if (x->region[r] > x->region[r + 1])
            return ddp_fail(err, DDP_EDATA, "rank %d reported an invalid region that begins at %zu",
                            s->comm->world_rank[r], x->region[r]);
    return 0;
}

/* Sends this rank's entries of each region to the region's owner. Sets data to the sums of the
 * entries of this rank's region, and to 0 elsewhere. Sets *sent_words. Collective. */
static int reduce_region(struct device_exchange *x, uint32_t *sent_words, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const int ranks = s->comm->size, me = s->comm->rank;
    const size_t length = x->region[me + 1] - x->region[me];
    const struct ddp_stream_list mine = list_at(x, x->wire);
    const struct words *host = x->host;
    for (int r = 0; r < ranks; r++)
        host->bound[r] = (uint32_t)x->region[r + 1];
    s->device->stream_kernels->split(s->stream, &mine, host->bound, (size_t)ranks, host->before);
    DDP_TRY(s->device->streams->wait(s->stream, err));
    *sent_words = 0;
    for (int r = 0; r < ranks; r++) {
        x->round[r].begin = r > 0 ? host->before[r - 1] : 0;
        x->round[r].count = host->before[r] - x->round[r].begin;
        host->given[r] = (uint32_t)x->round[r].count;
        *sent_words += r != me ? 2 * host->given[r] : 0;
    }
    put_given(x);
    DDP_TRY(exchange_words(x, 1, false, err));
    for (int r = 0; r < ranks; r++) {
        host->current[r] = host->got[r];
        if (host->got[r] > DDP_MIN(length, x->room))
            return ddp_fail(err, DDP_EDATA, "rank %d reported %u entries for %zu indices",
                            s->comm->world_rank[r], host->got[r], length);
    }
    DDP_TRY(exchange_entries(x, host->current, err));
    x->first_block = 0;
    sum_round(x);
    return 0;
}

/* The sums of each rank's region. On return from select_sums, `above` is the number of sums that
 * are selected. */
struct selection {
    uint32_t *above; /* [P]: number of sums above the k-th largest sum */
    uint32_t *ties;  /* [P]: number of sums whose digits equal those of the k-th largest sum */
    uint32_t *sent;  /* [P]: number of words that the rank has sent */
};

/* Returns how many sums of all ranks have this digit. `words` is the number of words per rank in
 * host->got. */
static uint64_t sums_with(const struct device_exchange *x, size_t words, int digit)
{
    uint64_t sums = 0;
    for (int r = 0; r < x->base.setup.comm->size; r++)
        sums += x->host->got[(size_t)r * words + (size_t)digit];
    return sums;
}

/* Returns the digit of the k-th largest sum, or -1 if there are fewer than k sums. Adds the numbers
 * of sums with larger digits to *above and select->above. Sets select->ties. */
static int find_digit(const struct device_exchange *x, size_t words, const struct selection *select,
                      uint64_t *above)
{
    const int ranks = x->base.setup.comm->size;
    memset(select->ties, 0, (size_t)ranks * sizeof *select->ties);
    for (int digit = DDP_DIGITS - 1; digit >= 0; digit--) {
        const uint64_t sums = sums_with(x, words, digit);
        const bool found = *above + sums >= x->capacity;
        for (int r = 0; r < ranks; r++) {
            const uint32_t count = x->host->got[(size_t)r * words + (size_t)digit];
            if (found)
                select->ties[r] = count;
            else
                select->above[r] += count;
        }
        if (found)
            return digit;
        *above += sums;
    }
    return -1;
}

/* Finds how many sums of each region are selected, by a radix selection over all ranks as in
 * sparse_oktopk.c. Among ties, those of lower ranks are selected. All ranks compute the same
 * numbers. Collective. */
static int select_sums(struct device_exchange *x, uint32_t sent_words,
                       const struct selection *select, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_ops *streams = s->device->streams;
    const int ranks = s->comm->size;
    const size_t begin = x->region[s->comm->rank], end = x->region[s->comm->rank + 1];
    uint64_t above = 0;
    uint32_t prefix = 0;
    int shift = 32;
    memset(select->above, 0, (size_t)ranks * sizeof *select->above);
    x->host->given[0] = sent_words;
    streams->copy(s->stream, x->out + DDP_DIGITS, x->host->given, sizeof *x->out);
    for (size_t words = WORDS; shift > 0; words = DDP_DIGITS) {
        shift -= DIGIT_BITS;
        streams->fill(s->stream, x->out, 0, DDP_DIGITS * sizeof *x->out);
        s->device->stream_kernels->count_digits(s->stream, s->data + begin, end - begin, prefix,
                                                shift, x->out);
        DDP_TRY(exchange_words(x, words, true, err));
        for (int r = 0; r < ranks && words == WORDS; r++)
            select->sent[r] = x->host->got[(size_t)r * words + DDP_DIGITS];
        const int digit = find_digit(x, words, select, &above);
        if (digit < 0 || above + sums_with(x, words, digit) == x->capacity)
            break;
        prefix = prefix << DIGIT_BITS | (uint32_t)digit;
    }
    for (int r = 0; r < ranks; r++) {
        const uint32_t taken = (uint32_t)DDP_MIN(select->ties[r], x->capacity - above);
        select->above[r] += taken;
        above += taken;
    }
    return 0;
}

/* True if each rank may send its selected sums to all other ranks directly. A rank may send
 * 6k(P - 1)/P words in total. */
static bool may_send_to_all(const struct device_exchange *x, const struct selection *select)
{
    const uint64_t ranks = (uint64_t)x->base.setup.comm->size, k = x->capacity;
    for (uint64_t r = 0; r < ranks; r++)
        if (ranks * (select->sent[r] + 2 * (ranks - 1) * select->above[r]) > 6 * k * (ranks - 1))
            return false;
    return true;
}

/* Returns the bytes of the selected sums of a rank, which are one message. */
static size_t sums_bytes(const struct device_exchange *x, int rank)
{
    return x->host->current[rank] * (sizeof(uint32_t) + sizeof(float));
}

/* Sends the selected sums of all ranks to all ranks. If the ranks have very different numbers of
 * sums, the lists go around a ring. Otherwise each rank sends its list to all others at once. */
static int gather_sums(struct device_exchange *x, bool at_once, struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    const int ranks = comm->size, me = comm->rank;
    int n = 0;
    for (int step = 1; step < ranks; step++) {
        /* In a ring, this rank sends what arrived in the previous step. */
        const int from = at_once ? ddp_rank_at(me, -step, ranks) : ddp_rank_at(me, -1, ranks),
                  to = at_once ? ddp_rank_at(me, step, ranks) : ddp_rank_at(me, 1, ranks),
                  sent = at_once ? me : ddp_rank_at(me, 1 - step, ranks),
                  arrives = ddp_rank_at(me, -step, ranks);
        x->message[n++] = (struct ddp_comm_message){
            .peer = to, .send = list_of(x, sent, 0).index, .send_bytes = sums_bytes(x, sent)};
        x->message[n++] = (struct ddp_comm_message){.peer = from,
                                                    .recv = list_of(x, arrives, 0).index,
                                                    .recv_bytes = sums_bytes(x, arrives)};
        if (at_once && step < ranks - 1)
            continue;
        DDP_TRY(ddp_comm_exchange(comm, x->message, n, err));
        n = 0;
    }
    return 0;
}

/* Selects the sums of this rank's region, scales them, and exchanges the selected sums of all
 * ranks. Collective. */
static int exchange_sums(struct device_exchange *x, uint32_t sent_words, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const size_t ranks = (size_t)s->comm->size, me = (size_t)s->comm->rank;
    const struct selection select = {x->selection, x->selection + ranks, x->selection + 2 * ranks};
    DDP_TRY(select_sums(x, sent_words, &select, err));
    memcpy(x->host->current, select.above, ranks * sizeof *select.above);
    const size_t count = select.above[me];
    struct ddp_stream_select own = {.in = s->data + x->region[me],
                                    .n = x->region[me + 1] - x->region[me],
                                    .out = list_of(x, (int)me, count),
                                    .scratch = x->scratch,
                                    .scratch_bytes = x->scratch_bytes};
    own.out.count = x->in; /* the host knows the length already */
    if (count > 0) {
        s->device->stream_kernels->select_topk(s->stream, &own, count);
        divide(x, own.out.value, count);
    }
    DDP_TRY(s->device->streams->wait(s->stream, err));
    return gather_sums(x, may_send_to_all(x, &select), err);
}

/* Exchanges the lists. On return list_of(x, r, host->current[r]) has the selected sums of region r.
 * Their indices are relative to the region. Collective. */
static int exchange_regions(struct device_exchange *x, struct ddp_err *err)
{
    uint32_t sent_words;
    if (x->step++ % REGION_STEPS == 0)
        DDP_TRY(estimate_regions(x, err));
    DDP_TRY(reduce_region(x, &sent_words, err));
    return exchange_sums(x, sent_words, err);
}

/* Stores the selected sums of all regions in data. The residual, if there is one, gets back what
 * this rank sent for the other sums. */
static void store_regions(struct device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const struct ddp_stream_list mine = list_at(x, x->wire);
    s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    if (x->residual != NULL) {
        k->scatter(s->stream, s->data, &mine);
        for (int r = 0; r < s->comm->size; r++) {
            const struct ddp_stream_list list = list_of(x, r, x->host->current[r]);
            k->scatter_zero(s->stream, s->data + x->region[r], &list);
        }
        add(x, x->residual, s->data);
        s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    }
    for (int r = 0; r < s->comm->size; r++) {
        const struct ddp_stream_list list = list_of(x, r, x->host->current[r]);
        k->scatter(s->stream, s->data + x->region[r], &list);
    }
}

static void decode(struct device_exchange *x)
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
        store_regions(x);
        return;
    }
    sum_round(x);
    if (x->chosen != NULL)
        choose(x);
}

/* Prepares sum_round for lists that all have `capacity` entries. */
static void note_gathered(struct device_exchange *x)
{
    x->first_block = 0;
    for (int r = 0; r < x->base.setup.comm->size; r++)
        x->host->current[r] = (uint32_t)x->capacity;
}

static int exchange(struct device_exchange *x, struct ddp_err *err)
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
    const int rc = x->regions ? exchange_regions(x, err) : exchange_rounds(x, err);
    ddp_flight_leave(comm->flight, index, rc != 0);
    x->base.counters.wire_bytes += (double)(comm->wire_bytes - before);
    return rc;
}

static int device_run(struct ddp_compressed *base, struct ddp_err *err)
{
    struct device_exchange *x = (struct device_exchange *)base;
    const struct ddp_compressed_setup *s = &x->base.setup;
    const int64_t begin = ddp_now_ns();
    if (x->sparse && s->n > 0)
        encode_list(x);
    else if (!x->sparse && !x->lossless)
        encode_narrow(x);
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
    out->wire_counted = x->sparse && !x->gathers;
    if (!out->wire_counted) /* modelled as a ring */
        out->wire_bytes = x->wire_per_run * (double)out->runs;
}

static const float *device_residual(const struct ddp_compressed *x)
{
    return ((const struct device_exchange *)x)->residual;
}

static const char *device_algorithm(const struct ddp_compressed *base)
{
    const struct device_exchange *x = (const struct device_exchange *)base;
    return x->sparse ? sparse_name(x) : x->plan.alg->name;
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
