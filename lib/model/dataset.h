/* Data sets: images and labels in memory, read once, from files that are not trusted, or made.
 *
 * IDX (MNIST, Fashion-MNIST; gzipped or not): magic, dimensions and length must agree exactly;
 * sizes are bounded before anything is allocated; a gzip stream that grows past its header's
 * promise is refused. CIFAR-10: cifar.h. A made set is marked synthetic in every result. Readers
 * live one a file behind dataset_list.h. */
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
    uint8_t *pixels;
    uint8_t *labels;
    size_t count;
    int channels, height, width, classes;
};
/* name: "custom" when nobody says, and its bytes do not show, which set it is. path: the folder as
 * it was given, cut; "" of a made set. hash: FNV-1a 64 of the bytes of train.pixels, train.labels,
 * eval.pixels, eval.labels, one after the other. */
struct ddp_dataset {
    char name[24];
    char path[256];
    uint64_t hash;
    bool synthetic;
    struct ddp_images train, eval;
};

/* dir: the folder, NULL: DDPBENCH_DATA_DIR, else the first default folder that exists. named: the
 * user says which set it is. The rest is
 * for made sets: what an image looks like, how many to train on (0: as many as the reader likes),
 * of which stream. */
struct ddp_dataset_request {
    const char *dir;
    bool named;
    int channels, height, width, classes;
    size_t images;
    uint64_t seed;
};

struct ddp_dataset_reader {
    const char *name, *summary;
    const char *package;     /* Debian package that brings it, or NULL */
    const char *const *dirs; /* where it is looked for without --data, NULL-terminated; NULL: made,
                                reads no file */
    uint64_t hash;           /* of the set, as struct ddp_dataset has it; 0: not known */
    bool generic;            /* its files could hold any images: the form does not tell which */
    /* What its images are; 0: whatever the files say, or as requested. */
    int channels, height, width, classes;
    /* DDP_ENOINPUT names what is missing; DDP_EINPUT what is malformed. */
    int (*load)(const struct ddp_dataset_request *request, struct ddp_dataset *out,
                struct ddp_err *err);
};
const struct ddp_dataset_reader *const *ddp_dataset_readers(void); /* NULL-terminated */
const struct ddp_dataset_reader *ddp_dataset_find(const char *name);
int ddp_dataset_load(const char *name, const struct ddp_dataset_request *request,
                     struct ddp_dataset *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Can its images be what the request asks for? */
bool ddp_dataset_fits(const struct ddp_dataset_reader *reader,
                      const struct ddp_dataset_request *request);
void ddp_dataset_release(struct ddp_dataset *set);
/* First existing default folder of a reader, or NULL. A made set has none. */
const char *ddp_dataset_default_dir(const struct ddp_dataset_reader *reader);
/* The four IDX files of MNIST and its relatives in `dir`: train- and t10k-, images-idx3-ubyte and
 * labels-idx1-ubyte, "-idx" or ".idx", gzipped or not. 10 classes. For readers. */
int ddp_dataset_read_idx_dir(const char *dir, const char *name, struct ddp_dataset *out,
                             struct ddp_err *err) DDP_MUST_CHECK;

/* Opens a data file for reading: *fd, *bytes its size. DDP_ENOINPUT: no such file; DDP_EPERM: not
 * readable; DDP_EINPUT: not a regular file. For readers. */
int ddp_dataset_open(const char *path, int *fd, size_t *bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* The whole of it, [*bytes] (free()); more than `most`: DDP_EINPUT. */
int ddp_dataset_read_file(const char *path, size_t most, uint8_t **data, size_t *bytes,
                          struct ddp_err *err) DDP_MUST_CHECK;

/* Most bytes one IDX file may promise: 60000 images of 224 x 224 fit. */
#define DDP_IDX_MAX_BYTES ((size_t)4 << 30)
#define DDP_IDX_MAX_DIMS  4

/* One IDX file of unsigned bytes with `ndim` (at most DDP_IDX_MAX_DIMS) dimensions, plain or
 * gzipped: *data has the product of dims[ndim] bytes (free()), at least 1. Format: "THE IDX
 * FILE FORMAT", yann.lecun.com/exdb/mnist. DDP_ENOINPUT: no such file; DDP_EPERM: not readable;
 * DDP_EINPUT: not a regular file, not IDX, empty, too large, truncated, or bytes after its end. */
int ddp_idx_read(const char *path, int ndim, uint32_t *dims, uint8_t **data,
                 struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
