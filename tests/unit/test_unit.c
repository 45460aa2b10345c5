/* Sizes, numbers and durations as users type and read them. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "base/unit.h"

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"8", 8},
        {"007", 7},
        {"64B", 64},
        {"1e6", 1000000},
        {"1E6", 1000000},
        {"1.5e3", 1500},
        {"100e-2", 1},
        {"64M", 64ull << 20},
        {"64m", 64ull << 20},
        {"64Mi", 64ull << 20},
        {"64MiB", 64ull << 20},
        {"64MB", 64000000},
        {"1k", 1024},
        {"1K", 1024},
        {"1kB", 1000},
        {"1KB", 1000},
        {"1KiB", 1024},
        {"1.5G", 3ull << 29},
        {"1.5GB", 1500000000},
        {"0.5k", 512},
        {"0.001kB", 1},
        {"1T", 1ull << 40},
        {"1TB", 1000000000000},
        {"1P", 1ull << 50},
        {"3PiB", 3ull << 50},
        {"2PB", 2000000000000000},
        {"1E", 1ull << 60},
        {"7EiB", 7ull << 60},
        {"9EB", 9000000000000000000},
        {"1E3", 1000},
        {"1e3k", 1024000},
        {"8388607T", 8388607ull << 40},
        {"9223372036854775807", INT64_MAX},
        {"0.0009765625k", 1},
        {"0e399", 0},
        {"1000000000000000000000e-21", 1},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        uint64_t bytes = 12345;
        if (ddp_parse_size(cases[i].text, &bytes, &err) != 0 || bytes != cases[i].bytes)
            fail_msg("%s: %llu, %s", cases[i].text, (unsigned long long)bytes, err.text);
    }
}

static void test_bad_sizes(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        " 1",
        "1 ",
        "64 M",
        "-1",
        "+1",
        "M",
        "x",
        "1x",
        "64Mx",
        "64mB",
        "1e",
        "1eB",
        "8EiB",
        "10EB",
        "64mib",
        "1.5",
        "1.",
        ".",
        "1..5",
        "1e",
        "1e+",
        "0x10",
        "inf",
        "nan",
        "1e400",
        "1e19",
        "8388608T",
        "9223372036854775808",
        "0.3k",
        "1e-1",
        "64BB",
        "64Bi",
        "1,5",
        "1e6e6",
        "18446744073709551616",
        "99999999999999999999999",
        "1e99999999999999999999",
    };
    for (size_t i = 0; i < DDP_COUNT_OF(texts); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        uint64_t bytes = 12345;
        if (ddp_parse_size(texts[i], &bytes, &err) != DDP_EUSAGE)
            fail_msg("'%s' was taken for %llu", texts[i], (unsigned long long)bytes);
        assert_int_equal(bytes, 12345);
        if (!strstr(err.text, texts[i]))
            fail_msg("'%s' is not named: %s", texts[i], err.text);
    }
}

static void test_ints(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    int64_t v;
    assert_int_equal(ddp_parse_int("1e3", 0, 2000, &v, &err), 0);
    assert_int_equal(v, 1000);
    assert_int_equal(ddp_parse_int("-5", -5, 5, &v, &err), 0);
    assert_int_equal(v, -5);
    assert_int_equal(ddp_parse_int("+5", -5, 5, &v, &err), 0);
    assert_int_equal(v, 5);
    assert_int_equal(ddp_parse_int("9223372036854775807", 0, INT64_MAX, &v, &err), 0);
    assert_true(v == INT64_MAX);
    static const char *const bad[] = {"",     "6",  "-6",  "1.5", "5k",
                                      "five", "5 ", "0x5", "--5", "1e30"};
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        struct ddp_err why = DDP_ERR_INIT;
        v = 77;
        if (ddp_parse_int(bad[i], -5, 5, &v, &why) != DDP_EUSAGE)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(v, 77);
    }
    assert_int_equal(ddp_parse_int("6", -5, 5, &v, &err), DDP_EUSAGE);
    assert_non_null(strstr(err.text, "'6'"));
    assert_non_null(strstr(err.text, "-5"));
}

static void test_doubles(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    double v;
    assert_int_equal(ddp_parse_double("0.005", 0, 1, &v, &err), 0);
    assert_true(v == 0.005);
    assert_int_equal(ddp_parse_double("1e-5", 0, 1, &v, &err), 0);
    assert_true(v == 1e-5);
    assert_int_equal(ddp_parse_double(".5", 0, INFINITY, &v, &err), 0);
    static const char *const bad[] = {"",      " 1",  "1 ", "0x1p3", "inf", "nan",
                                      "1e999", "1,5", "e5", "-",     "2",   "-0.1"};
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        struct ddp_err why = DDP_ERR_INIT;
        if (ddp_parse_double(bad[i], 0, 1, &v, &why) != DDP_EUSAGE)
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void test_format_double(void **state)
{
    const double values[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -2.5, 0};
    char out[32];
    (void)state;
    for (size_t i = 0; i < DDP_COUNT_OF(values); i++) {
        ddp_format_double(values[i], out, sizeof out);
        assert_true(strtod(out, NULL) == values[i]);
    }
    ddp_format_double(0.1, out, sizeof out);
    assert_string_equal(out, "0.1");
}

static void test_format_size(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {4, "4 B"},
        {1000, "1000 B"},
        {1024, "1 KiB"},
        {1025, "1.001 KiB"},
        {65536, "64 KiB"},
        {3ull << 29, "1.5 GiB"},
        {64ull << 20, "64 MiB"},
        {67108865, "64 MiB"},
        {1023ull << 20, "1023 MiB"},
        {UINT64_MAX, "16 EiB"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        char out[24];
        ddp_format_size(cases[i].bytes, out, sizeof out);
        assert_string_equal(out, cases[i].text);
    }
}

static void test_format_ns(void **state)
{
    static const struct {
        double ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},        {0.25, "0.25 ns"},  {850, "850 ns"},     {999.4, "999 ns"},
        {999.6, "1 us"},    {12340, "12.3 us"}, {4.56e6, "4.56 ms"}, {7.8e9, "7.8 s"},
        {59.9e9, "59.9 s"}, {59.99e9, "1m00s"}, {192e9, "3m12s"},    {3599.6e9, "1h00m"},
        {3725e9, "1h02m"},  {NAN, "-"},         {INFINITY, "-"},     {-1500, "-1.5 us"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        char out[24];
        ddp_format_ns(cases[i].ns, out, sizeof out);
        assert_string_equal(out, cases[i].text);
    }
}

static void test_format_GBps(void **state)
{
    static const struct {
        double GBps;
        const char *text;
    } cases[] = {{4.5, "4.5 GB/s"},   {1, "1 GB/s"},        {9.96, "10 GB/s"},
                 {123.4, "123 GB/s"}, {0.012, "12 MB/s"},   {0.0045, "4.5 MB/s"},
                 {1e-5, "0.01 MB/s"}, {1e12, "1e+12 GB/s"}, {0, "0 MB/s"}};
    char out[24];
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        ddp_format_GBps(cases[i].GBps, out, sizeof out);
        assert_string_equal(out, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_ints),          cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_format_double), cmocka_unit_test(test_format_size),
        cmocka_unit_test(test_format_ns),     cmocka_unit_test(test_format_GBps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
