/* The table on a terminal: which columns it shows, and which text a terminal shows after each piece
 * of it. The terminal is emulated, with lines that leave the screen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>

#include "base/mem.h"
#include "record/point_keys.h"
#include "report_sample.h"
#include "report/terminal_table.h"

#define LINES   200
#define COLUMNS 256

/* An emulated terminal. Lines before count - rows have left the screen. */
struct emulator {
    struct ddp_terminal terminal;
    char lines[LINES][COLUMNS];
    int count, row, column;
};

static void start(struct emulator *e, int columns, int rows)
{
    memset(e, 0, sizeof *e);
    e->terminal = (struct ddp_terminal){.columns = columns, .rows = rows, .moves = true};
    e->count = 1;
}

/* Shows text and empties the buffer. */
static void show(struct emulator *e, struct ddp_strbuf *text)
{
    assert_false(text->failed);
    for (const char *c = text->text ? text->text : ""; *c; c++) {
        if (*c == '\n') {
            e->row++;
            e->column = 0;
            e->count = DDP_MAX(e->count, e->row + 1);
            assert_true(e->count < LINES);
        } else if (*c == '\r') {
            e->column = 0;
        } else if (*c == '\033') {
            const int n = atoi(c + 2);
            c += 2 + strspn(c + 2, "0123456789;");
            if (*c == 'A') {
                assert_true(e->row - n >= DDP_MAX(0, e->count - e->terminal.rows));
                e->row -= n;
            } else if (*c == 'J') {
                for (int i = e->row; i < e->count; i++)
                    memset(e->lines[i] + (i == e->row ? e->column : 0), 0,
                           COLUMNS - (size_t)(i == e->row ? e->column : 0));
                e->count = e->row + 1;
            } else {
                assert_int_equal(*c, 'm');
            }
        } else {
            if (e->column == e->terminal.columns) { /* the terminal breaks the line */
                e->row++;
                e->column = 0;
                e->count = DDP_MAX(e->count, e->row + 1);
            }
            e->lines[e->row][e->column++] = *c;
        }
    }
    ddp_strbuf_release(text);
}

/* Returns the first words of the lines from `from` on, for example "size 1 2". */
static const char *first_words(const struct emulator *e, int from, char out[1024])
{
    out[0] = '\0';
    for (int i = from; i < e->count; i++) {
        const char *word = e->lines[i] + strspn(e->lines[i], " ");
        ddp_text_append(out, 1024, "%s%.*s", i > from ? " " : "", (int)strcspn(word, " "), word);
    }
    return out;
}

/* The largest line must fit. */
static void assert_fits(const struct emulator *e)
{
    for (int i = 0; i < e->count; i++)
        assert_true((int)strlen(e->lines[i]) <= e->terminal.columns);
}

static struct ddp_point_spec spec_of(int place)
{
    return (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                   .backend = "shm",
                                   .algorithm = "auto",
                                   .ranks = 2,
                                   .requested_bytes = (uint64_t)place + 1,
                                   .size_bytes = (uint64_t)place + 1,
                                   .count = 1,
                                   .compress = "none"};
}

/* Plans `count` points of place + 1 bytes. */
static void plan(struct ddp_record *r, int count)
{
    make_record(r);
    r->hosts[0].load = 0; /* the points are not doubtful */
    for (int i = 0; i < count; i++) {
        const struct ddp_point_spec spec = spec_of(i);
        ddp_point_range_add(&r->planned[DDP_POINT_DENSE], &spec);
    }
}

static void measure(struct ddp_record *r, int place, int of)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec = spec_of(place);
    p.place = place;
    p.of = of;
    strcpy(p.algorithm_used, "direct");
    p.time_ns.median = 1234;
    p.time_ns.ci95_lo = 1200;
    p.time_ns.ci95_hi = 1300;
    p.check_elements = 1;
    p.check_wrong = 0;
    assert_int_equal(ddp_record_add_point(r, &p, NULL, &err), 0);
}

/* Measures points in the given order on a terminal with enough rows. After each point, the rows of
 * all known points are in the order of the plan, without a duplicate. */
