/* Measures the kernels on a stream as fractions of the copy bandwidth of the same run.
 * Usage: bench_gpu [--device NAME] [--elements N[,N...]] [--iterations N]
 * Prints one JSON object, which tests/gpu/bench_gpu.py reads. A time is the median between device
 * events around one call. The data are normal and heavy-tailed; arrays that a call overwrites are
 * restored before the next call, which is not timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/stream.h"
#include "device/stream_kernels.h"

#define TILE_ELEMENTS ((size_t)1 << 23) /* made on the host, then repeated */
#define MOST          100               /* iterations */

struct bench {
    const struct ddp_device *device;
    const struct ddp_stream_ops *ops;
    const struct ddp_stream_kernels *k;
    struct ddp_stream *stream;
    struct ddp_event *from, *to;
    size_t n, top, scratch_bytes;
    int iterations, rows;
    const char *data;
    float threshold;
    float *in, *residual, *saved, *out;
    struct ddp_stream_list list;
    void *scratch;
    double copy_GBps;
};

static void die(const char *what, const struct ddp_err *err)
{
    fprintf(stderr, "bench_gpu: %s: %s\n", what, err->text);
    exit(ddp_exit_code(err->code));
}

static void *take(struct bench *b, size_t bytes)
{
    void *p = b->device->alloc(bytes);
    if (p == NULL) {
        fprintf(stderr, "bench_gpu: no device memory for %zu bytes\n", bytes);
        exit(71);
    }
    return p;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The operations. Each makes one call on the stream. */
static void op_copy(struct bench *b)
{
    b->ops->copy(b->stream, b->out, b->in, b->n * 4);
}
static void op_pack_f16(struct bench *b)
{
    b->k->narrow(b->stream, b->out, b->in, b->n, DDP_F16, 0.25f, 0, NULL);
}
static void op_pack_bf16(struct bench *b)
{
    b->k->narrow(b->stream, b->out, b->in, b->n, DDP_BF16, 0.25f, 0, NULL);
}
static void op_unpack_f16(struct bench *b)
{
    b->k->widen(b->stream, b->residual, b->out, b->n, DDP_F16);
}
static void op_unpack_add(struct bench *b)
{
    b->k->widen_add(b->stream, b->residual, b->out, b->n, DDP_BF16);
}
static void op_reduce(struct bench *b)
{
    const void *src[] = {b->in, b->residual};
    void *dst[] = {b->out};
    b->k->reduce(b->stream, &(struct ddp_reduce){dst, 1, src, 2, b->n, DDP_F32, DDP_SUM, 2, 0});
}
static struct ddp_stream_select selection(struct bench *b, float *residual)
{
    return (struct ddp_stream_select){b->in, residual, b->n, b->list, b->scratch, b->scratch_bytes};
}
static void op_threshold(struct bench *b)
{
    const struct ddp_stream_select x = selection(b, b->residual);
    b->k->select_threshold(b->stream, &x, b->threshold);
}
static void op_topk(struct bench *b)
{
    const struct ddp_stream_select x = selection(b, NULL);
    b->k->select_topk(b->stream, &x, b->top);
}
static void op_topk_feedback(struct bench *b)
{
    const struct ddp_stream_select x = selection(b, b->residual);
    b->k->select_topk(b->stream, &x, b->top);
}
static void op_scatter_add(struct bench *b)
{
    b->k->scatter_add(b->stream, b->residual, &b->list);
}
static void op_sgd(struct bench *b)
{
    b->k->sgd(b->stream, b->residual, b->out, b->in, b->n, 0.01f, 0.9f, 1e-4f);
}
static void op_adam(struct bench *b)
{
    const struct ddp_adam a = {0.001f, 0.9f, 0.999f, 1e-8f, 0, 10};
    b->k->adam(b->stream, b->residual, b->out, b->saved, b->in, b->n, &a);
}

/* bytes: per element, or with `sparse` per entry of the list. goal: the fraction to reach, or 0. */
static const struct op {
    const char *name;
    void (*run)(struct bench *b);
    double bytes, goal;
    int sparse, restores;
} ops[] = {
    {"copy", op_copy, 8, 0, 0, 0},
    {"pack f16", op_pack_f16, 6, 0.95, 0, 0},
    {"pack bf16", op_pack_bf16, 6, 0.95, 0, 0},
    {"unpack f16", op_unpack_f16, 6, 0.95, 0, 0},
    {"unpack bf16 + accumulate", op_unpack_add, 10, 0.95, 0, 1},
    {"reduce 2 f32, averaged", op_reduce, 12, 0, 0, 0},
    {"threshold + error feedback", op_threshold, 12, 0.85, 0, 1},
    {"top-k", op_topk, 8, 0.70, 0, 0},
    {"top-k + error feedback", op_topk_feedback, 16, 0.65, 0, 1},
    {"scatter-add", op_scatter_add, 72, 0, 1, 1},
    {"sgd momentum", op_sgd, 20, 0, 0, 1},
    {"adam", op_adam, 28, 0, 0,
     0}, /* last, because it overwrites the arrays that others restore from */
};

static double time_once(struct bench *b, const struct op *op)
{
    struct ddp_err err = DDP_ERR_INIT;
    double ns = 0;
    if (op->restores)
        b->ops->copy(b->stream, b->residual, b->saved, b->n * 4);
    b->ops->event_record(b->from, b->stream);
    op->run(b);
    b->ops->event_record(b->to, b->stream);
    if (b->ops->wait(b->stream, &err) != 0 || b->ops->event_elapsed(b->from, b->to, &ns, &err) != 0)
        die(op->name, &err);
    return ns;
}

static void measure(struct bench *b, const struct op *op)
{
    double ns[MOST];
    uint32_t sent = 0;
    struct ddp_err err = DDP_ERR_INIT;
    for (int i = 0; i < 3; i++)
        (void)time_once(b, op);
    for (int i = 0; i < b->iterations; i++)
        ns[i] = time_once(b, op);
    qsort(ns, (size_t)b->iterations, sizeof *ns, ascending);
    b->ops->copy(b->stream, &sent, b->list.count, sizeof sent);
    if (b->ops->wait(b->stream, &err) != 0)
        die(op->name, &err);
    const double median = ns[b->iterations / 2];
    const double GBps = op->bytes * (op->sparse ? sent : (double)b->n) / median;
    if (op->run == op_copy)
        b->copy_GBps = GBps;
    printf("%s\n  {\"kernel\": \"%s\", \"data\": \"%s\", \"n\": %zu, \"sent\": %u, "
           "\"bytes_per_%s\": %g, "
           "\"median_us\": %.3f, \"min_us\": %.3f, \"max_us\": %.3f, \"GBps\": %.1f, "
           "\"fraction_of_copy\": %.3f, \"goal\": %g}",
           b->rows++ ? "," : "", op->name, b->data, b->n, sent, op->sparse ? "entry" : "element",
           op->bytes, median / 1e3, ns[0] / 1e3, ns[b->iterations - 1] / 1e3, GBps,
           GBps / b->copy_GBps, op->goal);
    fflush(stdout);
}

/* Fills `to` with values of the kind of data, and sets the threshold to about the 1 % quantile. */
static void fill(struct bench *b, float *to, uint64_t seed)
{
    const size_t tile = DDP_MIN(b->n, TILE_ELEMENTS);
    float *host = ddp_calloc(tile, sizeof *host);
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_rng rng;
    ddp_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < tile; i++) {
        const double x = ddp_rng_normal(&rng);
        host[i] = (float)(b->data[0] == 'h' ? x * fabs(x * x) * exp(ddp_rng_normal(&rng)) : x);
    }
    for (size_t at = 0; at < b->n; at += tile)
        b->ops->copy(b->stream, to + at, host, DDP_MIN(tile, b->n - at) * 4);
    if (b->ops->wait(b->stream, &err) != 0)
        die("copy", &err);
    double *sample = ddp_calloc(10000, sizeof *sample);
    for (size_t i = 0; i < 10000; i++)
        sample[i] = fabs((double)host[i * 7 % tile]);
    qsort(sample, 10000, sizeof *sample, ascending);
    b->threshold = (float)(sample[9900] * 1.4); /* a sum of two values is somewhat wider */
    free(sample);
    free(host);
}

