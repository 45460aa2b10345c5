/* Plots as data: values and ticks of axes, and how cells of several sources become groups and
 * series.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "record/quality.h"
#include "report/plot.h"
#include "report/plot_svg.h"
#include "report/plot_terminal.h"
#include "report/screen.h"

static struct ddp_err err;

static struct ddp_plot plot_of(const double *x, const double *y, size_t n, bool log)
{
    struct ddp_plot plot = {.x = {DDP_QUANTITY_SIZE, true, "size"},
                            .y = {DDP_QUANTITY_NUMBER, log, "y"}};
    assert_non_null(ddp_plot_add_series(&plot, "s", 0, 0, &err));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(
            ddp_plot_add_value(&plot, (struct ddp_plot_value){x[i], y[i], NAN, NAN, false}, &err),
            0);
    return plot;
}

/* The ticks of the y axis as text, separated by blanks. */
static void y_ticks(double low, double high, bool log, char *out, size_t bytes)
{
    const double x[] = {8, 1 << 20}, y[] = {low, high};
    struct ddp_plot plot = plot_of(x, y, 2, log);
    struct ddp_plot_scale scale;
    char text[24];
    ddp_plot_scale(&plot, false, 6, &scale);
    out[0] = '\0';
    for (int i = 0; i < scale.count; i++) {
        ddp_quantity_tick(DDP_QUANTITY_NUMBER, scale.ticks[i], text, sizeof text);
        snprintf(out + strlen(out), bytes - strlen(out), "%s%s", i ? " " : "", text);
        assert_true(scale.ticks[i] >= scale.low * (1 - 1e-9) &&
                    scale.ticks[i] <= scale.high * (1 + 1e-9));
    }
    assert_true(scale.low <= low && scale.high >= high && scale.count >= 2);
    ddp_plot_release(&plot);
}

static void test_axes_have_round_ticks(void **state)
{
    static const struct {
        double low, high;
        bool log;
        const char *ticks;
    } cases[] = {
        {0.02, 60, true, "0.1 1 10"},
        {1, 12, true, "1 2 5 10"},
        {0.9, 1.15, true, "0.9 0.95 1 1.05 1.1 1.15"},
        {1e-5, 1e6, true, "0.0001 0.01 1 100 10000 1e+06"},
        {0, 34, false, "0 10 20 30"},
        {81.3, 89.4, false, "82 84 86 88 90"},
    };
    char text[200];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        y_ticks(cases[i].low, cases[i].high, cases[i].log, text, sizeof text);
        assert_string_equal(text, cases[i].ticks);
    }
}

static void test_sizes_have_ticks_at_powers_of_two(void **state)
{
    const double x[] = {8, 64 << 20}, y[] = {1, 2};
    struct ddp_plot plot = plot_of(x, y, 2, true);
    struct ddp_plot_scale scale;
    char text[24];
    (void)state;
    ddp_plot_scale(&plot, true, 6, &scale);
    assert_int_equal(scale.count, 6);
    ddp_quantity_tick(DDP_QUANTITY_SIZE, scale.ticks[1], text, sizeof text);
    assert_string_equal(text, "256 B");
    assert_true(fabs(ddp_plot_position(&scale, scale.low)) < 1e-12);
    assert_true(fabs(ddp_plot_position(&scale, scale.high) - 1) < 1e-12);
    assert_true(fabs(ddp_plot_position(&scale, sqrt(scale.low * scale.high)) - 0.5) < 1e-12);
    ddp_plot_release(&plot);
}

static void test_a_single_value_has_a_scale(void **state)
{
    static const double values[] = {0, 1e-9, 1, 7e12, -3};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct ddp_plot plot = plot_of(&(double){64}, &values[i], 1, false);
        struct ddp_plot_scale scale;
        ddp_plot_scale(&plot, false, 6, &scale);
        assert_true(scale.low < scale.high && scale.low <= values[i] && scale.high >= values[i]);
        assert_false(ddp_plot_is_useful(&plot));
        ddp_plot_release(&plot);
    }
}

static void test_values_without_a_place_are_left_out(void **state)
{
    const double x[] = {0, 8, 16, NAN, INFINITY}, y[] = {1, 0, 2, 3, 4};
    struct ddp_plot plot = plot_of(x, y, 5, true);
    (void)state;
    assert_int_equal(ddp_plot_values(&plot), 1);
    assert_non_null(ddp_plot_add_series(&plot, "empty", 1, 1, &err));
    ddp_plot_finish(&plot);
    assert_int_equal(plot.count, 1);
    ddp_plot_release(&plot);
}

