/* The verdict of `ddpbench isolate` for each way in which its search may end, and its sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "record/isolate_judge.h"
#include "record/record.h"

static const int leaders[] = {0, 4, 8, 12, 16, 20};
static const struct ddp_group_fault host_fault = {2, -1, 0.7, 0.6, 0.8, 2.3, 1.6},
                                    link_fault = {1, 3, 1.1, 1.0, 1.2, 2.7, 1.6};

/* Judges a search among six hosts that ended in this way. */
static struct ddp_health judge(enum ddp_group_end end, const struct ddp_group_fault *fault,
                               double detectable, bool out_of_time)
{
    struct ddp_group_result result = {.end = end,
                                      .rounds = end == DDP_GROUP_TOO_FEW ? 0 : 9,
                                      .group_ends = 2,
                                      .screened = true,
                                      .scatter = detectable / 8,
                                      .detectable = detectable};
    const struct ddp_isolate_input in = {.result = &result,
                                         .ends = 6,
                                         .by_host = true,
                                         .leader = leaders,
                                         .out_of_time = out_of_time,
                                         .collective = "all_to_all"};
    struct ddp_health h;
    if (fault)
        result.fault[result.fault_count++] = *fault;
    ddp_health_init(&h);
    h.min_effect = 0.1;
    h.must_find = 1;
    ddp_isolate_judge(&in, &h);
    assert_true(h.reason[0] != '\0');
    return h;
}

static void test_verdicts(void **state)
{
    (void)state;
    assert_int_equal(judge(DDP_GROUP_CLEAN, NULL, log(1.5), false).verdict, DDP_HEALTH_HEALTHY);
    assert_int_equal(judge(DDP_GROUP_CLEAN, NULL, log(2.5), false).verdict, DDP_HEALTH_CANNOT_TELL);
    assert_int_equal(judge(DDP_GROUP_CLEAN, NULL, 50, false).verdict, DDP_HEALTH_CANNOT_TELL);
    assert_int_equal(judge(DDP_GROUP_RUNNING, NULL, NAN, true).verdict, DDP_HEALTH_CANNOT_TELL);
    static const enum ddp_group_end ends[] = {DDP_GROUP_LIMIT, DDP_GROUP_UNEXPLAINED,
                                              DDP_GROUP_TOO_MANY, DDP_GROUP_TOO_FEW};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const struct ddp_health h = judge(ends[i], NULL, log(1.1), false);
        assert_int_equal(h.verdict, DDP_HEALTH_CANNOT_TELL);
        assert_int_equal(ddp_health_code(&h), DDP_EINCONCLUSIVE);
    }
    assert_int_equal(judge(DDP_GROUP_CLEAN, &host_fault, 0.1, false).verdict, DDP_HEALTH_DEGRADED);
    assert_int_equal(judge(DDP_GROUP_LIMIT, &host_fault, 0.1, false).verdict, DDP_HEALTH_DEGRADED);
    assert_int_equal(judge(DDP_GROUP_RUNNING, &host_fault, 0.1, true).verdict, DDP_HEALTH_DEGRADED);
    assert_true(ddp_isolate_least(0.1, false) == 0.1 && ddp_isolate_least(0.1, true) == 3 &&
                ddp_isolate_least(5, true) == 5);
}

/* A finding has world ranks, and its sentence has the place and the factors. */
static void test_findings(void **state)
{
    (void)state;
    struct ddp_health h = judge(DDP_GROUP_CLEAN, &host_fault, 0.1, false);
    struct ddp_record r = {.health = h};
    char text[1200];
    assert_int_equal(h.finding_count, 1);
    assert_int_equal(h.rounds, 9);
    assert_int_equal(h.group_ends, 2);
    assert_string_equal(h.collective, "all_to_all");
    assert_true(h.finding[0].of_host && h.finding[0].rank == 8 && h.finding[0].to == -1);
    assert_true(fabs(h.finding[0].factor - exp(0.7)) < 1e-9);
    assert_true(h.finding[0].lower < h.finding[0].factor);
    ddp_health_sentence(&r, 0, text, sizeof text);
    assert_non_null(strstr(text, "rank 8"));
    assert_non_null(strstr(text, "1.82 to 2.23"));
    h = judge(DDP_GROUP_CLEAN, &link_fault, 0.1, false);
    r.health = h;
    assert_true(h.finding[0].place == DDP_PEER_LINK && h.finding[0].rank == 4 &&
                h.finding[0].to == 12);
    ddp_health_sentence(&r, 0, text, sizeof text);
    assert_non_null(strstr(text, "rank 4"));
    assert_non_null(strstr(text, "rank 12"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_findings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