static void test_rows_are_in_order_after_each_point(void **state)
{
    static const int order[] = {3, 1, 4, 0, 2};
    static const char *const expected[] = {"allreduce, size 4 ", "allreduce, size 2 4 ",
                                           "allreduce, size 2 4 5 ", "allreduce, size 1 2 4 5 ",
                                           "allreduce, size 1 2 3 4 5 "};
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    struct ddp_terminal_table t;
    struct emulator e;
    struct ddp_record r;
    char words[1024];
    (void)state;
    plan(&r, 5);
    start(&e, 80, 24);
    ddp_terminal_table_init(&t, false);
    ddp_terminal_table_begin(&t, &e.terminal, &r, &out);
    for (int i = 0; i < 5; i++) {
        measure(&r, order[i], 5);
        ddp_terminal_table_point(&t, &e.terminal, &r, &out);
        show(&e, &out);
        assert_string_equal(first_words(&e, 0, words), expected[i]);
        assert_int_equal(e.column, 0);
    }
    r.status = DDP_STATUS_COMPLETE;
    ddp_terminal_table_end(&t, &e.terminal, &r, &out);
    show(&e, &out);
    assert_string_equal(first_words(&e, 0, words),
                        "allreduce, size 1 2 3 4 5 best verified: more ");
    assert_fits(&e);
    ddp_terminal_table_release(&t);
    ddp_record_release(&r);
}

/* Measures 60 points on a terminal of 10 rows. The newest point is shown, no line that has left the
 * screen is written again (see show), and in the end all rows are there in order. */
static void test_rows_that_have_left_the_screen_stay(void **state)
{
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    struct ddp_terminal_table t;
    struct emulator e;
    struct ddp_record r;
    char words[1024], want[1024] = "allreduce, size", newest[16];
    (void)state;
    plan(&r, 60);
    start(&e, 80, 10);
    ddp_terminal_table_init(&t, false);
    ddp_terminal_table_begin(&t, &e.terminal, &r, &out);
    for (int i = 0; i < 60; i++) {
        const int place = i * 37 % 60;
        measure(&r, place, 60);
        ddp_terminal_table_point(&t, &e.terminal, &r, &out);
        show(&e, &out);
        snprintf(newest, sizeof newest, " %d ", place + 1);
        first_words(&e, 0, words);
        ddp_text_append(words, sizeof words, " ");
        if (!strstr(words, newest) && strncmp(words, newest + 1, strlen(newest) - 1) != 0)
            fail_msg("no row%sin %s", newest, words);
        ddp_text_append(want, sizeof want, " %d", i + 1);
    }
    ddp_text_append(want, sizeof want, " best verified: more ");
    r.status = DDP_STATUS_COMPLETE;
    ddp_terminal_table_end(&t, &e.terminal, &r, &out);
    show(&e, &out);
    assert_string_equal(first_words(&e, 0, words), want);
    ddp_terminal_table_release(&t);
    ddp_record_release(&r);
}

/* A message is written between two points. It stays where it is, below the finished rows. */
static void test_a_message_stays(void **state)
{
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    struct ddp_terminal_table t;
    struct emulator e;
    struct ddp_record r;
    char words[1024];
    (void)state;
    plan(&r, 4);
    start(&e, 80, 24);
    ddp_terminal_table_init(&t, false);
    ddp_terminal_table_begin(&t, &e.terminal, &r, &out);
    measure(&r, 0, 4);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    measure(&r, 3, 4);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    ddp_terminal_table_pause(&t, &e.terminal, &out);
    ddp_strbuf_add(&out, "warning\n");
    show(&e, &out);
    assert_string_equal(first_words(&e, 0, words), "allreduce, size 1 warning ");
    measure(&r, 1, 4);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    show(&e, &out);
    assert_string_equal(first_words(&e, 0, words), "allreduce, size 1 warning 2 4 ");
    ddp_terminal_table_release(&t);
    ddp_record_release(&r);
}

/* The terminal becomes narrower than the lines. The broken lines stay, and a new table with fewer
 * columns follows. When it becomes wider, nothing is broken. */
