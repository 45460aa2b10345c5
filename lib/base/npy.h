/* Reads and writes recorded gradients as NPY files. Such a file holds a float32 array of one or two
 * dimensions, row by row.
 *
 * `ddpbench train --dump-gradients DIR` writes one file per rank: DIR/rank0.npy, DIR/rank1.npy, ...
 * Each file has the shape [steps][parameters], with one row per recorded step. A row is the rank's
 * own gradient before the exchange. It is the mean over the rank's m_r images, times P m_r / n, for
 * P ranks and n images in the step. If all ranks have equally many images, this factor is 1.
 *
 * When P ranks replay one file, rank r reads row (i P + r) % rows in iteration i, so that the ranks
 * have different gradients.
 *
 * Only NPY version 1.0, type '<f4', C order and the shapes (n,) and (m, n) are supported. For any
 * other file ddp_npy_open returns DDP_EINPUT, and the message has the reason. The shape must match
 * the length of the file exactly. Source: NumPy Enhancement Proposal 1, "A Simple File Format for
 * NumPy Arrays". */
#ifndef DDP_BASE_NPY_H
#define DDP_BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_npy {
    /* The shape [rows][columns]. A one-dimensional file has one row. rows may be 0, but columns may
     * not. */
    size_t rows, columns;
    int fd; /* private to npy.c */
    size_t data_offset;
    const char *path; /* the caller's text for messages, not copied */
};

/* Opens a file for reading. Returns 0, DDP_ENOINPUT, DDP_EPERM, DDP_EINPUT or DDP_EIO. */
int ddp_npy_open(const char *path, struct ddp_npy *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads elements [first, first + n) of a row into out [n]. Asserts row < rows and first + n <=
 * columns. Ranks that inherited the descriptor may call this function. Returns DDP_EIO if reading
 * fails, and DDP_EINPUT if the file has become shorter. */
int ddp_npy_read(const struct ddp_npy *npy, size_t row, size_t first, float *out, size_t n,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* Creates a file without rows, or truncates an existing file. columns must not be 0. Returns
 * DDP_ECREATE or DDP_EIO on failure. */
int ddp_npy_create(const char *path, size_t columns, struct ddp_npy *out,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Appends row [columns] and updates the header. The file is valid after every call. Returns DDP_EIO
 * on failure. */
int ddp_npy_append(struct ddp_npy *npy, const float *row, struct ddp_err *err) DDP_MUST_CHECK;

/* Closes an opened or created file. A zeroed struct is allowed. */
void ddp_npy_close(struct ddp_npy *npy);

#ifdef __cplusplus
}
#endif
#endif
