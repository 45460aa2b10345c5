/* Verifies an exchange of factors (compress/comp_powersgd.c) in double precision, from the
 * equations that the factors Q, P and Q' must satisfy.
 *
 * M is the gradient plus the residual of a rank, as a matrix. The ranks gather M of all ranks. S is
 * the sum of M over the ranks. The following must hold within a tolerance for each element:
 *   Q and P have orthonormal columns;
 *   the columns of S Q are combinations of the columns of P;
 *   Q' = S^T P, divided by the number of ranks for an average;
 *   the result is P Q'^T.
 * The checks do not depend on how P was made orthonormal, so a small error of P stays small. If a
 * check computed its own P from S, its tolerance would depend on the condition number of P before
 * P was made orthonormal.
 *
 * The tolerance is a bound of the rounding errors of a sum of n products in f32: FACTOR * sqrt(n) *
 * 2^-24 times the sum of their magnitudes. Source: N. Higham and T. Mary, A New Approach to
 * Probabilistic Rounding Error Analysis, 2019, with FACTOR as lambda. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "bench/verify_exchange_impl.h"

#define FACTOR 8
#define UNIT   0x1p-24
/* Tolerance of a dot product of two columns of P or Q, which are rounded to f32. */
#define ORTHONORMAL 0x1p-20

struct factors {
    const struct ddp_factor_check *check;
    size_t rank, rows, cols;
    const float *q, *p, *next; /* [rank][cols], [rank][rows], [rank][cols] */
    /* [rank][rows]: S Q, and the sums of the magnitudes of its products. */
    double *sq, *sq_magnitude;
    /* [rank][cols]: S^T P, and the sums of the magnitudes of its products. */
    double *sp, *sp_magnitude;
};

static double tolerance(size_t terms, double magnitudes)
{
    return FACTOR * sqrt((double)terms) * UNIT * magnitudes + FLT_TRUE_MIN;
}

/* Computes the shape of the matrix of n elements that is nearest to a square. */
static void shape_of(size_t n, size_t *rows, size_t *cols)
{
    size_t side = 0;
    while (side * side < n)
        side++;
    *cols = side;
    *rows = side > 0 ? (n + side - 1) / side : 0;
}

size_t ddp_verify_factors_sent(const struct ddp_compressed_setup *setup)
{
    const size_t rank = (size_t)setup->spec.argument;
    size_t rows, cols;
    shape_of(setup->n, &rows, &cols);
    return rank * (rows + cols) < setup->n ? rank * (rows + cols) : setup->n;
}

/* Adds elements [first, first + n) of S to the products. `gathered` [ranks][n]. */
static void add_products(const struct factors *x, size_t first, size_t n, const float *gathered)
{
    const int ranks = x->check->setup->comm->size;
    for (size_t k = 0; k < n; k++) {
        const size_t i = (first + k) / x->cols, j = (first + k) % x->cols;
        double sum = 0, magnitude = 0;
        for (int w = 0; w < ranks; w++) {
            sum += (double)gathered[(size_t)w * n + k];
            magnitude += fabs((double)gathered[(size_t)w * n + k]);
        }
        for (size_t r = 0; r < x->rank; r++) {
            const double q = x->q[r * x->cols + j], p = x->p[r * x->rows + i];
            x->sq[r * x->rows + i] += sum * q;
            x->sq_magnitude[r * x->rows + i] += magnitude * fabs(q);
            x->sp[r * x->cols + j] += sum * p;
            x->sp_magnitude[r * x->cols + j] += magnitude * fabs(p);
        }
    }
}

