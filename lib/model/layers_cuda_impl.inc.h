/* Declarations that need NVIDIA's headers, for the files of device cuda's layers only:
 *
 *   layers_cuda.c               the layer table: open, close, products; opens the libraries
 *   layers_cuda_cudnn.c         convolutions, unless cuDNN's header is missing
 *   layers_cuda_absent.c        replaces both in a build without CUDA or cuBLAS */
#ifndef DDP_MODEL_LAYERS_CUDA_IMPL_INC_H
#define DDP_MODEL_LAYERS_CUDA_IMPL_INC_H

#include <cublas_v2.h>

#include "device/cuda/cuda_module.h"
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

/* A library to open. */
struct ddp_cuda_library {
    const char *what;         /* name in messages */
    const char *soname;       /* file name to search for, unless `key` is configured */
    const char *package;      /* folder of the Python package that contains the library */
    int key;                  /* enum ddp_conf_key: the setting that names the file */
    const char *const *names; /* the functions to look up, [count] */
    size_t count;
};
/* In layers_cuda.c. Opens the library and fills functions [count] with its functions. The
 * library stays open. Returns DDP_EUNAVAIL if the library or a function was not found. */
int ddp_cuda_library_open(const struct ddp_cuda_library *l, void **functions,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Adds a note, such as the version of an opened library, to the text that ddp_cuda_library_text()
 * returns, unless the text contains the note already. */
void ddp_cuda_library_note(const char *fmt, ...) DDP_PRINTF(1, 2);
/* Returns the names and versions of the opened libraries, and the notes, for library() of struct
 * ddp_layers. */
const char *ddp_cuda_library_text(void);

/* Makes `reason` the error of the context's stream, because a call of a library failed. If the
 * stream already has an error, this error stays. */
void ddp_cuda_layers_note(struct ddp_layers_context *c, const char *reason);
cudaStream_t ddp_cuda_layers_stream(struct ddp_layers_context *c);

/* Makes the context use cuDNN's convolutions. Returns DDP_EUNAVAIL if cuDNN was not found, was not
 * built in or cannot be used. If `optional`, a convolution that cuDNN cannot compute is computed as
 * a product of unfolded images, and a note says so (ddp_cuda_library_note). If `optional`, a note
 * also says that cuDNN was found but cannot be used. */
int ddp_cuda_cudnn_open(struct ddp_layers_context *c, bool optional,
                        struct ddp_err *err) DDP_MUST_CHECK;

#endif
