/* Random numbers with a state the caller owns: same seed, same bits, everywhere.
 * splitmix64 for seeding, xoshiro256** for the stream (Blackman & Vigna, 2018; public domain
 * algorithm). Not for secrets. */
#ifndef DDP_BASE_RNG_H
#define DDP_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_rng {
    uint64_t s[4];
};

/* A stream for (seed, stream): different stream numbers give independent streams. */
void ddp_rng_init(struct ddp_rng *rng, uint64_t seed, uint64_t stream);
uint64_t ddp_rng_u64(struct ddp_rng *rng);
/* Uniform in [0, 1): 53 bits. */
double ddp_rng_double(struct ddp_rng *rng);
/* Standard normal (polar Box-Muller without a cached second value). */
double ddp_rng_normal(struct ddp_rng *rng);
/* Uniform in [0, bound), unbiased (Lemire 2019); bound > 0. */
uint64_t ddp_rng_below(struct ddp_rng *rng, uint64_t bound);
/* Fisher-Yates shuffle of index[n]. */
void ddp_rng_shuffle(struct ddp_rng *rng, uint32_t *index, size_t n);
/* Stateless mix of 64 bits (splitmix64 finaliser). */
static inline uint64_t ddp_mix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

#ifdef __cplusplus
}
#endif
#endif
