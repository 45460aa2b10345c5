/* Recorded gradients as NPY files: float32 arrays of one or two dimensions, row by row.
 *
 * `ddpbench train --dump-gradients DIR` writes DIR/rank0.npy, DIR/rank1.npy, ...: one file a rank,
 * [steps][parameters], a row for each recorded step: this rank's own gradient before any exchange,
 * as its mean over its images times P m_r / n (even parts: its plain mean). Who replays one file on
 * P ranks reads row (i P + r) % rows in iteration i on rank r, so that ranks have different ones.
 *
 * Reader and writer know NPY version 1.0, '<f4', C order, shape (n,) or (m, n), and nothing else:
 * every other file is DDP_EINPUT with the reason. Files from outside are hostile: the header is
 * bounded, and the shape must agree with the length of the file to the byte. Nothing is allocated;
 * a row is read when it is asked for.
 * Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays". */
#ifndef DDP_BASE_NPY_H
#define DDP_BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows [rows][columns]; a one-dimensional file is one row. Rows may be 0, columns not. fd and path
 * are npy.c's; path is the caller's text, borrowed for messages. */
struct ddp_npy {
    size_t rows, columns;
    int fd;
    size_t data_offset;
    const char *path;
};

/* Opens for reading. DDP_ENOINPUT, DDP_EPERM, DDP_EINPUT; DDP_EIO. */
int ddp_npy_open(const char *path, struct ddp_npy *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Elements [first, first + n) of a row into out [n]; row < rows, first + n <= columns (asserted).
 * May be called from ranks that inherited the descriptor. DDP_EIO; DDP_EINPUT: the file shrank. */
int ddp_npy_read(const struct ddp_npy *npy, size_t row, size_t first, float *out, size_t n,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* Creates (or truncates) a file of no rows. columns > 0. DDP_ECREATE. */
int ddp_npy_create(const char *path, size_t columns, struct ddp_npy *out,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Appends row [columns], then the header: the file is valid after every call. DDP_EIO. */
int ddp_npy_append(struct ddp_npy *npy, const float *row, struct ddp_err *err) DDP_MUST_CHECK;

/* Of what was opened or created; a zeroed one is fine. */
void ddp_npy_close(struct ddp_npy *npy);

#ifdef __cplusplus
}
#endif
#endif
