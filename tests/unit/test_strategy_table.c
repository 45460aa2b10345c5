/* The table of sync strategies, from training runs: means, ranges, pairs by seed, speed-up,
 * verdicts. */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "names.h"
#include "record/strategy_table.h"

static struct ddp_record record;
static double coding_seconds; /* Times of encode and of decode in each epoch of add_run. */

static int begin(void **state)
{
    ddp_record_init(&record);
    coding_seconds = NAN;
    return 0;
}

static int end(void **state)
{
    ddp_record_release(&record);
    return 0;
}

/* Adds a run with epochs of 10 steps of 128 images. Each epoch takes `seconds`, and half of it
 * is exposed communication. */
static void add_run(const char *sync, int ranks, uint64_t seed, double seconds, int epochs,
                    const double *accuracy)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_train_run run;
    ddp_train_run_init(&run);
    snprintf(run.sync, sizeof run.sync, "%s", sync);
    run.ranks = ranks;
    run.seed = seed;
    run.baseline = accuracy == NULL;
    run.target_accuracy = 0.85;
    if (accuracy && accuracy[0] > 0.85) {
        run.target_epoch = 1;
        run.target_seconds = seconds;
        run.target_wire_bytes = 1000;
    }
    assert_int_equal(ddp_record_add_train(&record, &run, &err), 0);
    for (int i = 0; i < epochs; i++) {
        struct ddp_epoch e;
        ddp_epoch_init(&e);
        e.epoch = i + 1;
        e.steps = 10;
        e.seconds = seconds;
        e.exposed_seconds = seconds / 2;
        e.images_per_second = 1280 / seconds;
        e.wire_bytes_per_rank = strcmp(sync, "dense") == 0 ? 4000 : 1000;
        e.encode_seconds = coding_seconds;
        e.decode_seconds = coding_seconds;
        e.eval_accuracy = accuracy ? accuracy[i] : NAN;
        e.peak_memory_bytes = (int64_t)seed;
        assert_int_equal(ddp_record_add_epoch(&record, &e, &err), 0);
    }
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static struct ddp_strategy_row *table(int want)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_strategy_row *rows;
    int count;
    assert_int_equal(ddp_strategy_table(&record, &rows, &count, &err), 0);
    assert_int_equal(count, want);
    return rows;
}

static void one_run_is_nothing_to_compare(void **state)
{
    assert_null(table(0));
    add_run("dense", 1, 1, 1.0, 2, NULL); /* a baseline gives no row */
    add_run("dense", 2, 1, 1.0, 2, (double[]){0.8, 0.9});
    assert_null(table(0));
}

static void runs_become_rows(void **state)
{
    char verdict[512];
    add_run("dense", 1, 1, 4.0, 1, NULL);
    add_run("topk:0.01", 2, 1, 1.0, 4, (double[]){0.1, 0.80, 0.82, 0.84});
    add_run("dense", 2, 1, 2.0, 4, (double[]){0.1, 0.86, 0.87, 0.88});
    add_run("topk:0.01", 2, 2, 1.0, 4, (double[]){0.1, 0.90, 0.92, 0.94});
    add_run("dense", 2, 2, 2.0, 4, (double[]){0.9, 0.90, 0.91, 0.92});
    add_run("none", 2, 1, 2.0, 1, (double[]){0.5}); /* one seed only */
    struct ddp_strategy_row *rows = table(3);
    /* Rows in order of appearance. dense is the reference wherever it stands. */
    assert_string_equal(rows[0].sync, "topk:0.01");
    assert_string_equal(rows[1].sync, "dense");
    for (int i = 0; i < 3; i++)
        assert_string_equal(rows[i].reference, "dense");
    assert_int_equal(rows[0].runs, 2);
    assert_int_equal(rows[2].runs, 1);
    assert_true(near(rows[0].accuracy.mean, 0.87));
    assert_true(near(rows[0].accuracy.min, 0.82) && near(rows[0].accuracy.max, 0.92));
    /* By seed: 0.82 - 0.87 and 0.92 - 0.91. */
    assert_true(near(rows[0].difference.min, -0.05) && near(rows[0].difference.max, 0.01));
    assert_true(near(rows[0].difference.mean, -0.02));
    assert_true(isnan(rows[1].difference.mean));
    assert_true(near(rows[2].difference.mean, 0.5 - 0.87));
    assert_true(near(rows[0].images_per_second, 1280) && near(rows[1].images_per_second, 640));
    assert_true(near(rows[1].speedup, 2.0) && near(rows[1].efficiency, 1.0));
    assert_true(near(rows[0].speedup, 4.0));
    assert_true(near(rows[0].step_seconds, 0.1) && near(rows[0].exposed_step_seconds, 0.05));
    assert_true(near(rows[0].wire_bytes_per_step, 100));
    assert_true(near(rows[0].reference_speedup.mean, 2.0) && isnan(rows[1].reference_speedup.mean));
    assert_int_equal(rows[0].pays, DDP_PAYS_YES);
    assert_int_equal(rows[1].pays, DDP_PAYS_UNKNOWN);
    assert_int_equal(rows[2].pays, DDP_PAYS_UNCLEAR);
    assert_int_equal(rows[0].target_reached, 0);
    assert_true(isnan(rows[0].target_seconds));
    assert_int_equal(rows[1].target_reached, 1);
    assert_true(near(rows[1].target_seconds, 2.0));
    assert_int_equal(rows[0].peak_memory_bytes, 2);
    assert_true(isnan(rows[0].achieved_density));
    ddp_strategy_verdict(&rows[0], verdict, sizeof verdict);
    assert_true(text_names(verdict, "topk:0.01|2.00|dense"));
    ddp_strategy_verdict(&rows[1], verdict, sizeof verdict);
    assert_string_equal(verdict, "");
    ddp_strategy_verdict(&rows[2], verdict, sizeof verdict);
    assert_true(text_names(verdict, "none"));
    free(rows);
}

