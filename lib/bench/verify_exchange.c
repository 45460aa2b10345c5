/* Verifies compressed exchanges: computes which values must have been sent, received and kept. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "bench/verify.h"
#include "bench/verify_exchange.h"
#include "bench/verify_exchange_impl.h"
#include "comm/backend.h"

#define BLOCK              16384 /* elements that ranks exchange at a time */
#define OKTOPK_EXACT_STEPS 32
#define F16_TINIEST        24 /* 2^-24 is the smallest f16 above 0 */
#define F16_LARGEST        65504
/* oktopk selects among the sums. If sums have rounding errors, a sum that was not selected may
 * exceed a selected sum by this fraction. */
#define SLACK 1e-4f

_Static_assert(BLOCK % DDP_QUANT_BLOCK_MAX == 0, "ranks exchange whole blocks");

struct ddp_verify_exchange {
    struct ddp_compressed_setup setup;
    struct ddp_gradient *gradient;
    size_t first; /* index of the first element in the whole gradient */
    bool lists;   /* the exchange sends lists, not whole arrays */
    bool rounded; /* the exchange sends all values, rounded by `rounded` of the compressor */
    bool blocks;  /* the exchange sends quantised blocks */
    bool factors; /* the exchange sends factors of a matrix, except in its dense calls */
    bool exact;   /* oktopk selects exactly k sums in every call */
    bool rounds;  /* for an average, the library may divide the inputs, which rounds them */
    float scale;  /* 1/ranks for an average, else 1 */
    /* [n]: the expected residual; during an exchange, residual plus input (compress.h). */
    float *acc;
    float *expected_sent; /* [size][BLOCK]: the values that each rank must have sent */
    bool *sent;           /* [n], for lists: whether this rank must send the element */
    uint64_t calls;       /* number of exchanges before the next one to check */
    uint64_t round;       /* number of the step; selects the inputs (verify.h) */
    struct ddp_verify_input input;
    /* Dense inputs are integers times `unit`. `most`: largest magnitude of the integers; -1: no
     * limit. */
    float unit;
    int32_t most;
    float fine_unit;   /* if `rounded`, every second element of the input is a wider integer times
                        * fine_unit */
    bool rounded_sums; /* the inputs are gradients, so f32 sums may have rounding errors */
};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void ddp_verify_found(struct ddp_mismatch *f, const char *what, size_t element, float expected,
                      float got)
{
    if (f->count++ == 0)
        *f = (struct ddp_mismatch){1, element, what, expected, got};
}

/* Chooses a unit so small that no integer times this unit exceeds `clip`, and limits the integers
 * if no unit is small enough. A clipped value may have so many bits that its sums must be rounded.
 * Such sums could not be checked bit for bit. */
static void fit_clip(struct ddp_verify_exchange *v, double clip)
{
    int exponent = 0;
    v->unit = 1;
    v->most = -1;
    if (isnan(clip))
        return;
    while (ldexp(1 << v->input.bits, -exponent) > clip && exponent < F16_TINIEST)
        exponent++;
    v->unit = ldexpf(1, -exponent);
    v->most = (int32_t)DDP_MIN(clip / v->unit, 1 << 30);
}

/* If `rounded`, every second element of the input is an integer with this number of bits, times
 * fine_unit. The sent value has fewer bits, so a part of the integer stays in the residual. */
#define FINE_BITS 20

/* Chooses fine_unit such that many values exceed the clip, if there is one, but the sum over all
 * ranks stays far below the largest f16. */
static void fit_fine(struct ddp_verify_exchange *v, double clip)
{
    const double largest = fmin(isnan(clip) ? 1 : 3 * clip, 30000.0 / v->setup.comm->size);
    v->fine_unit = (float)ldexp(1, ilogb(largest) - FINE_BITS);
}

/* Sets the members that differ for an exchange on a device. */
static void fit_device(struct ddp_verify_exchange *v)
{
    const struct ddp_compressed_setup *s = &v->setup;
    v->exact = true;
    v->rounds = s->average && s->spec.compressor->wire_dtype == DDP_F32 &&
                (s->comm->backend->caps & DDP_CAP_AVG_FIRST);
}

