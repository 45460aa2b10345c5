/* Error feedback: what a compressor leaves out of one encoding is added to the next. A decorator:
 * around any compressor, known to none of the plain ones.
 *
 *   acc = in * scale + residual;   sent = decode(encode(acc));   residual = acc - sent
 *
 * Compressors that select (fuses_feedback) do that themselves in the pass that selects, and then
 * sent + new residual == in + old residual, bit for bit. For 16-bit forms the difference is
 * computed in f32, where it is exact unless the value overflowed, underflowed to a subnormal or was
 * clipped far; what is not finite leaves no residual. Sources: F. Seide et al., 1-bit SGD,
 * Interspeech 2014; S. Karimireddy et al., Error feedback fixes SignSGD, ICML 2019. */
#ifndef DDP_COMPRESS_FEEDBACK_H
#define DDP_COMPRESS_FEEDBACK_H

#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Encodes e with its compressor, with error feedback when e->residual is not NULL. The residual of
 * a 16-bit form is in the wire's unit (scale applied). */
void ddp_feedback_encode(struct ddp_encode *e);

#ifdef __cplusplus
}
#endif
#endif
