/* Reading documents back into records: a record survives being written and read, damaged documents
 * are named, and a document of another version may lack values. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "record/quality.h"
#include "record/stored.h"
#include "report_sample.h"

/* The text of the record as a document. */
static struct ddp_strbuf written(const struct ddp_record *r)
{
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_reporter_find("json")->render(r, &out, &err), 0);
    return out;
}

static int parse(const char *text, size_t bytes, const struct ddp_result_rules *rules,
                 struct ddp_stored *out, struct ddp_err *err)
{
    *err = DDP_ERR_INIT;
    return ddp_stored_parse(text, bytes, "x.json", rules, out, err);
}

/* Writes the record, reads it, writes what was read, and compares the two texts. */
static void survives(const struct ddp_record *r)
{
    struct ddp_strbuf before = written(r), after;
    struct ddp_stored stored;
    struct ddp_err err;
    if (parse(before.text, before.length, NULL, &stored, &err) != 0)
        fail_msg("%s", err.text);
    after = written(&stored.record);
    for (size_t i = 0, line = 0; i <= before.length; i++) {
        if (before.text[i] != after.text[i])
            fail_msg("read back, the record differs: %.80s -> %.80s", before.text + line,
                     after.text + line);
        line = before.text[i] == '\n' ? i + 1 : line;
    }
    ddp_stored_release(&stored);
    ddp_strbuf_release(&before);
    ddp_strbuf_release(&after);
}

static void add_compressed_point(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec = (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                     .backend = "mpi",
                                     .algorithm = "auto",
                                     .dtype = DDP_F32,
                                     .placement = DDP_OUT_OF_PLACE,
                                     .ranks = 4,
                                     .groups = 2,
                                     .requested_bytes = 1 << 20,
                                     .size_bytes = 1 << 20,
                                     .count = 1 << 18,
                                     .compress = "topk:0.01",
                                     .overlap = true};
    strcpy(p.algorithm_used, "gather");
    strcpy(p.feedback, "on");
    p.iterations = 30;
    p.time_ns =
        (struct ddp_summary){30, 5e6, 4.9e6, 5.2e6, 5e6, 1e4, 4e6, 4.5e6, 5.5e6, 6e6, NAN, 7e6};
    p.density = p.achieved_density = 0.01;
    p.dense_ns[0] = 1e6;
    p.break_even[0] = (struct ddp_break_even){0.9, 0.2, NAN};
    p.wire_bytes_per_rank = 1000;
    p.wire_counted = true;
    p.overlap = (struct ddp_overlap_times){1e6, 2e6, 50};
    strcpy(p.bound_kind, "memory");
    p.bound_ns = 1e5;
    p.quality = 0;
    assert_int_equal(ddp_record_add_point(r, &p, NULL, &err), 0);
    r->points[r->point_count - 1].quality = 1u << DDP_QUALITY_BUSY | 1u << DDP_QUALITY_DRIFTING;
}

static void add_barrier(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec = (struct ddp_point_spec){
        .coll = DDP_BARRIER, .backend = "shm", .algorithm = "auto", .ranks = 2, .compress = "none"};
    p.iterations = 3;
    p.launch = 2;
    p.time_ns.median = 300;
    assert_int_equal(ddp_record_add_point(r, &p, NULL, &err), 0);
}

static void add_training(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    static const char *const syncs[] = {"dense", "topk:0.01"};
    for (int i = 0; i < 2; i++) {
        struct ddp_train_run run;
        ddp_train_run_init(&run);
        strcpy(run.model, "lenet");
        strcpy(run.dataset, "mnist");
        strcpy(run.sync, syncs[i]);
        strcpy(run.data_path, "/data/<m>&n");
        run.ranks = 2;
        run.seed = 7;
        run.target_accuracy = 0.8;
        assert_int_equal(ddp_record_add_train(r, &run, &err), 0);
        for (int e = 1; e <= 2; e++) {
            struct ddp_epoch epoch;
            ddp_epoch_init(&epoch);
            epoch.epoch = e;
            epoch.steps = 10;
            epoch.seconds = 2 + i;
            epoch.eval_accuracy = 0.5 + 0.1 * e;
            epoch.wire_bytes_per_rank = i ? 1e4 : 1e6;
            epoch.wire_counted = i == 0;
            epoch.parameter_hash = UINT64_C(0xfedcba9876543210);
            assert_int_equal(ddp_record_add_epoch(r, &epoch, &err), 0);
        }
        struct ddp_train_run last = r->train[i];
        last.total_seconds = 4 + 2 * i;
        ddp_record_end_train(r, &last);
    }
}

