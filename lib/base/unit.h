/* Parsing and printing of quantities: sizes (64M, 64MB, 1e6), counts, numbers, durations. A parser
 * accepts a whole token or fails; nothing is clamped. */
#ifndef DDP_BASE_UNIT_H
#define DDP_BASE_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses a size in bytes: digits with an optional fraction or exponent ("1e6", "1.5G") and an
 * optional suffix. K M G T P E are powers of 1024 (also in small letters, and as Ki, KiB and so
 * on); kB KB MB GB TB PB EB are powers of 1000; B is 1. The result is exact and must be a whole
 * number below 2^63. DDP_EUSAGE: the message has the token. */
int ddp_parse_size(const char *text, uint64_t *bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* Parses a signed integer in [min, max]; forms such as 1e3 are accepted if whole. */
int ddp_parse_int(const char *text, int64_t min, int64_t max, int64_t *value,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Parses a finite number in [min, max]. */
int ddp_parse_double(const char *text, double min, double max, double *value,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Writes "4 B", "64 KiB", "1.5 GiB": exact if it is a whole number of the unit, else 4 significant
 * digits. out has at least 24 bytes. */
void ddp_format_size(uint64_t bytes, char *out, size_t out_bytes);
/* Writes "850 ns", "12.3 us", "4.56 ms", "7.8 s", "3m12s". out has at least 24 bytes. */
void ddp_format_ns(double ns, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
