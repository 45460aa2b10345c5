/* Convolutions with stride and padding, and batch normalisation. Included by nn_kernels.inc.h,
 * which is compiled once per SIMD level. The code fixes the order of all sums. */

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

static void unfold(const struct ddp_conv_shape *s, int n, const float *x, struct ddp_view xv,
                   float *col)
{
    int out_h = (s->in_h + 2 * s->pad - s->k) / s->stride + 1;
    int out_w = (s->in_w + 2 * s->pad - s->k) / s->stride + 1;
    for (int c = 0; c < s->in_c; c++)
        for (int tap = 0; tap < s->k * s->k; tap++)
            for (int i = 0; i < n; i++, col += out_h * out_w)
                unfold_tap(s, x + (size_t)c * xv.channel + (size_t)i * xv.image, tap / s->k,
                           tap % s->k, out_h, out_w, col);
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
    int out_h = (s->in_h + 2 * s->pad - s->k) / s->stride + 1;
    int out_w = (s->in_w + 2 * s->pad - s->k) / s->stride + 1;
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

static inline float lane_sum(float *lane)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
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
