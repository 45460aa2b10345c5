/* Error feedback: the error of one encoding is added to the input of the next one. It is a
 * decorator around any compressor:
 *
 *   acc = in * scale + residual;   sent = decode(encode(acc));   residual = acc - sent
 *
 * Compressors that select entries (fuses_feedback) update the residual themselves, in their
 * selection pass; then sent + new residual == in + old residual, bit for bit. For 16-bit forms the
 * residual is computed in f32. It is exact unless the value overflowed, underflowed to a subnormal
 * or was clipped by a large amount; a residual that is not finite becomes 0. Sources: F. Seide et
 * al., 1-bit SGD, Interspeech 2014; S. Karimireddy et al., Error feedback fixes SignSGD, ICML 2019.
 */
#ifndef DDP_COMPRESS_FEEDBACK_H
#define DDP_COMPRESS_FEEDBACK_H

#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Encodes e with its compressor, and with error feedback if e->residual is not NULL. The residual
 * of a 16-bit form is in the unit of the wire, after `scale`. */
void ddp_feedback_encode(struct ddp_encode *e);

#ifdef __cplusplus
}
#endif
#endif
