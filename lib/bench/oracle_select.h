/* Finds the elements that a top-K or a threshold must select, by counting magnitudes. This is slow
 * and exact, and shares no code with the kernels of device/sparse.h, which it checks. */
#ifndef DDP_BENCH_ORACLE_SELECT_H
#define DDP_BENCH_ORACLE_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_ORACLE_BUCKETS 65536

/* A selection: the magnitudes (bits without the sign) above `limit`, and the first `ties` of those
 * equal to it. */
struct ddp_oracle_choice {
    uint32_t limit;
    size_t ties;
    /* Elements selected in all. A caller with less room lowers it; the first elements in index
     * order are then selected. */
    size_t count;
};

/* Select the k largest magnitudes of x[n], or those of at least `threshold`. bucket
 * [DDP_ORACLE_BUCKETS]: scratch. */
void ddp_oracle_topk(const float *x, size_t n, size_t k, uint32_t *bucket,
                     struct ddp_oracle_choice *out);
void ddp_oracle_threshold(const float *x, size_t n, float threshold, struct ddp_oracle_choice *out);

static inline uint32_t ddp_oracle_magnitude(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/* True if the next element, in index order, is selected. Subtracts it from ties and count. */
static inline bool ddp_oracle_takes(struct ddp_oracle_choice *left, float x)
{
    uint32_t magnitude = ddp_oracle_magnitude(x);
    if (magnitude < left->limit || left->count == 0)
        return false;
    if (magnitude == left->limit) {
        if (left->ties == 0)
            return false;
        left->ties--;
    }
    left->count--;
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
