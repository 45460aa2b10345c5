/* Hashes, and random numbers from xoshiro256**, seeded by splitmix64 (Blackman & Vigna, 2018;
 * public domain). The caller owns the state. The same seed gives the same bits on every machine.
 * The only exception is ddp_rng_normal, which depends on the C library's log(). Use
 * ddp_random_bytes for secrets, and not these numbers. */
#ifndef DDP_BASE_RNG_H
#define DDP_BASE_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_rng {
    uint64_t s[4];
};

/* Initialises the state for (seed, stream). Different stream numbers give independent streams. */
void ddp_rng_init(struct ddp_rng *rng, uint64_t seed, uint64_t stream);
uint64_t ddp_rng_u64(struct ddp_rng *rng);
/* Returns a uniform number in [0, 1) with 53 random bits. */
double ddp_rng_double(struct ddp_rng *rng);
/* Returns a standard normal number (polar Box-Muller; the second value is not used). */
double ddp_rng_normal(struct ddp_rng *rng);
/* Returns a uniform number in [0, bound), unbiased (Lemire 2019). bound > 0. */
uint64_t ddp_rng_below(struct ddp_rng *rng, uint64_t bound);
/* Shuffles index[n] (Fisher-Yates). */
void ddp_rng_shuffle(struct ddp_rng *rng, uint32_t *index, size_t n);
/* Fills `out` with random bytes from the kernel, which are safe for secrets. Returns false if the
 * kernel provides none. */
bool ddp_random_bytes(void *out, size_t bytes);

/* Returns a 64-bit hash of x (one step of splitmix64). */
static inline uint64_t ddp_mix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Continues a 64-bit FNV-1a hash with data [n] and returns the new state. The first state is
 * DDP_FNV_INIT. */
#define DDP_FNV_INIT 0xcbf29ce484222325u
static inline uint64_t ddp_fnv1a(uint64_t state, const void *data, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < n; i++)
        state = (state ^ bytes[i]) * 0x100000001b3u;
    return state;
}

#ifdef __cplusplus
}
#endif
#endif
