#include "base/unit.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A decimal number: mantissa * 10^exponent. The mantissa has no trailing zeros. */
struct decimal {
    bool negative;
    uint64_t mantissa;
    int exponent;
};

#define EXPONENT_MAX 400 /* larger than the exponent of every double; prevents overflows of int */

/* Reads a number with an optional sign, fraction and exponent. Returns the text after the number.
 * Returns NULL if there is no number, if the number ends in a decimal point, if the number has more
 * than 19 significant digits, or if the exponent is too large. */
static const char *read_decimal(const char *text, struct decimal *out)
{
    struct decimal d = {.negative = *text == '-'};
    const char *s = text + (*text == '-' || *text == '+');
    int digits = 0, zeros = 0, significant = 0;
    bool fraction = false;
    for (;; s++) {
        if (*s == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!isdigit((unsigned char)*s))
            break;
        digits++;
        d.exponent -= fraction;
        /* Count zeros, and append them to the mantissa only when a non-zero digit follows. Zeros at
         * the end of the number change only the exponent. */
        zeros++;
        if (*s == '0')
            continue;
        for (; zeros > 0; zeros--) {
            d.mantissa *= 10;
            significant += significant > 0 || zeros == 1;
        }
        d.mantissa += (uint64_t)(*s - '0');
        if (significant > 19)
            return NULL;
    }
    if (digits == 0 || s[-1] == '.')
        return NULL;
    d.exponent += zeros;
    if ((*s == 'e' || *s == 'E') &&
        (isdigit((unsigned char)s[1]) ||
         (strchr("+-", s[1]) && s[1] && isdigit((unsigned char)s[2])))) {
        char *end;
        long e = strtol(s + 1, &end, 10);
        if (e > EXPONENT_MAX || e < -EXPONENT_MAX)
            return NULL;
        d.exponent += (int)e;
        s = end;
    }
    *out = d;
    return s;
}

/* Sets *out = mantissa * 10^exponent * factor. Returns false if this product is not a whole number
 * up to INT64_MAX. The factor is at most 2^60, so mantissa * factor is below 2^124. */
static bool decimal_whole(const struct decimal *d, uint64_t factor, uint64_t *out)
{
    unsigned __int128 v = (unsigned __int128)d->mantissa * factor;
    if (v == 0) {
        *out = 0;
        return true;
    }
    for (int e = d->exponent; e < 0; e++) {
        if (v % 10 != 0)
            return false;
        v /= 10;
    }
    for (int e = d->exponent; e > 0; e--) {
        if (v > INT64_MAX)
            return false;
        v *= 10;
    }
    if (v > INT64_MAX)
        return false;
    *out = (uint64_t)v;
    return true;
}

/* Returns the factor of a size suffix, or 0 if the text is not a size suffix. */
static uint64_t suffix_factor(const char *suffix)
{
    static const char letters[] = "KMGTPE";
    if (suffix[0] == '\0' || strcmp(suffix, "B") == 0)
        return 1;
    const char *letter = strchr(letters, toupper((unsigned char)suffix[0]));
    if (!letter)
        return 0;
    int power = (int)(letter - letters) + 1;
    const char *rest = suffix + 1;
    uint64_t factor = 1;
    if (rest[0] == '\0' || strcmp(rest, "i") == 0 || strcmp(rest, "iB") == 0) {
        factor <<= 10 * power;
    } else if (strcmp(rest, "B") == 0) {
        for (int i = 0; i < power; i++)
            factor *= 1000;
    } else {
        return 0;
    }
    /* Accept "64m", which users of nccl-tests write. Refuse "64mB", which is ambiguous, and "64e",
     * which looks like an incomplete exponent. */
    bool lower = islower((unsigned char)suffix[0]);
    return lower && suffix[0] != 'k' && (rest[0] || suffix[0] == 'e') ? 0 : factor;
}

int ddp_parse_size(const char *text, uint64_t *bytes, struct ddp_err *err)
{
    struct decimal d;
    const char *suffix = read_decimal(text, &d);
    uint64_t factor = suffix ? suffix_factor(suffix) : 0;
    if (factor == 0 || text[0] == '+' || text[0] == '-') {
        ddp_fail(err, DDP_EUSAGE, "'%.64s' is not a size", text);
        ddp_hint(err,
                 "sizes look like 64, 1e6, 64K, 1.5G (powers of 1024) or 64MB (powers of 1000)");
        return DDP_EUSAGE;
    }
    uint64_t value;
    if (!decimal_whole(&d, factor, &value))
        return ddp_fail(err, DDP_EUSAGE,
                        "size '%.64s' is not a whole number of bytes, or is above 2^63 - 1", text);
    *bytes = value;
    return DDP_OK;
}

