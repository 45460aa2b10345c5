/* Convolutions by cuDNN 9's legacy C API, in NCHW and f32.
 *
 * cuDNN's heuristics propose algorithms. This file uses only algorithms that give the same bits
 * each time. Unless TF32 is requested, the algorithms run with f32 multiply-add (CUDNN_FMA_MATH).
 * With --conv auto, a convolution that cuDNN cannot compute in this way is computed as a product of
 * unfolded images (layers_stream.c). The list of libraries in the results then says so
 * (ddp_cuda_library_note). Source: cuDNN 9 API reference, "cudnn_cnn". */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "model/layers_cuda_impl.inc.h"

#if DDP_CUDNN /* set by the build */
#include <cudnn.h>

#define CUDNN_FUNCTIONS(X)                                                                         \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetCudartVersion)                                                                       \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnCreateTensorDescriptor)                                                                 \
    X(cudnnSetTensor4dDescriptor)                                                                  \
    X(cudnnDestroyTensorDescriptor)                                                                \
    X(cudnnCreateFilterDescriptor)                                                                 \
    X(cudnnSetFilter4dDescriptor)                                                                  \
    X(cudnnDestroyFilterDescriptor)                                                                \
    X(cudnnCreateConvolutionDescriptor)                                                            \
    X(cudnnSetConvolution2dDescriptor)                                                             \
    X(cudnnSetConvolutionMathType)                                                                 \
    X(cudnnDestroyConvolutionDescriptor)                                                           \
    X(cudnnGetConvolutionForwardAlgorithm_v7)                                                      \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                               \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                                 \
    X(cudnnGetConvolutionForwardWorkspaceSize)                                                     \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize)                                              \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize)                                                \
    X(cudnnConvolutionForward)                                                                     \
    X(cudnnConvolutionBackwardFilter)                                                              \
    X(cudnnConvolutionBackwardData)

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define NAME(name) #name,
/* Algorithms that need a larger workspace are not used. */
#define WORKSPACE_MOST ((size_t)256 << 20)
#define ALGORITHMS     8

struct state {
    struct {
        CUDNN_FUNCTIONS(DDP_CUDA_MEMBER)
    } api;
    cudnnHandle_t handle;
    void *workspace; /* shared by all plans, which run one after the other on one stream */
    size_t workspace_bytes;
    bool optional; /* conv auto: a convolution without a plan is unfolded */
};

enum { FORWARD, WEIGHTS, DATA, OPERATIONS };

struct ddp_conv_plan {
    struct state *state;
    struct ddp_conv_shape shape;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv[OPERATIONS]; /* each operation has its own mathType */
    int algorithm[OPERATIONS]; /* a cudnnConvolution...Algo_t of the operation */
    bool chosen;               /* `algorithm` is set */
    int n; /* number of images that the descriptors and algorithms are set for; 0: none */
};

static const char *const names[] = {CUDNN_FUNCTIONS(NAME)};
static const struct ddp_cuda_library cudnn = {
    .what = "cuDNN",
    .soname = "libcudnn.so." TEXT(CUDNN_MAJOR),
    .package = "cudnn",
    .key = DDP_CONF_CUDNN_LIB,
    .names = names,
    .count = DDP_COUNT_OF(names),
};

static int fail(const struct state *s, cudnnStatus_t status, const char *what, struct ddp_err *err)
{
    return ddp_fail(err, DDP_EUNAVAIL, "%s: %s", what, s->api.cudnnGetErrorString(status));
}

/* Records a failure in the stream. Returns whether the call succeeded. */
static bool passed(struct ddp_layers_context *c, const struct state *s, cudnnStatus_t status)
{
    if (status != CUDNN_STATUS_SUCCESS)
        ddp_cuda_layers_note(c, s->api.cudnnGetErrorString(status));
    return status == CUDNN_STATUS_SUCCESS;
}

