/* The loops of nn_kernels.h, compiled once per SIMD level. DDP_NN_TABLE is the name of the table.
 * The compiler vectorises most of the loops. All levels give equal bits, because the compiler must
 * not reorder additions or use fused multiply-add (-ffp-contract=off). Common row widths are
 * compile-time constants (WITH_WIDTH), so that the compiler can unroll the loops. */
#include "model/nn_kernels.h"

#include <string.h>

#define LANES 16

/* Runs CALL with W as a compile-time constant if w is one of the common widths. */
#define WITH_WIDTH(w, CALL)                                                                        \
    do {                                                                                           \
        switch (w) {                                                                               \
        case 8: {                                                                                  \
            enum { W = 8 };                                                                        \
            CALL;                                                                                  \
        } break;                                                                                   \
        case 24: {                                                                                 \
            enum { W = 24 };                                                                       \
            CALL;                                                                                  \
        } break;                                                                                   \
        default: {                                                                                 \
            const int W = (w);                                                                     \
            CALL;                                                                                  \
        } break;                                                                                   \
        }                                                                                          \
    } while (0)

static inline __attribute__((always_inline)) void
unfold_plane(const float *restrict x, int in_w, int out_h, int w, float *restrict col)
{
    for (int y = 0; y < out_h; y++)
        memcpy(col + y * w, x + y * in_w, sizeof *x * (size_t)w);
}

/* Vectors of GCC and clang for pooling four windows at once. The compiler maps these vectors to the
 * instructions of each level. Explicit vectors are used, because the compiler's automatic
 * vectoriser handles loops over pairs of floats badly. */
typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef uint8_t v4b __attribute__((vector_size(4)));

