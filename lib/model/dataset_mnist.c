/* MNIST (LeCun, Cortes, Burges): 60,000 training and 10,000 evaluation images, 28 x 28 grey. */
#include "model/dataset.h"

static int load(const struct ddp_dataset_request *request, struct ddp_dataset *out,
                struct ddp_err *err)
{
    return ddp_dataset_read_idx_dir(request->dir, "mnist", out, err);
}

static const char *const dirs[] = {"/usr/share/datasets/mnist", NULL};

extern const struct ddp_dataset_reader ddp_dataset_mnist;
const struct ddp_dataset_reader ddp_dataset_mnist = {
    .name = "mnist",
    .summary = "60,000 + 10,000 handwritten digits, or any folder with four such IDX files",
    .dirs = dirs,
    .generic = true,
    .channels = 1,
    .classes = 10,
    .load = load,
};
