/* Reads points and recomputes algbw and busbw, which must agree with the stored figures. */
#include "record/result_points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/coll_kind.h"
#include "base/mem.h"

/* Relative tolerance of recomputed figures. Files store 15 to 17 digits, and times in us. */
#define SLACK 1e-9

/* The point being read, for messages. */
struct reader {
    const cJSON *point;
    const char *file, *id;
    struct ddp_err *err;
};

static int bad(const struct reader *r, const char *key, const char *why)
{
    return ddp_fail(r->err, DDP_EINPUT, "'%s': point '%s': '%s' %s", r->file, r->id, key, why);
}

/* Reads the number at obj[key], null as NaN. A NULL obj counts as a missing key. */
static int number_of(const struct reader *r, const cJSON *obj, const char *key, double *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    *value = NAN;
    if (!item || (!cJSON_IsNumber(item) && !cJSON_IsNull(item)))
        return bad(r, key, "is missing or not a number");
    *value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    return 0;
}

/* Reads the whole number at obj[key], which must be at least `least`. */
static int count_of(const struct reader *r, const cJSON *obj, const char *key, double least,
                    double *value)
{
    DDP_TRY(number_of(r, obj, key, value));
    if (!(*value >= least) || *value != floor(*value) || *value > 0x1p53)
        return bad(r, key, "is not a valid count");
    return 0;
}

/* Reads a pair [lo, hi], or null as two NaN. */
static int pair_of(const struct reader *r, const cJSON *obj, const char *key, double *lo,
                   double *hi)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    *lo = *hi = NAN;
    if (cJSON_IsNull(item))
        return 0;
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !cJSON_IsNumber(item->child) ||
        !cJSON_IsNumber(item->child->next))
        return bad(r, key, "is not a pair of numbers");
    *lo = item->child->valuedouble;
    *hi = item->child->next->valuedouble;
    return 0;
}

/* Compares a stored figure with a recomputed one. NaN equals only NaN. */
static bool agree(double stored, double derived)
{
    if (isnan(stored) || isnan(derived))
        return isnan(stored) && isnan(derived);
    return fabs(stored - derived) <= SLACK * fabs(derived);
}

/* True if a <= b. Missing values (NaN) count as ordered. */
static bool ordered(double a, double b)
{
    return isnan(a) || isnan(b) || a <= b;
}

static int read_times(const struct reader *r, struct ddp_result_point *out)
{
    const cJSON *time = cJSON_GetObjectItemCaseSensitive(r->point, "time_us");
    double median = NAN, lo, hi, low = NAN, p25 = NAN, p75 = NAN, high = NAN;
    DDP_TRY(number_of(r, time, "median", &median));
    DDP_TRY(pair_of(r, time, "ci95", &lo, &hi));
    DDP_TRY(number_of(r, time, "min", &low));
    DDP_TRY(number_of(r, time, "p25", &p25));
    DDP_TRY(number_of(r, time, "p75", &p75));
    DDP_TRY(number_of(r, time, "max", &high));
    if (!isnan(median) && !(median >= 0))
        return bad(r, "median", "is negative");
    if (!ordered(low, p25) || !ordered(p25, p75) || !ordered(p75, high) || !ordered(low, median) ||
        !ordered(median, high) || !ordered(lo, median) || !ordered(median, hi))
        return bad(r, "time_us", "is not in order");
    out->median_ns = median * 1e3;
    out->ci95_lo_ns = lo * 1e3;
    out->ci95_hi_ns = hi * 1e3;
    return 0;
}

/* Checks that algbw = size / time and busbw = algbw * factor. Either may be null. busbw must be
 * null for compressed and partial exchanges. */
static int check_bandwidths(const struct reader *r, const struct ddp_result_point *p, double bytes,
                            double ranks)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(r->point, "collective");
    const cJSON *compress = cJSON_GetObjectItemCaseSensitive(r->point, "compress");
    const cJSON *method = cJSON_GetObjectItemCaseSensitive(compress, "method");
    double algbw = NAN, busbw = NAN, partial = NAN, lo, hi;
    int coll = cJSON_IsString(name) ? ddp_coll_parse(name->valuestring) : -1;
    if (coll < 0)
        return bad(r, "collective", "is not a collective");
    DDP_TRY(number_of(r, r->point, "algbw_GBps", &algbw));
    DDP_TRY(number_of(r, r->point, "busbw_GBps", &busbw));
    DDP_TRY(number_of(r, r->point, "partial", &partial));
    DDP_TRY(pair_of(r, r->point, "busbw_ci95_GBps", &lo, &hi));
    if (!cJSON_IsString(method))
        return bad(r, "compress", "is missing");
    double derived = bytes / p->median_ns; /* GB = 1e9 bytes, s = 1e9 ns */
    if (!isnan(algbw) && !agree(algbw, derived))
        return bad(r, "algbw_GBps", "is not size / time");
    bool reduced = strcmp(method->valuestring, "none") != 0 || !isnan(partial);
    double factor = ddp_coll_busbw_factor((enum ddp_coll)coll, (int)ranks);
    if (!isnan(busbw) && (reduced || !agree(busbw, derived * factor)))
        return bad(r, "busbw_GBps", "is not algbw times the factor");
    if (!ordered(lo, busbw) || !ordered(busbw, hi))
        return bad(r, "busbw_ci95_GBps", "does not contain busbw");
    return 0;
}

