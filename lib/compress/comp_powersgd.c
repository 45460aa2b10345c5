/* Compressor "powersgd": low-rank approximation of the mean gradient, in two rounds.
 *
 * Each tensor is a matrix M [rows][cols], which is the gradient plus the residual. R is the
 * argument. Q [cols][R] and P [rows][R] are the factors of the approximation. Each sum is over all
 * ranks.
 *
 *   round 0   Q = orthonormal columns of the last Q', or of random numbers;  P = sum of M Q
 *   round 1   P = orthonormal columns of P;  Q' = sum of M^T P
 *   result    P Q'^T, divided by the number of ranks for an average
 *   residual  M minus P Q'^T / (number of ranks)
 *
 * A vector is sent unchanged, in round 0. This also applies to a matrix whose factors have at least
 * as many elements as the matrix. All ranks compute the orthonormal columns from equal input, so
 * the results are equal on all ranks, bit for bit.
 *
 * Source: T. Vogels et al., PowerSGD: Practical Low-Rank Gradient Compression for Distributed
 * Optimization, NeurIPS 2019, algorithms 1 and 2. Like this file, PyTorch's powerSGD_hook makes the
 * columns of Q orthonormal, and computes the residual from the result of all ranks. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "compress/comp_impl.h"

#define SEED UINT64_C(36)

/* A tensor of the bucket. All positions are counted in floats. */
struct place {
    size_t rows, cols; /* rows is 0 if the tensor is sent unchanged */
    size_t count;      /* elements of the tensor; its last row may be incomplete */
    size_t at;         /* position in the bucket */
    /* Positions in `dense`. The factors are stored as R vectors: q [R][cols], p [R][rows], next
     * [R][cols]. `sent`: the tensor itself, if rows is 0. */
    size_t q, p, sent, next;
};

static size_t rank_of(const struct ddp_compress_spec *spec)
{
    return (size_t)spec->argument;
}

/* Stores the shape of a tensor in *x, which already has the positions of this tensor. */
static void enter(const struct ddp_compress_spec *spec, const struct ddp_tensor *tensor,
                  struct place *x)
{
    x->count = tensor->count;
    x->cols = tensor->cols;
    x->rows = x->cols > 0 ? x->count / x->cols + (x->count % x->cols != 0) : 0;
    if (rank_of(spec) * (x->rows + x->cols) >= x->count)
        x->rows = 0;
}

/* Moves the positions in *x past the tensor that *x describes. */
static void leave(const struct ddp_compress_spec *spec, struct place *x)
{
    const size_t rank = rank_of(spec);
    x->at += x->count;
    x->sent += x->rows == 0 ? x->count : 0;
    x->p += rank * x->rows;
    x->q += x->rows > 0 ? rank * x->cols : 0;
    x->next += x->rows > 0 ? rank * x->cols : 0;
}

/* Returns the positions of the first tensor. `dense` holds all q, then all p, then all tensors that
 * are sent unchanged, then all next. */
static struct place first_place(const struct ddp_compress_spec *spec,
                                const struct ddp_tensors *tensors)
{
    struct place sums = {0};
    for (int i = 0; i < tensors->n; i++) {
        enter(spec, &tensors->v[i], &sums);
        leave(spec, &sums);
    }
    return (struct place){
        .p = sums.q, .sent = sums.q + sums.p, .next = sums.q + sums.p + sums.sent};
}

static struct ddp_span span(const struct ddp_compress_spec *spec, const struct ddp_tensors *tensors,
                            int round)
{
    const struct place first = first_place(spec, tensors);
    const size_t q_count = first.p;
    switch (round) {
    case 0:
        return (struct ddp_span){first.p, first.next - first.p};
    case 1:
        return (struct ddp_span){first.next, q_count};
    default:
        return (struct ddp_span){first.next + q_count, 0};
    }
}

typedef float vec __attribute__((vector_size(16)));
enum { LANES = sizeof(vec) / sizeof(float), VECTORS = 4, PARTS = VECTORS * LANES };

