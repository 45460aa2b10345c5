/* The device interface: memory and the arithmetic that gradient exchange needs, on a processor or
 * an accelerator.
 *
 * Each rank chooses its device once. `copy`, `copy_nt`, `fill` and `reduce` return no error. After
 * a failure on a GPU, the next query or wait of a stream in the same thread returns the error. A
 * device does not communicate. */
#ifndef DDP_DEVICE_DEVICE_H
#define DDP_DEVICE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpuinfo.h"
#include "base/dtype.h"
#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of sources of one reduce call, and maximum number of destinations. A shared-memory
 * group has at most this many ranks, so one call can reduce the inputs of all its ranks. */
#define DDP_REDUCE_MAX 256

/* The arguments of one reduce call. The call combines src[0] to src[src_count-1] element by
 * element, in index order, and writes the result to every destination. The order is fixed, so the
 * result does not depend on which rank computes it.
 *
 * Floats of 16 and 8 bits are combined in f32 and rounded to nearest even once, at the end of the
 * call. Results that exceed the range become infinite, or NaN in fp8-e4m3, which has no infinity.
 * Sums and products of integers wrap around. With divisor > 1, however, only sums of 64-bit
 * integers wrap around, and sums of narrower integers are exact. Every NaN result is the canonical
 * quiet NaN: its sign is 0, and the quiet bit is the only mantissa bit that is set (fp8-e4m3: all
 * bits but the sign are set). If the sources of min or max contain -0 and 0, the order of the
 * sources decides which of the two is returned. */
struct ddp_reduce {
    /* Arrays [count]. Each array receives the result. A destination may be one of the sources. No
     * two arrays overlap partly. */
    void *const *dst;
    int dst_count;          /* 1 to DDP_REDUCE_MAX */
    const void *const *src; /* arrays [count] */
    int src_count;          /* 1 to DDP_REDUCE_MAX */
    size_t count;           /* elements of each array */
    enum ddp_dtype dtype;
    enum ddp_op op; /* DDP_AVG has the same effect as DDP_SUM: only `divisor` divides */
    /* The combined value is divided by this number. 1 means no division. Other divisors are allowed
     * for SUM and AVG only, and must be below 2^24. Integer quotients are truncated toward zero and
     * must fit the type. If the divisor is a power of two, floats are multiplied by 1/divisor,
     * which gives the same bits as the division. */
    int divisor;
    int remote; /* hint: index of the source that is most likely in another core's cache */
};

struct ddp_grad_kernels;
struct ddp_stream_ops;
struct ddp_stream_kernels;

/* A description of a device for people and result records. Unknown values are "" and -1. */
struct ddp_device_info {
    char name[64];        /* "NVIDIA H200" */
    char bus[16];         /* "0000:1b:00.0" */
    char cpus[128];       /* processors near the device, such as "0-15,32-47"; "": unknown */
    char runtime[64];     /* "CUDA 13.0, driver for CUDA 13.0" */
    int64_t memory_bytes; /* total memory, whether free or in use */
    int multiprocessors, l2_bytes;
    int capability; /* CUDA's compute capability: 90 for 9.0 */
};

struct ddp_device {
    const char *name;    /* "cpu", "cuda" */
    const char *summary; /* one line for `ddpbench list` */
    const char *library; /* needed library, such as "CUDA 13.0"; NULL: none, or device not built */
    /* Returns 0 if the device can be used. If the device is not built or not usable on this
     * machine, stores the reason in err and returns a negative code. Probing starts the driver of
     * an accelerator. The driver then does not work in child processes, so a process must not probe
     * before it forks ranks (device/stream.h). */
    int (*probe)(struct ddp_err *err);
    /* Returns the number of devices of this kind, or 0 if none is usable. */
    int (*count)(void);
    /* Makes the calling thread use device `index` from now on. */
    int (*select)(int index, struct ddp_err *err);
    /* Fills *out with the description of device `index`. */
    int (*info)(int index, struct ddp_device_info *out, struct ddp_err *err);
    /* Returns device memory aligned to 64 bytes, or NULL if memory is exhausted. The caller passes
     * the same number of bytes to free. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *ptr, size_t bytes);
    /* Copies bytes between buffers that do not overlap. Each buffer may be device or host memory.
     * The copy is complete on return. */
    void (*copy)(void *dst, const void *src, size_t bytes);
    /* Like copy, with the hint that the stores should bypass the cache. */
    void (*copy_nt)(void *dst, const void *src, size_t bytes);
    void (*fill)(void *dst, unsigned char byte, size_t bytes);
    void (*reduce)(const struct ddp_reduce *r);
    const struct ddp_grad_kernels *grad;             /* device/sparse.h; NULL: none */
    const struct ddp_stream_ops *streams;            /* device/stream.h; NULL: none */
    const struct ddp_stream_kernels *stream_kernels; /* device/stream_kernels.h; NULL: none */
};

/* The entry of device cpu in the list of devices. Its `reduce` and `copy_nt` look up the best SIMD
 * level in every call. */
extern const struct ddp_device ddp_dev_cpu;
/* Returns all devices. The array ends with NULL. The functions of device cuda are in a module that
 * the first call of probe, count, select or info opens (cuda/cuda_module.h). Until such a call
 * succeeds, the members after `info` are NULL. */
const struct ddp_device *const *ddp_device_all(void);
/* Returns the entry of ddp_device_all with this name, such as "cuda", or NULL if there is none. */
const struct ddp_device *ddp_device_find(const char *name);
/* Returns whether the device is the processor, at any SIMD level. */
bool ddp_device_is_cpu(const struct ddp_device *device);
/* Returns the CPU device at a SIMD level, never NULL. Callers pass ddp_cpu_best_simd(), or a lower
 * level if the environment variable DDPBENCH_SIMD asks for one. Results are bit-identical at every
 * level. */
const struct ddp_device *ddp_device_cpu(enum ddp_simd level);

#ifdef __cplusplus
}
#endif
#endif
