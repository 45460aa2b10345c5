/* SGD: the published rule, element by element, and the same bits at every SIMD level. */
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
#include "train/optim.h"

enum { N = 1003, STEPS = 5 };

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
        ddp_sgd_step(p, v, g, N, 0.1f, 0.9f, 0.01f);
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

static void levels_agree_bit_for_bit(void **state)
{
    float first_p[N], first_v[N];
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        float p[N], v[N], g[N];
        fill(p, v, g);
        setenv("DDPBENCH_SIMD", ddp_simd_name((enum ddp_simd)level), 1);
        for (int s = 0; s < STEPS; s++)
            ddp_sgd_step(p, v, g, N, 0.005f, 0.9f, 1e-5f);
        unsetenv("DDPBENCH_SIMD");
        if (level == 0) {
            memcpy(first_p, p, sizeof p);
            memcpy(first_v, v, sizeof v);
        }
        assert_memory_equal(p, first_p, sizeof p);
        assert_memory_equal(v, first_v, sizeof v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_rule),
        cmocka_unit_test(levels_agree_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
