/* CBLAS, loaded when first needed: one matrix product is all the layers ask of it.
 *
 * Searched: the name given, DDPBENCH_BLAS_LIB, then Debian's serial OpenBLAS, OpenBLAS, BLIS, MKL,
 * reference. One thread a rank is requested through the library's own variables before loading and
 * its setter after. Load it in the rank, after the fork. Every thread that will multiply calls
 * ddp_blas_load before any of them multiplies: with more than one such thread, calls take turns
 * (a serial OpenBLAS is not thread safe), which only --launch threads meets. */
#ifndef DDP_MODEL_BLAS_H
#define DDP_MODEL_BLAS_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads, once a process: later calls keep the library that the first success found, whatever their
 * name. name NULL: search. DDP_EUNAVAIL says what was tried and which package brings one. */
int ddp_blas_load(const char *name, struct ddp_err *err) DDP_MUST_CHECK;
/* "OpenBLAS 0.3.21 SkylakeX (libopenblas.so.0)" or the file name; "" before loading. */
const char *ddp_blas_name(void);
/* C[m][n] = alpha * op(A) * op(B) + beta * C, row-major, f32; ta/tb: transposed. beta 0 ignores
 * what C held. Only after a successful load. */
void ddp_sgemm(int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
               const float *b, int ldb, float beta, float *c, int ldc);

#ifdef __cplusplus
}
#endif
#endif
