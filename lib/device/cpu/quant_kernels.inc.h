/* The kernels of block quantisation (device/quant.h) for one SIMD level. grad_kernels.inc.h
 * includes this template.
 *
 * Half a block is a whole number of vectors, because LANES and the elements of a block are powers
 * of two, and DDP_QUANT_BLOCK_MIN / 2 is at least LANES. An eighth of a block of signs is a whole
 * number of vectors, too. The last block of the user's array may have fewer elements. It is copied
 * to a buffer on the stack that is filled up with zeros. */
#ifndef VB
#error "quant_kernels.inc.h is a template of grad_kernels.inc.h: include kernels_cpu.h instead"
#endif

#define QUANT_LANES_MAX (DDP_QUANT_BLOCK_MIN / 2)
_Static_assert(LANES <= QUANT_LANES_MAX, "half a block is at least one vector");
_Static_assert(LANES <= DDP_QUANT_SIGN_BLOCK_MIN / 8, "an eighth of a block is at least a vector");
_Static_assert(DDP_QUANT_PARTS % LANES == 0, "the partial sums of magnitudes are whole vectors");

/* Prefetch distance when arrays of at least QUANT_FAR_BYTES are encoded. Without the prefetch, the
 * processor waits for memory between computations (results/notes/kernels.md). */
#define QUANT_AHEAD_BYTES ((size_t)8 << 10)
#define QUANT_FAR_BYTES   ((size_t)1 << 20)
/* Number of blocks whose scales are computed before their codes. The codes of a block wait for its
 * scale, which takes about 60 cycles, so the processor computes several scales at the same time. */
#define QUANT_GROUP ((size_t)4)

/* Returns the largest magnitude of src [block] * scale, as the bits of a float. */
INLINE int32_t largest_bits(const float *src, size_t block, float scale)
{
    v_i32 most = {0};
    for (size_t i = 0; i < block; i += LANES)
        most = vec_max(most, magnitude(load_f32(src + i, LANES) * scale));
    return largest_lane(most);
}

/* Returns the random numbers of the elements of a block from index `i` on (device/quant.h). */
INLINE v_f32 random_of(struct ddp_quant q, size_t i)
{
    v_u32 h = iota() + (uint32_t)(q.first + i) + (uint32_t)q.key;
    h = (h ^ h >> 16u) * 0x7feb352du;
    h ^= (uint32_t)(q.key >> 32);
    h = (h ^ h >> 15u) * 0x846ca68bu;
    h ^= h >> 16u;
    return __builtin_convertvector((v_i32)(h >> 8u), v_f32) * 0x1p-24f;
}

/* Returns a mask of the lanes of y that do not get the nearest code. `nearest`: the value of the
 * nearest code. `gap`: distance from `nearest` to the code on the other side of y, or NaN if there
 * is none. */
INLINE v_i32 moves(v_f32 y, v_f32 nearest, v_f32 gap, struct ddp_quant q, size_t i)
{
    const v_f32 off = (v_f32)magnitude(y - nearest), size = (v_f32)magnitude(y);
    return (random_of(q, i) * gap < off) & (size < ddp_quant_top(q.code));
}

/* Returns the integer codes of y. y holds the elements of a block from index `i` on. */
INLINE v_i32 integer_codes(v_f32 y, struct ddp_quant q, size_t i)
{
    const v_i32 nearest = nearest_i32(y);
    if (!q.stochastic)
        return nearest;
    const v_f32 rounded = __builtin_convertvector(nearest, v_f32);
    const v_i32 sign = (v_i32)(y - rounded) >> 31 | 1;
    return nearest + (moves(y, rounded, (v_f32){0} + 1.0f, q, i) & sign);
}

/* Converts like narrow_fp8, but no magnitude may exceed the largest finite fp8, or be NaN. Adding
 * `ruler` rounds to the fp8 type, because its ulp is the distance between two neighbours of value.
 * The rounded value is exact in binary16, whose upper bits are the code. The baseline has no
 * instruction for binary16. */
