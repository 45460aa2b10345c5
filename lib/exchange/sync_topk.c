/* Each rank sends the largest share D of its gradients in each bucket and keeps the rest for later
 * steps. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(
    topk, "D", "each rank sends the largest share D of its gradients and keeps the rest for later");