/* Sets every part of a record that a document shows, apart from a verdict. */
static void fill(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    make_record(r);
    strcpy(r->label, "a <label> & more");
    strcpy(r->note, "blocks of 2 calls");
    strcpy(r->finished, "2026-01-01T00:00:00Z");
    r->comm_init_ns = 26058;
    add_point(r, 4096, 50);
    add_barrier(r);
    add_compressed_point(r);
    add_training(r);
    const struct ddp_control control = {2, 1 << 24, 57.5, NAN};
    assert_int_equal(ddp_record_add_control(r, &control, &err), 0);
    const struct ddp_left_out left_out = {"allreduce: algorithm 'flat'", 2, -1, "it <cannot>"};
    assert_int_equal(ddp_record_add_left_out(r, &left_out, &err), 0);
    struct ddp_gpu_facts gpu = {.name = "H100",
                                .driver = "550",
                                .memory_bytes = 1 << 30,
                                .sm_clock_MHz = -1,
                                .sm_clock_max_MHz = 1980,
                                .memory_clock_MHz = -1,
                                .temperature_C = 40,
                                .power_limit_W = -1};
    ddp_record_set_gpus(r, 0, &gpu, 1);
}

static void test_a_record_survives(void **state)
{
    struct ddp_record r;
    (void)state;
    fill(&r);
    survives(&r);
    r.status = DDP_STATUS_COMPLETE;
    r.reason[0] = '\0';
    survives(&r);
    ddp_record_release(&r);
}

static void test_verdicts_survive(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_verdict_record v;
    struct ddp_verdict_cell cells[2] = {{.id = "a/b", .base_ns = 1e3, .next_ns = 2e3},
                                        {.id = "c", .base_ns = NAN, .next_ns = NAN}};
    struct ddp_verdict_accuracy accuracy = {
        .name = "lenet", .base = 0.9, .next = NAN, .diverged_seed = 3, .margin = 0.01};
    struct ddp_noise noise = {.pairs = 9,
                              .same = 4,
                              .noise_floor = 0.03,
                              .detectable = NAN,
                              .median_pairs = NAN,
                              .median_seconds = NAN};
    struct ddp_record r;
    (void)state;
    make_record(&r);
    ddp_verdict_record_init(&v);
    cells[0].cell = (struct ddp_cell){5, 2, 1.9, 2.1, 0.01, 0.02, DDP_CELL_SLOWER};
    cells[1].cell = (struct ddp_cell){0, NAN, NAN, NAN, NAN, NAN, DDP_CELL_MISSING};
    accuracy.test = (struct ddp_noninferior){3, -0.1, 0.01, -0.2, -0.05, DDP_WORSE, 0};
    v.kind = DDP_BY_GATE;
    v.outcome = DDP_VERDICT_FAIL;
    strcpy(v.reason, "1 cell is slower");
    strcpy(v.base_command, "old <b>");
    v.level = 0.05;
    v.min_effect = 0.1;
    v.pairs = 5;
    v.max_pairs = 12;
    v.runs = 3;
    v.vary = 1u << DDP_VARY_BACKEND | 1u << DDP_VARY_LR;
    v.cells = cells;
    v.count = 2;
    v.accuracy = &accuracy;
    v.accuracy_count = 1;
    assert_int_equal(ddp_unjudged_add(&v.unjudged, "d", true, false, &err), 0);
    r.verdict = &v;
    survives(&r);
    v.kind = DDP_BY_SELFTEST;
    v.noise = &noise;
    survives(&r);
    free(v.unjudged.items);
    ddp_record_release(&r);
}

static void test_ratios_survive(void **state)
{
    struct ddp_verdict_record v;
    struct ddp_result results[2] = {{.status = "complete", .build = "1"},
                                    {.status = "partial", .build = "2", .edited = true}};
    struct ddp_across_document documents[2] = {{"a.json", &results[0]}, {"b.json", &results[1]}};
    struct ddp_across_cell cell = {"a/b", 1, 1e3, 2e3, 2, 1.5, 2.5};
    struct ddp_across_difference difference = {1, "build", "1", "2"};
    struct ddp_across across = {documents, &cell, &difference, 2, 1, 1};
    struct ddp_record r;
    (void)state;
    make_record(&r);
    ddp_verdict_record_init(&v);
    v.kind = DDP_BY_ACROSS;
    v.outcome = DDP_VERDICT_NONE;
    v.level = v.min_effect = NAN;
    v.across = &across;
    r.verdict = &v;
    survives(&r);
    ddp_record_release(&r);
}

