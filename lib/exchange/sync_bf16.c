/* Exchanges gradients as bfloat16, which has the range of f32 and 8 bits of precision. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(bf16, NULL, "every gradient as bfloat16: half the bytes, the range of f32");
