/* Each rank sends the share D of its gradients with the largest magnitudes in each bucket. With
 * feedback it keeps the rest for later steps. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(
    topk, "D",
    "each rank sends its largest gradients (a share D of all) and keeps the rest for later");
