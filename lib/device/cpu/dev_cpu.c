/* Device cpu: memory and kernels of the processor, with one table of functions per SIMD level. */
#include "device/device.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "device/cpu/dev_cpu_impl.h"
#include "device/cpu/grad_kernels.h"
#include "device/cpu/kernels_cpu.h"

extern const struct ddp_device ddp_dev_cpu; /* listed in device_list.h */

static int cpu_probe(struct ddp_err *err)
{
    (void)err;
    return 0;
}

static int cpu_count(void)
{
    return 1;
}

static int cpu_select(int index, struct ddp_err *err)
{
    return index == 0 ? 0 : ddp_fail(err, DDP_EUNAVAIL, "there is no CPU device %d", index);
}

static int cpu_info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    struct ddp_sysinfo host;
    struct ddp_device_info info = {.multiprocessors = -1, .l2_bytes = -1};
    DDP_TRY(cpu_select(index, err));
    ddp_sysinfo_read(&host);
    snprintf(info.name, sizeof info.name, "%.63s", host.cpu);
    info.memory_bytes = host.memory_bytes;
    *out = info;
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

/* Uses memcpy, because other copy loops are no faster here (results/notes/kernels.md). */
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
        .count = cpu_count, .select = cpu_select, .info = cpu_info, .alloc = cpu_alloc,            \
        .free = cpu_free, .copy = cpu_copy, .copy_nt = ddp_copy_nt_##level, .fill = cpu_fill,      \
        .reduce = ddp_reduce_##level, .grad = &ddp_grad_##level, .streams = &ddp_cpu_streams,      \
        .stream_kernels = &ddp_cpu_kernels,                                                        \
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

/* The CPU's entry in the table of devices. `reduce` and `copy_nt` look up the best SIMD level in
 * every call. Ranks use the table of one level instead (ddp_device_cpu). */
const struct ddp_device ddp_dev_cpu = {
    .name = "cpu",
    .summary = "this processor, at its best SIMD level",
    .probe = cpu_probe,
    .count = cpu_count,
    .select = cpu_select,
    .info = cpu_info,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .copy_nt = best_copy_nt,
    .fill = cpu_fill,
    .reduce = best_reduce,
    .grad = &ddp_grad_scalar, /* all levels give the same results */
    .streams = &ddp_cpu_streams,
    .stream_kernels = &ddp_cpu_kernels,
};
