/* The stream kernels of the processor. Each function calls the kernel of the best SIMD level and
 * returns when the kernel is done. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "device/cpu/dev_cpu_impl.h"

static const struct ddp_device *best(void)
{
    return ddp_device_cpu(ddp_cpu_best_simd());
}

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

/* Returns the scratch bytes of a selection. The scratch memory holds a list of n entries, because
 * more entries may be selected than sent. Top-K (k > 0) needs the same amount again as the scratch
 * memory of its kernel. */
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

const struct ddp_stream_kernels ddp_cpu_kernels = {
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
    .scale = ddp_cpu_scale,
    .widen_back = ddp_cpu_widen_back,
    .add_count = ddp_cpu_add_count,
};
