/* The optimisers and their state. */
#include "train/optim.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/stream_kernels.h"
#include "model/nn_kernels.h"

/* The defaults of Kingma & Ba, as in PyTorch. */
#define BETA1   0.9f
#define BETA2   0.999f
#define EPSILON 1e-8f

const char *const ddp_optimizer_names[] = {"sgd", "adam", NULL};

int ddp_optimizer_find(const char *name)
{
    for (int i = 0; i < DDP_OPTIM_COUNT; i++)
        if (strcmp(name, ddp_optimizer_names[i]) == 0)
            return i;
    return -1;
}

size_t ddp_optimizer_state_bytes(enum ddp_optimizer kind, size_t n)
{
    return n * sizeof(float) * (kind == DDP_OPTIM_ADAM ? 2 : 1);
}

int ddp_optim_init(struct ddp_optim *o, size_t n, struct ddp_err *err)
{
    o->n = n;
    o->steps = 0;
    const size_t bytes = ddp_optimizer_state_bytes(o->kind, n);
    o->state = o->device ? o->device->alloc(bytes) : ddp_calloc(bytes, 1);
    if (!o->state)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the optimizer's %zu bytes", bytes);
    if (o->device)
        o->device->streams->fill(o->stream, o->state, 0, bytes);
    return 0;
}

void ddp_optim_release(struct ddp_optim *o)
{
    if (o->device && o->state)
        o->device->free(o->state, ddp_optimizer_state_bytes(o->kind, o->n));
    else
        free(o->state);
    o->state = NULL;
}

/* Updates params [n]. `state` is the first state of each parameter, [n]. */
static void update(const struct ddp_optim *o, float *params, float *state, const float *grads,
                   size_t n)
{
    const struct ddp_grad_kernels *cpu = ddp_device_cpu(ddp_nn_simd())->grad;
    const float lr = (float)o->lr, momentum = (float)o->momentum, decay = (float)o->weight_decay;
    if (o->kind == DDP_OPTIM_SGD) {
        if (o->device)
            o->device->stream_kernels->sgd(o->stream, params, state, grads, n, lr, momentum, decay);
        else
            cpu->sgd(params, state, grads, n, lr, momentum, decay);
        return;
    }
    const struct ddp_adam adam = {.lr = lr,
                                  .beta1 = BETA1,
                                  .beta2 = BETA2,
                                  .epsilon = EPSILON,
                                  .weight_decay = decay,
                                  .step = o->steps};
    if (o->device)
        o->device->stream_kernels->adam(o->stream, params, state, state + o->n, grads, n, &adam);
    else
        cpu->adam(params, state, state + o->n, grads, n, &adam);
}

void ddp_optim_step(struct ddp_optim *o, float *params, const float *grads)
{
    float *state = o->state;
    o->steps++;
    if (o->parts == NULL)
        update(o, params, state, grads, o->n);
    for (int i = 0; o->parts != NULL && i < o->part_count; i++) {
        const size_t begin = o->parts[i].begin, n = o->parts[i].end - begin;
        update(o, params + begin, state, grads + begin, n);
        state += n;
    }
}