bool ddp_result_begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Stores the first point with wrong data or without valid iterations in result->flaw. No figure of
 * the document may then be judged. "check" is absent in documents of other tools. "wrong" is null
 * if nothing was checked. */
static int note_flaw(const struct reader *r, double iterations, struct ddp_result *result)
{
    const cJSON *check = cJSON_GetObjectItemCaseSensitive(r->point, "check");
    double wrong = 0;
    if (check && !cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(check, "wrong")))
        DDP_TRY(count_of(r, check, "wrong", 0, &wrong));
    if (wrong > 0)
        result->wrong_data = true;
    if (result->flaw[0])
        return 0;
    if (wrong > 0)
        snprintf(result->flaw, sizeof result->flaw, "point '%s' has %.0f wrong elements", r->id,
                 wrong);
    else if (iterations < 1)
        snprintf(result->flaw, sizeof result->flaw, "point '%s' has no valid iterations", r->id);
    return 0;
}

static int read_point(const cJSON *item, const char *name, struct ddp_result *result,
                      struct ddp_result_point *out, struct ddp_err *err)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(item, "id");
    double iterations = 0, ranks = 0, bytes = 0;
    if (!cJSON_IsString(id) || !ddp_result_begins_name(id->valuestring[0]) ||
        strlen(id->valuestring) >= sizeof out->id)
        return ddp_fail(err, DDP_EINPUT, "'%s': a point has no valid id", name);
    ddp_printable(id->valuestring, out->id, sizeof out->id);
    const struct reader r = {.point = item, .file = name, .id = out->id, .err = err};
    DDP_TRY(count_of(&r, item, "iterations", 0, &iterations));
    DDP_TRY(count_of(&r, item, "ranks", 1, &ranks));
    DDP_TRY(count_of(&r, item, "size_bytes", 0, &bytes));
    if (ranks > 1e6)
        return bad(&r, "ranks", "is not a valid count");
    out->iterations = (int64_t)iterations;
    DDP_TRY(note_flaw(&r, iterations, result));
    const cJSON *injected = cJSON_GetObjectItemCaseSensitive(item, "injected_percent");
    out->injected_percent =
        cJSON_IsNumber(injected) && injected->valuedouble > 0 ? injected->valuedouble : NAN;
    const cJSON *launch = cJSON_GetObjectItemCaseSensitive(item, "launch");
    out->launch = cJSON_IsNumber(launch) && launch->valuedouble >= 1 && launch->valuedouble <= 1e6
                      ? (int)launch->valuedouble
                      : 0;
    DDP_TRY(read_times(&r, out));
    DDP_TRY(check_bandwidths(&r, out, bytes, ranks));
    const cJSON *pingpong = cJSON_GetObjectItemCaseSensitive(item, "pingpong_ns");
    DDP_TRY(number_of(&r, pingpong, "before", &out->pingpong_ns[0]));
    return number_of(&r, pingpong, "after", &out->pingpong_ns[1]);
}

int ddp_result_read_points(const cJSON *doc, const char *name, struct ddp_result *out,
                           struct ddp_err *err)
{
    const cJSON *points = cJSON_GetObjectItemCaseSensitive(doc, "points"), *item;
    if (!cJSON_IsArray(points))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'points' is missing or not a list", name);
    size_t count = (size_t)cJSON_GetArraySize(points);
    if (count > DDP_RESULT_MAX_POINTS)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu points, more than the limit of %d", name,
                        count, DDP_RESULT_MAX_POINTS);
    out->points = ddp_calloc(count, sizeof *out->points);
    if (!out->points)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu points", count);
    cJSON_ArrayForEach(item, points)
        DDP_TRY(read_point(item, name, out, &out->points[out->count++], err));
    return ddp_result_fold_launches(out, name, err);
}
