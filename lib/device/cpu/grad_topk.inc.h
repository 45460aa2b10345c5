/* Exact top-K with error feedback. Part of the template grad_kernels.inc.h.
 *
 * 1. Guess a *floor*, a magnitude that slightly more than k elements reach. The guess is a value
 * just below the caller's hint, or a quantile of a *sample* of the array.
 *
 * 2. Collect the *candidates*, the elements that reach the floor, in one pass (grad_select.inc.h).
 *
 * 3. Find the *cut*, the magnitude of the k-th largest candidate (grad_rank.inc.h). Return the
 * candidates below the cut to the residual.
 *
 * If many elements share one magnitude (zeros, for example), the floor is set just above that
 * magnitude, so that these elements do not become candidates. If there are then fewer than k
 * candidates, the first elements of the shared magnitude complete the selection. If all guesses
 * fail, the cut is searched in the whole array. */
#ifndef VB
#error "grad_topk.inc.h is part of a template: include grad_kernels.h"
#endif

/* Arrays of up to about this many elements are not sampled. */
#define SMALL ((size_t)1024)
/* A sample consists of whole cache lines of LINE floats. From every `stride` lines one line is
 * taken at a random position, so that a period in the array does not bias the sample. The sample
 * has 1/64 of the array's elements, and a larger share of small arrays. */
#define LINE          ((size_t)16)
#define SAMPLE_STRIDE ((size_t)64)
#define SAMPLE_LEAST  ((size_t)2048)
/* Distance of the floor below the hint, as a difference of float bits. 2^19 is 3 to 6 percent of
 * the value. */
#define HINT_MARGIN (1 << 19)

/* If more than 1/PLATEAU of the sample has one magnitude, the floor is set above that magnitude. */
#define PLATEAU 8

/* Returns how many magnitudes of x[n] are at least `least`. */
static size_t count_reaching(const float *x, size_t n, int32_t least)
{
    const v_i32 floor = (v_i32){0} + least;
    size_t count = 0, i = 0;
    for (; n - i >= LANES; i += LANES)
        count +=
            count_bits(mask_bits(at_least(magnitude(canonical(load_f32(x + i, LANES))), floor)));
    if (i < n) {
        const v_i32 m = magnitude(canonical(load_f32(x + i, n - i)));
        count += count_bits(mask_bits(at_least(m, floor)) & (uint32_t)((1ull << (n - i)) - 1));
    }
    return count;
}

/* Returns the floor that a sample suggests, or 0 if a sample would not help. The rank of the floor
 * in the sample is k scaled to the size of the sample, plus a margin. The margin is 1/16, because
 * neighbours in a line are alike, plus 4 standard deviations of a binomial count. sample has room
 * for n values. */
static int32_t sample_floor(const float *in, const float *residual, size_t n, size_t k,
                            float *sample)
{
    const size_t head = (-(uintptr_t)(in ? in : residual) & (LINE * 4 - 1)) / 4;
    if (n <= SMALL + head)
        return 0;
    const size_t lines = (n - head) / LINE;
    const size_t stride = DDP_MAX(DDP_MIN(SAMPLE_STRIDE, lines / (SAMPLE_LEAST / LINE)), 1);
    size_t count = 0;
    uint64_t random = n;
    for (size_t line = 0; line + stride <= lines; line += stride) {
        random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth, TAOCP 2, 3.3.4 */
        const size_t from = head + LINE * (line + (size_t)((random >> 32) * stride >> 32));
        for (size_t i = from; i < from + LINE; i += LANES, count += LANES) {
            v_f32 v = load_f32((in ? in : residual) + i, LANES);
            if (in != NULL && residual != NULL)
                v += load_f32(residual + i, LANES);
            store_f32(sample + count, v, LANES, false);
        }
    }
    const double share = (double)k / (double)n, expected = share * (double)count;
    const double rank = expected * 17 / 16 + 4 * sqrt(expected * (1 - share)) + 1;
    if (rank >= (double)count)
        return 0;
    const int32_t floor = find_rank(sample, count, (size_t)rank, 0).magnitude;
    const size_t same =
        count_reaching(sample, count, floor) - count_reaching(sample, count, floor + 1);
    return same > count / PLATEAU ? floor + 1 : floor;
}

/* Returns the lowest lanes set in eq, at most *ties of them. Reduces *ties by their number. */
INLINE uint32_t take_ties(uint32_t eq, size_t *ties)
{
    uint32_t take = 0;
    if (count_bits(eq) <= *ties) {
        *ties -= count_bits(eq);
        return eq;
    }
    for (; *ties != 0; eq &= eq - 1, (*ties)--)
        take |= eq & -eq;
    return take;
}

/* Returns a mask of the lanes of v above the cut and of the first cut->ties lanes equal to the cut.
 * Reduces cut->ties by the number of lanes equal to the cut in the mask. */
INLINE uint32_t reach_cut(v_f32 v, size_t lanes, struct rank *cut)
{
    const uint32_t all = (uint32_t)((1ull << lanes) - 1);
    const v_i32 equal = (v_i32){0} + cut->magnitude, above = (v_i32){0} + (cut->magnitude + 1);
    const uint32_t more = mask_bits(at_least(magnitude(v), above)) & all;
    const uint32_t same = mask_bits(at_least(magnitude(v), equal)) & all & ~more;
    return more | take_ties(same, &cut->ties);
}

