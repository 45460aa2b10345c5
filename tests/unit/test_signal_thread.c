/* The signal thread reports a signal to its owner, and then the signal has its usual effect. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "launch/signal_thread.h"

static void tell(void *arg, int signal)
{
    char byte = (char)signal;
    if (write(*(int *)arg, &byte, 1) != 1)
        abort();
}

static void *idle(void *arg)
{
    while (pause() != 0)
        ;
    return arg;
}

/* Runs a child that starts the signal thread and then a thread that does not block signals, as a
 * library would. The child receives `ignored` (0: none), which it ignores, and then `signal`. A
 * signalfd returns the lower number first: SIGHUP before SIGTERM. */
static int run_child(int signal, int ignored, char *was_reported)
{
    int ends[2], status;
    pthread_t library;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ddp_err err = DDP_ERR_INIT;
        struct ddp_signal_thread *thread;
        if (ignored && sigaction(ignored, &(struct sigaction){.sa_handler = SIG_IGN}, NULL) != 0)
            _exit(1);
        if (ddp_signal_thread_start(tell, &ends[1], &thread, &err) != 0 ||
            pthread_create(&library, NULL, idle, NULL) != 0)
            _exit(2);
        if (ignored)
            kill(getpid(), ignored);
        kill(getpid(), signal);
        while (pause() != 0)
            ;
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    *was_reported = 0;
    ssize_t n = read(ends[0], was_reported, 1);
    assert_true(n == 0 || n == 1);
    close(ends[0]);
    return status;
}

static void test_tells_and_ends(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < 3; i++) {
        char was_reported;
        int status = run_child(signals[i], 0, &was_reported);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        assert_int_equal(was_reported, signals[i]);
    }
}

static void test_ignored_stays_ignored(void **state)
{
    char was_reported;
    int status = run_child(SIGTERM, SIGHUP, &was_reported);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(was_reported, SIGTERM);
}

static void test_stop_restores(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    sigset_t before, during, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (int i = 0; i < 50; i++) {
        struct ddp_signal_thread *thread;
        assert_int_equal(ddp_signal_thread_start(tell, NULL, &thread, &err), 0);
        pthread_sigmask(SIG_SETMASK, NULL, &during);
        assert_true(sigismember(&during, SIGTERM));
        ddp_signal_thread_stop(thread);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
    ddp_signal_thread_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tells_and_ends),
        cmocka_unit_test(test_ignored_stays_ignored),
        cmocka_unit_test(test_stop_restores),
    };
    return cmocka_run_group_tests_name("signal thread", tests, NULL, NULL);
}
