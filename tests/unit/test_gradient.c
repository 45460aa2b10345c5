/* Synthetic gradients depend only on their position and have the promised distribution. Recorded
 * gradients are read row by row. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/npy.h"
#include "bench/gradient.h"
#include "names.h"

#define N 1000000

static struct ddp_gradient *gradient_of(struct ddp_string_list source, uint64_t seed)
{
    struct ddp_gradient *g;
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_gradient_create(&source, seed, &g, &err) != 0)
        fail_msg("%s", err.text);
    return g;
}

static void draw(struct ddp_gradient *g, int rank, uint64_t step, size_t first, float *x, size_t n)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_gradient_draw(g, rank, 4, step, first, x, n, &err) != 0)
        fail_msg("%s", err.text);
}

/* Returns the share of elements with |x| above m. */
static double tail(const float *x, float m)
{
    size_t above = 0;
    for (size_t i = 0; i < N; i++)
        above += fabsf(x[i]) > m;
    return (double)above / N;
}

/* With a million draws, 5 standard errors of a share p are below 5 sqrt(p / 1e6). */
static void check_tail(const float *x, float m, double p)
{
    if (fabs(tail(x, m) - p) > 5 * sqrt(p / N))
        fail_msg("P(|x| > %g) is %g, must be %g", (double)m, tail(x, m), p);
}

static void test_normal(void **state)
{
    float *x = malloc(N * sizeof *x);
    double sum = 0, squares = 0;
    assert_non_null(x);
    struct ddp_gradient *g = gradient_of((struct ddp_string_list){0}, 1);
    draw(g, 0, 0, 0, x, N);
    for (size_t i = 0; i < N; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    assert_true(fabs(sum / N) < 5e-3);
    assert_true(fabs(squares / N - 1) < 7e-3);
    static const float at[] = {0.1f, 0.5f, 1, 2, 3, 4};
    for (size_t i = 0; i < DDP_COUNT_OF(at); i++)
        check_tail(x, at[i], erfc((double)at[i] / sqrt(2)));
    ddp_gradient_destroy(g);
    free(x);
}

/* P(|T| > m) of Student's t with 3 degrees of freedom, from tables: 0.5 above 0.764892, 0.1 above
 * 2.353363, 0.01 above 5.840909, 0.001 above 12.92398. */
static void test_heavy_tail(void **state)
{
    float *x = malloc(N * sizeof *x);
    assert_non_null(x);
    struct ddp_gradient *g = gradient_of((struct ddp_string_list){1, {"heavy-tail"}}, 1);
    draw(g, 0, 0, 0, x, N);
    check_tail(x, 0.764892f, 0.5);
    check_tail(x, 2.353363f, 0.1);
    check_tail(x, 5.840909f, 0.01);
    check_tail(x, 12.92398f, 0.001);
    ddp_gradient_destroy(g);
    free(x);
}

static void test_function_of_the_place(void **state)
{
    enum { SOME = 10000 };
    float a[SOME], b[SOME];
    struct ddp_gradient *g = gradient_of((struct ddp_string_list){0}, 7);
    struct ddp_gradient *same = gradient_of((struct ddp_string_list){1, {"normal"}}, 7);
    struct ddp_gradient *other = gradient_of((struct ddp_string_list){0}, 8);
    draw(g, 1, 5, 0, a, SOME);
    for (size_t first = 0, n = 1; first < SOME; first += n, n = n * 3 % 4099 + 1) {
        n = DDP_MIN(n, SOME - first);
        draw(same, 1, 5, first, b + first, n);
    }
    assert_memory_equal(a, b, sizeof a);
    draw(g, 2, 5, 0, b, SOME);
    assert_memory_not_equal(a, b, sizeof a);
    draw(g, 1, 6, 0, b, SOME);
    assert_memory_not_equal(a, b, sizeof a);
    draw(other, 1, 5, 0, b, SOME);
    assert_memory_not_equal(a, b, sizeof a);
    ddp_gradient_destroy(g);
    ddp_gradient_destroy(same);
    ddp_gradient_destroy(other);
}

static void test_rounded_to_few_bits(void **state)
{
    float x[6] = {0.3f, -1.7f, 1e30f, -INFINITY, NAN, 1e-9f};
    struct ddp_gradient *g = gradient_of((struct ddp_string_list){0}, 1);
    const float step = ddp_gradient_step(g);
    assert_true(step == 1.0f / 64);
    ddp_gradient_round(g, x, 6);
    assert_true(x[0] == 19 * step && x[1] == -109 * step);
    assert_true(x[2] == 4096 * step && x[3] == -4096 * step);
    assert_true(x[4] == 0 && x[5] == 0);
    ddp_gradient_destroy(g);
}

/* Writes a file of `rows` rows of `columns` elements: element (r, c) = base + 100 r + c. */
static void record(const char *path, int rows, size_t columns, float base)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_npy npy;
    float row[16];
    assert_int_equal(ddp_npy_create(path, columns, &npy, &err), 0);
    for (int r = 0; r < rows; r++) {
        for (size_t c = 0; c < columns; c++)
            row[c] = base + 100 * (float)r + (float)c;
        assert_int_equal(ddp_npy_append(&npy, row, &err), 0);
    }
    ddp_npy_close(&npy);
}

