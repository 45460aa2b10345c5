/* Cases like those of gpu_cases.h for the other kernels that strategies on a device need: scale,
 * widen_back, add_count,
 * split, count_digits, write_expected and count_wrong. */
#ifndef DDP_TEST_GPU_EXCHANGE_H
#define DDP_TEST_GPU_EXCHANGE_H

#include "bench/verify.h"
#include "device/element_ops.h"
#include "device/input_ops.h"
#include "gpu/gpu_cases.h"

static inline void exchange_case(const struct lab *lab, enum grad_kind kind, size_t n)
{
    struct lab_case c = {.lab = lab};
    float *a = lab_values(kind, n, 1), *dst = lab_values(kind, n, 2);
    uint16_t *half = (uint16_t *)ddp_calloc(n + 1, 2);
    uint64_t count[2] = {5, 7}, wanted[2] = {5, 7 + 40};
    const uint32_t forty = 40;
    for (size_t i = 0; i < n; i++)
        half[i] = ddp_half_narrow(ddp_f32_canonical(a[i] * 1e3f), DDP_F16);
    const int x = lab_put(&c, a, n * 4, 0), back = lab_put(&c, dst, n * 4, 0);
    const int wire = lab_put(&c, half, n * 2, 0), sums = lab_put(&c, count, sizeof(count), 0);
    const int one = lab_put(&c, &forty, sizeof(forty), 0);
    lab->k->scale(lab->stream, (float *)lab_there(&c, x), n, 1.0 / 3);
    lab->k->widen_back(lab->stream, (float *)lab_there(&c, back), lab_there(&c, wire), n, DDP_F16,
                       (uint64_t *)lab_there(&c, sums));
    lab->k->add_count(lab->stream, (uint64_t *)lab_there(&c, sums) + 1,
                      (const uint32_t *)lab_there(&c, one));
    for (size_t i = 0; i < n; i++) {
        wanted[0] += (uint64_t)((half[i] & 0x7c00) == 0x7c00 && isfinite(dst[i]));
        dst[i] = ddp_half_widen(half[i], DDP_F16);
        const float exact = (float)(a[i] * (1.0 / 3));
        a[i] = exact == exact ? exact : ddp_f32_from(0x7fc00000u);
    }
    lab_same("scale", grad_kind_names[kind], lab_get(&c, x), a, n * 4, 4);
    lab_same("widen_back", grad_kind_names[kind], lab_get(&c, back), dst, n * 4, 4);
    lab_same("counts", grad_kind_names[kind], lab_get(&c, sums), wanted, sizeof(wanted), 8);
    free(a);
    free(dst);
    free(half);
    lab_end(&c);
}

/* Splits a list of every third index at bounds between, at and beyond its indices. */
static inline void split_case(const struct lab *lab, uint32_t count)
{
    struct lab_case c = {.lab = lab};
    const uint32_t bound[] = {0, 1, 3, count, 3 * count, 3 * count + 9, UINT32_MAX};
    uint32_t *index = (uint32_t *)ddp_calloc(count + 1, 4), wanted[DDP_COUNT_OF(bound)] = {0};
    for (uint32_t i = 0; i < count; i++) {
        index[i] = 3 * i + 1;
        for (size_t b = 0; b < DDP_COUNT_OF(bound); b++)
            wanted[b] += index[i] < bound[b];
    }
    const int list = lab_put(&c, index, count * 4, 0), length = lab_put(&c, &count, 4, 0);
    const int bounds = lab_put(&c, bound, sizeof(bound), 0);
    const int before = lab_put(&c, NULL, sizeof(bound), 0);
    const struct ddp_stream_list l = {(uint32_t *)lab_there(&c, list), NULL,
                                      (uint32_t *)lab_there(&c, length), count};
    lab->k->split(lab->stream, &l, (const uint32_t *)lab_there(&c, bounds), DDP_COUNT_OF(bound),
                  (uint32_t *)lab_there(&c, before));
    lab_same("split", "", lab_get(&c, before), wanted, sizeof(wanted), 4);
    free(index);
    lab_end(&c);
}

