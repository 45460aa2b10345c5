/* Backward pass through a 2 x 2 max pool and the convolution before it. nn_kernels.inc.h includes
 * this file and is compiled once per SIMD level.
 *
 * Only one of the four positions of a window, that of the maximum, has a gradient. If ReLU set the
 * output to 0, no position has a gradient. If ReLU sets half of the outputs to 0, seven of eight
 * gradients are zero, and a dense product would mostly multiply by zero. Therefore pool_grad first
 * lists the gradients that are not zero. An *entry* of a list is a gradient and the offset of the
 * row that it multiplies. Images are transposed to [h][w][channels], so that a *row* of k *
 * channels values is contiguous. Rows of the weights are padded to whole vectors. The gradient at a
 * position multiplies k rows of the image and k rows of the filter:
 *
 *   gradient of the weights: for each output channel, add the image's rows at the maxima of the
 *   channel's windows
 *   gradient of the image: for each position, add the weight rows of the channels that have their
 *   maximum there
 *
 * The order of the additions is fixed: by images and windows for the weights, and by rows of the
 * filter, positions and channels for the image. */

typedef float v16f __attribute__((vector_size(64)));
typedef int32_t v16i __attribute__((vector_size(64)));
typedef uint8_t v16b __attribute__((vector_size(16)));
#define PAD 16

struct entry {
    uint32_t row; /* offset of the row */
    float scale;
};

/* For each entry: sum += scale * row. Handles `lines` rows per entry at once, each of nv vectors.
 * Row l begins at l * row_step, and its sum at l * sum_step. The sums do not overlap. All sums are
 * in registers, so lines * nv is at most 7. Several short rows are handled at once, because with a
 * single short row each addition would wait for the previous addition. */
static inline __attribute__((always_inline)) void add_lines(const int nv, const int lines,
                                                            const struct entry *e, int count,
                                                            const float *rows, int row_step,
                                                            float *sum, int sum_step)
{
    v16f acc[7];
    for (int l = 0; l < lines; l++)
        for (int v = 0; v < nv; v++)
            memcpy(&acc[l * nv + v], sum + l * sum_step + v * PAD, sizeof acc[0]);
    for (int i = 0; i < count; i++) {
        const float *row = rows + e[i].row;
        for (int l = 0; l < lines; l++)
            for (int v = 0; v < nv; v++) {
                v16f x;
                memcpy(&x, row + l * row_step + v * PAD, sizeof x);
                acc[l * nv + v] += x * e[i].scale;
            }
    }
    for (int l = 0; l < lines; l++)
        for (int v = 0; v < nv; v++)
            memcpy(sum + l * sum_step + v * PAD, &acc[l * nv + v], sizeof acc[0]);
}

/* Does the same as add_lines for a single row of any length. */
static inline __attribute__((always_inline)) void add_line(int vectors, const struct entry *e,
                                                           int count, const float *rows, float *sum)
{
    for (; vectors > 7; vectors -= 7, rows += 7 * PAD, sum += 7 * PAD)
        add_lines(7, 1, e, count, rows, 0, sum, 0);
    switch (vectors) {
    case 1:
        add_lines(1, 1, e, count, rows, 0, sum, 0);
        break;
    case 2:
        add_lines(2, 1, e, count, rows, 0, sum, 0);
        break;
    case 3:
        add_lines(3, 1, e, count, rows, 0, sum, 0);
        break;
    case 4:
        add_lines(4, 1, e, count, rows, 0, sum, 0);
        break;
    case 5:
        add_lines(5, 1, e, count, rows, 0, sum, 0);
        break;
    case 6:
        add_lines(6, 1, e, count, rows, 0, sum, 0);
        break;
    default:
        add_lines(7, 1, e, count, rows, 0, sum, 0);
    }
}

