/* The verdict on accuracies: groups, repetitions, seeds of one side alone, and divergence. */
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
#include "record/accuracy.h"

/* Adds a document of one run. An accuracy of -1: the run diverged. NaN: unknown. */
static void add(struct ddp_accuracy_list *list, int side, const char *group, int seed,
                double accuracy)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_result_run run = {.seed = seed,
                                 .accuracy = accuracy < 0 ? 0.1 : accuracy,
                                 .diverged = accuracy < 0,
                                 .eval_images = 10000};
    const struct ddp_result result = {.runs = &run, .run_count = 1};
    snprintf(run.group, sizeof run.group, "%s", group);
    assert_int_equal(ddp_accuracy_add(list, &result, side, &err), 0);
}

static void judge(struct ddp_accuracy_list *list, enum ddp_verdict before,
                  struct ddp_verdict_record *v)
{
    struct ddp_err err = DDP_ERR_INIT;
    ddp_verdict_record_init(v);
    v->outcome = before;
    assert_int_equal(ddp_accuracy_judge(list, 0.01, v, &err), 0);
    free(list->items);
    *list = (struct ddp_accuracy_list){.count = 0};
}

/* Fills a group of five seeds, whose differences lie around `difference`. */
static void fill(struct ddp_accuracy_list *list, const char *group, double difference)
{
    for (int seed = 1; seed <= 5; seed++) {
        add(list, 0, group, seed, 0.9);
        add(list, 1, group, seed, 0.9 + difference + 0.001 * (seed - 3));
    }
}

static void test_groups(void **state)
{
    struct ddp_accuracy_list list = {.count = 0};
    struct ddp_verdict_record v;
    fill(&list, "b", 0);
    fill(&list, "a", 0);
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_PASS);
    assert_int_equal(v.accuracy_count, 2);
    assert_string_equal(v.accuracy[0].name, "a");
    /* t(0.95, 4) and, for two groups, t(0.975, 4), times sqrt(2.5e-6 / 5) */
    assert_true(fabs(v.accuracy[0].test.lower + 2.131846786 * sqrt(5e-7)) < 1e-8);
    assert_true(fabs(v.accuracy[0].test.upper - 2.776445105 * sqrt(5e-7)) < 1e-8);
    ddp_verdict_record_release(&v);
    fill(&list, "a", -0.03);
    fill(&list, "b", 0);
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_FAIL);
    assert_int_equal(v.accuracy[0].test.state, DDP_WORSE);
    assert_int_equal(v.accuracy[1].test.state, DDP_NOT_WORSE);
    assert_non_null(strstr(v.reason, "accuracy is worse"));
    ddp_verdict_record_release(&v);
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_PASS); /* there is no training */
    assert_int_equal(v.accuracy_count, 0);
    ddp_verdict_record_release(&v);
}

/* Repetitions are averaged, so they do not become samples. */
static void test_repetitions(void **state)
{
    struct ddp_accuracy_list list = {.count = 0};
    struct ddp_verdict_record v;
    for (int pair = 0; pair < 10; pair++) {
        add(&list, 0, "a", 1, 0.90 + 0.001 * pair);
        add(&list, 1, "a", 1, 0.92);
    }
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_INCONCLUSIVE);
    assert_int_equal(v.accuracy[0].test.seeds, 1);
    assert_int_equal(v.accuracy[0].test.seeds_needed, 2);
    assert_true(fabs(v.accuracy[0].base - 0.9045) < 1e-12);
    assert_true(fabs(v.accuracy[0].test.mean - 0.0155) < 1e-12);
    assert_true(ddp_verdict_is_final(&v)); /* more pairs do not help */
    ddp_verdict_record_release(&v);
    /* a slower cell stays a FAIL */
    add(&list, 0, "a", 1, 0.9);
    judge(&list, DDP_VERDICT_FAIL, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_FAIL);
    ddp_verdict_record_release(&v);
}

/* Seeds and groups of one side alone give no difference. */
static void test_one_side(void **state)
{
    struct ddp_accuracy_list list = {.count = 0};
    struct ddp_verdict_record v;
    fill(&list, "a", 0);
    add(&list, 0, "a", 6, 0.9);
    add(&list, 1, "a", 7, 0.1);
    add(&list, 1, "new", 1, 0.1);
    add(&list, 0, "unknown", 1, NAN);
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_PASS);
    assert_int_equal(v.accuracy_count, 1);
    assert_int_equal(v.accuracy[0].test.seeds, 5);
    ddp_verdict_record_release(&v);
    add(&list, 0, "a", 1, 0.9);
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_INCONCLUSIVE);
    assert_int_equal(v.accuracy[0].test.seeds, 0);
    assert_true(isnan(v.accuracy[0].base) && isnan(v.accuracy[0].next));
    assert_non_null(strstr(v.reason, "no seed is in both"));
    ddp_verdict_record_release(&v);
}

static void test_divergence(void **state)
{
    struct ddp_accuracy_list list = {.count = 0};
    struct ddp_verdict_record v;
    fill(&list, "a", 0);
    add(&list, 0, "a", 6, 0.9);
    add(&list, 1, "a", 6, -1);
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_FAIL);
    assert_true(v.accuracy[0].diverged_seed == 6);
    assert_true(fabs(v.accuracy[0].test.mean + 0.15) < 1e-9); /* accuracy 0 */
    assert_non_null(strstr(v.reason, "new diverged with seed 6"));
    ddp_verdict_record_release(&v);
    fill(&list, "a", 0);
    add(&list, 0, "a", 6, -1);
    add(&list, 1, "a", 6, -1);
    add(&list, 0, "a", 7, -1);
    add(&list, 1, "a", 7, 0.9);
    judge(&list, DDP_VERDICT_PASS, &v);
    assert_int_equal(v.outcome, DDP_VERDICT_PASS);
    assert_int_equal(v.accuracy[0].test.seeds, 5);
    ddp_verdict_record_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_one_side),
        cmocka_unit_test(test_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
