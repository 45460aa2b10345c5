/* Optimisers over flat arrays: one pass over memory, in element order, so results do not depend on
 * blocking, nor on the SIMD level.
 *
 * struct ddp_optim is a rule with its state; the two loops are below it. */
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
const char *ddp_optimizer_name(enum ddp_optimizer kind); /* "sgd", "adam" */
int ddp_optimizer_find(const char *name);                /* its enum, or -1 */
/* Bytes of state for n parameters: 4n (velocity) or 8n (first and second moment). */
size_t ddp_optimizer_state_bytes(enum ddp_optimizer kind, size_t n);

/* SGD with momentum, or Adam (beta 0.9 and 0.999, epsilon 1e-8; `momentum` is not looked at). */
struct ddp_optim {
    enum ddp_optimizer kind;
    double lr;
    double momentum;
    double weight_decay;
    /* NULL: the processor, at once; else parameters, gradients and state are the device's. */
    const struct ddp_device *device;
    struct ddp_stream *stream;
    size_t n;
    float *state;  /* owned */
    int64_t steps; /* taken */
};
/* Gives a rule, its first six members set, the zeroed state of n parameters. DDP_ENOMEM. */
int ddp_optim_init(struct ddp_optim *o, size_t n, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_optim_release(struct ddp_optim *o);
/* params [n] by grads [n]. */
void ddp_optim_step(struct ddp_optim *o, float *params, const float *grads);

/* SGD with momentum and L2 weight decay (as SINGA and PyTorch without dampening): g = grad + wd *
 * p; v = momentum * v + g; p -= lr * v. v starts at zero. p, v, grad: [n]. 20n bytes through
 * memory. */
void ddp_sgd_step(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                  float weight_decay);
/* Adam (Kingma & Ba 2015, algorithm 1) with L2 weight decay in the gradient, as needle and
 * PyTorch's Adam: g = grad + wd * p; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g g; p -= lr * (m / c1)
 * / (sqrt(v / c2) + eps), c = 1 - b^step. m, v start at zero. 28n bytes. */
void ddp_adam_step(float *p, float *m, float *v, const float *grad, size_t n,
                   const struct ddp_adam *a);

#ifdef __cplusplus
}
#endif
#endif
