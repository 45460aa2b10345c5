/* Verifies results. For each block, computes the expected integers, converts them to the data type,
 * and compares them with the result bit for bit.
 *
 * The expected average of f32 and f64 is the exact sum, divided by the number of ranks and rounded
 * once to the type. For averages of floats of 16 and 8 bits, the inputs are chosen such that, in
 * f32 arithmetic, a division before the sum gives the same bits as a division after it (see
 * divisible). */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/verify.h"

#define WEYL 0x9E3779B9u /* 2^32 / golden ratio, odd */

/* Returns the largest sum of absolute values for which all sums are exact, but at most 2^30,
 * because results are predicted in 32-bit integers. */
static int exact_sum(enum ddp_dtype dtype)
{
    const struct ddp_dtype_info *info = &ddp_dtypes[dtype];
    return (1 << DDP_MIN(info->digits, 30)) - (info->kind == DDP_UNSIGNED);
}

/* Returns the maximum number of factors of 2 in a product: 6 for i8, 7 for u8, and 8 for the other
 * types. */
static int exact_twos(enum ddp_dtype dtype)
{
    return ddp_dtype_is_integer(dtype) ? DDP_MIN(ddp_dtypes[dtype].digits - 1, 8) : 8;
}

/* Returns whether the type is an integer with more bits than a predicted value. Elements of such a
 * type are predicted values times a scale. */
static bool is_scaled(enum ddp_dtype dtype)
{
    return ddp_dtype_is_integer(dtype) && ddp_dtypes[dtype].digits > 31;
}

/* Returns the scale with which predicted values of 30 bits fill all bits of the type. A product
 * is not scaled, because each of its factors would multiply it by the scale. */
static int64_t scale_of(enum ddp_dtype dtype, enum ddp_op op)
{
    if (!is_scaled(dtype) || op == DDP_PROD)
        return 1;
    return ((int64_t)1 << (ddp_dtypes[dtype].digits - 30)) - 1;
}

/* Returns the bits of the widest range whose values are exact in the type. Used for min and max,
 * and for averages of integers of at most 32 bits, because their sums are computed in 64 bits. */
static int widest_bits(enum ddp_dtype dtype)
{
    return is_scaled(dtype) ? 30 : DDP_MIN(ddp_dtypes[dtype].digits, 31);
}

/* Returns the range for sums. All ranks are active (device/input_ops.h) if `limit` allows the value
 * 1 on each of them. The values get as many bits as fit: active * 2^bits <= limit, or active *
 * (2^bits - 1) <= limit if they are unsigned. */
static struct ddp_verify_input summable(enum ddp_dtype dtype, int ranks)
{
    bool is_unsigned = ddp_dtypes[dtype].kind == DDP_UNSIGNED;
    int64_t limit = exact_sum(dtype);
    struct ddp_verify_input in = {.range = is_unsigned ? DDP_VERIFY_UNSIGNED : DDP_VERIFY_SIGNED,
                                  .bits = is_unsigned, /* 0 bits unsigned would be all zeros */
                                  .active = (int)DDP_MIN((int64_t)ranks, limit),
                                  .ranks = ranks,
                                  .factor = 1,
                                  .scale = scale_of(dtype, DDP_SUM)};
    while (in.bits < 30 && in.active * (((int64_t)2 << in.bits) - is_unsigned) <= limit)
        in.bits++;
    return in;
}

/* Returns the range for averages of floats of 16 and 8 bits. An algorithm may divide before or
 * after the sum. Both ways are exact if every value is a multiple of the largest odd divisor of the
 * number of ranks. Each quotient is then an integer divided by a power of two, and has no more bits
 * than a value of a sum. If the odd divisor is so large that such values do not fit, only one rank
 * per element has a value other than 0. The average is then this value divided by the number of
 * ranks, and is rounded once in either order. With more than 256 ranks, a quotient of 8 bits may
 * round to zero. The values are then not negative: a negative quotient would become -0, but the sum
 * of -0 and the zeros of the other ranks is 0. */
