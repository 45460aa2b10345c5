/* The journal: every appended entry can be read again, wherever the file ends. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "base/json.h"
#include "base/mem.h"
#include "journal_text.h"
#include "names.h"
#include "record/journal.h"
#include "record/noise.h"
#include "report_sample.h"

struct seen {
    int lines, points;
    struct ddp_point last;
    double first_sample;
};

static int see(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    struct seen *seen = arg;
    (void)err;
    seen->lines++;
    if (entry->kind != DDP_JOURNAL_POINT)
        return 0;
    seen->points++;
    memcpy(&seen->last, entry->payload, sizeof seen->last);
    if (seen->last.sample_count > 0)
        memcpy(&seen->first_sample, (const char *)entry->payload + sizeof seen->last,
               sizeof(double));
    return 0;
}

static void make_facts(struct ddp_journal_facts *facts, const char *commit)
{
    facts->count = 0;
    ddp_journal_fact(facts, "configuration", "%016x", 7);
    ddp_journal_fact(facts, "commit", "%s", commit);
    ddp_journal_fact(facts, "mpi", "%s", "");
}

static struct ddp_journal_entry make_entry(enum ddp_journal_kind kind, const void *payload,
                                           size_t bytes)
{
    struct ddp_journal_entry entry = {
        .kind = kind, .launch = 1, .cell = 3, .payload = payload, .payload_bytes = bytes};
    snprintf(entry.id, sizeof entry.id, "%s", "an/id");
    return entry;
}

/* A point followed by its samples in one block. */
struct sampled {
    struct ddp_point point;
    double samples[5];
};

static void make_point(struct sampled *s, int i)
{
    memset(s, 0, sizeof *s);
    ddp_point_init(&s->point);
    snprintf(s->point.algorithm_used, sizeof s->point.algorithm_used, "direct");
    snprintf(s->point.spec.backend, sizeof s->point.spec.backend, "shm");
    s->point.spec.ranks = 2;
    s->point.spec.size_bytes = s->point.spec.requested_bytes = (uint64_t)i * 8;
    s->point.time_ns.median = 0.1 * i;
    s->point.sample_count = 5;
    for (int k = 0; k < 5; k++)
        s->samples[k] = i + 0.5 * k;
}

static int open_journal(const char *commit, bool restart, struct seen *seen,
                        struct ddp_journal **out, bool *continued, struct ddp_err *err)
{
    struct ddp_journal_facts facts;
    make_facts(&facts, commit);
    *err = DDP_ERR_INIT;
    *seen = (struct seen){0};
    return ddp_journal_open("j", &facts, restart, see, seen, out, continued, err);
}

/* Writes a journal "j" with this number of points between a begin and an end. */
static void write_journal(int points)
{
    struct ddp_err err;
    struct ddp_journal *j;
    struct seen seen;
    bool continued;
    if (open_journal("abc", true, &seen, &j, &continued, &err) != 0)
        fail_msg("%s", err.text);
    assert_false(continued);
    struct ddp_journal_entry entry = make_entry(DDP_JOURNAL_BEGIN, NULL, 0);
    assert_int_equal(ddp_journal_append(j, &entry, &err), 0);
    for (int i = 1; i <= points; i++) {
        struct sampled s;
        make_point(&s, i);
        entry = make_entry(DDP_JOURNAL_POINT, &s, sizeof s);
        assert_int_equal(ddp_journal_append(j, &entry, &err), 0);
    }
    entry = make_entry(DDP_JOURNAL_END, NULL, 0);
    assert_int_equal(ddp_journal_append(j, &entry, &err), 0);
    ddp_journal_close(j);
}

static void test_round_trip(void **state)
{
    struct ddp_err err;
    struct ddp_journal *j;
    struct seen seen;
    struct sampled s;
    bool continued;
    write_journal(3);
    assert_int_equal(open_journal("abc", false, &seen, &j, &continued, &err), 0);
    assert_true(continued);
    assert_int_equal(seen.lines, 5);
    assert_int_equal(seen.points, 3);
    make_point(&s, 3);
    assert_memory_equal(&seen.last, &s.point, sizeof s.point); /* bit for bit, including NaNs */
    assert_true(seen.first_sample == s.samples[0]);
    /* and the journal can be continued */
    struct ddp_journal_entry entry = make_entry(DDP_JOURNAL_POINT, &s, sizeof s);
    assert_int_equal(ddp_journal_append(j, &entry, &err), 0);
    ddp_journal_close(j);
    assert_int_equal(open_journal("abc", false, &seen, &j, &continued, &err), 0);
    assert_int_equal(seen.points, 4);
    assert_int_equal(ddp_journal_remove(j, &err), 0);
    ddp_journal_close(j);
    assert_int_equal(entries(), 0);
}

