/* Compressors "q8", "q4", "fp8-e4m3", "fp8-e5m2" and "sign": block quantisation (device/quant.h).
 * The argument is the number of elements of a block.
 *
 * All of these compressors except sign also quantise the sums. The error of this second rounding is
 * small, but error feedback does not keep it for the next gradient. A second rounding to signs
 * would lose too much. With sign, each rank therefore gets the signs of all ranks and adds the
 * decoded values.
 *
 * With the modifier +sr the codes and the sums are rounded stochastically. The expected value of a
 * decoded value is then the original value.
 *
 * Sources: D. Alistarh et al., QSGD, NeurIPS 2017; G. Wang et al., ZeRO++, 2023, which exchanges
 * quantised blocks of gradients by an all-to-all; S. Karimireddy et al., Error feedback fixes
 * SignSGD, ICML 2019, algorithm EF-SignSGD, with a mean per block. */
#include <math.h>

#include "compress/comp_impl.h"

#define BLOCK_DEFAULT 128

struct ddp_quant ddp_compress_quant(const struct ddp_compress_spec *spec)
{
    struct ddp_quant quant = spec->compressor->quant;
    quant.block = isnan(spec->argument) ? BLOCK_DEFAULT : (size_t)spec->argument;
    quant.stochastic = spec->stochastic;
    return quant;
}

static int block_check(double argument, int least, struct ddp_err *err)
{
    for (int block = least; block <= DDP_QUANT_BLOCK_MAX; block *= 2)
        if (argument == block)
            return 0;
    return ddp_fail(err, DDP_EUSAGE, "block of %g elements: must be a power of two from %d to %d",
                    argument, least, DDP_QUANT_BLOCK_MAX);
}

static int quant_check(double argument, struct ddp_err *err)
{
    return block_check(argument, DDP_QUANT_BLOCK_MIN, err);
}

static int sign_check(double argument, struct ddp_err *err)
{
    return block_check(argument, DDP_QUANT_SIGN_BLOCK_MIN, err);
}

static void quant_encode(struct ddp_encode *e)
{
    struct ddp_quant quant = ddp_compress_quant(e->spec);
    quant.key = e->key;
    quant.first = e->first;
    e->device->grad->quantize(e->dense, e->in, e->n, quant, e->scale);
}

/* `text` completes "every gradient as ...". */
#define QUANT(symbol, name_, code_, checks, codes, text, keeps)                                    \
    const struct ddp_compressor ddp_comp_##symbol = {                                              \
        .name = name_,                                                                             \
        .summary = codes,                                                                          \
        .train_summary = "every gradient as " text,                                                \
        .argument_help = "[BLOCK]",                                                                \
        .combine = DDP_COMBINE_BLOCKS,                                                             \
        .quant = {.code = code_},                                                                  \
        .two_phase = (code_) != DDP_QUANT_SIGN,                                                    \
        .feedback_default = keeps,                                                                 \
        .check = checks,                                                                           \
        .bound = ddp_comp_bound_all,                                                               \
        .encode = quant_encode,                                                                    \
        .rounded = ddp_comp_quant_rounded,                                                         \
    }

#define SCALED                                                                                     \
    "; each block of BLOCK elements (default 128) shares a scale; +sr: stochastic rounding"

QUANT(q8, "q8", DDP_QUANT_I8, quant_check, "8-bit integers" SCALED,
      "an 8-bit integer, with a scale per block: about a quarter of the bytes", false);
QUANT(q4, "q4", DDP_QUANT_I4, quant_check, "4-bit integers" SCALED,
      "a 4-bit integer, with a scale per block: about an eighth of the bytes", true);
QUANT(fp8_e4m3, "fp8-e4m3", DDP_QUANT_E4M3, quant_check, "fp8-e4m3" SCALED,
      "an 8-bit float with 3 mantissa bits, with a scale per block", false);
QUANT(fp8_e5m2, "fp8-e5m2", DDP_QUANT_E5M2, quant_check, "fp8-e5m2" SCALED,
      "an 8-bit float with 2 mantissa bits, with a scale per block", false);
QUANT(sign, "sign", DDP_QUANT_SIGN, sign_check,
      "signs; each block of BLOCK elements (default 128) shares the mean magnitude",
      "a sign, with the mean magnitude per block (EF-signSGD)", true);
