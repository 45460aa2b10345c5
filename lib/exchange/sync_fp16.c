/* Exchanges gradients as IEEE 754 16-bit floats, divided by the number of ranks before the sum. An
 * optional argument clips values to +-CLIP first, as SINGA's half-precision mode does. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(fp16, "[CLIP]", "every gradient as a 16-bit float: half the bytes");