static struct ddp_verify_input divisible(enum ddp_dtype dtype, int ranks)
{
    struct ddp_verify_input in = summable(dtype, ranks);
    int odd = ranks;
    while (odd % 2 == 0)
        odd /= 2;
    const bool vanishes = ddp_dtypes[dtype].size == 1 && ranks > 256;
    if ((int64_t)odd << in.bits <= exact_sum(dtype) && !vanishes) {
        in.factor = odd;
    } else {
        in.active = 1;
        in.bits = DDP_MIN(ddp_dtypes[dtype].digits - 1, 7);
        in.range = vanishes ? DDP_VERIFY_UNSIGNED : in.range;
    }
    return in;
}

struct ddp_verify_input ddp_verify_input_of(enum ddp_dtype dtype, enum ddp_op op, int ranks)
{
    bool is_unsigned = ddp_dtypes[dtype].kind == DDP_UNSIGNED;
    struct ddp_verify_input in = {
        .active = ranks, .ranks = ranks, .factor = 1, .scale = scale_of(dtype, op)};
    if (op == DDP_AVG && ddp_dtype_is_narrow(dtype))
        return divisible(dtype, ranks);
    if (op == DDP_SUM || (op == DDP_AVG && ddp_dtypes[dtype].mean == dtype))
        return summable(dtype, ranks);
    in.range = is_unsigned ? DDP_VERIFY_UNSIGNED : DDP_VERIFY_SIGNED;
    in.bits = widest_bits(dtype);
    if (op == DDP_PROD) {
        in.range = is_unsigned ? DDP_VERIFY_POWERS_UNSIGNED : DDP_VERIFY_POWERS;
        in.bits = 1;
        in.active = DDP_MIN(ranks, exact_twos(dtype));
    }
    return in;
}

static inline uint32_t scramble(uint32_t t)
{
    t ^= t << 13;
    return t ^ (t >> 17);
}

/* True if this rank is active at the element or block number `turn`. */
static inline bool is_active(const struct ddp_verify_input *in, int rank, uint64_t turn)
{
    return ((uint64_t)rank + turn) % (uint64_t)in->ranks < (uint64_t)in->active;
}

static void powers(const struct ddp_verify_input *in, bool two, uint32_t seed, size_t n, int32_t *v)
{
    uint32_t two_mask = two ? 1 : 0;
    uint32_t sign_mask = in->range == DDP_VERIFY_POWERS ? 1 : 0;
    for (size_t j = 0; j < n; j++) {
        uint32_t t = scramble(seed + (uint32_t)j * WEYL);
        int32_t magnitude = 1 + (int32_t)((t >> 30) & two_mask);
        int32_t negative = -(int32_t)((t >> 31) & sign_mask); /* 0 or all ones */
        v[j] = (magnitude ^ negative) - negative;
    }
}

void ddp_verify_values(const struct ddp_verify_input *in, int rank, uint64_t round, size_t first,
                       size_t n, int32_t *v)
{
    uint64_t block = first / DDP_VERIFY_BLOCK;
    uint32_t offset = (uint32_t)(first % DDP_VERIFY_BLOCK);
    uint64_t mixed = ddp_mix64(ddp_mix64(ddp_mix64(block) + (uint64_t)rank) + round);
    uint32_t seed = (uint32_t)(mixed >> 32) + offset * WEYL;
    assert(offset + n <= DDP_VERIFY_BLOCK);
    if (in->range == DDP_VERIFY_POWERS || in->range == DDP_VERIFY_POWERS_UNSIGNED) {
        powers(in, is_active(in, rank, block + round), seed, n, v);
        return;
    }
    if (in->range == DDP_VERIFY_SIGNED) {
        int shift = 31 - in->bits;
        for (size_t j = 0; j < n; j++)
            v[j] = (int32_t)scramble(seed + (uint32_t)j * WEYL) >> shift;
    } else {
        int shift = 32 - in->bits;
        for (size_t j = 0; j < n; j++)
            v[j] = (int32_t)(scramble(seed + (uint32_t)j * WEYL) >> shift);
    }
    for (size_t j = 0; in->factor != 1 && j < n; j++)
        v[j] *= in->factor;
    for (size_t j = 0; in->active < in->ranks && j < n; j++) {
        if (!is_active(in, rank, first + j + round))
            v[j] = 0;
    }
}

