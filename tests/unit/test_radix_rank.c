/* The logic of device cuda's top-K, run on the CPU: radix passes against a sort, and the
 * positions of a sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/select_ops.h"
#include "unit/grad_inputs.h"

static int descending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Finds the rank-th largest of x and its ties, with the kernels' way of counting. */
static struct ddp_radix radix_of(const float *x, uint32_t n, uint32_t rank)
{
    struct ddp_radix r = {0, rank};
    for (int pass = 0; pass < DDP_RADIX_PASSES; pass++) {
        uint32_t bins[DDP_RADIX_BINS] = {0}, groups[DDP_RADIX_BINS / DDP_RADIX_GROUP];
        for (uint32_t i = 0; i < n; i++) {
            const int digit =
                ddp_radix_digit(ddp_f32_magnitude(ddp_f32_canonical(x[i])), pass, r.prefix);
            if (digit >= 0)
                bins[digit]++;
        }
        for (int g = 0; g < DDP_RADIX_BINS / DDP_RADIX_GROUP; g++)
            groups[g] = ddp_radix_group(bins, g);
        r = ddp_radix_step(r, pass, bins, groups);
    }
    return r;
}

static void test_radix(void **state)
{
    static const uint32_t sizes[] = {1, 2, 100, 5000};
    for (int kind = 0; kind < GRAD_KINDS; kind++)
        for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++) {
            const uint32_t n = sizes[s];
            struct guarded in = guarded_new(n * 4, 0);
            const float *x = grad_fill(&in, (enum grad_kind)kind, 7);
            uint32_t *m = (uint32_t *)ddp_calloc(n, 4);
            for (uint32_t i = 0; i < n; i++)
                m[i] = grad_magnitude(grad_canonical(x[i]));
            qsort(m, n, 4, descending);
            for (uint32_t rank = 1; rank <= n; rank += 1 + n / 13) {
                uint32_t ties = 0;
                for (uint32_t i = 0; i < rank; i++)
                    ties += m[i] == m[rank - 1];
                const struct ddp_radix r = radix_of(x, n, rank);
                assert_int_equal(r.prefix, m[rank - 1]);
                assert_int_equal(r.rank, ties);
            }
            free(m);
            guarded_free(&in);
        }
}

/* Every line of a sample lies in its own section of the array, for every length. */
static void test_sample(void **state)
{
    static const uint32_t sizes[] = {16 * DDP_SAMPLE, 16 * DDP_SAMPLE + 31, 1000003, 0x7fffffffu};
    for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++) {
        const uint32_t n = sizes[s], lines = DDP_SAMPLE / DDP_SAMPLE_LINE;
        uint32_t end = 0;
        for (uint32_t line = 0; line < lines; line++) {
            const uint32_t at = ddp_sample_at(n, line);
            assert_true(at >= end && at % DDP_SAMPLE_LINE == 0);
            end = at + DDP_SAMPLE_LINE;
            assert_true(end <= n);
        }
        assert_true(end > n / 100 * 99);
    }
    for (uint32_t k = 1; k < 1u << 24; k *= 3) {
        const struct ddp_sample_plan plan = ddp_sample_plan_of(1u << 26, k);
        if (plan.rank == 0)
            continue;
        assert_true(plan.rank < DDP_SAMPLE && plan.capacity < 1u << 26);
        assert_true((double)plan.rank / DDP_SAMPLE > (double)k / (1u << 26));
        assert_true(plan.capacity > k);
    }
    assert_int_equal(ddp_sample_plan_of(1000, 10).rank, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_radix),
        cmocka_unit_test(test_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
