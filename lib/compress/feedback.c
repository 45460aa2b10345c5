/* Error feedback around a compressor. See feedback.h. */
#include "compress/feedback.h"

#include "base/mem.h"

/* Elements per block. A block of acc fits the first-level cache, so each array is read from memory
 * only once. */
#define BLOCK ((size_t)2048)

/* Encodes one block of a bucket with a 16-bit compressor, and updates its residual. */
static void encode_block(struct ddp_encode *e, size_t first, size_t count)
{
    const struct ddp_compressor *c = e->spec->compressor;
    const float *in = e->in + first;
    float *residual = e->residual + first;
    float acc[BLOCK];
    struct ddp_encode part = *e;

    for (size_t i = 0; i < count; i++)
        acc[i] = in[i] * e->scale + residual[i];
    part.in = acc;
    part.residual = NULL;
    part.n = count;
    part.scale = 1;
    part.scaled = e->scale;
    part.dense = (unsigned char *)e->dense + first * ddp_dtype_size(c->wire_dtype);
    c->encode(&part);
    e->overflow_count = part.overflow_count;
    e->device->grad->narrow_residual(residual, acc, part.dense, count, c->wire_dtype);
}

void ddp_feedback_encode(struct ddp_encode *e)
{
    if (e->residual == NULL || e->spec->compressor->fuses_feedback) {
        e->spec->compressor->encode(e);
        return;
    }
    for (size_t first = 0; first < e->n; first += BLOCK)
        encode_block(e, first, DDP_MIN(BLOCK, e->n - first));
}
