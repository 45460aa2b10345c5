/* The layers of device cuda: products by cuBLAS, convolutions by cuDNN if available, and everything
 * else by kernels_nn.cu.
 *
 * Products are f32. TF32, which rounds factors to 11 bits, is used only on request. */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "device/cuda/find_cuda_library.h"
#include "model/layers_cuda_impl.inc.h"

/* The functions below open NVIDIA's libraries on first use, so that the program starts without
 * these libraries. The function pointers have the types that the headers declared when ddpbench
 * was built. The soname contains the major version of these headers, so the types fit. */

/* Names and versions of the opened libraries, and notes about what the libraries cannot do. The
 * text belongs to the whole process, like the libraries. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[96];

static void *find_library(const struct ddp_cuda_library *l, struct ddp_err *err)
{
    const enum ddp_conf_key key = (enum ddp_conf_key)l->key;
    char why[300];
    void *handle = ddp_cuda_library_find(l->soname, l->package, key, why, sizeof why);
    if (handle == NULL) {
        ddp_fail(err, DDP_EUNAVAIL, "cannot load %s: %s", l->what, why);
        ddp_hint(err, "set %s=FILE to name the library", ddp_conf_rows()[l->key].variable);
    }
    return handle;
}

int ddp_cuda_library_open(const struct ddp_cuda_library *l, void **functions, struct ddp_err *err)
{
    void *handle = find_library(l, err);
    if (handle == NULL)
        return DDP_EUNAVAIL;
    for (size_t i = 0; i < l->count; i++) {
        functions[i] = dlsym(handle, l->names[i]);
        if (functions[i] == NULL) {
            dlclose(handle);
            return ddp_fail(err, DDP_EUNAVAIL, "the %s library has no function %s", l->what,
                            l->names[i]);
        }
    }
    return 0;
}

void ddp_cuda_library_note(const char *fmt, ...)
{
    char note[sizeof text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(note, sizeof note, fmt, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    if (strstr(text, note) == NULL)
        ddp_text_append(text, sizeof text, "%s%s", text[0] != '\0' ? ", " : "", note);
    pthread_mutex_unlock(&lock);
}

const char *ddp_cuda_library_text(void)
{
    return text;
}

/* The size that cuBLAS's manual recommends for Hopper. open_cublas() allocates the workspace,
 * because cuBLAS must not allocate a workspace while a graph is captured. */
#define WORKSPACE_BYTES ((size_t)32 << 20)

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define NAME(name) #name,

struct library {
    struct ddp_cublas api;
    cublasHandle_t handle;
    void *workspace;
};

static const char *const names[] = {DDP_CUBLAS_FUNCTIONS(NAME)};
static const struct ddp_cuda_library cublas = {
    .what = "cuBLAS",
    .soname = "libcublas.so." TEXT(CUBLAS_VER_MAJOR),
    .package = "{cu" TEXT(CUBLAS_VER_MAJOR) ",cublas}",
    .key = DDP_CONF_CUBLAS_LIB,
    .names = names,
    .count = DDP_COUNT_OF(names),
};

static struct library *library_of(struct ddp_layers_context *c)
{
    return c->library;
}

void ddp_cuda_layers_note(struct ddp_layers_context *c, const char *reason)
{
    const struct ddp_cuda_module *module;
    if (ddp_cuda_module_load(&module, NULL) == 0) /* cuda_open has opened it */
        module->note(c->stream, cudaErrorUnknown, reason);
}

cudaStream_t ddp_cuda_layers_stream(struct ddp_layers_context *c)
{
    return c->device->streams->native(c->stream);
}

/* If `status` is an error, makes cuBLAS's text for it the error of the stream. */
static void note(struct ddp_layers_context *c, cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        ddp_cuda_layers_note(c, library_of(c)->api.cublasGetStatusString(status));
}

/* cuBLAS stores matrices by columns, ddpbench by rows. A row-major matrix that is read by columns
 * is its transpose. The product C = op(A) op(B) is therefore computed as C^T = op(B)^T op(A)^T, and
 * no data is moved. */
static void gemm(struct ddp_layers_context *c, const struct ddp_gemm *g)
{
    struct library *l = library_of(c);
    const float one = 1.0f, beta = g->add ? 1.0f : 0.0f;
    note(c, l->api.cublasSgemm_v2(l->handle, g->tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                                  g->ta ? CUBLAS_OP_T : CUBLAS_OP_N, g->n, g->m, g->k, &one, g->b,
                                  g->ldb, g->a, g->lda, &beta, g->c, g->ldc));
}

