/* BLAS: the library is found and named, and multiplies in all four forms. Other files are
 * rejected. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/blas.h"

/* Loads in a child process, because a library is loaded once per process. Returns the load's code.
 */
static int load_in_child(const char *name)
{
    pid_t child = fork();
    if (child == 0)
        _exit(-ddp_blas_load(name, NULL));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void refuses_what_is_no_blas(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(load_in_child("libno-such-blas.so.9"), DDP_EUNAVAIL);
    assert_int_equal(load_in_child("libm.so.6"), DDP_EUNAVAIL);
    assert_int_equal(ddp_blas_load("libno-such-blas.so.9", &err), DDP_EUNAVAIL);
    assert_non_null(strstr(err.text, "libno-such-blas.so.9"));
    assert_string_equal(ddp_blas_name(), "");
}

static void multiplies_in_all_forms(void **state)
{
    enum { M = 5, N = 7, K = 3 };
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_blas_load(NULL, &err), 0);
    assert_int_equal(ddp_blas_load("ignored after the first", &err), 0);
    assert_true(strlen(ddp_blas_name()) > 0);
    for (int form = 0; form < 4; form++) {
        int ta = form & 1, tb = form >> 1;
        float a[M * K], b[K * N], c[M * N];
        for (int i = 0; i < M * K; i++)
            a[i] = (float)(i % 5 - 2);
        for (int i = 0; i < K * N; i++)
            b[i] = (float)(i % 7 - 3);
        for (int i = 0; i < M * N; i++)
            c[i] = (float)i;
        ddp_sgemm(ta, tb, M, N, K, 2.0f, a, ta ? M : K, b, tb ? K : N, 0.5f, c, N);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                float sum = 0.0f;
                for (int k = 0; k < K; k++)
                    sum += a[ta ? k * M + i : i * K + k] * b[tb ? j * K + k : k * N + j];
                assert_true(c[i * N + j] == 2.0f * sum + 0.5f * (float)(i * N + j));
            }
    }
}

static void products_are_counted(void **state)
{
    const float one = 1.0f;
    _Atomic(uint32_t) count = 0;
    float c = 0.0f;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_blas_load(NULL, &err), 0);
    ddp_blas_count(&count);
    for (int i = 0; i < 3; i++)
        ddp_sgemm(0, 0, 1, 1, 1, 1.0f, &one, 1, &one, 1, 0.0f, &c, 1);
    ddp_blas_count(NULL);
    ddp_sgemm(0, 0, 1, 1, 1, 1.0f, &one, 1, &one, 1, 0.0f, &c, 1);
    assert_int_equal(count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_no_blas),
        cmocka_unit_test(multiplies_in_all_forms),
        cmocka_unit_test(products_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
