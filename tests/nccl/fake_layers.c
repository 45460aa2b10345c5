/* The kernels of the layers and the stream kernels of the fake GPU (fake_gpu.h), for training. Each
 * call is put on the fake stream. When the stream is queried, the processor's kernels do the work,
 * after every pointer into the GPU's memory is replaced by the host address. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/fake_gpu.h"

#include "base/mem.h"
#include "device/cuda/dev_cuda.h"
#include "device/input_ops.h"
#include "device/stream_kernels.h"
#include "model/nn_stream.h"

/* Replaces every 8-byte word of arg that points into the GPU's memory by the host address. */
static void translate(void *arg, size_t bytes)
{
    for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
        void *p;
        memcpy(&p, (char *)arg + at, sizeof p);
        p = fake_gpu_host(p);
        memcpy((char *)arg + at, &p, sizeof p);
    }
}

/* Defines the function of a piece of work. struct NAME_work holds the arguments; DO runs with w
 * pointing to them. */
#define WORK(name, DO)                                                                             \
    static int name##_do(void *arg)                                                                \
    {                                                                                              \
        struct name##_work copy, *w = &copy;                                                       \
        memcpy(w, arg, sizeof *w); /* a graph does it again */                                     \
        translate(w, sizeof *w);                                                                   \
        DO;                                                                                        \
        return 1;                                                                                  \
    }
#define PUT(name, s, ...)                                                                          \
    do {                                                                                           \
        const struct name##_work work = {__VA_ARGS__};                                             \
        fake_gpu_put(ddp_dev_cuda.streams->native(s), name##_do, &work, sizeof work);              \
    } while (0)

static const struct ddp_stream_kernels *cpu(void)
{
    return ddp_device_cpu(ddp_cpu_best_simd())->stream_kernels;
}

#define MAP(name)                                                                                  \
    struct name##_work {                                                                           \
        struct ddp_nn_##name args;                                                                 \
        uint32_t count;                                                                            \
    };                                                                                             \
    WORK(name, ddp_nn_stream_cpu.name(NULL, w->count, &w->args))                                   \
    static void name##_put(struct ddp_stream *s, uint32_t count, const struct ddp_nn_##name *args) \
    {                                                                                              \
        PUT(name, s, *args, count);                                                                \
    }
DDP_NN_MAPS(MAP)

#define SUM(name)                                                                                  \
    struct name##_work {                                                                           \
        struct ddp_nn_##name args;                                                                 \
        uint32_t rows, count;                                                                      \
    };                                                                                             \
    WORK(name, ddp_nn_stream_cpu.name(NULL, w->rows, w->count, &w->args, NULL))                    \
    static void name##_put(struct ddp_stream *s, uint32_t rows, uint32_t count,                    \
                           const struct ddp_nn_##name *args, struct ddp_nn_pair *parts)            \
    {                                                                                              \
        PUT(name, s, *args, rows, count);                                                          \
    }
DDP_NN_SUMS(SUM)

struct tally_work {
    const double *each;
    const int *hit;
    double *loss;
    int *correct;
    uint32_t n;
};
WORK(tally, ddp_nn_stream_cpu.tally(NULL, w->n, w->each, w->hit, w->loss, w->correct))
static void tally_put(struct ddp_stream *s, uint32_t n, const double *each, const int *hit,
                      double *loss, int *correct)
{
    PUT(tally, s, each, hit, loss, correct, n);
}

const struct ddp_nn_stream ddp_nn_stream_cuda = {
#define ROW(name) .name = name##_put,
    DDP_NN_MAPS(ROW) DDP_NN_SUMS(ROW)
#undef ROW
        .tally = tally_put,
};

/* Layers report a failed call of a library here. A fake stream keeps no error, so the program ends.
 */
void ddp_cuda_note(struct ddp_stream *s, int code, const char *call)
{
    (void)s;
    fprintf(stderr, "fake GPU: %s (CUDA error %d)\n", call, code);
    abort();
}