int ddp_verify_exchange_create(const struct ddp_compressed_setup *setup,
                               struct ddp_gradient *gradient, size_t first,
                               struct ddp_verify_exchange **out, struct ddp_err *err)
{
    const struct ddp_compressor *compressor = setup->spec.compressor;
    const int ranks = setup->comm->size;
    struct ddp_verify_exchange *v;
    int rc;
    DDP_TRY(DDP_NEW(&v, 1, err));
    v->setup = *setup;
    v->gradient = gradient;
    v->first = first;
    v->lists = compressor->combine == DDP_COMBINE_GATHER;
    v->rounded = compressor->rounded != NULL;
    v->blocks = compressor->combine == DDP_COMBINE_BLOCKS;
    v->factors =
        compressor->combine == DDP_COMBINE_ROUNDS && ddp_verify_factors_sent(setup) < setup->n;
    v->scale = setup->average ? 1.0f / (float)ranks : 1;
    if (setup->device)
        fit_device(v);
    DDP_TRY_GOTO(DDP_NEW(&v->acc, setup->n, err), err_verify);
    DDP_TRY_GOTO(DDP_NEW(&v->expected_sent, (size_t)ranks * BLOCK, err), err_verify);
    if (v->lists) {
        DDP_TRY_GOTO(DDP_NEW(&v->sent, setup->n, err), err_verify);
    } else {
        const double argument = setup->spec.argument;
        const double clip =
            v->rounded && !v->blocks && !isnan(argument)
                ? fmin(argument * (double)v->scale, ddp_compress_f16_limit(v->scale))
                : (double)NAN;
        enum ddp_dtype wire = compressor->wire_dtype == DDP_BF16 ? DDP_BF16 : DDP_F16;
        v->input = ddp_verify_input_of(wire, DDP_SUM, ranks);
        fit_clip(v, clip);
        fit_fine(v, clip);
    }
    *out = v;
    return 0;

err_verify:
    ddp_verify_exchange_destroy(v);
    return rc;
}

void ddp_verify_exchange_destroy(struct ddp_verify_exchange *v)
{
    if (!v)
        return;
    free(v->acc);
    free(v->expected_sent);
    free(v->sent);
    free(v);
}

/* Computes the integers of elements [first, first + n) of one rank's input. The caller ensures that
 * these elements lie in one block (verify.h). */
static void integers(const struct ddp_verify_exchange *v, int rank, size_t first, size_t n,
                     int32_t *value)
{
    ddp_verify_values(&v->input, rank, v->round, first, n, value);
    for (size_t j = 0; v->most >= 0 && j < n; j++)
        value[j] = DDP_MIN(DDP_MAX(value[j], -v->most), v->most);
}

/* Writes the input of a dense exchange: integers times v->unit. An average may divide before the
 * sum, so its values are multiplied by the number of ranks, and the quotients are exact. If
 * `rounded` is set, every second value is an integer of FINE_BITS bits times fine_unit, and may
 * exceed the clip. */
static void input_integers(const struct ddp_verify_exchange *v, float *data)
{
    const struct ddp_verify_input fine = {.range = DDP_VERIFY_SIGNED,
                                          .bits = FINE_BITS,
                                          .active = v->setup.comm->size,
                                          .ranks = v->setup.comm->size,
                                          .factor = 1};
    const float divisor = v->setup.average ? (float)v->setup.comm->size : 1;
    const float factor = v->unit * divisor;
    int32_t value[DDP_VERIFY_BLOCK];
    for (size_t done = 0, n; done < v->setup.n; done += n) {
        size_t at = v->first + done;
        n = DDP_MIN(v->setup.n - done, DDP_VERIFY_BLOCK - at % DDP_VERIFY_BLOCK);
        integers(v, v->setup.comm->rank, at, n, value);
        for (size_t j = 0; j < n; j++)
            data[done + j] = (float)value[j] * factor;
        if (!v->rounded)
            continue;
        ddp_verify_values(&fine, v->setup.comm->rank, v->round, at, n, value);
        for (size_t j = 1 - at % 2; j < n; j += 2)
            data[done + j] = (float)value[j] * v->fine_unit * divisor;
    }
}

int ddp_verify_exchange_draw(struct ddp_verify_exchange *v, uint64_t step, float *data,
                             struct ddp_err *err)
{
    const struct ddp_comm *comm = v->setup.comm;
    v->round = step;
    v->rounded_sums = false;
    if (!v->lists) {
        input_integers(v, data);
        return 0;
    }
    DDP_TRY(ddp_gradient_draw(v->gradient, comm->rank, comm->size, step, v->first, data, v->setup.n,
                              err));
    ddp_gradient_round(v->gradient, data, v->setup.n);
    return 0;
}