/* The arrays of one call, all in the scratch memory. */
struct pool_grad {
    int out_w, positions, windows; /* of one image */
    int row;                       /* floats in a row, including its padding */
    float *x, *dx;                 /* [in_h][in_w][in_c], plus the padding of a row */
    float *w, *dw;                 /* [k][out_c][row] */
    struct entry *by_channel;      /* [out_c][windows], entries of each output channel */
    struct entry *by_position;     /* [positions][out_c + 1], entries of each position */
    int *channel_count;            /* [out_c], number of entries of each output channel */
    int *position_count;           /* [positions], number of entries of each position */
    uint32_t *row_at;              /* [windows], offset of the rows of a window's first position */
    uint32_t *position_at;         /* [windows], index of a window's first position */
};

static size_t round_up(size_t n)
{
    return (n + PAD - 1) / PAD * PAD;
}

/* Divides the scratch memory into the arrays of *g. Returns the size of the scratch memory in
 * floats. If g is NULL, only returns the size. */
static size_t divide_scratch(const struct ddp_conv_shape *s, float *scratch, struct pool_grad *g)
{
    const size_t row = round_up((size_t)(s->k * s->in_c));
    const size_t image = round_up((size_t)(s->in_h * s->in_w * s->in_c)) + row;
    const size_t weights = (size_t)(s->k * s->out_c) * row;
    const int out_h = s->in_h - s->k + 1, out_w = s->in_w - s->k + 1;
    const size_t positions = (size_t)(out_h * out_w), windows = positions / 4;
    const size_t by_channel = round_up(2 * (size_t)s->out_c * windows + 2);
    const size_t by_position = round_up(2 * positions * (size_t)(s->out_c + 1));
    const size_t sizes[] = {image,
                            image,
                            weights,
                            weights,
                            by_channel,
                            by_position,
                            round_up((size_t)s->out_c),
                            round_up(positions),
                            round_up(windows),
                            round_up(windows)};
    size_t begin[sizeof sizes / sizeof *sizes], total = PAD;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin[i] = total;
        total += sizes[i];
    }
    if (!g)
        return total;
    /* Align the arrays, so that no vector crosses a cache line. */
    scratch -= (uintptr_t)scratch / sizeof *scratch % PAD;
    *g = (struct pool_grad){
        .out_w = out_w,
        .positions = (int)positions,
        .windows = (int)windows,
        .row = (int)row,
        .x = scratch + begin[0],
        .dx = scratch + begin[1],
        .w = scratch + begin[2],
        .dw = scratch + begin[3],
        .by_channel = (struct entry *)(void *)(scratch + begin[4]),
        .by_position = (struct entry *)(void *)(scratch + begin[5]),
        .channel_count = (int *)(void *)(scratch + begin[6]),
        .position_count = (int *)(void *)(scratch + begin[7]),
        .row_at = (uint32_t *)(void *)(scratch + begin[8]),
        .position_at = (uint32_t *)(void *)(scratch + begin[9]),
    };
    return total;
}

/* Returns the offset of w's element [o][c][tap] in the transposed weights [k][out_c][row]. */
static inline int transposed_offset(const struct ddp_conv_shape *s, int row, int o, int c, int tap)
{
    return (tap / s->k * s->out_c + o) * row + tap % s->k * s->in_c + c;
}

static void transpose_weights(const struct ddp_conv_shape *s, int row, const float *w,
                              float *transposed)
{
    for (int o = 0; o < s->out_c; o++)
        for (int c = 0; c < s->in_c; c++)
            for (int tap = 0; tap < s->k * s->k; tap++)
                transposed[transposed_offset(s, row, o, c, tap)] = *w++;
}

static void restore_weights(const struct ddp_conv_shape *s, int row, const float *transposed,
                            float *w)
{
    for (int o = 0; o < s->out_c; o++)
        for (int c = 0; c < s->in_c; c++)
            for (int tap = 0; tap < s->k * s->k; tap++)
                *w++ = transposed[transposed_offset(s, row, o, c, tap)];
}

