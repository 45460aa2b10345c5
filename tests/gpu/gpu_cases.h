/* Cases that compare element-wise kernels and lists on a stream with the processor's, bit for bit.
 * test_gpu_kernels.c and test_gpu_emulated.c run them for their devices. gpu_select.h has the
 * selection. */
#ifndef DDP_TEST_GPU_CASES_H
#define DDP_TEST_GPU_CASES_H

#include "base/dtype_info.h"
#include "gpu/gpu_lab.h"

static const enum ddp_dtype lab_halves[] = {DDP_F16, DDP_BF16};

/* Sizes around the boundaries of vectors, threads and blocks. */
static const size_t lab_sizes[] = {0, 1, 3, 4, 5, 63, 1000, 4095, 4096, 4097, 20000, 300007};

static inline size_t lab_size_count(const struct lab *lab)
{
    return DDP_COUNT_OF(lab_sizes) - (lab->slow ? 1 : 0);
}

static inline void case_convert(const struct lab *lab, enum grad_kind kind, size_t n,
                                enum ddp_dtype type, size_t offset, float scale, float clip)
{
    struct lab_case c = {.lab = lab};
    char context[128];
    snprintf(context, sizeof context, "%s, n %zu, %s, offset %zu, scale %g, clip %g",
             grad_kind_names[kind], n, ddp_dtype_name(type), offset, (double)scale, (double)clip);
    float *x = lab_values(kind, n, 1), *sum = lab_values(GRAD_NORMAL, n, 2);
    float *left = (float *)ddp_calloc(n + 1, 4), *wide = (float *)ddp_calloc(n + 1, 4);
    uint16_t *wire = (uint16_t *)ddp_calloc(n + 1, 2);
    uint64_t zero = 5;
    const int src = lab_put(&c, x, n * 4, offset), dst = lab_put(&c, NULL, n * 2, offset / 2);
    const int count = lab_put(&c, &zero, 8, 0), back = lab_put(&c, NULL, n * 4, offset);
    const int add = lab_put(&c, sum, n * 4, offset), rest = lab_put(&c, NULL, n * 4, offset);
    lab->k->narrow(lab->stream, lab_there(&c, dst), lab_there(&c, src), n, type, scale, clip,
                   lab_there(&c, count));
    lab->k->widen(lab->stream, lab_there(&c, back), lab_there(&c, dst), n, type);
    lab->k->widen_add(lab->stream, lab_there(&c, add), lab_there(&c, dst), n, type);
    lab->k->narrow_residual(lab->stream, lab_there(&c, rest), lab_there(&c, src),
                            lab_there(&c, dst), n, type);
    lab->k->narrow_residual(lab->stream, lab_there(&c, src), lab_there(&c, src), lab_there(&c, dst),
                            n, type); /* in place */
    const uint64_t overflows = 5 + lab->cpu->narrow(wire, x, n, type, scale, clip);
    lab->cpu->widen(wide, wire, n, type);
    lab->cpu->widen_add(sum, wire, n, type);
    lab->cpu->narrow_residual(left, x, wire, n, type);
    lab_same("narrow", context, lab_get(&c, dst), wire, n * 2, 2);
    lab_same("overflows", context, lab_get(&c, count), &overflows, 8, 8);
    lab_same("widen", context, lab_get(&c, back), wide, n * 4, 4);
    lab_same("widen_add", context, lab_get(&c, add), sum, n * 4, 4);
    lab_same("narrow_residual", context, lab_get(&c, rest), left, n * 4, 4);
    lab_same("narrow_residual in place", context, lab_get(&c, src), left, n * 4, 4);
    lab_end(&c);
    free(x);
    free(sum);
    free(left);
    free(wide);
    free(wire);
}

