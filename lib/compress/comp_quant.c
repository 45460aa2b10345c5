/* Compressors "q8", "q4", "fp8-e4m3" and "fp8-e5m2": block quantisation (device/quant.h). The
 * argument is the number of elements of a block.
 *
 * Sources: D. Alistarh et al., QSGD, NeurIPS 2017; G. Wang et al., ZeRO++, 2023, which quantises
 * blocks of gradients and exchanges them by an all-to-all. */
#include <math.h>

#include "compress/comp_impl.h"

#define BLOCK_DEFAULT 128

struct ddp_quant ddp_compress_quant(const struct ddp_compress_spec *spec)
{
    struct ddp_quant quant = spec->compressor->quant;
    quant.block = isnan(spec->argument) ? BLOCK_DEFAULT : (size_t)spec->argument;
    return quant;
}

static int quant_check(double argument, struct ddp_err *err)
{
    for (size_t block = DDP_QUANT_BLOCK_MIN; block <= DDP_QUANT_BLOCK_MAX; block *= 2)
        if (argument == (double)block)
            return 0;
    return ddp_fail(err, DDP_EUSAGE, "block of %g elements: must be a power of two from %d to %d",
                    argument, DDP_QUANT_BLOCK_MIN, DDP_QUANT_BLOCK_MAX);
}

static void quant_encode(struct ddp_encode *e)
{
    e->device->grad->quantize(e->dense, e->in, e->n, ddp_compress_quant(e->spec), e->scale);
}

/* `text` completes "every gradient as ...". */
#define QUANT(symbol, name_, code_, codes, text, keeps)                                            \
    const struct ddp_compressor ddp_comp_##symbol = {                                              \
        .name = name_,                                                                             \
        .summary = codes "; each block of BLOCK elements (default 128) shares a scale",            \
        .train_summary = "every gradient as " text,                                                \
        .argument_help = "[BLOCK]",                                                                \
        .combine = DDP_COMBINE_BLOCKS,                                                             \
        .quant = {.code = code_},                                                                  \
        .feedback_default = keeps,                                                                 \
        .check = quant_check,                                                                      \
        .bound = ddp_comp_bound_all,                                                               \
        .encode = quant_encode,                                                                    \
        .rounded = ddp_comp_quant_rounded,                                                         \
    }

QUANT(q8, "q8", DDP_QUANT_I8, "8-bit integers",
      "an 8-bit integer, with a scale per block: about a quarter of the bytes", false);
QUANT(q4, "q4", DDP_QUANT_I4, "4-bit integers",
      "a 4-bit integer, with a scale per block: about an eighth of the bytes", true);
QUANT(fp8_e4m3, "fp8-e4m3", DDP_QUANT_E4M3, "fp8-e4m3",
      "an 8-bit float with 3 mantissa bits, with a scale per block", false);
QUANT(fp8_e5m2, "fp8-e5m2", DDP_QUANT_E5M2, "fp8-e5m2",
      "an 8-bit float with 2 mantissa bits, with a scale per block", false);
