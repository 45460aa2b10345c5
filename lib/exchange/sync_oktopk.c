/* Applies the share D of the summed gradients with the largest magnitudes in each bucket, selected
 * by the method of Ok-Topk (PPoPP'22). */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(
    oktopk, "D",
    "the largest summed gradients (a share D of all); each rank keeps the rest for later");
