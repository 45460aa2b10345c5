/* The split of the collectives whose parts may have different sizes: the argument of --split, files
 * of weights, and tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bench/split_table.h"
#include "names.h"

#define RANKS_MAX 9

/* Returns the split of the argument, which must be right. */
static struct ddp_split parsed(const char *text)
{
    struct ddp_split split;
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_split_parse(text, &split, &err) != 0)
        fail_msg("'%s': %s", text, err.text);
    return split;
}

static void test_argument(void **state)
{
    static const char *const wrong[] = {"zipf",      "zipf:",     "zipf:x",   "zipf:-1",
                                        "zipf:1x",   "zipf:1e99", "zipf:nan", "zipf:inf",
                                        "zipf: 1.2", "zipf:65",   "zipf:0x1"};
    (void)state;
    assert_int_equal(parsed("even").kind, DDP_SPLIT_EVEN);
    assert_string_equal(parsed("even").name, "even");
    assert_int_equal(parsed("zipf:1.50").kind, DDP_SPLIT_ZIPF);
    assert_string_equal(parsed("zipf:1.50").name, "zipf:1.5");
    assert_true(parsed("zipf:0").exponent == 0);
    assert_int_equal(parsed("zipf.txt").kind, DDP_SPLIT_FILE);
    for (size_t i = 0; i < DDP_COUNT_OF(wrong); i++) {
        struct ddp_split split;
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(ddp_split_parse(wrong[i], &split, &err), DDP_EUSAGE);
        assert_non_null(strstr(err.text, wrong[i]));
    }
}

/* Writes a file with the text [bytes], and loads it. */
static int load_for(enum ddp_coll coll, const char *text, size_t bytes, struct ddp_split *split,
                    struct ddp_err *err)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/split-%ld tokens.txt", (long)getpid());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    fclose(f);
    *split = parsed(path);
    const int rc = ddp_split_load(split, coll, err);
    unlink(path);
    return rc;
}

static int load(const char *text, size_t bytes, struct ddp_split *split, struct ddp_err *err)
{
    return load_for(DDP_ALL_TO_ALL_V, text, bytes, split, err);
}

static void loads(const char *text, int rows, const double *weights)
{
    struct ddp_split split;
    struct ddp_err err = DDP_ERR_INIT;
    if (load(text, strlen(text), &split, &err) != 0)
        fail_msg("'%s': %s", text, err.text);
    assert_int_equal(split.columns, rows);
    for (int i = 0; i < rows * rows; i++)
        assert_true(split.weight[i] == weights[i]);
    ddp_split_release(&split);
}

/* The error must name the subjects. */
static void refuses(const char *text, const char *subjects)
{
    struct ddp_split split;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(load(text, strlen(text), &split, &err), DDP_EINPUT);
    if (!text_names(err.text, subjects))
        fail_msg("'%s': %s", text, err.text);
    assert_null(split.weight);
}

static void test_files(void **state)
{
    static const double four[] = {1, 2, 0.5, 4e3}, one[] = {7}, zeros[] = {0, 0, 0, 1};
    (void)state;
    loads("1 2\n0.5 4e3\n", 2, four);
    loads("# rows\n\n 1,2 # first\r\n\t0.5, 4000", 2, four);
    loads("7", 1, one);
    loads("0 0\n0 1\n", 2, zeros);
    refuses("", "no numbers");
    refuses("# nothing\n\n", "no numbers");
    refuses("0 0\n0 0\n", "0");
    refuses("1 2\n3 -4\n", "line 2|\'-4'");
    refuses("1 2\n\n3 x4\n", "line 3|\'x4'");
    refuses("1 2\n3 0x4\n", "line 2|\'0x4'");
    refuses("1 nan\n", "line 1|\'nan'");
    refuses("1 1e400\n", "line 1|\'1e400'");
    refuses("1 1e16\n", "line 1|\'1e16'");
    refuses("1 2\n3\n", "line 2|1|line 1|2");
    refuses("1 2\n3 4 5\n", "line 2|3|line 1|2");
    refuses("1 2\n", "1|2");
    refuses("1 2\n3 4\n5 6\n", "line 3");
}

