/* The size of the last-level cache, as Linux reports it. A copy that fits in the cache is not done
 * by stores that bypass the cache. Only caches of level 3 or above count, because a virtual machine
 * that reports only lower levels hides the last level of its processor. */
#ifndef DDP_BASE_CACHE_H
#define DDP_BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_cache {
    size_t bytes;
    int sharers; /* processors that share the cache, at least 1 */
};
/* Reads the last-level cache of processor `cpu`. sys is "/sys", except in tests. If Linux reports
 * no such cache, returns false and sets *out to zeros. */
bool ddp_cache_read(const char *sys, int cpu, struct ddp_cache *out);

/* Returns the bytes of cache per rank if `ranks` ranks run on neighbouring cores. Returns SIZE_MAX
 * if the cache is unknown. */
size_t ddp_cache_share_of(const struct ddp_cache *cache, int ranks);
/* Like ddp_cache_share_of, for the cache of this machine. The cache is read only once. */
size_t ddp_cache_share(int ranks);

#ifdef __cplusplus
}
#endif
#endif
