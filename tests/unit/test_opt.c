/* Options: every kind, every way to write one, every error, and the help. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/dtype.h"
#include "base/mem.h"
#include "base/opt.h"
#include "names.h"

struct innermost {
    bool unused;
    int64_t depth;
};
struct inner {
    bool unused, wet;
    struct innermost innermost;
};
struct values {
    bool quiet, verbose;
    int64_t iters, seed;
    double lr;
    uint64_t max_bytes;
    const char *json;
    int memory;
    struct ddp_int_list ranks, dtypes;
    struct ddp_size_list sizes;
    struct ddp_string_list algorithms;
    struct inner inner;
    bool last;
};

static const char *const memory_names[] = {"registered", "private", NULL};
static const char *dtype_choice(int i)
{
    return ddp_dtype_names[i];
}

#define AT(member) offsetof(struct values, member)
static const struct ddp_opt innermost_rows[] = {
    DDP_OPT(INT, "depth", 'D', offsetof(struct innermost, depth), "N", "3", "how deep"),
    DDP_OPT_END,
};
static const struct ddp_opt inner_rows[] = {
    DDP_OPT_HEADING("Inner"),
    DDP_OPT(FLAG, "wet", 'w', offsetof(struct inner, wet), NULL, NULL, "with water"),
    DDP_OPT_INCLUDE(innermost_rows, offsetof(struct inner, innermost)),
    DDP_OPT_END,
};
static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "quiet", 'q', AT(quiet), NULL, NULL, "errors only"),
    DDP_OPT(FLAG, "verbose", 'v', AT(verbose), NULL, NULL, "more"),
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(INT, "iters", 'n', AT(iters), "N", "20", "timed iterations a point", .min = 1,
            .max = 1e6),
    DDP_OPT_HEADING("Options"),
    DDP_OPT(INT, "seed", 0, AT(seed), "N", "1", "of everything random", .max = 0x1p53 - 1),
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(DOUBLE, "lr", 0, AT(lr), "F", "0.5", "learning rate"),
    DDP_OPT(SIZE, "max-bytes", 'e', AT(max_bytes), "S", "64M", "largest size", .min = 4,
            .max = 0x1p40),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(STRING, "json", 0, AT(json), "FILE", NULL, "as JSON"),
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(ENUM, "memory", 0, AT(memory), "WHERE", "private", "of the buffers",
            .choices = memory_names),
    DDP_OPT(INT_LIST, "ranks", 0, AT(ranks), "N[,N...]", NULL, "rank counts", .min = 1, .max = 256),
    DDP_OPT(ENUM_LIST, "dtype", 'd', AT(dtypes), "T[,T...]", "f32", "element types",
            .choice = dtype_choice, .spelling = ddp_dtype_parse),
    DDP_OPT(SIZE_LIST, "size", 0, AT(sizes), "S[,S...]", NULL, "exact message sizes"),
    DDP_OPT(STRING_LIST, "algorithm", 0, AT(algorithms), "NAME[,NAME]", "auto", "how"),
    DDP_OPT_INCLUDE(inner_rows, AT(inner)),
    DDP_OPT(FLAG, "last", 'l', AT(last), NULL, NULL, "the last one"),
    DDP_OPT_END,
};

/* Parses a command line given as one string, split at blanks. "''" is the empty argument. */
static int parse(const char *line, struct values *v, struct ddp_opt_result *r, struct ddp_err *err)
{
    static char storage[8][1024];
    static int turn;
    char *copy = storage[turn++ % 8];
    char *argv[64] = {(char[]){"command"}};
    int argc = 1;
    snprintf(copy, sizeof storage[0], "%s", line);
    *err = DDP_ERR_INIT;
    memset(v, 0, sizeof *v);
    assert_int_equal(ddp_opt_defaults(rows, v, err), 0);
    for (char *save = NULL, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = strcmp(w, "''") == 0 ? w + 2 : w;
    return ddp_opt_parse(rows, argc, argv, v, r, err);
}

static void accepted(const char *line, struct values *v, struct ddp_opt_result *r)
{
    struct ddp_err err;
    if (parse(line, v, r, &err) != 0)
        fail_msg("%s: %s", line, err.text);
}

static void test_defaults(void **state)
{
    struct values v;
    struct ddp_opt_result r;
    accepted("", &v, &r);
    assert_int_equal(v.iters, 20);
    assert_true(v.lr == 0.5);
    assert_int_equal(v.max_bytes, 64 << 20);
    assert_null(v.json);
    assert_int_equal(v.memory, 1);
    assert_int_equal(v.ranks.n, 0);
    assert_int_equal(v.dtypes.n, 1);
    assert_int_equal(v.dtypes.v[0], DDP_F32);
    assert_int_equal(v.algorithms.n, 1);
    assert_string_equal(v.algorithms.v[0], "auto");
    assert_false(v.quiet);
    assert_int_equal(r.operand_count, 0);
    assert_false(ddp_opt_given(rows, &r, "iters"));
}

static void test_every_way_to_write_one(void **state)
{
    static const char *const lines[] = {"--iters 5", "--iters=5", "-n 5",   "-n5",
                                        "-qn5",      "-q -n 5",   "-qvn 5", "-q -q -n 5"};
    for (size_t i = 0; i < DDP_COUNT_OF(lines); i++) {
        struct values v;
        struct ddp_opt_result r;
        accepted(lines[i], &v, &r);
        assert_int_equal(v.iters, 5);
        assert_true(ddp_opt_given(rows, &r, "iters"));
        assert_false(ddp_opt_given(rows, &r, "seed"));
        assert_int_equal(v.quiet, lines[i][1] == 'q');
    }
}

static void test_every_kind(void **state)
{
    struct values v;
    struct ddp_opt_result r;
    accepted("--lr 1e-3 -e 1.5G --json - --memory registered --ranks 1,2,8 -d half,bf16 "
             "--size 0,64M,8 --algorithm ring,auto",
             &v, &r);
    assert_true(v.lr == 1e-3);
    assert_true(v.max_bytes == 3ull << 29);
    assert_string_equal(v.json, "-");
    assert_int_equal(v.memory, 0);
    assert_int_equal(v.ranks.n, 3);
    assert_int_equal(v.ranks.v[2], 8);
    assert_int_equal(v.dtypes.n, 2);
    assert_int_equal(v.dtypes.v[0], DDP_F16);
    assert_int_equal(v.dtypes.v[1], DDP_BF16);
    assert_int_equal(v.sizes.n, 3);
    assert_int_equal(v.sizes.v[0], 0);
    assert_int_equal(v.sizes.v[1], 64 << 20);
    assert_int_equal(v.algorithms.n, 2);
    assert_string_equal(v.algorithms.v[1], "auto");
    accepted("--dtype all", &v, &r);
    assert_int_equal(v.dtypes.n, DDP_DTYPE_COUNT);
    assert_int_equal(v.dtypes.v[DDP_DTYPE_COUNT - 1], DDP_DTYPE_COUNT - 1);
}

static void test_repeated_lists_add_up(void **state)
{
    struct values v;
    struct ddp_opt_result r;
    accepted("--ranks 1,2,3 --ranks 4 --algorithm ring -d f16 -df64", &v, &r);
    assert_int_equal(v.ranks.n, 4);
    assert_int_equal(v.ranks.v[0], 1);
    assert_int_equal(v.ranks.v[3], 4);
    assert_int_equal(v.algorithms.n, 1); /* replaces the default */
    assert_string_equal(v.algorithms.v[0], "ring");
    assert_int_equal(v.dtypes.n, 2);
    assert_int_equal(v.dtypes.v[1], DDP_F64);
}

static void test_repeated_single_values(void **state)
{
    static const char *const lines[] = {"--iters 5 --iters 5", "-n5 --iters=6", "--json a --json b",
                                        "-d f16 -d half",      "-d f16 -d all", "-d all -d f16"};
    static const char *const options[] = {"--iters", "--iters", "--json",
                                          "--dtype", "--dtype", "--dtype"};
    for (size_t i = 0; i < DDP_COUNT_OF(lines); i++) {
        struct values v;
        struct ddp_opt_result r;
        struct ddp_err err;
        assert_int_equal(parse(lines[i], &v, &r, &err), DDP_EUSAGE);
        assert_non_null(strstr(err.text, options[i]));
    }
}

static void test_operands(void **state)
{
    struct values v;
    struct ddp_opt_result r;
    accepted("busbw -q - -- --iters -q --", &v, &r);
    assert_int_equal(r.operand_count, 5);
    assert_string_equal(r.operands[0], "busbw");
    assert_string_equal(r.operands[1], "-");
    assert_string_equal(r.operands[2], "--iters");
    assert_string_equal(r.operands[4], "--");
    assert_true(v.quiet);
    assert_false(ddp_opt_given(rows, &r, "iters"));
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *line, *text, *hint;
    } cases[] = {
        {"--itres 5", "'--itres'", "'--iters'"},
        {"--siez 4", "'--siez'", "'--size'"},
        {"--iter 5", "'--iter'", "'--iters'"},
        {"--zzzzzz", "'--zzzzzz'", ""},
        {"--=5", "'--'", ""},
        {"-Z", "'-Z'", ""},
        {"-qZ", "'-Z'|'-qZ'", ""},
        {"-size 5", "'-s'|'-size'", "'--size'"},
        {"--iters", "'--iters'", "timed iterations"},
        {"-n", "'--iters'", ""},
        {"--json --iters 5", "'--json'", "FILE"},
        {"--json=", "'--json'", ""},
        {"--quiet=1", "'--quiet'|'1'", ""},
        {"-q1", "'-1'|'-q1'", ""},
        {"--iters 0", "'--iters'|'0'|1000000", ""},
        {"-n -5", "'--iters'|'-5'", ""},
        {"--iters x", "'--iters'|'x'", ""},
        {"--seed -1", "'--seed'|'-1'|9007199254740991", ""},
        {"--seed 9007199254740992", "'--seed'", ""},
        {"--lr -1", "'--lr'|'-1'|0", ""},
        {"-e 2", "'--max-bytes'|'2'|4 B|1 TiB", ""},
        {"-e 64Q", "'--max-bytes'|'64Q'", "64MB"},
        {"--memory privat", "'--memory'|'privat'", "'private'"},
        {"--memory heap", "'--memory'|'heap'", "registered, private"},
        {"--dtype f32,f31", "'--dtype'|'f31'", "'f32'"},
        {"--dtype f32,zzz", "'--dtype'|'zzz'", "f32, f16, bf16, f64, i32, u8"},
        {"--dtype half,fp16", "'--dtype'|'half'|'fp16'|'f16'", ""},
        {"--dtype f32,half,f64,f16", "'half'|'f16'", ""},
        {"--dtype f64,f32,f64", "'--dtype'|'f64'", ""},
        {"--ranks 1,,2", "'--ranks'|'1,,2'", ""},
        {"--ranks ''", "'--ranks'", ""},
        {"--ranks 1,", "'--ranks'", ""},
        {"--ranks 0", "'--ranks'|'0'|256", ""},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct values v;
        struct ddp_opt_result r;
        struct ddp_err err;
        if (parse(cases[i].line, &v, &r, &err) != DDP_EUSAGE)
            fail_msg("'%s' was taken", cases[i].line);
        if (strlen(cases[i].line) == 2 &&
            strchr(strchr(strchr(err.text, '\'') + 1, '\'') + 1, '\''))
            fail_msg("'%s': %s", cases[i].line, err.text);
        if (!text_names(err.text, cases[i].text) || !text_names(err.hint, cases[i].hint))
            fail_msg("'%s': %s; %s", cases[i].line, err.text, err.hint);
        /* Without a near option, the hint is left to the caller. */
        if (cases[i].hint[0] == '\0' && strstr(err.text, "unknown option"))
            assert_string_equal(err.hint, "");
    }
}