static void test_bad_files(void **state)
{
    static const char binary[] = "1 2\n3\0 4\n";
    struct ddp_split split = parsed("/nonexistent/tokens.txt");
    struct ddp_err err = DDP_ERR_INIT, other = DDP_ERR_INIT, third = DDP_ERR_INIT;
    (void)state;
    assert_int_equal(ddp_split_load(&split, DDP_ALL_TO_ALL_V, &err), DDP_ENOINPUT);
    assert_non_null(strstr(err.text, "/nonexistent/tokens.txt"));
    assert_int_equal(load(binary, sizeof binary - 1, &split, &other), DDP_EINPUT);

    char *wide = calloc(1, 2 * (DDP_SPLIT_ROWS_MAX + 1) + 1);
    assert_non_null(wide);
    for (int i = 0; i <= DDP_SPLIT_ROWS_MAX; i++)
        memcpy(wide + 2L * i, "1 ", 2);
    assert_int_equal(load(wide, strlen(wide), &split, &third), DDP_EINPUT);
    assert_non_null(strstr(third.text, "4097"));
    free(wide);
}

/* The name has no folder and no blank. It depends on the weights and not on comments. */
static void test_names(void **state)
{
    struct ddp_split a, b, c;
    struct ddp_err err = DDP_ERR_INIT;
    (void)state;
    assert_int_equal(load("1 2\n3 4\n", 8, &a, &err), 0);
    assert_int_equal(load("1,2\n3,4 #\n", 10, &b, &err), 0);
    assert_int_equal(load("1 2\n3 5\n", 8, &c, &err), 0);
    assert_null(strpbrk(a.name, "/ "));
    assert_non_null(strstr(a.name, "_tokens"));
    assert_string_equal(a.name, b.name);
    assert_string_not_equal(a.name, c.name);
    assert_int_equal(ddp_split_check_ranks(&a, 2, &err), 0);
    assert_int_equal(ddp_split_check_ranks(&a, 3, &err), DDP_EUSAGE);
    ddp_split_release(&a);
    ddp_split_release(&b);
    ddp_split_release(&c);
}

static size_t row_sum(const size_t *table, int ranks, int row)
{
    size_t sum = 0;
    for (int to = 0; to < ranks; to++)
        sum += table[row * ranks + to];
    return sum;
}

static void test_even(void **state)
{
    size_t table[RANKS_MAX * RANKS_MAX];
    const struct ddp_split even = parsed("even"), none = {.kind = DDP_SPLIT_EVEN};
    (void)state;
    for (int n = 1; n <= RANKS_MAX; n++)
        for (size_t count = 0; count < 2000; count = count * 3 + 1) {
            ddp_split_fill(n % 2 ? &even : &none, DDP_ALL_TO_ALL_V, 1, n, count, table);
            for (int i = 0; i < n * n; i++)
                assert_int_equal(table[i], count);
        }
}

