/* Prints a record of hostile texts with every reporter. No text may become a line, a cell, an
 * element, a formula, an escape code or a command. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/mem.h"
#include "record/verdict_record.h"
#include "report_sample.h"

/* Its first line break, the only unescaped one, is followed by BREAK. */
#define HOSTILE                                                                                    \
    "=cmd|'/C calc'!A0,\"`<b></script>]]>&%0A\033[35m\nBREAK::error::x\r\nBREAK\x7f\xc2\x9b\xff;"  \
    "`![i](e)@all"

static void fill(char *field, size_t bytes)
{
    snprintf(field, bytes, "%s", HOSTILE);
}
#define FILL(field) fill(field, sizeof(field))
/* the text as it is stored in the field */
#define CLEAN(field) ddp_printable(HOSTILE, field, sizeof(field))

/* Fills a short field with a name that contains a line break. It contains no markup, because
 * command lines and journals reject markup in names. */
static void fill_short(char *field, size_t bytes)
{
    snprintf(field, bytes, "=a\n%s", bytes > 12 ? "BREAK,;x" : "B;");
}
#define FILL_SHORT(field) fill_short(field, sizeof(field))

static char argument[] = HOSTILE;
static char *hostile_argv[] = {argument, argument};

static void make_hostile_hosts(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_host host;
    memset(&host, 0, sizeof host);
    FILL(host.name);
    FILL(host.cpu);
    FILL(host.kernel);
    FILL(host.governor);
    host.ranks = host.cores = 2;
    host.memory_bytes = 1 << 30;
    assert_int_equal(ddp_record_add_host(r, &host, &err), 0);
    free(r->environment);
    r->environment = calloc(1, sizeof *r->environment);
    assert_non_null(r->environment);
    r->environment_count = 1;
    strcpy(r->environment->key, "OMP_X");
    FILL(r->environment->value);
}

static void make_hostile_points(struct ddp_record *r)
{
    static const char *const compress[] = {"none", "topk:0.1"};
    struct ddp_err err = DDP_ERR_INIT;
    for (int i = 0; i < 4; i++) {
        struct ddp_point p;
        ddp_point_init(&p);
        p.spec.ranks = 2;
        p.spec.requested_bytes = p.spec.size_bytes = 64u << i;
        p.spec.count = 16u << i;
        p.spec.placement = i % 2 ? DDP_OUT_OF_PLACE : DDP_IN_PLACE;
        FILL_SHORT(p.spec.backend);
        FILL_SHORT(p.spec.algorithm);
        FILL_SHORT(p.algorithm_used);
        FILL_SHORT(p.feedback);
        FILL_SHORT(p.bound_kind);
        FILL_SHORT(p.dense_algorithm[DDP_BASELINE_F32]);
        FILL_SHORT(p.dense_algorithm[DDP_BASELINE_F16]);
        snprintf(p.spec.compress, sizeof p.spec.compress, "%s", compress[i / 2]);
        p.iterations = 10;
        p.time_ns = (struct ddp_summary){10, 100, 90, 110, 100, 1, 80, 95, 105, 120, 120, 120};
        p.check_elements = 4;
        p.check_wrong = i == 3;
        assert_int_equal(ddp_record_add_point(r, &p, NULL, &err), 0);
    }
}

static void make_hostile_runs(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    for (int i = 0; i < 3; i++) {
        struct ddp_train_run t;
        struct ddp_epoch e;
        ddp_train_run_init(&t);
        FILL_SHORT(t.model);
        FILL_SHORT(t.dataset);
        FILL_SHORT(t.optimizer);
        FILL_SHORT(t.sync);
        FILL_SHORT(t.init);
        FILL_SHORT(t.init_sync);
        FILL_SHORT(t.partition);
        FILL(t.blas);
        FILL(t.data_path);
        t.data_path[1] = (char)('a' + i);
        FILL_SHORT(t.feedback);
        FILL_SHORT(t.aggregate);
        FILL_SHORT(t.algorithm);
        t.sync[1] = i > 0 ? 'b' : 'a'; /* The last two differ in the path of their data. */
        t.ranks = 2;
        t.total_seconds = 1;
        assert_int_equal(ddp_record_add_train(r, &t, &err), 0);
        ddp_epoch_init(&e);
        e.epoch = 1;
        e.seconds = e.eval_accuracy = 0.5;
        e.steps = 1;
        assert_int_equal(ddp_record_add_epoch(r, &e, &err), 0);
    }
}

