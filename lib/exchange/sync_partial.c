/* SINGA's partial synchronisation. The parameters are cut into K chunks of almost equal size. Every
 * rank takes its own optimiser step, and then the next chunk is averaged over the ranks. The models
 * of the ranks differ slightly. Each rank evaluates its own model on its part of the images, so the
 * result is an average over the models. Source: Apache SINGA, opt.py,
 * DistOpt.backward_and_partial_update. SINGA cuts its fusion buffer instead of the parameters. */
#include "base/unit.h"
#include "exchange/sync_average.h"

#define CHUNKS_MAX 4096

static int parse(const char *argument, int64_t *chunks, struct ddp_err *err)
{
    return ddp_parse_int(argument, 1, CHUNKS_MAX, chunks, err);
}

static int check(const char *argument, struct ddp_err *err)
{
    int64_t chunks;
    return parse(argument, &chunks, err);
}

static int create(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err)
{
    int64_t chunks;
    DDP_TRY(parse(setup->argument, &chunks, err));
    return ddp_sync_average_create(setup, (int)chunks, 1, out, err);
}

extern const struct ddp_sync_class ddp_sync_partial;
const struct ddp_sync_class ddp_sync_partial = {
    .name = "partial",
    .summary = "each rank takes its own steps; after each step the next of K chunks of the "
               "parameters is averaged",
    .argument_help = "K",
    .on_device = true,
    .scale = DDP_SCALE_PRIVATE,
    .check = check,
    .create = create,
    .destroy = ddp_sync_average_destroy,
    .begin_step = ddp_sync_average_begin_step,
    .on_grad_ready = ddp_sync_average_on_grad_ready,
    .finish_backward = ddp_sync_average_finish_backward,
    .end_step = ddp_sync_average_end_step,
    .counters = ddp_sync_average_counters,
    .equal_part = ddp_sync_average_equal_part,
};