#define BLOCK DDP_VERIFY_BLOCK

union typed {
    uint8_t u8[BLOCK];
    uint16_t u16[BLOCK];
    uint32_t u32[BLOCK];
    uint64_t u64[BLOCK];
    float f32[BLOCK];
    double f64[BLOCK];
};

/* One verification, with the arrays of the current block. */
struct job {
    enum ddp_dtype dtype;
    enum ddp_op op;
    bool rounds; /* the values of a float average may have been rounded before the sum */
    int rank, ranks;
    uint64_t round;
    struct ddp_verify_input input;
    size_t elem_bytes;
    int32_t value[BLOCK];    /* input of one rank */
    int32_t expected[BLOCK]; /* expected integers, before the division of an average */
    int64_t sum64[BLOCK];    /* sums that may exceed 32 bits */
    union typed answer, got; /* expected and received elements */
};

/* Converts x to IEEE binary16, rounding to nearest even. x must be 0 or a normal number of that
 * type. */
static inline uint16_t to_f16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t size = bits & 0x7fffffffu;
    uint32_t rounded = (size + 0xfffu + ((size >> 13) & 1u)) >> 13;
    uint32_t rebiased = size ? rounded - (112u << 10) : 0;
    return (uint16_t)(rebiased | ((bits >> 16) & 0x8000u));
}

/* Converts x to bfloat16, rounding to nearest even. x must not be NaN. */
static inline uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Converts x to a float of 8 bits, rounding to nearest even. x must not exceed the range.
 * Magnitudes below `least`, the least normal number, are rounded by adding a number whose ulp is
 * the subnormal step. */
static inline uint8_t to_fp8(float x, uint32_t fraction, uint32_t bias)
{
    const uint32_t shift = 23 - fraction, least = (128 - bias) << 23;
    const uint32_t step = (151 - bias - fraction) << 23;
    uint32_t bits, sum_bits;
    float size, step_value;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&step_value, &step, sizeof step_value);
    uint32_t size_bits = bits & 0x7fffffffu;
    memcpy(&size, &size_bits, sizeof size);
    size += step_value;
    memcpy(&sum_bits, &size, sizeof sum_bits);
    uint32_t half = (1u << (shift - 1)) - 1 + ((size_bits >> shift) & 1u);
    uint32_t normal = (size_bits + half - ((127 - bias) << 23)) >> shift;
    return (uint8_t)((size_bits < least ? sum_bits - step : normal) | ((bits >> 24) & 0x80u));
}

static void encode_integers(size_t size, const int32_t *value, size_t n, int64_t scale,
                            union typed *out)
{
    for (size_t j = 0; size == 8 && j < n; j++)
        out->u64[j] = (uint64_t)value[j] * (uint64_t)scale;
    for (size_t j = 0; size == 4 && j < n; j++)
        out->u32[j] = (uint32_t)value[j] * (uint32_t)scale;
    for (size_t j = 0; size == 2 && j < n; j++)
        out->u16[j] = (uint16_t)value[j];
    for (size_t j = 0; size == 1 && j < n; j++)
        out->u8[j] = (uint8_t)value[j];
}

/* Sets out[j] to value[j] / divisor in the data type. Integers are multiplied by `scale` and not
 * divided. */
static void encode(enum ddp_dtype dtype, const int32_t *value, size_t n, int divisor, int64_t scale,
                   union typed *out)
{
    float d = (float)divisor;
    switch (dtype) {
    case DDP_F32:
        for (size_t j = 0; j < n; j++)
            out->f32[j] = (float)value[j] / d;
        break;
    case DDP_F64:
        for (size_t j = 0; j < n; j++)
            out->f64[j] = (double)value[j] / divisor;
        break;
    case DDP_F16:
        for (size_t j = 0; j < n; j++)
            out->u16[j] = to_f16((float)value[j] / d);
        break;
    case DDP_BF16:
        for (size_t j = 0; j < n; j++)
            out->u16[j] = to_bf16((float)value[j] / d);
        break;
    case DDP_FP8_E4M3:
        for (size_t j = 0; j < n; j++)
            out->u8[j] = to_fp8((float)value[j] / d, 3, 7);
        break;
    case DDP_FP8_E5M2:
        for (size_t j = 0; j < n; j++)
            out->u8[j] = to_fp8((float)value[j] / d, 2, 15);
        break;
    default:
        encode_integers(ddp_dtypes[dtype].size, value, n, scale, out);
        break;
    }
}

