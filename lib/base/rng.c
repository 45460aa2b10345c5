#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>

#define GOLDEN 0x9E3779B97F4A7C15u /* splitmix64's increment */

void ddp_rng_init(struct ddp_rng *rng, uint64_t seed, uint64_t stream)
{
    /* The stream is mixed before it is combined with the seed, and the result is mixed again, so
     * that neighbouring seeds and streams give unrelated states. */
    uint64_t x = ddp_mix64(seed ^ ddp_mix64(stream));
    for (int i = 0; i < 4; i++, x += GOLDEN)
        rng->s[i] = ddp_mix64(x);
    /* The state of the generator must not be all zeros. This cannot happen, because ddp_mix64
     * returns 0 for only one x. */
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t ddp_rng_u64(struct ddp_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

bool ddp_random_bytes(void *out, size_t bytes)
{
    ssize_t n = 0;
    for (size_t done = 0; done < bytes; done += (size_t)n) {
        do
            n = getrandom((char *)out + done, bytes - done, 0);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
            return false;
    }
    return true;
}

double ddp_rng_double(struct ddp_rng *rng)
{
    return (double)(ddp_rng_u64(rng) >> 11) * 0x1p-53;
}

double ddp_rng_normal(struct ddp_rng *rng)
{
    double u, v, q;
    do { /* draw a point in the unit circle except its centre; needs 1.27 tries on average */
        u = 2 * ddp_rng_double(rng) - 1;
        v = 2 * ddp_rng_double(rng) - 1;
        q = u * u + v * v;
    } while (q >= 1 || q == 0);
    return u * sqrt(-2 * log(q) / q);
}

uint64_t ddp_rng_below(struct ddp_rng *rng, uint64_t bound)
{
    /* The result is the high half of a 128-bit product. A product is discarded if its low half is
     * less than 2^64 mod bound, so that every result is equally likely. */
    unsigned __int128 product = (unsigned __int128)ddp_rng_u64(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t excess = -bound % bound;
        while ((uint64_t)product < excess)
            product = (unsigned __int128)ddp_rng_u64(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

void ddp_rng_shuffle(struct ddp_rng *rng, uint32_t *index, size_t n)
{
    for (size_t left = n; left > 1; left--) {
        size_t pick = (size_t)ddp_rng_below(rng, left);
        uint32_t swap = index[left - 1];
        index[left - 1] = index[pick];
        index[pick] = swap;
    }
}
