/* Each rank sends its gradients of magnitude T and above. With feedback it keeps the rest for later
 * steps. */
#include "exchange/sync_compressed.h"

DDP_SYNC_COMPRESSED(
    threshold, "T",
    "each rank sends its gradients of magnitude T and above and keeps the rest for later");
