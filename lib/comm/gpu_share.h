/* Lets several ranks use one GPU, to check results with fewer GPUs than ranks. Timings of such a
 * run are meaningless. NCCL refuses two ranks of one host on one GPU. The functions therefore set
 * environment variables that tell NCCL that each rank has its own host and that hosts communicate
 * by sockets. */
#ifndef DDP_COMM_GPU_SHARE_H
#define DDP_COMM_GPU_SHARE_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the variables that are the same on all ranks. Call this function in the parent of the ranks,
 * so that the record contains the variables. Tuning variables (NCCL_ALGO, NCCL_PROTO,
 * NCCL_MAX_CTAS) keep a value that the user set. */
int ddp_gpu_share_all(struct ddp_err *err) DDP_MUST_CHECK;
/* Sets NCCL_HOSTID, which differs between ranks. Call this function in the rank's process before
 * NCCL is loaded. */
int ddp_gpu_share_rank(int rank, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
