/* Compressor "oktopk": the first part of Ok-Topk, in which each rank selects its top-K as "topk"
 * does. The second part is a sparse all-reduce that keeps the largest sums
 * (coll/sparse/sparse_oktopk.c). Source: S. Li, T. Hoefler, Near-optimal sparse allreduce for
 * distributed deep learning, PPoPP 2022. */
#include "compress/comp_impl.h"

const struct ddp_compressor ddp_comp_oktopk = {
    .name = "oktopk",
    .summary = "sums the top-K of all ranks, keeps the top-K sums; sends fewer than 6 x K numbers",
    .train_summary = "the largest summed gradients (a share D of all); each rank keeps the "
                     "rest for later",
    .argument_help = "D",
    .combine = DDP_COMBINE_GATHER,
    .feedback_default = true,
    .fuses_feedback = true,
    .fixed_count = true,
    .global_topk = true,
    .check = ddp_comp_density_check,
    .bound = ddp_comp_density_bound,
    .state_bytes = ddp_comp_topk_state_bytes,
    .encode = ddp_comp_topk_encode,
    .reference = ddp_comp_topk_reference,
};
