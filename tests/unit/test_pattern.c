/* The arithmetic of neighbours that the algorithms use, for every number of ranks up to 70. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/pattern.h"

#define RANKS_MAX 70

static void test_parts(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 6, 7, 8, 100, 10007};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (int n = 1; n <= RANKS_MAX; n++) {
            const struct ddp_chunks p = {.count = counts[c], .n = n};
            size_t end = 0;
            for (int i = 0; i < n; i++) {
                assert_int_equal(ddp_chunk_begin(&p, i), end);
                end += ddp_chunk_count(&p, i);
                assert_in_range(ddp_chunk_count(&p, i), p.count / (size_t)n,
                                (p.count + (size_t)n - 1) / (size_t)n);
                assert_true(ddp_chunk_count(&p, i) <= ddp_chunk_count(&p, 0));
            }
            assert_int_equal(end, p.count);
        }
    const struct ddp_chunks huge = {.count = SIZE_MAX, .n = 3};
    assert_int_equal(ddp_chunk_begin(&huge, 3), SIZE_MAX);

    const size_t offset[] = {0, 0, 5, 5, 12};
    const struct ddp_chunks given = {.count = 12, .n = 4, .offset = offset};
    assert_int_equal(ddp_chunk_begin(&given, 3), 5);
    assert_int_equal(ddp_chunk_count(&given, 1), 5);
    assert_int_equal(ddp_chunk_count(&given, 2), 0);
}

/* Simulates the steps: each rank passes one chunk on. holds [r]: the ranks whose inputs are
 * combined in rank r's data. */
static void test_ring(void **state)
{
    (void)state;
    for (int n = 2; n <= RANKS_MAX; n++)
        for (int r = 0; r < n; r++) {
            const int before = ddp_rank_at(r, -1, n);
            for (int step = 1; step < n - 1; step++) {
                assert_int_equal(ddp_ring_chunk_summed(r, step, n),
                                 ddp_ring_chunk_summed(before, step - 1, n));
                assert_int_equal(ddp_ring_chunk_copied(r, step, n),
                                 ddp_ring_chunk_copied(before, step - 1, n));
            }
            assert_int_equal(ddp_ring_chunk_copied(r, 0, n), r);
            assert_int_equal(ddp_ring_chunk_summed(before, n - 2, n), r);
            assert_int_equal(ddp_ring_chunk_summed(r, 0, n), before);
        }
}

static void test_pairwise(void **state)
{
    (void)state;
    for (int n = 1; n <= RANKS_MAX; n++)
        for (int r = 0; r < n; r++) {
            unsigned char met[RANKS_MAX] = {0};
            for (int step = 0; step < n; step++) {
                const int partner = ddp_mirror_partner(r, step, n);
                assert_in_range(partner, 0, n - 1);
                assert_int_equal(ddp_mirror_partner(partner, step, n), r);
                met[partner]++;
            }
            for (int peer = 0; peer < n; peer++)
                assert_int_equal(met[peer], 1);
            assert_int_equal(ddp_rank_at(ddp_rank_at(r, n - 1, n), -(n - 1), n), r);
        }
}

