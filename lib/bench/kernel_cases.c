#include "bench/kernel_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "base/rng.h"

/* Number of arrays that reduce/f32/sum/4-sources adds. */
#define SOURCES 4

typedef const struct ddp_kernel_case kernel_case;
typedef struct ddp_kernel_data kernel_data;

static const float *input(kernel_case *c, const kernel_data *d)
{
    return c->heavy ? d->heavy : d->normal;
}

static size_t wanted(kernel_case *c, const kernel_data *d)
{
    return (size_t)ceil(c->density * (double)d->n);
}

static void run_copy(kernel_case *c, kernel_data *d)
{
    (void)c;
    d->device->copy(d->c, d->a, d->n * 4);
}

static void run_copy_nt(kernel_case *c, kernel_data *d)
{
    (void)c;
    d->device->copy_nt(d->c, d->a, d->n * 4);
}

/* Prepares the operand `b`. Its values in 16-bit types are so small that sums stay finite, however
 * often the case runs. */
static void begin_reduce(kernel_case *c, kernel_data *d)
{
    const size_t floats = d->bytes / 4;
    if (ddp_dtype_is_half(c->dtype))
        for (size_t at = 0; at < d->n; at += floats)
            d->device->grad->narrow((uint16_t *)d->b + at, d->normal, DDP_MIN(floats, d->n - at),
                                    c->dtype, 0x1p-10f, 0.0f);
    else
        memcpy(d->b, d->normal, d->n * ddp_dtype_size(c->dtype));
}

/* Computes `c` = `c` op `b`, as an algorithm does when it combines its own data with received
 * data. */
static void run_reduce(kernel_case *c, kernel_data *d)
{
    const struct ddp_reduce r = {
        .dst = (void *[]){d->c},
        .dst_count = 1,
        .src = (const void *[]){d->c, d->b},
        .src_count = 2,
        .count = d->n,
        .dtype = c->dtype,
        .op = c->op,
        .divisor = c->op == DDP_AVG ? 2 : 1,
    };
    d->device->reduce(&r);
}

/* Sums SOURCES arrays into one, as an algorithm on shared memory does with the arrays of all
 * ranks. */
static void run_reduce_many(kernel_case *c, kernel_data *d)
{
    const struct ddp_reduce r = {
        .dst = (void *[]){d->c},
        .dst_count = 1,
        .src = (const void *[SOURCES]){d->normal, d->heavy, d->a, d->kept},
        .src_count = SOURCES,
        .count = d->n,
        .dtype = c->dtype,
        .op = c->op,
        .divisor = 1,
    };
    d->device->reduce(&r);
}

static void run_narrow(kernel_case *c, kernel_data *d)
{
    d->device->grad->narrow(d->c, d->a, d->n, c->narrow, 0.5f, 0.0f);
}

static void begin_wire(kernel_case *c, kernel_data *d)
{
    d->device->grad->narrow(d->b, d->a, d->n, c->narrow, 1.0f, 0.0f);
}

static void run_widen(kernel_case *c, kernel_data *d)
{
    d->device->grad->widen(d->c, d->b, d->n, c->narrow);
}

static void run_widen_add(kernel_case *c, kernel_data *d)
{
    d->device->grad->widen_add(d->c, d->b, d->n, c->narrow);
}

static void run_narrow_residual(kernel_case *c, kernel_data *d)
{
    d->device->grad->narrow_residual(d->c, d->a, d->b, d->n, c->narrow);
}

static void run_quantize(kernel_case *c, kernel_data *d)
{
    d->device->grad->quantize(d->c, d->a, d->n, c->quant, 0.5f);
}

static void begin_blocks(kernel_case *c, kernel_data *d)
{
    d->device->grad->quantize(d->b, d->a, d->n, c->quant, 1.0f);
}

static void run_dequantize(kernel_case *c, kernel_data *d)
{
    d->device->grad->dequantize(d->c, d->b, d->n, c->quant, false);
}

static void run_dequantize_add(kernel_case *c, kernel_data *d)
{
    d->device->grad->dequantize(d->c, d->b, d->n, c->quant, true);
}

static struct ddp_select selection(kernel_case *c, kernel_data *d)
{
    return (struct ddp_select){
        input(c, d), c->feedback ? d->residual : NULL, d->n, {d->index, d->b, 0}};
}