/* Adds the inputs data [n] of elements [begin, begin + n) to the expected residual, in the way that
 * compress.h defines. */
static void accumulate(struct ddp_verify_exchange *v, size_t begin, size_t n, const float *data)
{
    const float scale = v->rounded ? v->scale : 1;
    float *acc = v->acc + begin;
    for (size_t i = 0; i < n; i++) {
        const float sum = data[i] * scale + acc[i];
        acc[i] = isnan(sum) ? (float)NAN : sum; /* every NaN gets the same bits */
    }
}

void ddp_verify_exchange_expect(struct ddp_verify_exchange *v, const float *data)
{
    accumulate(v, 0, v->setup.n, data);
}

int ddp_verify_exchange_input(struct ddp_verify_exchange *v, uint64_t step, float *data,
                              struct ddp_err *err)
{
    DDP_TRY(ddp_verify_exchange_draw(v, step, data, err));
    ddp_verify_exchange_expect(v, data);
    return 0;
}

void ddp_verify_exchange_adopt(struct ddp_verify_exchange *v, const float *residual, uint64_t calls)
{
    if (residual != NULL)
        memcpy(v->acc, residual, v->setup.n * sizeof *v->acc);
    else
        memset(v->acc, 0, v->setup.n * sizeof *v->acc);
    v->calls = calls;
}

int ddp_verify_exchange_expect_gradient(struct ddp_verify_exchange *v, uint64_t step,
                                        struct ddp_err *err)
{
    const struct ddp_comm *comm = v->setup.comm;
    float data[BLOCK];
    v->rounded_sums = true;
    for (size_t done = 0, n; done < v->setup.n; done += n) {
        n = DDP_MIN(v->setup.n - done, (size_t)BLOCK);
        DDP_TRY(ddp_gradient_draw(v->gradient, comm->rank, comm->size, step, v->first + done, data,
                                  n, err));
        accumulate(v, done, n, data);
    }
    return 0;
}

/* True if `got` is the expected sum. If the library may have divided before the sum, rounding
 * errors are accepted as in verify.c. magnitudes: sum of absolute values. */
static bool is_integer_sum(const struct ddp_verify_exchange *v, float expected, int32_t magnitudes,
                           float got)
{
    if (!v->rounds)
        return got == expected;
    return fabs((double)got - (double)expected) <=
           (v->setup.comm->size + 2) * 0x1p-24 * (double)magnitudes * (double)v->unit;
}

/* Checks an exchange of f32 arrays whose input ddp_verify_exchange_draw wrote. */
static void check_integers(struct ddp_verify_exchange *v, const float *data, struct ddp_mismatch *f)
{
    const int ranks = v->setup.comm->size;
    int32_t value[DDP_VERIFY_BLOCK], sum[DDP_VERIFY_BLOCK], magnitudes[DDP_VERIFY_BLOCK];
    for (size_t done = 0, n; done < v->setup.n; done += n) {
        size_t at = v->first + done;
        n = DDP_MIN(v->setup.n - done, DDP_VERIFY_BLOCK - at % DDP_VERIFY_BLOCK);
        memset(sum, 0, sizeof sum);
        memset(magnitudes, 0, sizeof magnitudes);
        for (int r = 0; r < ranks; r++) {
            integers(v, r, at, n, value);
            for (size_t j = 0; j < n; j++) {
                sum[j] += value[j];
                magnitudes[j] += abs(value[j]);
            }
        }
        for (size_t j = 0; j < n; j++) {
            float expected = (float)sum[j] * v->unit;
            if (!is_integer_sum(v, expected, magnitudes[j], data[done + j]))
                ddp_verify_found(f, "sum", at + j, expected, data[done + j]);
        }
    }
}

/* Returns the value of the lowest bit that is set in x, or INFINITY if x is 0. */
static double lowest_bit(float x)
{
    int exponent;
    const int32_t mantissa = (int32_t)ldexpf(frexpf(x, &exponent), 24);
    return mantissa == 0 ? INFINITY : ldexp(mantissa & -mantissa, exponent - 24);
}

/* The sum of the values that all ranks must have sent for one element. */
struct sum {
    double value, magnitudes; /* magnitudes: sum of absolute values */
};

