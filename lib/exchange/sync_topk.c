/* The largest D of the gradients of each rank and bucket, the rest kept for later. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(topk, "D", "the largest share D of each rank's gradients, the rest later");
