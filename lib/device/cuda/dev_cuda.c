/* NVIDIA GPUs as a device: probing, device memory, operations that wait for their result, streams,
 * events and graphs.
 *
 * The CUDA runtime is linked into the module ddpbench-cuda.so. At its first call, the runtime opens
 * the driver. If this call fails, cuda_probe reports "no usable GPU". */
#include <ctype.h>
#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/dev_cuda.h"

struct ddp_event {
    cudaEvent_t handle;
};

struct ddp_graph {
    cudaGraphExec_t handle;
};

void ddp_cuda_note(struct ddp_stream *s, int code, const char *call)
{
    if (code == cudaSuccess)
        return;
    (void)cudaGetLastError(); /* clear CUDA's last error; s->failed keeps the first one */
    if (s->failed != 0)
        return;
    s->failed = code;
    s->call = call;
}

int ddp_cuda_fail(struct ddp_err *err, int code, const char *call)
{
    const bool memory = code == cudaErrorMemoryAllocation;
    (void)cudaGetLastError(); /* clear the error, so that no later call reports it */
    return ddp_fail(err, memory ? DDP_ENOMEM : DDP_EUNAVAIL, "%s: %s (CUDA error %d)", call,
                    cudaGetErrorString((cudaError_t)code), code);
}

/* Major number of the lowest compute capability for which the kernels are compiled. */
#define CAPABILITY_LEAST 8

/* Fails if GPU `index` is too old for the kernels. */
static int check_capability(int index, struct ddp_err *err)
{
    int major = 0, minor = 0;
    cudaError_t rc = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (rc == cudaSuccess)
        rc = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
    if (rc != cudaSuccess)
        return ddp_cuda_fail(err, rc, "cudaDeviceGetAttribute");
    if (major >= CAPABILITY_LEAST)
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: GPU %d has compute capability %d.%d", index, major,
             minor);
    return ddp_hint(err, "ddpbench needs %d.0 (A100) or later; CUDA_VISIBLE_DEVICES chooses GPUs",
                    CAPABILITY_LEAST);
}

static int cuda_probe(struct ddp_err *err)
{
    int count = 0;
    const cudaError_t rc = cudaGetDeviceCount(&count);
    if (rc != cudaSuccess) {
        (void)cudaGetLastError(); /* clear the error, so that no later call reports it */
        ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: CUDA error %d", (int)rc);
        return ddp_hint(err, "%s; run nvidia-smi to see the GPUs of this machine",
                        cudaGetErrorString(rc));
    }
    if (count == 0) {
        ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: the driver shows none");
        return ddp_hint(err, "nvidia-smi lists the GPUs; CUDA_VISIBLE_DEVICES may hide them");
    }
    /* Local rank r uses GPU r, so probing fails if any GPU is too old. */
    for (int i = 0; i < count; i++)
        DDP_TRY(check_capability(i, err));
    return 0;
}

static int cuda_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess)
        return count;
    (void)cudaGetLastError();
    return 0;
}

static int cuda_select(int index, struct ddp_err *err)
{
    DDP_TRY(cuda_probe(err));
    const int count = cuda_count();
    if (index < 0 || index >= count)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "there is no GPU %d; number of GPUs that this process sees: %d", index,
                        count);
    const cudaError_t rc = cudaSetDevice(index);
    return rc == cudaSuccess ? 0 : ddp_cuda_fail(err, rc, "cudaSetDevice");
}

/* Formats CUDA's version number: 13000 becomes "13.0". */
static int version_text(char *out, size_t bytes, int version)
{
    return snprintf(out, bytes, "%d.%d", version / 1000, version % 1000 / 10);
}

/* Reads the processors near the GPU at `bus`. CUDA writes the hexadecimal digits of the bus in
 * upper case, but the folder names of Linux have lower case. */
