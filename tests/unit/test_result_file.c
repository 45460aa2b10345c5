/* Reading result files: the digest finds damage. With a valid digest, figures that contradict
 * each other are found, and no byte can crash the reader. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "names.h"
#include "record/result_file.h"
#include "record/result_machine.h"
#include "record/vary.h"

static const char body[] =
    "{\"schema\": \"ddpbench/1\", \"status\": \"complete\", \"label\": null, \"tool\": {"
    "\"version\": \"0.1\", \"commit\": \"abc\", \"cflags\": \"-O3\"}, \"world\": {\"ranks\": 2, "
    "\"backend\": \"shm\", \"hosts\": [{\"name\": \"h\", \"cpu\": \"c\", \"cores\": 2}]}, "
    "\"points\": [{\"id\": \"a\", \"collective\": \"allreduce\", \"ranks\": 4, \"size_bytes\": "
    "1000, \"iterations\": 9, \"compress\": {\"method\": \"none\"}, \"partial\": null, "
    "\"time_us\": {\"median\": 2, \"ci95\": [1, 3], \"min\": 1, \"p25\": 1, \"p75\": 3, \"max\": "
    "4}, \"algbw_GBps\": 0.5, \"busbw_GBps\": 0.75, \"busbw_ci95_GBps\": null, \"pingpong_ns\": "
    "{\"before\": 99, \"after\": null}}]";

/* Returns the text with its digest, NUL-terminated. The caller frees it. */
static char *with_digest(const char *text, size_t n, size_t *bytes)
{
    char *whole = malloc(n + 64);
    assert_non_null(whole);
    memcpy(whole, text, n);
    *bytes = n + (size_t)snprintf(whole + n, 64, ", \"digest\": \"fnv1a64:%016llx\"}\n",
                                  (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text, n));
    return whole;
}

static int parse(const char *text, size_t n, struct ddp_err *err)
{
    struct ddp_result r;
    size_t bytes;
    char *whole = with_digest(text, n, &bytes);
    *err = DDP_ERR_INIT;
    int rc = ddp_result_parse(whole, bytes, "x.json", NULL, &r, err);
    if (rc == 0)
        ddp_result_release(&r);
    free(whole);
    return rc;
}

static void test_reads(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_result r;
    size_t bytes;
    char *whole = with_digest(body, strlen(body), &bytes);
    assert_int_equal(ddp_result_parse(whole, bytes, "x.json", NULL, &r, &err), 0);
    assert_int_equal(r.count, 1);
    const struct ddp_result_point *p = ddp_result_find(&r, "a");
    assert_non_null(p);
    assert_true(p->median_ns == 2000 && p->ci95_lo_ns == 1000 && p->pingpong_ns[0] == 99);
    assert_null(ddp_result_find(&r, "b"));
    assert_true(text_names(r.fingerprint, "CPU c|usable cores unknown|ranks 2|backend shm"));
    ddp_result_release(&r);
    free(whole);
}

/* Replaces the first `from` and parses the text. Returns the reader's code. */
static int parse_changed(const char *from, const char *to, struct ddp_err *err)
{
    char changed[2048];
    const char *at = strstr(body, from);
    assert_non_null(at);
    int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - body), body, to,
                     at + strlen(from));
    return parse(changed, (size_t)n, err);
}

