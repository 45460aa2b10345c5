/* Which page size a buffer really has: it decides large transfers (4 KiB against 2 MiB pages: up to
 * a factor of 2), and asking for huge pages does not mean getting them. */
#ifndef DDP_BENCH_PAGE_SIZE_H
#define DDP_BENCH_PAGE_SIZE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the mapping that holds ptr, from /proc/self/smaps; when huge pages map at least half of what
 * is resident in it, theirs. -1: not known. Touch the buffer first. Reads files: not for timed
 * regions. */
int64_t ddp_page_bytes(const void *ptr);

#ifdef __cplusplus
}
#endif
#endif
