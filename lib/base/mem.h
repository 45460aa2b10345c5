/* Memory: allocation with overflow checks, page-aligned memory, and prefetch. If memory is
 * exhausted, the functions that return a pointer return NULL, and the caller reports the error.
 * DDP_NEW and DDP_RESIZE report the error themselves. */
#ifndef DDP_BASE_MEM_H
#define DDP_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_CACHE_LINE      64
#define DDP_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define DDP_MIN(a, b)       ((a) < (b) ? (a) : (b))
#define DDP_MAX(a, b)       ((a) > (b) ? (a) : (b))

static inline size_t ddp_round_to_line(size_t bytes)
{
    return (bytes + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE;
}

/* Sets *out = a * b. On overflow, returns false and does not change *out. */
static inline bool ddp_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* Prefetches bytes [at, at + bytes) of an array, one cache line at a time. An address that is not
 * mapped is harmless. */
static inline __attribute__((always_inline)) void ddp_prefetch(const void *array, size_t at,
                                                               size_t bytes)
{
    for (size_t line = 0; line < bytes; line += DDP_CACHE_LINE)
        __builtin_prefetch((const char *)array + at + line);
}

/* Returns a zeroed array of n elements, which the caller releases with free(). Returns NULL on
 * overflow or if memory is exhausted. If n is 0, returns a valid pointer. */
void *ddp_calloc(size_t n, size_t elem_bytes);
/* Fills *err with "no memory for BYTES bytes (WHERE)". Returns DDP_ENOMEM. */
int ddp_fail_memory(struct ddp_err *err, size_t n, size_t elem_bytes, const char *where);
/* Sets *ptr to a new array of n elements from ddp_calloc, for example DDP_TRY(DDP_NEW(&table, n,
 * err)). If memory is exhausted, sets *ptr to NULL and returns DDP_ENOMEM. The message contains the
 * number of bytes and the name of the calling function. */
#define DDP_NEW(ptr, n, err)                                                                       \
    ((*(ptr) = ddp_calloc(n, sizeof **(ptr))) != NULL                                              \
         ? DDP_OK                                                                                  \
         : ddp_fail_memory(err, n, sizeof **(ptr), __func__))
/* Resizes a block to n elements. Returns NULL on overflow or if memory is exhausted. The old block
 * then stays valid. */
void *ddp_realloc_array(void *ptr, size_t n, size_t elem_bytes);
/* Resizes *ptr to n elements, for example DDP_TRY(DDP_RESIZE(&table, n, err)). New elements are not
 * initialised. If memory is exhausted, returns DDP_ENOMEM with the same message as DDP_NEW, and
 * *ptr does not change. */
#define DDP_RESIZE(ptr, n, err) ddp_resize(ptr, n, sizeof **(ptr), __func__, err)
/* Implements DDP_RESIZE. `ptr` is the address of a pointer to elements of elem_bytes bytes. */
int ddp_resize(void *ptr, size_t n, size_t elem_bytes, const char *where, struct ddp_err *err);
/* Returns uninitialised memory, aligned to 4096 bytes. Memory of 4 MiB or more is aligned to 2 MiB,
 * and the kernel is asked for transparent huge pages. If bytes is 0, returns a valid pointer. The
 * caller releases the memory with ddp_free_pages(ptr, bytes). */
void *ddp_alloc_pages(size_t bytes);
void ddp_free_pages(void *ptr, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
