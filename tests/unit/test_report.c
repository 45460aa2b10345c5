/* Reporters: the document is complete and correct at every moment, and the table is readable. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/mem.h"
#include "names.h"
#include "record/quality.h"
#include "report_sample.h"

static void test_document_is_valid_after_every_step(void **state)
{
    struct ddp_err err;
    struct ddp_record r;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    assert_int_equal(add(set, "json", "out.json", &err), 0);
    assert_int_equal(entries(), 0); /* the path is checked, and no file is created */
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
    epoch.train_loss = 0.1 + 0.2; /* must be read back bit for bit */
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

/* Adds a point whose ten iterations took 1, 2, ..., 10 times `us` microseconds. */
static void add_slow_point(struct ddp_record *r, int ranks, uint64_t bytes, double us,
                           double pingpong_ns)
{
    struct ddp_point *p;
    double samples[10];
    add_point(r, bytes, 6);
    p = &r->points[r->point_count - 1];
    for (int i = 0; i < 10; i++)
        samples[i] = us * 1000 * (1 + i);
    assert_int_equal(ddp_summarize(samples, 10, &p->time_ns), 0);
    p->spec.ranks = ranks;
    p->pingpong_ns[0] = p->pingpong_ns[1] = pingpong_ns;
    p->quality = ddp_quality_judge(r, p);
}

/* Returns the table of r as text. */
static char *table_of(struct ddp_record *r)
{
    struct ddp_err err;
    size_t bytes;
    struct ddp_report_set *set = open_set();
    struct ddp_record all = *r;
    assert_int_equal(add(set, "table", "t.txt", &err), 0);
    all.point_count = 0;
    assert_int_equal(ddp_report_begin(set, &all, &err), 0);
    for (int i = 0; i < r->point_count; i++) {
        all.point_count = i + 1;
        all.newest = i;
        assert_int_equal(ddp_report_point(set, &all, &err), 0);
    }
    assert_int_equal(ddp_report_end(set, &all, &err), 0);
    ddp_report_close(set);
    return slurp("t.txt", &bytes);
}

/* Returns the number of lines that name all of the subjects (names.h). */
static int lines_that_name(const char *text, const char *subjects)
{
    int n = 0;
    char *copy = strdup(text), *rest = NULL;
    assert_non_null(copy);
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        n += text_names(line, subjects);
    free(copy);
    return n;
}

static void says(const char *text, const char *subjects)
{
    if (lines_that_name(text, subjects) == 0)
        fail_msg("no line with '%s' in:\n%s", subjects, text);
}

/* Reads t.csv and t.txt, and appends the sizes of their rows, and the indices in t.txt. */
static void read_rows(char csv[64], char table[64])
{
    size_t bytes;
    char *text = slurp("t.csv", &bytes), *line = strtok(text, "\r\n"), size[32];
    while ((line = strtok(NULL, "\r\n")) != NULL)
        for (int b = 1024; b <= 16384; b *= 2) {
            snprintf(size, sizeof size, ",%d,%d,", b, b); /* requested bytes, real bytes */
            if (strstr(line, size))
                snprintf(csv + strlen(csv), 64 - strlen(csv), "%d ", b);
        }
    free(text);
    text = slurp("t.txt", &bytes);
    for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *end;
        const long index = strtol(line, &end, 10);
        if (index > 0)
            snprintf(table + strlen(table), 64 - strlen(table), "%ld:%ld ", index,
                     strtol(end, NULL, 10));
    }
    free(text);
}

/* Points are measured in another order. CSV prints a row as soon as no earlier row can come, and
 * the rest at the end. The table prints each row at once, with its index. */
