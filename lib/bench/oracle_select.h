/* Finds the elements that a top-K or a threshold must select, to check the kernels of
 * device/sparse.h. This code counts magnitudes, which is slow and exact. It shares nothing with the
 * kernels. */
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

/* A selection: the elements whose magnitude (bits without the sign) is above `limit`, and the first
 * `ties` elements whose magnitude equals `limit`. */
struct ddp_oracle_choice {
    uint32_t limit;
    size_t ties;
    /* Number of selected elements. A caller with less room reduces it. Then only the first elements
     * in index order are selected. */
    size_t count;
};

/* ddp_oracle_topk selects the k largest magnitudes of x[n]. ddp_oracle_threshold selects those of
 * at least `threshold`. bucket [DDP_ORACLE_BUCKETS]: scratch. */
void ddp_oracle_topk(const float *x, size_t n, size_t k, uint32_t *bucket,
                     struct ddp_oracle_choice *out);
void ddp_oracle_threshold(const float *x, size_t n, float threshold, struct ddp_oracle_choice *out);

static inline uint32_t ddp_oracle_magnitude(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/* True if x is selected. *left then selects one element less. Call it for all elements in index
 * order. */
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
