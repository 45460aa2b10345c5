/* The largest share D of the gradients of each rank and bucket. The rest is kept for later steps.
 */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(topk, "D", "the largest share D of each rank's gradients, the rest later");