static void test_contradictions(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"busbw_GBps\": 0.75", "\"busbw_GBps\": 0.8", "busbw"},
        {"\"algbw_GBps\": 0.5", "\"algbw_GBps\": 0.6", "algbw"},
        {"\"median\": 2", "\"median\": 9", "order"},
        {"[1, 3]", "[2.5, 3]", "order"},
        {"[1, 3]", "[1]", "pair"},
        {"\"ranks\": 4", "\"ranks\": 0", "ranks"},
        {"\"ranks\": 4", "\"ranks\": 1e300", "ranks"},
        {"\"iterations\": 9", "\"iterations\": 9.5", "iterations"},
        {"\"iterations\": 9", "\"iterations\": 9, \"check\": {\"wrong\": -3}", "wrong"},
        {"\"iterations\": 9", "\"iterations\": 9, \"check\": {\"wrong\": 0.5}", "wrong"},
        {"\"iterations\": 9", "\"iterations\": 9, \"check\": {\"wrong\": true}", "wrong"},
        {"\"method\": \"none\"", "\"method\": \"topk\"", "busbw"},
        {"\"allreduce\"", "\"nothing\"", "collective"},
        {"\"ddpbench/1\"", "\"ddpbench/9\"", "schema"},
        {"\"label\": null", "\"label\": null, \"more\": 1", "'more'"},
        {"\"id\": \"a\"", "\"id\": 7", " id"},
        {"\"points\": [", "\"points\": [7, ", " id"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_err err;
        assert_int_equal(parse_changed(cases[i].from, cases[i].to, &err), DDP_EINPUT);
        if (!text_names(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    }
}

/* Reads the body with the first `from` replaced. */
static void read_changed(const char *from, const char *to, struct ddp_result *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    const char *at = strstr(body, from);
    size_t bytes;
    assert_non_null(at);
    ddp_strbuf_addf(&text, "%.*s%s%s", (int)(at - body), body, to, at + strlen(from));
    char *whole = with_digest(text.text, text.length, &bytes);
    if (ddp_result_parse(whole, bytes, "x.json", NULL, r, &err) != 0)
        fail_msg("%s", err.text);
    free(whole);
    ddp_strbuf_release(&text);
}

/* A document whose figures may not be judged gives the reason. */
static void test_flaws(void **state)
{
    static const struct {
        const char *from, *to, *flaw;
        bool wrong;
    } cases[] = {
        {"\"complete\"", "\"complete\"", "", false},
        {"\"complete\"", "\"partial\", \"reason\": \"rank 1\"", "", false},
        {"\"complete\"", "\"failed\", \"reason\": \"rank 1\"", "rank 1", true},
        {"\"complete\"", "\"failed\"", "failed", true},
        {"\"iterations\": 9", "\"iterations\": 0", "'a' has no valid iterations", false},
        {"\"iterations\": 9", "\"iterations\": 0, \"check\": {\"wrong\": 7}", "7 wrong", true},
        {"\"iterations\": 9", "\"iterations\": 9, \"check\": {\"wrong\": 0}", "", false},
        {"\"iterations\": 9", "\"iterations\": 9, \"check\": {\"wrong\": null}", "", false},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_result r;
        read_changed(cases[i].from, cases[i].to, &r);
        if (!strstr(r.flaw, cases[i].flaw) || (!cases[i].flaw[0] && r.flaw[0]))
            fail_msg("'%s' does not say '%s'", r.flaw, cases[i].flaw);
        assert_int_equal(r.wrong_data, cases[i].wrong);
        ddp_result_release(&r);
    }
}

#define RUN "{\"model\": \"m\", \"sync\": {\"strategy\": \"dense\"}, \"ranks\": 2, \"seed\": 3"

/* Reads a document with these training runs. */
static void read_training(const char *runs, struct ddp_result *r)
{
    char to[8192];
    snprintf(to, sizeof to, "\"train\": [%s], \"points\"", runs);
    read_changed("\"points\"", to, r);
}

/* Runs are sorted by name. Runs without a model and runs that occur twice are refused. */
static void test_runs(void **state)
{
    struct ddp_err err;
    struct ddp_result r;
    read_training(RUN ", \"optimizer\": {\"lr\": 0.5}}, " RUN ", \"optimizer\": {\"lr\": 1e-7}}",
                  &r);
    assert_int_equal(r.run_count, 2);
    assert_string_equal(r.runs[0].name, "m dense ranks 2 lr 0.5 seed 3");
    assert_string_equal(r.runs[0].group, "m dense ranks 2 lr 0.5");
    assert_string_equal(r.runs[1].name, "m dense ranks 2 lr 1e-07 seed 3");
    assert_false(r.runs[0].timed);
    assert_int_equal(r.count, 1);
    ddp_result_release(&r);
    read_training(RUN ", \"batch_per_rank\": 8, \"dataset\": \"d\"}, " RUN
                      ", \"batch_per_rank\": 16, \"dataset\": \"d\"}, " RUN
                      ", \"batch_per_rank\": 8, \"dataset\": \"e\"}, " RUN
                      ", \"batch_per_rank\": 8, \"dataset\": \"d\", \"launch\": 2}, " RUN
                      ", \"batch_per_rank\": 8, \"dataset\": \"d\", \"baseline\": true}",
                  &r);
    assert_int_equal(r.run_count, 4);
    assert_string_equal(r.runs[0].name, "m dense ranks 2 seed 3 batch 16 d");
    assert_string_equal(r.runs[1].name, "m dense ranks 2 seed 3 batch 8 d");
    assert_string_equal(r.runs[2].name, "m dense ranks 2 seed 3 batch 8 d");
    assert_int_equal(r.runs[1].launch, 0);
    assert_int_equal(r.runs[2].launch, 2);
    assert_string_equal(r.runs[3].name, "m dense ranks 2 seed 3 batch 8 e");
    ddp_result_release(&r);
    read_training(
        "{\"model\": \"m\", \"sync\": {\"strategy\": \"d\"}, \"ranks\": 1e300, \"seed\": 7}", &r);
    assert_string_equal(r.runs[0].name, "m d ranks 1e+300 seed 7");
    ddp_result_release(&r);
    static const char *const bad[] = {"7",
                                      "[7]",
                                      "[{\"model\": \"m\"}]",
                                      "[{\"model\": \"::m\", \"sync\": {\"strategy\": \"d\"}}]",
                                      "[" RUN ", \"epochs\": 7}]",
                                      "[" RUN ", \"epochs\": [7]}]",
                                      "[" RUN ", \"epochs\": [{\"steps\": 1, \"seconds\": 0}]}]",
                                      "[" RUN ", \"epochs\": [{\"steps\": 0, \"seconds\": 1}]}]",
                                      "[" RUN ", \"epochs\": [{\"steps\": 1, \"seconds\": 1, "
                                      "\"eval_accuracy\": 1.1}]}]",
                                      "[" RUN "}, " RUN "}]"};
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        char to[512];
        snprintf(to, sizeof to, "\"train\": %s, \"points\"", bad[i]);
        assert_int_equal(parse_changed("\"points\"", to, &err), DDP_EINPUT);
    }
}

