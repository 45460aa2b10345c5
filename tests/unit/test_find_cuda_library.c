/* NVIDIA's libraries: the reason why one was not opened. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "device/cuda/find_cuda_library.h"

#define SONAME "libddpbench-test.so.9"

/* A broken library in a Python package explains more than the linker, which knows no library of
 * this name. */
static void test_broken_library(void **state)
{
    static const char *const folders[] = {"/lib",    "/python3.9", "/site-packages",
                                          "/nvidia", "/test",      "/lib"};
    char root[] = "/tmp/ddpbench-test-XXXXXX", path[256], why[512] = "";
    (void)state;
    assert_non_null(mkdtemp(root));
    strcpy(path, root);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(strcat(path, folders[i]), 0700), 0);
    assert_int_equal(setenv("VIRTUAL_ENV", root, 1), 0);
    assert_null(ddp_cuda_library_find(SONAME, "test", DDP_CONF_NCCL_LIB, why, sizeof why));
    assert_non_null(strstr(why, SONAME));
    assert_null(strstr(why, root));
    FILE *file = fopen(strcat(path, "/" SONAME), "w");
    assert_non_null(file);
    assert_true(fputs("no library", file) >= 0 && fclose(file) == 0);
    assert_null(ddp_cuda_library_find(SONAME, "test", DDP_CONF_NCCL_LIB, why, sizeof why));
    assert_non_null(strstr(why, path));
    assert_int_equal(remove(path), 0);
    for (size_t i = sizeof folders / sizeof *folders; i > 0; i--) {
        *strrchr(path, '/') = '\0';
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(remove(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken_library)};
    unsetenv("DDPBENCH_NCCL_LIB");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