static void test_other_facts(void **state)
{
    struct ddp_err err;
    struct ddp_journal *j;
    struct seen seen;
    bool continued;
    write_journal(1);
    assert_int_equal(open_journal("def", false, &seen, &j, &continued, &err), DDP_EMISMATCH);
    assert_true(text_names(err.text, "commit|'abc'|'def'"));
    assert_int_equal(seen.lines, 0);
    assert_int_equal(open_journal("def", true, &seen, &j, &continued, &err), 0);
    assert_false(continued);
    ddp_journal_close(j);
    assert_int_equal(open_journal("abc", false, &seen, &j, &continued, &err), DDP_EMISMATCH);
}

static void test_one_writer(void **state)
{
    struct ddp_err err;
    struct ddp_journal *j, *other;
    struct seen seen;
    bool continued;
    assert_int_equal(open_journal("abc", false, &seen, &j, &continued, &err), 0);
    assert_int_equal(open_journal("abc", false, &seen, &other, &continued, &err), DDP_ECREATE);
    assert_true(text_names(err.text, "'"));
    ddp_journal_close(j);
}

static void put(const char *text, size_t bytes)
{
    FILE *f = fopen("j", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    fclose(f);
}

/* A file that is not a journal is neither continued nor overwritten. */
static void test_other_files(void **state)
{
    static const char *const texts[] = {"hello", "hello\n", "{\"journal\": 3}\n", "{}\n",
                                        "{\"journal\": \"ddpbench-journal/2\"}\n"};
    struct ddp_err err;
    struct ddp_journal *j;
    struct seen seen;
    bool continued;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t bytes;
        put(texts[i], strlen(texts[i]));
        assert_int_equal(open_journal("abc", false, &seen, &j, &continued, &err), DDP_EINPUT);
        if (i < 4)
            assert_int_equal(open_journal("abc", true, &seen, &j, &continued, &err), DDP_EINPUT);
        char *text = slurp("j", &bytes);
        assert_string_equal(text, texts[i]);
        free(text);
    }
    assert_int_equal(unlink("j"), 0);
    assert_int_equal(mkdir("j", 0755), 0);
    assert_int_equal(open_journal("abc", false, &seen, &j, &continued, &err), DDP_ECREATE);
}

/* A file cut at any byte still has the whole lines before the cut and can be continued. */
static void test_cut_anywhere(void **state)
{
    struct ddp_err err;
    size_t bytes;
    write_journal(2);
    char *text = slurp("j", &bytes);
    for (size_t cut = 0; cut <= bytes; cut++) {
        struct ddp_journal *j;
        struct seen seen;
        struct sampled s;
        struct stat st;
        bool continued;
        int lines = 0;
        for (size_t i = 0; i < cut; i++)
            lines += text[i] == '\n';
        put(text, cut);
        if (open_journal("abc", false, &seen, &j, &continued, &err) != 0)
            fail_msg("cut at %zu: %s", cut, err.text);
        assert_int_equal(continued, lines > 0);
        assert_int_equal(seen.lines, lines > 0 ? lines - 1 : 0);
        make_point(&s, 9);
        struct ddp_journal_entry entry = make_entry(DDP_JOURNAL_POINT, &s, sizeof s);
        if (cut % 16 == 0) { /* a sync is slow, so only some cuts are continued */
            assert_int_equal(ddp_journal_append(j, &entry, &err), 0);
            ddp_journal_close(j);
            assert_int_equal(open_journal("abc", false, &seen, &j, &continued, &err), 0);
            assert_int_equal(seen.lines, lines > 0 ? lines : 1);
            assert_true(seen.last.time_ns.median == s.point.time_ns.median);
        }
        ddp_journal_close(j);
        assert_int_equal(stat("j", &st), 0);
    }
    free(text);
}