/* The stream kernels that training and its strategies use. */
struct narrow_work {
    void *dst;
    const float *src;
    size_t n;
    uint64_t *overflows;
    enum ddp_dtype to;
    float scale, clip;
};
WORK(narrow, cpu()->narrow(NULL, w->dst, w->src, w->n, w->to, w->scale, w->clip, w->overflows))
static void narrow_put(struct ddp_stream *s, void *dst, const float *src, size_t n,
                       enum ddp_dtype to, float scale, float clip, uint64_t *overflows)
{
    PUT(narrow, s, dst, src, n, overflows, to, scale, clip);
}

struct widen_back_work {
    float *dst;
    const void *src;
    size_t n;
    uint64_t *overflows;
    enum ddp_dtype from;
};
WORK(widen_back, cpu()->widen_back(NULL, w->dst, w->src, w->n, w->from, w->overflows))
static void widen_back_put(struct ddp_stream *s, float *dst, const void *src, size_t n,
                           enum ddp_dtype from, uint64_t *overflows)
{
    PUT(widen_back, s, dst, src, n, overflows, from);
}

struct select_work {
    struct ddp_stream_select x;
    size_t k;
    float threshold;
};
WORK(select, if (w->k > 0) cpu()->select_topk(NULL, &w->x, w->k);
     else cpu()->select_threshold(NULL, &w->x, w->threshold))
static void topk_put(struct ddp_stream *s, const struct ddp_stream_select *x, size_t k)
{
    PUT(select, s, *x, k, 0.0f);
}
static void threshold_put(struct ddp_stream *s, const struct ddp_stream_select *x, float threshold)
{
    PUT(select, s, *x, 0, threshold);
}
static size_t select_scratch(size_t n, size_t k)
{
    return cpu()->select_scratch(n, k);
}

struct scatter_work {
    struct ddp_stream_list list;
    float *dst;
};
WORK(scatter, cpu()->scatter_add(NULL, w->dst, &w->list))
static void scatter_put(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list)
{
    PUT(scatter, s, *list, dst);
}

/* Arguments of scatter and scatter_zero. */
struct set_work {
    struct ddp_stream_list list;
    float *dst;
    bool zero;
};
WORK(set, if (w->zero) cpu()->scatter_zero(NULL, w->dst, &w->list);
     else cpu()->scatter(NULL, w->dst, &w->list))
static void set_put(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list)
{
    PUT(set, s, *list, dst, false);
}
static void zero_put(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list)
{
    PUT(set, s, *list, dst, true);
}

/* Reduces two arrays into one; training needs no other number of arrays. */
struct reduce_work {
    void *dst;
    const void *a, *b;
    size_t count;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;
};
static void reduce_two(const struct reduce_work *w)
{
    void *const dst[] = {w->dst};
    const void *const src[] = {w->a, w->b};
    const struct ddp_reduce r = {.dst = dst,
                                 .dst_count = 1,
                                 .src = src,
                                 .src_count = 2,
                                 .count = w->count,
                                 .dtype = w->dtype,
                                 .op = w->op,
                                 .divisor = w->divisor};
    cpu()->reduce(NULL, &r);
}
WORK(reduce, reduce_two(w))
static void reduce_put(struct ddp_stream *s, const struct ddp_reduce *r)
{
    assert(r->dst_count == 1 && r->src_count == 2);
    PUT(reduce, s, r->dst[0], r->src[0], r->src[1], r->count, r->dtype, r->op, r->divisor);
}

struct residual_work {
    float *residual;
    const float *in;
    const void *wire;
    size_t n;
    enum ddp_dtype type;
};
WORK(residual, cpu()->narrow_residual(NULL, w->residual, w->in, w->wire, w->n, w->type))
static void residual_put(struct ddp_stream *s, float *residual, const float *in, const void *wire,
                         size_t n, enum ddp_dtype type)
{
    PUT(residual, s, residual, in, wire, n, type);
}

