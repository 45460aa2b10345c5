/* CBLAS, loaded on first use.
 *
 * If the caller or DDPBENCH_BLAS_LIB names a library, no other library is tried. Otherwise the
 * search order is Debian's serial OpenBLAS, OpenBLAS, BLIS, MKL, and the reference BLAS. The
 * library uses one thread per rank. Load the library in the rank, after the fork. Every thread that
 * will multiply must call ddp_blas_load() before any thread multiplies. A process has several such
 * threads only with --launch threads. Their products run one at a time, because a serial OpenBLAS
 * is not thread safe. */
#ifndef DDP_MODEL_BLAS_H
#define DDP_MODEL_BLAS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the library `name`, or searches for one if name is NULL. The first library that was loaded
 * serves the whole process. Later calls ignore `name`. Returns DDP_EUNAVAIL if no library works.
 * The message then names the library, or the libraries that were tried. Returns DDP_ENOMEM if the
 * system refuses the memory that the library needs for its buffer. */
int ddp_blas_load(const char *name, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the name of the library, such as "OpenBLAS 0.3.21 SkylakeX (libopenblas.so.0)", or at
 * least its file name. Returns "" before a library is loaded. */
const char *ddp_blas_name(void);
/* From now on, adds 1 to *counter after each product of this thread, so that the supervisor and the
 * watchdog can see the thread's progress. NULL: stop counting. */
void ddp_blas_count(_Atomic(uint32_t) *counter);
/* C [m][n] = alpha * op(A) * op(B) + beta * C, row-major, f32. ta and tb say whether A and B are
 * transposed. With beta 0 the old contents of C are ignored. Requires a loaded library. */
void ddp_sgemm(int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
               const float *b, int ldb, float beta, float *c, int ldc);

#ifdef __cplusplus
}
#endif
#endif