static void bench_size(struct bench *b, size_t n)
{
    static const char *const kinds[] = {"normal", "heavy"};
    b->n = n;
    b->top = DDP_MAX(n / 100, 1);
    b->scratch_bytes = DDP_MAX(b->k->select_scratch(n, 0), b->k->select_scratch(n, b->top));
    b->in = take(b, n * 4);
    b->residual = take(b, n * 4);
    b->saved = take(b, n * 4);
    b->out = take(b, n * 4);
    b->scratch = take(b, b->scratch_bytes);
    const size_t room = DDP_MAX(n / 20, b->top);
    b->list = (struct ddp_stream_list){take(b, room * 4), take(b, room * 4), take(b, 4), room};
    for (size_t d = 0; d < DDP_COUNT_OF(kinds); d++) {
        b->data = kinds[d];
        fill(b, b->in, 1);
        fill(b, b->saved, 2);
        b->ops->copy(b->stream, b->residual, b->saved, n * 4);
        b->ops->fill(b->stream, b->list.count, 0, 4);
        for (size_t i = 0; i < DDP_COUNT_OF(ops); i++)
            measure(b, &ops[i]);
    }
    void *const owned[] = {b->in,      b->residual,   b->saved,      b->out,
                           b->scratch, b->list.index, b->list.value, b->list.count};
    for (size_t i = 0; i < DDP_COUNT_OF(owned); i++)
        b->device->free(owned[i], i < 4 ? n * 4 : i == 4 ? b->scratch_bytes : i < 7 ? room * 4 : 4);
}

