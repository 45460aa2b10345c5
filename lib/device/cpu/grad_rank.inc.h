/* Finds the k-th largest magnitude of an array, exactly and in linear time. Part of the template
 * grad_kernels.inc.h.
 *
 * The search keeps a *range* [low, high] of magnitudes that contains the answer. Each round divides
 * the range into equal *buckets* and counts the *members* of each bucket, the values in it. The
 * search continues in the bucket that contains the wanted rank. One round determines up to 11 bits
 * of the magnitude. The bits of a float form a logarithmic scale. Buckets are therefore narrow
 * where values are dense, and few members remain after one round. When at most CHUNK members
 * remain, bisection finds the answer. */
#ifndef VB
#error "grad_rank.inc.h is part of a template: include grad_kernels.h"
#endif

#define MAX_BUCKET_BITS 11
/* Counters per bucket. With a single counter, each increment in a run of equal values would wait
 * for the previous store. */
#define WAYS ((size_t)4)
/* Number of values that are packed at a time. The packed members stay in the first-level cache. */
#define CHUNK ((size_t)512)
/* Base-2 logarithm of the intended number of members per bucket. A smaller number would mean more
 * buckets to scan. */
#define BUCKET_MEMBERS_LOG2 2

/* The result of a search for the rank-th largest magnitude. */
struct rank {
    /* The rank-th largest magnitude. */
    int32_t magnitude;
    /* How many of the `rank` largest values have exactly this magnitude. */
    size_t ties;
};

static int32_t greatest_magnitude(const float *x, size_t n)
{
    v_i32 most[BLOCK] = {{0}};
    size_t i = 0;
    for (; n - i >= BLOCK * LANES; i += BLOCK * LANES)
        for (size_t v = 0; v < BLOCK; v++) {
            const v_i32 m = magnitude(canonical(load_f32(x + i + v * LANES, LANES)));
            most[v] = vec_max(most[v], m);
        }
    for (; i < n; i += DDP_MIN(LANES, n - i)) {
        const size_t lanes = DDP_MIN(LANES, n - i);
        const v_f32 part = lanes == LANES ? load_f32(x + i, LANES) : load_f32(x + i, lanes);
        most[0] = vec_max(most[0], magnitude(canonical(part)));
    }
    for (size_t v = 1; v < BLOCK; v++)
        most[0] = vec_max(most[0], most[v]);
    int32_t greatest = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        greatest = DDP_MAX(greatest, most[0][lane]);
    return greatest;
}

/* Stores magnitude - low for each x[0..n) whose magnitude is in [low, high], without gaps, in `to`.
 * Returns the number of stored values. `to` has room for n + LANES values. */
static size_t pack_members(uint32_t *to, const float *x, size_t n, int32_t low, int32_t high)
{
    const v_i32 least = (v_i32){0} + low, above = (v_i32){0} + (high + 1);
    size_t count = 0;
    for (size_t i = 0; i < n; i += DDP_MIN(LANES, n - i)) {
        const size_t lanes = DDP_MIN(LANES, n - i);
        const v_f32 part = lanes == LANES ? load_f32(x + i, LANES) : load_f32(x + i, lanes);
        const v_i32 m = magnitude(canonical(part));
        const uint32_t bits = mask_bits(at_least(m, least)) & ~mask_bits(at_least(m, above)) &
                              (uint32_t)((1ull << lanes) - 1);
        pack_lanes(to + count, (v_u32)(m - least), bits);
        count += count_bits(bits);
    }
    return count;
}

/* Adds the number of values in each bucket of the range [low, high] to the counters. */
static void count_buckets(uint32_t (*buckets)[WAYS], const float *x, size_t n, int32_t low,
                          int32_t high, int shift)
{
    uint32_t members[CHUNK + LANES];
    for (size_t from = 0; from < n; from += DDP_MIN(CHUNK, n - from)) {
        const size_t count = pack_members(members, x + from, DDP_MIN(CHUNK, n - from), low, high);
        size_t i = 0;
        for (; count - i >= WAYS; i += WAYS)
            for (size_t way = 0; way < WAYS; way++)
                buckets[members[i + way] >> shift][way]++;
        for (; i < count; i++)
            buckets[members[i] >> shift][0]++;
    }
}

/* Returns how many of members[count] are at least `least`, which is > 0. The caller has padded the
 * array with zeros to whole vectors. */
static size_t count_at_least(const uint32_t *members, size_t count, int32_t least)
{
    const v_i32 floor = (v_i32){0} + least;
    size_t found = 0;
    for (size_t i = 0; i < count; i += LANES) {
        v_i32 v;
        memcpy(&v, members + i, sizeof(v));
        found += count_bits(mask_bits(at_least(v, floor)));
    }
    return found;
}

/* Does the work of find_rank if the range [low, high] has at most CHUNK members. Finds the greatest
 * value that at least `rank` members reach. */
static struct rank bisect_rank(const float *x, size_t n, size_t rank, int32_t low, int32_t high)
{
    uint32_t members[CHUNK + 2 * LANES];
    const size_t count = pack_members(members, x, n, low, high);
    memset(members + count, 0, LANES * sizeof(*members));
    int32_t reached = 0, limit = high - low;
    while (reached < limit) {
        const int32_t middle = reached + (limit - reached - 1) / 2 + 1;
        if (count_at_least(members, count, middle) >= rank)
            reached = middle;
        else
            limit = middle - 1;
    }
    return (struct rank){low + reached, rank - count_at_least(members, count, reached + 1)};
}

/* Searches downwards from `bucket` for the bucket with the *rank-th largest member. Sets *rank to
 * the rank within that bucket and *members to the number of members of that bucket. */
static size_t find_bucket(uint32_t (*buckets)[WAYS], size_t bucket, size_t *rank, size_t *members)
{
    for (;; bucket--) {
        *members = 0;
        for (size_t way = 0; way < WAYS; way++)
            *members += buckets[bucket][way];
        if (*rank <= *members)
            return bucket;
        *rank -= *members;
        assert(bucket > 0);
    }
}

/* Finds the rank-th largest magnitude of x [n]. Every NaN counts as the canonical NaN. rank is at
 * least 1 and at most the number of values with a magnitude of at least `low`. */
static struct rank find_rank(const float *x, size_t n, size_t rank, int32_t low)
{
    uint32_t buckets[1 << MAX_BUCKET_BITS][WAYS];
    int32_t high = greatest_magnitude(x, n);
    size_t members = n;
    while (low < high) {
        if (members <= CHUNK)
            return bisect_rank(x, n, rank, low, high);
        const int bits =
            31 - BUCKET_MEMBERS_LOG2 - __builtin_clz((uint32_t)DDP_MIN(members, 1u << 31));
        const int width = 32 - __builtin_clz((uint32_t)(high - low));
        const int shift = DDP_MAX(width - DDP_MIN(bits, MAX_BUCKET_BITS), 0);
        const size_t last = (size_t)((high - low) >> shift);
        memset(buckets, 0, (last + 1) * sizeof(buckets[0]));
        count_buckets(buckets, x, n, low, high, shift);
        low += (int32_t)(find_bucket(buckets, last, &rank, &members) << shift);
        high = DDP_MIN(high, low + (int32_t)((1u << shift) - 1));
    }
    return (struct rank){low, rank};
}
