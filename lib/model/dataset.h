/* Data sets: images and labels in memory, read from files or generated.
 *
 * The files are not trusted. MNIST and Fashion-MNIST are IDX files, plain or gzipped. The magic
 * number must name bytes and the expected number of dimensions, and the length must be the one that
 * the dimensions give. The reader checks sizes before it allocates
 * memory. For CIFAR-10 see cifar.h. A generated set is marked as synthetic in every result. */
#ifndef DDP_MODEL_DATASET_H
#define DDP_MODEL_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_images {
    uint8_t *pixels; /* [count][channels][height][width] */
    uint8_t *labels; /* [count], each below classes */
    size_t count;
    int channels, height, width, classes;
};
struct ddp_dataset {
    char name[24];  /* "custom" if the user named only a folder with an unknown data set */
    char path[256]; /* folder as given, possibly truncated; "" for a generated set */
    uint64_t hash;  /* FNV-1a 64 of train.pixels, train.labels, eval.pixels and eval.labels */
    bool synthetic;
    struct ddp_images train, eval;
};

/* A request to load a data set. */
struct ddp_dataset_request {
    const char *dir; /* NULL: DDPBENCH_DATA_DIR, else the first default folder that exists */
    bool named;      /* the user has named the data set, not only its folder */
    int channels, height, width, classes; /* those of the model; generated sets get them */
    size_t images;                        /* generated sets: training images; 0: the default */
    uint64_t seed;                        /* generated sets */
};

struct ddp_dataset_reader {
    const char *name, *summary;
    const char *package;     /* Debian package with the files, or NULL */
    const char *const *dirs; /* default folders, NULL-terminated; NULL: the set is generated */
    uint64_t hash;           /* hash of the genuine set, see struct ddp_dataset; 0: not known */
    bool generic;            /* the file format does not show which data set the files hold */
    /* Shape of the images; 0: determined by the files or by the request. */
    int channels, height, width, classes;
    /* Returns DDP_ENOINPUT if a file is missing, DDP_EINPUT if a file is malformed, and otherwise
     * the errors of ddp_file_read (base/file.h). The message names the file. Generated sets:
     * returns DDP_EUSAGE if the request is illegal, and DDP_ENOMEM if memory runs out. The caller
     * sets the name, path and hash of *out. */
    int (*load)(const struct ddp_dataset_request *request, struct ddp_dataset *out,
                struct ddp_err *err);
};
const struct ddp_dataset_reader *const *ddp_dataset_readers(void); /* NULL-terminated */
const struct ddp_dataset_reader *ddp_dataset_find(const char *name);
/* Loads the data set `name`. The caller releases *out. Returns DDP_EUSAGE if the name is unknown,
 * DDP_ENOINPUT if there is no such folder, DDP_EPERM if the folder may not be read, and otherwise
 * the errors of the reader's load(). */
int ddp_dataset_load(const char *name, const struct ddp_dataset_request *request,
                     struct ddp_dataset *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the reader's images fit the shape and number of classes of the request. */
bool ddp_dataset_fits(const struct ddp_dataset_reader *reader,
                      const struct ddp_dataset_request *request);
void ddp_dataset_release(struct ddp_dataset *set);
/* Returns the reader's first default folder that exists, or NULL. A generated set has none. */
const char *ddp_dataset_default_dir(const struct ddp_dataset_reader *reader);
/* Largest accepted size of the data in an IDX file: 60,000 images of 224 x 224 pixels fit. */
#define DDP_IDX_MAX_BYTES ((size_t)4 << 30)
#define DDP_IDX_MAX_DIMS  4

/* Reads an IDX file of unsigned bytes, plain or gzipped, with `ndim` dimensions (at most
 * DDP_IDX_MAX_DIMS). dims [ndim] receives the dimensions. *data receives the bytes, whose number is
 * the product of the dimensions and at least 1. The caller frees *data with free(). Errors: those
 * of ddp_file_open, and DDP_EINPUT if the file is not IDX, empty, too large or truncated, or has
 * bytes after the data. Format: "THE IDX FILE FORMAT", yann.lecun.com/exdb/mnist. */
int ddp_idx_read(const char *path, int ndim, uint32_t *dims, uint8_t **data,
                 struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
