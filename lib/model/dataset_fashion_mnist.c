/* Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747): 60,000 training and 10,000
 * evaluation images, 28 x 28 grey. */
#include "model/dataset.h"

#define PACKAGE "dataset-fashion-mnist"

static int load(const struct ddp_dataset_request *request, struct ddp_dataset *out,
                struct ddp_err *err)
{
    return ddp_dataset_read_idx_dir(request->dir, "fashion-mnist", out, err);
}

static const char *const dirs[] = {"/usr/share/datasets/fashion-mnist", NULL};

extern const struct ddp_dataset_reader ddp_dataset_fashion_mnist;
const struct ddp_dataset_reader ddp_dataset_fashion_mnist = {
    .name = "fashion-mnist",
    .summary = "60,000 + 10,000 images of clothing, 28 x 28 grey, 10 classes",
    .package = PACKAGE,
    .dirs = dirs,
    .hash = 0x0c336750f16156c8,
    .generic = true,
    .channels = 1,
    .height = 28,
    .width = 28,
    .classes = 10,
    .load = load,
};
