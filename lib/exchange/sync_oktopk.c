/* Applies the largest share D of the summed gradients, selected by the method of Ok-Topk
 * (PPoPP'22). */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(
    oktopk, "D", "the largest share D of the summed gradients; each rank keeps the rest for later");