/* Returns the sum of `size` values, which lie `stride` elements apart. */
static struct sum sum_of(const float *values, int size, size_t stride)
{
    struct sum sum = {0, 0};
    for (int r = 0; r < size; r++) {
        sum.value += (double)values[(size_t)r * stride];
        sum.magnitudes += fabs((double)values[(size_t)r * stride]);
    }
    return sum;
}

/* True if these values can be added in any order without a rounding error, in a type with `digits`
 * bits. */
static bool sums_exactly(const float *values, int size, size_t stride, double magnitudes,
                         int digits)
{
    double unit = INFINITY;
    for (int r = 0; r < size; r++)
        unit = fmin(unit, lowest_bit(values[(size_t)r * stride]));
    return magnitudes <= ldexp(unit, digits);
}

/* True if `got` is the sum of all ranks' values. The sum must be exact if no partial sum needs
 * rounding in the type in which values are sent. Otherwise `got` may have an error of ranks + 1
 * roundings. If the number of ranks is not a power of two, two kinds of averages may have the same
 * error: those of oktopk, which divides after the sum, and those of f32 arrays, which a library may
 * divide before the sum. If a value is infinite or NaN, `got` must be infinite or NaN. `got` may
 * also be infinite or NaN if the sum of the magnitudes reaches the largest number of the type. */
static bool is_sum(const struct ddp_verify_exchange *v, const float *values, size_t stride,
                   struct sum sum, float got)
{
    const int ranks = v->setup.comm->size;
    const enum ddp_dtype wire = v->rounded ? v->setup.spec.compressor->wire_dtype : DDP_F32;
    const int digits = ddp_dtypes[wire].digits;
    const bool divided =
        v->scale != 1 && (v->setup.spec.compressor->global_topk || (!v->lists && !v->rounded));
    const bool whole = !divided || (ranks & (ranks - 1)) == 0;
    if ((double)got == sum.value)
        return true;
    if (isfinite(got) && !isfinite(sum.value))
        return false;
    if (!isfinite(got))
        return !(sum.magnitudes < (wire == DDP_F16 ? F16_LARGEST : FLT_MAX));
    const double scale = divided ? (double)v->scale : 1;
    if (whole && sums_exactly(values, ranks, stride, sum.magnitudes / scale, digits))
        return false;
    const double tiniest = wire == DDP_F16 ? ldexp(1, -F16_TINIEST) : FLT_TRUE_MIN;
    return fabs((double)got - sum.value) <=
           (ranks + 1) * (ldexp(sum.magnitudes, -digits) + tiniest);
}

/* The second selection of oktopk, among the sums. */
struct reselection {
    size_t taken;      /* sums that were selected */
    size_t candidates; /* sums that are not 0 */
    size_t zeros;      /* sums that are 0; the result does not show whether they were selected */
    float smallest_taken,
        largest_left; /* magnitudes of the smallest selected sum and of the largest other sum */
};

/* Counts `sum` in *reselection. Returns whether the second selection took the sum. The result `got`
 * must then equal `sum`. The result does not show whether a sum of 0 was taken. The function counts
 * such a sum only in `zeros`, and returns whether the result is 0. */
static bool is_reselected(struct reselection *reselection, float sum, float got)
{
    if (sum == 0) {
        reselection->zeros++;
        return got == 0;
    }
    reselection->candidates++;
    if (got == 0) {
        reselection->largest_left = fmaxf(reselection->largest_left, fabsf(sum));
        return false;
    }
    reselection->taken++;
    reselection->smallest_taken = fminf(reselection->smallest_taken, fabsf(sum));
    return true;
}

static void check_residual(const struct ddp_verify_exchange *v, size_t i, const float *residual,
                           struct ddp_mismatch *f)
{
    if (residual != NULL && bits_of(residual[i]) != bits_of(v->acc[i]) &&
        !(residual[i] == 0 && v->acc[i] == 0))
        ddp_verify_found(f, "residual", v->first + i, v->acc[i], residual[i]);
}

/* Checks elements [begin, begin + n) of an exchange of lists. v->expected_sent holds the values
 * that each rank must have sent for them. */
