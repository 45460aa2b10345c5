/* Cases like those of gpu_cases.h for the other kernels that strategies on a device need: scale,
 * widen_back, add_count,
 * split and count_digits. */
#ifndef DDP_TEST_GPU_EXCHANGE_H
#define DDP_TEST_GPU_EXCHANGE_H

#include "device/element_ops.h"
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
