/* Cases that compare the selection kernels on a stream with the processor's, bit for bit, and check
 * that no value is lost. They run for any device, as those of gpu_cases.h. */
#ifndef DDP_TEST_GPU_SELECT_H
#define DDP_TEST_GPU_SELECT_H

#include "device/select_ops.h"
#include "gpu/gpu_lab.h"

enum lab_feed { LAB_SUM, LAB_IN, LAB_RESIDUAL, LAB_FEEDS };

/* k: 0 selects by threshold. capacity: the entries of the output, for top-K at least min(k, n). */
struct lab_selection {
    enum grad_kind kind;
    enum lab_feed feed;
    size_t n, k, capacity, offset;
    float threshold;
    bool topk;
    bool deceived; /* the largest values lie only at positions that the sample reads */
};

/* Selects on the processor. Entries beyond the capacity stay in the residual. */
static inline void select_on_cpu(const struct lab *lab, const struct lab_selection *q,
                                 struct ddp_select *s)
{
    void *scratch = ddp_calloc(q->n + 1, 8);
    if (q->topk)
        lab->cpu->select_topk(s, q->k, NULL, scratch);
    else
        lab->cpu->select_threshold(s, q->threshold);
    free(scratch);
    for (; s->out.count > q->capacity; s->out.count--)
        if (s->residual)
            s->residual[s->out.index[s->out.count - 1]] = s->out.value[s->out.count - 1];
}

static inline void case_select(const struct lab *lab, const struct lab_selection *q)
{
    char context[160];
    struct lab_case c = {.lab = lab};
    const size_t n = q->n;
    snprintf(context, sizeof context,
             "%s, feed %d, n %zu, k %zu, threshold %g, capacity %zu, offset %zu",
             grad_kind_names[q->kind], (int)q->feed, n, q->k, (double)q->threshold, q->capacity,
             q->offset);
    float *in = lab_values(q->kind, n, 1), *residual = lab_values(q->kind, n, 2);
    for (size_t i = 0; q->deceived && i < DDP_SAMPLE; i++)
        in[ddp_sample_at((uint32_t)n, (uint32_t)(i / DDP_SAMPLE_LINE)) + i % DDP_SAMPLE_LINE] *=
            1e6f;
    const int there_in = lab_put(&c, in, n * 4, q->offset);
    const int there_residual = lab_put(&c, residual, n * 4, q->offset);
    const int index = lab_put(&c, NULL, q->capacity * 4, q->offset);
    const int value = lab_put(&c, NULL, q->capacity * 4, 0), count = lab_put(&c, NULL, 4, 0);
    const size_t scratch_bytes = lab->k->select_scratch(n, q->topk ? q->k : 0);
    const int scratch = lab_put(&c, NULL, scratch_bytes, 0);
    const struct ddp_stream_select x = {
        .in = q->feed == LAB_RESIDUAL ? NULL : (const float *)lab_there(&c, there_in),
        .residual = q->feed == LAB_IN ? NULL : (float *)lab_there(&c, there_residual),
        .n = n,
        .out = {(uint32_t *)lab_there(&c, index), (float *)lab_there(&c, value),
                (uint32_t *)lab_there(&c, count), q->capacity},
        .scratch = lab_there(&c, scratch),
        .scratch_bytes = scratch_bytes};
    if (q->topk)
        lab->k->select_topk(lab->stream, &x, q->k);
    else
        lab->k->select_threshold(lab->stream, &x, q->threshold);

    struct ddp_select right = {
        .in = x.in ? in : NULL,
        .residual = x.residual ? residual : NULL,
        .n = n,
        .out = {(uint32_t *)ddp_calloc(n + 1, 4), (float *)ddp_calloc(n + 1, 4), 0}};
    select_on_cpu(lab, q, &right);
    const uint32_t sent = (uint32_t)right.out.count;
    lab_same("select: count", context, lab_get(&c, count), &sent, 4, 4);
    lab_same("select: index", context, lab_get(&c, index), right.out.index, sent * 4, 4);
    lab_same("select: value", context, lab_get(&c, value), right.out.value, sent * 4, 4);
    lab_same("select: residual", context, lab_get(&c, there_residual), residual, n * 4, 4);
    lab_same("select: in", context, lab_get(&c, there_in), in, n * 4, 4);
    (void)lab_get(&c, scratch); /* checks its guard bytes */
    lab_end(&c);
    free(in);
    free(residual);
    free(right.out.index);
    free(right.out.value);
}

