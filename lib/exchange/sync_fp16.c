/* Gradients as 16-bit floats of IEEE 754, divided before the sum. With an argument values are
 * limited to +-CLIP first, as SINGA's half-precision mode can. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(fp16, "[CLIP]", "every gradient, as 16-bit floats: half the bytes");
