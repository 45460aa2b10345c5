/* The AVX2 level of nn_kernels.h. */
#define DDP_NN_TABLE ddp_nn_kernels_avx2
#include "model/nn_kernels.inc.h"