#define EPOCH(seconds, accuracy)                                                                   \
    "{\"steps\": 10, \"seconds\": " seconds ", \"train_loss\": 1, \"eval_loss\": 1, "              \
    "\"eval_accuracy\": " accuracy "}"

/* The step time is the median over epochs. The accuracy is the mean of the last three epochs. */
static void test_epochs(void **state)
{
    struct ddp_result r;
    read_training(RUN ", \"eval_images\": 100, \"epochs\": [" EPOCH("9", "0.1") ", " EPOCH(
                      "1", "0.5") ", " EPOCH("2", "0.6") ", " EPOCH("3", "0.7") "]}",
                  &r);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.points[1].id, "m dense ranks 2 seed 3 epochs 4 step");
    assert_true(fabs(r.points[1].median_ns - 2.5e8) < 1);
    assert_true(isnan(r.points[1].ci95_lo_ns)); /* four epochs are too few for an interval */
    assert_int_equal(r.points[1].iterations, 40);
    assert_string_equal(r.runs[0].group, "m dense ranks 2 epochs 4");
    assert_true(r.runs[0].timed && !r.runs[0].diverged);
    assert_true(fabs(r.runs[0].accuracy - 0.6) < 1e-12 && r.runs[0].eval_images == 100);
    ddp_result_release(&r);
    read_training(RUN ", \"launch\": 1, \"epochs\": [" EPOCH(
                      "1", "0.5") "]}, " RUN
                                  ", \"launch\": 2, \"epochs\": [" EPOCH("3", "0.7") "]}",
                  &r);
    assert_int_equal(r.count, 2);
    assert_true(fabs(r.points[1].median_ns - 2e8) < 1);
    ddp_result_release(&r);
    read_training(RUN ", \"epochs\": [{\"steps\": 10, \"seconds\": 1, \"train_loss\": null, "
                      "\"eval_loss\": null, \"eval_accuracy\": 0.1}]}",
                  &r);
    assert_true(r.runs[0].diverged);
    ddp_result_release(&r);
    /* an epoch that was not evaluated */
    read_training(RUN ", \"epochs\": [{\"steps\": 10, \"seconds\": 1, \"train_loss\": 1, "
                      "\"eval_loss\": null, \"eval_accuracy\": null}]}",
                  &r);
    assert_true(!r.runs[0].diverged && isnan(r.runs[0].accuracy));
    ddp_result_release(&r);
}

