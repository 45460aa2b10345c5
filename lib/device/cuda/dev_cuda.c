/* NVIDIA GPUs as a device: probing, device memory, and the operations that wait for their result.
 *
 * The CUDA runtime is linked into the binary and opens the driver at its first call. Without a
 * driver, calls return error 35 (driver too old) and not 100 (no device). Therefore cuda_probe
 * reports every error as "no usable GPU". */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "device/cuda/dev_cuda.h"

extern const struct ddp_device ddp_dev_cuda; /* listed in device_list.h */

int ddp_cuda_fail(struct ddp_err *err, int code, const char *call)
{
    const bool memory = code == cudaErrorMemoryAllocation;
    return ddp_fail(err, memory ? DDP_ENOMEM : DDP_EUNAVAIL, "%s: %s (CUDA error %d)", call,
                    cudaGetErrorString((cudaError_t)code), code);
}

static int cuda_probe(struct ddp_err *err)
{
    int count = 0;
    const cudaError_t rc = cudaGetDeviceCount(&count);
    if (rc != cudaSuccess) {
        (void)cudaGetLastError(); /* clear the error, so that no later call reports it */
        ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: driver error %d", (int)rc);
        return ddp_hint(err, "%s; run nvidia-smi to see the GPUs of this machine",
                        cudaGetErrorString(rc));
    }
    if (count == 0) {
        ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: the driver shows none");
        return ddp_hint(err, "nvidia-smi lists the GPUs; CUDA_VISIBLE_DEVICES may hide them");
    }
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

static int cuda_info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    struct cudaDeviceProp p;
    struct ddp_device_info info = {.memory_bytes = -1, .multiprocessors = -1, .l2_bytes = -1};
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
    info.memory_bytes = (int64_t)p.totalGlobalMem;
    info.multiprocessors = p.multiProcessorCount;
    info.l2_bytes = p.l2CacheSize;
    *out = info;
    return 0;
}

/* cudaMalloc aligns to 256 bytes; the interface requires 64. */
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

/* cuda_copy, cuda_fill and cuda_reduce cannot return an error. If an error makes the GPU unusable
 * for this process, the next call that can fail reports it. cudaMemcpy may return before a copy
 * from pageable memory, or a copy within a device, is complete. Other streams do not wait for such
 * a copy. Therefore these functions wait for the default stream. */
static void cuda_copy(void *dst, const void *src, size_t bytes)
{
    (void)cudaMemcpy(dst, src, bytes, cudaMemcpyDefault);
    (void)cudaStreamSynchronize(NULL);
}

static void cuda_fill(void *dst, unsigned char byte, size_t bytes)
{
    (void)cudaMemset(dst, byte, bytes);
    (void)cudaStreamSynchronize(NULL);
}

static void cuda_reduce(const struct ddp_reduce *r)
{
    struct ddp_stream now = {.processors = 1}; /* the default stream */
    ddp_cuda_kernels.reduce(&now, r);
    (void)cudaStreamSynchronize(NULL);
}

const struct ddp_device ddp_dev_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs",
    .library = "CUDA " DDP_CUDA_VERSION,
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
