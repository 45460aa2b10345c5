/* Sinks and reporters: what is on disk at every moment, and what happens where nothing can be
 * written. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/json.h"
#include "record/provenance.h"
#include "report/report.h"

static const struct ddp_report_style style = {false, 80};

static int in_fresh_folder(void **state)
{
    char *folder = strdup("/tmp/ddpbench-report-XXXXXX");
    if (!folder || !mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    *state = folder;
    return 0;
}

static int leave_folder(void **state)
{
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove(e->d_name);
    }
    closedir(d);
    int rc = chdir("/") | rmdir(*state);
    free(*state);
    return rc;
}

/* Everything in the current folder, sorted by nothing, joined by blanks: nothing may be left. */
static int entries(void)
{
    int n = 0;
    DIR *d = opendir(".");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static char *slurp(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    *bytes = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return text;
}

static char arg0[] = "ddpbench", arg1[] = "allreduce", arg2[] = "", arg3[] = "\xff";
static char *const argv[] = {arg0, arg1, arg2, arg3};

static void make_record(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    ddp_record_init(r);
    assert_int_equal(ddp_provenance_fill(r, "allreduce", 4, argv, 2, &err), 0);
    r->seed = 1;
    r->world_ranks = 2;
    strcpy(r->world_backend, "shm");
    strcpy(r->launcher, "own");
    strcpy(r->reason, "still running");
}

static void add_point(struct ddp_record *r, uint64_t bytes, int iterations)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point p;
    double samples[100];
    ddp_point_init(&p);
    p.spec = (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                     .backend = "shm",
                                     .algorithm = "auto",
                                     .ranks = 2,
                                     .requested_bytes = bytes,
                                     .size_bytes = bytes,
                                     .count = bytes / 4,
                                     .compress = "none"};
    strcpy(p.algorithm_used, "direct");
    for (int i = 0; i < iterations; i++)
        samples[i] = 1000 + i;
    assert_int_equal(ddp_summarize(samples, (size_t)iterations, &p.time_ns), 0);
    p.iterations = iterations;
    p.rank_mean_ns[0] = p.rank_mean_ns[1] = p.rank_mean_ns[2] = 1000;
    p.check = DDP_CHECK_ONCE;
    p.check_elements = 10;
    p.check_wrong = 0;
    p.sample_count = iterations;
    assert_int_equal(ddp_record_add_point(r, &p, samples, &err), 0);
}

static cJSON *load(const char *path)
{
    struct ddp_err err = DDP_ERR_INIT;
    size_t bytes;
    cJSON *doc;
    char *text = slurp(path, &bytes);
    assert_int_equal(ddp_json_check_digest(text, bytes, path, &err), 0);
    assert_int_equal(ddp_json_parse(text, bytes, path, &doc, &err), 0);
    free(text);
    return doc;
}

static const cJSON *get(const cJSON *doc, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(doc, key);
    if (!item)
        fail_msg("no key '%s'", key);
    return item;
}

static struct ddp_report_set *open_set(void)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_report_set *set;
    assert_int_equal(ddp_report_open(&set, &err), 0);
    return set;
}

static int add(struct ddp_report_set *set, const char *name, const char *path, struct ddp_err *err)
{
    *err = DDP_ERR_INIT;
    return ddp_report_add(set, ddp_reporter_find(name), path, &style, err);
}

