/* The last-level cache as Linux reports it. Copies that fit in it need not bypass it. Only caches
 * of level 3 or above count, because a virtual machine that reports only smaller caches in fact has
 * a larger one. (sysconf asks the processor itself, and inside a virtual machine it counts cache
 * that other machines use.) */
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
/* Reads the last-level cache of processor `cpu`. sys is "/sys", except in tests. Returns false, and
 * zeros in *out, if Linux does not report a cache. */
bool ddp_cache_read(const char *sys, int cpu, struct ddp_cache *out);

/* Returns the cache bytes per rank if `ranks` ranks run on neighbouring cores; SIZE_MAX if the
 * cache is unknown. */
size_t ddp_cache_share_of(const struct ddp_cache *cache, int ranks);
/* The same for the cache of this machine, which is read once. */
size_t ddp_cache_share(int ranks);

#ifdef __cplusplus
}
#endif
#endif