static void test_a_new_width_begins_a_new_table(void **state)
{
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    struct ddp_terminal_table t;
    struct emulator e;
    struct ddp_record r;
    char words[1024];
    (void)state;
    plan(&r, 4);
    start(&e, 80, 24);
    ddp_terminal_table_init(&t, false);
    ddp_terminal_table_begin(&t, &e.terminal, &r, &out);
    measure(&r, 2, 4);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    show(&e, &out);
    const int before = e.count;
    e.terminal.columns = 40;
    measure(&r, 0, 4);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    show(&e, &out);
    assert_string_equal(first_words(&e, before - 1, words), "allreduce, place, size 1 3 ");
    for (int i = before - 1; i < e.count; i++)
        assert_true(strlen(e.lines[i]) <= 40);
    e.terminal.columns = 100;
    measure(&r, 1, 4);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    show(&e, &out);
    assert_string_equal(first_words(&e, before - 1, words),
                        "allreduce, place, size 1 allreduce, size 2 3 ");
    ddp_terminal_table_release(&t);
    ddp_record_release(&r);
}

/* A terminal that obeys no escape codes gets each row once, as soon as it is measured. */
static void test_a_dumb_terminal_gets_each_row_once(void **state)
{
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    struct ddp_terminal_table t;
    struct emulator e;
    struct ddp_record r;
    char words[1024];
    (void)state;
    plan(&r, 3);
    start(&e, 80, 24);
    e.terminal.moves = false;
    ddp_terminal_table_init(&t, false);
    ddp_terminal_table_begin(&t, &e.terminal, &r, &out);
    measure(&r, 2, 3);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    measure(&r, 0, 3);
    ddp_terminal_table_point(&t, &e.terminal, &r, &out);
    r.status = DDP_STATUS_PARTIAL;
    ddp_terminal_table_end(&t, &e.terminal, &r, &out);
    assert_null(strstr(out.text, "\033[A"));
    show(&e, &out);
    assert_string_equal(first_words(&e, 0, words), "allreduce, index 3 1 best verified: partial: ");
    ddp_terminal_table_release(&t);
    ddp_record_release(&r);
}

/* Columns that do not fit are left out, the least important ones first. */
static void test_columns_fit(void **state)
{
    static const struct {
        int width, room;
        const char *heads;
    } cases[] = {{40, 18, "first  second  third  last\n"},
                 {26, 4, "first  second  third  last\n"},
                 {25, 11, "first  third  last\n"},
                 {18, 4, "first  third  last\n"},
                 {17, 10, "first  last\n"},
                 {5, 4, "first  last\n"}};
    (void)state;
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_column columns[] = {{"first", 3, 0, false, false},
                                       {"second", 6, 2, false, false},
                                       {"third", 1, 1, true, false},
                                       {"last", 2, 0, true, false}};
        struct ddp_strbuf out = DDP_STRBUF_INIT;
        const int room = ddp_columns_fit(columns, 4, cases[i].width);
        ddp_columns_head(columns, 4, &out);
        char plain[100];
        snprintf(plain, sizeof plain, "%.*s\n", (int)strcspn(out.text + 4, "\033"), out.text + 4);
        assert_string_equal(plain, cases[i].heads);
        assert_int_equal(room, cases[i].room);
        ddp_strbuf_release(&out);
    }
}

