/* Draws gradients with a table of the distribution's quantiles, or reads them from files. Each
 * drawn block of elements is seeded by a hash of (seed, rank, step, block). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/npy.h"
#include "base/rng.h"
#include "bench/gradient.h"

#define CELL_BITS     12
#define CELLS         (1 << CELL_BITS)
#define FRACTION_BITS (31 - CELL_BITS) /* bits of the position in a cell; 1 bit is the sign */
#define BLOCK         4096             /* elements that share a seed */
#define WEYL          0x9E3779B9u      /* 2^32 / golden ratio, odd */
#define ROUND_PER_RMS 64
#define ROUND_MOST    4096

struct ddp_gradient {
    double (*tail)(double m); /* P(|X| > m); NULL: recorded gradients */
    /* quantile[c], c < CELLS: a fraction c/CELLS of all magnitudes lies below this value. A cell of
     * the table lies between two adjacent values. The last cell has no upper end. Values in it are
     * drawn by inverting the tail. */
    float quantile[CELLS + 1];
    uint64_t seed;
    float step; /* unit of ddp_gradient_round */
    struct ddp_string_list files;
    struct ddp_npy npy[DDP_OPT_LIST_MAX];
};

/* P(|X| > m) for a standard normal X. */
static double normal_tail(double m)
{
    return erfc(m * M_SQRT1_2);
}

/* P(|X| > m) for X of Student's t distribution with 3 degrees of freedom (closed form: Johnson,
 * Kotz & Balakrishnan, Continuous Univariate Distributions 2, chapter 28). */
static double student_tail(double m)
{
    double x = m / sqrt(3);
    return m > 0 ? M_2_PI * (atan(1 / x) - x / (1 + x * x)) : 1;
}

static const struct {
    const char *name;
    double (*tail)(double m);
    double deviation;
} distributions[] = {
    {"normal", normal_tail, 1},
    {"heavy-tail", student_tail, 1.7320508075688772},
};

static const char *source_name(const void *ctx, int i)
{
    (void)ctx;
    return i < (int)DDP_COUNT_OF(distributions) ? distributions[i].name : NULL;
}

static int find_distribution(const char *name)
{
    for (int i = 0; i < (int)DDP_COUNT_OF(distributions); i++) {
        if (strcmp(distributions[i].name, name) == 0)
            return i;
    }
    return -1;
}

