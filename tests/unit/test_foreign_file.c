/* Reading the results of other benchmarks: names, units, repeated names, failures and errors. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "record/foreign_file.h"

static int parse(enum ddp_foreign format, const char *text, struct ddp_result *r,
                 struct ddp_err *err)
{
    *err = DDP_ERR_INIT;
    return ddp_foreign_parse(format, text, strlen(text), "x", NULL, r, err);
}

static void accept(enum ddp_foreign format, const char *text, struct ddp_result *r)
{
    struct ddp_err err;
    const int rc = parse(format, text, r, &err);
    if (rc != 0)
        fail_msg("%s: %s", ddp_foreign_names[format], err.text);
    assert_string_equal(r->status, "complete");
    assert_true(isnan(r->copy_GBps));
}

static void assert_cell(const struct ddp_result *r, const char *id, double ns)
{
    const struct ddp_result_point *p = ddp_result_find(r, id);
    if (!p)
        fail_msg("no cell '%s'; the first is '%s'", id, r->count ? r->points[0].id : "");
    if (!(fabs(p->median_ns - ns) <= 1e-9 * ns))
        fail_msg("'%s' is %.17g, not %.17g", id, p->median_ns, ns);
}

static void refuse(enum ddp_foreign format, const char *text, const char *where, const char *what)
{
    struct ddp_result r;
    struct ddp_err err;
    assert_int_equal(parse(format, text, &r, &err), DDP_EINPUT);
    if (!strstr(err.text, where) || !strstr(err.text, what))
        fail_msg("'%s' names neither '%s' nor '%s'", err.text, where, what);
}

#define RUN(name, time, unit)                                                                      \
    "{\"name\": \"" name "\", \"run_name\": \"" name "\", \"run_type\": \"iteration\", "           \
    "\"real_time\": " time ", \"time_unit\": \"" unit "\"}"
#define AGGREGATE(name, kind, time)                                                                \
    "{\"name\": \"" name "_" kind "\", \"run_name\": \"" name "\", \"run_type\": \"aggregate\", "  \
    "\"aggregate_name\": \"" kind "\", \"real_time\": " time ", \"time_unit\": \"ns\"}"

static void test_gbench(void **state)
{
    struct ddp_result r;
    accept(DDP_FOREIGN_GBENCH,
           "{\"context\": {}, \"benchmarks\": [" RUN("b/8", "3", "us") "," RUN(
               "b/8", "1", "us") "," RUN("b/8", "2.5",
                                         "us") "," RUN("a", "7", "ms") "," AGGREGATE("b/8", "mean",
                                                                                     "9") "]}",
           &r);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.points[0].id, "b/8"); /* in the order of the document */
    assert_cell(&r, "b/8", 2500);
    assert_cell(&r, "a", 7e6);
    assert_string_equal(r.flaw, "");
    ddp_result_release(&r);
    accept(DDP_FOREIGN_GBENCH,
           "{\"benchmarks\": [" AGGREGATE("b", "mean", "9") "," AGGREGATE(
               "b", "median", "8") "," AGGREGATE("b", "stddev", "1") "]}",
           &r);
    assert_int_equal(r.count, 1);
    assert_cell(&r, "b", 8);
    ddp_result_release(&r);
    accept(DDP_FOREIGN_GBENCH,
           "{\"benchmarks\": [" RUN(
               "a", "7",
               "s") ", {\"name\": \"b\", \"run_type\": "
                    "\"iteration\", \"error_occurred\": true, \"error_message\": \"no file\"}]}",
           &r);
    assert_non_null(strstr(r.flaw, "benchmarks[1]: 'b' no file"));
    assert_false(r.wrong_data);
    ddp_result_release(&r);
    accept(DDP_FOREIGN_GBENCH, "{\"benchmarks\": []}", &r);
    assert_int_equal(r.count, 0);
    ddp_result_release(&r);
    (void)state;
}