/* An algorithm that the heuristics propose. */
struct proposal {
    int algorithm;
    cudnnStatus_t status;
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
};

#define COPY_PROPOSALS(found, count, out)                                                          \
    for (int i_ = 0; i_ < (count); i_++)                                                           \
        (out)[i_] = (struct proposal)                                                              \
        {                                                                                          \
            (int)(found)[i_].algo, (found)[i_].status, (found)[i_].determinism,                    \
                (found)[i_].mathType                                                               \
        }

/* Stores the proposals for an operation in out [ALGORITHMS], the fastest first. */
static cudnnStatus_t propose(const struct ddp_conv_plan *p, int op, struct proposal *out,
                             int *count)
{
    const struct state *s = p->state;
    cudnnConvolutionFwdAlgoPerf_t forward[ALGORITHMS];
    cudnnConvolutionBwdFilterAlgoPerf_t weights[ALGORITHMS];
    cudnnConvolutionBwdDataAlgoPerf_t data[ALGORITHMS];
    cudnnStatus_t rc;
    *count = 0;
    switch (op) {
    case FORWARD:
        rc = s->api.cudnnGetConvolutionForwardAlgorithm_v7(s->handle, p->x, p->w, p->conv[op], p->y,
                                                           ALGORITHMS, count, forward);
        COPY_PROPOSALS(forward, *count, out);
        return rc;
    case WEIGHTS:
        rc = s->api.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            s->handle, p->x, p->y, p->conv[op], p->w, ALGORITHMS, count, weights);
        COPY_PROPOSALS(weights, *count, out);
        return rc;
    default:
        rc = s->api.cudnnGetConvolutionBackwardDataAlgorithm_v7(s->handle, p->w, p->y, p->conv[op],
                                                                p->x, ALGORITHMS, count, data);
        COPY_PROPOSALS(data, *count, out);
        return rc;
    }
}

/* Returns the workspace that an algorithm needs with the arithmetic of the operation's descriptor.
 * Fails if the algorithm does not support the convolution with this arithmetic. */
static cudnnStatus_t workspace_of(const struct ddp_conv_plan *p, int op, int algorithm,
                                  size_t *bytes)
{
    const struct state *s = p->state;
    switch (op) {
    case FORWARD:
        return s->api.cudnnGetConvolutionForwardWorkspaceSize(
            s->handle, p->x, p->w, p->conv[op], p->y, (cudnnConvolutionFwdAlgo_t)algorithm, bytes);
    case WEIGHTS:
        return s->api.cudnnGetConvolutionBackwardFilterWorkspaceSize(
            s->handle, p->x, p->y, p->conv[op], p->w, (cudnnConvolutionBwdFilterAlgo_t)algorithm,
            bytes);
    default:
        return s->api.cudnnGetConvolutionBackwardDataWorkspaceSize(
            s->handle, p->w, p->y, p->conv[op], p->x, (cudnnConvolutionBwdDataAlgo_t)algorithm,
            bytes);
    }
}

/* Tries to use a proposal with arithmetic `math` and at most `limit` bytes of workspace. Returns
 * whether the proposal can be used. */
static bool take(struct ddp_conv_plan *p, int op, const struct proposal *proposal,
                 cudnnMathType_t math, size_t limit, size_t *bytes)
{
    if (proposal->status != CUDNN_STATUS_SUCCESS || proposal->determinism != CUDNN_DETERMINISTIC ||
        p->state->api.cudnnSetConvolutionMathType(p->conv[op], math) != CUDNN_STATUS_SUCCESS ||
        workspace_of(p, op, proposal->algorithm, bytes) != CUDNN_STATUS_SUCCESS || *bytes > limit)
        return false;
    p->algorithm[op] = proposal->algorithm;
    return true;
}

/* Chooses the algorithm of an operation. With TF32, the first loop tries all proposals that do not
 * convert their inputs to f16. Without TF32, the first loop tries the proposals with
 * CUDNN_FMA_MATH. The heuristics may name another arithmetic for an algorithm that also supports
 * CUDNN_FMA_MATH. Therefore the second loop tries the other proposals with CUDNN_FMA_MATH. */