static void test_quantities(void **state)
{
    static const struct {
        enum ddp_quantity quantity;
        double value;
        const char *text;
    } cases[] = {
        {DDP_QUANTITY_SIZE, 65536, "64 KiB"},     {DDP_QUANTITY_TRAFFIC, 1.5e6, "1.5 MB"},
        {DDP_QUANTITY_NS, 2410, "2.41 us"},       {DDP_QUANTITY_NS, 0, "0 s"},
        {DDP_QUANTITY_SECONDS, 12.5, "12.5 s"},   {DDP_QUANTITY_GBPS, 22.6, "22.6"},
        {DDP_QUANTITY_NUMBER, 1.5, "1.50"},       {DDP_QUANTITY_NUMBER, 999.7, "1000"},
        {DDP_QUANTITY_NUMBER, 0.25, "0.250"},     {DDP_QUANTITY_NUMBER, 123456, "123456"},
        {DDP_QUANTITY_FRACTION, 0.893, "89.3 %"}, {DDP_QUANTITY_COUNT, 16384, "16384"},
        {DDP_QUANTITY_NUMBER, NAN, "-"},          {DDP_QUANTITY_SIZE, INFINITY, "-"},
    };
    char text[24];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ddp_quantity_text(cases[i].quantity, cases[i].value, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

/* Draws a plot, and returns its line [index] without the newline. */
static const char *line_of(const struct ddp_plot *plot, const struct ddp_plot_look *look, int index,
                           char out[512])
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_plot_text(plot, look, &text);
    assert_false(text.failed);
    const char *line = text.text;
    for (; index > 0; index--) {
        line = strchr(line, '\n') + 1;
        assert_true(*line != '\0');
    }
    snprintf(out, 512, "%.*s", (int)strcspn(line, "\n"), line);
    ddp_strbuf_release(&text);
    return out;
}

static void test_values_are_drawn_at_their_places(void **state)
{
    /* The scale leaves 4 % of room, so the values have the positions 0.04, 0.5 and 0.96. */
    const double x[] = {1, 1024, 1 << 20}, y[] = {1, 1000, 1e6};
    const struct ddp_plot_look ascii = {.columns = 60, .rows = 22};
    const struct ddp_plot_look braille = {.columns = 60, .rows = 22, .utf8 = true};
    struct ddp_plot plot = plot_of(x, y, 3, true);
    char text[512];
    (void)state;
    plot.series[0].color = -1; /* no escape codes */
    plot.series[0].values[1].low = 20;
    plot.series[0].values[1].high = 50000;
    /* 22 rows are the title, the label, 16 rows, the axis, its labels, the legend and the cursor.
     */
    assert_string_equal(line_of(&plot, &ascii, 2, text),
                        "1e+06 +                                                  o");
    assert_string_equal(line_of(&plot, &ascii, 6, text),
                        "      |                          |          .''");
    assert_string_equal(line_of(&plot, &ascii, 10, text), "      |                        ..o");
    assert_string_equal(line_of(&plot, &ascii, 17, text), "    1 +  o");
    assert_string_equal(line_of(&plot, &ascii, 18, text),
                        "      +--+-------------+--------------+-------------+-------");
    assert_string_equal(line_of(&plot, &ascii, 19, text),
                        "        1 B          64 B           4 KiB        256 KiB");
    assert_string_equal(line_of(&plot, &ascii, 20, text), "  o s   | 95 % interval");
    assert_string_equal(line_of(&plot, &braille, 2, text),
                        "1e+06 ┤                                                 ⢀o");
    assert_string_equal(line_of(&plot, &braille, 6, text),
                        "      │                          ⢸         ⢀⡠⠔⠉");
    assert_string_equal(line_of(&plot, &braille, 10, text), "      │                        ⡠⠔o");
    assert_string_equal(line_of(&plot, &braille, 17, text), "    1 ┤  o⠁");
    assert_string_equal(line_of(&plot, &braille, 18, text),
                        "      └──┬─────────────┬──────────────┬─────────────┬───────");
    assert_string_equal(line_of(&plot, &braille, 20, text), "  o s   ⡇ 95 % interval");
    ddp_plot_release(&plot);
}

static void test_a_text_plot_fits_its_room(void **state)
{
    const double x[] = {8, 64 << 20}, y[] = {0.001, 30};
    struct ddp_plot plot = plot_of(x, y, 2, true);
    (void)state;
    for (int i = 1; i < DDP_PLOT_SERIES_MAX; i++) {
        assert_non_null(ddp_plot_add_series(
            &plot, "a name that is longer than a line of a narrow terminal", i, i, &err));
        for (int k = 0; k < 2; k++) {
            const struct ddp_plot_value v = {x[k], y[k] * i, y[k] * i / 2, y[k] * i * 2, false};
            assert_int_equal(ddp_plot_add_value(&plot, v, &err), 0);
        }
    }
    snprintf(plot.title, sizeof plot.title, "%s", "title");
    for (int columns = 40; columns <= 300; columns += 20)
        for (int rows = 24; rows <= 100; rows += 38) {
            const struct ddp_plot_look look = {columns, rows, columns % 40 != 0};
            struct ddp_strbuf text = DDP_STRBUF_INIT;
            int lines = 0;
            ddp_plot_text(&plot, &look, &text);
            for (const char *c = text.text; *c; c++)
                lines += *c == '\n';
            assert_int_equal(ddp_screen_rows(text.text, text.length, columns), lines);
            assert_true(lines < rows);
            ddp_strbuf_release(&text);
        }
    ddp_plot_release(&plot);
}

static void add(struct ddp_record *r, int ranks, uint64_t bytes, enum ddp_placement placement,
                const char *algorithm, double ns)
{
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec = (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                     .backend = "shm",
                                     .placement = placement,
                                     .ranks = ranks,
                                     .requested_bytes = bytes,
                                     .size_bytes = bytes,
                                     .compress = "none"};
    snprintf(p.spec.algorithm, sizeof p.spec.algorithm, "%s", algorithm);
    p.iterations = 10;
    p.time_ns.median = ns;
    p.time_ns.ci95_lo = 0.9 * ns;
    p.time_ns.ci95_hi = 1.2 * ns;
    assert_int_equal(ddp_record_add_point(r, &p, NULL, &err), 0);
    r->points[r->point_count - 1].quality = 0;
}

static struct ddp_plot_groups groups_of(const struct ddp_plot_source *sources, int count,
                                        enum ddp_plot_over over, struct ddp_plot_cells *cells)
{
    struct ddp_plot_groups groups;
    assert_int_equal(ddp_plot_collect(sources, count, cells, &err), 0);
    assert_int_equal(ddp_plot_group_cells(sources, cells, over, &groups, &err), 0);
    return groups;
}

static void test_settings_that_vary_name_the_series(void **state)
{
    struct ddp_record r;
    struct ddp_plot_cells cells;
    struct ddp_plot plot;
    (void)state;
    ddp_record_init(&r);
    for (int size = 8; size <= 8192; size *= 32)
        for (int place = 0; place < 2; place++)
            add(&r, 2, (uint64_t)size, (enum ddp_placement)place, "auto", 100.0 * size);
    r.points[0].quality = 1u << DDP_QUALITY_BUSY;
    const struct ddp_plot_source source = {.name = "x", .record = &r};
    struct ddp_plot_groups groups = groups_of(&source, 1, DDP_PLOT_OVER_SIZE, &cells);
    assert_int_equal(groups.count, 1);
    assert_string_equal(groups.items[0].title, "allreduce");
    assert_string_equal(groups.items[0].note,
                        "f32, sum, 2 ranks, registered memory, algorithm auto, backend shm");
    assert_int_equal(groups.items[0].series_count, 2);
    assert_string_equal(groups.items[0].names[0], "in place");
    assert_string_equal(groups.items[0].names[1], "out of place");
    assert_int_equal(ddp_plot_cells_over(&groups.items[0], DDP_PLOT_BUSBW, &plot, &err), 0);
    assert_int_equal(plot.count, 2);
    assert_true(plot.series[0].values[0].doubtful && !plot.series[1].values[0].doubtful);
    for (int i = 0; i < 3; i++) { /* A longer time is a lower bandwidth. */
        const struct ddp_plot_value *v = &plot.series[1].values[i];
        assert_true(fabs(v->y - 0.01) < 1e-12 && fabs(v->low - 0.01 / 1.2) < 1e-12 &&
                    fabs(v->high - 0.01 / 0.9) < 1e-12);
    }
    assert_string_equal(plot.name, "allreduce-bus-bandwidth-over-size");
    ddp_plot_release(&plot);
    ddp_plot_groups_release(&groups);
    free(cells.items);
    ddp_record_release(&r);
}

static void test_many_series_are_divided(void **state)
{
    static const char *const algorithms[] = {"auto", "ring", "tree", "rhd", "flat", "direct"};
    struct ddp_record r;
    struct ddp_plot_cells cells;
    (void)state;
    ddp_record_init(&r);
    for (int ranks = 2; ranks <= 8; ranks *= 2)
        for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++)
            for (int size = 64; size <= 4096; size *= 64)
                add(&r, ranks, (uint64_t)size, DDP_IN_PLACE, algorithms[a], 100);
    const struct ddp_plot_source source = {.name = "x", .record = &r};
    struct ddp_plot_groups groups = groups_of(&source, 1, DDP_PLOT_OVER_SIZE, &cells);
    assert_int_equal(groups.count, 3);
    assert_string_equal(groups.items[1].title, "allreduce, 4 ranks");
    assert_int_equal(groups.items[1].series_count, 6);
    assert_string_equal(groups.items[1].names[3], "algorithm rhd");
    ddp_plot_groups_release(&groups);
    free(cells.items);
    /* Over ranks, the size is a part of the series, and every series has the three ranks. */
    groups = groups_of(&source, 1, DDP_PLOT_OVER_RANKS, &cells);
    size_t count = 0;
    for (size_t i = 0; i < groups.count; i++) {
        count += groups.items[i].count;
        assert_int_equal(groups.items[i].positions, 3);
        assert_true(groups.items[i].series_count <= DDP_PLOT_SERIES_MAX);
    }
    assert_int_equal(count, r.point_count);
    ddp_plot_groups_release(&groups);
    free(cells.items);
    ddp_record_release(&r);
}

