/* Cases like those of gpu_cases.h for the other kernels that strategies on a device need: scale,
 * widen_back and add_count. */
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

static inline void cases_exchange(const struct lab *lab)
{
    static const size_t sizes[] = {0, 1, 33, 256, 1000};
    for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            exchange_case(lab, (enum grad_kind)kind, sizes[s]);
}

#endif