/* Stores the threshold in d->hint: the bits of the k-th largest magnitude. */
static void begin_threshold(kernel_case *c, kernel_data *d)
{
    struct ddp_select s = selection(c, d);
    d->hint = 0;
    d->device->grad->select_topk(&s, wanted(c, d), &d->hint, d->scratch);
}

static void run_threshold(kernel_case *c, kernel_data *d)
{
    struct ddp_select s = selection(c, d);
    float threshold;
    memcpy(&threshold, &d->hint, sizeof threshold);
    d->kept_count = d->device->grad->select_threshold(&s, threshold);
}

static void run_topk(kernel_case *c, kernel_data *d)
{
    struct ddp_select s = selection(c, d);
    d->kept_count = d->device->grad->select_topk(&s, wanted(c, d), NULL, d->scratch);
}

/* From the second run on, the hint is exact, because the previous run stored it for the same
 * input. */
static void run_topk_hint(kernel_case *c, kernel_data *d)
{
    struct ddp_select s = selection(c, d);
    d->kept_count = d->device->grad->select_topk(&s, wanted(c, d), &d->hint, d->scratch);
}

/* Selects the largest elements of four arrays. The results are four index-sorted lists, like those
 * of four ranks. */
static void begin_lists(kernel_case *c, kernel_data *d)
{
    const float *from[DDP_KERNEL_LISTS] = {d->normal, d->heavy, d->a, d->kept};
    const size_t room = d->n / DDP_KERNEL_LISTS;
    d->kept_count = 0;
    for (int i = 0; i < DDP_KERNEL_LISTS; i++) {
        d->list[i] = (struct ddp_sparse){d->index + (size_t)i * room, d->b + (size_t)i * room, 0};
        struct ddp_select s = {from[i], NULL, d->n, d->list[i]};
        d->device->grad->select_topk(&s, wanted(c, d), NULL, d->scratch);
        d->list[i].count = s.out.count;
        d->kept_count += s.out.count;
    }
}

static void run_scatter_add(kernel_case *c, kernel_data *d)
{
    (void)c;
    d->device->fill(d->c, 0, d->n * 4);
    for (int i = 0; i < DDP_KERNEL_LISTS; i++)
        d->device->grad->scatter_add(d->c, &d->list[i]);
}

static void run_merge(kernel_case *c, kernel_data *d)
{
    (void)c;
    struct ddp_sparse out = {d->scratch, d->c, 0};
    d->device->grad->merge(&out, &d->list[0], &d->list[1]);
    d->kept_count = d->list[0].count + d->list[1].count + out.count;
}

/* The learning rate is so small that the parameters hardly change, however often the case runs. */
static void run_sgd(kernel_case *c, kernel_data *d)
{
    (void)c;
    d->device->grad->sgd(d->c, d->b, d->a, d->n, 1e-9f, 0.9f, 1e-5f);
}

static void run_adam(kernel_case *c, kernel_data *d)
{
    (void)c;
    const struct ddp_adam adam = {1e-9f, 0.9f, 0.999f, 1e-8f, 1e-3f, 10};
    d->device->grad->adam(d->c, d->b, d->residual, d->a, d->n, &adam);
}

static void begin_optimiser(kernel_case *c, kernel_data *d)
{
    (void)c;
    memset(d->b, 0, d->n * 4);
    memset(d->residual, 0, d->n * 4);
}

#define REDUCE(type, operation)                                                                    \
    {                                                                                              \
        .name = "reduce/" #type "/" #operation, .run = run_reduce, .begin = begin_reduce,          \
        .bytes_each = 3, .dtype = DDP_TYPE_##type, .op = DDP_OP_##operation                        \
    }
#define DDP_TYPE_f32  DDP_F32
#define DDP_TYPE_f64  DDP_F64
#define DDP_TYPE_f16  DDP_F16
#define DDP_TYPE_bf16 DDP_BF16
#define DDP_TYPE_i32  DDP_I32
#define DDP_TYPE_u8   DDP_U8
#define DDP_OP_sum    DDP_SUM
#define DDP_OP_avg    DDP_AVG
#define DDP_OP_max    DDP_MAX

/* text: the density, which is also part of the name. */
#define THRESHOLD(text)                                                                            \
    {                                                                                              \
        .name = "threshold/feedback/" #text, .run = run_threshold, .begin = begin_threshold,       \
        .density = text, .bytes_each = 12, .bytes_kept = 8, .feedback = true                       \
    }
