/* The loops of optim.h, compiled once a SIMD level: DDP_SGD_NAME and DDP_ADAM_NAME name them. Each
 * element is its own, and division and square root are exact roundings, so every level gives the
 * same bits (-ffp-contract=off). */
#include <math.h>

#include "train/optim.h"

void DDP_SGD_NAME(float *restrict p, float *restrict v, const float *restrict grad, size_t n,
                  float lr, float momentum, float weight_decay);
void DDP_ADAM_NAME(float *restrict p, float *restrict m, float *restrict v,
                   const float *restrict grad, size_t n, const struct ddp_adam *a);

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

void DDP_ADAM_NAME(float *restrict p, float *restrict m, float *restrict v,
                   const float *restrict grad, size_t n, const struct ddp_adam *a)
{
    const float b1 = a->beta1, b2 = a->beta2, n1 = 1.0f - b1, n2 = 1.0f - b2;
    const float c1 = (float)(1.0 - pow((double)b1, (double)a->step));
    const float c2 = (float)(1.0 - pow((double)b2, (double)a->step));
    const float lr = a->lr, decay = a->weight_decay, epsilon = a->epsilon;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + decay * p[i];
        float mi = b1 * m[i] + n1 * g;
        float vi = b2 * v[i] + n2 * (g * g);
        m[i] = mi;
        v[i] = vi;
        p[i] -= lr * (mi / c1) / (sqrtf(vi / c2) + epsilon);
    }
}
