/* Quantities people type and read: sizes (64M, 64MB, 1e6), counts, numbers, durations.
 * Parsing takes a whole token or fails; nothing is clamped. */
#ifndef DDP_BASE_UNIT_H
#define DDP_BASE_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes: digits with an optional fraction or exponent ("1e6", "1.5G") and a suffix: none, K M G T P
 * E (powers of 1024; small letters, Ki, KiB and so on mean the same), kB KB MB GB TB PB EB (powers
 * of 1000), B. The result must be a whole number below 2^63 and is computed exactly. DDP_EUSAGE
 * names the token. */
int ddp_parse_size(const char *text, uint64_t *bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* A signed integer in [min, max]; also accepts forms such as 1e3 when whole. */
int ddp_parse_int(const char *text, int64_t min, int64_t max, int64_t *value,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* A finite number in [min, max]. */
int ddp_parse_double(const char *text, double min, double max, double *value,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* "4 B", "64 KiB", "1.5 GiB": exact when it is a whole number of the unit, else 4 significant
 * digits. out >= 24 bytes. */
void ddp_format_size(uint64_t bytes, char *out, size_t out_bytes);
/* "850 ns", "12.3 us", "4.56 ms", "7.8 s", "3m12s". out >= 24 bytes. */
void ddp_format_ns(double ns, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
