/* A fake cuDNN on the fake GPU (fake_gpu.h). Convolutions are put on the stream, and the processor
 * computes them. A convolution fails unless its algorithm, arithmetic and workspace are those that
 * the fake offers for its descriptors.
 *
 *   FAKE_CUDNN=create    cudnnCreate fails
 *   FAKE_CUDNN=none      the heuristics offer only algorithms that are not deterministic
 *   FAKE_CUDNN=default   the heuristics name DEFAULT_MATH, also for descriptors with FMA_MATH
 *   FAKE_CUDNN=cuda12    a library for CUDA 12
 *   FAKE_CUDNN=tf32      convolutions run with every kind of arithmetic but FMA_MATH */
#include <cudnn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/blas.h"
#include "nccl/fake_gpu.h"

/* The number of the one algorithm that is deterministic; operations have different enums. */
#define GOOD_ALGORITHM 1
#define NEED_BYTES     ((size_t)1 << 20)

struct cudnnContext {
    void *stream;
};
struct cudnnTensorStruct {
    int n, c, h, w;
};
struct cudnnFilterStruct {
    int out, in, k;
};
struct cudnnConvolutionStruct {
    int pad, stride;
    cudnnMathType_t math;
};

static bool mode(const char *name)
{
    const char *text = getenv("FAKE_CUDNN");
    return text != NULL && strcmp(text, name) == 0;
}

size_t cudnnGetVersion(void)
{
    return 90200;
}

