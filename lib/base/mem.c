#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES      ((size_t)4096)
#define HUGE_BYTES      ((size_t)2 << 20)
#define HUGE_FROM_BYTES ((size_t)4 << 20)

void *ddp_calloc(size_t n, size_t elem_bytes)
{
    size_t bytes;
    if (!ddp_mul_size(n, elem_bytes, &bytes))
        return NULL;
    return calloc(bytes ? bytes : 1, 1);
}

void *ddp_realloc_array(void *ptr, size_t n, size_t elem_bytes)
{
    size_t bytes;
    if (!ddp_mul_size(n, elem_bytes, &bytes))
        return NULL;
    return realloc(ptr, bytes ? bytes : 1);
}

int ddp_fail_memory(struct ddp_err *err, size_t n, size_t elem_bytes, const char *where)
{
    size_t bytes = SIZE_MAX;
    ddp_mul_size(n, elem_bytes, &bytes);
    return ddp_fail(err, DDP_ENOMEM, "no memory for %zu bytes (%s)", bytes, where);
}

int ddp_resize(void *ptr, size_t n, size_t elem_bytes, const char *where, struct ddp_err *err)
{
    void *block;
    memcpy(&block, ptr, sizeof block);
    block = ddp_realloc_array(block, n, elem_bytes);
    if (!block)
        return ddp_fail_memory(err, n, elem_bytes, where);
    memcpy(ptr, &block, sizeof block);
    return DDP_OK;
}

/* Rounds `bytes` up to whole pages, and to at least one page. Returns 0 on overflow. */
static size_t round_pages(size_t bytes, size_t page)
{
    if (bytes == 0)
        return page;
    if (bytes > SIZE_MAX - page + 1)
        return 0;
    return (bytes + page - 1) / page * page;
}

/* LeakSanitizer searches the heap, but not mappings, for pointers to allocated memory. These
 * functions make LeakSanitizer search a mapping, too. They are NULL if LeakSanitizer is not
 * linked. */
void __lsan_register_root_region(const void *begin, size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *begin, size_t bytes) __attribute__((weak));

/* Uses mmap, because malloc may return memory that already has small pages. Memory gets huge pages
 * only when it is accessed for the first time. */
static void *map_pages(size_t bytes)
{
    size_t page = bytes >= HUGE_FROM_BYTES ? HUGE_BYTES : PAGE_BYTES;
    size_t span = round_pages(bytes, page);
    /* Map one huge page more, so that the mapping contains an aligned range of `span` bytes. */
    size_t slack = page == HUGE_BYTES ? HUGE_BYTES : 0;
    if (span == 0 || span > SIZE_MAX - slack)
        return NULL;
    char *base =
        mmap(NULL, span + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    if (slack == 0)
        return base;
    size_t head = (HUGE_BYTES - (uintptr_t)base % HUGE_BYTES) % HUGE_BYTES;
    if (head > 0)
        munmap(base, head);
    if (slack > head)
        munmap(base + head + span, slack - head);
    /* A failure is ignored, because normal pages work, too. */
    (void)madvise(base + head, span, MADV_HUGEPAGE);
    return base + head;
}

void *ddp_alloc_pages(size_t bytes)
{
    void *pages = map_pages(bytes);
    if (pages && __lsan_register_root_region != NULL)
        __lsan_register_root_region(pages, bytes);
    return pages;
}

void ddp_free_pages(void *ptr, size_t bytes)
{
    if (!ptr)
        return;
    if (__lsan_unregister_root_region != NULL)
        __lsan_unregister_root_region(ptr, bytes);
    munmap(ptr, round_pages(bytes, bytes >= HUGE_FROM_BYTES ? HUGE_BYTES : PAGE_BYTES));
}
