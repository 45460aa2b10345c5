/* A fake cuBLAS on the fake GPU (fake_gpu.h). Products are put on the stream, and the BLAS library
 * of the processor computes them. As in a captured graph, a product fails if the caller has not set
 * a workspace after the stream, because cuBLAS would then allocate one. */
#include <cublas_v2.h>
#include <stdbool.h>
#include <stdlib.h>

#include "model/blas.h"
#include "nccl/fake_gpu.h"

struct cublasContext {
    void *stream, *workspace;
    cublasMath_t math;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    if (ddp_blas_load(NULL, &ignored) != 0)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "fake cuBLAS refused a call";
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    (void)handle;
    *version = 130102;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* Like cuBLAS, this returns to the default workspace. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    handle->workspace = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if (fake_gpu_host(workspace) == workspace || bytes < ((size_t)1 << 20))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
}

struct product {
    bool ta, tb;
    int m, n, k, lda, ldb, ldc;
    float alpha, beta;
    const float *a, *b;
    float *c;
};

/* cuBLAS stores matrices by columns. Read by rows, they are transposed. */
static int multiply(void *arg)
{
    const struct product *p = arg;
    ddp_sgemm(p->tb, p->ta, p->n, p->m, p->k, p->alpha, fake_gpu_host(p->b), p->ldb,
              fake_gpu_host(p->a), p->lda, p->beta, (float *)fake_gpu_host(p->c), p->ldc);
    return 1;
}

static bool on_gpu(const void *ptr)
{
    return fake_gpu_host(ptr) != ptr;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                              int m, int n, int k, const float *alpha, const float *a, int lda,
                              const float *b, int ldb, const float *beta, float *c, int ldc)
{
    const struct product p = {
        ta == CUBLAS_OP_T, tb == CUBLAS_OP_T, m, n, k, lda, ldb, ldc, *alpha, *beta, a, b, c};
    if (handle->stream == NULL || handle->workspace == NULL)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || lda < (p.ta ? k : m) || ldb < (p.tb ? n : k) || ldc < m ||
        !on_gpu(a) || !on_gpu(b) || !on_gpu(c))
        return CUBLAS_STATUS_INVALID_VALUE;
    fake_gpu_put(handle->stream, multiply, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}
