/* Reads and writes NPY files, which hold recorded gradients. Such a file holds a float32 array of
 * one or two dimensions, row by row.
 *
 * `ddpbench train --dump-gradients DIR` writes one file per rank: DIR/rank0.npy, DIR/rank1.npy, ...
 * Each file has the shape [steps][parameters], with one row per recorded step. A row is the rank's
 * own gradient before the exchange. Let P be the number of ranks, n the number of images in the
 * step, and m the number of this rank's images. The row is the mean gradient over the m images,
 * multiplied by P m / n. This factor is 1 if all ranks have equally many images.
 *
 * When P ranks replay one file, rank r reads row (i P + r) % rows in iteration i, so that the ranks
 * have different gradients.
 *
 * Only NPY version 1.0, type '<f4', C order and the shapes (columns,) and (rows, columns) are
 * supported. The data must end where the file ends. For any other file ddp_npy_open returns
 * DDP_EINPUT, and the message contains the reason. Source: NumPy Enhancement Proposal 1, "A Simple
 * File Format for NumPy Arrays". */
#ifndef DDP_BASE_NPY_H
#define DDP_BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_npy {
    /* The shape [rows][columns]. A one-dimensional file has one row. `rows` can be 0, but `columns`
     * cannot. */
    size_t rows, columns;
    int fd; /* private to npy.c */
    size_t data_offset;
    const char *path; /* the caller's text for messages, not copied */
};

/* Opens a file for reading. Returns the errors of ddp_file_open, DDP_EIO if reading fails, and
 * DDP_EINPUT if the file is not supported (see above). */
int ddp_npy_open(const char *path, struct ddp_npy *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads elements [first, first + n) of a row into `out` [n]. Asserts row < rows and first + n <=
 * columns. Forked ranks may read from the same struct at the same time. Returns DDP_EIO if reading
 * fails, and DDP_EINPUT if the file has become shorter. */
int ddp_npy_read(const struct ddp_npy *npy, size_t row, size_t first, float *out, size_t n,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* Creates a file without rows, or truncates an existing file. `columns` must not be 0. Returns
 * DDP_ECREATE if the file cannot be created, DDP_ENOMEM if too many files are open, and DDP_EIO if
 * writing fails. */
int ddp_npy_create(const char *path, size_t columns, struct ddp_npy *out,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Appends the row `row` [columns] and updates the header. The file is valid after every successful
 * call. Returns DDP_EIO if writing fails. */
int ddp_npy_append(struct ddp_npy *npy, const float *row, struct ddp_err *err) DDP_MUST_CHECK;

/* Closes an opened or created file. A zeroed struct is allowed. */
void ddp_npy_close(struct ddp_npy *npy);

#ifdef __cplusplus
}
#endif
#endif