/* If any byte is changed, the error names its line, and the line is not used. */
static void test_flipped(void **state)
{
    struct ddp_err err;
    struct ddp_journal_facts facts;
    size_t bytes, whole;
    write_journal(1);
    char *text = slurp("j", &bytes);
    /* a missing last newline counts as a cut and not as damage */
    for (size_t i = 0; i + 1 < bytes; i++) {
        struct seen seen = {0};
        const char kept = text[i];
        text[i] ^= 1 << (i % 7);
        err = DDP_ERR_INIT;
        int rc = ddp_journal_parse(text, bytes, "j", &facts, see, &seen, &whole, &err);
        if (rc != DDP_EINPUT)
            fail_msg("byte %zu, '%c' as '%c': %d", i, kept, text[i], rc);
        text[i] = kept;
    }
    char *third = strchr(strchr(text, '\n') + 1, '\n') + 20;
    *third ^= 1;
    err = DDP_ERR_INIT;
    struct seen seen = {0};
    assert_int_equal(ddp_journal_parse(text, bytes, "j", &facts, see, &seen, &whole, &err),
                     DDP_EINPUT);
    assert_true(text_names(err.text, "3"));
    free(text);
}

static size_t line_at(const char *text, int line)
{
    const char *at = text;
    for (int i = 0; i < line; i++)
        at = strchr(at, '\n') + 1;
    return (size_t)(at - text);
}

/* Refuses the text without line `line`, with the line twice, and with it after the next line.
 * All are damage at that place. */
static void refuse_edits(const char *text, size_t bytes, int line)
{
    const size_t begin = line_at(text, line), end = line_at(text, line + 1);
    const size_t next = line_at(text, line + 2);
    const struct {
        size_t part[3][2];
    } edits[] = {
        {{{0, begin}, {end, bytes}}},
        {{{0, end}, {begin, bytes}}},
        {{{0, begin}, {end, next}, {begin, end}}},
    };
    char *edited = malloc(2 * bytes);
    assert_non_null(edited);
    for (size_t i = 0; i < DDP_COUNT_OF(edits); i++) {
        struct ddp_journal_facts facts;
        struct seen seen = {0};
        struct ddp_err err = DDP_ERR_INIT;
        size_t n = 0, whole;
        for (int part = 0; part < 3; part++) {
            const size_t *p = edits[i].part[part];
            memcpy(edited + n, text + p[0], p[1] - p[0]);
            n += p[1] - p[0];
        }
        assert_int_equal(ddp_journal_parse(edited, n, "j", &facts, see, &seen, &whole, &err),
                         DDP_EINPUT);
        assert_int_equal(seen.lines, i == 1 ? line : line - 1);
    }
    free(edited);
}

/* A journal whose lines are valid, but one line is missing, repeated or moved. */
static void test_edited(void **state)
{
    size_t bytes;
    write_journal(3);
    char *text = slurp("j", &bytes);
    for (int line = 1; line_at(text, line + 1) < bytes; line++)
        refuse_edits(text, bytes, line);
    free(text);
}

/* Keeps the payload of the last entry. */
struct kept {
    void *payload;
    size_t bytes;
};

static int keep(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    struct kept *kept = arg;
    (void)err;
    if (entry->payload_bytes == 0)
        return 0;
    free(kept->payload);
    kept->payload = malloc(entry->payload_bytes);
    kept->bytes = entry->payload_bytes;
    assert_non_null(kept->payload);
    memcpy(kept->payload, entry->payload, kept->bytes);
    return 0;
}

/* Writes a journal with one entry and returns its text. */
static char *journal_of(enum ddp_journal_kind kind, const void *payload, size_t bytes)
{
    struct ddp_err err;
    struct ddp_journal *j;
    struct seen seen;
    size_t size;
    bool continued;
    assert_int_equal(open_journal("abc", true, &seen, &j, &continued, &err), 0);
    const struct ddp_journal_entry entry = make_entry(kind, payload, bytes);
    assert_int_equal(ddp_journal_append(j, &entry, &err), 0);
    ddp_journal_close(j);
    return slurp("j", &size);
}

static int parse_text(const char *text, struct kept *kept)
{
    struct ddp_journal_facts facts;
    struct ddp_err err = DDP_ERR_INIT;
    size_t whole;
    const int rc = ddp_journal_parse(text, strlen(text), "j", &facts, keep, kept, &whole, &err);
    assert_true(rc == 0 || text_names(err.text, "line 2"));
    return rc;
}

/* Parses the text with the first `from` replaced and all checks right. */
static int parse_edited(const char *text, const char *from, const char *to, struct kept *kept)
{
    const char *at = strstr(text, from);
    char edited[16384];
    if (!at)
        fail_msg("'%s' is not in %s", from, text);
    const int n =
        snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_true(n > 0 && (size_t)n < sizeof edited);
    repair_journal(edited, (size_t)n);
    return parse_text(edited, kept);
}

