/* Selects with two histograms of the 31-bit magnitudes. The first counts the upper 16 bits. The
 * second counts the lower 15 bits in one bucket of the first. */
#include "bench/oracle_select.h"

#define LOW_BITS 15
#define LOW_MASK ((1u << LOW_BITS) - 1)

/* Returns the bucket that holds the k-th largest element. *above: number of elements in higher
 * buckets. */
static uint32_t find_bucket(const uint32_t *bucket, uint32_t buckets, size_t k, size_t *above)
{
    *above = 0;
    for (uint32_t b = buckets;
         b-- > 1;) { /* bucket 0 is left if no higher bucket holds the element */
        if (*above + bucket[b] >= k)
            return b;
        *above += bucket[b];
    }
    return 0;
}

void ddp_oracle_topk(const float *x, size_t n, size_t k, uint32_t *bucket,
                     struct ddp_oracle_choice *out)
{
    size_t above, above_low;
    if (k > n)
        k = n;
    memset(bucket, 0, DDP_ORACLE_BUCKETS * sizeof *bucket);
    for (size_t i = 0; i < n; i++)
        bucket[ddp_oracle_magnitude(x[i]) >> LOW_BITS]++;
    uint32_t high = find_bucket(bucket, DDP_ORACLE_BUCKETS, k, &above);
    memset(bucket, 0, DDP_ORACLE_BUCKETS * sizeof *bucket);
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = ddp_oracle_magnitude(x[i]);
        if (magnitude >> LOW_BITS == high)
            bucket[magnitude & LOW_MASK]++;
    }
    uint32_t low = find_bucket(bucket, LOW_MASK + 1, k - above, &above_low);
    *out = (struct ddp_oracle_choice){high << LOW_BITS | low, k - above - above_low, k};
}

void ddp_oracle_threshold(const float *x, size_t n, float threshold, struct ddp_oracle_choice *out)
{
    *out = (struct ddp_oracle_choice){ddp_oracle_magnitude(threshold), SIZE_MAX, 0};
    for (size_t i = 0; i < n; i++)
        out->count += ddp_oracle_magnitude(x[i]) >= out->limit;
}
