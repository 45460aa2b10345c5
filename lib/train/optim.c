/* The choice among the SIMD levels, and the plain one. */
#include "model/nn_kernels.h"

#define DDP_SGD_NAME ddp_sgd_step_scalar
#include "train/optim.inc.h"

void ddp_sgd_step_avx2(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                       float weight_decay);
void ddp_sgd_step_avx512(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                         float weight_decay);

void ddp_sgd_step(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                  float weight_decay)
{
    switch (ddp_nn_simd()) {
    case DDP_SIMD_AVX512:
        ddp_sgd_step_avx512(p, v, grad, n, lr, momentum, weight_decay);
        break;
    case DDP_SIMD_AVX2:
        ddp_sgd_step_avx2(p, v, grad, n, lr, momentum, weight_decay);
        break;
    default:
        ddp_sgd_step_scalar(p, v, grad, n, lr, momentum, weight_decay);
    }
}