static void transpose_image(const struct ddp_conv_shape *s, const float *restrict x, size_t channel,
                            float *restrict transposed)
{
    const int plane = s->in_h * s->in_w;
    for (int c = 0; c < s->in_c; c++, x += channel)
        for (int p = 0; p < plane; p++)
            transposed[p * s->in_c + c] = x[p];
}

static void restore_image(const struct ddp_conv_shape *s, const float *restrict transposed,
                          size_t channel, float *restrict x)
{
    const int plane = s->in_h * s->in_w;
    for (int c = 0; c < s->in_c; c++, x += channel)
        for (int p = 0; p < plane; p++)
            x[p] = transposed[p * s->in_c + c];
}

static void locate_windows(const struct ddp_conv_shape *s, const struct pool_grad *g)
{
    const int across = g->out_w / 2;
    for (int i = 0; i < g->windows; i++) {
        const int y = i / across * 2, x = i % across * 2;
        g->row_at[i] = (uint32_t)((y * s->in_w + x) * s->in_c);
        g->position_at[i] = (uint32_t)(y * g->out_w + x);
    }
}

/* Lists the entries of each output channel. Every window writes an entry, but the count grows only
 * if the window has a gradient. This avoids an unpredictable branch. `which` and `dout` point to
 * the first channel of an image. The values of the next channel begin `which_channel` elements
 * after `which` and `channel` elements after `dout`. */
static void list_by_channel(const struct ddp_conv_shape *s, const struct pool_grad *g,
                            const uint8_t *which, size_t which_channel, const float *dout,
                            size_t channel)
{
    const uint32_t right = (uint32_t)s->in_c, low = (uint32_t)(s->in_w * s->in_c);
    const uint32_t offset[DDP_POOL_NONE + 1] = {0, right, low, low + right, 0};
    for (int o = 0; o < s->out_c; o++, which += which_channel, dout += channel) {
        struct entry *list = g->by_channel + o * g->windows;
        int count = 0;
        for (int i = 0; i < g->windows; i++) {
            list[count] = (struct entry){g->row_at[i] + offset[which[i]], dout[i]};
            count += which[i] != DDP_POOL_NONE;
        }
        g->channel_count[o] = count;
    }
}

static void list_by_position(const struct ddp_conv_shape *s, const struct pool_grad *g,
                             const uint8_t *which, size_t which_channel, const float *dout,
                             size_t channel)
{
    const uint32_t low = (uint32_t)g->out_w;
    const uint32_t offset[DDP_POOL_NONE + 1] = {0, 1, low, low + 1, 0};
    memset(g->position_count, 0, sizeof *g->position_count * (size_t)g->positions);
    for (int o = 0; o < s->out_c; o++, which += which_channel, dout += channel)
        for (int i = 0; i < g->windows; i++) {
            const uint32_t p = g->position_at[i] + offset[which[i]];
            g->by_position[p * (uint32_t)(s->out_c + 1) + (uint32_t)g->position_count[p]] =
                (struct entry){(uint32_t)(o * g->row), dout[i]};
            g->position_count[p] += which[i] != DDP_POOL_NONE;
        }
}

/* Adds the gradients of `count` <= LANES windows to the lanes of *sum. Windows without a gradient
 * add 0. */
static inline __attribute__((always_inline)) void add_lanes(const uint8_t *which, const float *dout,
                                                            size_t count, v16f *sum)
{
    v16b at = (v16b){0} + DDP_POOL_NONE;
    v16f d = {0};
    memcpy(&at, which, count);
    memcpy(&d, dout, count * sizeof *dout);
    *sum += (v16f)((__builtin_convertvector(at, v16i) != DDP_POOL_NONE) & (v16i)d);
}

/* Adds the bias gradients in 16 lanes, as row_sums does. The vectors are written by hand because
 * GCC 12.2 miscompiles for AVX2 a loop over lanes that tests bytes and adds floats. */