static inline v4f load4(const float *p)
{
    v4f v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store4(float *p, v4f v)
{
    memcpy(p, &v, sizeof v);
}

static inline v4i choose(v4i mask, v4i yes, v4i no)
{
    return (mask & yes) | (~mask & no);
}

/* Pools windows i to i+3 of the pair of rows that begins at y. */
static inline void pool_four(const float *y, int w, int i, float bias, float *out, uint8_t *which)
{
    v4f t0 = load4(y + 2 * i), t1 = load4(y + 2 * i + 4);
    v4f l0 = load4(y + w + 2 * i), l1 = load4(y + w + 2 * i + 4);
    v4f a = __builtin_shufflevector(t0, t1, 0, 2, 4, 6);
    v4f b = __builtin_shufflevector(t0, t1, 1, 3, 5, 7);
    v4f c = __builtin_shufflevector(l0, l1, 0, 2, 4, 6);
    v4f d = __builtin_shufflevector(l0, l1, 1, 3, 5, 7);
    v4i right_top = b > a, right_low = d > c;
    v4f top = (v4f)choose(right_top, (v4i)b, (v4i)a), low = (v4f)choose(right_low, (v4i)d, (v4i)c);
    v4i is_low = low > top;
    v4f v = (v4f)choose(is_low, (v4i)low, (v4i)top) + bias;
    /* A true vector comparison is -1. */
    v4i at = choose(is_low, 2 - right_low, -right_top), positive = v > 0.0f;
    v4b bytes = __builtin_convertvector(choose(positive, at, (v4i){} + DDP_POOL_NONE), v4b);
    store4(out + i, (v4f)(positive & (v4i)v));
    memcpy(which + i, &bytes, sizeof bytes);
}

static inline void pool_one(const float *y, int w, int i, float bias, float *out, uint8_t *which)
{
    float a = y[2 * i], b = y[2 * i + 1], c = y[w + 2 * i], d = y[w + 2 * i + 1];
    float top = b > a ? b : a, low = d > c ? d : c;
    int at = low > top ? (d > c ? 3 : 2) : (b > a ? 1 : 0);
    float v = (low > top ? low : top) + bias;
    out[i] = v > 0.0f ? v : 0.0f;
    which[i] = (uint8_t)(v > 0.0f ? at : DDP_POOL_NONE);
}

static inline __attribute__((always_inline)) void pool_plane(const float *restrict y, int h, int w,
                                                             float bias, float *restrict out,
                                                             uint8_t *restrict which)
{
    for (int r = 0; r < h / 2; r++, y += 2 * w, out += w / 2, which += w / 2) {
        int i = 0;
        for (; i + 4 <= w / 2; i += 4)
            pool_four(y, w, i, bias, out, which);
        for (; i < w / 2; i++)
            pool_one(y, w, i, bias, out, which);
    }
}

static void bias_relu_pool(int c, int n, int h, int w, const float *y, const float *bias,
                           float *out, struct ddp_view outv, uint8_t *which)
{
    size_t plane = (size_t)h * (size_t)w;
    for (int ch = 0; ch < c; ch++)
        for (int i = 0; i < n; i++, y += plane, which += plane / 4)
            WITH_WIDTH(w,
                       pool_plane(y, h, W, bias[ch],
                                  out + (size_t)ch * outv.channel + (size_t)i * outv.image, which));
}

static void add_bias(int rows, int cols, const float *restrict bias, int relu, float *restrict y)
{
    for (int r = 0; r < rows; r++, y += cols)
        if (relu)
            for (int c = 0; c < cols; c++) {
                float v = y[c] + bias[c];
                y[c] = v > 0.0f ? v : 0.0f;
            }
        else
            for (int c = 0; c < cols; c++)
                y[c] += bias[c];
}

static void relu_backward(size_t count, const float *restrict y, float *restrict dy)
{
    for (size_t i = 0; i < count; i++)
        dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

static inline float lane_sum(float *lane)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static void row_sums(int rows, size_t cols, const float *a, float *sums)
{
    for (int r = 0; r < rows; r++, a += cols) {
        float lane[LANES] = {0};
        size_t c = 0;
        for (; c + LANES <= cols; c += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += a[c + (size_t)l];
        for (int l = 0; c < cols; c++, l++)
            lane[l] += a[c];
        sums[r] += lane_sum(lane);
    }
}

static void column_sums(int rows, int cols, const float *restrict a, float *restrict sums)
{
    memset(sums, 0, sizeof *sums * (size_t)cols);
    for (int r = 0; r < rows; r++, a += cols)
        for (int c = 0; c < cols; c++)
            sums[c] += a[c];
}

/* Convolutions with stride and padding, and batch normalisation. The order of all sums is fixed. */

/* Finds the outputs [*first, *last) along one dimension for which the tap at `at` (0..k-1) reads a
 * pixel and not padding. */
static inline void tap_range(int in, int out, int at, const struct ddp_conv_shape *s, int *first,
                             int *last)
{
    int offset = at - s->pad; /* output o reads pixel o * stride + offset */
    *first = offset >= 0 ? 0 : (-offset + s->stride - 1) / s->stride;
    *last = in - offset <= 0 ? 0 : (in - offset - 1) / s->stride + 1;
    if (*last > out)
        *last = out;
    if (*first > *last)
        *first = *last;
}

/* Writes one row of outputs to col, with zeros for padding. x points to the first pixel that is
 * read. */
static inline void unfold_row(const float *restrict x, int stride, int first, int last, int out_w,
                              float *restrict col)
{
    memset(col, 0, sizeof *col * (size_t)first);
    if (stride == 1)
        memcpy(col + first, x, sizeof *col * (size_t)(last - first));
    else
        for (int o = first; o < last; o++)
            col[o] = x[(o - first) * stride];
    memset(col + last, 0, sizeof *col * (size_t)(out_w - last));
}

static void unfold_tap(const struct ddp_conv_shape *s, const float *x, int ky, int kx, int out_h,
                       int out_w, float *col)
{
    int row, row_end, first, last;
    tap_range(s->in_h, out_h, ky, s, &row, &row_end);
    tap_range(s->in_w, out_w, kx, s, &first, &last);
    memset(col, 0, sizeof *col * (size_t)(row * out_w));
    int left = first < last ? first * s->stride + kx - s->pad : 0;
    for (; row < row_end; row++) {
        const float *line = x + (row * s->stride + ky - s->pad) * s->in_w;
        unfold_row(line + left, s->stride, first, last, out_w, col + row * out_w);
    }
    memset(col + row_end * out_w, 0, sizeof *col * (size_t)((out_h - row_end) * out_w));
}

/* Unfolds one tap of one channel. x points to the channel of the first of n images. With stride 1
 * and no padding, copies whole rows. */
static void unfold_channel(const struct ddp_conv_shape *s, int n, const float *x, size_t image,
                           int ky, int kx, float *col)
{
    const int out_h = ddp_conv_out_h(s), out_w = ddp_conv_out_w(s);
    const size_t plane = (size_t)out_h * (size_t)out_w;
    if (s->stride != 1 || s->pad != 0) {
        for (int i = 0; i < n; i++, col += plane, x += image)
            unfold_tap(s, x, ky, kx, out_h, out_w, col);
        return;
    }
    x += ky * s->in_w + kx;
    for (int i = 0; i < n; i++, col += plane, x += image)
        WITH_WIDTH(out_w, unfold_plane(x, s->in_w, out_h, W, col));
}

static void unfold(const struct ddp_conv_shape *s, int n, const float *x, struct ddp_view xv,
                   float *col)
{
    const int out_h = ddp_conv_out_h(s), out_w = ddp_conv_out_w(s);
    for (int c = 0; c < s->in_c; c++)
        for (int tap = 0; tap < s->k * s->k; tap++, col += n * out_h * out_w)
            unfold_channel(s, n, x + (size_t)c * xv.channel, xv.image, tap / s->k, tap % s->k, col);
}

static void fold_tap(const struct ddp_conv_shape *s, const float *col, int ky, int kx, int out_h,
                     int out_w, float *dx)
{
    int row, row_end, first, last;
    tap_range(s->in_h, out_h, ky, s, &row, &row_end);
    tap_range(s->in_w, out_w, kx, s, &first, &last);
    for (; row < row_end; row++) {
        float *line = dx + (row * s->stride + ky - s->pad) * s->in_w;
        for (int o = first; o < last; o++)
            line[o * s->stride + kx - s->pad] += col[row * out_w + o];
    }
}

static void fold_any(const struct ddp_conv_shape *s, int n, const float *col, float *dx,
                     struct ddp_view dxv)
{
    int out_h = ddp_conv_out_h(s), out_w = ddp_conv_out_w(s);
    size_t plane = (size_t)out_h * (size_t)out_w, tap_stride = (size_t)n * plane;
    for (int c = 0; c < s->in_c; c++, col += tap_stride * (size_t)(s->k * s->k))
        for (int i = 0; i < n; i++) {
            float *to = dx + (size_t)c * dxv.channel + (size_t)i * dxv.image;
            memset(to, 0, sizeof *to * (size_t)(s->in_h * s->in_w));
            for (int tap = 0; tap < s->k * s->k; tap++)
                fold_tap(s, col + (size_t)tap * tap_stride + (size_t)i * plane, tap / s->k,
                         tap % s->k, out_h, out_w, to);
        }
}

static void row_bias(int rows, size_t cols, const float *restrict bias, float *restrict y)
{
    for (int r = 0; r < rows; r++, y += cols)
        for (size_t c = 0; c < cols; c++)
            y[c] += bias[r];
}

static void add(size_t count, const float *restrict a, float *restrict y)
{
    for (size_t i = 0; i < count; i++)
        y[i] += a[i];
}

static void moments(int rows, size_t cols, const float *restrict x, float *mean, float *variance)
{
    for (int r = 0; r < rows; r++, x += cols) {
        float sum = 0.0f, lane[LANES] = {0};
        row_sums(1, cols, x, &sum);
        float m = mean[r] = sum / (float)cols;
        size_t c = 0;
        for (; c + LANES <= cols; c += LANES)
            for (int l = 0; l < LANES; l++) {
                float d = x[c + (size_t)l] - m;
                lane[l] += d * d;
            }
        for (int l = 0; c < cols; c++, l++)
            lane[l] += (x[c] - m) * (x[c] - m);
        variance[r] = lane_sum(lane) / (float)cols;
    }
}

static void normalize(int rows, size_t cols, const float *restrict x, const float *mean,
                      const float *scale, const float *shift, int relu, float *restrict y)
{
    for (int r = 0; r < rows; r++, x += cols, y += cols) {
        float m = mean[r], a = scale[r], b = shift[r];
        if (relu)
            for (size_t c = 0; c < cols; c++) {
                float v = (x[c] - m) * a + b;
                y[c] = v > 0.0f ? v : 0.0f;
            }
        else
            for (size_t c = 0; c < cols; c++)
                y[c] = (x[c] - m) * a + b;
    }
}

static void norm_sums(int rows, size_t cols, const float *restrict x, const float *restrict dy,
                      const float *mean, float *sums, float *products)
{
    for (int r = 0; r < rows; r++, x += cols, dy += cols) {
        float m = mean[r], lane[LANES] = {0};
        sums[r] = 0.0f;
        row_sums(1, cols, dy, &sums[r]);
        size_t c = 0;
        for (; c + LANES <= cols; c += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += dy[c + (size_t)l] * (x[c + (size_t)l] - m);
        for (int l = 0; c < cols; c++, l++)
            lane[l] += dy[c] * (x[c] - m);
        products[r] = lane_sum(lane);
    }
}

static void norm_backward(int rows, size_t cols, const float *restrict x, const float *restrict dy,
                          const float *mean, const float *scale, const float *a, const float *b,
                          float *restrict dx)
{
    for (int r = 0; r < rows; r++, x += cols, dy += cols, dx += cols) {
        float m = mean[r], s = scale[r], ar = a[r], br = b[r];
        for (size_t c = 0; c < cols; c++)
            dx[c] = s * (dy[c] - ar - br * (x[c] - m));
    }
}

#include "model/nn_pool_grad.inc.h"

const struct ddp_nn_kernels DDP_NN_TABLE = {
    .bias_relu_pool = bias_relu_pool,
    .bias = add_bias,
    .relu_backward = relu_backward,
    .row_sums = row_sums,
    .column_sums = column_sums,
    .unfold = unfold,
    .fold = fold_any,
    .row_bias = row_bias,
    .add = add,
    .moments = moments,
    .normalize = normalize,
    .norm_sums = norm_sums,
    .norm_backward = norm_backward,
    .pool_grad = pool_grad,
};
