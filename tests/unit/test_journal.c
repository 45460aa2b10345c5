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
#include "names.h"
#include "record/journal_line.h"
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

/* A point with a field out of its range and a valid checksum must be refused. */
static void refuse_point(const struct sampled *s, size_t bytes)
{
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_journal_entry entry = make_entry(DDP_JOURNAL_POINT, s, bytes);
    void *payload;
    uint64_t print_chain = DDP_FNV_INIT, chain = DDP_FNV_INIT;
    assert_int_equal(ddp_journal_print(&entry, &print_chain, &line, &err), 0);
    const struct ddp_journal_line read = {line.text, line.length - 1, "line"};
    assert_int_equal(ddp_journal_read(&read, &chain, &entry, &payload, &err), DDP_EINPUT);
    ddp_strbuf_release(&line);
}

static void test_hostile_points(void **state)
{
    struct sampled good, s;
    make_point(&good, 1);
    refuse_point(&good, sizeof good - 1);
    refuse_point(&good, sizeof good.point);
    refuse_point(&good, 8);
#define REFUSE(change)                                                                             \
    s = good;                                                                                      \
    change;                                                                                        \
    refuse_point(&s, sizeof s)
    REFUSE(s.point.sample_count = -1);
    REFUSE(s.point.sample_count = INT64_MAX);
    REFUSE(s.point.spec.coll = (enum ddp_coll)99);
    REFUSE(s.point.spec.coll = (enum ddp_coll) - 1);
    REFUSE(s.point.spec.dtype = DDP_DTYPE_COUNT);
    REFUSE(s.point.spec.op = DDP_OP_COUNT);
    REFUSE(s.point.stop = (enum ddp_stop)77);
    REFUSE(s.point.spec.ranks = 0);
    REFUSE(s.point.spec.ranks = -5);
    REFUSE(s.point.place = -1);
    REFUSE(memset(s.point.spec.backend, 'x', sizeof s.point.spec.backend));
    REFUSE(snprintf(s.point.algorithm_used, 8, "<b>"));
    REFUSE(memset(&s.point.wire_counted, 2, 1));
    REFUSE(memset(&s.point.series.drifting, 0x80, 1));
    REFUSE(s.point.spec.size_bytes = UINT64_MAX);
#undef REFUSE
}

/* Texts are made printable when they are read. */
static void test_hostile_texts(void **state)
{
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    struct ddp_err err = DDP_ERR_INIT;
    struct sampled s;
    void *payload;
    make_point(&s, 1);
    snprintf(s.point.algorithm_used, sizeof s.point.algorithm_used, "a\033[31m\n\xff");
    struct ddp_journal_entry entry = make_entry(DDP_JOURNAL_POINT, &s, sizeof s);
    uint64_t print_chain = DDP_FNV_INIT, chain = DDP_FNV_INIT;
    assert_int_equal(ddp_journal_print(&entry, &print_chain, &line, &err), 0);
    const struct ddp_journal_line read = {line.text, line.length - 1, "line"};
    assert_int_equal(ddp_journal_read(&read, &chain, &entry, &payload, &err), 0);
    assert_string_equal(((struct ddp_point *)payload)->algorithm_used, "a?[31m??");
    free(payload);
    ddp_strbuf_release(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_round_trip),
        IN_FOLDER(test_other_facts),
        IN_FOLDER(test_one_writer),
        IN_FOLDER(test_other_files),
        IN_FOLDER(test_cut_anywhere),
        IN_FOLDER(test_flipped),
        IN_FOLDER(test_edited),
        cmocka_unit_test(test_hostile_points),
        cmocka_unit_test(test_hostile_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
