/* Inside the layers of device cuda: what their files share, on NVIDIA's own headers. Nobody else
 * includes this.
 *
 *   layers_cuda.c               the table: opening, closing, products
 *   layers_cuda_load.c          the libraries, opened when first needed
 *   layers_cuda_cudnn.c         convolutions (layers_cuda_cudnn_absent.c: built without its header)
 *   layers_cuda_absent.c        instead of the first two in a build without cuBLAS's header */
#ifndef DDP_MODEL_LAYERS_CUDA_IMPL_INC_H
#define DDP_MODEL_LAYERS_CUDA_IMPL_INC_H

#include <cublas_v2.h>

#include "device/dev_cuda_impl.h"
#include "model/layers_stream.h"

#define DDP_CUBLAS_FUNCTIONS(X)                                                                    \
    X(cublasCreate_v2)                                                                             \
    X(cublasDestroy_v2)                                                                            \
    X(cublasGetStatusString)                                                                       \
    X(cublasGetVersion_v2)                                                                         \
    X(cublasSetMathMode)                                                                           \
    X(cublasSetStream_v2)                                                                          \
    X(cublasSetWorkspace_v2)                                                                       \
    X(cublasSgemm_v2)

#define DDP_CUDA_MEMBER(name) __typeof__(name) *name;

struct ddp_cublas {
    DDP_CUBLAS_FUNCTIONS(DDP_CUDA_MEMBER)
};

/* A library to look for: `soname`, or what `key` names; package: a Python package's folder. */
struct ddp_cuda_library {
    const char *what;
    const char *soname;
    const char *package;
    int key;                  /* enum ddp_conf_key */
    const char *const *names; /* its functions, [count] */
    size_t count;
};
/* layers_cuda_load.c. Fills functions [count]. DDP_EUNAVAIL says what was not found. Keeps the
 * library open. */
int ddp_cuda_library_open(const struct ddp_cuda_library *l, void **functions,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* What layers.library() says: once a library is open its name and version. */
void ddp_cuda_library_note(const char *name, int major, int minor, int patch);
const char *ddp_cuda_library_text(void);

#endif
