/* The differences between nvcc and the C compiler, for the headers that both compile. No other
 * header of lib/device tests which of the two compilers compiles it. */
#ifndef DDP_DEVICE_TWO_COMPILERS_H
#define DDP_DEVICE_TWO_COMPILERS_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define DDP_BOTH static __host__ __device__ __forceinline__
#else
#define DDP_BOTH static inline
#endif

/* DDP_ON_GPU is 1 while code for the GPU is compiled, and 0 while code for the processor is
 * compiled. DDP_UNROLL unrolls a loop on the GPU, because a thread's arrays stay in registers only
 * if every index is a constant. */
#ifdef __CUDA_ARCH__
#define DDP_ON_GPU 1
#define DDP_UNROLL _Pragma("unroll")
#else
#define DDP_ON_GPU 0
#define DDP_UNROLL
#endif

DDP_BOTH uint32_t ddp_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

DDP_BOTH float ddp_f32_from(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Converts binary16 to binary32 exactly. The payload of a NaN may change. */
DDP_BOTH float ddp_f16_widen(uint16_t h)
{
#if DDP_ON_GPU
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
#else
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
    if ((h & 0x7c00u) == 0x7c00u)
        return ddp_f32_from(sign | (rest + (224u << 23)));
    if ((h & 0x7c00u) == 0)
        return ddp_f32_from(
            sign | ddp_f32_bits(ddp_f32_from(rest + (113u << 23)) - ddp_f32_from(113u << 23)));
    return ddp_f32_from(sign | (rest + (112u << 23)));
#endif
}

/* Converts binary32 to binary16, rounding to nearest even. A NaN becomes canonical. Magnitudes of
 * at least 65520 become infinite. On the CPU, 0.5 is added to magnitudes below 2^-14. This addition
 * rounds correctly, because f32 values just above 0.5 and binary16 values below 2^-14 are both
 * spaced 2^-24 apart. */
DDP_BOTH uint16_t ddp_f16_narrow(float x)
{
#if DDP_ON_GPU
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return x == x ? h : (uint16_t)0x7e00u;
#else
    const uint32_t bits = ddp_f32_bits(x), sign = (bits >> 16) & 0x8000u, a = bits & 0x7fffffffu;
    if (a > 0x7f800000u)
        return 0x7e00u;
    if (a >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u)
        return (uint16_t)(sign | (ddp_f32_bits(ddp_f32_from(a) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | ((a + 0xfffu + ((a >> 13) & 1u) - (112u << 23)) >> 13));
#endif
}

DDP_BOTH int ddp_count_bits(uint32_t bits)
{
#if DDP_ON_GPU
    return __popc(bits);
#else
    return __builtin_popcount(bits);
#endif
}

/* Returns the position of the lowest set bit. bits is not 0. */
DDP_BOTH int ddp_lowest_bit(uint32_t bits)
{
#if DDP_ON_GPU
    return __ffs((int)bits) - 1;
#else
    return __builtin_ctz(bits);
#endif
}

/* Loads `count` (0 to 4) values from index i on. The rest of to[4] becomes 0. vectors: nonzero if
 * `from` is aligned to 16 bytes and i is a multiple of 4. */
DDP_BOTH void ddp_load4(float *to, const float *from, uint32_t i, int count, int vectors)
{
#if DDP_ON_GPU
    if (vectors && count == 4) {
        const float4 v = __ldcs((const float4 *)(from + i)); /* not read again, so evict first */
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
        return;
    }
#endif
    (void)vectors;
    for (int j = 0; j < 4; j++)
        to[j] = j < count ? from[i + (uint32_t)j] : 0.0f;
}

DDP_BOTH void ddp_store4(float *to, const float *from, uint32_t i, int count, int vectors)
{
#if DDP_ON_GPU
    if (vectors && count == 4) {
        __stcs((float4 *)(to + i), make_float4(from[0], from[1], from[2], from[3]));
        return;
    }
#endif
    (void)vectors;
    for (int j = 0; j < 4; j++)
        if (j < count)
            to[i + (uint32_t)j] = from[j];
}

/* Loads a word that another block of threads may be writing. The load is atomic but unordered. */
DDP_BOTH uint64_t ddp_load_word(const uint64_t *p)
{
#if DDP_ON_GPU
    uint64_t word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(p) : "memory");
    return word;
#else
    return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

DDP_BOTH void ddp_store_word(uint64_t *p, uint64_t word)
{
#if DDP_ON_GPU
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
#else
    __atomic_store_n(p, word, __ATOMIC_RELAXED);
#endif
}

#endif
