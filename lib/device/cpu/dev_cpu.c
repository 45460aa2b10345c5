/* Device cpu: memory, kernels and streams of the processor, with one table of functions per SIMD
 * level. */
#include "device/device.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "device/cpu/kernels_cpu.h"
#include "device/element_ops.h"
#include "device/input_ops.h"
#include "device/stream.h"
#include "device/stream_kernels.h"

static const struct ddp_device *best(void)
{
    return ddp_device_cpu(ddp_cpu_best_simd());
}

/* Streams. Each call completes its work before it returns. With these streams, code for
 * accelerators can run and be tested on machines without an accelerator. */
struct ddp_stream {
    int unused;
};

struct ddp_event {
    int64_t ns;
};

static int stream_create(struct ddp_stream **out, struct ddp_err *err)
{
    return DDP_NEW(out, 1, err);
}

static int stream_select(struct ddp_stream *s, struct ddp_err *err)
{
    return 0;
}

static void stream_destroy(struct ddp_stream *s)
{
    free(s);
}

static int stream_query(struct ddp_stream *s, struct ddp_err *err)
{
    return 1;
}

static int stream_wait(struct ddp_stream *s, struct ddp_err *err)
{
    return 0;
}

static void *stream_native(struct ddp_stream *s)
{
    return NULL;
}

static void stream_copy(struct ddp_stream *s, void *dst, const void *src, size_t bytes)
{
    if (bytes != 0)
        memcpy(dst, src, bytes);
}

static void stream_fill(struct ddp_stream *s, void *dst, unsigned char byte, size_t bytes)
{
    if (bytes != 0)
        memset(dst, byte, bytes);
}

static int event_create(struct ddp_event **out, struct ddp_err *err)
{
    return DDP_NEW(out, 1, err);
}

static void event_destroy(struct ddp_event *e)
{
    free(e);
}

static void event_record(struct ddp_event *e, struct ddp_stream *s)
{
    e->ns = ddp_now_ns();
}

static void event_await(struct ddp_stream *s, struct ddp_event *e)
{
}

static int event_elapsed(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err)
{
    *ns = (double)(to->ns - from->ns);
    return 0;
}

static void stream_hold(struct ddp_stream *s)
{
}

static void stream_release(struct ddp_stream *s)
{
}

static int capture_begin(struct ddp_stream *s, struct ddp_err *err)
{
    return ddp_fail(err, DDP_EUNAVAIL, "device cpu has no graphs: its streams do all work at once");
}

static int capture_end(struct ddp_stream *s, struct ddp_graph **out, struct ddp_err *err)
{
    return capture_begin(s, err);
}

static void graph_launch(struct ddp_graph *g, struct ddp_stream *s)
{
}

static void graph_destroy(struct ddp_graph *g)
{
}

static const struct ddp_stream_ops cpu_streams = {
    .create = stream_create,
    .select = stream_select,
    .destroy = stream_destroy,
    .query = stream_query,
    .wait = stream_wait,
    .native = stream_native,
    .copy = stream_copy,
    .fill = stream_fill,
    .host_alloc = ddp_alloc_pages,
    .host_free = ddp_free_pages,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_await = event_await,
    .event_elapsed = event_elapsed,
    .hold = stream_hold,
    .release = stream_release,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};

/* Stream kernels. Each function returns when its work is done. Most functions call the kernel of
 * the best SIMD level. */
static void cpu_reduce(struct ddp_stream *s, const struct ddp_reduce *r)
{
    best()->reduce(r);
}

static void cpu_narrow(struct ddp_stream *s, void *dst, const float *src, size_t n,
                       enum ddp_dtype to, float scale, float clip, uint64_t *overflows)
{
    const uint64_t found = best()->grad->narrow(dst, src, n, to, scale, clip);
    if (overflows != NULL)
        *overflows += found;
}

static void cpu_widen(struct ddp_stream *s, float *dst, const void *src, size_t n,
                      enum ddp_dtype from)
{
    best()->grad->widen(dst, src, n, from);
}

static void cpu_widen_add(struct ddp_stream *s, float *dst, const void *src, size_t n,
                          enum ddp_dtype from)
{
    best()->grad->widen_add(dst, src, n, from);
}

static void cpu_narrow_residual(struct ddp_stream *s, float *residual, const float *in,
                                const void *wire, size_t n, enum ddp_dtype type)
{
    best()->grad->narrow_residual(residual, in, wire, n, type);
}

/* Returns the bytes of scratch memory that a selection needs. The memory holds a list of n entries,
 * because the kernel may select more entries than the output list can hold. Top-K (k > 0) needs the
 * same number of bytes again, as scratch memory of its kernel. */
static size_t cpu_select_scratch(size_t n, size_t k)
{
    return (k > 0 ? 2 : 1) * n * (sizeof(uint32_t) + sizeof(float)) + 64;
}

