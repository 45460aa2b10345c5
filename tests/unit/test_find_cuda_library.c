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

static const char *const folders[] = {"/lib",    "/python3.9", "/site-packages",
                                      "/nvidia", "/test",      "/lib"};

/* Makes the folders of a Python package below a new folder `root`. Leaves the innermost in path. */
static void make_package(char *root, char *path)
{
    assert_non_null(mkdtemp(root));
    strcpy(path, root);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(strcat(path, folders[i]), 0700), 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void remove_package(const char *root, char *path)
{
    for (size_t i = sizeof folders / sizeof *folders; i > 0; i--) {
        assert_int_equal(remove(path), 0);
        *strrchr(path, '/') = '\0';
    }
    assert_int_equal(remove(root), 0);
}

/* A broken library in a Python package explains more than the linker, which knows no library of
 * this name. */
static void test_broken_library(void **state)
{
    char root[] = "/tmp/ddpbench-test-XXXXXX", path[256], why[512] = "";
    (void)state;
    make_package(root, path);
    assert_int_equal(setenv("VIRTUAL_ENV", root, 1), 0);
    assert_null(ddp_cuda_library_find(SONAME, "test", DDP_CONF_NCCL_LIB, why, sizeof why));
    assert_non_null(strstr(why, SONAME));
    assert_null(strstr(why, root));
    write_file(strcat(path, "/" SONAME), "no library");
    assert_null(ddp_cuda_library_find(SONAME, "test", DDP_CONF_NCCL_LIB, why, sizeof why));
    assert_non_null(strstr(why, path));
    assert_int_equal(unsetenv("VIRTUAL_ENV"), 0);
    assert_int_equal(remove(path), 0);
    *strrchr(path, '/') = '\0';
    remove_package(root, path);
}

/* The library is also found if a virtual environment is only on the PATH, as with
 * `env PATH=venv/bin:$PATH`. */
static void test_python_on_path(void **state)
{
    char root[] = "/tmp/ddpbench-test-XXXXXX", path[256], bin[64], python[80], why[512] = "";
    char *const before = strdup(getenv("PATH"));
    char all[4096];
    (void)state;
    make_package(root, path);
    snprintf(bin, sizeof bin, "%s/bin", root);
    snprintf(python, sizeof python, "%s/python3", bin);
    snprintf(all, sizeof all, "/nonexistent:%s:%s", bin, before);
    assert_int_equal(mkdir(bin, 0700), 0);
    write_file(python, "");
    assert_int_equal(chmod(python, 0700), 0);
    write_file(strcat(path, "/" SONAME), "no library");
    assert_int_equal(setenv("PATH", all, 1), 0);
    assert_null(ddp_cuda_library_find(SONAME, "test", DDP_CONF_NCCL_LIB, why, sizeof why));
    assert_non_null(strstr(why, root));
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
    assert_int_equal(remove(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(remove(python), 0);
    assert_int_equal(remove(bin), 0);
    remove_package(root, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken_library),
                                       cmocka_unit_test(test_python_on_path)};
    unsetenv("DDPBENCH_NCCL_LIB");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
