/* Convolutions by cuDNN 9's legacy C API, in NCHW and f32.
 *
 * cuDNN's heuristics choose the algorithm. Only algorithms that give the same bits each time are
 * used. Each algorithm runs with the kind of arithmetic (mathType) that the heuristics name for it.
 * Unless TF32 is requested, this is f32 multiply-add. Source: cuDNN 9 API reference, "cudnn_cnn".
 */
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
};

enum { FORWARD, WEIGHTS, DATA, OPERATIONS };

struct ddp_conv_plan {
    struct state *state;
    struct ddp_conv_shape shape;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv[OPERATIONS]; /* each operation has its own mathType */
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdFilterAlgo_t weights;
    cudnnConvolutionBwdDataAlgo_t data;
    int n; /* number of images that the descriptors and algorithms are set for */
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

static bool exact(const struct ddp_layers_context *c, cudnnMathType_t math)
{
    return math == CUDNN_FMA_MATH || (c->tf32 && math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
}

/* Takes the first usable suggestion of the heuristics. found [count] begins with the algorithm that
 * is expected to be fastest. Sets `into` and the arithmetic of the operation. */
#define CHOOSE(c, plan, op, found, count, limit, into, rc)                                         \
    do {                                                                                           \
        int at_ = 0;                                                                               \
        while (at_ < (count) &&                                                                    \
               ((found)[at_].status != CUDNN_STATUS_SUCCESS || (found)[at_].memory > (limit) ||    \
                (found)[at_].determinism != CUDNN_DETERMINISTIC ||                                 \
                !exact(c, (found)[at_].mathType)))                                                 \
            at_++;                                                                                 \
        if (at_ == (count)) {                                                                      \
            (rc) = CUDNN_STATUS_NOT_SUPPORTED;                                                     \
            break;                                                                                 \
        }                                                                                          \
        (into) = (found)[at_].algo;                                                                \
        need = DDP_MAX(need, (found)[at_].memory);                                                 \
        (rc) = s->api.cudnnSetConvolutionMathType((plan)->conv[op], (found)[at_].mathType);        \
    } while (0)

/* Returns the kind of arithmetic to ask the heuristics for. */
static cudnnMathType_t asked(const struct ddp_layers_context *c)
{
    return c->tf32 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
}

/* Chooses the algorithms for the plan's n images, with at most `limit` bytes of workspace. *bytes
 * receives the largest workspace that a chosen algorithm needs. */
static cudnnStatus_t choose(struct ddp_layers_context *c, struct ddp_conv_plan *p, size_t limit,
                            size_t *bytes)
{
    struct state *s = p->state;
    cudnnConvolutionFwdAlgoPerf_t forward[ALGORITHMS];
    cudnnConvolutionBwdFilterAlgoPerf_t weights[ALGORITHMS];
    cudnnConvolutionBwdDataAlgoPerf_t data[ALGORITHMS];
    cudnnStatus_t rc = CUDNN_STATUS_SUCCESS;
    size_t need = 0;
    int count = 0;
    for (int op = 0; op < OPERATIONS && rc == CUDNN_STATUS_SUCCESS; op++)
        rc = s->api.cudnnSetConvolutionMathType(p->conv[op], asked(c));
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = s->api.cudnnGetConvolutionForwardAlgorithm_v7(s->handle, p->x, p->w, p->conv[FORWARD],
                                                           p->y, ALGORITHMS, &count, forward);
    if (rc == CUDNN_STATUS_SUCCESS)
        CHOOSE(c, p, FORWARD, forward, count, limit, p->forward, rc);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = s->api.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            s->handle, p->x, p->y, p->conv[WEIGHTS], p->w, ALGORITHMS, &count, weights);
    if (rc == CUDNN_STATUS_SUCCESS)
        CHOOSE(c, p, WEIGHTS, weights, count, limit, p->weights, rc);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = s->api.cudnnGetConvolutionBackwardDataAlgorithm_v7(
            s->handle, p->w, p->y, p->conv[DATA], p->x, ALGORITHMS, &count, data);
    if (rc == CUDNN_STATUS_SUCCESS)
        CHOOSE(c, p, DATA, data, count, limit, p->data, rc);
    *bytes = need;
    return rc;
}

/* Sets the descriptors and algorithms for n images, unless they are set already. */
static cudnnStatus_t set_images(struct ddp_layers_context *c, struct ddp_conv_plan *p, int n,
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
                                              p->forward, s->workspace, s->workspace_bytes, &zero,
                                              p->y, y));
}

static void backward_weights(struct ddp_layers_context *c, struct ddp_conv_plan *p, int n,
                             const float *x, const float *dy, float *dw)
{
    const struct state *s = p->state;
    const float one = 1.0f, zero = 0.0f;
    if (ready(c, p, n))
        passed(c, s,
               s->api.cudnnConvolutionBackwardFilter(s->handle, &one, p->x, x, p->y, dy,
                                                     p->conv[WEIGHTS], p->weights, s->workspace,
                                                     s->workspace_bytes, &zero, p->w, dw));
}

static void backward_data(struct ddp_layers_context *c, struct ddp_conv_plan *p, int n,
                          const float *w, const float *dy, float *dx)
{
    const struct state *s = p->state;
    const float one = 1.0f, zero = 0.0f;
    if (ready(c, p, n))
        passed(c, s,
               s->api.cudnnConvolutionBackwardData(s->handle, &one, p->w, w, p->y, dy,
                                                   p->conv[DATA], p->data, s->workspace,
                                                   s->workspace_bytes, &zero, p->x, dx));
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

int ddp_cuda_cudnn_open(struct ddp_layers_context *c, struct ddp_err *err)
{
    void *functions[DDP_COUNT_OF(names)];
    struct state *s;
    int rc;
    static_assert(sizeof s->api == sizeof functions, "see memcpy");
    DDP_TRY(DDP_NEW(&s, 1, err));
    c->conv_state = s;
    DDP_TRY_GOTO(ddp_cuda_library_open(&cudnn, functions, err), err_state);
    memcpy(&s->api, functions, sizeof functions); /* the members have the order of the names */
    cudnnStatus_t status = s->api.cudnnCreate(&s->handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = s->api.cudnnSetStream(s->handle, ddp_cuda_layers_stream(c));
    if (status != CUDNN_STATUS_SUCCESS) {
        rc = fail(s, status, "cudnnCreate", err);
        goto err_state;
    }
    const int version = (int)s->api.cudnnGetVersion(); /* cuDNN 9: major * 10000 + minor * 100 */
    ddp_cuda_library_note("cuDNN", version / 10000, version / 100 % 100, version % 100);
    c->conv = &convolutions;
    return 0;

err_state:
    close_library(c);
    return rc;
}

#else

int ddp_cuda_cudnn_open(struct ddp_layers_context *c, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUNAVAIL, "not built in: this ddpbench was built without cuDNN's header");
    return ddp_hint(err, "install cuDNN's headers and build again, or use --conv im2col");
}

#endif