static cudnnStatus_t choose_one(const struct ddp_layers_context *c, struct ddp_conv_plan *p, int op,
                                size_t limit, size_t *bytes)
{
    struct proposal found[ALGORITHMS];
    int count;
    cudnnStatus_t rc = p->state->api.cudnnSetConvolutionMathType(
        p->conv[op], c->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = propose(p, op, found, &count);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    for (int i = 0; i < count; i++)
        if (c->tf32 ? found[i].math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION &&
                          take(p, op, &found[i], found[i].math, limit, bytes)
                    : found[i].math == CUDNN_FMA_MATH &&
                          take(p, op, &found[i], CUDNN_FMA_MATH, limit, bytes))
            return CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < count; i++)
        if (found[i].math != CUDNN_FMA_MATH && take(p, op, &found[i], CUDNN_FMA_MATH, limit, bytes))
            return CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_NOT_SUPPORTED;
}

/* Returns whether the algorithms of the plan can also run with the number of images that the
 * descriptors are now set for. */
static bool still_usable(const struct ddp_conv_plan *p, size_t limit)
{
    size_t bytes;
    for (int op = 0; op < OPERATIONS; op++)
        if (workspace_of(p, op, p->algorithm[op], &bytes) != CUDNN_STATUS_SUCCESS || bytes > limit)
            return false;
    return true;
}

/* Chooses the algorithms for the plan's n images, with at most `limit` bytes of workspace. *bytes
 * receives the largest workspace that a newly chosen algorithm needs. If the earlier algorithms are
 * still usable, keeps them, and *bytes is 0. */
static cudnnStatus_t choose(const struct ddp_layers_context *c, struct ddp_conv_plan *p,
                            size_t limit, size_t *bytes)
{
    cudnnStatus_t rc = CUDNN_STATUS_SUCCESS;
    *bytes = 0;
    if (p->chosen && still_usable(p, limit))
        return rc;
    for (int op = 0; op < OPERATIONS && rc == CUDNN_STATUS_SUCCESS; op++) {
        size_t need = 0;
        rc = choose_one(c, p, op, limit, &need);
        *bytes = DDP_MAX(*bytes, need);
    }
    p->chosen = rc == CUDNN_STATUS_SUCCESS;
    return rc;
}

/* Sets the descriptors and algorithms for n images, unless they are set already. */
static cudnnStatus_t set_images(const struct ddp_layers_context *c, struct ddp_conv_plan *p, int n,
                                size_t limit, size_t *bytes)
{
    const struct state *s = p->state;
    const struct ddp_conv_shape *h = &p->shape;
    *bytes = 0;
    if (p->n == n)
        return CUDNN_STATUS_SUCCESS;
    p->n = 0;
    cudnnStatus_t rc = s->api.cudnnSetTensor4dDescriptor(p->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                                         n, h->in_c, h->in_h, h->in_w);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = s->api.cudnnSetTensor4dDescriptor(p->y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n,
                                               h->out_c, ddp_conv_out_h(h), ddp_conv_out_w(h));
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = choose(c, p, limit, bytes);
    if (rc == CUDNN_STATUS_SUCCESS)
        p->n = n;
    return rc;
}

static void free_plan(struct ddp_conv_plan *p)
{
    const struct state *s = p->state;
    for (int op = 0; op < OPERATIONS; op++)
        if (p->conv[op] != NULL)
            (void)s->api.cudnnDestroyConvolutionDescriptor(p->conv[op]);
    if (p->w != NULL)
        (void)s->api.cudnnDestroyFilterDescriptor(p->w);
    if (p->y != NULL)
        (void)s->api.cudnnDestroyTensorDescriptor(p->y);
    if (p->x != NULL)
        (void)s->api.cudnnDestroyTensorDescriptor(p->x);
    free(p);
}

