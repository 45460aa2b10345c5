/* Chooses the SIMD level of nn_kernels.h, and compiles the scalar level. */
#include "base/conf.h"

#define DDP_NN_TABLE ddp_nn_kernels_scalar
#include "model/nn_kernels.inc.h"

enum ddp_simd ddp_nn_simd(void)
{
    enum ddp_simd best = ddp_cpu_best_simd();
    const char *text = ddp_conf_get(DDP_CONF_SIMD);
    int cap = text ? ddp_simd_parse(text) : -1; /* ddp_conf_check() rejects invalid values */
    return cap >= 0 && (enum ddp_simd)cap < best ? (enum ddp_simd)cap : best;
}

size_t ddp_pool_grad_scratch(const struct ddp_conv_shape *s)
{
    return divide_scratch(s, NULL, NULL);
}

const struct ddp_nn_kernels *ddp_nn_kernels(enum ddp_simd level)
{
    switch (level) {
    case DDP_SIMD_AVX512:
        return &ddp_nn_kernels_avx512;
    case DDP_SIMD_AVX2:
        return &ddp_nn_kernels_avx2;
    default:
        return &ddp_nn_kernels_scalar;
    }
}
