/* Compressor "threshold": sends all elements with |x| >= T, and all NaNs. */
#include <float.h>

#include "compress/comp_impl.h"

static int threshold_check(double argument, struct ddp_err *err)
{
    if (!((float)argument > 0 && argument <= FLT_MAX))
        return ddp_fail(err, DDP_EUSAGE, "threshold %g is out of range: must be a positive f32",
                        argument);
    return 0;
}

static void threshold_encode(struct ddp_encode *e)
{
    struct ddp_select select = {.in = e->in, .residual = e->residual, .n = e->n, .out = e->list};

    e->device->grad->select_threshold(&select, (float)e->spec->argument);
    e->list = select.out;
    ddp_comp_scale_list(e);
}

const struct ddp_compressor ddp_comp_threshold = {
    .name = "threshold",
    .summary = "elements with |x| >= T, as a sparse list",
    .train_summary = "each rank sends its gradients of magnitude T and above and keeps the "
                     "rest for later",
    .argument_help = "T",
    .combine = DDP_COMBINE_GATHER,
    .feedback_default = true,
    .fuses_feedback = true,
    .check = threshold_check,
    .bound = ddp_comp_bound_all,
    .encode = threshold_encode,
    .reference = ddp_comp_threshold_reference,
};
