/* Optimisers over flat parameter arrays. The kernels `sgd` and `adam` of device/sparse.h (CPU) or
 * device/stream_kernels.h (device) compute the update. */
#ifndef DDP_TRAIN_OPTIM_H
#define DDP_TRAIN_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "coll/pattern.h"
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

/* An optimiser, SGD or Adam. SGD has momentum and L2 weight decay. It computes the same step as SGD
 * of Apache SINGA, and as SGD of PyTorch with dampening 0. Adam has beta1 0.9, beta2 0.999 and
 * epsilon 1e-8. Adam adds L2 weight decay to the gradient, as Adam of PyTorch and of needle
 * (model/resnet9.c) does. */
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
    /* The parts of the parameters that the optimiser updates, [part_count], borrowed. NULL: all. */
    const struct ddp_range *parts;
    int part_count;
    size_t n;      /* number of parameters that the optimiser updates */
    float *state;  /* owned */
    int64_t steps; /* steps taken so far */
};
/* Allocates zeroed state for n parameters. The caller must have set all members of *o that stand
 * before the member `n`. If `parts` is not NULL, n must be the number of elements of all parts.
 * Returns DDP_ENOMEM if there is no memory. */
int ddp_optim_init(struct ddp_optim *o, size_t n, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_optim_release(struct ddp_optim *o);
/* Updates params from grads. If `parts` is NULL, both arrays have n elements. Otherwise they hold
 * the whole model, and the step uses only the elements in the parts. */
void ddp_optim_step(struct ddp_optim *o, float *params, const float *grads);

#ifdef __cplusplus
}
#endif
#endif
