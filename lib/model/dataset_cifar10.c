/* CIFAR-10: 50,000 training and 10,000 evaluation images, 32 x 32 RGB, in six files of the binary
 * or the python form. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/cifar.h"
#include "model/dataset.h"

enum { BATCHES = 5, SIDE = 32 };

struct location {
    char dir[PATH_MAX];
    bool binary;
};

static bool exists(const char *dir, const char *file)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    return n > 0 && (size_t)n < sizeof path && (access(path, F_OK) == 0 || errno == EACCES);
}

/* Finds the files in `dir` or in the subfolder that their archive unpacks to. */
static int find(const char *dir, struct location *location, struct ddp_err *err)
{
    static const char *const subfolders[] = {"", "/cifar-10-batches-bin", "/cifar-10-batches-py"};
    for (size_t i = 0; i < DDP_COUNT_OF(subfolders); i++) {
        int n = snprintf(location->dir, sizeof location->dir, "%s%s", dir, subfolders[i]);
        if (n < 0 || (size_t)n >= sizeof location->dir)
            return ddp_fail(err, DDP_ENOINPUT, "the path of the data folder is too long");
        location->binary = exists(location->dir, "data_batch_1.bin");
        if (location->binary || exists(location->dir, "data_batch_1"))
            return 0;
    }
    return ddp_fail(
        err, DDP_ENOINPUT,
        "no file 'data_batch_1.bin' (binary form) or 'data_batch_1' (python form) in '%s'", dir);
}

/* Appends the images of one file (batch) to set. */
static int append(struct ddp_images *set, const struct ddp_cifar_batch *batch, struct ddp_err *err)
{
    size_t count = set->count + batch->count;
    uint8_t *pixels = ddp_realloc_array(set->pixels, count, DDP_CIFAR_PIXELS);
    if (pixels)
        set->pixels = pixels;
    uint8_t *labels = ddp_realloc_array(set->labels, count, 1);
    if (labels)
        set->labels = labels;
    if (!pixels || !labels)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu images", count);
    for (size_t i = 0; i < batch->count; i++)
        memcpy(pixels + (set->count + i) * DDP_CIFAR_PIXELS, batch->pixels + i * batch->stride,
               DDP_CIFAR_PIXELS);
    memcpy(labels + set->count, batch->labels, batch->count);
    set->count = count;
    return 0;
}

static int read_batch(const struct location *location, const char *file, struct ddp_images *set,
                      struct ddp_err *err)
{
    char path[PATH_MAX + 32];
    char *data;
    size_t n;
    snprintf(path, sizeof path, "%s/%s%s", location->dir, file, location->binary ? ".bin" : "");
    struct ddp_cifar_batch *batch;
    DDP_TRY(DDP_NEW(&batch, 1, err));
    int rc = ddp_file_read(path, DDP_CIFAR_MAX_BYTES, &data, &n, err);
    if (rc == 0) {
        const uint8_t *bytes = (const uint8_t *)data;
        rc = location->binary ? ddp_cifar_decode_binary(bytes, n, path, batch, err)
                              : ddp_cifar_decode_pickle(bytes, n, path, batch, err);
        rc = rc ? rc : append(set, batch, err);
        free(data);
    }
    free(batch);
    return rc;
}

static int load(const struct ddp_dataset_request *request, struct ddp_dataset *out,
                struct ddp_err *err)
{
    static const struct ddp_images empty = {
        .channels = 3, .height = SIDE, .width = SIDE, .classes = DDP_CIFAR_CLASSES};
    struct ddp_dataset set = {.train = empty, .eval = empty};
    struct location location;
    int rc;
    DDP_TRY(find(request->dir, &location, err));
    for (int i = 1; i <= BATCHES; i++) {
        char file[24];
        snprintf(file, sizeof file, "data_batch_%d", i);
        DDP_TRY_GOTO(read_batch(&location, file, &set.train, err), err_set);
    }
    DDP_TRY_GOTO(read_batch(&location, "test_batch", &set.eval, err), err_set);
    *out = set;
    return 0;

err_set:
    ddp_dataset_release(&set);
    return rc;
}

static const char *const dirs[] = {"/usr/share/datasets/cifar10", "/usr/share/datasets/cifar-10",
                                   NULL};

extern const struct ddp_dataset_reader ddp_dataset_cifar10;
const struct ddp_dataset_reader ddp_dataset_cifar10 = {
    .name = "cifar10",
    .summary = "50,000 + 10,000 images, 32 x 32 RGB, 10 classes; binary or python form",
    .dirs = dirs,
    .channels = 3,
    .height = SIDE,
    .width = SIDE,
    .classes = DDP_CIFAR_CLASSES,
    .load = load,
};