/* Appends the entries of the lanes in `take` to out, which has room for k entries. */
INLINE void append_lanes(struct ddp_sparse *out, size_t k, v_u32 index, v_f32 value, uint32_t take)
{
    const size_t more = count_bits(take);
    if (k - out->count >= LANES) {
        pack_lanes(out->index + out->count, index, take);
        pack_lanes((uint32_t *)(void *)(out->value + out->count), (v_u32)value, take);
    } else {
        uint32_t part[LANES];
        pack_lanes(part, index, take);
        memcpy(out->index + out->count, part, more * sizeof(*part));
        pack_lanes(part, (v_u32)value, take);
        memcpy(out->value + out->count, part, more * sizeof(*part));
    }
    out->count += more;
}

/* Moves the candidates that reach the cut to out, in order. Returns the other candidates to the
 * residual. */
static void split_candidates(const struct ddp_sparse *candidates, struct rank cut, size_t k,
                             float *residual, struct ddp_sparse *out)
{
    out->count = 0;
    for (size_t i = 0; i < candidates->count; i += DDP_MIN(LANES, candidates->count - i)) {
        const size_t lanes = DDP_MIN(LANES, candidates->count - i);
        const uint32_t *index = candidates->index + i;
        const float *value = candidates->value + i;
        const v_u32 at = (v_u32)load_f32((const float *)(const void *)index, lanes);
        const v_f32 v = load_f32(value, lanes);
        const uint32_t take = reach_cut(v, lanes, &cut);
        append_lanes(out, k, at, v, take);
        if (residual != NULL)
            for (uint32_t left = ~take & (uint32_t)((1ull << lanes) - 1); left != 0;
                 left &= left - 1)
                residual[index[__builtin_ctz(left)]] = value[__builtin_ctz(left)];
    }
    assert(out->count == k);
}

/* Moves the elements that reach the cut from x [n] to out. x is the residual if there is one. */
static void split_array(const float *x, size_t n, struct rank cut, size_t k, float *residual,
                        struct ddp_sparse *out)
{
    v_u32 at = iota();
    out->count = 0;
    for (size_t i = 0; out->count < k; i += DDP_MIN(LANES, n - i), at += (uint32_t)LANES) {
        const size_t lanes = DDP_MIN(LANES, n - i);
        const v_f32 v = canonical(load_f32(x + i, lanes));
        const uint32_t take = reach_cut(v, lanes, &cut);
        if (take == 0)
            continue;
        append_lanes(out, k, at, v, take);
        if (residual != NULL)
            for (uint32_t taken = take; taken != 0; taken &= taken - 1)
                residual[i + (size_t)__builtin_ctz(taken)] = 0;
    }
    assert(out->count == k);
}

/* Collects the candidates. Takes the floor from the hint, if there is one. Without a hint, or if
 * fewer than k values reach that floor, takes the floor from a sample. Returns true if there are at
 * least k candidates. Otherwise candidates->count is the number of values that reach *floor, and
 * the residual, if there is one, holds the sums again. */
static bool take_candidates(const struct ddp_select *s, size_t k, uint32_t hint,
                            struct ddp_sparse *candidates, int32_t *floor)
{
    const float *in = s->in;
    for (bool hinted = hint != 0;; hinted = false) {
        *floor = hinted ? DDP_MAX((int32_t)DDP_MIN(hint, (uint32_t)ABOVE_ALL) - HINT_MARGIN, 0)
                        : sample_floor(in, s->residual, s->n, k, candidates->value);
        candidates->count =
            select_pass(in, s->residual, s->n, *floor, candidates->index, candidates->value);
        if (candidates->count >= k)
            return true;
        if (s->residual != NULL) {
            ddp_list_scatter(s->residual, candidates);
            in = NULL;
        }
        if (!hinted)
            return false;
    }
}

/* Returns the cut of the whole array x [n]. `above` is the number of values that reach `floor`, and
 * is less than k. The magnitude just below the floor is tried first, because often all missing
 * values have that magnitude. */
static struct rank find_cut(const float *x, size_t n, size_t k, int32_t floor, size_t above)
{
    if (floor > 0 && count_reaching(x, n, floor - 1) >= k)
        return (struct rank){floor - 1, k - above};
    return find_rank(x, n, k, 0);
}

static size_t select_topk(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch)
{
    struct ddp_sparse candidates = {(uint32_t *)scratch, (float *)scratch + s->n, 0};
    struct rank cut;
    int32_t floor;
    if (k == 0 || s->n == 0) {
        s->out.count =
            select_pass(s->in, s->residual, s->n, ABOVE_ALL, candidates.index, candidates.value);
        return 0;
    }
    if (k >= s->n) {
        s->out.count = select_pass(s->in, s->residual, s->n, 0, s->out.index, s->out.value);
        cut = find_rank(s->out.value, s->n, s->n, 0);
    } else if (take_candidates(s, k, hint ? *hint : 0, &candidates, &floor)) {
        cut = find_rank(candidates.value, candidates.count, k, floor);
        split_candidates(&candidates, cut, k, s->residual, &s->out);
    } else {
        const float *x = s->residual ? s->residual : s->in;
        cut = find_cut(x, s->n, k, floor, candidates.count);
        split_array(x, s->n, cut, k, s->residual, &s->out);
    }
    if (hint != NULL)
        *hint = (uint32_t)cut.magnitude;
    return s->out.count;
}
