/* Errors: the first one stays, messages are cut and never overrun, codes become exit codes. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "base/err.h"

static void test_first_error_stays(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_fail(&err, DDP_EUSAGE, "option '%s'", "x"), DDP_EUSAGE);
    assert_int_equal(ddp_fail(&err, DDP_EIO, "later"), DDP_EIO);
    assert_int_equal(err.code, DDP_EUSAGE);
    assert_string_equal(err.text, "option 'x'");
    assert_int_equal(err.rank, -1);
    assert_int_equal(ddp_hint(&err, "try %d", 4), DDP_EUSAGE);
    assert_int_equal(ddp_hint(&err, "or not"), DDP_EUSAGE);
    assert_string_equal(err.hint, "try 4");
}

static void test_errno_is_spelt_out(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_fail_errno(&err, DDP_ENOINPUT, ENOENT, "'%s'", "a/b"), DDP_ENOINPUT);
    assert_string_equal(err.text, "'a/b': No such file or directory");
}

static void test_long_text_is_cut(void **state)
{
    struct {
        struct ddp_err err;
        char guard[16];
    } box = {.err = {.rank = -1}};
    memset(box.guard, '#', sizeof box.guard);
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ddp_fail_errno(&box.err, DDP_EIO, EIO, "%s", text);
    ddp_hint(&box.err, "%s", text);
    assert_int_equal(strlen(box.err.text), sizeof box.err.text - 1);
    assert_string_equal(box.err.text + sizeof box.err.text - 4, "...");
    assert_int_equal(strlen(box.err.hint), sizeof box.err.hint - 1);
    for (size_t i = 0; i < sizeof box.guard; i++)
        assert_int_equal(box.guard[i], '#');
}

static void test_no_struct_is_fine(void **state)
{
    assert_int_equal(ddp_fail(NULL, DDP_EIO, "x"), DDP_EIO);
    assert_int_equal(ddp_fail_errno(NULL, DDP_EIO, EIO, "x"), DDP_EIO);
    assert_int_equal(ddp_hint(NULL, "x"), DDP_EINTERNAL);
}

static int forwards(int rc, int *calls)
{
    DDP_TRY((++*calls, rc));
    return 1;
}

static void test_try_evaluates_once(void **state)
{
    int calls = 0;
    assert_int_equal(forwards(DDP_EIO, &calls), DDP_EIO);
    assert_int_equal(forwards(0, &calls), 1);
    assert_int_equal(calls, 2);
}

static void test_exit_codes(void **state)
{
    assert_int_equal(ddp_exit_code(0), 0);
    assert_int_equal(ddp_exit_code(DDP_EUSAGE), 64);
    assert_int_equal(ddp_exit_code(DDP_ELOST), 13);
    assert_int_equal(ddp_exit_code(-(128 + 15)), 143);
    /* A code outside our exit codes never becomes success. */
    assert_int_equal(ddp_exit_code(5), 70);
    assert_int_equal(ddp_exit_code(-256), 70);
}

/* At the machine's limit of open files, the error tells what to do, whichever file could not be
 * opened. */
static void test_too_many_files(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_fail_errno(&err, DDP_ECREATE, EMFILE, "'%s'", "x"), DDP_ENOMEM);
    assert_int_equal(err.code, DDP_ENOMEM);
    assert_non_null(strstr(err.hint, "ulimit -n"));
    assert_int_equal(ddp_fail_errno(NULL, DDP_EINTERNAL, ENFILE, "x"), DDP_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_many_files),     cmocka_unit_test(test_first_error_stays),
        cmocka_unit_test(test_errno_is_spelt_out), cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_no_struct_is_fine),  cmocka_unit_test(test_try_evaluates_once),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
