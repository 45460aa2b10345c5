/* Random numbers: published vectors, independent streams, no bias, and the same bits in every
 * version. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/rng.h"

static void test_splitmix_vector(void **state)
{
    /* First output of splitmix64 from state 0 (Vigna's splitmix64.c). */
    assert_true(ddp_mix64(0) == 0xE220A8397B1DCDAFu);
}

static void test_xoshiro_vector(void **state)
{
    /* xoshiro256** from state 1, 2, 3, 4; by hand: rotl(2*5, 7)*9 = 11520. */
    struct ddp_rng rng = {{1, 2, 3, 4}};
    static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240u};
    for (size_t i = 0; i < 4; i++)
        assert_true(ddp_rng_u64(&rng) == expected[i]);
}

static void test_same_seed_same_bits(void **state)
{
    struct ddp_rng a, b, c, d;
    ddp_rng_init(&a, 7, 3);
    ddp_rng_init(&b, 7, 3);
    ddp_rng_init(&c, 8, 3);
    ddp_rng_init(&d, 7, 4);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = ddp_rng_u64(&a);
        assert_true(x == ddp_rng_u64(&b));
        equal += x == ddp_rng_u64(&c);
        equal += x == ddp_rng_u64(&d);
    }
    assert_int_equal(equal, 0);
}

static void test_seed_and_stream_do_not_swap(void **state)
{
    struct ddp_rng a, b;
    ddp_rng_init(&a, 1, 2);
    ddp_rng_init(&b, 2, 1);
    assert_true(ddp_rng_u64(&a) != ddp_rng_u64(&b));
}

static void test_double_and_normal_moments(void **state)
{
    enum { N = 200000 };
    struct ddp_rng rng;
    double sum = 0, square = 0, normal = 0, normal_square = 0, fourth = 0;
    ddp_rng_init(&rng, 1, 0);
    for (int i = 0; i < N; i++) {
        double u = ddp_rng_double(&rng), z = ddp_rng_normal(&rng);
        assert_true(u >= 0 && u < 1);
        sum += u;
        square += u * u;
        normal += z;
        normal_square += z * z;
        fourth += z * z * z * z;
    }
    /* Five standard deviations of each mean. */
    double wide = 5 / sqrt(N);
    assert_true(fabs(sum / N - 0.5) < wide * sqrt(1.0 / 12));
    assert_true(fabs(square / N - 1.0 / 3) < wide * sqrt(4.0 / 45));
    assert_true(fabs(normal / N) < wide);
    assert_true(fabs(normal_square / N - 1) < wide * sqrt(2));
    assert_true(fabs(fourth / N - 3) < wide * sqrt(96));
}

static void test_below_is_unbiased(void **state)
{
    enum { N = 70000, BOUND = 7 };
    struct ddp_rng rng;
    int seen[BOUND] = {0};
    ddp_rng_init(&rng, 2, 0);
    for (int i = 0; i < N; i++)
        seen[ddp_rng_below(&rng, BOUND)]++;
    double chi2 = 0;
    for (int i = 0; i < BOUND; i++)
        chi2 += (seen[i] - N / BOUND) * (double)(seen[i] - N / BOUND) / (N / BOUND);
    assert_true(chi2 < 33); /* 6 degrees of freedom: probability 1e-5 */
    /* With 3 * 2^62 a plain product would give the low third twice as often as the others, which
     * makes its share 1/2. */
    int low = 0;
    for (int i = 0; i < 10000; i++) {
        uint64_t v = ddp_rng_below(&rng, 3ull << 62);
        assert_true(v < 3ull << 62);
        low += v < 1ull << 62;
    }
    assert_true(low > 3000 && low < 3700);
    assert_true(ddp_rng_below(&rng, 1) == 0);
}

static void test_shuffle(void **state)
{
    enum { N = 1000 };
    static uint32_t index[N], again[N];
    static char seen[N];
    struct ddp_rng rng;
    int moved = 0;
    for (int round = 0; round < 2; round++) {
        uint32_t *v = round ? again : index;
        for (uint32_t i = 0; i < N; i++)
            v[i] = i;
        ddp_rng_init(&rng, 5, 1);
        ddp_rng_shuffle(&rng, v, N);
    }
    assert_memory_equal(index, again, sizeof index);
    for (uint32_t i = 0; i < N; i++) {
        assert_true(index[i] < N);
        assert_int_equal(seen[index[i]]++, 0);
        moved += index[i] != i;
    }
    assert_true(moved > N - 10);
    ddp_rng_shuffle(&rng, index, 0);
    /* All 6 orders of three are equally likely. */
    int orders[6] = {0};
    for (int i = 0; i < 60000; i++) {
        uint32_t p[3] = {0, 1, 2};
        ddp_rng_shuffle(&rng, p, 3);
        orders[p[0] * 2 + (p[1] > p[2])]++;
    }
    for (int i = 0; i < 6; i++)
        assert_true(abs(orders[i] - 10000) < 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splitmix_vector),
        cmocka_unit_test(test_xoshiro_vector),
        cmocka_unit_test(test_same_seed_same_bits),
        cmocka_unit_test(test_seed_and_stream_do_not_swap),
        cmocka_unit_test(test_double_and_normal_moments),
        cmocka_unit_test(test_below_is_unbiased),
        cmocka_unit_test(test_shuffle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
