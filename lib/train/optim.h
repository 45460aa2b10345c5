/* Optimisers over flat parameter arrays.
 *
 * struct ddp_optim holds an optimiser and its state. ddp_sgd_step() and ddp_adam_step() are the
 * update rules on the CPU. Each element is updated independently, so results do not depend on the
 * SIMD level. */
#ifndef DDP_TRAIN_OPTIM_H
#define DDP_TRAIN_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"
#include "device/sparse.h"
#include "device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_optimizer { DDP_OPTIM_SGD, DDP_OPTIM_ADAM, DDP_OPTIM_COUNT };
extern const char *const ddp_optimizer_names[]; /* "sgd", "adam", NULL */
int ddp_optimizer_find(const char *name);       /* returns the enum value, or -1 if unknown */
/* Returns the bytes of optimiser state for n parameters. SGD needs 4n (velocity), Adam needs 8n
 * (first and second moment). */
size_t ddp_optimizer_state_bytes(enum ddp_optimizer kind, size_t n);

/* SGD with momentum, or Adam with beta1 0.9, beta2 0.999 and epsilon 1e-8. */
struct ddp_optim {
    enum ddp_optimizer kind;
    double lr;
    double momentum; /* SGD only; Adam ignores it */
    double weight_decay;
    /* If device is NULL, a step runs on the CPU before ddp_optim_step() returns. Otherwise
     * parameters, gradients and state lie in the memory of this device, and a step is enqueued on
     * `stream`. */
    const struct ddp_device *device;
    struct ddp_stream *stream;
    size_t n;      /* number of parameters */
    float *state;  /* owned */
    int64_t steps; /* steps taken so far */
};
/* Allocates zeroed state for n parameters. The caller must have set the first six members of *o.
 * Returns DDP_ENOMEM if there is no memory. */
int ddp_optim_init(struct ddp_optim *o, size_t n, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_optim_release(struct ddp_optim *o);
/* Updates params [n] from grads [n]. */
void ddp_optim_step(struct ddp_optim *o, float *params, const float *grads);

/* SGD with momentum and L2 weight decay, as in SINGA and in PyTorch without dampening:
 *     g = grad + wd * p;  v = momentum * v + g;  p -= lr * v
 * p, v, grad: [n]. v starts at zero. Moves 20n bytes through memory. */
void ddp_sgd_step(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                  float weight_decay);
/* Adam (Kingma & Ba 2015, algorithm 1) with L2 weight decay added to the gradient, as in needle's
 * and PyTorch's Adam:
 *     g = grad + wd * p;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g g
 *     p -= lr * (m / (1 - b1^step)) / (sqrt(v / (1 - b2^step)) + eps)
 * p, m, v, grad: [n]. m and v start at zero. Moves 28n bytes through memory. */
void ddp_adam_step(float *p, float *m, float *v, const float *grad, size_t n,
                   const struct ddp_adam *a);

#ifdef __cplusplus
}
#endif
#endif
