/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). The ranks of a job use HMAC-SHA-256 to prove to
 * each other that they know the secret of the job (launch/rendezvous.h). */
#ifndef DDP_BASE_SHA256_H
#define DDP_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_SHA256_BYTES 32

/* The state of a hash. Initialise it with ddp_sha256_init. */
struct ddp_sha256 {
    uint32_t h[8];
    uint64_t bytes;          /* number of bytes hashed so far */
    unsigned char block[64]; /* the last bytes % 64 bytes, which do not fill a block */
};

void ddp_sha256_init(struct ddp_sha256 *s);
void ddp_sha256_add(struct ddp_sha256 *s, const void *data, size_t bytes);
/* Writes the hash of all bytes added. *s must be initialised again before its next use. */
void ddp_sha256_end(struct ddp_sha256 *s, unsigned char out[DDP_SHA256_BYTES]);

/* Writes the HMAC-SHA-256 of `data` under a key of any length. */
void ddp_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                     unsigned char out[DDP_SHA256_BYTES]);
/* Returns whether two arrays of `bytes` bytes are equal. The duration does not depend on the values
 * of the bytes, so it does not reveal how many bytes of a wrong HMAC are right. */
bool ddp_equal_in_constant_time(const void *a, const void *b, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
