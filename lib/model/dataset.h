/* Data sets: images and labels in memory, read once, from files that are not trusted.
 *
 * IDX (MNIST, Fashion-MNIST; gzipped or not): magic, dimensions and length must agree exactly;
 * sizes are bounded before anything is allocated; a gzip stream that grows past its header's
 * promise is refused. Readers live one a file behind dataset_list.h. */
#ifndef DDP_MODEL_DATASET_H
#define DDP_MODEL_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pixels: [count][channels][height][width] bytes; labels: [count] in [0, classes). */
struct ddp_images {
    uint8_t *pixels, *labels;
    size_t count;
    int channels, height, width, classes;
};
struct ddp_dataset {
    char name[24];
    bool synthetic;
    struct ddp_images train, eval;
};

struct ddp_dataset_reader {
    const char *name, *summary;
    const char *package;     /* Debian package that brings it, or NULL */
    const char *const *dirs; /* where it is looked for without --data, NULL-terminated */
    /* dir: a folder. DDP_ENOINPUT names what is missing and `package`; DDP_EINPUT what is
     * malformed. */
    int (*load)(const char *dir, struct ddp_dataset *out, struct ddp_err *err);
};
const struct ddp_dataset_reader *const *ddp_dataset_readers(void); /* NULL-terminated */
const struct ddp_dataset_reader *ddp_dataset_find(const char *name);
/* Loads by name from dir; NULL: from DDPBENCH_DATA_DIR, else from the first default folder that
 * exists. */
int ddp_dataset_load(const char *name, const char *dir, struct ddp_dataset *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_dataset_release(struct ddp_dataset *set);
/* First existing default folder of a reader, or NULL. */
const char *ddp_dataset_default_dir(const struct ddp_dataset_reader *reader);
/* Says in err's hint where the data come from: `package` or --data. Returns err->code. */
int ddp_dataset_hint(const char *package, struct ddp_err *err);
/* The four IDX files of MNIST and its relatives in `dir`: train- and t10k-, images-idx3-ubyte and
 * labels-idx1-ubyte, "-idx" or ".idx", gzipped or not. 10 classes. For readers. */
int ddp_dataset_read_idx_dir(const char *dir, const char *name, const char *package,
                             struct ddp_dataset *out, struct ddp_err *err) DDP_MUST_CHECK;

/* Most bytes one IDX file may promise: 60000 images of 224 x 224 fit. */
#define DDP_IDX_MAX_BYTES ((size_t)4 << 30)
#define DDP_IDX_MAX_DIMS  4

/* One IDX file of unsigned bytes with `ndim` (at most DDP_IDX_MAX_DIMS) dimensions, plain or one
 * gzip member: *data has the product of dims[ndim] bytes (free()), at least 1. Format: "THE IDX
 * FILE FORMAT", yann.lecun.com/exdb/mnist. DDP_ENOINPUT: no such file; DDP_EPERM: not readable;
 * DDP_EINPUT: not a regular file, not IDX, empty, too large, truncated, or bytes after its end. */
int ddp_idx_read(const char *path, int ndim, uint32_t *dims, uint8_t **data,
                 struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
