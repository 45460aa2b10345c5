/* Finds the page size that a buffer really has. Large transfers can be twice as fast with 2 MiB
 * pages as with 4 KiB pages. A request for huge pages does not guarantee them. */
#ifndef DDP_BENCH_PAGE_SIZE_H
#define DDP_BENCH_PAGE_SIZE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the page size of the mapping that holds ptr, from /proc/self/smaps, or -1 if it is not
 * known. Returns the huge page size if huge pages map at least half of the mapping's resident
 * memory. Write to the buffer first. Reads files, so do not call it in timed regions. */
int64_t ddp_page_bytes(const void *ptr);

#ifdef __cplusplus
}
#endif
#endif