static void test_numbers_have_units(void **state)
{
    struct ddp_column_text cell;
    (void)state;
#define WRITES(function, value, expected)                                                          \
    do {                                                                                           \
        function(&cell, value);                                                                    \
        assert_string_equal(cell.text, expected);                                                  \
    } while (0)
    WRITES(ddp_column_time, 9.994, "9.99 ns");
    WRITES(ddp_column_time, 9.996, "10.0 ns");
    WRITES(ddp_column_time, 999.4, "999 ns");
    WRITES(ddp_column_time, 999.6, "1.00 us");
    WRITES(ddp_column_time, 2.41e3, "2.41 us");
    WRITES(ddp_column_time, 59.9e9, "59.9 s");
    WRITES(ddp_column_time, 192e9, "3m12s");
    WRITES(ddp_column_time, NAN, "-");
    WRITES(ddp_column_rate, 22.6, "22.6 GB/s");
    WRITES(ddp_column_rate, 0.9996, "1.00 GB/s");
    WRITES(ddp_column_rate, 0.85, "850 MB/s");
    WRITES(ddp_column_rate, 0, "0.00 kB/s");
    WRITES(ddp_column_bytes, 4, "4 B");
    WRITES(ddp_column_bytes, 20971.52, "20.5 KiB");
    WRITES(ddp_column_bytes, 1023.9 * 1024, "1.00 MiB");
    WRITES(ddp_column_bytes, 64 * 0x1p20, "64 MiB");
    WRITES(ddp_column_percent, 0.018, "1.8 %");
    WRITES(ddp_column_percent, 1.27, "127 %");
    WRITES(ddp_column_factor, 1.0926, "1.09");
    WRITES(ddp_column_factor, INFINITY, "inf");
#undef WRITES
}

/* Lines are broken at spaces, but not in commands and not in long words. */
static void test_text_is_broken_at_spaces(void **state)
{
    static const struct {
        const char *text;
        int used, width;
        const char *lines;
    } cases[] = {
        {"one two three", 0, 9, "one two\n  three"},
        {"one two three", 0, 13, "one two three"},
        {"one two three", 5, 9, "one\n  two\n  three"},
        {"one two three", 0, 0, "one two three"},
        {"a verylongword b", 0, 5, "a\n  verylongword\n  b"},
        {"see `ddpbench help` or", 0, 15, "see\n  `ddpbench help`\n  or"},
        {"a ` b", 0, 3, "a `\n  b"},
        {"  indented text", 0, 12, "  indented\n  text"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9 \xc3\xa9", 0, 5, "\xc3\xa9\xc3\xa9\xc3\xa9 \xc3\xa9"},
        {"", 0, 5, ""},
    };
    (void)state;
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_strbuf out = DDP_STRBUF_INIT;
        ddp_strbuf_wrap(&out, cases[i].text, cases[i].used, cases[i].width, 2);
        assert_string_equal(out.text ? out.text : "", cases[i].lines);
        ddp_strbuf_release(&out);
    }
}

/* The id of a point is read back into the same spec. Other texts are refused. */
static void test_ids_are_read(void **state)
{
    static const char *const bad[] = {
        "",
        "wall",
        "allreduce/shm/auto/f32/sum/r0/in/registered/n2/8/none",
        "allreduce/shm/auto/f99/sum/r0/in/registered/n2/8/none/0",
        "allreduce/shm/auto/f32/sum/r0/in/registered/n2/8/none/0/other",
        "allreduce/shm/auto/f32/sum/r0/in/registered/n2/8/none/0/g2x",
        "BM_Reduce/float/1024"};
    struct ddp_point_spec spec = spec_of(4095), read;
    char id[192], again[192];
    (void)state;
    spec.groups = 4;
    spec.graph = true;
    spec.op = DDP_AVG;
    spec.placement = DDP_OUT_OF_PLACE;
    spec.partial = 3;
    strcpy(spec.compress, "topk:0.01");
    ddp_point_id(&spec, id, sizeof id);
    assert_true(ddp_point_id_parse(id, &read));
    ddp_point_id(&read, again, sizeof again);
    assert_string_equal(id, again);
    strcpy(spec.group_list, "0,1:2");
    ddp_point_id(&spec, id, sizeof id);
    assert_true(ddp_point_id_parse(id, &read));
    assert_string_equal(read.group_list, "0,1:2");
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++)
        assert_false(ddp_point_id_parse(bad[i], &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_in_order_after_each_point),
        cmocka_unit_test(test_rows_that_have_left_the_screen_stay),
        cmocka_unit_test(test_a_message_stays),
        cmocka_unit_test(test_a_new_width_begins_a_new_table),
        cmocka_unit_test(test_a_dumb_terminal_gets_each_row_once),
        cmocka_unit_test(test_columns_fit),
        cmocka_unit_test(test_numbers_have_units),
        cmocka_unit_test(test_text_is_broken_at_spaces),
        cmocka_unit_test(test_ids_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
