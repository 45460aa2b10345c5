/* Compares selection kernels with a simple version that adds plainly and sorts completely, at
 * every SIMD level, for every kind of input, odd sizes and addresses. Guards surround the
 * outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "unit/grad_inputs.h"

/* The expected results of a selection. */
struct expected {
    float *acc;
    uint32_t *index;
    size_t count;
};

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int by_index(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void sum_into(struct expected *e, const float *in, const float *residual, size_t n)
{
    e->acc = (float *)ddp_calloc(n, sizeof(float));
    e->index = (uint32_t *)ddp_calloc(n, sizeof(uint32_t));
    e->count = 0;
    for (size_t i = 0; i < n; i++)
        e->acc[i] = grad_canonical(!residual ? in[i] : !in ? residual[i] : in[i] + residual[i]);
}

static void expect_threshold(struct expected *e, size_t n, float threshold)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(e->acc[i]) < threshold))
            e->index[e->count++] = (uint32_t)i;
}

static void expect_topk(struct expected *e, size_t n, size_t k)
{
    uint64_t *keys = (uint64_t *)ddp_calloc(n, sizeof(uint64_t));
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint64_t)(0x7fffffffu - grad_magnitude(e->acc[i])) << 32 | i;
    qsort(keys, n, sizeof(*keys), by_key);
    e->count = DDP_MIN(k, n);
    for (size_t i = 0; i < e->count; i++)
        e->index[i] = (uint32_t)keys[i];
    qsort(e->index, e->count, sizeof(*e->index), by_index);
    free(keys);
}

static void expected_free(struct expected *e)
{
    free(e->acc);
    free(e->index);
}

/* The inputs that a case has. */
enum feed { SUM, IN_ONLY, RESIDUAL_ONLY, FEEDS };

struct selection {
    enum grad_kind kind;
    enum feed feed;
    size_t n, k; /* k: for top-K; a threshold ignores it */
    float threshold;
    size_t offset;
    uint32_t hint; /* the hint that find gets */
    bool topk;
};

static void must(bool ok, const struct selection *c, int level, const char *what)
{
    if (!ok)
        fail_msg("%s: level %d, %s, feed %d, n %zu, k %zu, threshold %g, offset %zu, hint %08x",
                 what, level, grad_kind_names[c->kind], (int)c->feed, c->n, c->k,
                 (double)c->threshold, c->offset, c->hint);
}

/* Runs the case at one level and compares every bit of the outputs. */
static void check_level(const struct selection *c, int level, const float *in, const float *before,
                        const struct expected *e)
{
    const struct ddp_grad_kernels *grad = ddp_device_cpu((enum ddp_simd)level)->grad;
    const size_t room = c->topk ? DDP_MIN(c->k, c->n) : c->n;
    struct guarded residual = guarded_new(c->n * 4, c->offset);
    struct guarded index = guarded_new(room * 4, c->offset);
    struct guarded value = guarded_new(room * 4, c->offset);
    struct guarded scratch = guarded_new(c->n * 8, 0);
    float *left = before ? (float *)guarded_at(&residual) : NULL;
    if (before && c->n != 0)
        memcpy(left, before, c->n * 4);
    struct ddp_select s = {
        .in = in,
        .residual = left,
        .n = c->n,
        .out = {(uint32_t *)guarded_at(&index), (float *)guarded_at(&value), 12345}};
    uint32_t hint = c->hint;
    const size_t count = c->topk ? grad->select_topk(&s, c->k, &hint, guarded_at(&scratch))
                                 : grad->select_threshold(&s, c->threshold);

    must(count == e->count && s.out.count == count, c, level, "count");
    uint32_t least = UINT32_MAX;
    for (size_t i = 0, next = 0; i < c->n; i++) {
        const bool chosen = next < count && e->index[next] == i;
        if (chosen) {
            must(s.out.index[next] == i, c, level, "index");
            must(bits_of(s.out.value[next]) == bits_of(e->acc[i]), c, level, "value");
            least = DDP_MIN(least, grad_magnitude(e->acc[i]));
            next++;
        }
        if (left)
            must(bits_of(left[i]) == (chosen ? 0 : bits_of(e->acc[i])), c, level, "residual");
    }
    if (c->topk && count != 0)
        must(hint == least, c, level, "hint");
    must(guarded_intact(&residual) && guarded_intact(&index) && guarded_intact(&value) &&
             guarded_intact(&scratch),
         c, level, "guard");
    guarded_free(&residual);
    guarded_free(&index);
    guarded_free(&value);
    guarded_free(&scratch);
}

static void check(const struct selection *c)
{
    struct guarded in = guarded_new(c->n * 4, c->offset), residual = guarded_new(c->n * 4, 0);
    const float *x = grad_fill(&in, c->kind, 1 + c->n), *r = grad_fill(&residual, c->kind, 2);
    x = c->feed == RESIDUAL_ONLY ? NULL : x;
    r = c->feed == IN_ONLY ? NULL : r;
    struct expected e;
    sum_into(&e, x, r, c->n);
    if (c->topk)
        expect_topk(&e, c->n, c->k);
    else
        expect_threshold(&e, c->n, c->threshold);
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        check_level(c, level, x, r, &e);
    assert_true(guarded_intact(&in));
    expected_free(&e);
    guarded_free(&in);
    guarded_free(&residual);
}

