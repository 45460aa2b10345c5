/* Signals to the parent process under our own launcher, and its death: the ranks end as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "launch_board.h"
#include "names.h"

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* Signals to the parent process. A child process in a process group of its own runs the job as
 * the parent. */
static int body_forever(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    struct board *b = arg;
    b->pid[comm->rank] = getpid();
    b->ready++;
    /* With flag set, ranks ignore the signals that are forwarded to them. */
    for (int s = 1; b->flag && s < 16; s++)
        signal(s, SIG_IGN);
    while (b->flag)
        ddp_sleep_ns(10000000);
    for (;;)
        DDP_TRY(ddp_comm_barrier(comm, err));
}

static pid_t start_parent(struct board *b)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        struct ddp_launch_outcome outcome;
        struct ddp_err err;
        int64_t took;
        struct ranks_job job = {.body = body_forever, .arg = b, .on_news = keep_news};
        int rc = launch(3, job, &outcome, &err, &took);
        snprintf(b->line[7], sizeof b->line[7], "%.200s", outcome.report_text);
        bool clean = waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
        _exit(rc != 0 || !clean ? 99 : ddp_exit_code(outcome.code));
    }
    for (int i = 0; i < 5000 && b->ready < 3; i++)
        ddp_sleep_ns(1000000);
    assert_int_equal(b->ready, 3);
    return pid;
}

static int end_of(pid_t pid, int64_t *took_ns)
{
    int status;
    int64_t start = ddp_now_ns();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    *took_ns = ddp_now_ns() - start;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void assert_ranks_gone(struct board *b)
{
    for (int i = 0; i < 2000; i++) {
        if (is_gone(b->pid[0]) && is_gone(b->pid[1]) && is_gone(b->pid[2]))
            return;
        ddp_sleep_ns(1000000);
    }
    fail_msg("a rank is left");
}

static void test_signals(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct board *b = new_board();
    int64_t took;
    for (int i = 0; i < 8; i++) {
        *b = (struct board){0};
        pid_t pid = start_parent(b);
        /* The signal goes to the parent process alone or, as from a terminal, to the whole
         * group. */
        assert_int_equal(kill(i < 4 ? pid : -pid, signals[i % 4]), 0);
        assert_int_equal(end_of(pid, &took), 128 + signals[i % 4]);
        assert_true(took < 2000000000);
        assert_true(text_names(b->line[7], "signal "));
        assert_ranks_gone(b);
    }
    munmap(b, sizeof *b);
}

/* Ranks that ignore signals are killed after the grace period. A second signal kills them at
 * once, unless it repeats the first one within milliseconds. */
static void test_deaf_ranks(void **state)
{
    static const struct {
        int second; /* 0: no second signal */
        int64_t after_ns;
        bool at_once;
    } cases[] = {
        {0, 0, false},
        {SIGTERM, 100000000, true},
        {SIGINT, 100000000, true},
        {SIGTERM, 5000000, true},
        {SIGINT, 5000000, false},
    };
    struct board *b = new_board();
    int64_t took;
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        *b = (struct board){.flag = 1};
        pid_t pid = start_parent(b);
        ddp_sleep_ns(50000000);
        const int64_t first = ddp_now_ns();
        kill(pid, SIGINT);
        if (cases[i].second != 0) {
            ddp_sleep_ns(cases[i].after_ns);
            kill(pid, cases[i].second);
        }
        /* Signals within 50 ms count as one. On a busy machine the sleep may last longer. */
        const bool in_time = cases[i].at_once || ddp_now_ns() - first < 40000000;
        assert_int_equal(end_of(pid, &took), 128 + SIGINT);
        if (in_time)
            assert_true(cases[i].at_once ? took < 700000000 : took > 700000000);
        assert_true(took < 2000000000);
        assert_ranks_gone(b);
    }
    munmap(b, sizeof *b);
}

/* Ranks do not outlive a parent process that is killed. */
static void test_parent_killed(void **state)
{
    struct board *b = new_board();
    int64_t took;
    pid_t pid = start_parent(b);
    kill(pid, SIGKILL);
    assert_int_equal(end_of(pid, &took), -SIGKILL);
    assert_ranks_gone(b);
    munmap(b, sizeof *b);
}

/* As under nohup: an ignored signal stays ignored. */
static void test_ignored(void **state)
{
    struct board *b = new_board();
    int64_t took;
    signal(SIGHUP, SIG_IGN);
    pid_t pid = start_parent(b);
    signal(SIGHUP, SIG_DFL);
    kill(-pid, SIGHUP);
    ddp_sleep_ns(200000000);
    assert_false(is_gone(b->pid[0]));
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid, &took), 128 + SIGTERM);
    assert_ranks_gone(b);
    munmap(b, sizeof *b);
}

int main(void)
{
    if (RANKS_TSAN) {
        print_message("1..0 # SKIP ranks as processes say nothing to ThreadSanitizer\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_deaf_ranks),
        cmocka_unit_test(test_parent_killed),
        cmocka_unit_test(test_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
