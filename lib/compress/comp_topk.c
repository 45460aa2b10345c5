/* Compressor "topk": sends exactly the k = ceil(D n) elements of largest magnitude of each bucket.
 * Among equal magnitudes it sends the lower index. */
#include "compress/comp_impl.h"

const struct ddp_compressor ddp_comp_topk = {
    .name = "topk",
    .summary = "the fraction D of largest magnitudes, as a sparse list",
    .train_summary = "each rank sends its largest gradients (a share D of all) and keeps "
                     "the rest for later",
    .argument_help = "D",
    .combine = DDP_COMBINE_GATHER,
    .feedback_default = true,
    .fuses_feedback = true,
    .fixed_count = true,
    .check = ddp_comp_density_check,
    .bound = ddp_comp_density_bound,
    .state_bytes = ddp_comp_topk_state_bytes,
    .encode = ddp_comp_topk_encode,
    .reference = ddp_comp_topk_reference,
};
