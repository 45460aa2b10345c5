/* Error feedback: the error of one encoding is added to the input of the next encoding. A 16-bit
 * compressor gets this from ddp_feedback_encode:
 *
 *   acc = in * scale + residual;   sent = decode(encode(acc));   residual = acc - sent
 *
 * Compressors that select entries (fuses_feedback) update the residual themselves. Before scaling,
 * sent + new residual is then equal to in + old residual, bit for bit. The residual of a 16-bit
 * compressor is computed in f32. It is exact unless the value overflowed, became subnormal or was
 * clipped by a large amount. A residual that is not finite becomes 0. Sources: F. Seide et al.,
 * 1-bit SGD, Interspeech 2014; S. Karimireddy et al., Error feedback fixes SignSGD, ICML 2019. */
#ifndef DDP_COMPRESS_FEEDBACK_H
#define DDP_COMPRESS_FEEDBACK_H

#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Encodes e with its compressor. Uses error feedback if e->residual is not NULL. */
void ddp_feedback_encode(struct ddp_encode *e);

#ifdef __cplusplus
}
#endif
#endif
