/* The device seam: memory and the arithmetic that exchanges need, on a processor or an accelerator.
 *
 * Users: algorithms (reduce, copy), compressors, the bound of the bench layer. A device is chosen
 * once per rank; its functions are called in hot paths, so they take plain arrays and return
 * nothing unless they can fail. What it does not do: communicate, decide when to run, or convert
 * silently between types. */
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

/* Most sources, and most destinations, of one reduce call: as many as ranks of a group. */
#define DDP_REDUCE_MAX 256

/* dst[0..dst_count): arrays [count] that all receive the same result, 1 <= dst_count <=
 * DDP_REDUCE_MAX; each may equal one of the sources, none overlaps another partly.
 * src[0..src_count), 1 <= src_count <= DDP_REDUCE_MAX: arrays [count], combined in index order, so
 * the result does not depend on who computes it.
 * divisor: 1, or for SUM and AVG, below 2^24: after the last combine the value is divided by it
 * (integers: truncated toward zero; floats: multiplied by 1/divisor when the divisor is a power of
 * two, which gives the same). op AVG is summed as SUM. 16-bit floats are combined in f32 and
 * rounded to nearest even once, at the end of the call; i32 and u8 sums and products wrap, but with
 * divisor > 1 the sum is exact.
 * NaN: every result that is NaN (a NaN in any source, inf - inf, 0 * inf) is the canonical quiet
 * NaN, sign 0 and only the quiet bit set. Which zero min and max give for -0 and 0 depends on the
 * order of the sources alone.
 * nontemporal: results bypass the cache (a hint).
 * far: the source, in [0, src_count), that most likely lies in another core's cache (a hint). */
struct ddp_reduce {
    void *const *dst;
    int dst_count;
    const void *const *src;
    int src_count;
    size_t count;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int divisor;
    int nontemporal;
    int far;
};

struct ddp_grad_kernels;
struct ddp_stream_ops;
struct ddp_stream_kernels;

/* What else there is to say of a device, for people and records; "" and -1: unknown. */
struct ddp_device_info {
    char name[64];        /* "NVIDIA H200" */
    char bus[16];         /* "0000:1b:00.0" */
    char runtime[64];     /* "CUDA 13.0, driver API 13.0" */
    int64_t memory_bytes; /* all of it, free or not */
    int multiprocessors, l2_bytes;
};

struct ddp_device {
    const char *name;    /* "cpu", "cuda" */
    const char *summary; /* one line for `ddpbench list` */
    const char *library; /* "CUDA 13.0": what it was built with; NULL: nothing, or not built */
    /* 0, or a negative code with the reason in err: built but unusable here, or not built. Starts
     * an accelerator's driver, which does not survive fork() (device/stream.h). */
    int (*probe)(struct ddp_err *err);
    /* How many there are, 0 when unusable; which of them this thread uses from now on. */
    int (*count)(void);
    int (*select)(int index, struct ddp_err *err);
    int (*info)(int index, struct ddp_device_info *out, struct ddp_err *err);
    /* Device memory, aligned to 64 bytes; NULL when exhausted. free takes the same bytes. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *ptr, size_t bytes);
    /* dst and src do not overlap; each is the device's or the host's. It is done when this returns.
     */
    void (*copy)(void *dst, const void *src, size_t bytes);
    /* As copy, bypassing the cache on the store side. */
    void (*copy_nt)(void *dst, const void *src, size_t bytes);
    void (*fill)(void *dst, unsigned char byte, size_t bytes);
    void (*reduce)(const struct ddp_reduce *r);
    const struct ddp_grad_kernels *grad;             /* device/sparse.h; NULL: none */
    const struct ddp_stream_ops *streams;            /* device/stream.h; NULL: none */
    const struct ddp_stream_kernels *stream_kernels; /* device/stream_kernels.h; NULL: none */
};

/* All devices of device_list.h, in order; NULL-terminated. */
const struct ddp_device *const *ddp_device_all(void);
/* The CPU device at a SIMD level: ddp_cpu_best_simd(), or what DDPBENCH_SIMD caps it to. Results do
 * not depend on the level, bit for bit. Never NULL. */
const struct ddp_device *ddp_device_cpu(enum ddp_simd level);

#ifdef __cplusplus
}
#endif
#endif