static inline void cases_convert(const struct lab *lab)
{
    for (size_t s = 0; s < lab_size_count(lab); s++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (int t = 0; t < 2; t++) {
                const size_t n = lab_sizes[s], offset = s % 3 == 1 ? 4 : 0;
                case_convert(lab, (enum grad_kind)kind, n, lab_halves[t], offset, 1, 0);
                case_convert(lab, (enum grad_kind)kind, n, lab_halves[t], offset, 1e5f / 3, 2.5f);
            }
}

/* Widens all 16-bit values, and narrows floats of every exponent and rounding. */
static inline void cases_all_halves(const struct lab *lab)
{
    const size_t n = 1 << 16;
    uint16_t *half = (uint16_t *)ddp_calloc(n, 2);
    uint32_t *bits = (uint32_t *)ddp_calloc(4 * n, 4);
    float *wide = (float *)ddp_calloc(n, 4);
    uint16_t *wire = (uint16_t *)ddp_calloc(4 * n, 2);
    for (size_t i = 0; i < n; i++) {
        static const uint32_t tails[] = {0x0fff, 0x1000, 0x7fff, 0x8000};
        half[i] = (uint16_t)i;
        for (size_t t = 0; t < 4; t++)
            bits[4 * i + t] = (uint32_t)i << 16 | tails[t];
    }
    for (int t = 0; t < 2; t++) {
        struct lab_case c = {.lab = lab};
        const int src = lab_put(&c, half, n * 2, 0), dst = lab_put(&c, NULL, n * 4, 0);
        const int from = lab_put(&c, bits, 4 * n * 4, 0), to = lab_put(&c, NULL, 4 * n * 2, 0);
        lab->k->widen(lab->stream, lab_there(&c, dst), lab_there(&c, src), n, lab_halves[t]);
        lab->k->narrow(lab->stream, lab_there(&c, to), lab_there(&c, from), 4 * n, lab_halves[t], 1,
                       0, NULL);
        lab->cpu->widen(wide, half, n, lab_halves[t]);
        lab->cpu->narrow(wire, (const float *)(const void *)bits, 4 * n, lab_halves[t], 1, 0);
        lab_same("widen", "all halves", lab_get(&c, dst), wide, n * 4, 4);
        lab_same("narrow", "all roundings", lab_get(&c, to), wire, 4 * n * 2, 2);
        lab_end(&c);
    }
    free(half);
    free(bits);
    free(wide);
    free(wire);
}

#define MANY 40 /* sources of the longest reduction here */

struct reduce_case {
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor, sources, targets;
    size_t n, offset;
    bool in_place;
};

static inline void case_reduce(const struct lab *lab, const struct reduce_case *r)
{
    char context[128];
    const size_t elem = ddp_dtype_size(r->dtype), bytes = r->n * elem;
    const size_t words = bytes / 4 + 1;
    void *dst[4], *host_dst[4], *there[LAB_ARRAYS];
    const void *src[MANY], *host_src[MANY];
    int array[LAB_ARRAYS];
    struct lab_case c = {.lab = lab};
    snprintf(context, sizeof context, "%s %s, divisor %d, %d into %d, n %zu, offset %zu",
             ddp_dtype_name(r->dtype), ddp_op_name(r->op), r->divisor, r->sources, r->targets, r->n,
             r->offset);
    for (int i = 0; i < 8; i++) { /* some of the sources are the same array */
        float *x = lab_values(i % 2 ? GRAD_BITS : GRAD_NAN_INF, words, (uint64_t)i);
        array[i] = lab_put(&c, x, bytes, r->offset);
        there[i] = lab_there(&c, array[i]);
        free(x);
    }
    for (int i = 0; i < r->sources; i++) {
        src[i] = there[i % 8];
        host_src[i] = guarded_at(&c.array[array[i % 8]].host);
    }
    int out[4];
    for (int d = 0; d < r->targets; d++) {
        out[d] = d == 0 && r->in_place ? array[0] : lab_put(&c, NULL, bytes, r->offset);
        dst[d] = lab_there(&c, out[d]);
        host_dst[d] = ddp_calloc(bytes + 1, 1);
    }
    struct ddp_reduce what = {.dst = host_dst,
                              .dst_count = r->targets,
                              .src = host_src,
                              .src_count = r->sources,
                              .count = r->n,
                              .dtype = r->dtype,
                              .op = r->op,
                              .divisor = r->divisor};
    ddp_device_cpu(DDP_SIMD_SCALAR)->reduce(&what);
    what.dst = dst;
    what.src = src;
    lab->k->reduce(lab->stream, &what);
    for (int d = 0; d < r->targets; d++) {
        lab_same("reduce", context, lab_get(&c, out[d]), host_dst[d], bytes, elem);
        free(host_dst[d]);
    }
    lab_end(&c);
}

static inline void cases_reduce(const struct lab *lab)
{
    static const int sources[] = {1, 2, 3, 5, 8, MANY}, divisors[] = {1, 3, 4};
    static const size_t sizes[] = {1, 17, 4096, 10007};
    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DDP_OP_COUNT; op++)
            for (size_t s = 0; s < DDP_COUNT_OF(sources); s++)
                for (size_t d = 0; d < DDP_COUNT_OF(divisors); d++) {
                    if (divisors[d] > 1 && op != DDP_SUM && op != DDP_AVG)
                        continue;
                    const bool averages = divisors[d] > 1 && ddp_dtypes[dtype].kind != DDP_FLOAT;
                    /* The quotient of integers must fit the type. */
                    struct reduce_case r = {(enum ddp_dtype)dtype,
                                            (enum ddp_op)op,
                                            averages ? DDP_MAX(divisors[d], sources[s])
                                                     : divisors[d],
                                            sources[s],
                                            1 + (int)(s % 3),
                                            sizes[(s + d) % DDP_COUNT_OF(sizes)],
                                            0,
                                            s % 2 == 1};
                    case_reduce(lab, &r);
                    r.offset =
                        ddp_dtype_size(r.dtype); /* aligned to the element, not to 16 bytes */
                    case_reduce(lab, &r);
                }
}

