/* AVX-512. */

#define DDP_NN_TABLE ddp_nn_kernels_avx512
#include "model/nn_kernels.inc.h"