static void test_repetitions_are_merged(void **state)
{
    struct ddp_record r;
    struct ddp_stored stored;
    struct ddp_err err;
    (void)state;
    make_record(&r);
    for (int launch = 1; launch <= 3; launch++) {
        add_point(&r, 4096, 20);
        r.points[launch - 1].launch = launch;
        r.points[launch - 1].time_ns.median += 0.1 * launch;
    }
    add_point(&r, 64, 20);
    struct ddp_strbuf text = written(&r);
    assert_int_equal(parse(text.text, text.length, NULL, &stored, &err), 0);
    assert_int_equal(stored.result.count, 2);
    assert_int_equal(stored.record.point_count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(stored.merged[i], i == 3);
    assert_true(stored.result.points[0].median_ns == r.points[1].time_ns.median);
    ddp_stored_release(&stored);
    ddp_strbuf_release(&text);
    ddp_record_release(&r);
}

static void test_cut_and_damaged_documents_are_named(void **state)
{
    static const struct {
        const char *old, *new, *subject;
    } edits[] = {
        {"\"collective\": \"allreduce\"", "\"collective\": \"allgossip\"", "collective"},
        {"\"placement\": \"in\"", "\"placement\": \"up\"", "placement"},
        {"\"memory\": \"registered\"", "\"memory\": 3", "memory"},
        {"\"eval_accuracy\": 0.6", "\"eval_accuracy\": \"good\"", "eval_accuracy"},
        {"\"copy_GBps\": 57.5", "\"copy_GBps\": \"fast\"", "copy_GBps"},
        {"\"left_out\": [", "\"left_out\": [{\"ranks\": -3}, ", "left_out"},
        {"\n  \"verdict\": null", "\n  \"verdict\": 1", "verdict"},
        {"\n  \"verdict\": null", "\n  \"verdict\": {\"kind\": \"guess\"}", "kind"},
        {"\n  \"verdict\": null",
         "\n  \"verdict\": {\"kind\": \"across\", \"outcome\": null, \"across\": {\"documents\": "
         "[{}, {}, {}], "
         "\"ratios\": [{\"document\": 1.5}]}}",
         "across"},
        {"\"schema\": \"ddpbench/1\"", "\"schema\": \"other/2\"", "other/2"},
    };
    const struct ddp_result_rules rules = {.accept_edited = true};
    struct ddp_stored stored;
    struct ddp_record r;
    struct ddp_err err;
    (void)state;
    fill(&r);
    struct ddp_strbuf text = written(&r);
    for (size_t n = 0; n + 2 < text.length; n += n < 2000 ? 1 : 97) {
        assert_int_equal(parse(text.text, n, &rules, &stored, &err), DDP_EINPUT);
        assert_non_null(strstr(err.text, "x.json"));
    }
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct ddp_strbuf edited = DDP_STRBUF_INIT;
        const char *at = strstr(text.text, edits[i].old);
        assert_non_null(at);
        ddp_strbuf_add_n(&edited, text.text, (size_t)(at - text.text));
        ddp_strbuf_addf(&edited, "%s%s", edits[i].new, at + strlen(edits[i].old));
        assert_int_equal(parse(edited.text, edited.length, NULL, &stored, &err), DDP_EINPUT);
        if (parse(edited.text, edited.length, &rules, &stored, &err) != DDP_EINPUT)
            fail_msg("%s: %s", edits[i].new, err.text);
        if (!strstr(err.text, edits[i].subject))
            fail_msg("'%s' does not name '%s'", err.text, edits[i].subject);
        ddp_strbuf_release(&edited);
    }
    ddp_strbuf_release(&text);
    ddp_record_release(&r);
}

static void test_another_version_may_lack_values(void **state)
{
    static const char text[] =
        "{\"schema\": \"ddpbench/1\", \"status\": \"complete\", \"label\": null, \"seed\": 2.7, "
        "\"tool\": {"
        "\"version\": \"0.1\", \"commit\": \"abc\", \"cflags\": \"-O3\"}, \"world\": {\"ranks\": 2,"
        "\"backend\": null, \"hosts\": [{\"name\": \"h\"}]}, \"points\": [{\"id\": \"a\", "
        "\"collective\": \"allreduce\", \"ranks\": 4, \"size_bytes\": 1000, \"iterations\": 9, "
        "\"compress\": {\"method\": \"none\"}, \"partial\": null, \"time_us\": {\"median\": 2, "
        "\"ci95\": null, \"min\": 1, \"p25\": 1, \"p75\": 3, \"max\": 4}, \"algbw_GBps\": 0.5, "
        "\"busbw_GBps\": 0.75, \"busbw_ci95_GBps\": null, \"pingpong_ns\": {\"before\": 99, "
        "\"after\": null}}]}";
    const struct ddp_result_rules rules = {.accept_edited = true};
    struct ddp_stored stored;
    struct ddp_err err;
    (void)state;
    assert_int_equal(parse(text, sizeof text - 1, &rules, &stored, &err), 0);
    const struct ddp_point *p = &stored.record.points[0];
    assert_true(stored.result.edited);
    assert_string_equal(stored.record.build.version, "0.1");
    assert_string_equal(p->spec.compress, "none");
    assert_true(isnan(p->bound_ns) && isnan(p->time_ns.ci95_lo) && isnan(p->density));
    assert_true(p->time_ns.median == 2000);
    assert_int_equal(p->check_wrong, -1);
    assert_int_equal(stored.record.seed, -1);
    assert_null(stored.record.verdict);
    ddp_stored_release(&stored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_record_survives),
        cmocka_unit_test(test_verdicts_survive),
        cmocka_unit_test(test_ratios_survive),
        cmocka_unit_test(test_repetitions_are_merged),
        cmocka_unit_test(test_cut_and_damaged_documents_are_named),
        cmocka_unit_test(test_another_version_may_lack_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