static int larger_first(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Each row of a zipf split has the shares 1/k^S in some order, and the orders differ. */
static void test_zipf(void **state)
{
    enum { N = 4, COUNT = 12500 }; /* the sum 1 + 1/2 + 1/3 + 1/4 of a row is 25/12 */
    static const size_t shares[N] = {24000, 12000, 8000, 6000};
    size_t table[N * N], again[N * N];
    const struct ddp_split split = parsed("zipf:1");
    int favourites = 0;
    (void)state;
    ddp_split_fill(&split, DDP_ALL_TO_ALL_V, 7, N, COUNT, table);
    ddp_split_fill(&split, DDP_ALL_TO_ALL_V, 7, N, COUNT, again);
    assert_memory_equal(table, again, sizeof table);
    for (int seed = 1; seed <= 20; seed++) {
        ddp_split_fill(&split, DDP_ALL_TO_ALL_V, (uint64_t)seed, N, COUNT, table);
        for (int row = 0; row < N; row++) {
            size_t *parts = table + row * N;
            assert_int_equal(row_sum(table, N, row), N * COUNT);
            for (int to = 0; to < N; to++)
                favourites |= parts[to] + 1 >= shares[0] ? 1 << to : 0;
            qsort(parts, N, sizeof *parts, larger_first);
            for (int k = 0; k < N; k++)
                assert_in_range(parts[k], shares[k] - 1, shares[k] + 1);
        }
    }
    assert_int_equal(favourites, (1 << N) - 1);
}

/* A file's rows keep their relative sums, and empty parts stay empty. */
static void test_scaling(void **state)
{
    static const char text[] = "1 0 0\n2 1 3\n0 0 5\n";
    size_t table[9];
    struct ddp_split split;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_split_load load_of;
    (void)state;
    assert_int_equal(load(text, sizeof text - 1, &split, &err), 0);
    for (size_t count = 0; count < 5000; count = count * 2 + 1) {
        ddp_split_fill(&split, DDP_ALL_TO_ALL_V, 1, 3, count, table);
        assert_int_equal(row_sum(table, 3, 0) + row_sum(table, 3, 1) + row_sum(table, 3, 2),
                         9 * count);
        assert_int_equal(table[1] + table[2] + table[6] + table[7], 0);
    }
    ddp_split_fill(&split, DDP_ALL_TO_ALL_V, 1, 3, 4,
                   table); /* 36 elements for weights with the sum 12 */
    const size_t expected[9] = {3, 0, 0, 6, 3, 9, 0, 0, 15};
    assert_memory_equal(table, expected, sizeof table);
    ddp_split_loads(DDP_ALL_TO_ALL_V, table, 3, &load_of);
    assert_int_equal(load_of.busiest, 15); /* rank 1 sends 6 + 9 */
    assert_int_equal(load_of.largest, 24); /* rank 2 receives 9 + 15 */
    assert_true(load_of.mean == 5);
    ddp_split_release(&split);
}

/* The split of an all-gather-v and a reduce-scatter-v is one row. */
static void test_parts(void **state)
{
    static const size_t expected[3] = {12, 0, 24};
    size_t parts[RANKS_MAX];
    struct ddp_split split, two_rows;
    struct ddp_err err = DDP_ERR_INIT, other = DDP_ERR_INIT;
    struct ddp_split_load load_of, load_of_sum;
    (void)state;
    assert_int_equal(load_for(DDP_ALL_GATHER_V, "1 0 2\n", 6, &split, &err), 0);
    assert_int_equal(ddp_split_check_ranks(&split, 3, &err), 0);
    ddp_split_fill(&split, DDP_ALL_GATHER_V, 1, 3, 12, parts);
    assert_memory_equal(parts, expected, sizeof expected);
    ddp_split_loads(DDP_ALL_GATHER_V, parts, 3, &load_of);
    assert_int_equal(load_of.busiest, 36); /* rank 1 receives both parts */
    assert_int_equal(load_of.largest, 36);
    assert_true(load_of.mean == 24);
    /* In a reduce-scatter-v, rank 1 sends its inputs of both parts. */
    ddp_split_fill(&split, DDP_REDUCE_SCATTER_V, 1, 3, 12, parts);
    assert_memory_equal(parts, expected, sizeof expected);
    ddp_split_loads(DDP_REDUCE_SCATTER_V, parts, 3, &load_of_sum);
    assert_memory_equal(&load_of_sum, &load_of, sizeof load_of);
    ddp_split_release(&split);
    assert_int_equal(load_for(DDP_ALL_GATHER_V, "1 2\n3 4\n", 8, &two_rows, &other), DDP_EINPUT);
    assert_non_null(strstr(other.text, "line 2"));
    for (int n = 1; n <= RANKS_MAX; n++) {
        size_t sum = 0;
        split = parsed("zipf:1.5");
        ddp_split_fill(&split, DDP_ALL_GATHER_V, 1, n, 1001, parts);
        for (int r = 0; r < n; r++)
            sum += parts[r];
        assert_int_equal(sum, n * 1001);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_argument),  cmocka_unit_test(test_files),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_names),
        cmocka_unit_test(test_even),      cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_scaling),   cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests_name("split table", tests, NULL, NULL);
}
