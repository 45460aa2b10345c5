/* The logic of device cuda's selection, run on the CPU block by block, against plain loops over
 * the whole array. Blocks take tiles in order but work and finish in random order, so look-back
 * meets every state of earlier tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/select_ops.h"
#include "unit/grad_inputs.h"

/* Number of blocks that work at the same time. */
#define BLOCKS 7

struct block {
    bool busy, looked;
    uint32_t tile;
    struct ddp_tile_thread thread[DDP_TILE_THREADS];
    uint64_t above_before[DDP_TILE_THREADS], equal_before[DDP_TILE_THREADS], above_all, equal_all;
    uint64_t before; /* the count that look-back has found so far */
    int64_t at;      /* the nearest tile not yet added */
};

struct grid {
    const struct ddp_tile_args *args;
    int mode;
    uint64_t *words;
    uint32_t ticket, count, total;
    size_t waits;
    struct block block[BLOCKS];
};

/* The threads of a block run a prefix sum together. */
static void scan(const struct ddp_tile_thread *threads, bool equal, uint64_t *before, uint64_t *all)
{
    *all = 0;
    for (int t = 0; t < DDP_TILE_THREADS; t++) {
        before[t] = *all;
        *all += ddp_tile_counts(equal ? threads[t].equal : threads[t].above);
    }
}

static uint64_t own_counts(const struct block *b)
{
    return ddp_word(DDP_WORD_ABSENT, ddp_tile_total(b->above_all), ddp_tile_total(b->equal_all));
}

static void begin_tile(struct grid *g, struct block *b)
{
    b->busy = true;
    b->looked = false;
    b->tile = g->ticket++;
}

static void look_at_tile(struct grid *g, struct block *b)
{
    b->looked = true;
    for (int t = 0; t < DDP_TILE_THREADS; t++)
        ddp_tile_look(g->args, g->mode, b->tile, t, &b->thread[t]);
    scan(b->thread, false, b->above_before, &b->above_all);
    scan(b->thread, true, b->equal_before, &b->equal_all);
    b->before = 0;
    b->at = (int64_t)b->tile - 1;
    if (b->tile > 0)
        g->words[b->tile] = (uint64_t)DDP_WORD_OWN << 62 | own_counts(b);
}

/* Looks once at a window of words. Returns true if the counts of all earlier tiles are added. */
static bool look_back_once(struct grid *g, struct block *b)
{
    uint32_t absent = 0, prefix = 0;
    uint64_t word[32];
    int last;
    if (b->tile == 0)
        return true;
    for (int lane = 0; lane < 32; lane++) {
        word[lane] = b->at - lane < 0 ? ddp_word(DDP_WORD_PREFIX, 0, 0) : g->words[b->at - lane];
        absent |= (uint32_t)(ddp_word_state(word[lane]) == DDP_WORD_ABSENT) << lane;
        prefix |= (uint32_t)(ddp_word_state(word[lane]) == DDP_WORD_PREFIX) << lane;
    }
    const int take = ddp_window_take(absent, prefix, &last);
    g->waits += take == 0;
    for (int lane = 0; lane < take; lane++)
        b->before += ddp_word_counts(word[lane]);
    b->at -= take;
    return last;
}

static void end_tile(struct grid *g, struct block *b)
{
    const struct ddp_tile_args *a = g->args;
    const uint64_t sum = b->before + own_counts(b);
    g->words[b->tile] = (uint64_t)DDP_WORD_PREFIX << 62 | sum;
    for (int t = 0; t < DDP_TILE_THREADS; t++) {
        const struct ddp_tile_position place = {
            ddp_counts_above(b->before), ddp_counts_equal(b->before),
            b->above_before[t],          b->above_all,
            b->equal_before[t],          b->equal_all};
        ddp_tile_take(a, g->mode, b->tile, t, &b->thread[t], &place);
    }
    if (b->tile == ddp_tiles(a->n) - 1) {
        g->total = ddp_cut_total(a->cut, sum);
        g->count = DDP_MIN(g->total, a->capacity);
    }
    b->busy = false;
}

/* Runs all blocks in single steps, in random order. newest: the block that began last runs
 * first, so it has to wait for all earlier ones. */