#define TOPK(text)                                                                                 \
    {                                                                                              \
        .name = "topk/feedback/" #text, .run = run_topk, .density = text, .bytes_each = 12,        \
        .bytes_kept = 8, .feedback = true                                                          \
    }
#define CONVERT(what, type, each, function, prepare)                                               \
    {                                                                                              \
        .name = what, .run = function, .begin = prepare, .narrow = type, .bytes_each = each        \
    }
/* `wire`: bytes of an encoded element, without its share of the block's scale. `each`: bytes of f32
 * per element. */
#define QUANT_BLOCK 128
#define QUANTIZE(what, type, wire, each, function, prepare)                                        \
    {                                                                                              \
        .name = what, .run = function, .begin = prepare,                                           \
        .quant = {.code = DDP_QUANT_##type, .block = QUANT_BLOCK},                                 \
        .bytes_each = each + wire + 4.0 / QUANT_BLOCK                                              \
    }

static const struct ddp_kernel_case cases[] = {
    {.name = "copy", .run = run_copy, .bytes_each = 8},
    {.name = "copy/nontemporal", .run = run_copy_nt, .bytes_each = 8},
    REDUCE(f32, sum),
    REDUCE(f32, avg),
    REDUCE(f32, max),
    REDUCE(f64, sum),
    REDUCE(f16, sum),
    REDUCE(bf16, sum),
    REDUCE(i32, sum),
    REDUCE(u8, sum),
    {.name = "reduce/f32/sum/4-sources", .run = run_reduce_many, .bytes_each = SOURCES + 1},
    CONVERT("convert/f32-f16", DDP_F16, 6, run_narrow, NULL),
    CONVERT("convert/f32-bf16", DDP_BF16, 6, run_narrow, NULL),
    CONVERT("convert/f16-f32", DDP_F16, 6, run_widen, begin_wire),
    CONVERT("convert/bf16-f32", DDP_BF16, 6, run_widen, begin_wire),
    CONVERT("convert/f16-f32/add", DDP_F16, 10, run_widen_add, begin_wire),
    CONVERT("convert/bf16-f32/add", DDP_BF16, 10, run_widen_add, begin_wire),
    CONVERT("convert/f32-f16/residual", DDP_F16, 10, run_narrow_residual, begin_wire),
    QUANTIZE("quantize/q8", I8, 1, 4, run_quantize, NULL),
    QUANTIZE("quantize/q4", I4, 0.5, 4, run_quantize, NULL),
    QUANTIZE("quantize/fp8-e4m3", E4M3, 1, 4, run_quantize, NULL),
    QUANTIZE("quantize/sign", SIGN, 0.125, 4, run_quantize, NULL),
    QUANTIZE("dequantize/q8", I8, 1, 4, run_dequantize, begin_blocks),
    QUANTIZE("dequantize/q4", I4, 0.5, 4, run_dequantize, begin_blocks),
    QUANTIZE("dequantize/fp8-e4m3", E4M3, 1, 4, run_dequantize, begin_blocks),
    QUANTIZE("dequantize/sign", SIGN, 0.125, 4, run_dequantize, begin_blocks),
    QUANTIZE("dequantize/q8/add", I8, 1, 8, run_dequantize_add, begin_blocks),
    THRESHOLD(0.001),
    THRESHOLD(0.01),
    THRESHOLD(0.05),
    TOPK(0.001),
    TOPK(0.01),
    TOPK(0.05),
    {.name = "topk/feedback/0.01/heavy-tailed",
     .run = run_topk,
     .density = 0.01,
     .bytes_each = 12,
     .bytes_kept = 8,
     .heavy = true,
     .feedback = true},
    {.name = "topk/feedback/0.01/hint",
     .run = run_topk_hint,
     .density = 0.01,
     .bytes_each = 12,
     .bytes_kept = 8,
     .feedback = true},
    {.name = "topk/alone/0.001",
     .run = run_topk,
     .density = 0.001,
     .bytes_each = 4,
     .bytes_kept = 8},
    {.name = "topk/alone/0.01", .run = run_topk, .density = 0.01, .bytes_each = 4, .bytes_kept = 8},
    {.name = "scatter-add/4-lists/0.01",
     .run = run_scatter_add,
     .begin = begin_lists,
     .density = 0.01,
     .bytes_each = 4,
     .bytes_kept = 8},
    {.name = "merge/2-lists/0.01",
     .run = run_merge,
     .begin = begin_lists,
     .density = 0.01,
     .bytes_kept = 8},
    {.name = "sgd", .run = run_sgd, .begin = begin_optimiser, .bytes_each = 20},
    {.name = "adam", .run = run_adam, .begin = begin_optimiser, .bytes_each = 28},
    {.name = NULL},
};

const struct ddp_kernel_case *ddp_kernel_cases(void)
{
    return cases;
}

static void fill(kernel_data *d)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 1, 0);
    for (size_t i = 0; i < d->bytes / 4; i++) {
        d->normal[i] = (float)ddp_rng_normal(&rng);
        d->kept[i] = (float)(0.5 * ddp_rng_normal(&rng));
        d->heavy[i] = (float)(ddp_rng_normal(&rng) / sqrt(1e-12 + ddp_rng_double(&rng)));
        d->a[i] = d->normal[i] * d->normal[i] - 1.0f;
    }
}

