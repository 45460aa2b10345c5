/* Selection with error feedback in one pass. Part of the template grad_kernels.inc.h.
 *
 * For each block of vectors, a pass adds the residual, selects lanes, stores the new residual and
 * packs the selected entries. A block without selected lanes skips the packing with one branch. A
 * block with selected lanes is packed without branches on the lanes. Packing writes whole vectors.
 * It does not write beyond arrays of n entries, because at most as many entries are packed as
 * elements were read. */
#ifndef VB
#error "grad_select.inc.h is part of a template: include grad_kernels.h"
#endif

/* A floor above every magnitude, which selects nothing. */
#define ABOVE_ALL INT32_MAX

/* The input of a pass: the sum of `in` and `residual`, only `in`, or only `residual`. A pass
 * rewrites the residual if there is one. */
enum feed { FEED_SUM, FEED_IN, FEED_RESIDUAL };

INLINE v_f32 with_residual(const float *in, const float *residual, size_t lanes, enum feed feed)
{
    if (feed == FEED_SUM)
        return canonical(load_f32(in, lanes) + load_f32(residual, lanes));
    return canonical(load_f32(feed == FEED_IN ? in : residual, lanes));
}

/* Returns 0, 1, 2, ... in the lanes of a vector. */
INLINE v_u32 iota(void)
{
    v_u32 v;
    for (uint32_t i = 0; i < LANES; i++)
        v[i] = i;
    return v;
}

/* Sets *acc to the input values of one vector. Returns a bit mask of the lanes whose magnitude is
 * at least `least`. */
INLINE uint32_t select_vector(const float *in, float *residual, size_t lanes, enum feed feed,
                              v_i32 least, v_f32 *acc)
{
    *acc = with_residual(in, residual, lanes, feed);
    const lane_mask chosen = at_least(magnitude(*acc), least);
    if (feed != FEED_IN)
        store_f32(residual, zero_where(chosen, *acc), lanes, false);
    return mask_bits(chosen);
}

INLINE size_t select_loop(const float *in, float *residual, size_t n, enum feed feed, int32_t floor,
                          uint32_t *index, float *value)
{
    const v_i32 least = (v_i32){0} + floor;
    const bool ahead = feed == FEED_IN && prefetcher_lags();
    v_u32 at = iota();
    v_f32 acc[BLOCK];
    uint32_t bits[BLOCK];
    size_t count = 0, i = 0;
    for (; n - i >= BLOCK * LANES; i += BLOCK * LANES, at += (uint32_t)(BLOCK * LANES)) {
        uint32_t any = 0;
        if (ahead)
            ddp_prefetch(in + i, AHEAD_BYTES, sizeof(acc));
        for (size_t v = 0; v < BLOCK; v++) {
            const size_t j = i + v * LANES;
            bits[v] = select_vector(in + j, residual + j, LANES, feed, least, &acc[v]);
            any |= bits[v];
        }
        if (any == 0)
            continue;
        for (size_t v = 0; v < BLOCK; v++) {
            pack_lanes(index + count, at + (uint32_t)(v * LANES), bits[v]);
            pack_lanes((uint32_t *)(void *)(value + count), (v_u32)acc[v], bits[v]);
            count += count_bits(bits[v]);
        }
    }
    for (; i < n; i += DDP_MIN(LANES, n - i), at += (uint32_t)LANES) {
        uint32_t left[LANES] = {0};
        const size_t lanes = DDP_MIN(LANES, n - i);
        bits[0] = lanes == LANES ? select_vector(in + i, residual + i, LANES, feed, least, acc)
                                 : select_vector(in + i, residual + i, lanes, feed, least, acc);
        bits[0] &= (uint32_t)((1ull << lanes) - 1);
        const size_t more = count_bits(bits[0]);
        pack_lanes(left, at, bits[0]);
        memcpy(index + count, left, more * sizeof(*index));
        pack_lanes(left, (v_u32)acc[0], bits[0]);
        memcpy(value + count, left, more * sizeof(*value));
        count += more;
    }
    return count;
}

/* Selects the elements whose magnitude is at least `floor`. in and residual are arrays [n]; one of
 * them may be NULL. index and value have room for n entries. Returns the number of selected
 * entries. */
static size_t select_pass(const float *in, float *residual, size_t n, int32_t floor,
                          uint32_t *index, float *value)
{
    assert(in != NULL || residual != NULL);
    if (residual == NULL)
        return select_loop(in, residual, n, FEED_IN, floor, index, value);
    if (in == NULL)
        return select_loop(in, residual, n, FEED_RESIDUAL, floor, index, value);
    return select_loop(in, residual, n, FEED_SUM, floor, index, value);
}

static size_t select_threshold(struct ddp_select *s, float threshold)
{
    int32_t floor;
    memcpy(&floor, &threshold, sizeof(floor));
    assert(threshold >= 0);
    s->out.count =
        select_pass(s->in, s->residual, s->n, floor & INT32_MAX, s->out.index, s->out.value);
    return s->out.count;
}
