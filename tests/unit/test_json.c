/* JSON: printing, parsing, refused documents, and the digest. */
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

static void test_build_and_print(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    cJSON *doc = cJSON_CreateObject();
    ddp_json_num(doc, "half", 0.5);
    ddp_json_num(doc, "tenth", 0.1);
    ddp_json_num(doc, "third", 1.0 / 3);
    ddp_json_num(doc, "nan", NAN);
    ddp_json_num(doc, "inf", -INFINITY);
    ddp_json_num(doc, "tiny", 5e-324);
    ddp_json_num(doc, "zero", -0.0);
    ddp_json_count(doc, "bytes", 1000000000000000);
    ddp_json_count(doc, "most", 9007199254740991);
    ddp_json_count(doc, "none", -1);
    ddp_json_bool(doc, "yes", true);
    ddp_json_bool(doc, "no", false);
    ddp_json_str(doc, "text", "a\"b\\c\n\x01\x7F\xC3\xA9");
    ddp_json_str(doc, "bytes?", "x\xFFy\xED\xA0\x80");
    ddp_json_str(doc, "empty", "");
    ddp_json_str(doc, "missing", NULL);
    cJSON *list = ddp_json_arr(doc, "list");
    cJSON_AddItemToArray(list, cJSON_CreateNumber(1));
    cJSON_AddItemToArray(list, cJSON_CreateRaw("2.50"));
    cJSON *deep = ddp_json_arr(doc, "objects");
    cJSON *inner = cJSON_CreateObject();
    cJSON_AddItemToArray(deep, inner);
    ddp_json_null(inner, "n");
    ddp_json_obj(doc, "nothing");
    ddp_json_arr(doc, "void");
    assert_int_equal(ddp_json_print(doc, &out, &err), 0);
    assert_string_equal(out.text,
                        "{\n"
                        "  \"half\": 0.5,\n"
                        "  \"tenth\": 0.1,\n"
                        "  \"third\": 0.3333333333333333,\n"
                        "  \"nan\": null,\n"
                        "  \"inf\": null,\n"
                        "  \"tiny\": 4.94065645841247e-324,\n"
                        "  \"zero\": 0,\n"
                        "  \"bytes\": 1000000000000000,\n"
                        "  \"most\": 9007199254740991,\n"
                        "  \"none\": null,\n"
                        "  \"yes\": true,\n"
                        "  \"no\": false,\n"
                        "  \"text\": \"a\\\"b\\\\c\\n\\u0001\\u007f\xC3\xA9\",\n"
                        "  \"bytes?\": \"x\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\",\n"
                        "  \"empty\": null,\n"
                        "  \"missing\": null,\n"
                        "  \"list\": [1, 2.50],\n"
                        "  \"objects\": [\n"
                        "    {\n"
                        "      \"n\": null\n"
                        "    }\n"
                        "  ],\n"
                        "  \"nothing\": {},\n"
                        "  \"void\": []\n"
                        "}\n");
    ddp_strbuf_release(&out);
    cJSON_Delete(doc);
}

/* Adds a value with nested members and a number that equals the mark of printed text. */
static cJSON *add_nested(cJSON *arr)
{
    cJSON *item = ddp_json_append(arr);
    ddp_json_num(item, "z", 0.1);
    ddp_json_str(item, "a", "\"<\n");
    cJSON *inner = ddp_json_arr(ddp_json_obj(item, "object"), "list");
    cJSON_AddItemToArray(inner, cJSON_CreateNumber(-2));
    cJSON_AddItemToArray(inner, cJSON_CreateNumber(3));
    return item;
}

/* A document with printed values has the same text and digest as one with the values. */
static void test_printed(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_strbuf out[2] = {DDP_STRBUF_INIT, DDP_STRBUF_INIT};
    char *text = NULL;
    for (int printed = 0; printed < 2; printed++) {
        cJSON *doc = cJSON_CreateObject(), *list = ddp_json_arr(doc, "points");
        cJSON *item = add_nested(list);
        add_nested(list);
        if (printed) {
            assert_int_equal(ddp_json_preprint(item, 4, &text, &err), 0);
            while (cJSON_GetArraySize(list) > 0)
                cJSON_DeleteItemFromArray(list, 0);
            ddp_json_append_printed(list, text);
            ddp_json_append_printed(list, text);
        }
        assert_int_equal(ddp_json_print_digest(doc, &out[printed], &err), 0);
        cJSON_Delete(doc);
    }
    assert_string_equal(out[1].text, out[0].text);
    free(text);
    for (int i = 0; i < 2; i++)
        ddp_strbuf_release(&out[i]);
}