static void combine(enum ddp_op op, int32_t *into, const int32_t *value, size_t n)
{
    switch (op) {
    case DDP_PROD:
        for (size_t j = 0; j < n; j++)
            into[j] *= value[j];
        break;
    case DDP_MIN:
        for (size_t j = 0; j < n; j++)
            into[j] = DDP_MIN(into[j], value[j]);
        break;
    case DDP_MAX:
        for (size_t j = 0; j < n; j++)
            into[j] = DDP_MAX(into[j], value[j]);
        break;
    default:
        for (size_t j = 0; j < n; j++)
            into[j] += value[j];
        break;
    }
}

/* Computes the means of 64-bit integers from the sums. The scale is so small that the scaled sums
 * fit into the type. */
static void divide_long(struct job *job, size_t n)
{
    const int64_t scale = job->input.scale;
    const bool is_signed = ddp_dtypes[job->dtype].kind == DDP_SIGNED;
    for (size_t j = 0; j < n; j++) {
        const int64_t sum = (int64_t)((uint64_t)job->sum64[j] * (uint64_t)scale);
        job->answer.u64[j] =
            is_signed ? (uint64_t)(sum / job->ranks) : (uint64_t)sum / (uint64_t)job->ranks;
    }
}

/* Computes the mean of integers: the 64-bit sum divided by the number of ranks, truncated toward
 * zero. For types of at most 32 bits the division uses double. A quotient has at most 32 bits, so a
 * rounding error cannot reach the next integer. */
static void mean_of_integers(struct job *job, size_t first, size_t n)
{
    memset(job->sum64, 0, n * sizeof *job->sum64);
    for (int r = 0; r < job->ranks; r++) {
        ddp_verify_values(&job->input, r, job->round, first, n, job->value);
        for (size_t j = 0; j < n; j++)
            job->sum64[j] += job->value[j];
    }
    if (job->elem_bytes == 8) {
        divide_long(job, n);
        return;
    }
    for (size_t j = 0; j < n; j++)
        job->expected[j] =
            (int32_t)(int64_t)((double)(job->sum64[j] * job->input.scale) / job->ranks);
    encode(job->dtype, job->expected, n, 1, 1, &job->answer);
}

/* Computes the expected results of elements [first, first + n), which lie in one block. */
static void predict_reduced(struct job *job, size_t first, size_t n)
{
    bool mean = job->op == DDP_AVG;
    if (mean && ddp_dtype_is_integer(job->dtype)) {
        mean_of_integers(job, first, n);
        return;
    }
    ddp_verify_values(&job->input, 0, job->round, first, n, job->expected);
    for (int r = 1; r < job->ranks; r++) {
        ddp_verify_values(&job->input, r, job->round, first, n, job->value);
        combine(job->op, job->expected, job->value, n);
    }
    encode(job->dtype, job->expected, n, mean ? job->ranks : 1, job->input.scale, &job->answer);
}

static void predict_moved(struct job *job, int src, size_t first, size_t n)
{
    ddp_verify_values(&job->input, src, job->round, first, n, job->expected);
    encode(job->dtype, job->expected, n, 1, job->input.scale, &job->answer);
}

#define COUNT_WRONG(member)                                                                        \
    for (size_t j = 0; j < n; j++)                                                                 \
    wrong += job->got.member[j] != job->answer.member[j]

static uint32_t count_wrong(const struct job *job, size_t n)
{
    uint32_t wrong = 0;
    switch (job->elem_bytes) {
    case 1:
        COUNT_WRONG(u8);
        break;
    case 2:
        COUNT_WRONG(u16);
        break;
    case 4:
        COUNT_WRONG(u32);
        break;
    default:
        COUNT_WRONG(u64);
        break;
    }
    return wrong;
}

