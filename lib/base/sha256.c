#include "base/sha256.h"

#include <string.h>

#include "base/mem.h"

#define BLOCK 64

static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static uint32_t read_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void write_be32(unsigned char *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> (24 - 8 * i));
}

static void add_block(uint32_t h[8], const unsigned char block[BLOCK])
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = read_be32(block + (size_t)i * 4);
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t one = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                             ((e & v[5]) ^ (~e & v[6])) + rounds[i] + w[i];
        const uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                             ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void ddp_sha256_init(struct ddp_sha256 *s)
{
    *s = (struct ddp_sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void ddp_sha256_add(struct ddp_sha256 *s, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    while (bytes > 0) {
        const size_t used = s->bytes % BLOCK, n = DDP_MIN(bytes, BLOCK - used);
        memcpy(s->block + used, at, n);
        at += n;
        bytes -= n;
        s->bytes += n;
        if (used + n == BLOCK)
            add_block(s->h, s->block);
    }
}

void ddp_sha256_end(struct ddp_sha256 *s, unsigned char out[DDP_SHA256_BYTES])
{
    static const unsigned char padding[BLOCK] = {0x80};
    const uint64_t bits = s->bytes * 8;
    unsigned char length[8];
    const size_t used = s->bytes % BLOCK;
    write_be32(length, (uint32_t)(bits >> 32));
    write_be32(length + 4, (uint32_t)bits);
    ddp_sha256_add(s, padding, used < 56 ? 56 - used : 120 - used);
    ddp_sha256_add(s, length, sizeof length);
    for (size_t i = 0; i < 8; i++)
        write_be32(out + i * 4, s->h[i]);
}

void ddp_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                     unsigned char out[DDP_SHA256_BYTES])
{
    unsigned char inner_key[BLOCK] = {0}, outer_key[BLOCK], inner[DDP_SHA256_BYTES];
    struct ddp_sha256 s;
    ddp_sha256_init(&s);
    if (key_bytes > BLOCK) {
        ddp_sha256_add(&s, key, key_bytes);
        ddp_sha256_end(&s, inner_key);
        ddp_sha256_init(&s);
    } else if (key_bytes > 0) {
        memcpy(inner_key, key, key_bytes);
    }
    for (size_t i = 0; i < BLOCK; i++) {
        outer_key[i] = inner_key[i] ^ 0x5c;
        inner_key[i] ^= 0x36;
    }
    ddp_sha256_add(&s, inner_key, BLOCK);
    ddp_sha256_add(&s, data, bytes);
    ddp_sha256_end(&s, inner);
    ddp_sha256_init(&s);
    ddp_sha256_add(&s, outer_key, BLOCK);
    ddp_sha256_add(&s, inner, sizeof inner);
    ddp_sha256_end(&s, out);
}

bool ddp_equal_in_constant_time(const void *a, const void *b, size_t bytes)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char differences = 0;
    for (size_t i = 0; i < bytes; i++)
        differences |= x[i] ^ y[i];
    return differences == 0;
}
