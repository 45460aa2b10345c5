/* The processor as a device: kernels of the best SIMD level, copies that suit their size. */
#include "device/device.h"

#include <string.h>

#include "base/mem.h"
#include "device/grad_kernels.h"
#include "device/kernels_cpu.h"

extern const struct ddp_device ddp_dev_cpu; /* device_list.h */

static int cpu_probe(struct ddp_err *err)
{
    (void)err;
    return 0;
}

static void *cpu_alloc(size_t bytes)
{
    return ddp_alloc_pages(bytes);
}

static void cpu_free(void *ptr, size_t bytes)
{
    ddp_free_pages(ptr, bytes);
}

/* libc's: rep movsb and plain vector copies of our own were no faster from 4 KiB to 64 MiB. */
static void cpu_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void cpu_fill(void *dst, unsigned char byte, size_t bytes)
{
    memset(dst, byte, bytes);
}

#define CPU_DEVICE(level, text)                                                                    \
    {                                                                                              \
        .name = "cpu", .summary = "processor, " text " kernels", .probe = cpu_probe,               \
        .alloc = cpu_alloc, .free = cpu_free, .copy = cpu_copy, .copy_nt = ddp_copy_nt_##level,    \
        .fill = cpu_fill, .reduce = ddp_reduce_##level, .grad = &ddp_grad_##level,                 \
    }

static const struct ddp_device levels[DDP_SIMD_COUNT] = {
    [DDP_SIMD_SCALAR] = CPU_DEVICE(scalar, "baseline"),
    [DDP_SIMD_AVX2] = CPU_DEVICE(avx2, "AVX2"),
    [DDP_SIMD_AVX512] = CPU_DEVICE(avx512, "AVX-512"),
};

const struct ddp_device *ddp_device_cpu(enum ddp_simd level)
{
    return &levels[level];
}

static void best_reduce(const struct ddp_reduce *r)
{
    levels[ddp_cpu_best_simd()].reduce(r);
}

static void best_copy_nt(void *dst, const void *src, size_t bytes)
{
    levels[ddp_cpu_best_simd()].copy_nt(dst, src, bytes);
}

/* The row of the table of devices: looks for the level in each call. Ranks use ddp_device_cpu(). */
const struct ddp_device ddp_dev_cpu = {
    .name = "cpu",
    .summary = "this processor, with the best SIMD level it has",
    .probe = cpu_probe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .copy_nt = best_copy_nt,
    .fill = cpu_fill,
    .reduce = best_reduce,
    .grad = &ddp_grad_scalar, /* the same results as the other levels' */
};
