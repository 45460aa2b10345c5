/* Compressor "fp16": IEEE half precision, which sends half the bytes of f32. The optional argument
 * CLIP limits gradients to [-CLIP, CLIP], as in Apache SINGA (opt.py, backward_and_update_half).
 *
 * For an average over P ranks, the values are divided by P before they are encoded. The limit of
 * the encoded values is then CLIP / P, or a little less if CLIP is near 65,504, because roundings
 * may increase the sum (ddp_compress_f16_limit). Averages with a clip therefore do not overflow. A
 * sum can overflow if CLIP * P is above 65,504. */
#include <float.h>
#include <math.h>

#include "compress/comp_impl.h"

#define F16_LARGEST 65504.0

double ddp_compress_f16_limit(double scale)
{
    /* Rounding to f16 increases a value by at most the factor `rounding`. Let P be 1 / scale. Each
     * of the P values is rounded once. The partial sum that contains a value is rounded at most P-2
     * times before the last addition. Before this addition, the value has therefore grown by at
     * most `rounding`^(P-1). */
    const double rounding = 1 + 0x1p-11;
    return F16_LARGEST * scale * pow(rounding, 1 - 1 / scale);
}

static int fp16_check(double argument, struct ddp_err *err)
{
    if (!(argument > 0 && argument <= F16_LARGEST))
        return ddp_fail(err, DDP_EUSAGE,
                        "clip %g is out of range: must be above 0 and at most %.0f", argument,
                        F16_LARGEST);
    return 0;
}

static void fp16_encode(struct ddp_encode *e)
{
    const double unit = (double)e->scale * (e->scaled != 0 ? e->scaled : 1);
    float clip = 0; /* no clip */
    /* The clip must not underflow to 0, because 0 means that there is no clip. */
    if (!isnan(e->spec->argument))
        clip = fmaxf((float)fmin(e->spec->argument * unit, ddp_compress_f16_limit(unit)),
                     FLT_TRUE_MIN);
    e->overflow_count += e->device->grad->narrow(e->dense, e->in, e->n, DDP_F16, e->scale, clip);
}

const struct ddp_compressor ddp_comp_fp16 = {
    .name = "fp16",
    .summary = "half precision; an average is divided before encoding; CLIP limits magnitudes",
    .train_summary = "every gradient as a 16-bit float: half the bytes",
    .argument_help = "[CLIP]",
    .combine = DDP_COMBINE_SUM,
    .wire_dtype = DDP_F16,
    .check = fp16_check,
    .bound = ddp_comp_bound_all,
    .encode = fp16_encode,
    .rounded = ddp_comp_half_rounded,
};