/* Parses `--name=text`, whose length is not limited. */
static int parse_one(const char *name, const char *text, struct values *v)
{
    char arg[2048];
    struct ddp_opt_result r;
    struct ddp_err err = DDP_ERR_INIT;
    snprintf(arg, sizeof arg, "--%s=%s", name, text);
    return ddp_opt_parse(rows, 2, (char *[]){arg, arg}, v, &r, &err);
}

static void test_bounds(void **state)
{
    struct values v;
    struct ddp_opt_result r;
    char text[1024] = "1";
    for (int i = 1; i < DDP_OPT_LIST_MAX; i++)
        strcat(text, ",1");
    assert_int_equal(parse_one("ranks", text, &v), 0);
    assert_int_equal(v.ranks.n, DDP_OPT_LIST_MAX);
    strcat(text, ",1");
    assert_int_equal(parse_one("ranks", text, &v), DDP_EUSAGE);

    char name[DDP_OPT_ITEM_MAX + 1];
    memset(name, 'a', sizeof name);
    name[DDP_OPT_ITEM_MAX - 1] = '\0';
    assert_int_equal(parse_one("algorithm", name, &v), 0);
    assert_string_equal(v.algorithms.v[0], name);
    name[DDP_OPT_ITEM_MAX - 1] = 'a';
    name[DDP_OPT_ITEM_MAX] = '\0';
    assert_int_equal(parse_one("algorithm", name, &v), DDP_EUSAGE);

    char line[512] = "x";
    for (int i = 1; i <= 62; i++)
        strcat(line, " x");
    accepted(line, &v, &r);
    assert_int_equal(r.operand_count, 63);
}