struct scale_work {
    float *a;
    size_t n;
    double factor;
};
WORK(scale, cpu()->scale(NULL, w->a, w->n, w->factor))
static void scale_put(struct ddp_stream *s, float *a, size_t n, double factor)
{
    PUT(scale, s, a, n, factor);
}

struct count_work {
    uint64_t *sum;
    const uint32_t *count;
};
WORK(count, cpu()->add_count(NULL, w->sum, w->count))
static void count_put(struct ddp_stream *s, uint64_t *sum, const uint32_t *count)
{
    PUT(count, s, sum, count);
}

struct split_work {
    struct ddp_stream_list list;
    const uint32_t *bound;
    size_t bounds;
    uint32_t *before;
};
WORK(split, cpu()->split(NULL, &w->list, w->bound, w->bounds, w->before))
static void split_put(struct ddp_stream *s, const struct ddp_stream_list *list,
                      const uint32_t *bound, size_t bounds, uint32_t *before)
{
    PUT(split, s, *list, bound, bounds, before);
}

struct digits_work {
    const float *value;
    uint32_t *count;
    size_t n;
    uint32_t prefix;
    int shift;
};
WORK(digits, cpu()->count_digits(NULL, w->value, w->n, w->prefix, w->shift, w->count))
static void digits_put(struct ddp_stream *s, const float *value, size_t n, uint32_t prefix,
                       int shift, uint32_t *count)
{
    PUT(digits, s, value, count, n, prefix, shift);
}

struct expected_work {
    void *data;
    uint64_t *wrong; /* NULL: write */
    struct ddp_expected e;
    size_t first, count;
};
WORK(expected, if (w->wrong) cpu()->count_wrong(NULL, w->data, &w->e, w->first, w->count, w->wrong);
     else cpu()->write_expected(NULL, w->data, &w->e, w->first, w->count))
static void write_expected_put(struct ddp_stream *s, void *dst, const struct ddp_expected *e,
                               size_t first, size_t count)
{
    PUT(expected, s, dst, NULL, *e, first, count);
}
static void count_wrong_put(struct ddp_stream *s, const void *data, const struct ddp_expected *e,
                            size_t first, size_t count, uint64_t *wrong)
{
    PUT(expected, s, (void *)(uintptr_t)data, wrong, *e, first, count);
}

struct optimiser_work {
    float *p, *m, *v;
    const float *grad;
    size_t n;
    struct ddp_adam adam;
    float lr, momentum, weight_decay;
};
WORK(optimiser, if (w->m) cpu()->adam(NULL, w->p, w->m, w->v, w->grad, w->n, &w->adam);
     else cpu()->sgd(NULL, w->p, w->v, w->grad, w->n, w->lr, w->momentum, w->weight_decay))
static void sgd_put(struct ddp_stream *s, float *p, float *v, const float *grad, size_t n, float lr,
                    float momentum, float weight_decay)
{
    PUT(optimiser, s, .p = p, .v = v, .grad = grad, .n = n, .lr = lr, .momentum = momentum,
        .weight_decay = weight_decay);
}
static void adam_put(struct ddp_stream *s, float *p, float *m, float *v, const float *grad,
                     size_t n, const struct ddp_adam *a)
{
    PUT(optimiser, s, .p = p, .m = m, .v = v, .grad = grad, .n = n, .adam = *a);
}

const struct ddp_stream_kernels fake_gpu_kernels = {
    .narrow = narrow_put,
    .widen_back = widen_back_put,
    .select_scratch = select_scratch,
    .select_topk = topk_put,
    .select_threshold = threshold_put,
    .scatter_add = scatter_put,
    .scatter = set_put,
    .scatter_zero = zero_put,
    .reduce = reduce_put,
    .narrow_residual = residual_put,
    .scale = scale_put,
    .add_count = count_put,
    .split = split_put,
    .count_digits = digits_put,
    .write_expected = write_expected_put,
    .count_wrong = count_wrong_put,
    .sgd = sgd_put,
    .adam = adam_put,
};
