/* SGD and Adam: the published rules element by element, and the same bits at every SIMD level. */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cpuinfo.h"
#include "base/rng.h"
#include "model/nn_kernels.h"
#include "train/optim.h"

enum { N = 1003, STEPS = 5 };

static const struct ddp_grad_kernels *kernels(void)
{
    return ddp_device_cpu(ddp_nn_simd())->grad;
}

static void fill(float *p, float *v, float *g)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 5, 0);
    for (int i = 0; i < N; i++) {
        p[i] = (float)ddp_rng_normal(&rng);
        g[i] = (float)ddp_rng_normal(&rng);
        v[i] = 0.0f;
    }
}

static void follows_the_rule(void **state)
{
    float p[N], v[N], g[N];
    double want_p[N], want_v[N];
    fill(p, v, g);
    for (int i = 0; i < N; i++) {
        want_p[i] = p[i];
        want_v[i] = 0.0;
    }
    for (int s = 0; s < STEPS; s++) {
        kernels()->sgd(p, v, g, N, 0.1f, 0.9f, 0.01f);
        for (int i = 0; i < N; i++) {
            want_v[i] = (double)0.9f * want_v[i] + (double)g[i] + (double)0.01f * want_p[i];
            want_p[i] -= (double)0.1f * want_v[i];
        }
    }
    for (int i = 0; i < N; i++) {
        assert_true(fabs((double)p[i] - want_p[i]) < 1e-5 * (1.0 + fabs(want_p[i])));
        assert_true(fabs((double)v[i] - want_v[i]) < 1e-5 * (1.0 + fabs(want_v[i])));
    }
}

static void adam_follows_the_rule(void **state)
{
    float p[N], m[N] = {0}, v[N], g[N];
    double want_p[N], want_m[N] = {0}, want_v[N] = {0};
    fill(p, v, g);
    const double b2 = (double)0.999f;
    g[7] = 0.0f; /* only the weight decay changes this parameter */
    for (int i = 0; i < N; i++)
        want_p[i] = (double)p[i];
    struct ddp_adam a = {
        .lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .weight_decay = 0.02f};
    for (a.step = 1; a.step <= STEPS; a.step++) {
        kernels()->adam(p, m, v, g, N, &a);
        for (int i = 0; i < N; i++) {
            double grad = (double)g[i] + 0.02 * want_p[i];
            want_m[i] = 0.9 * want_m[i] + 0.1 * grad;
            want_v[i] = b2 * want_v[i] + (1 - b2) * grad * grad;
            double c1 = 1 - pow(0.9, (double)a.step), c2 = 1 - pow(b2, (double)a.step);
            want_p[i] -= 0.01 * (want_m[i] / c1) / (sqrt(want_v[i] / c2) + 1e-8);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_true(fabs((double)p[i] - want_p[i]) < 1e-5 * (1.0 + fabs(want_p[i])));
        assert_true(fabs((double)m[i] - want_m[i]) < 1e-5 * (1.0 + fabs(want_m[i])));
        assert_true(fabs((double)v[i] - want_v[i]) < 1e-5 * (0.01 + want_v[i]));
    }
}

/* struct ddp_optim: names, sizes, and the number of steps. */
static void rules_have_state(void **state)
{
    float p[N], v[N], g[N], want[N], m[N] = {0}, second[N] = {0};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_adam a = {.lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    struct ddp_optim o = {.kind = DDP_OPTIM_ADAM, .lr = 0.01, .momentum = 0.5};
    assert_int_equal(ddp_optimizer_find("sgd"), DDP_OPTIM_SGD);
    assert_int_equal(ddp_optimizer_find("adam"), DDP_OPTIM_ADAM);
    assert_int_equal(ddp_optimizer_find("adamw"), -1);
    assert_int_equal(ddp_optimizer_state_bytes(DDP_OPTIM_SGD, 10), 40);
    assert_int_equal(ddp_optimizer_state_bytes(DDP_OPTIM_ADAM, 10), 80);
    fill(p, v, g);
    g[3] = 1e-8f; /* epsilon matters for this gradient */
    memcpy(want, p, sizeof p);
    assert_int_equal(ddp_optim_init(&o, N, &err), 0);
    for (a.step = 1; a.step <= STEPS; a.step++) {
        ddp_optim_step(&o, p, g);
        kernels()->adam(want, m, second, g, N, &a);
    }
    assert_memory_equal(p, want, sizeof p);
    ddp_optim_release(&o);
    o.kind = DDP_OPTIM_SGD;
    fill(want, v, g);
    assert_int_equal(ddp_optim_init(&o, N, &err), 0);
    memcpy(p, want, sizeof p);
    ddp_optim_step(&o, p, g);
    kernels()->sgd(want, v, g, N, 0.01f, 0.5f, 0.0f);
    assert_memory_equal(p, want, sizeof p);
    ddp_optim_release(&o);
}

static void levels_agree_bit_for_bit(void **state)
{
    float first_p[N], first_v[N], first_m[N];
    struct ddp_adam a = {
        .lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .weight_decay = 1e-3f};
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        float p[N], v[N], g[N], m[N] = {0};
        fill(p, v, g);
        setenv("DDPBENCH_SIMD", ddp_simd_name((enum ddp_simd)level), 1);
        for (int s = 0; s < STEPS; s++)
            kernels()->sgd(p, v, g, N, 0.005f, 0.9f, 1e-5f);
        memset(v, 0, sizeof v);
        for (a.step = 1; a.step <= STEPS; a.step++)
            kernels()->adam(p, m, v, g, N, &a);
        unsetenv("DDPBENCH_SIMD");
        if (level == 0) {
            memcpy(first_p, p, sizeof p);
            memcpy(first_v, v, sizeof v);
            memcpy(first_m, m, sizeof m);
        }
        assert_memory_equal(m, first_m, sizeof m);
        assert_memory_equal(p, first_p, sizeof p);
        assert_memory_equal(v, first_v, sizeof v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_rule),
        cmocka_unit_test(adam_follows_the_rule),
        cmocka_unit_test(rules_have_state),
        cmocka_unit_test(levels_agree_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