static double product(const float *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void check_orthonormal(const struct factors *x, const float *v, size_t n, const char *what,
                              struct ddp_mismatch *f)
{
    for (size_t r = 0; r < x->rank; r++)
        for (size_t c = 0; c <= r; c++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += (double)v[r * n + i] * (double)v[c * n + i];
            if (!(fabs(sum - (r == c)) <= ORTHONORMAL))
                ddp_verify_found(f, what, x->check->first, r == c, (float)sum);
        }
}

/* Checks that column r of S Q is a combination of the columns of P. The tolerance of an element
 * includes the errors of all elements, because they change the coefficients of the combination. */
static void check_span(const struct factors *x, size_t r, struct ddp_mismatch *f)
{
    const size_t terms = x->cols + (size_t)x->check->setup->comm->size;
    const double *sq = x->sq + r * x->rows, *magnitude = x->sq_magnitude + r * x->rows;
    double factor[DDP_FACTORS_MAX], norm = 0, magnitudes = 0;
    for (size_t i = 0; i < x->rows; i++) {
        norm += sq[i] * sq[i];
        magnitudes += magnitude[i] * magnitude[i];
    }
    for (size_t c = 0; c < x->rank; c++)
        factor[c] = product(x->p + c * x->rows, sq, x->rows);
    const double spread =
        tolerance(terms, sqrt(magnitudes)) + ORTHONORMAL * (double)x->rank * sqrt(norm);
    for (size_t i = 0; i < x->rows; i++) {
        double expected = 0, allowed = tolerance(terms, magnitude[i]);
        for (size_t c = 0; c < x->rank; c++) {
            const double p = x->p[c * x->rows + i];
            expected += p * factor[c];
            allowed += fabs(p) * spread;
        }
        if (!(fabs(expected - sq[i]) <= allowed))
            ddp_verify_found(f, "P", x->check->first + i * x->cols, (float)sq[i], (float)expected);
    }
}

/* Checks that Q' is S^T P, divided by the number of ranks for an average. */
static void check_next(const struct factors *x, struct ddp_mismatch *f)
{
    const int ranks = x->check->setup->comm->size;
    const double divisor = x->check->setup->average ? ranks : 1;
    for (size_t k = 0; k < x->rank * x->cols; k++) {
        const double expected = x->sp[k] / divisor, got = x->next[k];
        const double allowed = tolerance(x->rows + (size_t)ranks, x->sp_magnitude[k] / divisor);
        if (!(fabs(got - expected) <= allowed))
            ddp_verify_found(f, "Q", x->check->first + k % x->cols, (float)expected, (float)got);
    }
}

static void check_result(const struct factors *x, struct ddp_mismatch *f)
{
    for (size_t k = 0; k < x->check->setup->n; k++) {
        const size_t i = k / x->cols, j = k % x->cols;
        double sum = 0, magnitude = 0;
        for (size_t r = 0; r < x->rank; r++) {
            const double value = (double)x->p[r * x->rows + i] * (double)x->next[r * x->cols + j];
            sum += value;
            magnitude += fabs(value);
        }
        if (!(fabs((double)x->check->data[k] - sum) <= tolerance(x->rank, magnitude)))
            ddp_verify_found(f, "sum", x->check->first + k, (float)sum, x->check->data[k]);
    }
}

static int check(struct factors *x, struct ddp_mismatch *f, struct ddp_err *err)
{
    const struct ddp_factor_check *c = x->check;
    for (size_t done = 0, n; done < c->setup->n; done += n) {
        n = DDP_MIN(c->setup->n - done, c->block);
        DDP_TRY(ddp_comm_allgather_bytes(c->setup->comm, c->acc + done, c->gathered,
                                         n * sizeof *c->acc, err));
        add_products(x, done, n, c->gathered);
    }
    check_orthonormal(x, x->q, x->cols, "columns of Q", f);
    check_orthonormal(x, x->p, x->rows, "columns of P", f);
    for (size_t r = 0; r < x->rank; r++)
        check_span(x, r, f);
    check_next(x, f);
    check_result(x, f);
    return 0;
}

int ddp_verify_factors(const struct ddp_factor_check *c, struct ddp_mismatch *f,
                       struct ddp_err *err)
{
    struct factors x = {.check = c, .rank = (size_t)c->setup->spec.argument};
    double *memory;
    shape_of(c->setup->n, &x.rows, &x.cols);
    x.q = c->rounds;
    x.p = x.q + x.rank * x.cols;
    x.next = x.p + x.rank * x.rows;
    int rc = DDP_NEW(&memory, 2 * x.rank * (x.rows + x.cols), err);
    DDP_TRY_GOTO(ddp_comm_agree(c->setup->comm, rc, err), out);
    x.sq = memory;
    x.sq_magnitude = x.sq + x.rank * x.rows;
    x.sp = x.sq_magnitude + x.rank * x.rows;
    x.sp_magnitude = x.sp + x.rank * x.cols;
    rc = check(&x, f, err);
out:
    free(memory);
    return rc;
}
