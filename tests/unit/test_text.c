/* Growing strings, UTF-8, text made safe for terminals, log lines, and memory. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"

static void test_append(void **state)
{
    struct ddp_strbuf sb = DDP_STRBUF_INIT;
    ddp_strbuf_add(&sb, "");
    assert_string_equal(sb.text, "");
    for (int i = 0; i < 1000; i++)
        ddp_strbuf_addf(&sb, "%d,", i % 10);
    ddp_strbuf_add_n(&sb, "xyz", 2);
    ddp_strbuf_pad(&sb, 3);
    assert_int_equal(sb.length, 2005);
    assert_int_equal(strlen(sb.text), 2005);
    assert_memory_equal(sb.text + 1996, "8,9,xy   ", 10);
    assert_false(sb.failed);
    ddp_strbuf_release(&sb);
    assert_null(sb.text);
    ddp_strbuf_release(&sb);
}

static void test_list(void **state)
{
    char list[32] = "";
    ddp_text_list_add(list, sizeof list, "tcp/eth10");
    ddp_text_list_add(list, sizeof list, "tcp/eth1"); /* is the beginning of another entry */
    ddp_text_list_add(list, sizeof list, "eth1");     /* is the end of another entry */
    assert_string_equal(list, "tcp/eth10, tcp/eth1, eth1");
    ddp_text_list_add(list, sizeof list, "tcp/eth10");
    ddp_text_list_add(list, sizeof list, "tcp/eth1");
    ddp_text_list_add(list, sizeof list, "eth1");
    assert_string_equal(list, "tcp/eth10, tcp/eth1, eth1");
    ddp_text_list_add(list, sizeof list, "posix/memory");
    assert_string_equal(list, "tcp/eth10, tcp/eth1, eth1, p...");
}

static void test_exhaustion_stays(void **state)
{
    struct ddp_strbuf sb = DDP_STRBUF_INIT;
    ddp_strbuf_add(&sb, "kept");
    ddp_strbuf_pad(&sb, SIZE_MAX - 2); /* cannot fit */
    assert_true(sb.failed);
    ddp_strbuf_add(&sb, "dropped");
    assert_string_equal(sb.text, "kept");
    ddp_strbuf_release(&sb);
    assert_false(sb.failed);
}

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"a", 1},
        {"\xC3\xA9", 2},         /* e acute */
        {"\xE2\x82\xAC", 3},     /* euro */
        {"\xF0\x9F\x98\x80", 4}, /* beyond the basic plane */
        {"\xF4\x8F\xBF\xBF", 4}, /* U+10FFFF */
        {"\xF4\x90\x80\x80", 0}, /* beyond the largest code point */
        {"\xC0\x80", 0},         /* overlong NUL */
        {"\xC1\xBF", 0},
        {"\xE0\x9F\xBF", 0},     /* overlong */
        {"\xF0\x8F\xBF\xBF", 0}, /* overlong */
        {"\xED\xA0\x80", 0},     /* surrogate */
        {"\xC3", 0},             /* cut */
        {"\xE2\x82", 0},
        {"\xC3(", 0},
        {"\x80", 0},
        {"\xFF", 0},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++)
        assert_int_equal(ddp_utf8_length(cases[i].text, strlen(cases[i].text)), cases[i].bytes);
    assert_int_equal(ddp_utf8_length("\xC3\xA9", 1), 0);
    assert_int_equal(ddp_utf8_length("", 0), 0);
}

static void test_printable(void **state)
{
    char out[32];
    ddp_printable("a\033[31mb\n\x7F\t\xC2\x9B"
                  "c\xFF\xC3\xA9",
                  out, sizeof out);
    assert_string_equal(out, "a?[31mb????c?\xC3\xA9");
    ddp_printable("ab\xC3\xA9", out, 4); /* the accent does not fit, so the text is cut before it */
    assert_string_equal(out, "ab");
    ddp_printable("abc", out, 1);
    assert_string_equal(out, "");
    out[0] = 'x';
    ddp_printable("abc", out, 0);
    assert_int_equal(out[0], 'x');
}

/* Returns the output of ddp_logf or ddp_log_err, in a static buffer. */
static const char *logged(struct ddp_log log, enum ddp_log_level level, const char *text,
                          const struct ddp_err *err)
{
    static char out[8192];
    memset(out, 0, sizeof out);
    log.stream = fmemopen(out, sizeof out, "w");
    assert_non_null(log.stream);
    if (err)
        ddp_log_err(&log, err);
    else
        ddp_logf(&log, level, "%s", text);
    fclose(log.stream);
    return out;
}

