/* Recorded gradients as NPY files: float32 arrays of one or two dimensions, row by row.
 *
 * `ddpbench train --dump-gradients DIR` writes one file per rank: DIR/rank0.npy, DIR/rank1.npy, ...
 * Each has the shape [steps][parameters], with one row per recorded step. A row is the rank's own
 * gradient before the exchange: the mean over its m_r images, times P m_r / n, for P ranks and n
 * images in the step. With equal shares this is the plain mean. When one file is replayed on P
 * ranks, rank r reads row (i P + r) % rows in iteration i, so that ranks have different gradients.
 *
 * The reader and the writer support NPY version 1.0, '<f4', C order and shape (n,) or (m, n). Every
 * other file is DDP_EINPUT with the reason. Files may be hostile: the header is bounded, and the
 * shape must match the length of the file exactly. Nothing is allocated; each row is read on
 * request. Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays". */
#ifndef DDP_BASE_NPY_H
#define DDP_BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open NPY file. */
struct ddp_npy {
    /* The shape [rows][columns]; a one-dimensional file is one row. rows may be 0, columns may not.
     */
    size_t rows, columns;
    int fd; /* private to npy.c */
    size_t data_offset;
    const char *path; /* the caller's text, borrowed for messages */
};

/* Opens a file for reading. DDP_ENOINPUT, DDP_EPERM, DDP_EINPUT, DDP_EIO. */
int ddp_npy_open(const char *path, struct ddp_npy *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads elements [first, first + n) of a row into out [n]. Asserts row < rows and first + n <=
 * columns. Ranks that inherited the descriptor may call it. DDP_EIO; DDP_EINPUT if the file has
 * become shorter. */
int ddp_npy_read(const struct ddp_npy *npy, size_t row, size_t first, float *out, size_t n,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* Creates or truncates a file, with no rows. columns > 0. DDP_ECREATE. */
int ddp_npy_create(const char *path, size_t columns, struct ddp_npy *out,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Appends row [columns] and updates the header. The file is valid after every call. DDP_EIO. */
int ddp_npy_append(struct ddp_npy *npy, const float *row, struct ddp_err *err) DDP_MUST_CHECK;

/* Closes an opened or created file. A zeroed struct is allowed. */
void ddp_npy_close(struct ddp_npy *npy);

#ifdef __cplusplus
}
#endif
#endif
