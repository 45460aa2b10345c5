/* Local SGD: every rank takes its own optimiser steps, and all parameters are averaged every H
 * steps. If there were steps since the last average, the parameters are also averaged before every
 * evaluation, that is, at the end of an epoch and of the run. The evaluated and the final model are
 * therefore identical on all ranks. Source: Stich, Local SGD Converges Fast and Communicates Little
 * (ICLR 2019), algorithm 1. */
#include "base/unit.h"
#include "exchange/sync_average.h"

#define STEPS_MAX 1000000000

static int parse(const char *argument, int64_t *steps, struct ddp_err *err)
{
    return ddp_parse_int(argument, 1, STEPS_MAX, steps, err);
}

static int check(const char *argument, struct ddp_err *err)
{
    int64_t steps;
    return parse(argument, &steps, err);
}

static int create(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err)
{
    int64_t steps;
    DDP_TRY(parse(setup->argument, &steps, err));
    return ddp_sync_average_create(setup, 1, steps, out, err);
}

extern const struct ddp_sync_class ddp_sync_local;
const struct ddp_sync_class ddp_sync_local = {
    .name = "local",
    .summary = "each rank takes its own steps; all parameters are averaged every H steps and "
               "before evaluation",
    .argument_help = "H",
    .on_device = true,
    .scale = DDP_SCALE_PRIVATE,
    .check = check,
    .create = create,
    .destroy = ddp_sync_average_destroy,
    .begin_step = ddp_sync_average_begin_step,
    .on_grad_ready = ddp_sync_average_on_grad_ready,
    .finish_backward = ddp_sync_average_finish_backward,
    .end_step = ddp_sync_average_end_step,
    .end_epoch = ddp_sync_average_all,
    .counters = ddp_sync_average_counters,
    .equal_part = ddp_sync_average_equal_part,
};
