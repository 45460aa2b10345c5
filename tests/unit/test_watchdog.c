#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/coll_kind.h"
#include "launch/watchdog.h"

#define TIMEOUT_NS 200000000

static void say(void *arg, const char *report_text)
{
    int fd = *(int *)arg;
    (void)!write(fd, report_text, strlen(report_text));
}

/* Runs `body` in a child process with a watchdog. Returns the child's exit code and the
 * watchdog's messages. */
static int in_child(void (*body)(struct ddp_flight *f), char *said, size_t said_bytes)
{
    int pipe_fd[2];
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ddp_flight *f = calloc(1, sizeof *f);
        struct ddp_watchdog *dog;
        struct ddp_err err = DDP_ERR_INIT;
        if (ddp_watchdog_start(f, NULL, TIMEOUT_NS, say, &pipe_fd[1], &dog, &err) != 0)
            _exit(99);
        body(f);
        ddp_watchdog_stop(dog);
        free(f);
        _exit(0);
    }
    close(pipe_fd[1]);
    ssize_t n = read(pipe_fd[0], said, said_bytes - 1);
    said[n > 0 ? n : 0] = '\0';
    close(pipe_fd[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void hang(struct ddp_flight *f)
{
    ddp_flight_phase(f, "point 7");
    const struct ddp_flight_op op = {.what = DDP_ALLREDUCE, .bytes = 4096, .seq = 3};
    ddp_flight_enter_op(f, &op);
    for (int i = 0; i < 50; i++)
        ddp_sleep_ns(100000000);
}

static void compute(struct ddp_flight *f)
{
    ddp_flight_phase(f, "step 9");
    ddp_flight_compute(f, true);
    for (int i = 0; i < 50; i++)
        ddp_sleep_ns(100000000);
}

/* Operations that are slow but end, a computation with beats, and a long time without any. */
static void go_on(struct ddp_flight *f)
{
    for (int i = 0; i < 5; i++) {
        uint64_t seq = ddp_flight_enter(f, DDP_ALLREDUCE, 0, 4096);
        ddp_sleep_ns(TIMEOUT_NS / 2);
        ddp_flight_leave(f, seq, 0);
    }
    ddp_flight_compute(f, true);
    for (int i = 0; i < 30; i++) {
        ddp_sleep_ns(TIMEOUT_NS / 4);
        ddp_flight_beat(f);
    }
    ddp_flight_compute(f, false);
    ddp_sleep_ns(3 * TIMEOUT_NS);
}

static void test_hang(void **state)
{
    char said[512];
    int64_t start = ddp_now_ns();
    assert_int_equal(in_child(hang, said, sizeof said), 13);
    const int64_t elapsed = ddp_now_ns() - start;
    assert_true(elapsed < 10 * TIMEOUT_NS);
    /* A wait that checks the timeout itself could have reported before. */
    assert_true(elapsed > TIMEOUT_NS + TIMEOUT_NS / 4);
    assert_non_null(strstr(said, "allreduce seq 3 (4 KiB, f32) in phase 'point 7'"));
}

static void test_stalled(void **state)
{
    char said[512];
    assert_int_equal(in_child(compute, said, sizeof said), 13);
    assert_non_null(strstr(said, "phase 'step 9'"));
}

static void test_progress(void **state)
{
    char said[512];
    assert_int_equal(in_child(go_on, said, sizeof said), 0);
    assert_string_equal(said, "");
}

static void test_stop(void **state)
{
    struct ddp_flight *f = calloc(1, sizeof *f);
    struct ddp_watchdog *dog;
    struct ddp_err err = DDP_ERR_INIT;
    int64_t start = ddp_now_ns();
    assert_int_equal(ddp_watchdog_start(f, NULL, INT64_C(60000000000), NULL, NULL, &dog, &err), 0);
    ddp_watchdog_stop(dog);
    ddp_watchdog_stop(NULL);
    assert_true(ddp_now_ns() - start < 2000000000);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_stalled),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