static void test_rounds(void **state)
{
    (void)state;
    static const int expected[][2] = {{1, 0}, {2, 1}, {3, 2}, {4, 2},
                                      {5, 3}, {8, 3}, {9, 4}, {64, 6}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_int_equal(ddp_rounds(expected[i][0]), expected[i][1]);
    assert_int_equal(ddp_rounds(INT32_MAX), 31);
}

/* After all rounds of dissemination every rank has received from every other one, directly or
 * not. */
static void test_dissemination(void **state)
{
    (void)state;
    for (int n = 1; n <= RANKS_MAX; n++) {
        unsigned char heard[RANKS_MAX][RANKS_MAX] = {{0}}, next[RANKS_MAX][RANKS_MAX];
        for (int r = 0; r < n; r++)
            heard[r][r] = 1;
        for (int k = 0; k < ddp_rounds(n); k++) {
            memcpy(next, heard, sizeof(next));
            for (int r = 0; r < n; r++)
                for (int of = 0; of < n; of++)
                    next[r][of] |= heard[ddp_rank_at(r, -(1 << k), n)][of];
            memcpy(heard, next, sizeof(heard));
        }
        for (int r = 0; r < n; r++)
            for (int of = 0; of < n; of++)
                assert_int_equal(heard[r][of], 1);
    }
}

/* Parents and children agree, and the subtrees are contiguous, disjoint and complete. */
static void test_binomial(void **state)
{
    (void)state;
    for (int n = 1; n <= RANKS_MAX; n++) {
        assert_int_equal(ddp_binomial_parent(0), -1);
        assert_int_equal(ddp_binomial_span(0, n), n);
        for (int v = 0; v < n; v++) {
            int covered = v + 1;
            for (int k = 0; k < ddp_binomial_children(v, n); k++) {
                const int child = v + (1 << k);
                assert_true(child < n);
                assert_int_equal(ddp_binomial_parent(child), v);
                assert_int_equal(child, covered);
                covered += ddp_binomial_span(child, n);
            }
            assert_int_equal(covered, v + ddp_binomial_span(v, n));
        }
    }
}

static void test_wrap(void **state)
{
    (void)state;
    for (int n = 1; n <= 17; n++)
        for (int root = 0; root < n; root++)
            for (int v = 0; v < n; v++) {
                const struct ddp_wrap wrap = ddp_wrap_of(v, root, n);
                const int rank = ddp_real_rank(v, root, n);
                assert_int_equal(ddp_virtual_rank(rank, root, n), v);
                assert_int_equal(wrap.before + wrap.after, ddp_binomial_span(v, n));
                for (int i = 0; i < ddp_binomial_span(v, n); i++)
                    assert_int_equal(ddp_real_rank(v + i, root, n),
                                     i < wrap.before ? rank + i : i - wrap.before);
            }
}

static void test_binary(void **state)
{
    (void)state;
    static const int depths[][2] = {{1, 0}, {2, 1}, {3, 1}, {4, 2}, {7, 2}, {8, 3}};
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
        assert_int_equal(ddp_binary_depth(depths[i][0]), depths[i][1]);
    for (int n = 1; n <= RANKS_MAX; n++) {
        int children = 0;
        for (int v = 0; v < n; v++)
            for (int k = 0; k < ddp_binary_children(v, n); k++, children++) {
                assert_true(2 * v + 1 + k < n);
                assert_int_equal(ddp_binary_parent(2 * v + 1 + k), v);
            }
        assert_int_equal(children, n - 1);
    }
}

static void test_fold(void **state)
{
    (void)state;
    for (int n = 1; n <= RANKS_MAX; n++) {
        const struct ddp_fold fold = ddp_fold_of(n);
        int folded = 0, before = -1;
        assert_int_equal(fold.pow2 & (fold.pow2 - 1), 0);
        assert_true(fold.pow2 <= n && n < 2 * fold.pow2);
        for (int r = 0; r < n; r++) {
            const int new_rank = ddp_fold_rank(fold, r);
            if (new_rank < 0) {
                folded++;
                assert_true(ddp_fold_holds(fold, r + 1));
                assert_false(ddp_fold_holds(fold, r));
                continue;
            }
            assert_int_equal(new_rank, before + 1);
            assert_int_equal(ddp_fold_real(fold, new_rank), r);
            before = new_rank;
        }
        assert_int_equal(folded, fold.extra);
        assert_int_equal(before, fold.pow2 - 1);
    }
}

/* Partners split the range that they share. At the end every element has one owner. */
static void test_halve(void **state)
{
    (void)state;
    for (size_t count = 0; count < 40; count++)
        for (int levels = 0; levels <= 4; levels++) {
            unsigned char owners[40] = {0};
            for (int r = 0; r < 1 << levels; r++) {
                struct ddp_range whole = {0, count};
                for (int level = 0; level < levels; level++) {
                    struct ddp_range keep, give, their_keep, their_give;
                    ddp_halve(whole, r, level, &keep, &give);
                    ddp_halve(whole, r ^ (1 << level), level, &their_keep, &their_give);
                    assert_memory_equal(&keep, &their_give, sizeof(keep));
                    assert_memory_equal(&give, &their_keep, sizeof(keep));
                    whole = keep;
                }
                for (size_t i = whole.begin; i < whole.end; i++)
                    owners[i]++;
            }
            for (size_t i = 0; i < count; i++)
                assert_int_equal(owners[i], 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_ring),
        cmocka_unit_test(test_pairwise),      cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_dissemination), cmocka_unit_test(test_binomial),
        cmocka_unit_test(test_wrap),          cmocka_unit_test(test_binary),
        cmocka_unit_test(test_fold),          cmocka_unit_test(test_halve),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
