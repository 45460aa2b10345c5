/* A function that runs in a subprocess: its result, its error, its death, and its timeout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <signal.h>
#include <unistd.h>

#include "launch/launch_in_subprocess.h"
#include "names.h"

#define SECOND INT64_C(1000000000)

struct answer {
    int number;
    pid_t pid;
    char text[5000];
};

static int answers(void *out, struct ddp_err *err)
{
    struct answer *a = out;
    (void)err;
    a->number = 42;
    a->pid = getpid();
    memset(a->text, 'x', sizeof a->text);
    return 0;
}

static int refuses(void *out, struct ddp_err *err)
{
    (void)out;
    ddp_fail(err, DDP_EUNAVAIL, "there is none");
    return ddp_hint(err, "buy one");
}

static int crashes(void *out, struct ddp_err *err)
{
    (void)out;
    (void)err;
    return raise(SIGKILL);
}

static int leaves(void *out, struct ddp_err *err)
{
    (void)out;
    (void)err;
    _exit(3);
}

static int hangs(void *out, struct ddp_err *err)
{
    (void)out;
    (void)err;
    while (getppid() > 0)
        pause();
    return 0;
}

static void test_answer(void **state)
{
    (void)state;
    struct answer a = {0};
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_launch_in_subprocess(answers, &a, sizeof a, 60 * SECOND, &err), 0);
    assert_int_equal(a.number, 42);
    assert_true(a.pid != getpid());
    assert_int_equal(a.text[sizeof a.text - 1], 'x');
}

static void assert_fails(int (*ask)(void *, struct ddp_err *), int64_t timeout_ns, const char *text,
                         const char *hint)
{
    struct answer a = {.number = 7};
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_launch_in_subprocess(ask, &a, sizeof a, timeout_ns, &err), DDP_EUNAVAIL);
    assert_true(text_names(err.text, text));
    assert_string_equal(err.hint, hint);
    assert_int_equal(a.number, 7); /* the result is unchanged */
}

static void test_failures(void **state)
{
    (void)state;
    assert_fails(refuses, 60 * SECOND, "there is none", "buy one");
    assert_fails(crashes, 60 * SECOND, "signal 9", "");
    assert_fails(leaves, 60 * SECOND, "3", "");
    assert_fails(hangs, SECOND, "1 s", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests_name("launch apart", tests, NULL, NULL);
}