static void read_cpus(const char *bus, char *out, size_t out_bytes)
{
    char path[80], lower[16] = "";
    for (size_t i = 0; i + 1 < sizeof lower && bus[i] != '\0'; i++)
        lower[i] = (char)tolower((unsigned char)bus[i]);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpulist", lower);
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(out, (int)out_bytes, file) == NULL)
        out[0] = '\0';
    if (file != NULL)
        (void)fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

static int cuda_info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    struct cudaDeviceProp p;
    struct ddp_device_info info = {
        .memory_bytes = -1, .multiprocessors = -1, .l2_bytes = -1, .capability = -1};
    int runtime = 0, driver = 0;
    char a[16], b[16];
    DDP_TRY(cuda_probe(err));
    const cudaError_t rc = cudaGetDeviceProperties(&p, index);
    if (rc != cudaSuccess)
        return ddp_cuda_fail(err, rc, "cudaGetDeviceProperties");
    snprintf(info.name, sizeof info.name, "%.63s", p.name);
    if (cudaDeviceGetPCIBusId(info.bus, sizeof info.bus, index) != cudaSuccess)
        info.bus[0] = '\0';
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess &&
        cudaDriverGetVersion(&driver) == cudaSuccess) {
        version_text(a, sizeof a, runtime);
        version_text(b, sizeof b, driver);
        snprintf(info.runtime, sizeof info.runtime, "CUDA %s, driver for CUDA %s", a, b);
    }
    read_cpus(info.bus, info.cpus, sizeof info.cpus);
    info.memory_bytes = (int64_t)p.totalGlobalMem;
    info.multiprocessors = p.multiProcessorCount;
    info.l2_bytes = p.l2CacheSize;
    info.capability = 10 * p.major + p.minor;
    *out = info;
    return 0;
}

/* cudaMalloc aligns memory to at least 256 bytes. The interface requires 64. */
static void *cuda_alloc(size_t bytes)
{
    void *ptr = NULL;
    if (cudaMalloc(&ptr, bytes ? bytes : 1) == cudaSuccess)
        return ptr;
    (void)cudaGetLastError();
    return NULL;
}

static void cuda_free(void *ptr, size_t bytes)
{
    (void)bytes;
    if (ptr != NULL)
        (void)cudaFree(ptr);
}

/* cuda_copy, cuda_fill and cuda_reduce cannot return an error. This variable keeps their first
 * error. The next call of query, wait or capture_begin in the same thread returns this error.
 * capture_end returns it only if the capture fails. Each thread has its own variable, as each
 * thread has its own last error in CUDA. */
static _Thread_local struct ddp_stream unreported;

/* Waits for the default stream, because cudaMemcpy may return before a copy from pageable memory,
 * or a copy within a device, is complete. Our streams do not wait for the default stream, so they
 * would not wait for such a copy. Keeps the error of *now in `unreported`, unless an earlier error
 * is there. */
static void finish_default(struct ddp_stream *now)
{
    ddp_cuda_note(now, cudaStreamSynchronize(NULL), "cudaStreamSynchronize");
    if (unreported.failed == 0)
        unreported = *now;
}

static void cuda_copy(void *dst, const void *src, size_t bytes)
{
    struct ddp_stream now = {0};
    ddp_cuda_note(&now, cudaMemcpy(dst, src, bytes, cudaMemcpyDefault), "cudaMemcpy");
    finish_default(&now);
}

static void cuda_fill(void *dst, unsigned char byte, size_t bytes)
{
    struct ddp_stream now = {0};
    ddp_cuda_note(&now, cudaMemset(dst, byte, bytes), "cudaMemset");
    finish_default(&now);
}

static void cuda_reduce(const struct ddp_reduce *r)
{
    struct ddp_stream now = {.processors = 1}; /* the default stream */
    ddp_cuda_kernels.reduce(&now, r);
    finish_default(&now);
}

static int stream_error(const struct ddp_stream *s, struct ddp_err *err)
{
    const struct ddp_stream first = unreported.failed != 0 ? unreported : *s;
    unreported.failed = 0;
    return first.failed == 0 ? 0 : ddp_cuda_fail(err, first.failed, first.call);
}