/* The runs of a sweep: runs that differ in more than the seed are separate rows, and each task
 * has its own reference. */
static void other_tasks_are_other_rows(void **state)
{
    static const double low[] = {0.2}, high[] = {0.8};
    add_run("dense", 2, 1, 1.0, 1, high);
    add_run("topk:0.1", 2, 1, 1.0, 1, high);
    snprintf(record.train[1].feedback, sizeof record.train[1].feedback, "on");
    add_run("topk:0.1", 2, 1, 1.0, 1, low);
    snprintf(record.train[2].feedback, sizeof record.train[2].feedback, "off");
    add_run("dense", 2, 1, 8.0, 1, low);
    snprintf(record.train[3].model, sizeof record.train[3].model, "lenet");
    record.train[3].lr = 0.04;
    add_run("dense", 1, 1, 2.0, 1, NULL);
    struct ddp_strategy_row *rows = table(4);
    assert_true(text_names(rows[1].sync, "topk:0.1| on"));
    assert_true(text_names(rows[2].sync, "topk:0.1| off"));
    /* the row's name leaves out lr, which also differs */
    assert_string_equal(rows[3].sync, "dense, lenet");
    assert_string_equal(rows[3].reference, "dense, lenet");
    assert_true(near(rows[0].accuracy.mean, 0.8) && near(rows[3].accuracy.mean, 0.2));
    assert_true(near(rows[2].difference.mean, -0.6) && isnan(rows[3].difference.mean));
    assert_true(near(rows[1].reference_speedup.mean, 1) && near(rows[0].speedup, 2));
    assert_true(isnan(rows[3].speedup)); /* no run of lenet on one rank */
    free(rows);
}

/* A verdict requires that every seed agrees. */
static void one_slow_seed_leaves_it_unclear(void **state)
{
    static const double some[] = {0.5};
    add_run("dense", 2, 1, 2.0, 1, some);
    add_run("dense", 2, 2, 2.0, 1, some);
    add_run("fp16", 2, 1, 1.0, 1, some);
    add_run("fp16", 2, 2, 2.0, 1, some);
    add_run("bf16", 2, 1, 3.0, 1, some);
    add_run("bf16", 2, 2, 4.0, 1, some);
    struct ddp_strategy_row *rows = table(3);
    char verdict[512];
    assert_int_equal(rows[1].pays, DDP_PAYS_UNCLEAR);
    ddp_strategy_verdict(&rows[1], verdict, sizeof verdict);
    assert_true(text_names(verdict, "fp16|1.00|2.00|dense"));
    assert_int_equal(rows[2].pays, DDP_PAYS_NO);
    ddp_strategy_verdict(&rows[2], verdict, sizeof verdict);
    assert_true(text_names(verdict, "bf16"));
    assert_true(isnan(rows[0].speedup)); /* no run on one rank */
    free(rows);
}