static void test_hostile_points(void **state)
{
    static const struct {
        const char *from, *to;
    } edits[] = {
        {"\"line\": 2", "\"line\": 3"},
        {"\"line\": 2, ", ""},
        {"\"cell\": 3", "\"cell\": -3"},
        {"\"kind\": \"point\"", "\"kind\": \"gate\""},
        {"\"kind\": \"point\"", "\"kind\": \"begin\""},
        {"\"spec.coll\": \"allreduce\"", "\"spec.coll\": \"nothing\""},
        {"\"spec.coll\": \"allreduce\"", "\"spec.coll\": 0"},
        {"\"spec.dtype\": \"f32\"", "\"spec.dtype\": \"f33\""},
        {"\"spec.op\": \"sum\"", "\"spec.op\": null"},
        {"\"stop\": \"count\"", "\"stop\": \"never\""},
        {"\"spec.ranks\": 2", "\"spec.ranks\": 0"},
        {"\"spec.ranks\": 2", "\"spec.ranks\": -5"},
        {"\"spec.ranks\": 2", "\"spec.ranks\": 1e300"},
        {"\"spec.ranks\": 2", "\"spec.ranks\": 2.5"},
        {"\"spec.ranks\": 2", "\"spec.ranks\": null"},
        {"\"place\": 0", "\"place\": -1"},
        {"\"place\": 0", "\"place\": 4294967296"},
        {"\"place\": 0, ", ""},
        {"\"place\": 0", "\"place\": 0, \"more\": 0"},
        {"\"spec.backend\": \"shm\"", "\"spec.backend\": \"xxxxxxxxxxxxxxxx\""},
        {"\"algorithm_used\": \"direct\"", "\"algorithm_used\": \"<b>\""},
        {"\"wire_counted\": false", "\"wire_counted\": 2"},
        {"\"spec.size_bytes\": 8", "\"spec.size_bytes\": 18446744073709551615"},
        {"\"time_ns.median\": 0.1", "\"time_ns.median\": \"0.1\""},
        {"\"time_ns.ci95_lo\": null", "\"time_ns.ci95_lo\": [1]"},
        {"\"values\": [", "\"values\": [true, "},
        {"\"values\": [", "\"value\": ["},
        {"1.5, 2, ", "1.5, {}, "},
        {"\"values\": [", "\"ids\": [\"a\"], \"values\": ["},
    };
    struct kept kept = {NULL, 0};
    struct sampled s;
    make_point(&s, 1);
    char *text = journal_of(DDP_JOURNAL_POINT, &s, sizeof s);
    assert_int_equal(parse_edited(text, "\"line\"", "\"line\"", &kept), 0);
    for (size_t i = 0; i < DDP_COUNT_OF(edits); i++)
        if (parse_edited(text, edits[i].from, edits[i].to, &kept) != DDP_EINPUT)
            fail_msg("accepts %s as %s", edits[i].from, edits[i].to);
    free(kept.payload);
    free(text);
}

/* Texts are made printable when they are read. */
static void test_hostile_texts(void **state)
{
    struct kept kept = {NULL, 0};
    struct sampled s;
    make_point(&s, 1);
    char *text = journal_of(DDP_JOURNAL_POINT, &s, sizeof s);
    assert_int_equal(parse_edited(text, "\"direct\"", "\"a\\u001b[31m\\n\"", &kept), 0);
    assert_string_equal(((struct ddp_point *)kept.payload)->algorithm_used, "a?[31m?");
    free(kept.payload);
    free(text);
}

/* The folder of a data set may have any name, so quotes and markup are kept. */
static void test_data_path(void **state)
{
    static const char path[] = "/data/it's \"mine\" & <yours> | `pwd`";
    struct kept kept = {NULL, 0};
    struct ddp_train_run run;
    ddp_train_run_init(&run);
    run.ranks = 2;
    snprintf(run.data_path, sizeof run.data_path, "%s", path);
    char *text = journal_of(DDP_JOURNAL_TRAIN, &run, sizeof run);
    assert_int_equal(parse_text(text, &kept), 0);
    assert_string_equal(((struct ddp_train_run *)kept.payload)->data_path, path);
    free(kept.payload);
    free(text);
}

