/* MNIST and Fashion-MNIST. Each is a folder with four IDX files: train-images-idx3-ubyte,
 * train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte. The reader also
 * accepts ".idx" instead of "-idx", and gzipped files (.gz). */
#include "model/dataset.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define CLASSES 10
/* Largest accepted side of an image. The product of two sides fits in an int. */
#define SIDE_MAX 4096

/* Finds the file for `part` (such as "train-images" with 3 dimensions) and writes its path. Tries
 * plain files before gzipped files. */
static int find_file(const char *dir, const char *part, int ndim, char *path, size_t path_bytes,
                     struct ddp_err *err)
{
    static const char *const forms[] = {"%s/%s-idx%d-ubyte", "%s/%s.idx%d-ubyte",
                                        "%s/%s-idx%d-ubyte.gz", "%s/%s.idx%d-ubyte.gz"};
    for (size_t i = 0; i < DDP_COUNT_OF(forms); i++) {
        int n = snprintf(path, path_bytes, forms[i], dir, part, ndim);
        if (n < 0 || (size_t)n >= path_bytes)
            return ddp_fail(err, DDP_ENOINPUT, "the path of the data folder is too long");
        /* Stop at any existing file, even an unreadable one, because opening it reports the error.
         */
        if (access(path, F_OK) == 0 || errno != ENOENT)
            return 0;
    }
    return ddp_fail(err, DDP_ENOINPUT, "no file '%s-idx%d-ubyte' or '%s-idx%d-ubyte.gz' in '%s'",
                    part, ndim, part, ndim, dir);
}

static int read_half(const char *dir, const char *half, struct ddp_images *out, struct ddp_err *err)
{
    char path[PATH_MAX], part[32];
    uint32_t dims[3], label_count;
    snprintf(part, sizeof part, "%s-images", half);
    DDP_TRY(find_file(dir, part, 3, path, sizeof path, err));
    DDP_TRY(ddp_idx_read(path, 3, dims, &out->pixels, err));
    if (dims[1] > SIDE_MAX || dims[2] > SIDE_MAX)
        return ddp_fail(err, DDP_EINPUT,
                        "'%s' holds images of %u x %u, but at most %d x %d is legal", path, dims[1],
                        dims[2], SIDE_MAX, SIDE_MAX);
    snprintf(part, sizeof part, "%s-labels", half);
    DDP_TRY(find_file(dir, part, 1, path, sizeof path, err));
    DDP_TRY(ddp_idx_read(path, 1, &label_count, &out->labels, err));
    if (label_count != dims[0])
        return ddp_fail(err, DDP_EINPUT, "'%s' has %u labels for %u images", path, label_count,
                        dims[0]);
    for (uint32_t i = 0; i < label_count; i++)
        if (out->labels[i] >= CLASSES)
            return ddp_fail(err, DDP_EINPUT, "label %u of '%s' is %u, but at most %d is legal", i,
                            path, out->labels[i], CLASSES - 1);
    out->count = dims[0];
    out->channels = 1;
    out->height = (int)dims[1];
    out->width = (int)dims[2];
    out->classes = CLASSES;
    return 0;
}

static int load(const struct ddp_dataset_request *request, struct ddp_dataset *out,
                struct ddp_err *err)
{
    struct ddp_dataset set;
    int rc;
    memset(&set, 0, sizeof set);
    DDP_TRY_GOTO(read_half(request->dir, "train", &set.train, err), err_set);
    DDP_TRY_GOTO(read_half(request->dir, "t10k", &set.eval, err), err_set);
    if (set.train.height != set.eval.height || set.train.width != set.eval.width) {
        rc = ddp_fail(
            err, DDP_EINPUT, "'%s': training images are %d x %d, but evaluation images are %d x %d",
            request->dir, set.train.height, set.train.width, set.eval.height, set.eval.width);
        goto err_set;
    }
    *out = set;
    return 0;

err_set:
    ddp_dataset_release(&set);
    return rc;
}

/* MNIST (LeCun, Cortes, Burges): 60,000 training and 10,000 evaluation images, 28 x 28 grey. */
static const char *const mnist_dirs[] = {"/usr/share/datasets/mnist", NULL};

extern const struct ddp_dataset_reader ddp_dataset_mnist;
const struct ddp_dataset_reader ddp_dataset_mnist = {
    .name = "mnist",
    .summary = "60,000 + 10,000 handwritten digits, or a folder with four IDX files that have "
               "MNIST's names",
    .dirs = mnist_dirs,
    .generic = true,
    .channels = 1,
    .classes = CLASSES,
    .load = load,
};

/* Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747): 60,000 training and 10,000
 * evaluation images, 28 x 28 grey. */
static const char *const fashion_dirs[] = {"/usr/share/datasets/fashion-mnist", NULL};

extern const struct ddp_dataset_reader ddp_dataset_fashion_mnist;
const struct ddp_dataset_reader ddp_dataset_fashion_mnist = {
    .name = "fashion-mnist",
    .summary = "60,000 + 10,000 images of clothing, 28 x 28 grey, 10 classes",
    .package = "dataset-fashion-mnist",
    .dirs = fashion_dirs,
    .hash = 0x0c336750f16156c8,
    .generic = true,
    .channels = 1,
    .height = 28,
    .width = 28,
    .classes = CLASSES,
    .load = load,
};
