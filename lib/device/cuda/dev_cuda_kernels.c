/* The table of stream kernels of device cuda. */
#include "device/cuda/kernels_cuda.h"

const struct ddp_stream_kernels ddp_cuda_kernels = {
    .reduce = ddp_cuda_reduce,
    .narrow = ddp_cuda_narrow,
    .widen = ddp_cuda_widen,
    .widen_add = ddp_cuda_widen_add,
    .narrow_residual = ddp_cuda_narrow_residual,
    .select_scratch = ddp_cuda_select_scratch,
    .select_threshold = ddp_cuda_select_threshold,
    .select_topk = ddp_cuda_select_topk,
    .scatter_add = ddp_cuda_scatter_add,
    .scatter = ddp_cuda_scatter,
    .scatter_zero = ddp_cuda_scatter_zero,
    .merge_scratch = ddp_cuda_merge_scratch,
    .merge = ddp_cuda_merge,
    .sgd = ddp_cuda_sgd,
    .adam = ddp_cuda_adam,
    .scale = ddp_cuda_scale,
    .widen_back = ddp_cuda_widen_back,
    .add_count = ddp_cuda_add_count,
    .split = ddp_cuda_split,
    .count_digits = ddp_cuda_count_digits,
    .write_expected = ddp_cuda_write_expected,
    .count_wrong = ddp_cuda_count_wrong,
};