static void make_hostile(struct ddp_record *r, struct ddp_verdict_record *v,
                         struct ddp_verdict_cell *cell)
{
    make_record(r);
    r->argc = 2;
    r->argv = hostile_argv;
    FILL(r->reason);
    CLEAN(r->label);
    CLEAN(r->note);
    CLEAN(r->feature_mpi);
    CLEAN(r->feature_blas);
    make_hostile_hosts(r);
    make_hostile_points(r);
    make_hostile_runs(r);
    memset(v, 0, sizeof *v);
    memset(cell, 0, sizeof *cell);
    FILL(cell->id);
    cell->cell.state = DDP_CELL_SLOWER;
    v->kind = DDP_BY_GATE;
    v->outcome = DDP_VERDICT_FAIL;
    FILL(v->reason);
    FILL(v->base_command);
    FILL(v->next_command);
    FILL(v->base_build);
    FILL(v->next_build);
    FILL(v->fingerprint);
    FILL(v->effect_from);
    v->cells = cell;
    v->count = 1;
}

static void make_hostile_selftest(struct ddp_verdict_record *v, struct ddp_noise *noise)
{
    memset(noise, 0, sizeof *noise);
    FILL(noise->command);
    FILL(noise->measured);
    FILL(noise->machine.cpu);
    FILL(noise->machine.kernel);
    FILL(noise->machine.build);
    v->kind = DDP_BY_SELFTEST;
    v->noise = noise;
    v->count = 0;
}

/* Removes the escape codes that the table itself uses, as report.c does without colour. */
static void remove_colors(char *text)
{
    static const char *const codes[] = {"\033[2m", "\033[1m", "\033[31m", "\033[0m"};
    for (size_t i = 0; i < DDP_COUNT_OF(codes); i++)
        for (char *at; (at = strstr(text, codes[i]));)
            memmove(at, at + strlen(codes[i]), strlen(at + strlen(codes[i])) + 1);
}

/* Returns everything that a reporter prints about r. */
static char *say(const struct ddp_reporter *reporter, const struct ddp_record *r)
{
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    struct ddp_err err = DDP_ERR_INIT;
    if (reporter->document)
        assert_int_equal(reporter->render(r, &out, &err), 0);
    if (reporter->begin)
        reporter->begin(r, &out);
    for (int i = 0; reporter->point && i < r->point_count; i++)
        reporter->point(r, i, &out);
    for (int i = 0; reporter->epoch && i < r->train_count; i++)
        reporter->epoch(r, i, 0, &out);
    if (reporter->end)
        reporter->end(r, &out);
    assert_false(out.failed);
    remove_colors(out.text);
    return out.text;
}

static bool is(const struct ddp_reporter *reporter, const char *name)
{
    return strcmp(reporter->name, name) == 0;
}

/* Checks the rules of every format: no control character except the format's own line ends, no
 * line made by a hostile text, and nothing that ends a script or a CDATA section. */
static void check_any(const struct ddp_reporter *reporter, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool line_end = *c == '\n' || (*c == '\r' && c[1] == '\n' && is(reporter, "csv"));
        if ((*c < 0x20 && !line_end) || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0) || *c == 0xff)
            fail_msg("%s: byte 0x%02x after '%.40s'", reporter->name, *c,
                     (const char *)c - (c - (const unsigned char *)text > 40
                                            ? 40
                                            : c - (const unsigned char *)text));
    }
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, "BREAK", 5) == 0 || strncmp(line, "B;", 2) == 0)
            fail_msg("%s: a line that is not its own: %.60s", reporter->name, line);
    bool plain = is(reporter, "table") || is(reporter, "csv") || is(reporter, "osu") ||
                 is(reporter, "nccl-tests") || is(reporter, "github");
    if (!plain && strstr(text, "</script>"))
        fail_msg("%s: ends a script", reporter->name);
}

static void check_json(const char *name, const char *text, size_t bytes)
{
    struct ddp_err err = DDP_ERR_INIT;
    cJSON *doc;
    if (ddp_json_parse(text, bytes, name, &doc, &err) != 0)
        fail_msg("%s", err.text);
    cJSON_Delete(doc);
}

static void check_lines(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        check_json("jsonl", text, (size_t)(end - text));
    assert_int_equal(*text, '\0');
}