static cudnnStatus_t describe(struct ddp_conv_plan *p)
{
    const struct state *s = p->state;
    const struct ddp_conv_shape *h = &p->shape;
    cudnnStatus_t rc = s->api.cudnnCreateTensorDescriptor(&p->x);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = s->api.cudnnCreateTensorDescriptor(&p->y);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = s->api.cudnnCreateFilterDescriptor(&p->w);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = s->api.cudnnSetFilter4dDescriptor(p->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, h->out_c,
                                               h->in_c, h->k, h->k);
    for (int op = 0; op < OPERATIONS && rc == CUDNN_STATUS_SUCCESS; op++) {
        rc = s->api.cudnnCreateConvolutionDescriptor(&p->conv[op]);
        if (rc == CUDNN_STATUS_SUCCESS)
            rc = s->api.cudnnSetConvolution2dDescriptor(p->conv[op], h->pad, h->pad, h->stride,
                                                        h->stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                                        CUDNN_DATA_FLOAT);
    }
    return rc;
}

/* Enlarges the workspace to `bytes` if necessary. Called before any convolution runs. */
static int grow(struct ddp_layers_context *c, struct state *s, size_t bytes, struct ddp_err *err)
{
    if (bytes <= s->workspace_bytes)
        return 0;
    if (s->workspace != NULL)
        c->device->free(s->workspace, s->workspace_bytes);
    s->workspace = c->device->alloc(bytes);
    s->workspace_bytes = s->workspace != NULL ? bytes : 0;
    return s->workspace != NULL
               ? 0
               : ddp_fail(err, DDP_ENOMEM,
                          "the GPU has no memory for %zu bytes of cuDNN's workspace", bytes);
}

static int plan(struct ddp_layers_context *c, const struct ddp_conv_shape *shape,
                struct ddp_conv_plan **out, struct ddp_err *err)
{
    struct state *s = c->conv_state;
    size_t bytes = 0;
    struct ddp_conv_plan *p;
    DDP_TRY(DDP_NEW(&p, 1, err));
    p->state = s;
    p->shape = *shape;
    cudnnStatus_t rc = describe(p);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = set_images(c, p, c->batch, WORKSPACE_MOST, &bytes);
    if (rc != CUDNN_STATUS_SUCCESS && rc != CUDNN_STATUS_ALLOC_FAILED && s->optional) {
        ddp_cuda_library_note("some convolutions unfolded: %s", s->api.cudnnGetErrorString(rc));
        free_plan(p);
        *out = NULL;
        return 0;
    }
    const int code = rc != CUDNN_STATUS_SUCCESS ? fail(s, rc, "cannot set up a convolution", err)
                                                : grow(c, s, bytes, err);
    if (code != 0) {
        free_plan(p);
        return code;
    }
    *out = p;
    return 0;
}

/* Prepares the plan for n images. If that is impossible, records the failure and returns false. */
static bool ready(struct ddp_layers_context *c, struct ddp_conv_plan *p, int n)
{
    size_t unused;
    return passed(c, p->state, set_images(c, p, n, p->state->workspace_bytes, &unused));
}

static void forward(struct ddp_layers_context *c, struct ddp_conv_plan *p, int n, const float *x,
                    const float *w, float *y)
{
    const struct state *s = p->state;
    const float one = 1.0f, zero = 0.0f;
    if (ready(c, p, n))
        passed(c, s,
               s->api.cudnnConvolutionForward(s->handle, &one, p->x, x, p->w, w, p->conv[FORWARD],
                                              (cudnnConvolutionFwdAlgo_t)p->algorithm[FORWARD],
                                              s->workspace, s->workspace_bytes, &zero, p->y, y));
}

