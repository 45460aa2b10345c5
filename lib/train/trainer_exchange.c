/* The trainer's use of the sync strategy: set-up, memory sizes, and hashes to compare the ranks'
 * parameters. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "train/trainer_impl.h"

#define PAGE_BYTES ((uint64_t)4096)
#define HUGE_BYTES ((uint64_t)2 << 20)
#define HUGE_FROM  ((uint64_t)4 << 20) /* comm.h aligns blocks of this size or more to 2 MiB */

static uint64_t block_bytes(uint64_t bytes)
{
    uint64_t unit = bytes >= HUGE_FROM ? HUGE_BYTES : PAGE_BYTES;
    return (bytes + unit - 1) / unit * unit;
}

/* Returns the strategy's set-up. Fills offsets [param_count] and counts [param_count], which the
 * set-up refers to. */
static struct ddp_sync_setup setup_of(const struct ddp_train_options *o, size_t *offsets,
                                      size_t *counts)
{
    for (int i = 0; i < o->model->param_count; i++) {
        offsets[i] = o->model->params[i].offset;
        counts[i] = o->model->params[i].count;
    }
    return (struct ddp_sync_setup){.total = o->model->parameter_count,
                                   .offsets = offsets,
                                   .counts = counts,
                                   .param_count = o->model->param_count,
                                   .bucket_bytes = o->bucket_bytes,
                                   .overlap = o->overlap,
                                   .feedback = o->feedback,
                                   .aggregate = o->aggregate,
                                   .algorithm = o->algorithm,
                                   .argument = o->sync_argument ? o->sync_argument : "",
                                   .device = o->device};
}

int ddp_trainer_buckets(const struct ddp_trainer *t, struct ddp_grad_bucket *buckets)
{
    const struct ddp_sync_setup setup = setup_of(t->o, t->offsets, t->counts);
    return ddp_grad_buckets_cut(&setup, buckets);
}

int ddp_trainer_open_sync(struct ddp_trainer *t, struct ddp_err *err)
{
    struct ddp_sync_setup setup = setup_of(t->o, t->offsets, t->counts);
    setup.comm = t->comm;
    setup.params = t->params;
    setup.grads = t->grads;
    setup.device = t->device ? t->device->device : NULL;
    setup.stream = t->device ? t->device->stream : NULL;
    int rc = t->o->sync->create(&setup, &t->sync, err);
    /* Agree only on errors that occur on all ranks (DDP_EUSAGE, DDP_EUNAVAIL). After any other
     * error, other ranks may still wait inside create() and would not take part. */
    if (rc != 0 && rc != DDP_EUSAGE && rc != DDP_EUNAVAIL)
        return rc;
    return ddp_comm_agree(t->comm, rc, err);
}

/* Sets *registered and *private_bytes to the bytes that the strategy will allocate. */
static void sync_bytes(const struct ddp_train_options *o, int ranks, uint64_t *registered,
                       uint64_t *private_bytes)
{
    size_t tensors = (size_t)o->model->param_count;
    size_t *layout = ddp_calloc(2 * tensors, sizeof *layout);
    *registered = *private_bytes = 0;
    if (layout && o->sync->memory) {
        struct ddp_sync_setup setup = setup_of(o, layout, layout + tensors);
        o->sync->memory(&setup, ranks, registered, private_bytes);
    }
    free(layout);
}

uint64_t ddp_train_heap_bytes(const struct ddp_train_options *options, int ranks)
{
    uint64_t bytes = options->model->parameter_count * sizeof(float), registered, own;
    sync_bytes(options, ranks, &registered, &own);
    return 2 * block_bytes(bytes) + (bytes >= HUGE_FROM ? HUGE_BYTES : 0) + registered;
}

uint64_t ddp_train_private_bytes(const struct ddp_train_options *options, int ranks)
{
    const struct ddp_images *train = &options->data->train;
    size_t batch = (size_t)ddp_train_batch(options, ranks);
    size_t image = (size_t)train->channels * (size_t)train->height * (size_t)train->width;
    uint64_t registered, own;
    sync_bytes(options, ranks, &registered, &own);
    return ddp_optimizer_state_bytes(options->optimizer, options->model->parameter_count) +
           options->model->scratch_bytes(options->model, (int)batch) +
           batch * (image * sizeof(float) + 1) + train->count * sizeof(uint32_t) + own;
}

uint64_t ddp_trainer_hash(const struct ddp_trainer *t)
{
    return ddp_fnv1a(DDP_FNV_INIT, ddp_trainer_read(t, t->params, t->total),
                     t->total * sizeof *t->params);
}

bool ddp_trainer_compares_steps(const struct ddp_trainer *t)
{
    return t->o->check_replicas && (t->o->sync->replicas_equal || t->o->sync->equal_part);
}

uint64_t ddp_trainer_step_hash(const struct ddp_trainer *t)
{
    size_t first = 0, n = t->total;
    if (!t->o->sync->replicas_equal)
        t->o->sync->equal_part(t->sync, &first, &n);
    return ddp_fnv1a(DDP_FNV_INIT, ddp_trainer_read(t, t->params + first, n),
                     n * sizeof *t->params);
}