static int stream_create(struct ddp_stream **out, struct ddp_err *err)
{
    struct ddp_stream *s;
    DDP_TRY(DDP_NEW(&s, 1, err));
    /* A non-blocking stream does not wait for the default stream, which libraries may use for work
     * of their own. */
    cudaError_t rc = cudaStreamCreateWithFlags(&s->handle, cudaStreamNonBlocking);
    if (rc == cudaSuccess)
        rc = cudaGetDevice(&s->device);
    if (rc == cudaSuccess)
        rc = cudaDeviceGetAttribute(&s->processors, cudaDevAttrMultiProcessorCount, s->device);
    if (rc != cudaSuccess) {
        if (s->handle != NULL)
            (void)cudaStreamDestroy(s->handle);
        free(s);
        return ddp_cuda_fail(err, rc, "cudaStreamCreate");
    }
    *out = s;
    return 0;
}

static int stream_select(struct ddp_stream *s, struct ddp_err *err)
{
    const cudaError_t rc = cudaSetDevice(s->device);
    return rc == cudaSuccess ? 0 : ddp_cuda_fail(err, rc, "cudaSetDevice");
}

static int stream_query(struct ddp_stream *s, struct ddp_err *err)
{
    DDP_TRY(stream_error(s, err));
    const cudaError_t rc = cudaStreamQuery(s->handle);
    if (rc == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return 0;
    }
    ddp_cuda_note(s, rc, "cudaStreamQuery");
    return rc == cudaSuccess ? 1 : stream_error(s, err);
}

static int stream_wait(struct ddp_stream *s, struct ddp_err *err)
{
    ddp_cuda_note(s, cudaStreamSynchronize(s->handle), "cudaStreamSynchronize");
    return stream_error(s, err);
}

static void stream_destroy(struct ddp_stream *s)
{
    if (s == NULL)
        return;
    (void)cudaStreamSynchronize(s->handle);
    (void)cudaStreamDestroy(s->handle);
    free(s);
}

static void *stream_native(struct ddp_stream *s)
{
    return s->handle;
}

static void stream_copy(struct ddp_stream *s, void *dst, const void *src, size_t bytes)
{
    if (bytes != 0)
        ddp_cuda_note(s, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, s->handle),
                      "cudaMemcpyAsync");
}

static void stream_fill(struct ddp_stream *s, void *dst, unsigned char byte, size_t bytes)
{
    if (bytes != 0)
        ddp_cuda_note(s, cudaMemsetAsync(dst, byte, bytes, s->handle), "cudaMemsetAsync");
}

static void *host_alloc(size_t bytes)
{
    void *ptr = NULL;
    if (cudaHostAlloc(&ptr, bytes ? bytes : 1, cudaHostAllocDefault) == cudaSuccess)
        return ptr;
    (void)cudaGetLastError();
    return NULL;
}

static void host_free(void *ptr, size_t bytes)
{
    (void)bytes;
    if (ptr != NULL)
        (void)cudaFreeHost(ptr);
}

static int event_create(struct ddp_event **out, struct ddp_err *err)
{
    struct ddp_event *e;
    DDP_TRY(DDP_NEW(&e, 1, err));
    const cudaError_t rc = cudaEventCreate(&e->handle);
    if (rc != cudaSuccess) {
        free(e);
        return ddp_cuda_fail(err, rc, "cudaEventCreate");
    }
    *out = e;
    return 0;
}

static void event_destroy(struct ddp_event *e)
{
    if (e == NULL)
        return;
    (void)cudaEventDestroy(e->handle);
    free(e);
}

static void event_record(struct ddp_event *e, struct ddp_stream *s)
{
    ddp_cuda_note(s, cudaEventRecord(e->handle, s->handle), "cudaEventRecord");
}