static void test_sources_are_series_with_colours_of_their_own(void **state)
{
    struct ddp_record records[12];
    struct ddp_plot_source sources[12];
    char names[12][8];
    struct ddp_plot_cells cells;
    size_t count = 0;
    (void)state;
    for (int s = 0; s < 12; s++) {
        ddp_record_init(&records[s]);
        add(&records[s], 2, 64, DDP_IN_PLACE, s % 2 ? "ring" : "auto", 100);
        add(&records[s], 2, 128, DDP_IN_PLACE, s % 2 ? "ring" : "auto", 100);
        snprintf(names[s], sizeof names[s], "doc%d", s);
        sources[s] = (struct ddp_plot_source){.name = names[s], .record = &records[s]};
    }
    struct ddp_plot_groups groups = groups_of(sources, 12, DDP_PLOT_OVER_SIZE, &cells);
    for (size_t i = 0; i < groups.count; i++)
        for (int s = 0; s < groups.items[i].series_count; s++, count++) {
            assert_string_equal(groups.items[i].names[s], names[groups.items[i].colors[s]]);
            assert_int_equal(groups.items[i].colors[s], count);
        }
    assert_int_equal(groups.count, 2);
    assert_int_equal(count, 12);
    ddp_plot_groups_release(&groups);
    free(cells.items);
    for (int s = 0; s < 12; s++)
        ddp_record_release(&records[s]);
}