static void test_recorded(void **state)
{
    float x[7];
    record("one.npy", 3, 5, 0);
    record("two.npy", 2, 5, 1000);
    struct ddp_gradient *g = gradient_of((struct ddp_string_list){1, {"one.npy"}}, 1);
    /* row (4 i + r) % 3, which starts again after 5 columns */
    draw(g, 2, 1, 3, x, 7);
    static const float wanted[] = {3, 4, 0, 1, 2, 3, 4};
    assert_memory_equal(x, wanted, sizeof wanted);
    draw(g, 3, 1, 0, x, 1);
    assert_true(x[0] == 100);
    ddp_gradient_destroy(g);
    /* Ranks take the files in turn: ranks 1 and 3 share the second file and read its row (2 i +
     * r / 2) % 2. */
    g = gradient_of((struct ddp_string_list){2, {"one.npy", "two.npy"}}, 1);
    draw(g, 3, 0, 0, x, 1);
    assert_true(x[0] == 1100);
    draw(g, 1, 1, 1, x, 1);
    assert_true(x[0] == 1001);
    ddp_gradient_destroy(g);
}

static void refused(struct ddp_string_list source, int code, const char *text)
{
    struct ddp_gradient *g;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_gradient_create(&source, 1, &g, &err), code);
    if (!text_names(err.text, text))
        fail_msg("'%s' lacks '%s'", err.text, text);
}

static void test_refused(void **state)
{
    refused((struct ddp_string_list){1, {"gauss"}}, DDP_EUSAGE, "'gauss'");
    refused((struct ddp_string_list){2, {"normal", "one.npy"}}, DDP_EUSAGE, "'normal'");
    refused((struct ddp_string_list){1, {"absent.npy"}}, DDP_ENOINPUT, "absent.npy");
    record("empty.npy", 0, 5, 0);
    refused((struct ddp_string_list){1, {"empty.npy"}}, DDP_EINPUT, "empty.npy");
}

static int in_folder(void **state)
{
    char *folder = strdup("/tmp/ddpbench-gradient-XXXXXX");
    *state = folder;
    return folder && mkdtemp(folder) ? chdir(folder) : -1;
}

static int leave_folder(void **state)
{
    unlink("one.npy");
    unlink("two.npy");
    unlink("empty.npy");
    int rc = chdir("/") | rmdir(*state);
    free(*state);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_heavy_tail),
        cmocka_unit_test(test_function_of_the_place),
        cmocka_unit_test(test_rounded_to_few_bits),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, in_folder, leave_folder);
}
