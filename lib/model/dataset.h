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
/* Loads by name from dir, or from the first default folder that exists when dir is NULL. */
int ddp_dataset_load(const char *name, const char *dir, struct ddp_dataset *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_dataset_release(struct ddp_dataset *set);
/* First existing default folder of a reader, or NULL. */
const char *ddp_dataset_default_dir(const struct ddp_dataset_reader *reader);

/* One IDX file of unsigned bytes with `ndim` dimensions: *data has the product of dims[ndim] bytes
 * (free()). */
int ddp_idx_read(const char *path, int ndim, uint32_t *dims, uint8_t **data,
                 struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