/* Copies the first out.capacity entries of `all` to x->out and puts the other entries back into the
 * residual. */
static void send_first(const struct ddp_stream_select *x, const struct ddp_sparse *all)
{
    const size_t sent = DDP_MIN(all->count, x->out.capacity);
    if (sent != 0) {
        memcpy(x->out.index, all->index, sent * sizeof(*all->index));
        memcpy(x->out.value, all->value, sent * sizeof(*all->value));
    }
    for (size_t i = sent; i < all->count && x->residual != NULL; i++)
        x->residual[all->index[i]] = all->value[i];
    *x->out.count = (uint32_t)sent;
}

static struct ddp_select whole_select(const struct ddp_stream_select *x)
{
    uint32_t *index = (uint32_t *)x->scratch;
    return (struct ddp_select){
        x->in, x->residual, x->n, {index, (float *)(void *)(index + x->n), 0}};
}

static void cpu_select_threshold(struct ddp_stream *s, const struct ddp_stream_select *x,
                                 float threshold)
{
    struct ddp_select all = whole_select(x);
    assert(x->scratch_bytes >= cpu_select_scratch(x->n, 0));
    best()->grad->select_threshold(&all, threshold);
    send_first(x, &all.out);
}

static void cpu_select_topk(struct ddp_stream *s, const struct ddp_stream_select *x, size_t k)
{
    struct ddp_select all = whole_select(x);
    assert(x->scratch_bytes >= cpu_select_scratch(x->n, k));
    best()->grad->select_topk(&all, k, NULL, (float *)(void *)all.out.value + x->n);
    send_first(x, &all.out);
}

static struct ddp_sparse current_list(const struct ddp_stream_list *list)
{
    return (struct ddp_sparse){list->index, list->value, *list->count};
}

static void cpu_scatter_add(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list)
{
    const struct ddp_sparse l = current_list(list);
    best()->grad->scatter_add(dst, &l);
}

static void cpu_scatter(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list)
{
    const struct ddp_sparse l = current_list(list);
    best()->grad->scatter(dst, &l);
}

static void cpu_scatter_zero(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list)
{
    best()->grad->scatter_zero(dst, list->index, *list->count);
}

static size_t cpu_merge_scratch(size_t b_capacity)
{
    return 0;
}

static void cpu_merge(struct ddp_stream *s, const struct ddp_stream_list *out,
                      const struct ddp_stream_list *a, const struct ddp_stream_list *b,
                      void *scratch)
{
    const struct ddp_sparse from_a = current_list(a), from_b = current_list(b);
    struct ddp_sparse sum = {out->index, out->value, 0};
    best()->grad->merge(&sum, &from_a, &from_b);
    *out->count = (uint32_t)sum.count;
}

static void cpu_sgd(struct ddp_stream *s, float *p, float *v, const float *grad, size_t n, float lr,
                    float momentum, float weight_decay)
{
    best()->grad->sgd(p, v, grad, n, lr, momentum, weight_decay);
}

static void cpu_adam(struct ddp_stream *s, float *p, float *m, float *v, const float *grad,
                     size_t n, const struct ddp_adam *a)
{
    best()->grad->adam(p, m, v, grad, n, a);
}

static void cpu_scale(struct ddp_stream *s, float *a, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++)
        a[i] = ddp_scaled(a[i], factor);
}

static void cpu_widen_back(struct ddp_stream *s, float *dst, const void *src, size_t n,
                           enum ddp_dtype from, uint64_t *overflows)
{
    const uint16_t *half = src;
    for (size_t i = 0; i < n; i++) {
        *overflows += (uint64_t)ddp_half_overflowed(half[i], dst[i], from);
        dst[i] = ddp_half_widen(half[i], from);
    }
}

static void cpu_add_count(struct ddp_stream *s, uint64_t *sum, const uint32_t *count)
{
    *sum += *count;
}

static void cpu_split(struct ddp_stream *s, const struct ddp_stream_list *list,
                      const uint32_t *bound, size_t bounds, uint32_t *before)
{
    for (size_t i = 0; i < bounds; i++)
        before[i] = ddp_lower_bound(list->index, *list->count, bound[i]);
}

static void cpu_count_digits(struct ddp_stream *s, const float *value, size_t n, uint32_t prefix,
                             int shift, uint32_t count[DDP_DIGITS])
{
    for (size_t i = 0; i < n; i++) {
        const int digit = ddp_digit_of(value[i], prefix, shift);
        if (digit >= 0)
            count[digit]++;
    }
}

static void cpu_write_expected(struct ddp_stream *s, void *dst, const struct ddp_expected *e,
                               size_t first, size_t count)
{
    const int bytes = (int)ddp_dtype_size(e->dtype);
    for (size_t i = 0; i < count; i++)
        ddp_element_store(dst, i, bytes, ddp_expected_bits(e, first + i));
}

