/* Reporters: the document is whole and true at every moment; the table is for people. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "report_sample.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_document_is_valid_after_every_step),
        IN_FOLDER(test_train_document),
        IN_FOLDER(test_table_replaces_an_older_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