static void test_wrong_data_is_not_plotted(void **state)
{
    struct ddp_record r;
    struct ddp_plot_cells cells;
    struct ddp_plot plot;
    (void)state;
    ddp_record_init(&r);
    for (int size = 64; size <= 1024; size *= 4)
        add(&r, 2, (uint64_t)size, DDP_IN_PLACE, "auto", 100);
    r.points[1].check_wrong = 7;
    const struct ddp_plot_source source = {.name = "x", .record = &r};
    struct ddp_plot_groups groups = groups_of(&source, 1, DDP_PLOT_OVER_SIZE, &cells);
    assert_int_equal(groups.items[0].count, 3);
    assert_int_equal(ddp_plot_cells_over(&groups.items[0], DDP_PLOT_TIME, &plot, &err), 0);
    assert_int_equal(ddp_plot_values(&plot), 2);
    ddp_plot_release(&plot);
    ddp_plot_groups_release(&groups);
    free(cells.items);
    ddp_record_release(&r);
}

static void test_break_even_is_marked(void **state)
{
    static const char *const methods[] = {"topk:0.001", "topk:0.01", "topk:0.1"};
    struct ddp_record r;
    struct ddp_plot_cells cells;
    struct ddp_plot plot;
    bool measured;
    (void)state;
    ddp_record_init(&r);
    for (int i = 0; i < 3; i++) {
        add(&r, 2, 1 << 20, DDP_IN_PLACE, "auto", 100);
        struct ddp_point *p = &r.points[i];
        snprintf(p->spec.compress, sizeof p->spec.compress, "%s", methods[i]);
        p->density = pow(10, i - 3);
        p->dense_ns[0] = 50;
        p->break_even[0] = (struct ddp_break_even){0.9, 0.004 + 0.01 * i, NAN};
    }
    add(&r, 2, 1 << 20, DDP_IN_PLACE, "auto", 100); /* dense */
    const struct ddp_plot_source source = {.name = "x", .record = &r};
    struct ddp_plot_groups groups = groups_of(&source, 1, DDP_PLOT_OVER_DENSITY, &cells);
    assert_int_equal(groups.count, 1);
    assert_int_equal(groups.items[0].count, 3);
    /* 0.014 is the estimate from the density 0.01, which is the nearest to its estimate. */
    assert_true(fabs(ddp_plot_break_even(&groups.items[0], 0, &measured) - 0.014) < 1e-12);
    assert_false(measured);
    assert_int_equal(ddp_plot_cells_over(&groups.items[0], DDP_PLOT_SPEEDUP, &plot, &err), 0);
    assert_int_equal(plot.count, 2);
    assert_true(plot.series[1].cross && plot.series[1].values[0].y == 1);
    assert_true(fabs(plot.series[0].values[2].y - 0.5) < 1e-12);
    ddp_plot_release(&plot);
    r.points[2].break_even[0].measured = 0.03;
    assert_true(fabs(ddp_plot_break_even(&groups.items[0], 0, &measured) - 0.03) < 1e-12);
    assert_true(measured);
    ddp_plot_groups_release(&groups);
    free(cells.items);
    ddp_record_release(&r);
}