/* Counts the cells of each row, with regard to quotes. No cell is a formula. */
static void check_csv(const char *text)
{
    int cells = 1, head = 0, rows = 0;
    bool quoted = false, first = true;
    for (const char *c = text; *c; c++) {
        if (first && *c != '"' && strchr("=+@", *c))
            fail_msg("csv: a formula: %.40s", c);
        if (first && *c == '"' && strchr("=+-@", c[1]))
            fail_msg("csv: a formula: %.40s", c);
        first = false;
        quoted ^= *c == '"';
        if (quoted)
            continue;
        if (*c == ',') {
            cells++;
            first = true;
        } else if (*c == '\n') {
            head = head ? head : cells;
            assert_int_equal(cells, head);
            cells = 1;
            first = true;
            rows++;
        }
    }
    assert_false(quoted);
    assert_int_equal(rows, 11); /* 1 heading, 4 points, 3 epochs and 3 comparisons */
}

/* Counts the elements: exactly those that the reporter wrote. No text outside of them may be
 * markup. */
static void check_xml(const char *text)
{
    assert_null(strstr(text, "<b>"));
    assert_null(strstr(text, "]]>"));
    int opened = 0, quotes = 0;
    for (const char *c = text; *c; c++) {
        opened += *c == '<';
        opened -= *c == '>' && quotes % 2 == 0;
        quotes += *c == '"' && opened > 0;
        assert_true(opened == 0 || opened == 1);
        if (*c == '&')
            assert_true(strncmp(c, "&amp;", 5) == 0 || strncmp(c, "&lt;", 4) == 0 ||
                        strncmp(c, "&gt;", 4) == 0 || strncmp(c, "&quot;", 6) == 0);
    }
    assert_int_equal(opened, 0);
}

/* No link, image or mention outside of code spans. */
static void check_markup(const char *text)
{
    size_t code = 0; /* number of backticks that began the code span, 0: no span */
    for (const char *c = text; *c; c++) {
        const size_t ticks = strspn(c, "`");
        if (ticks > 0) {
            code = code == 0 ? ticks : code == ticks ? 0 : code;
            c += ticks - 1;
            continue;
        }
        if (*c == '\n' && code > 0)
            fail_msg("markdown: a code span that goes on: %.60s", c);
        if (code == 0 && strchr("[]!@", *c))
            fail_msg("markdown: '%.60s'", c);
    }
}

/* Fails unless every tag is one of a section that a reader can unfold. */
static void check_tags(const char *text)
{
    static const char *const tags[] = {"<details>", "<summary>", "</summary>", "</details>"};
    for (const char *tag = strchr(text, '<'); tag; tag = strchr(tag + 1, '<')) {
        bool known = false;
        for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
            known |= strncmp(tag, tags[i], strlen(tags[i])) == 0;
        if (!known)
            fail_msg("markdown: '%.60s'", tag);
    }
}

/* Table rows have as many cells as their head, and no text is HTML. */
static void check_markdown(const char *text)
{
    int head = 0;
    check_markup(text);
    check_tags(text);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        int bars = 0;
        for (const char *c = line; *c != '\n'; c++)
            bars += *c == '|' && (c == line || c[-1] != '\\');
        if (line[0] != '|')
            head = 0;
        else if (head == 0)
            head = bars;
        else
            assert_int_equal(bars, head);
    }
}

static void check_github(const char *text)
{
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        assert_true(strncmp(line, "::error title=ddpbench ", 23) == 0 ||
                    strncmp(line, "::warning title=ddpbench ", 25) == 0 ||
                    strncmp(line, "::notice title=ddpbench ", 24) == 0);
}

static void test_every_reporter(void **state)
{
    struct ddp_record r;
    struct ddp_verdict_record verdict;
    struct ddp_verdict_cell cell;
    struct ddp_noise noise;
    make_hostile(&r, &verdict, &cell);
    /* without a verdict, with a gate's verdict, with a self-test's verdict */
    for (int round = 0; round < 3; round++) {
        r.verdict = round > 0 ? &verdict : NULL;
        if (round == 2)
            make_hostile_selftest(&verdict, &noise);
        for (const struct ddp_reporter *const *p = ddp_reporter_all(); *p; p++) {
            char *text = say(*p, &r);
            check_any(*p, text);
            if (is(*p, "json") || is(*p, "gbench") || is(*p, "action-smaller") ||
                is(*p, "action-bigger"))
                check_json((*p)->name, text, strlen(text));
            else if (is(*p, "jsonl"))
                check_lines(text);
            else if (is(*p, "csv"))
                check_csv(text);
            else if (is(*p, "junit"))
                check_xml(text);
            else if (is(*p, "markdown"))
                check_markdown(text);
            else if (is(*p, "github"))
                check_github(text);
            else
                assert_true(is(*p, "table") || is(*p, "osu") || is(*p, "nccl-tests"));
            free(text);
        }
    }
    r.verdict = NULL;
    ddp_record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_reporter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