static void test_numbers_come_back(void **state)
{
    static const double values[] = {1e300,
                                    1.7976931348623157e308,
                                    123456789.123456789,
                                    2.2e-308,
                                    0x1p53,
                                    0x1p53 + 2,
                                    3.0000000000000004,
                                    -1e-7};
    for (size_t i = 0; i < DDP_COUNT_OF(values); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        struct ddp_strbuf out = DDP_STRBUF_INIT;
        cJSON *doc = cJSON_CreateObject(), *back;
        ddp_json_num(doc, "v", values[i]);
        assert_int_equal(ddp_json_print(doc, &out, &err), 0);
        assert_int_equal(ddp_json_parse(out.text, out.length, "x", &back, &err), 0);
        assert_true(cJSON_GetObjectItemCaseSensitive(back, "v")->valuedouble == values[i]);
        cJSON_Delete(doc);
        cJSON_Delete(back);
        ddp_strbuf_release(&out);
    }
}

/* Gives cJSON an allocator that runs out of memory. A member that is lost must cause an error. */
static int allocations_left;
static void *scarce_malloc(size_t n)
{
    return allocations_left-- > 0 ? malloc(n) : NULL;
}

static void test_memory_runs_out(void **state)
{
    cJSON_Hooks scarce = {scarce_malloc, free};
    int failures = 0;
    for (int n = 1; n < 40; n++) {
        struct ddp_err err = DDP_ERR_INIT;
        struct ddp_strbuf out = DDP_STRBUF_INIT;
        cJSON_InitHooks(&scarce);
        allocations_left = n;
        cJSON *doc = cJSON_CreateObject();
        ddp_json_num(doc, "a", 1);
        cJSON *b = ddp_json_obj(doc, "b");
        ddp_json_str(b, "c", "text");
        ddp_json_count(b, "d", 4);
        ddp_json_bool(ddp_json_append(ddp_json_arr(b, "e")), "f", true);
        cJSON_InitHooks(NULL);
        int rc = ddp_json_print(doc, &out, &err);
        if (rc == 0)
            assert_non_null(strstr(out.text, "\"f\": true"));
        else
            assert_int_equal(rc, DDP_ENOMEM);
        failures += rc != 0;
        ddp_strbuf_release(&out);
        cJSON_Delete(doc);
    }
    assert_int_equal(failures, 14); /* 15 allocations: the root, 7 values, 6 keys, one text */
}

static int parse(const char *text, size_t bytes, struct ddp_err *err)
{
    cJSON *doc = NULL;
    *err = DDP_ERR_INIT;
    /* Uses a block of the exact size, so that a sanitizer detects a read beyond the end. */
    char *exact = malloc(bytes ? bytes : 1);
    memcpy(exact, text, bytes);
    int rc = ddp_json_parse(exact, bytes, "f.json", &doc, err);
    free(exact);
    cJSON_Delete(doc);
    return rc;
}

