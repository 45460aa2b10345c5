/* Optimisers over flat arrays. One pass over memory, in element order, so results do not depend on
 * blocking. */
#ifndef DDP_TRAIN_OPTIM_H
#define DDP_TRAIN_OPTIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SGD with momentum and L2 weight decay (as SINGA and PyTorch without dampening): g = grad + wd *
 * p; v = momentum * v + g; p -= lr * v. v starts at zero. p, v, grad: [n]. 20n bytes through
 * memory. */
void ddp_sgd_step(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                  float weight_decay);

#ifdef __cplusplus
}
#endif
#endif
