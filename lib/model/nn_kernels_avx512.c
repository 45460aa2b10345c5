/* AVX-512: the compiler's, and one loop by hand. Images up to 16 wide, as behind every first pool
 * here, have their rows in one register, and a masked load shifts the row of a tap into place. */
#include <immintrin.h>

#include "model/nn_kernels.h"

static void col2im(const struct ddp_conv_shape *s, int n, const float *col, float *dx,
                   struct ddp_view dxv);

static inline __attribute__((always_inline)) void
fold_plane(int in_h, int in_w, int k, const float *col, size_t tap_stride, float *dx)
{
    int out_h = in_h - k + 1, out_w = in_w - k + 1;
    __mmask16 row_mask = (__mmask16)((1u << in_w) - 1), tap_mask = (__mmask16)((1u << out_w) - 1);
    for (int y = 0; y < in_h; y++, dx += in_w) {
        int first = y < out_h ? 0 : y - out_h + 1, last = y < k ? y : k - 1;
        __m512 sum = _mm512_setzero_ps();
        for (int ky = first; ky <= last; ky++) {
            const float *tap = col + (size_t)(ky * k) * tap_stride + (y - ky) * out_w;
            for (int kx = 0; kx < k; kx++, tap += tap_stride)
                /* Lanes below kx are not read: the address may lie before the array. */
                sum = _mm512_add_ps(sum,
                                    _mm512_maskz_loadu_ps((__mmask16)(tap_mask << kx), tap - kx));
        }
        _mm512_mask_storeu_ps(dx, row_mask, sum);
    }
}

static void fold(const struct ddp_conv_shape *s, int n, const float *col, float *dx,
                 struct ddp_view dxv)
{
    if (s->in_w > 16 || s->k > s->in_h || s->k != 5) {
        col2im(s, n, col, dx, dxv);
        return;
    }
    size_t plane = (size_t)(s->in_h - s->k + 1) * (size_t)(s->in_w - s->k + 1);
    size_t tap_stride = (size_t)n * plane;
    for (int c = 0; c < s->in_c; c++, col += tap_stride * (size_t)(s->k * s->k))
        for (int i = 0; i < n; i++)
            fold_plane(s->in_h, s->in_w, 5, col + (size_t)i * plane, tap_stride,
                       dx + (size_t)c * dxv.channel + (size_t)i * dxv.image);
}

#define DDP_NN_TABLE  ddp_nn_kernels_avx512
#define DDP_NN_COL2IM fold
#include "model/nn_kernels.inc.h"