static void event_await(struct ddp_stream *s, struct ddp_event *e)
{
    ddp_cuda_note(s, cudaStreamWaitEvent(s->handle, e->handle, 0), "cudaStreamWaitEvent");
}

static int event_elapsed(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err)
{
    float ms = 0;
    cudaError_t rc = cudaEventSynchronize(from->handle);
    if (rc == cudaSuccess)
        rc = cudaEventSynchronize(to->handle);
    if (rc == cudaSuccess)
        rc = cudaEventElapsedTime(&ms, from->handle, to->handle);
    if (rc != cudaSuccess)
        return ddp_cuda_fail(err, rc, "cudaEventElapsedTime");
    *ns = (double)ms * 1e6;
    return 0;
}

/* A thread of the CUDA runtime runs this function when the stream reaches it. The stream continues
 * when the function returns. */
static void CUDART_CB wait_while_held(void *arg)
{
    const struct ddp_stream *s = arg;
    while (__atomic_load_n(&s->held, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
}

static void stream_hold(struct ddp_stream *s)
{
    __atomic_store_n(&s->held, 1, __ATOMIC_RELEASE);
    ddp_cuda_note(s, cudaLaunchHostFunc(s->handle, wait_while_held, s), "cudaLaunchHostFunc");
}

static void stream_release(struct ddp_stream *s)
{
    __atomic_store_n(&s->held, 0, __ATOMIC_RELEASE);
}

/* Uses mode ThreadLocal, because mode Global would forbid other threads to allocate memory while
 * this thread captures. */
static int capture_begin(struct ddp_stream *s, struct ddp_err *err)
{
    DDP_TRY(stream_error(s, err));
    const cudaError_t rc = cudaStreamBeginCapture(s->handle, cudaStreamCaptureModeThreadLocal);
    return rc == cudaSuccess ? 0 : ddp_cuda_fail(err, rc, "cudaStreamBeginCapture");
}

static int capture_end(struct ddp_stream *s, struct ddp_graph **out, struct ddp_err *err)
{
    cudaGraph_t graph = NULL;
    struct ddp_graph *g = ddp_calloc(1, sizeof *g);
    cudaError_t rc = cudaStreamEndCapture(s->handle, &graph);
    if (rc == cudaSuccess && g != NULL && s->failed == 0)
        rc = cudaGraphInstantiate(&g->handle, graph, 0);
    if (graph != NULL)
        (void)cudaGraphDestroy(graph);
    if (rc == cudaSuccess && g != NULL && s->failed == 0) {
        *out = g;
        return 0;
    }
    (void)cudaGetLastError();
    const bool memory = g == NULL;
    free(g);
    DDP_TRY(stream_error(s, err)); /* if the stream has an error, report that error as the cause */
    if (memory)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a graph");
    return ddp_cuda_fail(err, rc, "capturing a graph");
}

static void graph_launch(struct ddp_graph *g, struct ddp_stream *s)
{
    ddp_cuda_note(s, cudaGraphLaunch(g->handle, s->handle), "cudaGraphLaunch");
}

static void graph_destroy(struct ddp_graph *g)
{
    if (g == NULL)
        return;
    (void)cudaGraphExecDestroy(g->handle);
    free(g);
}

const struct ddp_stream_ops ddp_cuda_streams = {
    .create = stream_create,
    .select = stream_select,
    .destroy = stream_destroy,
    .query = stream_query,
    .wait = stream_wait,
    .native = stream_native,
    .copy = stream_copy,
    .fill = stream_fill,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_await = event_await,
    .event_elapsed = event_elapsed,
    .hold = stream_hold,
    .release = stream_release,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};

const struct ddp_device ddp_dev_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs",
    .probe = cuda_probe,
    .count = cuda_count,
    .select = cuda_select,
    .info = cuda_info,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .copy_nt = cuda_copy,
    .fill = cuda_fill,
    .reduce = cuda_reduce,
    .streams = &ddp_cuda_streams,
    .stream_kernels = &ddp_cuda_kernels,
};