static void test_accepted(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        " [ ] ",
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1.5e-3",
        "1E+2",
        "\"\"",
        "\"\\u00e9\\ud83d\\ude00\\n\\/\"",
        "\"\xC3\xA9\"",
        "{\"a\": {\"a\": [{\"a\": 1}]}}",
        "[1,2,[3,[]],{}]",
        "\t{\"\" : 1 , \"b\" :\r\n2}\n",
        "{\"A\":1,\"a\":2}",
        "1e999",
    };
    for (size_t i = 0; i < DDP_COUNT_OF(texts); i++) {
        struct ddp_err err;
        if (parse(texts[i], strlen(texts[i]), &err) != 0)
            fail_msg("%s: %s", texts[i], err.text);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "byte 0"},
        {" ", "byte 1"},
        {"{", "byte 1"},
        {"[1", "byte 2"},
        {"[1,", "byte 3"},
        {"[1,]", "byte 3"},
        {"[,1]", "byte 1"},
        {"[1 2]", "',' or ']'"},
        {"[1}", "',' or ']'"},
        {"{\"a\"}", "':' was expected"},
        {"{\"a\":}", "byte 5"},
        {"{\"a\":1,}", "a string was expected"},
        {"{a:1}", "a string was expected"},
        {"{1:1}", "a string was expected"},
        {"{} {}", "bytes after the document"},
        {"{}x", "byte 2"},
        {"01", "byte 2"},
        {"1.", "ends in a decimal point"},
        {".5", "not a value"},
        {"+1", "not a value"},
        {"-", "not a value"},
        {"1e", "exponent"},
        {"0x1", "bytes after"},
        {"NaN", "not a value"},
        {"Infinity", "not a value"},
        {"nul", "not a value"},
        {"tru", "not a value"},
        {"'a'", "not a value"},
        {"\"a", "does not end"},
        {"\"\\x\"", "unknown escape"},
        {"\"\\", "unknown escape"},
        {"\"\\u12\"", "four hexadecimal"},
        {"\"\\u0000\"", "refused"},
        {"\"\\ud800\"", "high surrogate"},
        {"\"\\ud800\\u0041\"", "high surrogate"},
        {"\"\\ude00\"", "low surrogate"},
        {"\"\n\"", "control character"},
        {"\"\xFF\"", "not UTF-8"},
        {"\"\xC0\x80\"", "not UTF-8"},
        {"\xEF\xBB\xBF{}", "byte 0"},
        {"// x\n{}", "byte 0"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "key 'a' occurs twice"},
        {"[{\"x\":{\"k\":0,\"\\u006b\":1}}]", "key 'k' occurs twice"},
        {"1111111111111111111111111111111111111111111111111111111111111111", "60 characters"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_err err;
        int rc = parse(cases[i].text, strlen(cases[i].text), &err);
        if (rc != DDP_EINPUT || !strstr(err.text, cases[i].why) || !strstr(err.text, "'f.json'"))
            fail_msg("%s: %d, %s", cases[i].text, rc, err.text);
    }
    struct ddp_err err;
    assert_int_equal(parse("{}\0", 3, &err), DDP_EINPUT);
    assert_int_equal(parse("\"a\0b\"", 5, &err), DDP_EINPUT);
}

static void test_depth(void **state)
{
    char text[2 * DDP_JSON_MAX_DEPTH + 3];
    struct ddp_err err;
    memset(text, '[', DDP_JSON_MAX_DEPTH);
    memset(text + DDP_JSON_MAX_DEPTH, ']', DDP_JSON_MAX_DEPTH);
    assert_int_equal(parse(text, 2 * DDP_JSON_MAX_DEPTH, &err), 0);
    memset(text, '[', DDP_JSON_MAX_DEPTH + 1);
    memset(text + DDP_JSON_MAX_DEPTH + 1, ']', DDP_JSON_MAX_DEPTH + 1);
    assert_int_equal(parse(text, 2 * DDP_JSON_MAX_DEPTH + 2, &err), DDP_EINPUT);
    assert_non_null(strstr(err.text, "nested too deeply"));
    size_t bytes = 8 << 20; /* a recursive parser would overflow its stack */
    char *deep = malloc(bytes);
    memset(deep, '[', bytes);
    assert_int_equal(parse(deep, bytes, &err), DDP_EINPUT);
    free(deep);
}

static void test_too_large(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    cJSON *doc;
    /* The size alone is refused, and no byte is read. */
    assert_int_equal(ddp_json_parse("", (size_t)DDP_JSON_MAX_BYTES + 1, "f", &doc, &err),
                     DDP_EINPUT);
}

static void test_many_keys(void **state)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    struct ddp_err err;
    for (int i = 0; i < 100000; i++)
        ddp_strbuf_addf(&text, "%s\"k%d\":%d", i ? "," : "{", i, i);
    size_t bytes = text.length;
    ddp_strbuf_add(&text, "}");
    assert_int_equal(parse(text.text, text.length, &err), 0);
    text.length = bytes;
    ddp_strbuf_add(&text, ",\"k0\":1}");
    assert_int_equal(parse(text.text, text.length, &err), DDP_EINPUT);
    ddp_strbuf_release(&text);
}