static void cpu_count_wrong(struct ddp_stream *s, const void *data, const struct ddp_expected *e,
                            size_t first, size_t count, uint64_t *wrong)
{
    const int bytes = (int)ddp_dtype_size(e->dtype);
    for (size_t i = 0; i < count; i++)
        *wrong += ddp_element_bits(data, i, bytes) != ddp_expected_bits(e, first + i);
}

static const struct ddp_stream_kernels cpu_kernels = {
    .reduce = cpu_reduce,
    .narrow = cpu_narrow,
    .widen = cpu_widen,
    .widen_add = cpu_widen_add,
    .narrow_residual = cpu_narrow_residual,
    .select_scratch = cpu_select_scratch,
    .select_threshold = cpu_select_threshold,
    .select_topk = cpu_select_topk,
    .scatter_add = cpu_scatter_add,
    .scatter = cpu_scatter,
    .scatter_zero = cpu_scatter_zero,
    .merge_scratch = cpu_merge_scratch,
    .merge = cpu_merge,
    .sgd = cpu_sgd,
    .adam = cpu_adam,
    .scale = cpu_scale,
    .widen_back = cpu_widen_back,
    .add_count = cpu_add_count,
    .split = cpu_split,
    .count_digits = cpu_count_digits,
    .write_expected = cpu_write_expected,
    .count_wrong = cpu_count_wrong,
};

static int cpu_probe(struct ddp_err *err)
{
    (void)err;
    return 0;
}

static int cpu_count(void)
{
    return 1;
}

static int cpu_select(int index, struct ddp_err *err)
{
    return index == 0 ? 0 : ddp_fail(err, DDP_EUNAVAIL, "there is no CPU device %d", index);
}

static int cpu_info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    struct ddp_sysinfo host;
    struct ddp_device_info info = {.multiprocessors = -1, .l2_bytes = -1, .capability = -1};
    DDP_TRY(cpu_select(index, err));
    ddp_sysinfo_read(&host);
    snprintf(info.name, sizeof info.name, "%.63s", host.cpu);
    info.memory_bytes = host.memory_bytes;
    *out = info;
    return 0;
}

/* memcpy is the fastest copy loop. On AMD processors, glibc copies arrays that exceed about the L2
 * cache with other instructions. These instructions are faster if the arrays exceed all caches, and
 * slower if they do not. Therefore cpu_copy copies arrays of up to PIECES_BYTES in pieces of
 * PIECE_BYTES, for which glibc does not use these instructions (results/notes/kernels.md). */
#define PIECES_BYTES ((size_t)4 << 20)
#define PIECE_BYTES  ((size_t)256 << 10)

static void cpu_copy(void *dst, const void *src, size_t bytes)
{
    const size_t piece = bytes > PIECES_BYTES ? bytes : PIECE_BYTES;
    for (size_t at = 0; at < bytes; at += piece)
        memcpy((unsigned char *)dst + at, (const unsigned char *)src + at,
               DDP_MIN(piece, bytes - at));
}

static void cpu_fill(void *dst, unsigned char byte, size_t bytes)
{
    memset(dst, byte, bytes);
}

/* The members that are the same at all SIMD levels. */
#define CPU_FUNCTIONS                                                                              \
    .name = "cpu", .probe = cpu_probe, .count = cpu_count, .select = cpu_select, .info = cpu_info, \
    .alloc = ddp_alloc_pages, .free = ddp_free_pages, .copy = cpu_copy, .fill = cpu_fill,          \
    .streams = &cpu_streams, .stream_kernels = &cpu_kernels
#define CPU_DEVICE(level, text)                                                                    \
    {                                                                                              \
        CPU_FUNCTIONS, .summary = "processor, " text " kernels", .copy_nt = ddp_copy_nt_##level,   \
                       .reduce = ddp_reduce_##level, .grad = &ddp_grad_##level                     \
    }

static const struct ddp_device levels[DDP_SIMD_COUNT] = {
    [DDP_SIMD_SCALAR] = CPU_DEVICE(scalar, "baseline"),
    [DDP_SIMD_AVX2] = CPU_DEVICE(avx2, "AVX2"),
    [DDP_SIMD_AVX512] = CPU_DEVICE(avx512, "AVX-512"),
};

const struct ddp_device *ddp_device_cpu(enum ddp_simd level)
{
    return &levels[level];
}

static void best_reduce(const struct ddp_reduce *r)
{
    best()->reduce(r);
}

static void best_copy_nt(void *dst, const void *src, size_t bytes)
{
    best()->copy_nt(dst, src, bytes);
}

/* The entry of device cpu in the list of devices. Ranks use the struct of one SIMD level instead
 * (ddp_device_cpu). */
const struct ddp_device ddp_dev_cpu = {
    CPU_FUNCTIONS,
    .summary = "this processor, at its best SIMD level",
    .copy_nt = best_copy_nt,
    .reduce = best_reduce,
    .grad = &ddp_grad_scalar, /* all levels give the same results */
};