/* Names that are too long stay different, and --vary leaves settings out. */
static void test_run_names(void **state)
{
    char longest[301] = "", runs[2048], text[4096];
    struct ddp_result r;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_result_rules rules = {.vary = 1u << DDP_VARY_LR | 1u << DDP_VARY_SYNC};
    memset(longest, 'p', 300);
    snprintf(runs, sizeof runs,
             RUN ", \"data\": {\"path\": \"%s1\"}}, " RUN ", \"data\": {\"path\": \"%s2\"}}",
             longest, longest);
    read_training(runs, &r);
    assert_int_equal(r.run_count, 2);
    assert_true(strcmp(r.runs[0].name, r.runs[1].name) != 0);
    assert_true(strlen(r.runs[0].name) < DDP_RESULT_RUN_NAME);
    ddp_result_release(&r);
    snprintf(text, sizeof text,
             "\"train\": [" RUN
             ", \"optimizer\": {\"lr\": 0.5}, \"batch_per_rank\": 8}], \"points\"");
    const char *at = strstr(body, "\"points\"");
    char changed[sizeof body + 4096];
    int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - body), body, text,
                     at + strlen("\"points\""));
    size_t bytes;
    char *whole = with_digest(changed, (size_t)n, &bytes);
    assert_int_equal(ddp_result_parse(whole, bytes, "x.json", &rules, &r, &err), 0);
    assert_string_equal(r.runs[0].name, "m ranks 2 seed 3 batch 8");
    ddp_result_release(&r);
    free(whole);
}

static void test_paired_launches(void **state)
{
    struct ddp_err err;
    const char *point = strstr(body, "{\"id\"");
    char twice[4096];
    int n = snprintf(twice, sizeof twice, "%.*s, %s", (int)strlen(body) - 1, body, point);
    assert_int_equal(parse(twice, (size_t)n, &err), DDP_EINPUT);
    assert_true(text_names(err.text, "'a'"));
}

/* The digest finds every flipped bit of every byte. */
static void test_flips_are_found(void **state)
{
    size_t bytes;
    char *whole = with_digest(body, strlen(body), &bytes);
    for (size_t i = 0; i + 1 < bytes; i++) /* the final newline is not content */
        for (int bit = 0; bit < 8; bit++) {
            struct ddp_err err = DDP_ERR_INIT;
            struct ddp_result r;
            whole[i] ^= (char)(1 << bit);
            int rc = ddp_result_parse(whole, bytes, "x.json", NULL, &r, &err);
            if (rc == 0) { /* harmless: other white space after the digest */
                ddp_result_release(&r);
                assert_true(i > strlen(body));
            } else {
                assert_int_equal(rc, DDP_EINPUT);
            }
            whole[i] ^= (char)(1 << bit);
        }
    free(whole);
}

/* The same with a repaired digest: the document is read or refused, and nothing else happens. */
static void test_flips_with_a_right_digest(void **state)
{
    char changed[sizeof body];
    int refused = 0, read = 0;
    for (size_t i = 0; i < strlen(body); i++)
        for (int bit = 0; bit < 8; bit++) {
            struct ddp_err err;
            memcpy(changed, body, sizeof body);
            changed[i] ^= (char)(1 << bit);
            int rc = parse(changed, strlen(body), &err);
            assert_true(rc == 0 || rc == DDP_EINPUT);
            refused += rc != 0;
            read += rc == 0;
        }
    assert_true(refused > 1000 && read > 10);
}