static void test_fnv(void **state)
{
    /* Test vectors from Noll's page on FNV. */
    assert_true(ddp_fnv1a(DDP_FNV_INIT, "", 0) == 0xcbf29ce484222325u);
    assert_true(ddp_fnv1a(DDP_FNV_INIT, "a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(ddp_fnv1a(DDP_FNV_INIT, "foobar", 6) == 0x85944171f73967e8u);
    uint64_t half = ddp_fnv1a(DDP_FNV_INIT, "foo", 3);
    assert_true(ddp_fnv1a(half, "bar", 3) == 0x85944171f73967e8u);
}

static int check_text(const char *text, size_t bytes, struct ddp_err *err)
{
    cJSON *doc = NULL;
    *err = DDP_ERR_INIT;
    int rc = ddp_json_parse_digest(text, bytes, "f", NULL, &doc, err);
    cJSON_Delete(doc);
    return rc;
}

static void test_digest(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "text", "a \"digest\", quoted");
    ddp_json_num(ddp_json_obj(doc, "inner"), "digest", 1);
    assert_int_equal(ddp_json_print_digest(doc, &out, &err), 0);
    cJSON_Delete(doc);
    /* As the header says: the FNV-1a hash of the canonical form. */
    static const char canonical[] =
        "{\"inner\":{\"digest\":1},\"text\":\"a \\\"digest\\\", quoted\"}";
    char expected[64];
    snprintf(expected, sizeof expected, ",\n  \"digest\": \"jcs-fnv1a64:%016llx\"\n}\n",
             (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, canonical, strlen(canonical)));
    const char *comma = strstr(out.text, expected);
    assert_non_null(comma);
    assert_int_equal(check_text(out.text, out.length, &err), 0);
    /* Every changed byte is detected, except white space between values. */
    bool in_string = false;
    for (size_t i = 0; i < out.length; i++) {
        char saved = out.text[i];
        in_string ^= saved == '"' && out.text[i - 1] != '\\';
        out.text[i] = saved == '1' ? '2' : saved == ' ' ? '\t' : saved ^ 1;
        if (in_string || !strchr(" \n\"", saved))
            assert_int_equal(check_text(out.text, out.length, &err), DDP_EINPUT);
        out.text[i] = saved;
    }
    ddp_strbuf_release(&out);
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"digest\": \"fnv1a64:cbf29ce484222325\"}",
        "{\"digest\": \"jcs-fnv1a64:cbf29ce484222325\"}",
        "{\"a\": 1}",
        "{\"digest\": \"fnv1a64:cbf29ce484222325\", \"a\": 1}",
        "{\"a\": 1, \"digest\": 5}",
        "{\"a\": 1, \"digest\": \"\"}",
        "{\"a\": 1, \"digest\": \"fnv1a64:0000000000000000\"}",
        "{\"a\": 1, \"digest\": \"jcs-fnv1a64:0000000000000000\"}",
        "{\"a\": {\"digest\": \"x\"}}",
        "",
    };
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++)
        if (check_text(bad[i], strlen(bad[i]), &err) != DDP_EINPUT)
            fail_msg("%s passed", bad[i]);
}

/* Texts with the same values have the same digest. Digests of earlier versions cover the bytes. */
static void test_digest_forms(void **state)
{
    static const struct {
        const char *text;
        bool changed;
    } cases[] = {
        {"{\"a\": 1.5, \"b\": [null], \"digest\": \"jcs-fnv1a64:DIGEST\"}", false},
        {"{\"b\":[ null ],\n\"digest\": \"jcs-fnv1a64:DIGEST\", \"\\u0061\": 15e-1}", false},
        {"{\"a\": 1.5, \"b\": [1e999], \"digest\": \"jcs-fnv1a64:DIGEST\"}", true},
        {"{\"a\": 1.6, \"b\": [null], \"digest\": \"jcs-fnv1a64:DIGEST\"}", true},
        {"{\"a\": 1.5, \"b\": [null]}", true},
        {"{\n  \"a\": 1,\n  \"digest\": \"fnv1a64:3ae16671fa1f9602\"\n}\n", false},
        {"{\n \"a\": 1,\n  \"digest\": \"fnv1a64:3ae16671fa1f9602\"\n}\n", true},
    };
    static const char canonical[] = "{\"a\":1.5,\"b\":[null]}";
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        char text[256], hex[17];
        struct ddp_err err = DDP_ERR_INIT;
        bool changed;
        cJSON *doc;
        snprintf(text, sizeof text, "%s", cases[i].text);
        snprintf(hex, sizeof hex, "%016llx",
                 (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, canonical, strlen(canonical)));
        char *at = strstr(text, "DIGEST");
        if (at) {
            memmove(at + 16, at + 6, strlen(at + 6) + 1);
            memcpy(at, hex, 16);
        }
        if (check_text(text, strlen(text), &err) != (cases[i].changed ? DDP_EINPUT : 0))
            fail_msg("%s: %s", text, err.text);
        err = DDP_ERR_INIT;
        assert_int_equal(ddp_json_parse_digest(text, strlen(text), "f", &changed, &doc, &err), 0);
        assert_int_equal(changed, cases[i].changed);
        cJSON_Delete(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_and_print),
        cmocka_unit_test(test_printed),
        cmocka_unit_test(test_numbers_come_back),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_fnv),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_digest_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
