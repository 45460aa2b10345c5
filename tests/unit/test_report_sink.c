/* Sinks: where a text is written, and the errors if it cannot be written. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "report_sample.h"

static void test_mode_follows_umask(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct stat st;
    struct ddp_report_set *set = open_set();
    mode_t old = umask(027);
    make_record(&r);
    assert_int_equal(add(set, "json", "out.json", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    umask(old);
    assert_int_equal(stat("out.json", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    ddp_report_close(set);
    ddp_record_release(&r);
}

/* A stream that stays empty does not keep what the file had before. */
static void test_empty_stream_replaces_the_file(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct stat st;
    struct ddp_report_set *set = open_set();
    FILE *old = fopen("old", "w");
    make_record(&r);
    r.status = DDP_STATUS_COMPLETE;
    assert_non_null(old);
    assert_true(fputs("old text\n", old) >= 0);
    assert_int_equal(fclose(old), 0);
    assert_int_equal(add(set, "github", "old", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    assert_int_equal(ddp_report_end(set, &r, &err), 0);
    assert_int_equal(stat("old", &st), 0);
    assert_int_equal(st.st_size, 0);
    ddp_report_close(set);
    ddp_record_release(&r);
}

static void test_links_are_followed(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct stat st;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    assert_int_equal(symlink("real.json", "link.json"), 0); /* dangling */
    assert_int_equal(add(set, "json", "link.json", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    assert_int_equal(lstat("link.json", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    cJSON_Delete(load("real.json"));
    ddp_report_close(set);
    ddp_record_release(&r);
}

static void test_bad_targets_fail_at_once(void **state)
{
    static const char *const bad[] = {"missing/out.json", ".",    "folder/",
                                      "/dev/null/x",      "loop", "/proc/ddpbench.json"};
    struct ddp_err err;
    struct ddp_report_set *set = open_set();
    assert_int_equal(symlink("loop", "loop"), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(add(set, "json", bad[i], &err), DDP_ECREATE);
        assert_non_null(strstr(err.text, bad[i]));
        assert_int_equal(add(set, "table", bad[i], &err), DDP_ECREATE);
    }
    assert_int_equal(add(set, "json", "", &err), DDP_EUSAGE);
    assert_int_equal(add(set, "json", "/dev/fd/77", &err), DDP_ECREATE);
    assert_int_equal(entries(), 1);
    ddp_report_close(set);
}

static void test_one_target_once(void **state)
{
    struct ddp_err err;
    struct ddp_report_set *set = open_set();
    assert_int_equal(add(set, "json", "-", &err), 0);
    assert_true(ddp_report_has_stdout(set));
    assert_int_equal(add(set, "table", "-", &err), DDP_EUSAGE);
    assert_int_equal(add(set, "table", "/dev/stdout", &err), DDP_EUSAGE);
    assert_int_equal(add(set, "json", "a.json", &err), 0);
    assert_int_equal(add(set, "json", "./a.json", &err), DDP_EUSAGE);
    assert_int_equal(symlink("a.json", "link"), 0);
    assert_int_equal(add(set, "table", "link", &err), DDP_EUSAGE);
    assert_int_equal(close(creat("t.txt", 0600)), 0);
    assert_int_equal(add(set, "table", "t.txt", &err), 0);
    assert_int_equal(link("t.txt", "hard"), 0);
    assert_int_equal(add(set, "json", "hard", &err), DDP_EUSAGE);
    assert_int_equal(add(set, "json", "/dev/null", &err), 0);
    assert_int_equal(add(set, "table", "/dev/null", &err), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(link("pipe", "pipe2"), 0);
    assert_int_equal(add(set, "json", "pipe", &err), 0);
    assert_int_equal(add(set, "table", "pipe", &err), DDP_EUSAGE);
    assert_int_equal(add(set, "csv", "pipe2", &err), DDP_EUSAGE);
    assert_non_null(strstr(err.text, "pipe2"));
    assert_int_equal(add(set, "json", "/dev/full", &err), 0);
    assert_int_equal(add(set, "csv", "/dev/full", &err), DDP_EUSAGE);
    ddp_report_close(set);
}

/* The protection finds the file that an output would write to, under any name, whether the file
 * exists or not. */
static void test_files_of_the_command_are_protected(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_report_set *set = open_set();
    assert_int_equal(close(creat("there.json", 0600)), 0);
    assert_int_equal(link("there.json", "hard"), 0);
    assert_int_equal(symlink("absent.json", "dangling"), 0);
    assert_int_equal(add(set, "json", "there.json", &err), 0);
    assert_int_equal(add(set, "csv", "absent.json", &err), 0);
    assert_int_equal(add(set, "table", "-", &err), 0);
    assert_int_equal(ddp_report_protect(set, "other", &err), 0);
    assert_int_equal(ddp_report_protect(set, "nowhere/other", &err), 0);
    assert_int_equal(ddp_report_protect(set, "/dev/null", &err), 0);
    assert_int_equal(err.code, 0);
    static const char *const same[] = {"there.json",    "./there.json", "hard",
                                       "./absent.json", "dangling",     NULL};
    for (int i = 0; same[i]; i++) {
        err = DDP_ERR_INIT;
        assert_int_equal(ddp_report_protect(set, same[i], &err), DDP_EUSAGE);
        assert_non_null(strstr(err.text, i < 3 ? "'json' would" : "'csv' would"));
    }
    ddp_report_close(set);
}

static void test_full_disk_is_an_error(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    assert_int_equal(add(set, "table", "/dev/full", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), DDP_EIO);
    ddp_report_close(set);
    set = open_set();
    assert_int_equal(add(set, "json", "/dev/full", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0); /* written in place, once, at the end */
    assert_int_equal(ddp_report_end(set, &r, &err), DDP_EIO);
    assert_non_null(strstr(err.text, "/dev/full"));
    ddp_report_close(set);
    ddp_record_release(&r);
}

/* If a new document cannot be finished, the old one stays complete and no other file is left. */
static void test_failed_update_keeps_the_old_document(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    assert_int_equal(add(set, "json", "out.json", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    add_point(&r, 4096, 100);
    pid_t child = fork();
    if (child == 0) {
        /* a limit of the file size takes the place of a full disk */
        struct ddp_err late = DDP_ERR_INIT;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
        _exit(ddp_report_point(set, &r, &late) == DDP_EIO ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(entries(), 1);
    cJSON *doc = load("out.json");
    assert_int_equal(cJSON_GetArraySize(get(doc, "points")), 0);
    cJSON_Delete(doc);
    ddp_report_close(set);
    ddp_record_release(&r);
}

static void test_named_pipe_gets_one_document(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct ddp_report_set *set = open_set();
    struct stat st;
    make_record(&r);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        int in = open("pipe", O_RDONLY), out = open("got.json", O_WRONLY | O_CREAT, 0600);
        char buffer[4096];
        ssize_t n;
        while ((n = read(in, buffer, sizeof buffer)) > 0)
            n = write(out, buffer, (size_t)n);
        _exit(0);
    }
    assert_int_equal(add(set, "json", "pipe", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    add_point(&r, 4096, 6);
    assert_int_equal(ddp_report_point(set, &r, &err), 0);
    assert_int_equal(ddp_report_end(set, &r, &err), 0);
    ddp_report_close(set);
    assert_int_equal(waitpid(child, NULL, 0), child);
    cJSON *doc = load("got.json");
    assert_int_equal(cJSON_GetArraySize(get(doc, "points")), 1);
    cJSON_Delete(doc);
    assert_int_equal(stat("pipe", &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    ddp_record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_mode_follows_umask),
        IN_FOLDER(test_empty_stream_replaces_the_file),
        IN_FOLDER(test_links_are_followed),
        IN_FOLDER(test_bad_targets_fail_at_once),
        IN_FOLDER(test_one_target_once),
        IN_FOLDER(test_files_of_the_command_are_protected),
        IN_FOLDER(test_full_disk_is_an_error),
        IN_FOLDER(test_failed_update_keeps_the_old_document),
        IN_FOLDER(test_named_pipe_gets_one_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