static int fail(const struct library *l, cublasStatus_t status, const char *function,
                struct ddp_err *err)
{
    const int code = status == CUBLAS_STATUS_ALLOC_FAILED ? DDP_ENOMEM : DDP_EUNAVAIL;
    return ddp_fail(err, code, "%s: %s", function, l->api.cublasGetStatusString(status));
}

static int open_handle(struct ddp_layers_context *c, struct library *l, struct ddp_err *err)
{
    const struct ddp_cublas *api = &l->api;
    int version = 0;
    cublasStatus_t rc = api->cublasCreate_v2(&l->handle);
    if (rc != CUBLAS_STATUS_SUCCESS)
        return fail(l, rc, "cublasCreate", err);
    rc = api->cublasSetStream_v2(l->handle, ddp_cuda_layers_stream(c));
    if (rc != CUBLAS_STATUS_SUCCESS)
        return fail(l, rc, "cublasSetStream", err);
    rc = api->cublasSetWorkspace_v2(l->handle, l->workspace, WORKSPACE_BYTES);
    if (rc != CUBLAS_STATUS_SUCCESS)
        return fail(l, rc, "cublasSetWorkspace", err);
    rc = api->cublasSetMathMode(l->handle,
                                c->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH);
    if (rc != CUBLAS_STATUS_SUCCESS)
        return fail(l, rc, "cublasSetMathMode", err);
    if (api->cublasGetVersion_v2(l->handle, &version) == CUBLAS_STATUS_SUCCESS)
        ddp_cuda_library_note("cuBLAS %d.%d.%d", version / 10000, version / 100 % 100,
                              version % 100);
    return 0;
}

static int open_cublas(struct ddp_layers_context *c, struct ddp_err *err)
{
    void *functions[DDP_COUNT_OF(names)];
    struct library *l;
    DDP_TRY(DDP_NEW(&l, 1, err));
    c->library = l;
    DDP_TRY(ddp_cuda_library_open(&cublas, functions, err));
    memcpy(&l->api, functions, sizeof functions); /* the members have the order of the names */
    l->workspace = c->device->alloc(WORKSPACE_BYTES);
    if (l->workspace == NULL)
        return ddp_fail(err, DDP_ENOMEM, "the GPU has no memory for cuBLAS's workspace");
    return open_handle(c, l, err);
}

static void cuda_close(struct ddp_layers_context *c)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    if (c == NULL)
        return;
    struct library *l = library_of(c);
    (void)!c->device->streams->wait(c->stream, &ignored);
    if (l != NULL && l->handle != NULL)
        (void)l->api.cublasDestroy_v2(l->handle);
    if (l != NULL && l->workspace != NULL)
        c->device->free(l->workspace, WORKSPACE_BYTES);
    free(l);
    ddp_layers_stream_close(c);
}

static int cuda_open(const struct ddp_layers_setup *setup, struct ddp_layers_context **out,
                     struct ddp_err *err)
{
    struct ddp_layers_context *c = NULL;
    const struct ddp_cuda_module *module;
    struct ddp_err why = DDP_ERR_INIT;
    int rc;
    static_assert(sizeof(struct ddp_cublas) == DDP_COUNT_OF(names) * sizeof(void *), "see memcpy");
    DDP_TRY(setup->device->probe(err));
    DDP_TRY(ddp_cuda_module_load(&module, err));
    DDP_TRY(ddp_layers_stream_open(setup, module->layers, &c, err));
    c->gemm = gemm;
    DDP_TRY_GOTO(open_cublas(c, err), err_context);
    if (setup->conv != DDP_CONV_UNFOLD) {
        rc = ddp_cuda_cudnn_open(c, setup->conv == DDP_CONV_AUTO, &why);
        /* With conv auto it is not an error that cuDNN cannot be used. */
        if (rc != 0 && (setup->conv == DDP_CONV_LIBRARY || rc != DDP_EUNAVAIL)) {
            *err = why;
            goto err_context;
        }
    }
    *out = c;
    return 0;

err_context:
    cuda_close(c);
    return rc;
}

const struct ddp_layers ddp_layers_cuda = {
    .device = "cuda",
    .library = ddp_cuda_library_text,
    .open = cuda_open,
    .close = cuda_close,
    .ops = &ddp_layers_stream_ops,
};
