/* The largest share D of the gradients of each rank and bucket. The rest is kept for later steps.
 */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(
    topk, "D", "each rank sends the largest share D of its gradients and keeps the rest for later");