static void test_rows_are_printed_in_order(void **state)
{
    static const struct {
        int place;
        const char *csv, *table;
    } steps[] = {{1, "", "2:2048 "},
                 {3, "", "2:2048 4:8192 "},
                 {0, "1024 2048 ", "2:2048 4:8192 1:1024 "},
                 {4, "1024 2048 ", "2:2048 4:8192 1:1024 5:16384 "}};
    const size_t last = DDP_COUNT_OF(steps) - 1;
    struct ddp_err err;
    struct ddp_record r, like;
    struct ddp_report_set *set = open_set();
    make_record(&r);
    make_record(&like);
    assert_int_equal(add(set, "csv", "t.csv", &err), 0);
    assert_int_equal(add(set, "table", "t.txt", &err), 0);
    assert_int_equal(ddp_report_begin(set, &r, &err), 0);
    for (size_t i = 0; i <= last + 1; i++) {
        char csv[64] = "", table[64] = "";
        if (i <= last) {
            add_point(&like, UINT64_C(1024) << steps[i].place, 6);
            struct ddp_point p = like.points[i];
            p.place = steps[i].place;
            p.of = 5;
            p.sample_count = 0;
            assert_int_equal(ddp_record_add_point(&r, &p, NULL, &err), 0);
            assert_int_equal(ddp_report_point(set, &r, &err), 0);
        } else {
            assert_int_equal(ddp_report_end(set, &r, &err), 0);
        }
        read_rows(csv, table);
        assert_string_equal(csv, i <= last ? steps[i].csv : "1024 2048 8192 16384 ");
        assert_string_equal(table, steps[DDP_MIN(i, last)].table);
    }
    ddp_report_close(set);
    ddp_record_release(&like);
    ddp_record_release(&r);
}

/* Small bandwidths keep their digits, the line of the best bandwidth names its point, and the
 * head names ranks and launcher. */
static void test_table_small_numbers(void **state)
{
    struct ddp_record r;
    make_record(&r);
    strcpy(r.rank_counts, "2,4");
    strcpy(r.launch, "threads");
    add_slow_point(&r, 2, 4, 1234, 500);
    add_slow_point(&r, 4, 8, 1234, 5000);
    char *text = table_of(&r);
    says(text, ", 2,4 ranks|shm|threads");
    says(text, " 5.89e-07 "); /* 4 bytes in 6.79 ms */
    says(text, "# |1.768e-06 GB/s|8 B|4 ranks|f32|direct");
    /* the points have different numbers of ranks, so their ping-pongs are not compared */
    if (lines_that_name(text, "slow-pingpong") > 0)
        fail_msg("%s", text);
    free(text);
    ddp_record_release(&r);
}

static void test_table_marks_doubtful_points(void **state)
{
    struct ddp_record r;
    make_record(&r);
    add_slow_point(&r, 2, 4, 1, 666);
    add_slow_point(&r, 2, 8, 1, 2191136);
    char *text = table_of(&r);
    says(text, "           4 |wide-interval");
    says(text, "           8 |slow-pingpong,wide-interval");
    says(text, "# 2 of 2|slow-pingpong (1)|wide-interval (2)");
    free(text);
    ddp_record_release(&r);
}

/* A break-even density that is unknown is not named. */
static void test_table_names_known_densities(void **state)
{
    struct ddp_record r;
    make_record(&r);
    for (int i = 0; i < 2; i++) {
        add_slow_point(&r, 2, 4096, 100, 500);
        struct ddp_point *p = &r.points[i];
        strcpy(p->spec.compress, i == 0 ? "topk:0.1" : "topk:0.2");
        p->dense_ns[DDP_BASELINE_F32] = 1e5;
        strcpy(p->dense_algorithm[DDP_BASELINE_F32], "direct");
        p->break_even[DDP_BASELINE_F32].estimated = 0.25;
        p->break_even[DDP_BASELINE_F32].predicted = i == 0 ? NAN : 0.5;
    }
    char *text = table_of(&r);
    assert_int_equal(lines_that_name(text, "nan"), 0);
    says(text, "break-even density against dense f32: 0.25 estimated");
    says(text, "break-even density against dense f32: 0.5 from|, 0.25 estimated");
    free(text);
    ddp_record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_document_is_valid_after_every_step),
        IN_FOLDER(test_train_document),
        IN_FOLDER(test_table_replaces_an_older_one),
        IN_FOLDER(test_rows_are_printed_in_order),
        IN_FOLDER(test_table_small_numbers),
        IN_FOLDER(test_table_marks_doubtful_points),
        IN_FOLDER(test_table_names_known_densities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
