/* Renames the emulated kernels, so that they can be linked beside the real ones. Every file that is
 * compiled for the emulation includes this file before any other. */
#ifndef DDP_TEST_EMULATED_NAMES_H
#define DDP_TEST_EMULATED_NAMES_H

#define ddp_cuda_add_count        emulated_add_count
#define ddp_cuda_accumulate       emulated_accumulate
#define ddp_cuda_adam             emulated_adam
#define ddp_cuda_count_digits     emulated_count_digits
#define ddp_cuda_count_wrong      emulated_count_wrong
#define ddp_cuda_fail             emulated_fail
#define ddp_cuda_kernels          emulated_kernels
#define ddp_cuda_merge            emulated_merge
#define ddp_cuda_merge_scratch    emulated_merge_scratch
#define ddp_cuda_narrow           emulated_narrow
#define ddp_cuda_narrow_residual  emulated_narrow_residual
#define ddp_cuda_note             emulated_note
#define ddp_cuda_reduce           emulated_reduce
#define ddp_cuda_scale            emulated_scale
#define ddp_cuda_scatter          emulated_scatter
#define ddp_cuda_scatter_add      emulated_scatter_add
#define ddp_cuda_scatter_zero     emulated_scatter_zero
#define ddp_cuda_select_scratch   emulated_select_scratch
#define ddp_cuda_select_threshold emulated_select_threshold
#define ddp_cuda_select_topk      emulated_select_topk
#define ddp_cuda_sgd              emulated_sgd
#define ddp_cuda_streams          emulated_streams
#define ddp_cuda_split            emulated_split
#define ddp_nn_stream_cuda        emulated_nn_stream
#define ddp_cuda_write_expected   emulated_write_expected
#define ddp_cuda_widen            emulated_widen
#define ddp_cuda_widen_back       emulated_widen_back
#define ddp_cuda_widen_add        emulated_widen_add

#endif
