/* The last-level cache, as the kernel tells of it: what fits need not bypass it. (sysconf asks the
 * processor itself, which inside a virtual machine counts what other machines use.) Of level 3 or
 * above: a guest that is told of less has more. */
#ifndef DDP_BASE_CACHE_H
#define DDP_BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_cache {
    size_t bytes;
    int sharers; /* processors that have it in common, at least 1 */
};
/* Of processor `cpu`; sys: "/sys", but in tests. False, and zeros, where it is not told. */
bool ddp_cache_read(const char *sys, int cpu, struct ddp_cache *out);

/* Bytes of it for each of `ranks` ranks that lie side by side; SIZE_MAX where it is not told. */
size_t ddp_cache_share_of(const struct ddp_cache *cache, int ranks);
/* That, of this machine. */
size_t ddp_cache_share(int ranks);

#ifdef __cplusplus
}
#endif
#endif