static const size_t large[] = {257, 1000, 1023, 1024, 1025, 1040, 1100, 4099, 20011};

static void each_size(void (*body)(enum grad_kind kind, enum feed feed, size_t n))
{
    for (int kind = 0; kind < GRAD_KINDS; kind++)
        for (int feed = 0; feed < FEEDS; feed++) {
            for (size_t n = 0; n <= 100; n++)
                body((enum grad_kind)kind, (enum feed)feed, n);
            for (size_t i = 0; i < DDP_COUNT_OF(large); i++)
                body((enum grad_kind)kind, (enum feed)feed, large[i]);
        }
}

static void threshold_case(enum grad_kind kind, enum feed feed, size_t n)
{
    static const float thresholds[] = {0, -0.0f, 0x1p-149f, 0x1p-130f, 0.25f, 1.5f, 2, INFINITY};
    for (size_t i = 0; i < DDP_COUNT_OF(thresholds); i++)
        check(&(struct selection){
            .kind = kind, .feed = feed, .n = n, .threshold = thresholds[i], .offset = n % 16 * 4});
}

static void test_threshold(void **state)
{
    (void)state;
    each_size(threshold_case);
}

static void topk_case(enum grad_kind kind, enum feed feed, size_t n)
{
    const size_t ks[] = {0, 1, 2, n / 20, n / 2, n - 1, n, n + 3};
    for (size_t i = 0; i < DDP_COUNT_OF(ks); i++)
        if (ks[i] <= n + 3) /* false if n is 0 and n - 1 wraps */
            check(&(struct selection){.kind = kind,
                                      .feed = feed,
                                      .n = n,
                                      .k = ks[i],
                                      .offset = n % 16 * 4,
                                      .topk = true});
}

static void test_topk(void **state)
{
    (void)state;
    each_size(topk_case);
}

/* Hints that are right, too low, slightly too high, and larger than every value give the same
 * result. */
static void test_hints(void **state)
{
    (void)state;
    static const uint32_t hints[] = {1,           0x00000100u, 0x3f800000u, 0x40000000u,
                                     0x40300000u, 0x41000000u, 0x7f800000u, 0x7fc00000u,
                                     0x80000000u, UINT32_MAX};
    for (int kind = 0; kind < GRAD_KINDS; kind++)
        for (int feed = 0; feed < FEEDS; feed++)
            for (size_t i = 0; i < DDP_COUNT_OF(hints); i++)
                for (size_t n = 100; n <= 6100; n += 6000)
                    check(&(struct selection){.kind = (enum grad_kind)kind,
                                              .feed = (enum feed)feed,
                                              .n = n,
                                              .k = n / 20,
                                              .hint = hints[i],
                                              .topk = true});
}

/* Inputs whose sample, 1/64 at this size, contains none or most of the large values. */
static void test_misled(void **state)
{
    (void)state;
    const size_t n = 300000;
    for (int kind = 0; kind < GRAD_KINDS; kind++)
        for (int i = 0; i < 4; i++)
            check(&(struct selection){.kind = (enum grad_kind)kind,
                                      .feed = i % 2 ? IN_ONLY : SUM,
                                      .n = n,
                                      .k = i < 2 ? n / 1000 : n / 20,
                                      .offset = 4,
                                      .topk = true});
}

/* The largest 5 % of normally distributed values hold 27.91 % of the energy: 2 (q phi(q) + Q(q))
 * at Q(q) = 2.5 %, q = 1.96. A selection by index order would hold 5 %. */
static void test_energy(void **state)
{
    (void)state;
    const size_t n = 1000000, k = n / 20;
    struct guarded in = guarded_new(n * 4, 0);
    const float *x = grad_fill(&in, GRAD_NORMAL, 7);
    uint32_t *index = (uint32_t *)ddp_calloc(k, sizeof(uint32_t));
    float *value = (float *)ddp_calloc(k, sizeof(float));
    void *scratch = ddp_calloc(n, 8);
    double all = 0;
    for (size_t i = 0; i < n; i++)
        all += (double)x[i] * (double)x[i];
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        struct ddp_select s = {.in = x, .n = n, .out = {index, value, 0}};
        uint32_t hint = 0;
        double kept = 0;
        assert_int_equal(
            ddp_device_cpu((enum ddp_simd)level)->grad->select_topk(&s, k, &hint, scratch), k);
        for (size_t i = 0; i < k; i++)
            kept += (double)value[i] * (double)value[i];
        assert_true(kept / all > 0.278 && kept / all < 0.281);
    }
    free(index);
    free(value);
    free(scratch);
    guarded_free(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threshold), cmocka_unit_test(test_topk),
        cmocka_unit_test(test_hints),     cmocka_unit_test(test_misled),
        cmocka_unit_test(test_energy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
