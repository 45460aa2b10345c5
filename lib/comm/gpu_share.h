/* Several ranks on one GPU: for correct results where there are fewer GPUs than ranks, never for a
 * figure. NCCL refuses two ranks of one host on one GPU; told by its variables that each rank is a
 * host of its own, and that these reach each other by sockets, it does not. */
#ifndef DDP_COMM_GPU_SHARE_H
#define DDP_COMM_GPU_SHARE_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the variables that are alike on all ranks; in the parent of the ranks, so that its record
 * has them. What only tunes (NCCL_ALGO, NCCL_PROTO, NCCL_MAX_CTAS) stays as the user has it. */
int ddp_gpu_share_all(struct ddp_err *err) DDP_MUST_CHECK;
/* Sets the one that differs, in the rank's own process, before NCCL is loaded. */
int ddp_gpu_share_rank(int rank, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