static void test_document_is_valid_after_every_step(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    assert_int_equal(add(set, "json", "out.json", &err), 0);
    assert_int_equal(entries(), 0); /* checked, not created */
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    for (int i = 0; i < 3; i++) {
        cJSON *doc = load("out.json");
        assert_string_equal(get(doc, "status")->valuestring, "partial");
        assert_int_equal(cJSON_GetArraySize(get(doc, "points")), i);
        cJSON_Delete(doc);
        add_point(&r, 1024u << i, 20);
        assert_int_equal(ddp_report_point(set, &r, &err), 0);
        assert_int_equal(entries(), 1);
    }
    r.status = DDP_STATUS_COMPLETE;
    r.reason[0] = '\0';
    assert_int_equal(ddp_report_end(set, &r, &err), 0);
    ddp_report_close(set);
    cJSON *doc = load("out.json");
    assert_string_equal(get(doc, "status")->valuestring, "complete");
    assert_true(cJSON_IsNull(get(doc, "reason")));
    const cJSON *point = cJSON_GetArrayItem(get(doc, "points"), 0);
    const cJSON *time = get(point, "time_us");
    assert_true(fabs(get(time, "median")->valuedouble - 1.0095) < 1e-12);
    assert_int_equal(cJSON_GetArraySize(get(time, "ci95")), 2);
    assert_true(cJSON_IsNull(get(time, "p99")));
    assert_true(cJSON_IsNull(get(point, "bound")) && cJSON_IsNull(get(point, "partial")));
    assert_true(cJSON_IsNull(get(get(point, "skew_us"), "start")));
    assert_int_equal(cJSON_GetArraySize(get(point, "samples_us")), 20);
    const cJSON *args = get(get(doc, "command"), "argv");
    assert_string_equal(cJSON_GetArrayItem(args, 2)->valuestring, "");
    assert_string_equal(cJSON_GetArrayItem(args, 3)->valuestring, "\xef\xbf\xbd");
    cJSON_Delete(doc);
    ddp_record_release(&r);
}

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
    assert_int_equal(add(set, "table", "t.txt", &err), 0);
    assert_int_equal(link("t.txt", "hard"), 0);
    assert_int_equal(add(set, "json", "hard", &err), DDP_EUSAGE);
    assert_int_equal(add(set, "json", "/dev/null", &err), 0);
    assert_int_equal(add(set, "table", "/dev/null", &err), 0);
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
    assert_int_equal(ddp_report_begin(set, &r, &err), 0); /* in place: once, at the end */
    assert_int_equal(ddp_report_end(set, &r, &err), DDP_EIO);
    assert_non_null(strstr(err.text, "/dev/full"));
    ddp_report_close(set);
    ddp_record_release(&r);
}

/* The old document stays whole, and no other file stays, when a new one cannot be finished. */
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
        /* a file size limit stands for the full disk */
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

static void test_table_replaces_an_older_one(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    size_t bytes;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    FILE *f = fopen("t.txt", "w");
    assert_non_null(f);
    for (int i = 0; i < 10000; i++)
        fputs("old\n", f);
    fclose(f);
    assert_int_equal(add(set, "table", "t.txt", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    add_point(&r, 4096, 5);
    assert_int_equal(ddp_report_point(set, &r, &err), 0);
    r.status = DDP_STATUS_FAILED;
    strcpy(r.reason, "evil \033[31m text");
    assert_int_equal(ddp_report_end(set, &r, &err), 0);
    ddp_report_close(set);
    char *text = slurp("t.txt", &bytes);
    assert_null(strstr(text, "old"));
    assert_non_null(strstr(text, "4096"));
    assert_non_null(strstr(text, "direct"));
    assert_non_null(strstr(text, "FAILED"));
    assert_null(strchr(text, '\033'));
    free(text);
    ddp_record_release(&r);
}

static void test_train_document(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_record r;
    struct ddp_train_run run;
    struct ddp_epoch epoch;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    ddp_train_run_init(&run);
    strcpy(run.model, "singa-cnn");
    run.target_accuracy = 0.9;
    assert_int_equal(add(set, "json", "out.json", &err), 0);
    assert_int_equal(ddp_record_add_train(&r, &run, &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    ddp_epoch_init(&epoch);
    epoch.epoch = 1;
    epoch.train_loss = 0.1 + 0.2; /* must come back bit for bit */
    assert_int_equal(ddp_record_add_epoch(&r, &epoch, &err), 0);
    assert_int_equal(ddp_report_epoch(set, &r, &err), 0);
    cJSON *doc = load("out.json");
    const cJSON *train = cJSON_GetArrayItem(get(doc, "train"), 0);
    const cJSON *first = cJSON_GetArrayItem(get(train, "epochs"), 0);
    assert_true(get(first, "train_loss")->valuedouble == 0.1 + 0.2);
    assert_true(cJSON_IsNull(get(first, "eval_loss")));
    assert_true(cJSON_IsNull(get(train, "final")));
    assert_true(cJSON_IsNull(get(get(train, "target"), "epoch")));
    cJSON_Delete(doc);
    ddp_report_close(set);
    ddp_record_release(&r);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, in_fresh_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_document_is_valid_after_every_step),
        IN_FOLDER(test_mode_follows_umask),
        IN_FOLDER(test_links_are_followed),
        IN_FOLDER(test_bad_targets_fail_at_once),
        IN_FOLDER(test_one_target_once),
        IN_FOLDER(test_full_disk_is_an_error),
        IN_FOLDER(test_failed_update_keeps_the_old_document),
        IN_FOLDER(test_named_pipe_gets_one_document),
        IN_FOLDER(test_table_replaces_an_older_one),
        IN_FOLDER(test_train_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