static inline void cases_optimisers(const struct lab *lab)
{
    const struct ddp_adam adam = {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 7};
    for (size_t s = 0; s < lab_size_count(lab); s++)
        for (int kind = 0; kind < GRAD_KINDS; kind++) {
            const size_t n = lab_sizes[s];
            struct lab_case c = {.lab = lab};
            float *x[4];
            int there[4];
            for (int i = 0; i < 4; i++) {
                x[i] = lab_values((enum grad_kind)kind, n, (uint64_t)i);
                there[i] = lab_put(&c, x[i], n * 4, s % 2 ? 8 : 0);
            }
            lab->k->sgd(lab->stream, lab_there(&c, there[0]), lab_there(&c, there[1]),
                        lab_there(&c, there[3]), n, 0.1f, 0.9f, 0.01f);
            lab->k->adam(lab->stream, lab_there(&c, there[0]), lab_there(&c, there[1]),
                         lab_there(&c, there[2]), lab_there(&c, there[3]), n, &adam);
            lab->cpu->sgd(x[0], x[1], x[3], n, 0.1f, 0.9f, 0.01f);
            lab->cpu->adam(x[0], x[1], x[2], x[3], n, &adam);
            for (int i = 0; i < 4; i++)
                lab_same("optimisers", grad_kind_names[kind], lab_get(&c, there[i]), x[i], n * 4,
                         4);
            for (int i = 0; i < 4; i++)
                free(x[i]);
            lab_end(&c);
        }
}

/* Makes an ascending list of `count` indices below n. Two lists of a pair of seeds share one index
 * in `share`. */
static inline void make_list(struct ddp_sparse *l, size_t n, size_t count, uint64_t seed)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, seed, 77);
    l->index = (uint32_t *)ddp_calloc(count + 1, 4);
    l->value = lab_values(seed % 2 ? GRAD_BITS : GRAD_NORMAL, count, seed);
    l->count = 0;
    for (size_t i = 0; i < n && l->count < count; i++)
        if (ddp_rng_u64(&rng) % (n - i) < count - l->count)
            l->index[l->count++] = (uint32_t)i;
}

static struct ddp_stream_list put_list(struct lab_case *c, const struct ddp_sparse *l,
                                       size_t capacity)
{
    const uint32_t count = (uint32_t)l->count;
    float *value = (float *)ddp_calloc(capacity + 1, 4);
    uint32_t *index = (uint32_t *)ddp_calloc(capacity + 1, 4);
    if (l->count) {
        memcpy(value, l->value, l->count * 4);
        memcpy(index, l->index, l->count * 4);
    }
    const int i = lab_put(c, index, capacity * 4, 0), v = lab_put(c, value, capacity * 4, 0);
    const int n = lab_put(c, &count, 4, 0);
    free(value);
    free(index);
    return (struct ddp_stream_list){(uint32_t *)lab_there(c, i), (float *)lab_there(c, v),
                                    (uint32_t *)lab_there(c, n), capacity};
}

static inline void case_lists(const struct lab *lab, size_t n, size_t a_count, size_t b_count)
{
    char context[96];
    struct lab_case c = {.lab = lab};
    struct ddp_sparse a, b;
    snprintf(context, sizeof context, "n %zu, lists of %zu and %zu", n, a_count, b_count);
    make_list(&a, n, a_count, 2);
    make_list(&b, n, b_count, 3);
    const size_t room = a_count + b_count;
    struct ddp_sparse sum = {(uint32_t *)ddp_calloc(room + 1, 4), (float *)ddp_calloc(room + 1, 4),
                             0};
    const struct ddp_stream_list la = put_list(&c, &a, a_count + 7), lb = put_list(&c, &b, b_count);
    const int index = lab_put(&c, NULL, (room + 7) * 4, 0);
    const int value = lab_put(&c, NULL, (room + 7) * 4, 0), count = lab_put(&c, NULL, 4, 0);
    const int scratch = lab_put(&c, NULL, lab->k->merge_scratch(b_count), 0);
    const struct ddp_stream_list out = {(uint32_t *)lab_there(&c, index),
                                        (float *)lab_there(&c, value),
                                        (uint32_t *)lab_there(&c, count), room + 7};
    lab->k->merge(lab->stream, &out, &la, &lb, lab_there(&c, scratch));
    lab->cpu->merge(&sum, &a, &b);
    const uint32_t merged = (uint32_t)sum.count;
    lab_same("merge: count", context, lab_get(&c, count), &merged, 4, 4);
    lab_same("merge: index", context, lab_get(&c, index), sum.index, sum.count * 4, 4);
    lab_same("merge: value", context, lab_get(&c, value), sum.value, sum.count * 4, 4);

    float *dst = lab_values(GRAD_BITS, n, 4);
    const int there = lab_put(&c, dst, n * 4, 4);
    float *at = (float *)lab_there(&c, there);
    lab->k->scatter_add(lab->stream, at, &la);
    lab->cpu->scatter_add(dst, &a);
    lab_same("scatter_add", context, lab_get(&c, there), dst, n * 4, 4);
    lab->k->scatter(lab->stream, at, &lb);
    lab->cpu->scatter(dst, &b);
    lab_same("scatter", context, lab_get(&c, there), dst, n * 4, 4);
    lab->k->scatter_zero(lab->stream, at, &out);
    lab->cpu->scatter_zero(dst, sum.index, sum.count);
    lab_same("scatter_zero", context, lab_get(&c, there), dst, n * 4, 4);
    lab_end(&c);
    float *owned[] = {dst, a.value, b.value, sum.value};
    for (size_t i = 0; i < DDP_COUNT_OF(owned); i++)
        free(owned[i]);
    free(a.index);
    free(b.index);
    free(sum.index);
}

