/* Vector types of the kernel templates, VB bytes wide. Only the level files include this header,
 * after they define VB. Types raw_* hold the bytes of a whole, half or quarter vector as they lie
 * in memory. Types v_* are for arithmetic. */
#ifndef VB
#error "kernels_vec.inc.h is part of a template: include kernels_cpu.h"
#endif

#include <stdbool.h>

#define INLINE        static inline __attribute__((always_inline))
#define VECTOR(bytes) __attribute__((vector_size(bytes)))

typedef unsigned char raw_full VECTOR(VB);
typedef unsigned char raw_half VECTOR(VB / 2);
typedef unsigned char raw_quarter VECTOR(VB / 4);
typedef uint8_t v_u8 VECTOR(VB);
typedef uint16_t v_u16h VECTOR(VB / 2);
typedef uint32_t v_u32 VECTOR(VB);
typedef int32_t v_i32 VECTOR(VB);
typedef int32_t v_i32h VECTOR(VB / 2);
typedef uint64_t v_u64 VECTOR(VB);
typedef float v_f32 VECTOR(VB);
typedef double v_f64 VECTOR(VB);

/* Returns whether the hardware prefetcher falls behind in long loops, so that software prefetch
 * helps. On AMD processors the hardware prefetcher keeps up, and software prefetch makes loops
 * slower (results/notes/kernels.md). */
INLINE bool prefetcher_lags(void)
{
#if defined(__x86_64__)
    return !__builtin_cpu_is("amd");
#else
    return true;
#endif
}