/* An item of a list is never cut: a number keeps its last digits, or it is refused. */
static void test_long_items(void **state)
{
    struct values v;
    char text[DDP_OPT_ITEM_MAX + 8];
    memset(text, '0', sizeof text);
    strcpy(text + DDP_OPT_ITEM_MAX - 3, "12"); /* 255 bytes */
    assert_int_equal(parse_one("ranks", text, &v), 0);
    assert_int_equal(v.ranks.v[0], 12);
    memset(text, '0', sizeof text);
    strcpy(text + DDP_OPT_ITEM_MAX, "12"); /* the digits lie beyond the first 256 bytes */
    text[0] = '1';
    assert_int_equal(parse_one("ranks", text, &v), DDP_EUSAGE);
    text[0] = '0';
    text[DDP_OPT_ITEM_MAX - 1] = '7';
    assert_int_equal(parse_one("ranks", text, &v), DDP_EUSAGE);
}

static void test_included_rows(void **state)
{
    struct values v;
    struct ddp_opt_result r;
    struct ddp_opt row;
    accepted("", &v, &r);
    assert_int_equal(v.inner.innermost.depth, 3);
    assert_false(v.inner.wet || v.last);
    accepted("--wet -D 7 -l", &v, &r);
    assert_true(v.inner.wet && v.last);
    assert_int_equal(v.inner.innermost.depth, 7);
    assert_true(ddp_opt_given(rows, &r, "depth") && ddp_opt_given(rows, &r, "last"));
    assert_false(ddp_opt_given(rows, &r, "iters"));
    int count = 0;
    while (ddp_opt_get(rows, count, &row))
        assert_int_equal(row.index, count++);
    assert_int_equal(count, 15);
    assert_true(ddp_opt_find(rows, "depth", &row));
    assert_int_equal(row.offset, offsetof(struct values, inner.innermost.depth));
    assert_string_equal(row.group, "Options");
    assert_true(ddp_opt_find(rows, "wet", &row));
    assert_string_equal(row.group, "Inner");
    assert_true(ddp_opt_find(rows, "last", &row));
    assert_string_equal(row.group, "Measurement");
    assert_int_equal(row.index, count - 1);
    assert_false(ddp_opt_find(rows, "dept", &row));
}