static void add_bias_grad(const struct ddp_conv_shape *s, const struct pool_grad *g,
                          const uint8_t *which, size_t which_channel, const float *dout,
                          size_t channel, float *db)
{
    for (int o = 0; o < s->out_c; o++, which += which_channel, dout += channel) {
        float lane[LANES];
        v16f sum = {0};
        int i = 0;
        for (; i + LANES <= g->windows; i += LANES)
            add_lanes(which + i, dout + i, LANES, &sum);
        if (i < g->windows)
            add_lanes(which + i, dout + i, (size_t)(g->windows - i), &sum);
        memcpy(lane, &sum, sizeof lane);
        db[o] += lane_sum(lane);
    }
}

static void add_weights(const struct ddp_conv_shape *s, const struct pool_grad *g)
{
    const int down = s->in_w * s->in_c, step = s->out_c * g->row, vectors = g->row / PAD;
    for (int o = 0; o < s->out_c; o++) {
        const struct entry *e = g->by_channel + o * g->windows;
        const int count = g->channel_count[o];
        float *dw = g->dw + o * g->row;
        if (vectors == 1 && s->k == 5)
            add_lines(1, 5, e, count, g->x, down, dw, step);
        else if (vectors == 1 && s->k == 3)
            add_lines(1, 3, e, count, g->x, down, dw, step);
        else if (vectors == 2 && s->k == 3)
            add_lines(2, 3, e, count, g->x, down, dw, step);
        else
            for (int ky = 0; ky < s->k; ky++)
                add_line(vectors, e, count, g->x + ky * down, dw + ky * step);
    }
}

static void add_image(const struct ddp_conv_shape *s, const struct pool_grad *g)
{
    memset(g->dx, 0, sizeof *g->dx * (size_t)(s->in_h * s->in_w * s->in_c));
    /* Process column by column. The rows of neighbouring positions overlap, and a load that
     * overlaps two recent stores must wait for these stores. */
    for (int ky = 0; ky < s->k; ky++)
        for (int x = 0; x < g->out_w; x++)
            for (int p = x, y = ky; p < g->positions; p += g->out_w, y++)
                if (g->position_count[p] > 0)
                    add_line(g->row / PAD, g->by_position + p * (s->out_c + 1),
                             g->position_count[p], g->w + ky * s->out_c * g->row,
                             g->dx + (y * s->in_w + x) * s->in_c);
}

static void pool_grad(const struct ddp_conv_shape *s, int n, int chunk, const float *x,
                      struct ddp_view xv, const float *w, const float *dout, struct ddp_view doutv,
                      const uint8_t *which, float *dw, float *db, float *dx, struct ddp_view dxv,
                      float *scratch)
{
    struct pool_grad g = {0};
    size_t floats = divide_scratch(s, scratch, &g);
    /* The padding of w's rows must be zero, because add_image() adds it to the pixels after a row
     * of dx. Sums begin at zero. */
    memset(scratch, 0, sizeof *scratch * floats);
    if (dx)
        transpose_weights(s, g.row, w, g.w);
    memset(db, 0, sizeof *db * (size_t)s->out_c);
    locate_windows(s, &g);
    for (int i = 0; i < n; i++) {
        const int first = i / chunk * chunk, m = n - first < chunk ? n - first : chunk;
        const size_t each = (size_t)g.windows, channel_step = (size_t)m * each;
        const uint8_t *at = which + (size_t)(first * s->out_c + i - first) * each;
        const float *d = dout + (size_t)i * doutv.image;
        transpose_image(s, x + (size_t)i * xv.image, xv.channel, g.x);
        add_bias_grad(s, &g, at, channel_step, d, doutv.channel, db);
        list_by_channel(s, &g, at, channel_step, d, doutv.channel);
        add_weights(s, &g);
        if (!dx)
            continue;
        list_by_position(s, &g, at, channel_step, d, doutv.channel);
        add_image(s, &g);
        restore_image(s, g.dx, dxv.channel, dx + (size_t)i * dxv.image);
    }
    restore_weights(s, g.row, g.dw, dw);
}