static void backward_weights(struct ddp_layers_context *c, struct ddp_conv_plan *p, int n,
                             const float *x, const float *dy, float *dw)
{
    const struct state *s = p->state;
    const float one = 1.0f, zero = 0.0f;
    if (ready(c, p, n))
        passed(c, s,
               s->api.cudnnConvolutionBackwardFilter(
                   s->handle, &one, p->x, x, p->y, dy, p->conv[WEIGHTS],
                   (cudnnConvolutionBwdFilterAlgo_t)p->algorithm[WEIGHTS], s->workspace,
                   s->workspace_bytes, &zero, p->w, dw));
}

static void backward_data(struct ddp_layers_context *c, struct ddp_conv_plan *p, int n,
                          const float *w, const float *dy, float *dx)
{
    const struct state *s = p->state;
    const float one = 1.0f, zero = 0.0f;
    if (ready(c, p, n))
        passed(
            c, s,
            s->api.cudnnConvolutionBackwardData(s->handle, &one, p->w, w, p->y, dy, p->conv[DATA],
                                                (cudnnConvolutionBwdDataAlgo_t)p->algorithm[DATA],
                                                s->workspace, s->workspace_bytes, &zero, p->x, dx));
}

static void close_library(struct ddp_layers_context *c)
{
    struct state *s = c->conv_state;
    if (s == NULL)
        return;
    if (s->handle != NULL)
        (void)s->api.cudnnDestroy(s->handle);
    if (s->workspace != NULL)
        c->device->free(s->workspace, s->workspace_bytes);
    free(s);
    c->conv_state = NULL;
}

static const struct ddp_conv_library convolutions = {
    .plan = plan,
    .free_plan = free_plan,
    .forward = forward,
    .backward_weights = backward_weights,
    .backward_data = backward_data,
    .close = close_library,
};

static int check_version(const struct state *s, struct ddp_err *err)
{
    const int major = (int)(s->api.cudnnGetCudartVersion() / 1000);
    if (major == CUDART_VERSION / 1000)
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "cuDNN is for CUDA %d, this build for CUDA %d", major,
             CUDART_VERSION / 1000);
    return ddp_hint(err, "install the cuDNN for CUDA %d, or name it: DDPBENCH_CUDNN_LIB=FILE",
                    CUDART_VERSION / 1000);
}

static int create_handle(struct ddp_layers_context *c, struct state *s, struct ddp_err *err)
{
    DDP_TRY(check_version(s, err));
    cudnnStatus_t status = s->api.cudnnCreate(&s->handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = s->api.cudnnSetStream(s->handle, ddp_cuda_layers_stream(c));
    return status == CUDNN_STATUS_SUCCESS ? 0 : fail(s, status, "cudnnCreate", err);
}

int ddp_cuda_cudnn_open(struct ddp_layers_context *c, bool optional, struct ddp_err *err)
{
    void *functions[DDP_COUNT_OF(names)];
    struct state *s;
    int rc;
    static_assert(sizeof s->api == sizeof functions, "see memcpy");
    DDP_TRY(DDP_NEW(&s, 1, err));
    s->optional = optional;
    c->conv_state = s;
    DDP_TRY_GOTO(ddp_cuda_library_open(&cudnn, functions, err), err_state);
    memcpy(&s->api, functions, sizeof functions); /* the members have the order of the names */
    rc = create_handle(c, s, err);
    if (rc != 0) {
        if (optional)
            ddp_cuda_library_note("no cuDNN: %s", err->text);
        goto err_state;
    }
    const int version = (int)s->api.cudnnGetVersion(); /* cuDNN 9: major * 10000 + minor * 100 */
    ddp_cuda_library_note("cuDNN %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    c->conv = &convolutions;
    return 0;

err_state:
    close_library(c);
    return rc;
}

#else

int ddp_cuda_cudnn_open(struct ddp_layers_context *c, bool optional, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUNAVAIL, "not built in: this ddpbench was built without cuDNN's header");
    return ddp_hint(err, "install cuDNN's headers and build again, or use --conv im2col");
}

#endif
