#define DDP_SGD_NAME  ddp_sgd_step_avx2
#define DDP_ADAM_NAME ddp_adam_step_avx2
#include "train/optim.inc.h"
