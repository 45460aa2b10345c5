/* CBLAS, loaded when first needed: one matrix product is all the layers ask of it.
 * Searched: the name given, DDPBENCH_BLAS_LIB, then Debian's serial OpenBLAS, OpenBLAS, BLIS, MKL,
 * reference. One thread a rank is requested through the library's own variables before loading and
 * its setter after. Not thread safe while loading; call before any thread is made... or under
 * ddp_blas_load's own lock. */
#ifndef DDP_MODEL_BLAS_H
#define DDP_MODEL_BLAS_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads (once; later calls return the first outcome). name NULL: search. DDP_EUNAVAIL says what was
 * tried and which package brings one. */
int ddp_blas_load(const char *name, struct ddp_err *err) DDP_MUST_CHECK;
/* "OpenBLAS 0.3.21 ... (libopenblas.so.0)" or the file name; "" before loading. */
const char *ddp_blas_name(void);
/* C[m][n] = alpha * op(A) * op(B) + beta * C, row-major, f32; ta/tb: transposed. */
void ddp_sgemm(int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
               const float *b, int ldb, float beta, float *c, int ldc);

#ifdef __cplusplus
}
#endif
#endif