static void test_log(void **state)
{
    struct ddp_log log = {.level = DDP_LOG_NOTE};
    assert_string_equal(logged(log, DDP_LOG_NOTE, "x", NULL), "ddpbench: x\n");
    assert_string_equal(logged(log, DDP_LOG_WARN, "x", NULL), "ddpbench: warning: x\n");
    assert_string_equal(logged(log, DDP_LOG_DEBUG, "x", NULL), "");
    assert_string_equal(logged(log, DDP_LOG_NOTE, "a\033[2Jb", NULL), "ddpbench: a?[2Jb\n");
    struct ddp_err err = DDP_ERR_INIT;
    (void)ddp_fail(&err, DDP_EUSAGE, "bad '%s'", "\033]0;x");
    assert_string_equal(logged(log, DDP_LOG_ERROR, "", &err), "ddpbench: error: bad '?]0;x'\n");
    err.rank = 3;
    ddp_hint(&err, "do better");
    assert_string_equal(logged(log, DDP_LOG_ERROR, "", &err),
                        "ddpbench: error: rank 3: bad '?]0;x'\n  do better\n");
    log.color = true;
    assert_non_null(strstr(logged(log, DDP_LOG_WARN, "x", NULL), "\033[0m"));
    ddp_logf(NULL, DDP_LOG_ERROR, "silent");
    ddp_log_err(NULL, &err);
}

static void test_progress_times(void **state)
{
    static const struct {
        double elapsed_s, left_s;
        const char *text;
    } cases[] = {
        {0, NAN, "x, 0 s"},
        {40.4, 89.4, "x, 40 s, about 89 s left"},
        {90, 180, "x, 2 min, about 3 min left"},
        {3600, 7200, "x, 60 min, about 2.0 h left"},
        {5, -1, "x, 5 s, about 0 s left"}, /* the estimate is used up */
        {5, INFINITY, "x, 5 s"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        char text[64] = "x";
        ddp_log_progress_times(text, sizeof text, cases[i].elapsed_s, "about", cases[i].left_s);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_memory(void **state)
{
    size_t out = 7;
    assert_false(ddp_mul_size(SIZE_MAX / 2, 3, &out));
    assert_int_equal(out, 7);
    assert_true(ddp_mul_size(6, 7, &out));
    assert_int_equal(out, 42);
    volatile size_t huge = SIZE_MAX / 4;
    assert_null(ddp_calloc(huge, 8));
    assert_null(ddp_realloc_array(NULL, huge, 8));
    assert_null(ddp_alloc_pages(SIZE_MAX));
    assert_null(ddp_alloc_pages(SIZE_MAX - (4 << 20)));
    void *none = ddp_calloc(0, 8);
    assert_non_null(none);
    free(none);
}

/* The message of DDP_NEW has the number of bytes and the function that wanted them. */
static void test_new(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    int64_t *list;
    char *text = (char *)"before";
    assert_int_equal(DDP_NEW(&list, 3, &err), 0);
    assert_true(list[0] == 0 && list[2] == 0);
    free(list);
    volatile size_t huge = SIZE_MAX / 2;
    assert_int_equal(DDP_NEW(&text, huge, &err), DDP_ENOMEM);
    assert_null(text);
    assert_non_null(strstr(err.text, "9223372036854775807"));
    assert_non_null(strstr(err.text, "test_new"));
    err = DDP_ERR_INIT;
    assert_int_equal(DDP_NEW(&list, huge, &err), DDP_ENOMEM); /* the product overflows */
    assert_non_null(strstr(err.text, "18446744073709551615"));
}

static void test_pages(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 4097, (4 << 20) - 1, 4 << 20, (6 << 20) + 5};
    for (size_t i = 0; i < DDP_COUNT_OF(sizes); i++) {
        char *p = ddp_alloc_pages(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] >= 4 << 20 ? 2 << 20 : 4096), 0);
        memset(p, 1, sizes[i]);
        ddp_free_pages(p, sizes[i]);
    }
    ddp_free_pages(NULL, 0);
}

/* Returns the address space in pages. A leak of the trimmed parts would increase it. */
static long mapped_pages(void)
{
    long pages = -1;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    return pages;
}

static void test_pages_leave_nothing(void **state)
{
    ddp_free_pages(ddp_alloc_pages(5 << 20), 5 << 20);
    long before = mapped_pages();
    for (int i = 0; i < 100; i++)
        ddp_free_pages(ddp_alloc_pages((5 << 20) + (size_t)i), (5 << 20) + (size_t)i);
    assert_true(mapped_pages() - before < 512);
}

static void test_clock(void **state)
{
    char text[32];
    double cost_ns, resolution_ns;
    ddp_clock_iso8601(text, sizeof text);
    assert_int_equal(strlen(text), 20);
    assert_int_equal(text[10], 'T');
    assert_int_equal(text[19], 'Z');
    ddp_clock_iso8601(text, 5);
    assert_string_equal(text, "");
    ddp_clock_measure(&cost_ns, &resolution_ns);
    assert_true(cost_ns > 0 && cost_ns < 1e6);
    assert_true(resolution_ns >= 1 && resolution_ns < 1e7);
    int64_t before = ddp_now_ns();
    ddp_sleep_ns(2000000);
    assert_true(ddp_now_ns() - before >= 2000000);
    ddp_sleep_ns(0);
    ddp_sleep_ns(-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append), cmocka_unit_test(test_exhaustion_stays),
        cmocka_unit_test(test_utf8),   cmocka_unit_test(test_printable),
        cmocka_unit_test(test_log),    cmocka_unit_test(test_progress_times),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_new),
        cmocka_unit_test(test_pages),  cmocka_unit_test(test_pages_leave_nothing),
        cmocka_unit_test(test_clock),  cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
