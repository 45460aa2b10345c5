/* Gradients of at least T in magnitude, the rest kept for later. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(threshold, "T",
                    "each rank's gradients of magnitude T and more, the rest later");