static void check_block(struct ddp_verify_exchange *v, size_t begin, size_t n,
                        struct reselection *reselection, const float *data, const float *residual,
                        struct ddp_mismatch *f)
{
    const bool global = v->setup.spec.compressor->global_topk;
    for (size_t j = 0; j < n; j++) {
        size_t i = begin + j;
        struct sum sum = sum_of(v->expected_sent + j, v->setup.comm->size, n);
        if (global) { /* otherwise each value was scaled before it was sent */
            sum.value *= (double)v->scale;
            sum.magnitudes *= (double)v->scale;
        }
        const bool taken = !global || is_reselected(reselection, (float)sum.value, data[i]);
        if (taken ? !is_sum(v, v->expected_sent + j, n, sum, data[i]) : data[i] != 0)
            ddp_verify_found(f, "sum", v->first + i, (float)sum.value, data[i]);
        /* If the sum of the ranks' values is 0, the result does not show whether the sum was taken.
         * Any residual is then accepted. */
        bool unknown = global && v->sent[i] && sum.value == 0;
        if (unknown && residual)
            v->acc[i] = residual[i];
        else if (v->sent[i] && taken)
            v->acc[i] = 0;
        check_residual(v, i, residual, f);
    }
}

/* Computes the residual of element i after the value `sent`, and checks it. */
static void check_rest(struct ddp_verify_exchange *v, size_t i, float sent, const float *residual,
                       struct ddp_mismatch *f)
{
    const float left = v->acc[i] - sent;
    v->acc[i] = v->setup.feedback && isfinite(left) ? left : 0;
    check_residual(v, i, residual, f);
}

/* Checks elements [begin, begin + n) of an exchange of arrays, like check_block. sent [n]: the
 * values that this rank must have sent. */
static void check_array(struct ddp_verify_exchange *v, size_t begin, size_t n, const float *sent,
                        const float *data, const float *residual, struct ddp_mismatch *f)
{
    for (size_t j = 0; j < n; j++) {
        const size_t i = begin + j;
        struct sum sum = sum_of(v->expected_sent + j, v->setup.comm->size, n);
        if (!v->rounded) { /* f32 values are sent unscaled */
            sum.value *= (double)v->scale;
            sum.magnitudes *= (double)v->scale;
        }
        if (!is_sum(v, v->expected_sent + j, n, sum, data[i]))
            ddp_verify_found(f, "sum", v->first + i, (float)sum.value, data[i]);
        check_rest(v, i, sent[j], residual, f);
    }
}

/* Checks elements [begin, begin + n) of an exchange of quantised blocks, like check_array. The
 * result is known bit for bit, because the sent values are added in the order of the ranks. In an
 * all-reduce of two phases, the sums are then rounded. */
static void check_blocks(struct ddp_verify_exchange *v, size_t begin, size_t n, const float *sent,
                         const float *data, const float *residual, struct ddp_mismatch *f)
{
    const struct ddp_compress_spec *spec = &v->setup.spec;
    float sum[BLOCK], rounded[BLOCK];
    const float *expected = spec->compressor->two_phase ? rounded : sum;
    for (size_t j = 0; j < n; j++) {
        sum[j] = v->expected_sent[j];
        for (int r = 1; r < v->setup.comm->size; r++)
            sum[j] += v->expected_sent[(size_t)r * n + j];
    }
    const uint64_t key = ddp_compress_key(v->setup.seed, v->setup.comm->size, v->calls);
    spec->compressor->rounded(spec, 1, key, begin, sum, n, rounded);
    for (size_t j = 0; j < n; j++) {
        const size_t i = begin + j;
        if (data[i] != expected[j] && !(isnan(data[i]) && isnan(expected[j])))
            ddp_verify_found(f, "sum", v->first + i, expected[j], data[i]);
        check_rest(v, i, sent[j], residual, f);
    }
}

/* Checks how many sums oktopk selected. In a call that need not be exact, a CPU uses the last
 * threshold again (sparse_oktopk.c). The CPU may then select at most 2k sums. It must select at
 * least two thirds of the minimum of k and the number of sums that are not 0. For this lower limit,
 * sums of 0 count as selected. No selected sum may be smaller in magnitude than a sum that was left
 * out. */
static void check_reselection(const struct ddp_verify_exchange *v,
                              const struct reselection *reselection, size_t k,
                              struct ddp_mismatch *f)
{
    const bool exact = v->exact || v->calls % OKTOPK_EXACT_STEPS == 0;
    const size_t want = DDP_MIN(k, reselection->candidates);
    if (exact ? reselection->taken != want
              : reselection->taken > 2 * k ||
                    3 * (reselection->taken + reselection->zeros) < 2 * want)
        ddp_verify_found(f, "number of sums that were selected", v->first, (float)want,
                         (float)reselection->taken);
    else if (reselection->smallest_taken * (v->rounded_sums ? 1 + SLACK : 1) <
             reselection->largest_left)
        ddp_verify_found(f, "smallest sum that was selected", v->first, reselection->largest_left,
                         reselection->smallest_taken);
}

