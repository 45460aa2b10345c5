/* The canonical form of JSON documents: the examples of RFC 8785, and numbers against an oracle
 * that searches all lengths. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fenv.h>
#include <math.h>

#include "base/json.h"
#include "base/json_canonical.h"
#include "base/mem.h"
#include "base/rng.h"

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* RFC 8785, appendix B. */
static void test_appendix_b(void **state)
{
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "0"},
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"},
        {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"},
        {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
        /* Powers of two whose rounded value of 16 digits does not read back. */
        {0x3d30000000000000, "5.684341886080802e-14"},
        {0x77f0000000000000, "5.282945311356653e+269"},
        /* Not in the RFC: documents show these as null. */
        {0x7ff0000000000000, "null"},
        {0x7fffffffffffffff, "null"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        char text[DDP_JSON_NUMBER_BYTES];
        ddp_json_shortest(from_bits(cases[i].bits), text);
        assert_string_equal(text, cases[i].text);
    }
}

static void round_with(int mode, double value, int digits, char out[40])
{
    assert_int_equal(fesetround(mode), 0);
    snprintf(out, 40, "%.*e", digits - 1, value);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
}

/* Writes the shortest decimal number that reads back, in the form of %e. Tries the two decimal
 * numbers of each length that enclose the value, and prefers the closest one. */
static void search(double value, char out[40])
{
    for (int digits = 1; digits <= 17; digits++) {
        char below[40], above[40];
        round_with(FE_TONEAREST, value, digits, out);
        if (strtod(out, NULL) == value)
            return;
        round_with(FE_DOWNWARD, value, digits, below);
        round_with(FE_UPWARD, value, digits, above);
        snprintf(out, 40, "%s", strtod(below, NULL) == value ? below : above);
        if (strtod(out, NULL) == value)
            return;
    }
    fail_msg("%a has no decimal number", value);
}

/* Returns the digits of a number without its point, zeros at both ends and exponent. */
static void digits_of(const char *text, char out[40])
{
    size_t n = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (n > 0 || *text != '0'))
            out[n++] = *text;
    while (n > 0 && out[n - 1] == '0')
        n--;
    out[n] = '\0';
}

static void check_number(double value)
{
    char text[DDP_JSON_NUMBER_BYTES], expected[40], actual[40], found[40];
    ddp_json_shortest(value, text);
    search(value, found);
    digits_of(found, expected);
    digits_of(text, actual);
    if (strtod(text, NULL) != value || strcmp(actual, expected) != 0)
        fail_msg("%a: '%s', expected the digits %s", value, text, expected);
    const bool exponent = value >= 1e21 || value < 1e-6;
    if (exponent != (strchr(text, 'e') != NULL))
        fail_msg("%a: '%s' has the wrong form", value, text);
}

static void test_numbers(void **state)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 1, 1);
    for (int exponent = -1074; exponent < 1024; exponent++) {
        const double power = ldexp(1, exponent);
        check_number(power);
        check_number(nextafter(power, INFINITY));
        if (exponent > -1074)
            check_number(nextafter(power, 0));
    }
    for (int exponent = -323; exponent <= 308; exponent++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", exponent);
        check_number(strtod(text, NULL));
    }
    for (int i = 0; i < 20000; i++) {
        const double any = from_bits(ddp_rng_u64(&rng) & INT64_MAX);
        if (isfinite(any) && any > 0)
            check_number(any);
        check_number((double)(1 + ddp_rng_below(&rng, 1000000000)) / 1e3);
        check_number(from_bits(1 + ddp_rng_below(&rng, 1 << 30))); /* far below DBL_MIN */
    }
}

static void check_form(const char *text, const char *without, const char *expected)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    cJSON *doc;
    assert_int_equal(ddp_json_parse(text, strlen(text), "x", &doc, &err), 0);
    assert_int_equal(ddp_json_canonical(doc, without, &out, &err), 0);
    assert_string_equal(out.text, expected);
    ddp_strbuf_release(&out);
    cJSON_Delete(doc);
}

/* RFC 8785, sections 3.2.2 to 3.2.4. */
static void test_documents(void **state)
{
    check_form("{\"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3, "
               "0.000000000000000000000000001],\n"
               "\"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\",\n"
               "\"literals\": [null, true, false]}",
               NULL,
               "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,"
               "1e-27],\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
    check_form("{\"\\u20ac\": 1, \"\\r\": 2, \"\\ufb33\": 3, \"1\": 4, \"\\ud83d\\ude00\": 5, "
               "\"\\u0080\": 6, \"\\u00f6\": 7}",
               NULL,
               "{\"\\r\":2,\"1\":4,\"\xC2\x80\":6,\"\xC3\xB6\":7,\"\xE2\x82\xAC\":1,"
               "\"\xF0\x9F\x98\x80\":5,\"\xEF\xAC\xB3\":3}");
    check_form("{\"b\": {\"a\": 1}, \"a\": {\"b\": {}}, \"\": []}", "a",
               "{\"\":[],\"b\":{\"a\":1}}");
    check_form("\"\\b\\t\\n\\u000b\\f\\r\\u007f<\"", NULL, "\"\\b\\t\\n\\u000b\\f\\r\x7F<\"");
    check_form("{}", "a", "{}");
    check_form("[-0, -0.0, 1e400]", NULL, "[0,0,null]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appendix_b),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
