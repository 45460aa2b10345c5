/* The loop of ddp_sgd_step, compiled once a SIMD level: DDP_SGD_NAME names it. Each element is its
 * own, so every level gives the same bits (-ffp-contract=off). */
#include "train/optim.h"

void DDP_SGD_NAME(float *restrict p, float *restrict v, const float *restrict grad, size_t n,
                  float lr, float momentum, float weight_decay);

void DDP_SGD_NAME(float *restrict p, float *restrict v, const float *restrict grad, size_t n,
                  float lr, float momentum, float weight_decay)
{
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + weight_decay * p[i];
        float m = momentum * v[i] + g;
        v[i] = m;
        p[i] -= lr * m;
    }
}
