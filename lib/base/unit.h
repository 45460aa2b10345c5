/* Parsing and printing of quantities: sizes (64M, 64MB, 1e6), counts, numbers, durations. A parser
 * returns DDP_EUSAGE if it cannot parse the whole text, or if the value is out of range. */
#ifndef DDP_BASE_UNIT_H
#define DDP_BASE_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses a size in bytes: digits with an optional fraction or exponent ("1e6", "1.5G") and an
 * optional suffix. The suffixes K, M, G, T, P and E, and their forms Ki, KiB and so on, are powers
 * of 1024. A single lower-case letter other than e is accepted, too. The suffixes kB, KB, MB, GB,
 * TB, PB and EB are powers of 1000, and B is 1. The result is exact and must be a whole number
 * below 2^63. The message of an error contains the text. */
int ddp_parse_size(const char *text, uint64_t *bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* Parses a signed integer in [min, max]. Forms such as 1e3 are accepted if the value is whole. */
int ddp_parse_int(const char *text, int64_t min, int64_t max, int64_t *value,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Parses a finite number in [min, max]. */
int ddp_parse_double(const char *text, double min, double max, double *value,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Writes a finite value with 15, 16 or 17 significant digits: the fewest with which strtod() reads
 * the same value. */
void ddp_format_double(double value, char *out, size_t out_bytes);
/* Writes a size, for example "4 B", "64 KiB" or "1.5 GiB". A size that is not a whole multiple of
 * its unit is rounded to 4 significant digits. `out` must have at least 24 bytes. */
void ddp_format_size(uint64_t bytes, char *out, size_t out_bytes);
/* Writes a time, for example "850 ns", "12.3 us", "7.8 s" or "3m12s". Writes "-" for NaN and
 * infinities. `out` must have at least 24 bytes. */
void ddp_format_ns(double ns, char *out, size_t out_bytes);
/* Writes a bandwidth, for example "3.2 GB/s" or "12 MB/s". The value must be finite and not
 * negative. `out` must have at least 24 bytes. */
void ddp_format_GBps(double GBps, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