static inline void cases_threshold(const struct lab *lab)
{
    static const size_t sizes[] = {0, 1, 5, 1023, 4095, 4096, 4097, 13000, 500003};
    static const float thresholds[] = {0, 1e-3f, 0.25f, 2, INFINITY};
    for (size_t s = 0; s < DDP_COUNT_OF(sizes) - (lab->slow ? 1 : 0); s++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (int feed = 0; feed < LAB_FEEDS; feed++) {
                struct lab_selection q = {.kind = (enum grad_kind)kind,
                                          .feed = (enum lab_feed)feed,
                                          .n = sizes[s],
                                          .capacity = sizes[s],
                                          .offset = s % 2 ? 4 : 0,
                                          .threshold = thresholds[(s + (size_t)kind) % 5]};
                case_select(lab, &q);
                q.threshold = 0.25f;
                q.capacity = sizes[s] / 5; /* too small, so the rest stays in the residual */
                case_select(lab, &q);
            }
}

static inline void cases_topk(const struct lab *lab)
{
    static const size_t sizes[] = {0, 1, 2, 100, 4097, 13000, 100003};
    for (size_t s = 0; s < DDP_COUNT_OF(sizes) - (lab->slow ? 1 : 0); s++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (int feed = 0; feed < LAB_FEEDS; feed++) {
                const size_t n = sizes[s], ks[] = {0, 1, n / 100, n / 2, n, n + 3};
                const size_t k = ks[((size_t)kind + (size_t)feed + s) % DDP_COUNT_OF(ks)];
                case_select(lab, &(struct lab_selection){.kind = (enum grad_kind)kind,
                                                         .feed = (enum lab_feed)feed,
                                                         .n = n,
                                                         .k = k,
                                                         .capacity = DDP_MIN(k, n),
                                                         .offset = s % 2 ? 4 : 0,
                                                         .topk = true});
            }
}

/* Arrays that are long enough for a sample to choose candidates, also where there are too many (all
 * of one magnitude) or too few of them (deceived). */
static inline void cases_topk_long(const struct lab *lab)
{
    static const enum grad_kind kinds[] = {GRAD_NORMAL, GRAD_SPARSE, GRAD_CONSTANT, GRAD_HEAVY,
                                           GRAD_BITS,   GRAD_RISING, GRAD_FEW,      GRAD_SPIKY,
                                           GRAD_ZERO,   GRAD_FALLING};
    const size_t n = lab->slow ? 1050007 : 3000001;
    for (size_t i = 0; i < (lab->slow ? 5 : DDP_COUNT_OF(kinds)); i++) {
        const size_t ks[] = {n / 1000, n / 100, n / 11, 7};
        for (size_t j = 0; j < (lab->slow ? 1 : DDP_COUNT_OF(ks)); j++)
            case_select(lab, &(struct lab_selection){.kind = kinds[i],
                                                     .feed = (enum lab_feed)((i + j) % LAB_FEEDS),
                                                     .n = n,
                                                     .k = ks[(i + j) % DDP_COUNT_OF(ks)],
                                                     .capacity = ks[(i + j) % DDP_COUNT_OF(ks)],
                                                     .offset = j == 2 ? 4 : 0,
                                                     .topk = true});
    }
    case_select(lab, &(struct lab_selection){.n = n,
                                             .k = n / 12,
                                             .capacity = n / 12,
                                             .feed = LAB_SUM,
                                             .topk = true,
                                             .deceived = true});
}

#endif