static void test_action(void **state)
{
    static const char text[] =
        "[{\"name\": \"a\", \"unit\": \"ms\", \"value\": 4, \"extra\": null}, {\"name\": "
        "\"m\", \"unit\": \"MiB\", \"value\": 8}]";
    struct ddp_result r;
    accept(DDP_FOREIGN_ACTION_SMALLER, text, &r);
    assert_cell(&r, "a", 4e6);
    assert_cell(&r, "m", 8e3); /* no time: 8 in the columns for us */
    ddp_result_release(&r);
    accept(DDP_FOREIGN_ACTION_BIGGER, text, &r);
    assert_cell(&r, "m", 1e3 / 8); /* twice the value is half the time */
    ddp_result_release(&r);
    (void)state;
}

static void test_hyperfine(void **state)
{
    struct ddp_result r;
    accept(DDP_FOREIGN_HYPERFINE,
           "{\"results\": [{\"command\": \"./app 1\", \"mean\": 9, \"median\": 0.25}]}", &r);
    assert_int_equal(r.count, 1);
    assert_cell(&r, "./app 1", 0.25e9);
    ddp_result_release(&r);
    (void)state;
}

static void test_nccl_tests(void **state)
{
    struct ddp_result r;
    accept(
        DDP_FOREIGN_NCCL_TESTS,
        "# nThread 1 nGpus 8\nhost:1:2 [0] NCCL INFO Bootstrap\n"
        "# Collective test starting: all_reduce_perf\n"
        "#       size  count\n"
        "     1024   256   float    sum      -1    12.50    0.08    0.14      0    N/A  N/A  N/A "
        " N/A\n"
        "     2048   512   float    sum      -1    20.5    0.1    0.1      0    21    0.1  0.1 "
        " 0\r\n"
        "     1024   256   float    sum      -1    13.50    0.08    0.14      0    N/A  N/A  N/A "
        " N/A\n"
        "# all-gather, 2 ranks, algorithm ring, private memory\n"
        "     2048   512   float    22    0.1    0.1      0    23    0.1  0.1  N/A\n"
        "# Out of bounds values : 0 OK\n",
        &r);
    assert_int_equal(r.count, 5);
    assert_cell(&r, "all_reduce_perf: 1024 float sum -1 out-of-place", 13e3);
    assert_cell(&r, "all_reduce_perf: 2048 float sum -1 out-of-place", 20.5e3);
    assert_cell(&r, "all_reduce_perf: 2048 float sum -1 in-place", 21e3);
    assert_cell(&r, "all-gather, 2 ranks, algorithm ring, private memory: 2048 float in-place",
                23e3);
    assert_string_equal(r.flaw, "");
    ddp_result_release(&r);
    accept(DDP_FOREIGN_NCCL_TESTS, "8 2 float sum -1 1 1 1 0 2 1 1 3", &r);
    assert_true(r.wrong_data);
    assert_non_null(strstr(r.flaw, "line 1"));
    ddp_result_release(&r);
    (void)state;
}

static void test_osu(void **state)
{
    struct ddp_result r;
    accept(DDP_FOREIGN_OSU,
           "# OSU MPI Allreduce Latency Test v7.3\n# Datatype: MPI_INT.\n"
           "# Size       Avg Latency(us)   Min Latency(us)\n4        1.5    1\n8   2.5  2  Pass\n\n"
           "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n1000   500\n"
           "# OSU MPI Barrier Latency Test v7.3\n# Avg Latency(us)\n   0.75\n",
           &r);
    assert_int_equal(r.count, 4);
    assert_cell(&r, "MPI Allreduce Latency, Datatype: MPI_INT.: 4", 1500);
    assert_cell(&r, "MPI Allreduce Latency, Datatype: MPI_INT.: 8", 2500);
    assert_cell(&r, "MPI Bandwidth: 1000", 2000); /* 1000 bytes at 500 bytes per us */
    assert_cell(&r, "MPI Barrier Latency", 750);
    ddp_result_release(&r);
    accept(DDP_FOREIGN_OSU, "# Size  Latency (us)  Validation\n4  1.5  Fail\n", &r);
    assert_true(r.wrong_data);
    ddp_result_release(&r);
    (void)state;
}