static void add_run(struct ddp_record *r, uint64_t seed, double seconds, int epochs)
{
    struct ddp_train_run run;
    ddp_train_run_init(&run);
    snprintf(run.sync, sizeof run.sync, "dense");
    run.ranks = 2;
    run.seed = seed;
    assert_int_equal(ddp_record_add_train(r, &run, &err), 0);
    for (int i = 0; i < epochs; i++) {
        struct ddp_epoch e;
        ddp_epoch_init(&e);
        e.epoch = i + 1;
        e.seconds = seconds;
        e.eval_accuracy = 0.5;
        assert_int_equal(ddp_record_add_epoch(r, &e, &err), 0);
    }
}

/* A slow run has ended early. Its time is in no mean, because the next mean would be smaller. */
static void test_lines_run_forwards(void **state)
{
    struct ddp_record r;
    struct ddp_plot_strategies strategies;
    struct ddp_plot plot;
    (void)state;
    ddp_record_init(&r);
    add_run(&r, 1, 1, 3);
    add_run(&r, 2, 10, 2);
    const struct ddp_plot_source source = {.name = "a", .record = &r};
    assert_int_equal(ddp_plot_collect_strategies(&source, 1, &strategies, &err), 0);
    assert_int_equal(ddp_plot_accuracy(&source, &strategies, &r.train[0], false, &plot, &err), 0);
    assert_int_equal(plot.count, 1);
    assert_int_equal(plot.series[0].count, 3);
    for (int i = 0; i < 3; i++)
        assert_true(plot.series[0].values[i].x == i + 1);
    ddp_plot_release(&plot);
    ddp_plot_strategies_release(&strategies);
    ddp_record_release(&r);
}

static void test_svg_text_is_escaped(void **state)
{
    const double x[] = {8, 64}, y[] = {1, 2};
    struct ddp_plot plot = plot_of(x, y, 2, true);
    struct ddp_strbuf out = DDP_STRBUF_INIT;
    (void)state;
    ddp_plot_set_title(&plot, "<script>&\"'\x01 \xff Title");
    assert_string_equal(plot.name, "script-title");
    ddp_svg_file(&plot, &out);
    assert_false(out.failed);
    assert_null(strstr(out.text, "<script"));
    assert_null(strchr(out.text, 1));
    assert_non_null(strstr(out.text, "&lt;script&gt;&amp;&quot;&#39;? ? Title"));
    ddp_strbuf_release(&out);
    ddp_plot_release(&plot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes_have_round_ticks),
        cmocka_unit_test(test_sizes_have_ticks_at_powers_of_two),
        cmocka_unit_test(test_a_single_value_has_a_scale),
        cmocka_unit_test(test_values_without_a_place_are_left_out),
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_values_are_drawn_at_their_places),
        cmocka_unit_test(test_a_text_plot_fits_its_room),
        cmocka_unit_test(test_settings_that_vary_name_the_series),
        cmocka_unit_test(test_many_series_are_divided),
        cmocka_unit_test(test_sources_are_series_with_colours_of_their_own),
        cmocka_unit_test(test_wrong_data_is_not_plotted),
        cmocka_unit_test(test_break_even_is_marked),
        cmocka_unit_test(test_lines_run_forwards),
        cmocka_unit_test(test_svg_text_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