INLINE raw_quarter narrow_finite_fp8(v_f32 value, enum ddp_dtype type)
{
    if (VB < 32)
        return narrow_fp8(value, type);
    const bool e4m3 = type == DDP_FP8_E4M3;
    const v_i32 least = (v_i32){0} + ((e4m3 ? 121 : 113) << 23); /* exponent of the subnormals */
    const v_i32 exponent = vec_max((v_i32)value & 0x7f800000, least);
    const v_f32 ruler = (v_f32)(exponent + ((e4m3 ? 20 << 23 : 21 << 23) + 0x400000));
    v_f32 rounded = value + ruler - ruler;
    rounded = (v_f32)((v_u32)rounded | ((v_u32)value & 0x80000000u)); /* keeps the sign of a zero */
    const v_u16h h = (v_u16h)narrow_f16(e4m3 ? rounded * 0x1p-8f : rounded);
    return bytes_of_halves(e4m3 ? (h | (h >> 1 & 0x4000)) >> 7 : h >> 8);
}

/* Returns the fp8 codes of y. y holds the elements of a block from index `i` on. Codes of one sign
 * are in the order of their magnitudes, so the neighbour of a code is code + 1 or code - 1. */
INLINE raw_quarter fp8_codes(v_f32 y, struct ddp_quant q, size_t i)
{
    const enum ddp_dtype type = q.code == DDP_QUANT_E4M3 ? DDP_FP8_E4M3 : DDP_FP8_E5M2;
    const raw_quarter bytes = narrow_finite_fp8(y, type);
    if (!q.stochastic)
        return bytes;
    const v_f32 nearest = widen_fp8(bytes, type);
    const v_u32 code = lanes_of(bytes);
    const v_i32 up = magnitude(y) > magnitude(nearest);
    const v_u32 other = (code + ((v_u32)up & 2u) - 1u) & 255u;
    const v_f32 gap = (v_f32)magnitude(widen_fp8(bytes_of(other), type) - nearest);
    const v_u32 mask = (v_u32)moves(y, nearest, gap, q, i);
    return bytes_of((other & mask) | (code & ~mask));
}

/* Writes the codes of a block. `factor`: top / max (device/quant.h). */
INLINE void encode_codes(unsigned char *codes, const float *src, struct ddp_quant q, float scale,
                         float factor)
{
    const size_t half = q.block / 2;
    if (q.code == DDP_QUANT_I4) {
        for (size_t i = 0; i < half; i += LANES) {
            const v_i32 low = integer_codes(load_f32(src + i, LANES) * scale * factor, q, i);
            const v_i32 high =
                integer_codes(load_f32(src + half + i, LANES) * scale * factor, q, half + i);
            const v_u32 both = ((v_u32)low & 15u) | ((v_u32)high & 15u) << 4;
            const raw_quarter bytes = bytes_of(both);
            memcpy(codes + i, &bytes, sizeof bytes);
        }
        return;
    }
    for (size_t i = 0; i < q.block; i += LANES) {
        const v_f32 x = load_f32(src + i, LANES) * scale * factor;
        raw_quarter bytes;
        if (q.code == DDP_QUANT_I8)
            bytes = bytes_of((v_u32)integer_codes(x, q, i) & 255u);
        else
            bytes = fp8_codes(x, q, i);
        memcpy(codes + i, &bytes, sizeof bytes);
    }
}

/* Writes the scale of a block. Returns the factor for encode_codes, or 0 if all codes are 0. */
INLINE float begin_block(unsigned char *dst, const float *src, struct ddp_quant q, float scale)
{
    const float top = ddp_quant_top(q.code);
    const int32_t bits = largest_bits(src, q.block, scale);
    float max, step = 0, factor = 0;
    memcpy(&max, &bits, sizeof max);
    if (bits >= 0x7f800000) {
        step = __builtin_nanf("");
    } else if (max >= DDP_QUANT_LEAST) {
        step = max / top;
        factor = top / max;
    }
    memcpy(dst, &step, sizeof step);
    return factor;
}

INLINE void finish_block(unsigned char *dst, const float *src, struct ddp_quant q, float scale,
                         float factor)
{
    if (factor > 0)
        encode_codes(dst + sizeof factor, src, q, scale, factor);
    else
        memset(dst + sizeof factor, 0, ddp_quant_block_bytes(q) - sizeof factor);
}

/* Returns the mean magnitude of src [n] * scale (device/quant.h). src has zeros from element n on,
 * up to `block` elements. */