static void test_errors(void **state)
{
    static const char zero[] = "# Size Latency (us)\n4 0\n";
    refuse(DDP_FOREIGN_GBENCH, "[]", "x", "benchmarks");
    refuse(DDP_FOREIGN_GBENCH, "no JSON", "x", "");
    refuse(DDP_FOREIGN_GBENCH, "{\"benchmarks\": [" RUN("a", "null", "us") "]}", "benchmarks[0]",
           "real_time");
    refuse(DDP_FOREIGN_GBENCH, "{\"benchmarks\": [" RUN("a", "-1", "us") "]}", "benchmarks[0]",
           "real_time");
    refuse(DDP_FOREIGN_GBENCH, "{\"benchmarks\": [" RUN("a", "1e999", "us") "]}", "benchmarks[0]",
           "real_time");
    refuse(DDP_FOREIGN_GBENCH, "{\"benchmarks\": [" RUN("a", "1", "h") "]}", "benchmarks[0]",
           "time_unit");
    refuse(DDP_FOREIGN_GBENCH, "{\"benchmarks\": [{\"name\": \"a\", \"real_time\": 1}]}",
           "benchmarks[0]", "run_type");
    refuse(DDP_FOREIGN_ACTION_SMALLER, "{}", "x", "list");
    refuse(DDP_FOREIGN_ACTION_SMALLER, "[{\"name\": \"a\", \"unit\": \"us\", \"value\": \"1\"}]",
           "[0]", "value");
    refuse(DDP_FOREIGN_ACTION_SMALLER,
           "[{\"name\": \"::error::\", \"unit\": \"us\", \"value\": 1}]", "[0]", "name");
    refuse(DDP_FOREIGN_ACTION_SMALLER, "[{\"name\": \"\", \"unit\": \"us\", \"value\": 1}]", "[0]",
           "name");
    refuse(DDP_FOREIGN_ACTION_BIGGER, "[{\"name\": \"a\", \"unit\": \"GB/s\", \"value\": 0}]",
           "[0]", "value");
    refuse(DDP_FOREIGN_HYPERFINE, "{\"results\": [{\"command\": \"a\"}]}", "results[0]", "median");
    refuse(DDP_FOREIGN_NCCL_TESTS, "#\n8 2 float sum\n", "line 2", "4 columns");
    refuse(DDP_FOREIGN_NCCL_TESTS, "8 2 float sum -1 x 1 1 0 2 1 1 0", "line 1", "'x'");
    refuse(DDP_FOREIGN_OSU, "4 1.5\n", "line 1", "columns");
    refuse(DDP_FOREIGN_OSU, zero, "line 2", "positive");
    refuse(DDP_FOREIGN_OSU, "# Size Latency (us)\n4\n", "line 2", "row");
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_result r;
    assert_int_equal(ddp_foreign_parse(DDP_FOREIGN_OSU, "# a\0b", 5, "x", NULL, &r, &err),
                     DDP_EINPUT);
    assert_int_equal(ddp_foreign_read(DDP_FOREIGN_OSU, "/nonexistent/x", NULL, &r, &err),
                     DDP_ENOINPUT);
    (void)state;
}

static void test_limits(void **state)
{
    char name[300], text[700], *lines = malloc(32 + 16 * (size_t)(DDP_RESULT_MAX_POINTS + 1));
    size_t n = 0;
    assert_non_null(lines);
    memset(name, 'n', 250);
    name[250] = '\0';
    snprintf(text, sizeof text, "[{\"name\": \"%s\", \"unit\": \"us\", \"value\": 1}]", name);
    refuse(DDP_FOREIGN_ACTION_SMALLER, text, "[0]", "192 bytes");
    n += (size_t)sprintf(lines, "# Size Latency (us)\n");
    for (int i = 0; i <= DDP_RESULT_MAX_POINTS; i++)
        n += (size_t)sprintf(lines + n, "%d 1\n", i);
    refuse(DDP_FOREIGN_OSU, lines, "100000", "values");
    memset(lines, '1', 2000);
    lines[0] = '4';
    lines[1] = ' ';
    lines[2000] = '\0';
    refuse(DDP_FOREIGN_OSU, lines, "line 1", "longer than 1023");
    free(lines);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gbench),    cmocka_unit_test(test_action),
        cmocka_unit_test(test_hyperfine), cmocka_unit_test(test_nccl_tests),
        cmocka_unit_test(test_osu),       cmocka_unit_test(test_errors),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