/* Sets v->sent with the compressor's function `reference`. Returns the number of entries. */
static size_t choose(struct ddp_verify_exchange *v)
{
    const struct ddp_compress_spec *spec = &v->setup.spec;
    size_t count = 0;
    spec->compressor->reference(spec, v->acc, v->setup.n, v->calls, v->sent);
    for (size_t i = 0; i < v->setup.n; i++)
        count += v->sent[i];
    return count;
}

static int check_lists(struct ddp_verify_exchange *v, const float *data, const float *residual,
                       double values_sent, struct ddp_mismatch *f, struct ddp_err *err)
{
    const struct ddp_compress_spec *spec = &v->setup.spec;
    const size_t n = v->setup.n, k = spec->compressor->bound(spec, n);
    struct reselection reselection = {.smallest_taken = INFINITY};
    /* Values are scaled before the sum. A global selection scales the sums instead. */
    const float scale = spec->compressor->global_topk ? 1 : v->scale;
    const size_t count = choose(v);
    if (values_sent != (double)count)
        ddp_verify_found(f, "number of values sent", v->first, (float)count, (float)values_sent);
    for (size_t done = 0, part; done < n; done += part) {
        float mine[BLOCK];
        part = DDP_MIN(n - done, (size_t)BLOCK);
        for (size_t j = 0; j < part; j++)
            mine[j] = v->sent[done + j] ? v->acc[done + j] * scale : 0;
        DDP_TRY(ddp_comm_allgather_bytes(v->setup.comm, mine, v->expected_sent, part * sizeof *mine,
                                         err));
        check_block(v, done, part, &reselection, data, residual, f);
    }
    if (spec->compressor->global_topk)
        check_reselection(v, &reselection, k, f);
    if (!v->setup.feedback)
        memset(v->acc, 0, n * sizeof *v->acc);
    return 0;
}

/* Checks an exchange of arrays, from the values that all ranks must have sent. */
static int check_arrays(struct ddp_verify_exchange *v, const float *data, const float *residual,
                        struct ddp_mismatch *f, struct ddp_err *err)
{
    const struct ddp_compress_spec *spec = &v->setup.spec;
    const uint64_t key = ddp_compress_key(v->setup.seed, v->setup.comm->rank, v->calls);
    for (size_t done = 0, n; done < v->setup.n; done += n) {
        float sent[BLOCK];
        n = DDP_MIN(v->setup.n - done, (size_t)BLOCK);
        if (v->rounded)
            spec->compressor->rounded(spec, v->scale, key, done, v->acc + done, n, sent);
        else
            memcpy(sent, v->acc + done, n * sizeof *sent);
        DDP_TRY(
            ddp_comm_allgather_bytes(v->setup.comm, sent, v->expected_sent, n * sizeof *sent, err));
        if (v->blocks)
            check_blocks(v, done, n, sent, data, residual, f);
        else
            check_array(v, done, n, sent, data, residual, f);
    }
    return 0;
}

/* Checks an exchange of factors. `rounds`: see ddp_verify_exchange_check. */
static int check_factors(struct ddp_verify_exchange *v, const float *data, const float *residual,
                         const float *rounds, double values_sent, struct ddp_mismatch *f,
                         struct ddp_err *err)
{
    const size_t count = ddp_verify_factors_sent(&v->setup);
    const float share = v->setup.average ? 1 : 1 / (float)v->setup.comm->size;
    const struct ddp_factor_check check = {.setup = &v->setup,
                                           .first = v->first,
                                           .acc = v->acc,
                                           .data = data,
                                           .rounds = rounds,
                                           .block = BLOCK,
                                           .gathered = v->expected_sent};
    if (values_sent != (double)count)
        ddp_verify_found(f, "number of values sent", v->first, (float)count, (float)values_sent);
    DDP_TRY(ddp_verify_factors(&check, f, err));
    for (size_t i = 0; i < v->setup.n; i++)
        check_rest(v, i, data[i] * share, residual, f);
    return 0;
}

/* Sets acc to 0 after an exchange of f32 arrays, because such an exchange has no residual. */
static void forget(struct ddp_verify_exchange *v)
{
    memset(v->acc, 0, v->setup.n * sizeof *v->acc);
}

