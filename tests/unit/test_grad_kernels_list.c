/* Compares kernels on index-sorted lists with dense arrays. The table of every SIMD level has
 * these kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "unit/grad_inputs.h"

#define N ((size_t)500)

/* A list of about `density` * N indices, ascending, with values of `kind`. */
struct list {
    uint32_t index[N];
    float value[N];
    struct ddp_sparse s;
};

static void fill_list(struct list *l, double density, enum grad_kind kind, uint64_t seed)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, seed, 99);
    l->s = (struct ddp_sparse){l->index, l->value, 0};
    for (size_t i = 0; i < N; i++)
        if (ddp_rng_double(&rng) < density) {
            l->index[l->s.count] = (uint32_t)i;
            l->value[l->s.count++] = grad_value(kind, i, N, &rng);
        }
}

/* Returns the entry of index i, or NULL. */
static const float *find(const struct list *l, size_t i)
{
    for (size_t j = 0; j < l->s.count; j++)
        if (l->index[j] == i)
            return &l->value[j];
    return NULL;
}

static void check_merge(const struct ddp_grad_kernels *grad, const struct list *a,
                        const struct list *b)
{
    const size_t room = a->s.count + b->s.count;
    struct guarded index = guarded_new(room * 4, 4), value = guarded_new(room * 4, 4);
    struct ddp_sparse out = {(uint32_t *)guarded_at(&index), (float *)guarded_at(&value), 777};
    grad->merge(&out, &a->s, &b->s);
    size_t next = 0;
    for (size_t i = 0; i < N; i++) {
        const float *x = find(a, i), *y = find(b, i);
        if (!x && !y)
            continue;
        assert_true(next < out.count);
        assert_int_equal(out.index[next], i);
        const float expected = grad_canonical(x && y ? *x + *y : x ? *x : *y);
        assert_int_equal(bits_of(out.value[next]), bits_of(expected));
        next++;
    }
    assert_int_equal(out.count, next);
    assert_true(guarded_intact(&index) && guarded_intact(&value));
    guarded_free(&index);
    guarded_free(&value);
}

static const double densities[] = {0, 1.0 / (double)N, 0.03, 0.5, 1};

/* Every pair of densities, including the empty and the full list, with every kind of values. */
static void test_merge(void **state)
{
    (void)state;
    static struct list a, b;
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (size_t i = 0; i < DDP_COUNT_OF(densities) * DDP_COUNT_OF(densities); i++) {
                fill_list(&a, densities[i % DDP_COUNT_OF(densities)], (enum grad_kind)kind, i);
                fill_list(&b, densities[i / DDP_COUNT_OF(densities)], (enum grad_kind)kind, ~i);
                check_merge(ddp_device_cpu((enum ddp_simd)level)->grad, &a, &b);
            }
}

/* Entries that cancel stay in the list as +0. A -0 that is only copied stays -0. */
static void test_merge_zeros(void **state)
{
    (void)state;
    struct list a = {{3, 7, 9}, {1.5f, -0.0f, -0.0f}, {NULL, NULL, 3}};
    struct list b = {{3, 8, 9}, {-1.5f, -0.0f, -0.0f}, {NULL, NULL, 3}};
    static const uint32_t at[] = {3, 7, 8, 9}, bits[] = {0, 1u << 31, 1u << 31, 1u << 31};
    uint32_t index[6];
    float value[6];
    struct ddp_sparse out = {index, value, 0};
    a.s = (struct ddp_sparse){a.index, a.value, 3};
    b.s = (struct ddp_sparse){b.index, b.value, 3};
    ddp_device_cpu(DDP_SIMD_SCALAR)->grad->merge(&out, &a.s, &b.s);
    assert_int_equal(out.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(index[i], at[i]);
        assert_int_equal(bits_of(value[i]), bits[i]);
    }
}

static void check_scatter(const struct ddp_grad_kernels *grad, const struct list *l,
                          enum grad_kind kind)
{
    struct guarded g = guarded_new(N * 4, 4);
    float before[N], *dst = grad_fill(&g, kind, 5);
    memcpy(before, dst, sizeof(before));
    grad->scatter_add(dst, &l->s);
    for (size_t i = 0; i < N; i++) {
        const float *x = find(l, i);
        const float expected = x ? grad_canonical(before[i] + *x) : before[i];
        assert_int_equal(bits_of(dst[i]), bits_of(expected));
    }
    grad->scatter(dst, &l->s);
    for (size_t i = 0; i < N; i++) {
        const float *x = find(l, i);
        assert_int_equal(bits_of(dst[i]), bits_of(x ? grad_canonical(*x) : before[i]));
    }
    grad->scatter_zero(dst, l->s.index, l->s.count);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(bits_of(dst[i]), find(l, i) ? 0 : bits_of(before[i]));
    assert_true(guarded_intact(&g));
    guarded_free(&g);
}

static void test_scatter(void **state)
{
    (void)state;
    static struct list l;
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (size_t i = 0; i < DDP_COUNT_OF(densities); i++) {
                fill_list(&l, densities[i], (enum grad_kind)kind, i);
                check_scatter(ddp_device_cpu((enum ddp_simd)level)->grad, &l, (enum grad_kind)kind);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_merge_zeros),
        cmocka_unit_test(test_scatter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
