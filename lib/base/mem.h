/* Memory: on the heap, with sizes that cannot overflow and alignment for vectors; asking for lines
 * of it ahead. Nothing here aborts: NULL means it did not fit, and the caller says so. */
#ifndef DDP_BASE_MEM_H
#define DDP_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_CACHE_LINE      64
#define DDP_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define DDP_MIN(a, b)       ((a) < (b) ? (a) : (b))
#define DDP_MAX(a, b)       ((a) > (b) ? (a) : (b))

/* *out = a * b; false (and *out untouched) on overflow. */
static inline bool ddp_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* Asks the processor for `bytes` bytes of an array from byte `at` on, a line at a time. A hint:
 * addresses nobody has are no error. */
static inline __attribute__((always_inline)) void ddp_prefetch(const void *array, size_t at,
                                                               size_t bytes)
{
    for (size_t line = 0; line < bytes; line += DDP_CACHE_LINE)
        __builtin_prefetch((const char *)array + at + line);
}

/* Zeroed array of n elements; NULL on overflow or exhaustion. n 0 gives a valid pointer. free(). */
void *ddp_calloc(size_t n, size_t elem_bytes);
/* realloc to n elements with overflow check; the old block stays valid on NULL. */
void *ddp_realloc_array(void *ptr, size_t n, size_t elem_bytes);
/* Uninitialised, page-aligned (4096; 2 MiB from 4 MiB up, with transparent huge pages advised), so
 * that "private" memory has the same pages as registered memory. bytes 0 gives a valid pointer.
 * Released with ddp_free_pages(ptr, bytes). */
void *ddp_alloc_pages(size_t bytes);
void ddp_free_pages(void *ptr, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
