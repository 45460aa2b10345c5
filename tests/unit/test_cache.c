/* Caches as Linux describes them: a processor with three levels, one with unusual levels, one
 * without any; and the share of one rank. Also the restriction of a thread to processors. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpuinfo.h"

static char sys[] = "/tmp/test_cache.XXXXXX";

static void make_file(int cpu, int index, const char *name, const char *text)
{
    static const char *const levels[] = {"devices", "system", "cpu"};
    char path[256];
    int n = snprintf(path, sizeof path, "%s", sys);
    for (int i = 0; i < 3; i++) {
        n += snprintf(path + n, sizeof path - (size_t)n, "/%s", levels[i]);
        mkdir(path, 0700);
    }
    n += snprintf(path + n, sizeof path - (size_t)n, "/cpu%d", cpu);
    mkdir(path, 0700);
    n += snprintf(path + n, sizeof path - (size_t)n, "/cache");
    mkdir(path, 0700);
    n += snprintf(path + n, sizeof path - (size_t)n, "/index%d", index);
    mkdir(path, 0700);
    snprintf(path + n, sizeof path - (size_t)n, "/%s", name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static void make_cache(int cpu, int index, const char *level, const char *type, const char *size,
                       const char *list)
{
    make_file(cpu, index, "level", level);
    make_file(cpu, index, "type", type);
    make_file(cpu, index, "size", size);
    make_file(cpu, index, "shared_cpu_list", list);
}

static int make_tree(void **state)
{
    (void)state;
    if (mkdtemp(sys) == NULL)
        return 1;
    make_cache(0, 0, "1", "Data", "32K", "0");
    make_cache(0, 1, "1", "Instruction", "32K", "0");
    make_cache(0, 2, "2", "Unified", "1024K", "0");
    make_cache(0, 3, "3", "Unified", "32768K", "0-7,64-71");
    /* Instruction caches and levels without a size do not count. */
    make_cache(1, 0, "3", "Unified", "2M", "1,3");
    make_cache(1, 1, "4", "Instruction", "64M", "1");
    make_cache(1, 2, "5", "Unified", "none", "0-3");
    make_cache(2, 0, "x", "Unified", "1M", "2");
    make_cache(2, 1, "2", "Unified", "1M", "2");
    make_cache(3, 0, "3", "Unified", "48K", "garbage");
    make_cache(4, 0, "3", "Unified", "3G", "4");
    make_cache(5, 0, "3", "Unified", "3X", "5");
    make_cache(6, 0, "3", "Unified", "4096", "6");
    return 0;
}

static int remove_tree(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", sys);
    return system(command);
}

static void test_read(void **state)
{
    (void)state;
    struct ddp_cache cache;
    assert_true(ddp_cache_read(sys, 0, &cache));
    assert_int_equal(cache.bytes, 32 << 20);
    assert_int_equal(cache.sharers, 16);
    assert_true(ddp_cache_read(sys, 1, &cache));
    assert_int_equal(cache.bytes, 2 << 20);
    assert_int_equal(cache.sharers, 2);
    assert_true(ddp_cache_read(sys, 3, &cache));
    assert_int_equal(cache.bytes, 48 << 10);
    assert_int_equal(cache.sharers, 1);
    assert_true(ddp_cache_read(sys, 4, &cache));
    assert_true(cache.bytes == (size_t)3 << 30);
    assert_true(ddp_cache_read(sys, 6, &cache));
    assert_int_equal(cache.bytes, 4096);
}

static void test_not_reported(void **state)
{
    (void)state;
    struct ddp_cache cache = {7, 7};
    assert_false(ddp_cache_read(sys, 2, &cache));
    assert_int_equal(cache.bytes, 0);
    assert_false(ddp_cache_read(sys, 5, &cache)); /* a unit that is not known */
    assert_false(ddp_cache_read(sys, 99, &cache));
    assert_false(ddp_cache_read("/nowhere", 0, &cache));
}

/* A rank's share shrinks with the number of ranks, but only with those that share one cache. */
static void test_share(void **state)
{
    (void)state;
    const struct ddp_cache cache = {32 << 20, 8}, none = {0};
    assert_int_equal(ddp_cache_share_of(&cache, 0), 32 << 20);
    assert_int_equal(ddp_cache_share_of(&cache, 1), 32 << 20);
    assert_int_equal(ddp_cache_share_of(&cache, 2), 16 << 20);
    assert_int_equal(ddp_cache_share_of(&cache, 8), 4 << 20);
    assert_int_equal(ddp_cache_share_of(&cache, 256), 4 << 20);
    assert_int_equal(ddp_cache_share_of(&none, 2), SIZE_MAX);
    assert_true(ddp_cache_share(2) <= ddp_cache_share(1) && ddp_cache_share(256) > 0);
}

/* The first processor that this thread may use is in every list; a list without any of its
 * processors, and a malformed list, change nothing. */
static void test_restrict(void **state)
{
    (void)state;
    cpu_set_t before, after;
    char list[64];
    int first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    static const char *const wrong[] = {
        "", "x", "-1", "0,", "2-1", "0-x", "0 1", "1023-1024", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(ddp_cpu_restrict(wrong[i]));
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    snprintf(list, sizeof list, "%d,1000-1002", first);
    assert_true(ddp_cpu_restrict(list));
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_COUNT(&after) == 1 && CPU_ISSET(first, &after));
    assert_false(ddp_cpu_restrict("1000-1002"));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    snprintf(list, sizeof list, "0-%d", CPU_SETSIZE - 1);
    assert_true(ddp_cpu_restrict(list));
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_not_reported),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_restrict),
    };
    return cmocka_run_group_tests_name("cache", tests, make_tree, remove_tree);
}