int ddp_verify_exchange_check(struct ddp_verify_exchange *v, const float *data,
                              const float *residual, const float *rounds, double values_sent,
                              struct ddp_err *err)
{
    struct ddp_mismatch f = {0};
    const bool factors = v->factors && v->calls >= (uint64_t)v->setup.spec.dense_runs;
    if (factors)
        DDP_TRY(check_factors(v, data, residual, rounds, values_sent, &f, err));
    else if (v->lists)
        DDP_TRY(check_lists(v, data, residual, values_sent, &f, err));
    else if (v->rounded || v->rounded_sums)
        DDP_TRY(check_arrays(v, data, residual, &f, err));
    else
        check_integers(v, data, &f);
    if (!v->lists && !v->rounded && !factors)
        forget(v);
    v->calls++;
    int rc = ddp_verify_same_on_all_ranks(v->setup.comm, data, v->setup.n, v->setup.spec.text, err);
    if (f.count == 0)
        return rc;
    *err = DDP_ERR_INIT; /* The specific difference is more helpful than "ranks differ". */
    return ddp_fail(err, DDP_EDATA,
                    "wrong data: rank %d, element %zu (%s, %s): expected %.10g, got %.10g, xor "
                    "0x%08x; %zu differ",
                    v->setup.comm->rank, f.element, v->setup.spec.text, f.what, (double)f.expected,
                    (double)f.got, bits_of(f.expected) ^ bits_of(f.got), f.count);
}

/* The functions below check that the bits are the same on all ranks. */

#define EXCHANGED 1024 /* elements that ranks exchange at a time to find a difference */

/* Returns a hash of the bits. It combines eight independent FNV-1a hashes (Fowler, Noll, Vo) of
 * 32-bit words, so that their multiplications overlap. */
static uint64_t hash_of(const float *data, size_t n)
{
    uint64_t lane[8];
    for (int i = 0; i < 8; i++)
        lane[i] = UINT64_C(0xCBF29CE484222325) + (uint64_t)i;
    for (size_t i = 0; i < n; i++)
        lane[i % 8] = (lane[i % 8] ^ bits_of(data[i])) * UINT64_C(0x100000001B3);
    for (int i = 1; i < 8; i++)
        lane[0] = (lane[0] ^ lane[i]) * UINT64_C(0x100000001B3);
    return lane[0];
}

/* Finds an element that differs from rank 0's. Compares EXCHANGED elements at a time, and stops at
 * the first difference. Fails on all ranks with a message that names this element. all
 * [size][EXCHANGED]: scratch. Collective. */
static int find_difference(struct ddp_comm *comm, const float *data, size_t n, float *all,
                           const char *what, struct ddp_err *err)
{
    for (size_t done = 0, part; done < n; done += part) {
        part = DDP_MIN(n - done, (size_t)EXCHANGED);
        DDP_TRY(ddp_comm_allgather_bytes(comm, data + done, all, part * sizeof *all, err));
        for (int r = 1; r < comm->size; r++) {
            for (size_t j = 0; j < part; j++) {
                uint32_t expected = bits_of(all[j]), got = bits_of(all[(size_t)r * part + j]);
                if (got == expected)
                    continue;
                return ddp_fail(
                    err, DDP_EDATA,
                    "wrong data: rank %d, element %zu (%s, differs from rank 0): expected "
                    "%.10g, got %.10g, xor 0x%08x",
                    r, done + j, what, (double)all[j], (double)all[(size_t)r * part + j],
                    expected ^ got);
            }
        }
    }
    return ddp_fail(err, DDP_EINTERNAL, "hashes of equal results differ");
}

int ddp_verify_same_on_all_ranks(struct ddp_comm *comm, const float *data, size_t n,
                                 const char *what, struct ddp_err *err)
{
    const size_t size = (size_t)comm->size;
    uint64_t mine = hash_of(data, n), *hashes = ddp_calloc(size, sizeof *hashes);
    float *all = ddp_calloc(size * EXCHANGED, sizeof *all);
    bool differ = false;
    int rc = hashes && all ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory to compare %zu ranks", size);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), out);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(comm, &mine, hashes, sizeof mine, err), out);
    for (size_t r = 1; r < size; r++)
        differ = differ || hashes[r] != hashes[0];
    if (differ)
        rc = find_difference(comm, data, n, all, what, err);
out:
    free(hashes);
    free(all);
    return rc;
}
