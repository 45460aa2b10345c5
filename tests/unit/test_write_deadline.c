/* Outputs that accept no data: the wait has a deadline, can be cancelled, and the error names
 * the target. Checks before the first write change nothing. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/clock.h"
#include "names.h"
#include "report_sample.h"

#define TEXT_BYTES 300000 /* more than a pipe's buffer holds */

static int asked;
static char was_reported[256];

static bool never(void *arg)
{
    asked++;
    return false;
}

static bool at_second_question(void *arg)
{
    return ++asked >= 2;
}

static void note(void *arg, const char *line)
{
    snprintf(was_reported, sizeof was_reported, "%s", line);
}

static char *make_text(void)
{
    char *text = malloc(TEXT_BYTES);
    assert_non_null(text);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = (char)('a' + i % 23);
    return text;
}

static void test_nobody_reads(void **state)
{
    const struct ddp_write_deadline deadline_policy = {.timeout_ns = 300000000, .give_up = never};
    char *text = make_text();
    int pair[2];
    assert_int_equal(pipe(pair), 0);
    asked = 0;
    int64_t start = ddp_now_ns();
    assert_int_equal(ddp_write_before_deadline(pair[1], text, TEXT_BYTES, &deadline_policy),
                     ETIMEDOUT);
    assert_in_range(ddp_now_ns() - start, 250000000, 2000000000);
    assert_in_range(asked, 2, 20);
    /* the descriptor's flags are restored, because other processes may share it */
    assert_int_equal(fcntl(pair[1], F_GETFL) & O_NONBLOCK, 0);
    close(pair[0]);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(ddp_write_before_deadline(pair[1], text, 1, &deadline_policy), EPIPE);
    close(pair[1]);
    free(text);
}

static void test_given_up(void **state)
{
    const struct ddp_write_deadline deadline_policy = {.timeout_ns = 3600000000000,
                                                       .give_up = at_second_question};
    char *text = make_text();
    int pair[2];
    assert_int_equal(pipe(pair), 0);
    asked = 0;
    assert_int_equal(ddp_write_before_deadline(pair[1], text, TEXT_BYTES, &deadline_policy),
                     ECANCELED);
    close(pair[0]);
    close(pair[1]);
    free(text);
}

/* A reader that takes a little now and then receives everything, however long that takes. */
static void test_slow_reader(void **state)
{
    const struct ddp_write_deadline deadline_policy = {.timeout_ns = 400000000};
    char *text = make_text(), *got = malloc(TEXT_BYTES);
    int pair[2], status;
    assert_non_null(got);
    assert_int_equal(pipe(pair), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        _exit(ddp_write_before_deadline(pair[1], text, TEXT_BYTES, &deadline_policy));
    }
    close(pair[1]);
    size_t have = 0;
    for (ssize_t n = 1; n > 0; have += (size_t)n) {
        if (have < 200000)
            ddp_sleep_ns(150000000);
        n = read(pair[0], got + have, TEXT_BYTES - have < 50000 ? TEXT_BYTES - have : 50000);
        assert_true(n >= 0);
    }
    assert_int_equal(have, TEXT_BYTES);
    assert_memory_equal(got, text, TEXT_BYTES);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(pair[0]);
    free(got);
    free(text);
}

/* A named pipe without a reader: one note, then an error that names the pipe, and no further
 * attempt. */
static void test_pipe_without_reader(void **state)
{
    const struct ddp_write_deadline deadline_policy = {.timeout_ns = 200000000, .on_wait = note};
    struct ddp_err err;
    struct ddp_record r;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    was_reported[0] = '\0';
    assert_int_equal(mkfifo("pipe", 0600), 0);
    ddp_report_set_write_deadline(set, &deadline_policy);
    assert_int_equal(add(set, "json", "pipe", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    int64_t start = ddp_now_ns();
    assert_int_equal(ddp_report_end(set, &r, &err), DDP_EIO);
    assert_in_range(ddp_now_ns() - start, 150000000, 3000000000);
    assert_true(text_names(was_reported, "'pipe'"));
    assert_true(text_names(err.text, "'pipe'"));
    assert_true(text_names(err.hint, "--timeout"));
    start = ddp_now_ns();
    assert_int_equal(ddp_report_end(set, &r, &err), DDP_EIO);
    assert_in_range(ddp_now_ns() - start, 0, 100000000);
    ddp_report_close(set);
    ddp_record_release(&r);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A set that is created but never begun leaves existing files unchanged. */
static void test_checks_change_nothing(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    size_t bytes;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    write_file("good.json", "good");
    write_file("good.txt", "good, too");
    assert_int_equal(add(set, "json", "good.json", &err), 0);
    assert_int_equal(add(set, "table", "good.txt", &err), 0);
    assert_int_equal(add(set, "table", "new.txt", &err), 0);
    assert_int_equal(add(set, "json", "new.json", &err), 0);
    assert_int_equal(add(set, "table", "new.txt", &err), DDP_EUSAGE);
    assert_int_equal(ddp_report_end(set, &r, &err), 0);
    ddp_report_close(set);
    char *text = slurp("good.json", &bytes);
    assert_string_equal(text, "good");
    free(text);
    text = slurp("good.txt", &bytes);
    assert_string_equal(text, "good, too");
    free(text);
    assert_int_equal(entries(), 2);
    ddp_record_release(&r);
}

static void run_once(void)
{
    struct ddp_err err;
    struct ddp_record r;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    assert_int_equal(add(set, "json", "out.json", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    assert_int_equal(ddp_report_end(set, &r, &err), 0);
    ddp_report_close(set);
    ddp_record_release(&r);
}

/* The next run removes the temporary file of a run that was killed. It keeps the temporary file
 * of a process that still runs, and files of other programs. */
static void test_leftovers(void **state)
{
    static const char temp[] = ".out.json.ddpbench.tmp";
    struct stat st;
    write_file(temp, "half a docu");
    run_once();
    assert_int_equal(stat(temp, &st), -1);
    assert_int_equal(entries(), 1);

    write_file(temp, "being written");
    int fd = open(temp, O_WRONLY);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    run_once();
    assert_int_equal(stat(temp, &st), 0);
    assert_int_equal(st.st_size, 13);
    close(fd);
    assert_int_equal(entries(), 2);
    assert_int_equal(unlink(temp), 0);

    write_file("mine", "mine");
    assert_int_equal(symlink("mine", temp), 0);
    run_once();
    assert_int_equal(lstat(temp, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat("mine", &st), 0);
    assert_int_equal(st.st_size, 4);
    cJSON_Delete(load("out.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_reads),   cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_slow_reader),    IN_FOLDER(test_pipe_without_reader),
        IN_FOLDER(test_checks_change_nothing), IN_FOLDER(test_leftovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
