/* The keys that --vary leaves out of the identity of a cell, so that `gate` and `compare` can match
 * points and training runs that differ in these keys. */
#ifndef DDP_RECORD_VARY_H
#define DDP_RECORD_VARY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_vary_key {
    DDP_VARY_ALGORITHM,
    DDP_VARY_BACKEND,
    DDP_VARY_MEMORY,
    DDP_VARY_COMPRESS,
    DDP_VARY_RANKS,
    DDP_VARY_DTYPE,
    DDP_VARY_SYNC, /* the strategy of a training run, and the settings that depend on it */
    DDP_VARY_FEEDBACK,
    DDP_VARY_LR,
    DDP_VARY_COUNT
};
/* The keys in the id of a point. The other keys are in the names of training runs only. */
#define DDP_VARY_POINT_KEYS ((1u << DDP_VARY_SYNC) - 1)
/* "algorithm", "backend" and so on, indexed by enum ddp_vary_key. The last entry is NULL. */
extern const char *const ddp_vary_names[];

/* Returns whether a set of keys contains a key. Bit k of the set stands for key k. */
static inline bool ddp_vary_has(unsigned vary, enum ddp_vary_key key)
{
    return (vary >> key & 1) != 0;
}
/* Writes the names of the keys in a set, for example "algorithm, ranks". Writes "" if the set is
 * empty. */
void ddp_vary_text(unsigned vary, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
