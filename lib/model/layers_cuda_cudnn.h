/* cuDNN's convolutions for device cuda. */
#ifndef DDP_MODEL_LAYERS_CUDA_CUDNN_H
#define DDP_MODEL_LAYERS_CUDA_CUDNN_H

#include "model/layers_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the context use cuDNN's convolutions. Returns DDP_EUNAVAIL if cuDNN was not found or not
 * built in. */
int ddp_cuda_cudnn_open(struct ddp_layers_context *c, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
