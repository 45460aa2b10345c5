/* The device interface: memory and the arithmetic that gradient exchange needs, on a processor or
 * an accelerator.
 *
 * The collective algorithms (reduce, copy), the compressors and the bandwidth bound of lib/bench
 * use this interface. Each rank chooses its device once. The functions are called in hot paths, so
 * they take plain arrays, and a function that cannot fail returns nothing. A device does not
 * communicate, does not decide when its functions run, and never converts between types silently.
 */
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

/* The largest number of sources, and of destinations, of one reduce call. A group has at most as
 * many ranks. */
#define DDP_REDUCE_MAX 256

/* The arguments of one reduce call: src[0] to src[src_count-1] are combined element by element, in
 * index order, and the result is written to every destination. Because the order is fixed, the
 * result does not depend on which rank computes it.
 *
 * f16 and bf16 are combined in f32 and rounded to nearest even once, at the end of the call. Sums
 * and products of i32 and u8 wrap around, but with divisor > 1 the sum is exact. Every result that
 * is NaN (because a source is NaN, or from inf - inf or 0 * inf) is the canonical quiet NaN: sign 0
 * and only the quiet bit set. If min or max meets -0 and 0, the order of the sources alone decides
 * which one is returned. */
struct ddp_reduce {
    /* Arrays [count] that all receive the result. Each may be one of the sources; no two arrays
     * overlap partly. */
    void *const *dst;
    int dst_count;          /* 1 to DDP_REDUCE_MAX */
    const void *const *src; /* arrays [count] */
    int src_count;          /* 1 to DDP_REDUCE_MAX */
    size_t count;           /* elements of each array */
    enum ddp_dtype dtype;
    enum ddp_op op; /* DDP_AVG is summed like DDP_SUM */
    /* The combined value is divided by this number; 1 means no division. Other values, below 2^24,
     * are allowed for SUM and AVG only. Integers are truncated toward zero. Floats are multiplied
     * by 1/divisor if the divisor is a power of two, which gives the same bits. */
    int divisor;
    int nontemporal; /* hint: results bypass the cache */
    int remote;      /* hint: index of the source most likely in another core's cache */
};

struct ddp_grad_kernels;
struct ddp_stream_ops;
struct ddp_stream_kernels;

/* A description of a device for people and result records. Unknown values are "" and -1. */
struct ddp_device_info {
    char name[64];        /* "NVIDIA H200" */
    char bus[16];         /* "0000:1b:00.0" */
    char runtime[64];     /* "CUDA 13.0, driver for CUDA 13.0" */
    int64_t memory_bytes; /* total memory, whether free or in use */
    int multiprocessors, l2_bytes;
};

struct ddp_device {
    const char *name;    /* "cpu", "cuda" */
    const char *summary; /* one line for `ddpbench list` */
    const char *library; /* "CUDA 13.0": the library this build uses; NULL: none, or not built */
    /* Returns 0 if the device can be used, or a negative code with the reason in err if it is not
     * built or not usable on this machine. Probing starts an accelerator's driver, which does not
     * survive fork() (device/stream.h). */
    int (*probe)(struct ddp_err *err);
    /* Returns the number of devices of this kind, 0 if none is usable. */
    int (*count)(void);
    /* Makes the calling thread use device `index` from now on. */
    int (*select)(int index, struct ddp_err *err);
    /* Fills *out with the description of device `index`. */
    int (*info)(int index, struct ddp_device_info *out, struct ddp_err *err);
    /* Allocates device memory aligned to 64 bytes; NULL if memory is exhausted. The caller passes
     * the same number of bytes to free. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *ptr, size_t bytes);
    /* Copies bytes between non-overlapping buffers; each buffer may be device or host memory. The
     * copy is complete on return. */
    void (*copy)(void *dst, const void *src, size_t bytes);
    /* Like copy, but the stores bypass the cache. */
    void (*copy_nt)(void *dst, const void *src, size_t bytes);
    void (*fill)(void *dst, unsigned char byte, size_t bytes);
    void (*reduce)(const struct ddp_reduce *r);
    const struct ddp_grad_kernels *grad;             /* device/sparse.h; NULL: none */
    const struct ddp_stream_ops *streams;            /* device/stream.h; NULL: none */
    const struct ddp_stream_kernels *stream_kernels; /* device/stream_kernels.h; NULL: none */
};

/* Returns all devices of device_list.h, in order; the array ends with NULL. */
const struct ddp_device *const *ddp_device_all(void);
/* Returns the CPU device at a SIMD level, never NULL. Callers pass ddp_cpu_best_simd(), which
 * DDPBENCH_SIMD can lower. Results are bit-identical at every level. */
const struct ddp_device *ddp_device_cpu(enum ddp_simd level);

#ifdef __cplusplus
}
#endif
#endif