size_t cudnnGetCudartVersion(void)
{
    return mode("cuda12") ? 12080 : CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_NOT_SUPPORTED     ? "CUDNN_STATUS_NOT_SUPPORTED"
           : status == CUDNN_STATUS_NOT_INITIALIZED ? "CUDNN_STATUS_NOT_INITIALIZED"
                                                    : "fake cuDNN refused a call";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    if (mode("create") || ddp_blas_load(NULL, &ignored) != 0)
        return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

#define DESCRIPTOR(kind, type)                                                                     \
    cudnnStatus_t cudnnCreate##kind##Descriptor(type *d)                                           \
    {                                                                                              \
        *d = calloc(1, sizeof **d);                                                                \
        return *d != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;                      \
    }                                                                                              \
    cudnnStatus_t cudnnDestroy##kind##Descriptor(type d)                                           \
    {                                                                                              \
        free(d);                                                                                   \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
DESCRIPTOR(Tensor, cudnnTensorDescriptor_t)
DESCRIPTOR(Filter, cudnnFilterDescriptor_t)
DESCRIPTOR(Convolution, cudnnConvolutionDescriptor_t)

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    *d = (struct cudnnTensorStruct){n, c, h, w};
    return format == CUDNN_TENSOR_NCHW && type == CUDNN_DATA_FLOAT ? CUDNN_STATUS_SUCCESS
                                                                   : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    *d = (struct cudnnFilterStruct){k, c, h};
    return format == CUDNN_TENSOR_NCHW && type == CUDNN_DATA_FLOAT && h == w
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w,
                                              int u, int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t kind, cudnnDataType_t type)
{
    *d = (struct cudnnConvolutionStruct){pad_h, u, CUDNN_DEFAULT_MATH};
    return pad_h == pad_w && u == v && dilation_h == 1 && dilation_w == 1 &&
                   kind == CUDNN_CROSS_CORRELATION && type == CUDNN_DATA_FLOAT
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math)
{
    d->math = math;
    return CUDNN_STATUS_SUCCESS;
}

/* The heuristics put a fast algorithm first whose results differ from run to run, then one that
 * rounds its factors, then the good one. */
#define HEURISTICS(name, a, A, b, B, c, C, perf)                                                   \
    cudnnStatus_t name(cudnnHandle_t h, A a, B b, cudnnConvolutionDescriptor_t conv, C c,          \
                       int requested, int *count, perf *found)                                     \
    {                                                                                              \
        for (*count = 0; *count < 3 && *count < requested; ++*count) {                             \
            memset(&found[*count], 0, sizeof found[*count]);                                       \
            found[*count].memory = NEED_BYTES;                                                     \
            found[*count].algo = *count == 2 ? GOOD_ALGORITHM : 0;                                 \
            found[*count].determinism =                                                            \
                *count == 0 || mode("none") ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;       \
            found[*count].mathType = *count == 1       ? CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION     \
                                     : mode("default") ? CUDNN_DEFAULT_MATH                        \
                                                       : conv->math;                               \
        }                                                                                          \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
HEURISTICS(cudnnGetConvolutionForwardAlgorithm_v7, x, cudnnTensorDescriptor_t, w,
           cudnnFilterDescriptor_t, y, cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgoPerf_t)
HEURISTICS(cudnnGetConvolutionBackwardFilterAlgorithm_v7, x, cudnnTensorDescriptor_t, dy,
           cudnnTensorDescriptor_t, dw, cudnnFilterDescriptor_t,
           cudnnConvolutionBwdFilterAlgoPerf_t)
HEURISTICS(cudnnGetConvolutionBackwardDataAlgorithm_v7, w, cudnnFilterDescriptor_t, dy,
           cudnnTensorDescriptor_t, dx, cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgoPerf_t)

/* Returns the workspace of an algorithm with the descriptor's arithmetic. */
static cudnnStatus_t workspace_size(int algorithm, size_t *bytes)
{
    *bytes = NEED_BYTES;
    return algorithm == GOOD_ALGORITHM ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t h, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t conv,
                                                      cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm,
                                                      size_t *bytes)
{
    return workspace_size((int)algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes)
{
    return workspace_size((int)algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t h, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t *bytes)
{
    return workspace_size((int)algorithm, bytes);
}

/* A convolution of x [n][c][h][w] with w [out][c][k][k]. `x`, `w` and `y` are inputs or gradients,
 * depending on the operation. */
struct conv_work {
    struct cudnnTensorStruct in, out;
    struct cudnnFilterStruct filter;
    struct cudnnConvolutionStruct conv;
    enum { FORWARD, WEIGHTS, DATA } operation;
    const float *a, *b;
    float *result;
};

/* Unfolds image x into col [c*k*k][positions], or adds col to the image. */
static void unfold(const struct conv_work *w, float *x, float *col, bool back)
{
    const int k = w->filter.k, positions = w->out.h * w->out.w;
    for (int row = 0; row < w->in.c * k * k; row++)
        for (int at = 0; at < positions; at++) {
            const int i = at / w->out.w * w->conv.stride + row / k % k - w->conv.pad;
            const int j = at % w->out.w * w->conv.stride + row % k - w->conv.pad;
            const bool inside = i >= 0 && i < w->in.h && j >= 0 && j < w->in.w;
            float *pixel = &x[inside ? (row / k / k * w->in.h + i) * w->in.w + j : 0];
            float *entry = &col[row * positions + at];
            if (!back)
                *entry = inside ? *pixel : 0.0f;
            else if (inside)
                *pixel += *entry;
        }
}

static void one_image(const struct conv_work *w, int image, const float *a, const float *b,
                      float *result, float *col)
{
    const int taps = w->in.c * w->filter.k * w->filter.k, positions = w->out.h * w->out.w;
    const size_t input = (size_t)w->in.c * (size_t)(w->in.h * w->in.w) * (size_t)image;
    const size_t output = (size_t)w->out.c * (size_t)positions * (size_t)image;
    switch (w->operation) {
    case FORWARD:
        unfold(w, (float *)(uintptr_t)(a + input), col, false);
        ddp_sgemm(0, 0, w->out.c, positions, taps, 1.0f, b, taps, col, positions, 0.0f,
                  result + output, positions);
        break;
    case WEIGHTS:
        unfold(w, (float *)(uintptr_t)(a + input), col, false);
        ddp_sgemm(0, 1, w->out.c, taps, positions, 1.0f, b + output, positions, col, positions,
                  image > 0 ? 1.0f : 0.0f, result, taps);
        break;
    case DATA:
        ddp_sgemm(1, 0, taps, positions, w->out.c, 1.0f, b, taps, a + output, positions, 0.0f, col,
                  positions);
        memset(result + input, 0, (size_t)w->in.c * (size_t)(w->in.h * w->in.w) * sizeof *result);
        unfold(w, result + input, col, true);
        break;
    }
}

static int convolve(void *arg)
{
    const struct conv_work *w = arg;
    const size_t taps = (size_t)(w->in.c * w->filter.k * w->filter.k);
    float *col = malloc(taps * (size_t)(w->out.h * w->out.w) * sizeof *col);
    if (col == NULL)
        abort();
    for (int image = 0; image < w->in.n; image++)
        one_image(w, image, fake_gpu_host(w->a), fake_gpu_host(w->b),
                  (float *)fake_gpu_host(w->result), col);
    free(col);
    return 1;
}

static bool on_gpu(const void *ptr)
{
    return fake_gpu_host(ptr) != ptr;
}

static cudnnStatus_t put(cudnnHandle_t h, const struct conv_work *w, int algorithm,
                         const void *space, size_t bytes, const void *alpha, const void *beta)
{
    const int k = w->filter.k, pad = w->conv.pad, stride = w->conv.stride;
    const bool fits = w->in.n > 0 && w->out.n == w->in.n && w->filter.in == w->in.c &&
                      w->filter.out == w->out.c &&
                      w->out.h == (w->in.h + 2 * pad - k) / stride + 1 &&
                      w->out.w == (w->in.w + 2 * pad - k) / stride + 1;
    if (!fits || algorithm != GOOD_ALGORITHM || (w->conv.math == CUDNN_FMA_MATH) == mode("tf32") ||
        !on_gpu(space) || bytes < NEED_BYTES || !on_gpu(w->a) || !on_gpu(w->b) ||
        !on_gpu(w->result) || *(const float *)alpha != 1.0f || *(const float *)beta != 0.0f)
        return CUDNN_STATUS_BAD_PARAM;
    fake_gpu_put(h->stream, convolve, w, sizeof *w);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha,
                                      const cudnnTensorDescriptor_t xd, const void *x,
                                      const cudnnFilterDescriptor_t wd, const void *w,
                                      const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *space,
                                      size_t bytes, const void *beta,
                                      const cudnnTensorDescriptor_t yd, void *y)
{
    const struct conv_work work = {*xd, *yd, *wd, *conv, FORWARD, x, w, y};
    return put(h, &work, (int)algorithm, space, bytes, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha,
                                             const cudnnTensorDescriptor_t xd, const void *x,
                                             const cudnnTensorDescriptor_t dyd, const void *dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *space,
                                             size_t bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dwd, void *dw)
{
    const struct conv_work work = {*xd, *dyd, *dwd, *conv, WEIGHTS, x, dy, dw};
    return put(h, &work, (int)algorithm, space, bytes, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha,
                                           const cudnnFilterDescriptor_t wd, const void *w,
                                           const cudnnTensorDescriptor_t dyd, const void *dy,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *space,
                                           size_t bytes, const void *beta,
                                           const cudnnTensorDescriptor_t dxd, void *dx)
{
    const struct conv_work work = {*dxd, *dyd, *wd, *conv, DATA, dy, w, dx};
    return put(h, &work, (int)algorithm, space, bytes, alpha, beta);
}