int ddp_parse_int(const char *text, int64_t min, int64_t max, int64_t *value, struct ddp_err *err)
{
    struct decimal d;
    uint64_t magnitude;
    const char *rest = read_decimal(text, &d);
    if (!rest || *rest != '\0')
        return ddp_fail(err, DDP_EUSAGE, "'%.64s' is not a whole number", text);
    if (!decimal_whole(&d, 1, &magnitude))
        return ddp_fail(err, DDP_EUSAGE, "'%.64s' is not a whole number, or is above 2^63 - 1",
                        text);
    int64_t v = d.negative ? -(int64_t)magnitude : (int64_t)magnitude;
    if (v < min || v > max)
        return ddp_fail(err, DDP_EUSAGE, "'%.64s' is not in %lld..%lld", text, (long long)min,
                        (long long)max);
    *value = v;
    return DDP_OK;
}

int ddp_parse_double(const char *text, double min, double max, double *value, struct ddp_err *err)
{
    /* strtod alone would accept " 1", "0x1p3", "inf" and "nan". */
    bool plain = text[0] != '\0' && strspn(text, "0123456789+-.eE") == strlen(text);
    char *end = NULL;
    double v = plain ? strtod(text, &end) : 0;
    if (!plain || end == text || *end != '\0' || !isfinite(v))
        return ddp_fail(err, DDP_EUSAGE, "'%.64s' is not a number", text);
    if (v < min || v > max) {
        if (isfinite(max))
            return ddp_fail(err, DDP_EUSAGE, "'%.64s' is not in %.10g..%.10g", text, min, max);
        return ddp_fail(err, DDP_EUSAGE, "'%.64s' is less than %.10g", text, min);
    }
    *value = v;
    return DDP_OK;
}

void ddp_format_double(double value, char *out, size_t out_bytes)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, out_bytes, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
}

void ddp_format_size(uint64_t bytes, char *out, size_t out_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;
    while (unit + 1 < DDP_COUNT_OF(units) && bytes >> (10 * (unit + 1)))
        unit++;
    uint64_t scale = (uint64_t)1 << (10 * unit);
    if (bytes % scale == 0)
        snprintf(out, out_bytes, "%llu %s", (unsigned long long)(bytes / scale), units[unit]);
    else
        snprintf(out, out_bytes, "%.4g %s", (double)bytes / (double)scale, units[unit]);
}

void ddp_format_ns(double ns, char *out, size_t out_bytes)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    if (!isfinite(ns)) {
        snprintf(out, out_bytes, "-");
        return;
    }
    double v = fabs(ns);
    const char *sign = ns < 0 ? "-" : "";
    /* From 999.5 on, three digits would print as 1e+03, so use the next unit. */
    unsigned unit = 0;
    for (; unit + 1 < DDP_COUNT_OF(units) && v >= 999.5; unit++)
        v /= 1000;
    if (unit < 3 || v < 59.95) {
        snprintf(out, out_bytes, "%s%.3g %s", sign, v, units[unit]);
        return;
    }
    double whole = round(v);
    if (whole < 3600)
        snprintf(out, out_bytes, "%s%dm%02ds", sign, (int)(whole / 60), (int)fmod(whole, 60));
    else if (whole < 1e9)
        snprintf(out, out_bytes, "%s%dh%02dm", sign, (int)(whole / 3600),
                 (int)(fmod(whole, 3600) / 60));
    else
        snprintf(out, out_bytes, "%s%.3g s", sign, v);
}

void ddp_format_GBps(double GBps, char *out, size_t out_bytes)
{
    const double value = GBps >= 1 ? GBps : GBps * 1e3;
    const char *unit = GBps >= 1 ? "GB/s" : "MB/s";
    if (value < 9.95)
        snprintf(out, out_bytes, "%.2g %s", value, unit);
    else
        snprintf(out, out_bytes, value < 1e6 ? "%.0f %s" : "%.3g %s", value, unit);
}