/* Sets *array to the i-th array of d. Returns its size in units of d->bytes, or 0 after the last
 * array. */
static size_t each_array(kernel_data *d, int i, void ***array)
{
    void **const all[] = {(void **)&d->normal,   (void **)&d->heavy, (void **)&d->kept,
                          (void **)&d->residual, (void **)&d->a,     (void **)&d->b,
                          (void **)&d->c,        (void **)&d->index, &d->scratch};
    if (i >= (int)DDP_COUNT_OF(all))
        return 0;
    *array = all[i];
    return all[i] == &d->scratch ? 2 : 1;
}

int ddp_kernel_data_create(uint64_t bytes, enum ddp_simd level, struct ddp_kernel_data **out,
                           struct ddp_err *err)
{
    void **array;
    struct ddp_kernel_data *d;
    DDP_TRY(DDP_NEW(&d, 1, err));
    d->device = ddp_device_cpu(level);
    d->bytes = (size_t)bytes;
    size_t times;
    for (int i = 0; (times = each_array(d, i, &array)) > 0; i++) {
        *array = ddp_alloc_pages(times * d->bytes);
        if (!*array) {
            ddp_kernel_data_destroy(d);
            return ddp_fail_memory(err, times, (size_t)bytes, __func__);
        }
        memset(*array, 0, times * d->bytes);
    }
    fill(d);
    *out = d;
    return 0;
}

void ddp_kernel_data_destroy(struct ddp_kernel_data *d)
{
    void **array;
    size_t times;
    if (!d)
        return;
    for (int i = 0; (times = each_array(d, i, &array)) > 0; i++)
        if (*array)
            ddp_free_pages(*array, times * d->bytes);
    free(d);
}

void ddp_kernel_begin(const struct ddp_kernel_case *c, struct ddp_kernel_data *d, size_t bytes)
{
    d->n = bytes / ddp_dtype_size(c->dtype);
    d->kept_count = 0;
    d->hint = 0;
    memset(d->c, 0, bytes); /* 0 is valid in every type; the previous case may have left NaN */
    ddp_kernel_restore(c, d);
    if (c->begin)
        c->begin(c, d);
    ddp_kernel_restore(c, d);
}

void ddp_kernel_restore(const struct ddp_kernel_case *c, struct ddp_kernel_data *d)
{
    if (c->feedback)
        memcpy(d->residual, d->kept, d->n * 4);
}

void ddp_kernel_run(const struct ddp_kernel_case *c, struct ddp_kernel_data *d)
{
    c->run(c, d);
}

double ddp_kernel_bytes(const struct ddp_kernel_case *c, const struct ddp_kernel_data *d)
{
    double n = (double)d->n, kept = (double)d->kept_count;
    if (c->run == run_reduce)
        return c->bytes_each * n * (double)ddp_dtype_size(c->dtype);
    if (c->run == run_reduce_many)
        return c->bytes_each * n * 4;
    double bytes = c->bytes_each * n + c->bytes_kept * kept;
    if (c->run == run_scatter_add) /* an entry reads and writes a line of 64 bytes */
        bytes += 128 * DDP_MIN(kept, n / 16);
    return bytes;
}