/* Computes a dot product with PARTS partial sums. GCC 12 would not vectorise a plain loop. */
static float dot(const float *a, const float *b, size_t n)
{
    vec sum[VECTORS] = {{0}};
    float part[PARTS];
    size_t i = 0;
    for (; i + PARTS <= n; i += PARTS)
        for (size_t v = 0; v < VECTORS; v++) {
            vec x, y;
            memcpy(&x, a + i + v * LANES, sizeof x);
            memcpy(&y, b + i + v * LANES, sizeof y);
            sum[v] += x * y;
        }
    memcpy(part, sum, sizeof part);
    for (; i < n; i++)
        part[i % PARTS] += a[i] * b[i];
    for (size_t half = PARTS / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            part[k] += part[k + half];
    return part[0];
}

static double dot_f64(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* dst += factor * src */
static void add_scaled(float *restrict dst, const float *restrict src, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] += factor * src[i];
}

/* Makes the vectors v [rank][n] orthonormal by the Gram-Schmidt process. Subtracts each projection
 * twice, because the first result has rounding errors. A vector that is 0 or not finite is replaced
 * by random numbers. `stream` selects the random numbers. */
static void orthonormalise(float *v, size_t n, size_t rank, uint64_t stream)
{
    for (size_t r = 0; r < rank; r++) {
        float *x = v + r * n;
        struct ddp_rng rng;
        ddp_rng_init(&rng, SEED, stream + r);
        for (;;) {
            for (int pass = 0; pass < 2; pass++)
                for (size_t c = 0; c < r; c++)
                    add_scaled(x, v + c * n, (float)-dot_f64(x, v + c * n, n), n);
            const double norm = sqrt(dot_f64(x, x, n));
            if (norm > 0 && norm < INFINITY) {
                for (size_t i = 0; i < n; i++)
                    x[i] = (float)((double)x[i] / norm);
                break;
            }
            for (size_t i = 0; i < n; i++)
                x[i] = (float)ddp_rng_normal(&rng);
        }
    }
}

/* Returns the bucket of the matrices M: the gradients plus the residuals, if there are
 * residuals. */
static const float *matrices(const struct ddp_encode *e)
{
    return e->residual != NULL ? e->residual : e->in;
}

/* Adds the gradients [at, at + n) to the residuals, if there are residuals. Returns the elements of
 * M at this position. */
static const float *accumulate(const struct ddp_encode *e, size_t at, size_t n)
{
    for (size_t i = at; i < at + n && e->residual != NULL; i++)
        e->residual[i] += e->in[i];
    return matrices(e) + at;
}

static void multiply(const struct ddp_encode *e, const struct place *x)
{
    const size_t rank = rank_of(e->spec);
    float *dense = e->dense, *q = dense + x->q;
    memcpy(q, dense + x->next, rank * x->cols * sizeof *q);
    orthonormalise(q, x->cols, rank, x->q);
    for (size_t i = 0; i < x->rows; i++) {
        const size_t n = DDP_MIN(x->cols, x->count - i * x->cols);
        const float *row = accumulate(e, x->at + i * x->cols, n);
        for (size_t r = 0; r < rank; r++)
            dense[x->p + r * x->rows + i] = dot(row, q + r * x->cols, n);
    }
}

static void multiply_transposed(const struct ddp_encode *e, const struct place *x)
{
    const size_t rank = rank_of(e->spec);
    float *dense = e->dense, *p = dense + x->p, *next = dense + x->next;
    orthonormalise(p, x->rows, rank, x->p);
    memset(next, 0, rank * x->cols * sizeof *next);
    for (size_t i = 0; i < x->rows; i++) {
        const float *row = matrices(e) + x->at + i * x->cols;
        const size_t n = DDP_MIN(x->cols, x->count - i * x->cols);
        for (size_t r = 0; r < rank; r++)
            add_scaled(next + r * x->cols, row, p[r * x->rows + i], n);
    }
}

/* residual -= factor * result, or 0 if the difference is not finite */
static void subtract(float *restrict residual, const float *restrict result, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float left = residual[i] - result[i] * factor;
        residual[i] = isfinite(left) ? left : 0;
    }
}

/* Computes the result and the residual of a matrix. */
static void decode(const struct ddp_encode *e, const struct place *x)
{
    const size_t rank = rank_of(e->spec);
    const float share = e->average ? 1 : 1 / (float)e->ranks;
    float *dense = e->dense, *p = dense + x->p, *next = dense + x->next;
    for (size_t k = 0; k < rank * x->cols && e->average; k++)
        next[k] /= (float)e->ranks;
    for (size_t i = 0; i < x->rows; i++) {
        const size_t n = DDP_MIN(x->cols, x->count - i * x->cols), at = x->at + i * x->cols;
        float *out = e->out + at;
        for (size_t j = 0; j < n; j++)
            out[j] = p[i] * next[j];
        for (size_t r = 1; r < rank; r++)
            add_scaled(out, next + r * x->cols, p[r * x->rows + i], n);
        if (e->residual != NULL)
            subtract(e->residual + at, out, share, n);
    }
}

/* Decodes a tensor that is sent unchanged. */
static void copy_sums(const struct ddp_encode *e, const struct place *x)
{
    const float *sent = (const float *)e->dense + x->sent;
    const float divisor = e->average ? (float)e->ranks : 1;
    for (size_t i = 0; i < x->count; i++)
        e->out[x->at + i] = sent[i] / divisor;
    if (e->residual != NULL)
        memset(e->residual + x->at, 0, x->count * sizeof *e->residual);
}

static void run_round(struct ddp_encode *e, int round)
{
    static void (*const matrix_round[])(const struct ddp_encode *e, const struct place *x) = {
        multiply, multiply_transposed, decode};
    struct place x = first_place(e->spec, e->tensors);
    for (int i = 0; i < e->tensors->n; i++) {
        enter(e->spec, &e->tensors->v[i], &x);
        if (x.rows > 0)
            matrix_round[round](e, &x);
        else if (round == 0)
            memcpy((float *)e->dense + x.sent, accumulate(e, x.at, x.count),
                   x.count * sizeof(float));
        else if (round == 2)
            copy_sums(e, &x);
        leave(e->spec, &x);
    }
}

static int check(double argument, struct ddp_err *err)
{
    if (argument >= 1 && argument <= DDP_FACTORS_MAX && argument == floor(argument))
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "rank %g: must be a whole number from 1 to %d", argument,
                    DDP_FACTORS_MAX);
}

const struct ddp_compressor ddp_comp_powersgd = {
    .name = "powersgd",
    .summary = "two factors of rank R of each matrix; the first N exchanges (default 0) are dense",
    .train_summary = "two factors of rank R of each weight's gradient; the first N steps (default "
                     "0) are dense",
    .argument_help = "R[:N]",
    .dense_start = true,
    .combine = DDP_COMBINE_ROUNDS,
    .wire_dtype = DDP_F32,
    .feedback_default = true,
    .check = check,
    .bound = ddp_comp_bound_all,
    .rounds = 2,
    .span = span,
    .round = run_round,
};