static void run(struct grid *g, const struct ddp_tile_args *args, int mode, uint64_t seed,
                bool newest)
{
    const uint32_t tiles = ddp_tiles(args->n);
    struct ddp_rng rng;
    ddp_rng_init(&rng, seed, 1);
    memset(g, 0, sizeof(*g));
    g->args = args;
    g->mode = mode;
    g->words = (uint64_t *)ddp_calloc(tiles + 1, sizeof(uint64_t));
    for (uint32_t done = 0; done < tiles;) {
        int which = (int)(ddp_rng_u64(&rng) % BLOCKS);
        for (int b = 0; b < BLOCKS && newest && g->ticket >= BLOCKS; b++)
            if (g->block[b].busy && g->block[b].tile == g->ticket - 1 && ddp_rng_u64(&rng) % 4)
                which = b;
        struct block *b = &g->block[which];
        if (!b->busy && g->ticket < tiles)
            begin_tile(g, b);
        else if (b->busy && !b->looked)
            look_at_tile(g, b);
        else if (b->busy && look_back_once(g, b)) {
            end_tile(g, b);
            done++;
        }
    }
    free(g->words);
}

struct wanted {
    float *acc, *left;
    uint32_t *index;
    uint32_t count, total;
};

static struct wanted want(const struct ddp_tile_args *a, int mode, const float *before)
{
    const bool keep = mode & DDP_TILE_KEEP;
    struct wanted w = {(float *)ddp_calloc(a->n, 4), (float *)ddp_calloc(a->n, 4),
                       (uint32_t *)ddp_calloc(a->n, 4), 0, 0};
    uint32_t ties = a->cut.ties;
    for (uint32_t i = 0; i < a->n; i++) {
        const float x = !(mode & DDP_TILE_RESIDUAL) ? a->in[i]
                        : mode & DDP_TILE_IN        ? a->in[i] + before[i]
                                                    : before[i];
        w.acc[i] = w.left[i] = grad_canonical(x);
        const int32_t m = (int32_t)grad_magnitude(w.acc[i]);
        const bool tie = (mode & DDP_TILE_TIES) && m == a->cut.magnitude && ties > 0;
        if (m <= a->cut.magnitude && !tie)
            continue;
        ties -= tie;
        w.total++;
        if (w.count == a->capacity)
            continue;
        w.index[w.count++] = i;
        if (!keep)
            w.left[i] = 0;
    }
    return w;
}

static void want_free(struct wanted *w)
{
    free(w->acc);
    free(w->left);
    free(w->index);
}

struct tile_case {
    enum grad_kind kind;
    int mode;
    uint32_t n, capacity;
    double quantile; /* position of the cut */
    bool newest;
};

#define MUST(ok)                                                                                   \
    do {                                                                                           \
        if (!(ok))                                                                                 \
            fail_msg("%s: %s, mode %d, n %u, capacity %u, quantile %g, newest %d, entry %u", #ok,  \
                     grad_kind_names[c->kind], c->mode, c->n, c->capacity, c->quantile, c->newest, \
                     i);                                                                           \
    } while (0)

static int descending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Returns the magnitude at that quantile from the top. With ties, half of the equal elements are
 * selected. */
static struct ddp_cut cut_at(const struct tile_case *c, const float *x)
{
    uint32_t *m = (uint32_t *)ddp_calloc(c->n, 4), equal = 0;
    for (uint32_t i = 0; i < c->n; i++)
        m[i] = grad_magnitude(grad_canonical(x[i]));
    qsort(m, c->n, 4, descending);
    struct ddp_cut cut = {(int32_t)m[(uint32_t)(c->quantile * (c->n - 1))], 0};
    for (uint32_t i = 0; i < c->n; i++)
        equal += m[i] == (uint32_t)cut.magnitude;
    if (c->mode & DDP_TILE_TIES)
        cut.ties = (equal + 1) / 2;
    free(m);
    return cut;
}