/* An epoch of dense sends 4000 bytes, one of fp16 1000, in 10 steps. */
static void link_speed_below_which_it_pays(void **state)
{
    static const double some[] = {0.5};
    char verdict[512];
    strcpy(record.world_backend, "mpi");
    add_run("dense", 2, 1, 2.0, 1, some);
    add_run("dense", 2, 2, 2.0, 1, some);
    coding_seconds = 5e-7;
    add_run("fp16", 2, 1, 4.0, 1, some);
    add_run("fp16", 2, 2, 4.0, 1, some);
    coding_seconds = NAN;
    add_run("none", 2, 1, 1.0, 1, some);
    struct ddp_strategy_row *rows = table(3);
    assert_true(isnan(rows[0].pays_below_GBps)); /* the reference */
    /* 300 bytes per step for 1e-7 s of encode and decode */
    assert_true(fabs(rows[1].pays_below_GBps - 3.0) < 1e-9);
    assert_int_equal(rows[1].pays, DDP_PAYS_NO);
    ddp_strategy_verdict(&rows[1], verdict, sizeof verdict);
    assert_true(text_names(verdict, "fp16|2.00|dense|3 GB/s"));
    assert_true(isinf(rows[2].pays_below_GBps)); /* no additional time */
    free(rows);
    strcpy(record.world_backend, "shm");
    rows = table(3);
    /* in shared memory a step takes 0.2 s longer */
    assert_true(fabs(rows[1].pays_below_GBps - 300 / 0.2 / 1e9) < 1e-15);
    free(rows);
    for (int i = 0; i < record.train_count; i++)
        for (int e = 0; e < record.train[i].epoch_count; e++)
            record.train[i].epochs[e].wire_bytes_per_rank = 4000;
    rows = table(3);
    assert_true(rows[1].pays_below_GBps == 0);
    ddp_strategy_verdict(&rows[1], verdict, sizeof verdict);
    assert_true(text_names(verdict, "fp16|nor on any link|as dense"));
    free(rows);
    for (int i = 0; i < record.train_count; i++)
        record.train[i].overlap = true;
    rows = table(3);
    assert_true(isnan(rows[1].pays_below_GBps)); /* hidden exchanges need not delay a step */
    free(rows);
}

static void rank_counts_have_rows_of_their_own(void **state)
{
    static const double some[] = {0.5};
    add_run("dense", 2, 1, 2.0, 1, some);
    add_run("fp16", 2, 1, 2.0, 1, some);
    add_run("fp16", 4, 1, 2.0, 1, some);
    add_run("bf16", 4, 1, 1.0, 1, some);
    struct ddp_strategy_row *rows = table(4);
    assert_string_equal(rows[1].reference, "dense");
    /* without dense the first row is the reference */
    assert_string_equal(rows[2].reference, "fp16");
    assert_string_equal(rows[3].reference, "fp16");
    assert_int_equal(rows[3].pays, DDP_PAYS_YES);
    free(rows);
}

/* A run that was cut off before the end of its first epoch. */
static void nothing_yet_is_null(void **state)
{
    add_run("dense", 2, 1, 2.0, 1, (double[]){0.5});
    add_run("fp16", 2, 1, 2.0, 0, (double[]){0.5});
    struct ddp_strategy_row *rows = table(2);
    assert_int_equal(rows[1].runs, 0);
    assert_true(isnan(rows[1].accuracy.mean) && isnan(rows[1].step_seconds));
    assert_true(isnan(rows[1].images_per_second) && isnan(rows[1].difference.mean));
    assert_int_equal(rows[1].pays, DDP_PAYS_UNKNOWN);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_run_is_nothing_to_compare, begin, end),
        cmocka_unit_test_setup_teardown(runs_become_rows, begin, end),
        cmocka_unit_test_setup_teardown(other_tasks_are_other_rows, begin, end),
        cmocka_unit_test_setup_teardown(one_slow_seed_leaves_it_unclear, begin, end),
        cmocka_unit_test_setup_teardown(link_speed_below_which_it_pays, begin, end),
        cmocka_unit_test_setup_teardown(rank_counts_have_rows_of_their_own, begin, end),
        cmocka_unit_test_setup_teardown(nothing_yet_is_null, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