INLINE float mean_magnitude(const float *src, size_t block, size_t n, float scale)
{
    enum { VECTORS = DDP_QUANT_PARTS / LANES };
    v_f32 part[VECTORS] = {{0}};
    float sum[DDP_QUANT_PARTS];
    for (size_t i = 0; i < block; i += DDP_QUANT_PARTS)
        for (size_t v = 0; v < VECTORS; v++)
            part[v] += (v_f32)magnitude(load_f32(src + i + v * LANES, LANES) * scale);
    memcpy(sum, part, sizeof sum);
    for (size_t half = DDP_QUANT_PARTS / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            sum[i] += sum[i + half];
    return sum[0] / (float)n;
}

/* Encodes src [n] * scale as a block of signs. src has zeros from element n on. `scale` is
 * positive, so it changes no sign. */
INLINE void quantize_signs(unsigned char *dst, const float *src, size_t block, size_t n,
                           float scale)
{
    const size_t bytes = block / 8;
    float mean = mean_magnitude(src, block, n, scale);
    const bool finite = mean < INFINITY;
    if (!finite)
        mean = __builtin_nanf("");
    memcpy(dst, &mean, sizeof mean);
    for (size_t i = 0; i < bytes; i += LANES) {
        v_u32 signs = {0};
        for (size_t bit = 0; bit < 8 && finite; bit++)
            signs |= (v_u32)load_f32(src + bit * bytes + i, LANES) >> 31 << (uint32_t)bit;
        const raw_quarter codes = bytes_of(signs);
        memcpy(dst + sizeof mean + i, &codes, sizeof codes);
    }
}

INLINE void quantize_loop(unsigned char *dst, const float *src, size_t n, struct ddp_quant q,
                          float scale)
{
    const size_t bytes = ddp_quant_block_bytes(q), block_bytes = q.block * sizeof *src;
    const bool far = n * sizeof *src >= QUANT_FAR_BYTES;
    float factor[QUANT_GROUP];

    while (n >= q.block) {
        const size_t group = DDP_MIN(n / q.block, QUANT_GROUP);
        for (size_t k = 0; k < group && q.code != DDP_QUANT_SIGN; k++)
            factor[k] = begin_block(dst + k * bytes, src + k * q.block, q, scale);
        for (size_t k = 0; k < group; k++) {
            if (far && n * sizeof *src >= QUANT_AHEAD_BYTES + block_bytes)
                ddp_prefetch(src, QUANT_AHEAD_BYTES, block_bytes);
            if (q.code == DDP_QUANT_SIGN)
                quantize_signs(dst, src, q.block, q.block, scale);
            else
                finish_block(dst, src, q, scale, factor[k]);
            n -= q.block;
            src += q.block;
            q.first += q.block;
            dst += bytes;
        }
    }
    if (n > 0) {
        float last[DDP_QUANT_BLOCK_MAX];
        memcpy(last, src, n * sizeof *src);
        memset(last + n, 0, (q.block - n) * sizeof *src);
        if (q.code == DDP_QUANT_SIGN)
            quantize_signs(dst, last, q.block, n, scale);
        else
            finish_block(dst, last, q, scale, begin_block(dst, last, q, scale));
    }
}

static void quantize(void *dst, const float *src, size_t n, struct ddp_quant q, float scale)
{
    unsigned char *out = (unsigned char *)dst;
#define QUANTIZE(code)                                                                             \
    (q.stochastic && (code) != DDP_QUANT_SIGN                                                      \
         ? quantize_loop(out, src, n, (struct ddp_quant){code, q.block, true, q.key, q.first},     \
                         scale)                                                                    \
         : quantize_loop(out, src, n, (struct ddp_quant){code, q.block, false, 0, 0}, scale))
    switch (q.code) {
    case DDP_QUANT_I8:
        QUANTIZE(DDP_QUANT_I8);
        break;
    case DDP_QUANT_I4:
        QUANTIZE(DDP_QUANT_I4);
        break;
    case DDP_QUANT_E4M3:
        QUANTIZE(DDP_QUANT_E4M3);
        break;
    case DDP_QUANT_SIGN:
        QUANTIZE(DDP_QUANT_SIGN);
        break;
    default:
        QUANTIZE(DDP_QUANT_E5M2);
    }
#undef QUANTIZE
}

/* How decoded values are written to dst: with plain or non-temporal stores, or added to the values
 * that dst has. */
enum decoded { STORED, STREAMED, ADDED };

INLINE void put_decoded(float *dst, v_f32 x, enum decoded how)
{
    if (how == ADDED)
        x = load_f32(dst, LANES) + x;
    store_f32(dst, canonical(x), LANES, how == STREAMED);
}

INLINE v_f32 f32_of_codes(const unsigned char *codes, enum ddp_quant_code code)
{
    raw_quarter bytes;
    memcpy(&bytes, codes, sizeof bytes);
    if (code == DDP_QUANT_I8)
        return __builtin_convertvector((v_i32)(lanes_of(bytes) << 24) >> 24, v_f32);
    return widen_fp8(bytes, code == DDP_QUANT_E4M3 ? DDP_FP8_E4M3 : DDP_FP8_E5M2);
}

/* Decodes the signs `src` of a block. */
INLINE void dequantize_signs(float *dst, const unsigned char *src, size_t block, float mean,
                             enum decoded how)
{
    const size_t bytes = block / 8;
    const v_u32 magnitudes = (v_u32)((v_f32){0} + mean);
    for (size_t i = 0; i < bytes; i += LANES) {
        raw_quarter codes;
        memcpy(&codes, src + i, sizeof codes);
        const v_u32 signs = lanes_of(codes);
        for (size_t bit = 0; bit < 8; bit++)
            put_decoded(dst + bit * bytes + i,
                        (v_f32)(magnitudes | signs << (uint32_t)(31 - bit) >> 31 << 31), how);
    }
}

INLINE void dequantize_block(float *dst, const unsigned char *src, struct ddp_quant q,
                             enum decoded how)
{
    const size_t half = q.block / 2;
    float step;
    memcpy(&step, src, sizeof step);
    src += sizeof step;
    if (q.code == DDP_QUANT_SIGN) {
        dequantize_signs(dst, src, q.block, step, how);
        return;
    }
    if (q.code == DDP_QUANT_I4) {
        for (size_t i = 0; i < half; i += LANES) {
            raw_quarter bytes;
            memcpy(&bytes, src + i, sizeof bytes);
            const v_i32 both = (v_i32)lanes_of(bytes);
            put_decoded(dst + i, __builtin_convertvector(both << 28 >> 28, v_f32) * step, how);
            put_decoded(dst + half + i, __builtin_convertvector(both << 24 >> 28, v_f32) * step,
                        how);
        }
        return;
    }
    for (size_t i = 0; i < q.block; i += LANES)
        put_decoded(dst + i, f32_of_codes(src + i, q.code) * step, how);
}

INLINE void dequantize_loop(float *dst, const unsigned char *src, size_t n, struct ddp_quant q,
                            enum decoded how)
{
    const size_t bytes = ddp_quant_block_bytes(q);
    for (; n >= q.block; n -= q.block, dst += q.block, src += bytes)
        dequantize_block(dst, src, q, how);
    if (how == STREAMED)
        vec_stream_end();
    if (n > 0) {
        float last[DDP_QUANT_BLOCK_MAX] = {0};
        memcpy(last, dst, n * sizeof *dst);
        dequantize_block(last, src, q, how == ADDED ? ADDED : STORED);
        memcpy(dst, last, n * sizeof *dst);
    }
}

static void dequantize(float *dst, const void *src, size_t n, struct ddp_quant q, bool add)
{
    const unsigned char *in = (const unsigned char *)src;
    const bool stream = stream_head(dst, n, sizeof *dst, VB) == 0; /* dst is aligned and large */
#define DEQUANTIZE(kind)                                                                           \
    (add ? dequantize_loop(dst, in, n, (struct ddp_quant){.code = kind, .block = q.block}, ADDED)  \
     : stream ? dequantize_loop(dst, in, n, (struct ddp_quant){.code = kind, .block = q.block},    \
                                STREAMED)                                                          \
              : dequantize_loop(dst, in, n, (struct ddp_quant){.code = kind, .block = q.block},    \
                                STORED))
    switch (q.code) {
    case DDP_QUANT_I8:
        DEQUANTIZE(DDP_QUANT_I8);
        break;
    case DDP_QUANT_I4:
        DEQUANTIZE(DDP_QUANT_I4);
        break;
    case DDP_QUANT_E4M3:
        DEQUANTIZE(DDP_QUANT_E4M3);
        break;
    case DDP_QUANT_SIGN:
        DEQUANTIZE(DDP_QUANT_SIGN);
        break;
    default:
        DEQUANTIZE(DDP_QUANT_E5M2);
    }
#undef DEQUANTIZE
}