static uint64_t bits_at(const struct job *job, const union typed *t, size_t j)
{
    uint64_t bits = 0;
    memcpy(&bits, (const unsigned char *)t + j * job->elem_bytes, job->elem_bytes);
    return bits;
}

/* Returns the number that the bits of a float of `width` bits encode, except infinities and NaNs.
 */
static double finite_number(uint64_t bits, int width, int fraction)
{
    const int bias = (1 << (width - fraction - 2)) - 1;
    const int exponent = (int)(bits >> fraction) & (2 * bias + 1);
    const int low = (int)bits & ((1 << fraction) - 1);
    const double size = exponent == 0 ? ldexp(low, 1 - bias - fraction)
                                      : ldexp((1 << fraction) + low, exponent - bias - fraction);
    return bits >> (width - 1) & 1 ? -size : size;
}

/* Returns the value of an integer of the type. */
static double integer_number(const struct ddp_dtype_info *info, uint64_t bits)
{
    const int unused = 64 - 8 * (int)info->size;
    const int64_t value = (int64_t)(bits << unused);
    return info->kind == DDP_SIGNED ? (double)(value >> unused) : (double)bits;
}

/* Returns the number that `bits` encode. */
static double number_of(enum ddp_dtype dtype, uint64_t bits)
{
    const double infinity =
        bits >> (8 * ddp_dtypes[dtype].size - 1) & 1 ? -(double)INFINITY : (double)INFINITY;
    uint32_t low = (uint32_t)bits;
    float f;
    double d;
    switch (dtype) {
    case DDP_F16:
        if ((bits & 0x7c00) == 0x7c00)
            return bits & 0x3ff ? (double)NAN : infinity;
        return finite_number(bits, 16, 10);
    case DDP_FP8_E5M2:
        if ((bits & 0x7c) == 0x7c)
            return bits & 3 ? (double)NAN : infinity;
        return finite_number(bits, 8, 2);
    case DDP_FP8_E4M3:
        return (bits & 0x7f) == 0x7f ? (double)NAN : finite_number(bits, 8, 3);
    case DDP_BF16:
        low <<= 16;
        /* fall through */
    case DDP_F32:
        memcpy(&f, &low, sizeof f);
        return f;
    case DDP_F64:
        memcpy(&d, &bits, sizeof d);
        return d;
    default:
        return integer_number(&ddp_dtypes[dtype], bits);
    }
}

/* Returns the largest relative error of one rounding in the type. */
static double unit_of(enum ddp_dtype dtype)
{
    return ldexp(1, -ddp_dtypes[dtype].digits);
}

/* Accepts results that differ from the exact average only by rounding: replaces each of them by the
 * expected bits, so that it counts as right. For n ranks, a value passes through at most n + 2
 * roundings: of 1/n, of its product, of n - 1 sums and of the result. The error of each rounding is
 * at most unit_of() times the sum of magnitudes divided by n (Higham, Accuracy and Stability of
 * Numerical Algorithms, 4.2). */
static void allow_roundings(struct job *job, size_t first, size_t n)
{
    const double ranks = job->ranks, allowed = (ranks + 2) * unit_of(job->dtype);
    memset(job->sum64, 0, n * sizeof *job->sum64);
    for (int r = 0; r < job->ranks; r++) {
        ddp_verify_values(&job->input, r, job->round, first, n, job->value);
        for (size_t j = 0; j < n; j++)
            job->sum64[j] += llabs((int64_t)job->value[j]);
    }
    for (size_t j = 0; j < n; j++) {
        const double got = number_of(job->dtype, bits_at(job, &job->got, j));
        if (fabs(got - job->expected[j] / ranks) <= allowed * (double)job->sum64[j] / ranks)
            memcpy((unsigned char *)&job->got + j * job->elem_bytes,
                   (unsigned char *)&job->answer + j * job->elem_bytes, job->elem_bytes);
    }
}

/* The first wrong element: its index, its expected bits and its received bits. */
struct finding {
    size_t element;
    uint64_t expected, got;
};

