/* The processor's stream kernels that scale gradients, convert them back from 16 bits and count
 * overflows. The sync strategies need these kernels in addition to the gradient kernels. */
#include <math.h>

#include "device/cpu/dev_cpu_impl.h"
#include "device/element_ops.h"

void ddp_cpu_scale(struct ddp_stream *s, float *a, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++)
        a[i] = ddp_scaled(a[i], factor);
}

void ddp_cpu_widen_back(struct ddp_stream *s, float *dst, const void *src, size_t n,
                        enum ddp_dtype from, uint64_t *overflows)
{
    const uint16_t *half = src;
    for (size_t i = 0; i < n; i++) {
        *overflows += (uint64_t)ddp_half_overflowed(half[i], dst[i], from);
        dst[i] = ddp_half_widen(half[i], from);
    }
}

void ddp_cpu_add_count(struct ddp_stream *s, uint64_t *sum, const uint32_t *count)
{
    *sum += *count;
}