static void test_truncated(void **state)
{
    for (size_t n = 0; n < strlen(body); n++) {
        struct ddp_err err;
        assert_int_equal(parse(body, n, &err), DDP_EINPUT);
    }
}

static void test_files(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_result r;
    assert_int_equal(ddp_result_read("/nonexistent/x.json", NULL, &r, &err), DDP_ENOINPUT);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_result_read("/tmp", NULL, &r, &err), DDP_EINPUT);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_result_read("/dev/zero", NULL, &r, &err), DDP_EINPUT);
}

/* The repetitions of a sweep become one point with the median of their medians. Two points of
 * one repetition do not. */
static void test_launches(void **state)
{
    static const char head[] = "\"points\": [";
    const char *points = strstr(body, head) + strlen(head);
    const int point = (int)(strlen(points) - 1);
    struct ddp_err err = DDP_ERR_INIT;
    for (int same = 0; same < 2; same++) {
        struct ddp_strbuf text = DDP_STRBUF_INIT;
        struct ddp_result r;
        size_t bytes;
        ddp_strbuf_add_n(&text, body, (size_t)(points - body));
        for (int launch = 1; launch <= 7; launch++) {
            char one[1024], *median;
            /* without the point's closing brace */
            snprintf(one, sizeof one, "%.*s", point - 1, points);
            median = strstr(one, "\"median\": 2");
            assert_non_null(median);
            median[strlen("\"median\": ")] = launch == 4 ? '2' : launch < 4 ? '1' : '3';
            char *busbw = strstr(one, "\"algbw_GBps\": 0.5, \"busbw_GBps\": 0.75");
            assert_non_null(busbw);
            static const char null[] = "\"algbw_GBps\":null, \"busbw_GBps\": null";
            memcpy(busbw, null, sizeof null - 1);
            ddp_strbuf_addf(&text, "%s%s, \"launch\": %d}", launch > 1 ? ", " : "", one,
                            same && launch == 7 ? 1 : launch);
        }
        ddp_strbuf_add(&text, "]");
        char *whole = with_digest(text.text, text.length, &bytes);
        int rc = ddp_result_parse(whole, bytes, "x.json", NULL, &r, &err);
        if (rc != (same ? DDP_EINPUT : 0))
            fail_msg("%d: %s", rc, err.text);
        if (rc == 0) {
            assert_int_equal(r.count, 1);
            assert_true(r.points[0].median_ns == 2000 && r.points[0].iterations == 63);
            assert_true(r.points[0].ci95_lo_ns == 1000 && r.points[0].ci95_hi_ns == 3000);
            ddp_result_release(&r);
        }
        free(whole);
        ddp_strbuf_release(&text);
    }
    assert_true(text_names(err.text, "'a'"));
}

/* A fact that a document lacks is unknown. Host names and minor versions of the kernel are not part
 * of the fingerprint, and --vary leaves facts out. */
