/* Compressor "bf16": every f32 is rounded to the nearest bf16 (ties to even). A bf16 is the upper
 * half of an f32: it has the range of f32 and 8 bits of precision. */
#include "compress/comp_impl.h"

static void bf16_encode(struct ddp_encode *e)
{
    e->overflow_count += e->device->grad->narrow(e->dense, e->in, e->n, DDP_BF16, e->scale, 0.0f);
}

const struct ddp_compressor ddp_comp_bf16 = {
    .name = "bf16",
    .summary = "f32 with 8 bits of precision; an average is divided before encoding",
    .train_summary = "every gradient as bfloat16: half the bytes, the range of f32",
    .combine = DDP_COMBINE_SUM,
    .wire_dtype = DDP_BF16,
    .bound = ddp_comp_bound_all,
    .encode = bf16_encode,
    .rounded = ddp_comp_half_rounded,
};