int main(int argc, char **argv)
{
    const char *name = "cuda", *sizes = "67108864,268435456";
    struct bench b = {.iterations = 20};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_device_info info;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--device") == 0)
            name = argv[i + 1];
        else if (strcmp(argv[i], "--elements") == 0)
            sizes = argv[i + 1];
        else if (strcmp(argv[i], "--iterations") == 0)
            b.iterations = DDP_MAX(1, DDP_MIN(MOST, (int)strtol(argv[i + 1], NULL, 10)));
    }
    for (const struct ddp_device *const *d = ddp_device_all(); *d; d++)
        if (strcmp((*d)->name, name) == 0)
            b.device = *d;
    if (b.device == NULL) {
        fprintf(stderr, "bench_gpu: no device '%s'\n", name);
        return 64;
    }
    if (b.device->select(0, &err) != 0 || b.device->info(0, &info, &err) != 0)
        die(name, &err);
    b.ops = b.device->streams;
    b.k = b.device->stream_kernels;
    if (b.ops->create(&b.stream, &err) != 0 || b.ops->event_create(&b.from, &err) != 0 ||
        b.ops->event_create(&b.to, &err) != 0)
        die(name, &err);
    printf("{\"device\": \"%s\", \"name\": \"%s\", \"runtime\": \"%s\", \"iterations\": %d, "
           "\"rows\": [",
           name, info.name, info.runtime, b.iterations);
    while (*sizes) {
        char *end;
        const unsigned long long n = strtoull(sizes, &end, 10);
        if (end == sizes || n < 1 || n >= 1u << 31) {
            fprintf(stderr, "bench_gpu: '%s' is no number of elements\n", sizes);
            return 64;
        }
        bench_size(&b, (size_t)n);
        sizes = *end == ',' ? end + 1 : end;
    }
    printf("\n]}\n");
    b.ops->event_destroy(b.from);
    b.ops->event_destroy(b.to);
    b.ops->destroy(b.stream);
    return 0;
}