static size_t check_case(const struct tile_case *c)
{
    static struct grid grid; /* static, because it is large */
    uint32_t i = 0;
    struct guarded in = guarded_new(c->n * 4, 0), before = guarded_new(c->n * 4, 0);
    struct guarded residual = guarded_new(c->n * 4, 4), index = guarded_new(c->capacity * 4, 0);
    struct guarded value = guarded_new(c->capacity * 4, 0), zero = guarded_new(c->n * 4, 0);
    struct guarded list = guarded_new(c->n * 4, 0);
    float *left = (float *)guarded_at(&residual), *zeroed = (float *)guarded_at(&zero);
    struct ddp_tile_args a = {.in = grad_fill(&in, c->kind, c->n),
                              .residual = c->mode & DDP_TILE_RESIDUAL ? left : NULL,
                              .in_index = (uint32_t *)guarded_at(&list),
                              .zero = c->mode & DDP_TILE_TIES ? zeroed : NULL,
                              .out_index = (uint32_t *)guarded_at(&index),
                              .out_value = (float *)guarded_at(&value),
                              .n = c->n,
                              .capacity = c->capacity,
                              .vectors = 1};
    memcpy(left, grad_fill(&before, c->kind, c->n + 1u), c->n * 4);
    a.cut = cut_at(c, a.in);
    for (uint32_t j = 0; j < c->n; j++) {
        ((uint32_t *)guarded_at(&list))[j] = c->n - 1 - j;
        zeroed[j] = 1;
    }
    struct wanted w = want(&a, c->mode, (const float *)guarded_at(&before));
    run(&grid, &a, c->mode, c->n, c->newest);
    MUST(grid.count == w.count && grid.total == w.total);
    for (i = 0; i < w.count; i++) {
        const uint32_t name = c->mode & DDP_TILE_LIST ? c->n - 1 - w.index[i] : w.index[i];
        MUST(a.out_index[i] == name);
        MUST(bits_of(a.out_value[i]) == bits_of(w.acc[w.index[i]]));
        if (a.zero) {
            MUST(bits_of(zeroed[name]) == 0);
            zeroed[name] = 1;
        }
    }
    for (i = 0; i < c->n; i++) {
        MUST(bits_of(zeroed[i]) == bits_of(1.0f));
        if (a.residual)
            MUST(bits_of(left[i]) == bits_of(w.left[i]));
    }
    struct guarded *all[] = {&in, &before, &residual, &index, &value, &zero, &list};
    for (i = 0; i < DDP_COUNT_OF(all); i++) {
        MUST(guarded_intact(all[i]));
        guarded_free(all[i]);
    }
    want_free(&w);
    return grid.waits;
}

static const int modes[] = {DDP_TILE_IN,
                            DDP_TILE_RESIDUAL,
                            DDP_TILE_IN | DDP_TILE_RESIDUAL,
                            DDP_TILE_IN | DDP_TILE_RESIDUAL | DDP_TILE_KEEP,
                            DDP_TILE_RESIDUAL | DDP_TILE_KEEP,
                            DDP_TILE_IN | DDP_TILE_TIES,
                            DDP_TILE_LIST | DDP_TILE_TIES};

static void test_tiles(void **state)
{
    static const uint32_t sizes[] = {
        1, 2, 3, 5, 1023, 1025, DDP_TILE - 1, DDP_TILE, DDP_TILE + 1, 3 * DDP_TILE + 777};
    static const double quantiles[] = {0, 0.01, 0.5, 1};
    for (size_t m = 0; m < DDP_COUNT_OF(modes); m++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
                for (size_t q = 0; q < DDP_COUNT_OF(quantiles); q++)
                    check_case(&(struct tile_case){(enum grad_kind)kind, modes[m], sizes[s],
                                                   sizes[s], quantiles[q], false});
}

/* More tiles than a window holds, blocks that finish out of order, and an output that is too
 * short. */
static void test_look_back(void **state)
{
    size_t waits = 0;
    for (size_t m = 0; m < DDP_COUNT_OF(modes); m++)
        for (int newest = 0; newest < 2; newest++) {
            struct tile_case c = {GRAD_FEW,           modes[m], 70 * DDP_TILE + 13,
                                  70 * DDP_TILE + 13, 0.3,      newest};
            waits += check_case(&c);
            c.capacity = 20 * DDP_TILE + 1;
            waits += check_case(&c);
            c.kind = GRAD_NAN_INF;
            c.capacity = 5;
            waits += check_case(&c);
        }
    assert_true(waits > 100); /* otherwise no block was out of order */
}

static void test_window(void **state)
{
    int last;
    /* all are present, none is a prefix: look further back */
    assert_int_equal(ddp_window_take(0, 0, &last), 32);
    assert_false(last);
    assert_int_equal(ddp_window_take(1, 0, &last), 0); /* the nearest is absent: wait */
    assert_false(last);
    assert_int_equal(ddp_window_take(1, 2, &last), 0);
    assert_false(last);
    assert_int_equal(ddp_window_take(0, 1, &last), 1);
    assert_true(last);
    assert_int_equal(ddp_window_take(8, 4, &last), 3); /* the prefix is nearer than the gap */
    assert_true(last);
    /* the gap is nearer: two counts can be added */
    assert_int_equal(ddp_window_take(4, 8, &last), 2);
    assert_false(last);
    assert_int_equal(ddp_window_take(0, 0x80000000u, &last), 32);
    assert_true(last);
    const uint64_t most = ddp_word(DDP_WORD_PREFIX, 0x7fffffffu, 0x7fffffffu);
    assert_int_equal(ddp_word_state(most), DDP_WORD_PREFIX);
    assert_int_equal(ddp_counts_above(ddp_word_counts(most)), 0x7fffffff);
    assert_int_equal(ddp_counts_equal(ddp_word_counts(most)), 0x7fffffff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_look_back),
        cmocka_unit_test(test_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