static void find_first(const struct job *job, size_t first, size_t n, struct finding *out)
{
    for (size_t j = 0; j < n; j++) {
        uint64_t got = bits_at(job, &job->got, j), expected = bits_at(job, &job->answer, j);
        if (got == expected)
            continue;
        *out = (struct finding){first + j, expected, got};
        return;
    }
}

/* Compares data[count] with the expected values, block by block. src: the rank whose input is
 * expected, or -1 for a reduction over all ranks. */
static int compare(struct job *job, int src, const void *data, size_t first, size_t count,
                   int64_t *wrong, struct ddp_err *err)
{
    struct finding finding = {0, 0, 0};
    int64_t total = 0;
    for (size_t done = 0, n; done < count; done += n) {
        size_t at = first + done;
        n = DDP_MIN(count - done, BLOCK - at % BLOCK);
        if (src < 0)
            predict_reduced(job, at, n);
        else
            predict_moved(job, src, at, n);
        memcpy(&job->got, (const char *)data + done * job->elem_bytes, n * job->elem_bytes);
        if (job->rounds)
            allow_roundings(job, at, n);
        uint32_t found = count_wrong(job, n);
        if (found > 0 && total == 0)
            find_first(job, at, n, &finding);
        total += found;
    }
    *wrong = total;
    if (total == 0)
        return 0;
    return ddp_fail(
        err, DDP_EDATA,
        "wrong data: rank %d, element %zu (%s %s): expected %.10g, got %.10g, xor 0x%0*llx; "
        "%lld of %zu elements differ",
        job->rank, finding.element, ddp_dtype_name(job->dtype), ddp_op_name(job->op),
        number_of(job->dtype, finding.expected), number_of(job->dtype, finding.got),
        (int)job->elem_bytes * 2, (unsigned long long)(finding.expected ^ finding.got),
        (long long)total, count);
}

void ddp_verify_fill(void *buf, size_t first, size_t count, enum ddp_dtype dtype, enum ddp_op op,
                     int rank, int ranks, uint64_t round)
{
    struct ddp_verify_input input = ddp_verify_input_of(dtype, op, ranks);
    size_t elem_bytes = ddp_dtype_size(dtype);
    int32_t value[BLOCK];
    union typed block;
    for (size_t done = 0, n; done < count; done += n) {
        size_t at = first + done;
        n = DDP_MIN(count - done, BLOCK - at % BLOCK);
        ddp_verify_values(&input, rank, round, at, n, value);
        encode(dtype, value, n, 1, input.scale, &block);
        memcpy((char *)buf + done * elem_bytes, &block, n * elem_bytes);
    }
}

static void start_job(struct job *job, enum ddp_dtype dtype, enum ddp_op op, int rank, int ranks,
                      uint64_t round)
{
    job->dtype = dtype;
    job->op = op;
    job->rank = rank;
    job->ranks = ranks;
    job->rounds = false;
    job->round = round;
    job->input = ddp_verify_input_of(dtype, op, ranks);
    job->elem_bytes = ddp_dtype_size(dtype);
}

int ddp_verify_reduced(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                       enum ddp_op op, int rank, int ranks, uint64_t round, int64_t *wrong,
                       struct ddp_err *err)
{
    struct job job;
    start_job(&job, dtype, op, rank, ranks, round);
    return compare(&job, -1, result, first, count, wrong, err);
}

int ddp_verify_averaged_first(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                              int rank, int ranks, uint64_t round, int64_t *wrong,
                              struct ddp_err *err)
{
    struct job job;
    start_job(&job, dtype, DDP_AVG, rank, ranks, round);
    job.rounds = (ranks & (ranks - 1)) != 0 && !ddp_dtype_is_integer(dtype);
    return compare(&job, -1, result, first, count, wrong, err);
}

int ddp_verify_moved(const void *data, size_t first, size_t count, enum ddp_dtype dtype,
                     enum ddp_op op, int rank, int src, int ranks, uint64_t round, int64_t *wrong,
                     struct ddp_err *err)
{
    struct job job;
    start_job(&job, dtype, op, rank, ranks, round);
    return compare(&job, src, data, first, count, wrong, err);
}