/* Every struct is read back bit for bit. */
static void test_structs(void **state)
{
    struct gate {
        struct ddp_noise_gate head;
        double values[2 * 2 * (1 + 2)];
        char id[DDP_NOISE_ID_BYTES];
    } gate = {.head = {3, -1, 2, 1, 0, 4, 5}, .values = {0.1, 1e-300, NAN, 5}, .id = "a/b"};
    struct ddp_train_run run;
    struct ddp_epoch epoch;
    struct ddp_control control = {.ranks = 2, .bytes_per_rank = INT64_C(1) << 40, .copy_GBps = 0.3};
    struct ddp_left_out left_out = {"broadcast: algorithm 'flat'", 2, 3, "17 bytes"};
    ddp_train_run_init(&run);
    run.ranks = 1;
    run.lr = 1.0 / 3;
    run.seed = (UINT64_C(1) << 53) - 1;
    run.data_hash = UINT64_MAX - 1;
    run.tf32 = true;
    ddp_epoch_init(&epoch);
    epoch.epoch = 7;
    epoch.parameter_hash = UINT64_C(0xfedcba9876543210);
    epoch.seconds = 1e-9 / 7;
    const struct {
        enum ddp_journal_kind kind;
        const void *payload;
        size_t bytes;
    } entries[] = {{DDP_JOURNAL_GATE, &gate, sizeof gate},
                   {DDP_JOURNAL_TRAIN, &run, sizeof run},
                   {DDP_JOURNAL_TRAIN_END, &run, sizeof run},
                   {DDP_JOURNAL_EPOCH, &epoch, sizeof epoch},
                   {DDP_JOURNAL_CONTROL, &control, sizeof control},
                   {DDP_JOURNAL_LEFT_OUT, &left_out, sizeof left_out}};
    assert_int_equal(sizeof gate, ddp_noise_gate_bytes(&gate.head));
    for (size_t i = 0; i < DDP_COUNT_OF(entries); i++) {
        struct kept kept = {NULL, 0};
        char *text = journal_of(entries[i].kind, entries[i].payload, entries[i].bytes);
        assert_int_equal(parse_text(text, &kept), 0);
        assert_int_equal(kept.bytes, entries[i].bytes);
        assert_memory_equal(kept.payload, entries[i].payload, kept.bytes);
        free(kept.payload);
        free(text);
    }
}

static void test_hostile_gates(void **state)
{
    static const struct {
        const char *from, *to;
    } edits[] = {
        {"\"index\": 3", "\"index\": -1"},
        {"\"injected\": 0", "\"injected\": 1"},
        {"\"injected\": 0", "\"injected\": -2"},
        {"\"pairs\": 1", "\"pairs\": 0"},
        {"\"pairs\": 1", "\"pairs\": 2"},
        {"\"pairs\": 1", "\"pairs\": 1000"},
        {"\"cells\": 1", "\"cells\": 0"},
        {"\"cells\": 1", "\"cells\": 2147483647"},
        {"\"rerun\": 0", "\"rerun\": -1"},
        {"\"took_ms\": 0", "\"took_ms\": -1"},
        {"\"ids\": [\"a\"]", "\"ids\": []"},
        {"\"ids\": [\"a\"]", "\"ids\": [7]"},
        {"\"ids\": [\"a\"]", "\"idx\": [\"a\"]"},
        {"\"ids\": [\"a\"]", "\"ids\": [\"a\"], \"more\": 1"},
    };
    struct gate {
        struct ddp_noise_gate head;
        double values[2 * (1 + 2)];
        char id[DDP_NOISE_ID_BYTES];
    } gate = {.head = {3, 0, 1, 1, 0, 0, 0}, .id = "a"};
    struct kept kept = {NULL, 0};
    char *text = journal_of(DDP_JOURNAL_GATE, &gate, sizeof gate);
    assert_int_equal(parse_text(text, &kept), 0);
    for (size_t i = 0; i < DDP_COUNT_OF(edits); i++)
        if (parse_edited(text, edits[i].from, edits[i].to, &kept) != DDP_EINPUT)
            fail_msg("accepts %s as %s", edits[i].from, edits[i].to);
    free(kept.payload);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_round_trip),  IN_FOLDER(test_other_facts),    IN_FOLDER(test_one_writer),
        IN_FOLDER(test_other_files), IN_FOLDER(test_cut_anywhere),   IN_FOLDER(test_flipped),
        IN_FOLDER(test_edited),      IN_FOLDER(test_hostile_points), IN_FOLDER(test_hostile_texts),
        IN_FOLDER(test_data_path),   IN_FOLDER(test_structs),        IN_FOLDER(test_hostile_gates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