/* Counts the digits that follow the higher digits of one of the values. */
static inline void digits_case(const struct lab *lab, enum grad_kind kind, size_t n, int shift)
{
    struct lab_case c = {.lab = lab};
    float *x = lab_values(kind, n, 1);
    uint32_t wanted[DDP_DIGITS] = {3, 0, 9}, first[DDP_DIGITS] = {3, 0, 9};
    const uint64_t one = n > 0 ? ddp_f32_bits(x[n / 2]) & INT32_MAX : 0;
    const uint32_t prefix = (uint32_t)(one >> (shift + 4));
    for (size_t i = 0; i < n; i++) {
        const uint64_t m = ddp_f32_bits(x[i]) & INT32_MAX;
        if (m != 0 && m >> (shift + 4) == prefix)
            wanted[m >> shift & 15]++;
    }
    const int there = lab_put(&c, x, n * 4, 4), counts = lab_put(&c, first, sizeof(first), 0);
    lab->k->count_digits(lab->stream, (const float *)lab_there(&c, there), n, prefix, shift,
                         (uint32_t *)lab_there(&c, counts));
    lab_same("count_digits", grad_kind_names[kind], lab_get(&c, counts), wanted, sizeof(wanted), 4);
    free(x);
    lab_end(&c);
}

/* Writes the input of a rank, or a right result if src is -1. Compares the input with that of
 * verify.c, and lets verify.c check the result. Then counts no wrong element, and one. */
static inline void expected_case(const struct lab *lab, const struct ddp_expected *e, size_t first,
                                 size_t n)
{
    struct lab_case c = {.lab = lab};
    struct ddp_err err = DDP_ERR_INIT;
    char context[64];
    const size_t elem = ddp_dtype_size(e->dtype);
    const int ranks = e->input.ranks;
    int64_t found = 0;
    uint64_t zero = 0, wrong[2] = {0, 1};
    unsigned char *there, *data = (unsigned char *)ddp_calloc(n * elem + 1, 1);
    snprintf(context, sizeof(context), "%s %s, %d ranks", ddp_dtype_name(e->dtype),
             ddp_op_name(e->op), ranks);
    const int array = lab_put(&c, NULL, n * elem, 0), none = lab_put(&c, &zero, 8, 0),
              one = lab_put(&c, &zero, 8, 0);
    there = (unsigned char *)lab_there(&c, array);
    lab->k->write_expected(lab->stream, there, e, first, n);
    lab->k->count_wrong(lab->stream, there, e, first, n, (uint64_t *)lab_there(&c, none));
    memcpy(data, lab_get(&c, array), n * elem);
    if (e->src >= 0) {
        unsigned char *right = (unsigned char *)ddp_calloc(n * elem + 1, 1);
        ddp_verify_fill(right, first, n, e->dtype, e->op, e->src, ranks, e->round);
        lab_same("write_expected", context, data, right, n * elem, elem);
        free(right);
    } else if (ddp_verify_reduced(data, first, n, e->dtype, e->op, 0, ranks, e->round, &found,
                                  &err) != 0) {
        fail_msg("write_expected: %s", err.text);
    }
    if (n > 0)
        data[n / 2 * elem] ^= 1;
    lab->ops->copy(lab->stream, there, data, n * elem);
    lab->k->count_wrong(lab->stream, there, e, first, n, (uint64_t *)lab_there(&c, one));
    lab_same("count_wrong", context, lab_get(&c, none), &wrong[0], 8, 8);
    lab_same("count_wrong", context, lab_get(&c, one), &wrong[n > 0], 8, 8);
    free(data);
    lab_end(&c);
}

static inline void cases_expected(const struct lab *lab)
{
    static const int ranks[] = {1, 2, 3, 8, 300};
    static const size_t firsts[] = {0, 1000, ((size_t)1 << 33) + 7};
    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DDP_OP_COUNT; op++)
            for (size_t r = 0; r < DDP_COUNT_OF(ranks); r++)
                for (int src = -1; src < ranks[r]; src = 2 * src + 2) {
                    struct ddp_expected e = {.round = 5 + (uint64_t)op};
                    e.input = ddp_verify_input_of((enum ddp_dtype)dtype, (enum ddp_op)op, ranks[r]);
                    e.dtype = (enum ddp_dtype)dtype;
                    e.op = (enum ddp_op)op;
                    e.src = src;
                    expected_case(lab, &e, firsts[r % DDP_COUNT_OF(firsts)], 40 * (r + 1));
                }
}

static inline void cases_exchange(const struct lab *lab)
{
    static const size_t sizes[] = {0, 1, 33, 256, 1000};
    for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            exchange_case(lab, (enum grad_kind)kind, sizes[s]);
    for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
        split_case(lab, (uint32_t)sizes[s]);
    for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (int shift = 28; shift >= 0; shift -= 4)
                digits_case(lab, (enum grad_kind)kind, sizes[s], shift);
}

#endif