static void test_help(void **state)
{
    struct ddp_strbuf help = DDP_STRBUF_INIT;
    ddp_opt_help(rows, &help);
    assert_false(help.failed);
    static const char *const lines[] = {
        "Output:\n  -q, --quiet               errors only\n",
        "\nMeasurement:\n",
        "\nOptions:\n      --seed N              of everything random ",
        "  -n, --iters N             timed iterations a point ",
        "  -e, --max-bytes S         largest size ",
        "      --memory WHERE        of the buffers: registered, private",
        "  -d, --dtype T[,T...]      element types: f32, f16, bf16, f64, i32, u8",
        "      --algorithm NAME[,NAME]\n                            how ",
        "      --lr F                learning rate ",
    };
    for (size_t i = 0; i < DDP_COUNT_OF(lines); i++)
        if (!text_names(help.text, lines[i]))
            fail_msg("no '%s' in:\n%s", lines[i], help.text);
    for (const char *line = help.text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80)
            fail_msg("wider than 80 columns: %s", line);
    ddp_strbuf_release(&help);
}

static const char *candidate(const void *ctx, int i)
{
    return ((const char *const *)ctx)[i];
}

/* However long the list of names is, the message says that it goes on. */
static void test_unknown(void **state)
{
    static const char *const few[] = {"red", "green", "blue", NULL};
    const char *many[300];
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_fail_unknown(&err, "colour", "gren", "", candidate, few), DDP_EUSAGE);
    assert_string_equal(err.text, "unknown colour 'gren'");
    assert_string_equal(err.hint, "did you mean 'green'?");
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_fail_unknown(&err, "colour", "teal", " of the sky", candidate, few),
                     DDP_EUSAGE);
    assert_string_equal(err.text, "unknown colour 'teal' of the sky");
    assert_string_equal(err.hint, "legal: red, green, blue");
    err = DDP_ERR_INIT;
    ddp_hint_nearest(&err, "rde", candidate, few, NULL);
    assert_string_equal(err.hint, "did you mean 'red'?");
    err = DDP_ERR_INIT;
    ddp_hint_nearest(&err, "rde", candidate, few, "see the list");
    assert_string_equal(err.hint, "did you mean 'red'?");
    err = DDP_ERR_INIT;
    ddp_hint_nearest(&err, "teal", candidate, few, "see the list");
    assert_string_equal(err.hint, "see the list");
    for (size_t i = 0; i + 1 < DDP_COUNT_OF(many); i++)
        many[i] = "colour";
    many[DDP_COUNT_OF(many) - 1] = NULL;
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_fail_unknown(&err, "name", "teal", "", candidate, many), DDP_EUSAGE);
    assert_string_equal(err.hint + strlen(err.hint) - 3, "...");
}

static void test_nearest(void **state)
{
    static const char *const words[] = {"allreduce", "all-gather", "train", "f32",
                                        "f16",       "ring",       NULL};
    static const struct {
        const char *text, *near;
    } cases[] = {
        {"alreduce", "allreduce"},
        {"allredcue", "allreduce"},
        {"allgather", "all-gather"},
        {"trian", "train"},
        {"f31", "f32"},
        {"al", "allreduce"},
        {"rign", "ring"},
        {"zzzzz", NULL},
        {"", NULL},
        {"t", NULL},
        {"traffic", NULL},
        {"all-reduce", "allreduce"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        const char *near = ddp_nearest(cases[i].text, candidate, words);
        if ((near == NULL) != (cases[i].near == NULL) || (near && strcmp(near, cases[i].near) != 0))
            fail_msg("'%s': %s", cases[i].text, near ? near : "nothing");
    }
    char text[200];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_null(ddp_nearest(text, candidate, words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_way_to_write_one),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_repeated_lists_add_up),
        cmocka_unit_test(test_repeated_single_values),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_long_items),
        cmocka_unit_test(test_included_rows),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