static void test_fingerprint(void **state)
{
    static const struct {
        const char *from, *to, *fingerprint;
    } cases[] = {
        {"\"h\"", "\"other\"",
         "CPU c; usable cores unknown; kernel unknown; ranks 2; backend shm; MPI library unknown"},
        {"\"cores\": 2", "\"usable_cores\": 8, \"kernel\": \"6.8.0-1\"",
         "CPU c; usable cores 8; kernel 6; ranks 2; backend shm; MPI library unknown"},
        {"\"cflags\"", "\"features\": {\"mpi\": null}, \"cflags\"",
         "CPU c; usable cores unknown; kernel unknown; ranks 2; backend shm; MPI library none"},
        {"\"cflags\"", "\"features\": {\"mpi\": \"Open MPI 4\"}, \"cflags\"",
         "CPU c; usable cores unknown; kernel unknown; ranks 2; backend shm; "
         "MPI library Open MPI 4"},
        {"[{\"name\": \"h\"",
         "[{\"name\": \"a\", \"cpu\": \"d\"}, {\"name\": \"b\", \"cpu\": \"c\"}, {\"name\": \"h\"",
         "CPU 2 x c, 1 x d; usable cores 3 x unknown; kernel 3 x unknown; ranks 2; backend shm; "
         "MPI library unknown"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_result r;
        read_changed(cases[i].from, cases[i].to, &r);
        assert_string_equal(r.fingerprint, cases[i].fingerprint);
        ddp_result_release(&r);
    }
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_result_rules vary = {.vary = 1 << DDP_VARY_RANKS | 1 << DDP_VARY_BACKEND};
    struct ddp_result r = {.count = 0}, other;
    cJSON *doc;
    char text[256];
    assert_int_equal(ddp_json_parse(body, strlen(body), "x", &doc, &err), DDP_EINPUT);
    char whole[sizeof body + 1];
    snprintf(whole, sizeof whole, "%s}", body);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_json_parse(whole, strlen(whole), "x", &doc, &err), 0);
    assert_int_equal(ddp_result_read_machine(doc, "x", vary.vary, &r, &err), 0);
    cJSON_Delete(doc);
    assert_string_equal(r.fingerprint, "CPU c; usable cores unknown; kernel unknown");
    assert_string_equal(r.hosts, "h");
    other = r;
    snprintf(other.fact[DDP_FACT_RANKS], sizeof other.fact[0], "4");
    snprintf(other.fact[DDP_FACT_KERNEL], sizeof other.fact[0], "6");
    ddp_result_name_differences(&r, &other, 0, text, sizeof text);
    assert_string_equal(text, "kernel: 'unknown' and '6'; ranks: '2' and '4'");
    ddp_result_name_differences(&r, &other, vary.vary, text, sizeof text);
    assert_string_equal(text, "kernel: 'unknown' and '6'");
}

/* Fingerprints of many different hosts are cut, and stay different. */
static void test_many_hosts(void **state)
{
    char fingerprint[2][sizeof((struct ddp_result *)0)->fingerprint];
    for (int last = 0; last < 2; last++) {
        struct ddp_strbuf hosts = DDP_STRBUF_INIT;
        struct ddp_result r;
        ddp_strbuf_add(&hosts, "[");
        for (int i = 0; i < 50; i++)
            ddp_strbuf_addf(&hosts, "{\"name\": \"a\", \"cpu\": \"processor %02d\"}, ",
                            i < 49 ? i : i + last);
        ddp_strbuf_add(&hosts, "{\"name\": \"h\"");
        read_changed("[{\"name\": \"h\"", hosts.text, &r);
        memcpy(fingerprint[last], r.fingerprint, sizeof fingerprint[0]);
        ddp_result_release(&r);
        ddp_strbuf_release(&hosts);
    }
    assert_string_not_equal(fingerprint[0], fingerprint[1]);
}

/* A changed document is read only if the caller accepts it. */
static void test_edited(void **state)
{
    const struct ddp_result_rules accept = {.accept_edited = true};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_result r;
    size_t bytes;
    char *whole = with_digest(body, strlen(body), &bytes);
    assert_int_equal(ddp_result_parse(whole, bytes, "x.json", &accept, &r, &err), 0);
    assert_false(r.edited);
    ddp_result_release(&r);
    *strstr(whole, "abc") = 'x';
    assert_int_equal(ddp_result_parse(whole, bytes, "x.json", NULL, &r, &err), DDP_EINPUT);
    assert_true(text_names(err.hint, "--edited"));
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_result_parse(whole, bytes, "x.json", &accept, &r, &err), 0);
    assert_true(r.edited && r.count == 1);
    ddp_result_release(&r);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_flaws),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_run_names),
        cmocka_unit_test(test_paired_launches),
        cmocka_unit_test(test_flips_are_found),
        cmocka_unit_test(test_flips_with_a_right_digest),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_edited),
    };
    return cmocka_run_group_tests_name("result files", tests, NULL, NULL);
}