static bool is_file(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

int ddp_gradient_check(const struct ddp_string_list *source, struct ddp_err *err)
{
    for (int i = 0; i < source->n; i++) {
        const char *name = source->v[i];
        if (is_file(name))
            continue;
        if (find_distribution(name) < 0) {
            ddp_fail(err, DDP_EUSAGE,
                     "--gradient '%.128s' is neither a distribution nor a file FILE.npy", name);
            return ddp_hint_nearest(err, name, source_name, NULL,
                                    "legal: normal, heavy-tail, FILE.npy[,...]");
        }
        if (source->n > 1)
            return ddp_fail(err, DDP_EUSAGE,
                            "--gradient '%s' cannot be combined with other sources; only files can",
                            name);
    }
    return 0;
}

/* Returns the m with P(|X| > m) == p, for 0 < p <= 1, by bisection. */
static double invert(double (*tail)(double m), double p)
{
    double low = 0, high = 1;
    while (tail(high) > p)
        high *= 2;
    for (int i = 0; i < 48; i++) { /* 48 halvings come close to double precision */
        double middle = (low + high) / 2;
        if (tail(middle) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Returns the unit of rounding for values with this root mean square. */
static float step_for(double rms)
{
    int exponent = isfinite(rms) && rms > 0 ? ilogb(rms / ROUND_PER_RMS) : 0;
    return ldexpf(1, DDP_MIN(DDP_MAX(exponent, -100), 60));
}

static double rms_of(const float *x, size_t n)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        sum += (double)x[i] * x[i];
        count++;
    }
    return count ? sqrt(sum / (double)count) : 0;
}

/* Opens the files. The unit of rounding must be equal on all ranks, so every rank computes it from
 * the first values of the first file. */
static int open_files(struct ddp_gradient *g, struct ddp_err *err)
{
    float sample[BLOCK];
    size_t n;
    for (int i = 0; i < g->files.n; i++) {
        DDP_TRY(ddp_npy_open(g->files.v[i], &g->npy[i], err));
        if (g->npy[i].rows == 0)
            return ddp_fail(err, DDP_EINPUT, "'%s' contains no gradient", g->files.v[i]);
    }
    n = DDP_MIN(g->npy[0].columns, (size_t)BLOCK);
    DDP_TRY(ddp_npy_read(&g->npy[0], 0, 0, sample, n, err));
    g->step = step_for(rms_of(sample, n));
    return 0;
}

int ddp_gradient_create(const struct ddp_string_list *source, uint64_t seed,
                        struct ddp_gradient **out, struct ddp_err *err)
{
    DDP_TRY(ddp_gradient_check(source, err));
    struct ddp_gradient *g;
    DDP_TRY(DDP_NEW(&g, 1, err));
    g->seed = seed;
    if (source->n > 0 && is_file(source->v[0])) {
        g->files = *source;
        int rc = open_files(g, err);
        if (rc != 0) {
            ddp_gradient_destroy(g);
            return rc;
        }
    } else {
        int d = source->n > 0 ? find_distribution(source->v[0]) : 0;
        g->tail = distributions[d].tail;
        g->step = step_for(distributions[d].deviation);
        for (int c = 1; c < CELLS; c++)
            g->quantile[c] = (float)invert(g->tail, 1 - (double)c / CELLS);
        g->quantile[CELLS] = g->quantile[CELLS - 1];
    }
    *out = g;
    return 0;
}

void ddp_gradient_destroy(struct ddp_gradient *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->files.n; i++)
        ddp_npy_close(&g->npy[i]);
    free(g);
}

/* Mixes 32 bits, with the multipliers of lowbias32 (C. Wellons, hash-prospector, 2018). */
static inline uint32_t mix32(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* Draws elements [offset, offset + n) of the block with this seed. */
static void draw_block(const struct ddp_gradient *g, uint32_t seed, size_t offset, float *out,
                       size_t n)
{
    const uint32_t fraction_mask = (1u << FRACTION_BITS) - 1;
    const float unit = 1.0f / (1u << FRACTION_BITS);
    for (size_t j = 0; j < n; j++) {
        uint32_t bits = mix32(seed + (uint32_t)(offset + j) * WEYL), sized;
        uint32_t cell = (bits >> FRACTION_BITS) & (CELLS - 1);
        float low = g->quantile[cell], high = g->quantile[cell + 1];
        float size = low + (high - low) * ((float)(bits & fraction_mask) * unit);
        memcpy(&sized, &size, sizeof sized);
        sized |= bits & 0x80000000u;
        memcpy(&out[j], &sized, sizeof sized);
    }
    for (size_t j = 0; j < n; j++) {
        uint32_t bits = mix32(seed + (uint32_t)(offset + j) * WEYL);
        if (((bits >> FRACTION_BITS) & (CELLS - 1)) != CELLS - 1)
            continue;
        double above = ((double)(fraction_mask - (bits & fraction_mask)) + 0.5) * unit / CELLS;
        out[j] = copysignf((float)invert(g->tail, above), out[j]);
    }
}

static void draw(const struct ddp_gradient *g, int rank, uint64_t step, size_t first, float *out,
                 size_t n)
{
    uint64_t stream = ddp_mix64(ddp_mix64(g->seed) + ddp_mix64(step) + (uint64_t)rank);
    for (size_t done = 0, part; done < n; done += part) {
        size_t at = first + done;
        uint32_t seed = (uint32_t)(ddp_mix64(stream + at / BLOCK) >> 32);
        part = DDP_MIN(n - done, BLOCK - at % BLOCK);
        draw_block(g, seed, at % BLOCK, out + done, part);
    }
}

/* Reads the recorded row of (rank, step); see base/npy.h. */
static int replay(struct ddp_gradient *g, int rank, int ranks, uint64_t step, size_t first,
                  float *out, size_t n, struct ddp_err *err)
{
    const int files = g->files.n;
    const struct ddp_npy *npy = &g->npy[rank % files];
    const uint64_t sharing = (uint64_t)((ranks + files - 1) / files);
    const size_t row = (size_t)((step * sharing + (uint64_t)(rank / files)) % npy->rows);
    for (size_t done = 0, part; done < n; done += part) {
        size_t column = (first + done) % npy->columns;
        part = DDP_MIN(n - done, npy->columns - column);
        DDP_TRY(ddp_npy_read(npy, row, column, out + done, part, err));
    }
    return 0;
}

int ddp_gradient_draw(struct ddp_gradient *g, int rank, int ranks, uint64_t step, size_t first,
                      float *out, size_t n, struct ddp_err *err)
{
    if (!g->tail)
        return replay(g, rank, ranks, step, first, out, n, err);
    draw(g, rank, step, first, out, n);
    return 0;
}

void ddp_gradient_round(const struct ddp_gradient *g, float *x, size_t n)
{
    const float most = ROUND_MOST, inverse = 1 / g->step;
    for (size_t i = 0; i < n; i++) {
        float multiples = rintf(x[i] * inverse);
        multiples = multiples > most ? most : multiples < -most ? -most : multiples;
        x[i] = multiples == multiples ? multiples * g->step : 0;
    }
}

float ddp_gradient_step(const struct ddp_gradient *g)
{
    return g->step;
}