static inline void cases_lists(const struct lab *lab)
{
    static const size_t counts[] = {0, 1, 255, 256, 257, 3000};
    for (size_t a = 0; a < DDP_COUNT_OF(counts); a++)
        for (size_t b = 0; b < DDP_COUNT_OF(counts); b++) {
            case_lists(lab, 4000, counts[a], counts[b]);
            case_lists(lab, 100000, counts[a], counts[b]);
        }
    if (!lab->slow)
        case_lists(lab, 3000000, 400000, 300000);
}

/* Checks that the times of events increase, and that a graph repeats the captured work. */
static inline void cases_streams(const struct lab *lab)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_event *from, *to;
    struct ddp_stream *other;
    struct ddp_graph *graph = NULL;
    struct lab_case c = {.lab = lab};
    const size_t n = 100000;
    float *x = lab_values(GRAD_NORMAL, n, 1), *sum = lab_values(GRAD_NORMAL, n, 2);
    uint16_t *wire = (uint16_t *)ddp_calloc(n, 2);
    double ns = -1;
    const int src = lab_put(&c, x, n * 4, 0), dst = lab_put(&c, sum, n * 4, 0);
    const int half = lab_put(&c, NULL, n * 2, 0);
    lab_wait(lab);
    assert_int_equal(lab->ops->event_create(&from, &err), 0);
    assert_int_equal(lab->ops->event_create(&to, &err), 0);
    assert_int_equal(lab->ops->create(&other, &err), 0);
    const bool graphs = lab->ops->capture_begin(lab->stream, &err) == 0;
    if (!graphs)
        assert_int_equal(err.code, DDP_EUNAVAIL);
    lab->k->narrow(lab->stream, lab_there(&c, half), lab_there(&c, src), n, DDP_BF16, 1, 0, NULL);
    lab->k->widen_add(lab->stream, lab_there(&c, dst), lab_there(&c, half), n, DDP_BF16);
    if (graphs) {
        assert_int_equal(lab->ops->capture_end(lab->stream, &graph, &err), 0);
        lab->ops->graph_launch(graph, lab->stream);
    }
    lab->ops->event_record(from, lab->stream);
    lab->ops->event_await(other, from);
    lab->k->widen_add(other, lab_there(&c, dst), lab_there(&c, half), n, DDP_BF16);
    lab->ops->event_record(to, other);
    assert_int_equal(lab->ops->event_elapsed(from, to, &ns, &err), 0);
    assert_true(ns >= 0);
    assert_int_equal(lab->ops->wait(other, &err), 0);
    assert_int_equal(lab->ops->query(other, &err), 1);
    if (graphs)
        lab->ops->graph_launch(graph, lab->stream);
    lab->cpu->narrow(wire, x, n, DDP_BF16, 1, 0);
    for (int i = 0; i < 2 + graphs; i++)
        lab->cpu->widen_add(sum, wire, n, DDP_BF16);
    lab_same("streams", "sum", lab_get(&c, dst), sum, n * 4, 4);
    lab->ops->fill(lab->stream, lab_there(&c, dst), 0x7e, n * 4);
    memset(sum, 0x7e, n * 4);
    lab_same("streams", "fill", lab_get(&c, dst), sum, n * 4, 4);
    lab->ops->graph_destroy(graph);
    lab->ops->event_destroy(from);
    lab->ops->event_destroy(to);
    lab->ops->destroy(other);
    lab_end(&c);
    free(x);
    free(sum);
    free(wire);
}

#endif
