/* The codes of a point's quality, and how reporters show them. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/quality.h"
#include "report_sample.h"

/* A point of 2 ranks that is not doubtful: 100 iterations of 10 ms, so 1 s. */
static struct ddp_point quiet_point(void)
{
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec = (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                     .backend = "shm",
                                     .algorithm = "auto",
                                     .ranks = 2,
                                     .requested_bytes = 1024,
                                     .size_bytes = 1024,
                                     .count = 256,
                                     .compress = "none"};
    strcpy(p.algorithm_used, "direct");
    p.iterations = 100;
    p.time_ns = (struct ddp_summary){.n = 100,
                                     .median = 10e6,
                                     .mean = 10e6,
                                     .min = 9e6,
                                     .max = 12e6,
                                     .ci95_lo = 9.1e6,
                                     .ci95_hi = 10.9e6};
    p.pingpong_ns[0] = p.pingpong_ns[1] = 300;
    p.interference = (struct ddp_interference){.involuntary_switches = 0, .clock_MHz = 3000};
    p.check_elements = p.check_wrong = -1;
    return p;
}

/* A record of a quiet host of 4 cores. */
static void make_quiet(struct ddp_record *r)
{
    make_record(r);
    r->hosts[0].load = 0.5;
    r->hosts[0].cores = 4;
    r->hosts[0].ranks = 2;
    r->hosts[0].gpu_count = 0;
}

static unsigned judge(const struct ddp_record *r, const struct ddp_point *p)
{
    return ddp_quality_judge(r, p);
}

#define BIT(code) (1u << DDP_QUALITY_##code)

static void test_limits(void **state)
{
    struct ddp_record r;
    struct ddp_point p;
    (void)state;
    make_quiet(&r);
    p = quiet_point();
    assert_int_equal(judge(&r, &p), 0);

    /* one side of the interval counts, from more than 10 % on */
    p.time_ns.ci95_hi = 11.01e6;
    assert_int_equal(judge(&r, &p), BIT(WIDE_INTERVAL));
    p.time_ns.ci95_hi = 10.9e6;
    p.time_ns.ci95_lo = 8.9e6;
    assert_int_equal(judge(&r, &p), BIT(WIDE_INTERVAL));
    p.time_ns.ci95_lo = p.time_ns.ci95_hi = NAN; /* fewer than 6 iterations */
    assert_int_equal(judge(&r, &p), 0);

    p = quiet_point();
    p.series = (struct ddp_series){.drifting = true, .trend = 0.4, .shift = 0.09};
    assert_int_equal(judge(&r, &p), 0); /* significant, but small */
    p.series.shift = -0.11;
    assert_int_equal(judge(&r, &p), BIT(DRIFTING));
    p.series.drifting = false;
    assert_int_equal(judge(&r, &p), 0); /* large, but not significant */

    p = quiet_point();
    p.interference.steal_ms = 90; /* of 2 ranks for 1 s */
    assert_int_equal(judge(&r, &p), 0);
    p.interference.steal_ms = 110;
    assert_int_equal(judge(&r, &p), BIT(STOLEN));
    p.iterations = 1;
    p.interference.steal_ms = 10; /* a single tick */
    assert_int_equal(judge(&r, &p), 0);

    p = quiet_point();
    p.interference.throttled_ms = 40;
    assert_int_equal(judge(&r, &p), 0);
    p.interference.throttled_ms = 60;
    assert_int_equal(judge(&r, &p), BIT(THROTTLED));

    p = quiet_point();
    p.interference.involuntary_switches = 39; /* of 2 ranks in 1 s */
    assert_int_equal(judge(&r, &p), 0);
    p.interference.involuntary_switches = 41;
    assert_int_equal(judge(&r, &p), BIT(BUSY));
    p.oversubscribed = true; /* ranks that take turns switch, too */
    assert_int_equal(judge(&r, &p), BIT(OVERSUBSCRIBED));
    p = quiet_point();
    p.iterations = 1;
    p.interference.involuntary_switches = 2; /* too few to say anything */
    assert_int_equal(judge(&r, &p), 0);
    p = quiet_point();
    r.hosts[0].load = 6.1;
    assert_int_equal(judge(&r, &p), BIT(BUSY));
    r.hosts[0].load = 5.9;
    assert_int_equal(judge(&r, &p), 0);

    for (int i = 0; i < DDP_NET_COUNTERS; i++) {
        const bool is_normal = i == DDP_NET_SEGMENTS || i == DDP_NET_NIC_DROPS;
        p = quiet_point();
        p.network[i] = 0;
        assert_int_equal(judge(&r, &p), 0);
        p.network[i] = 1;
        assert_int_equal(judge(&r, &p), is_normal ? 0 : BIT(RETRANSMITS));
    }
    ddp_record_release(&r);
}

static void test_gpu_clocks(void **state)
{
    struct ddp_record r;
    struct ddp_point p = quiet_point();
    const struct ddp_gpu_facts facts = {.throttle = "power cap+hw thermal slowdown"};
    (void)state;
    make_quiet(&r);
    ddp_record_set_gpus(&r, 0, &facts, 1);
    assert_int_equal(judge(&r, &p), 0); /* the point did not use the GPU */
    snprintf(p.spec.backend, sizeof p.spec.backend, "nccl");
    assert_int_equal(judge(&r, &p), BIT(CLOCK));
    ddp_record_release(&r);
}

/* The ping-pong and the clock are compared with earlier points of the run, but only with those of
 * equally many ranks over the same backend. */
static void test_against_the_run(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_record r;
    struct ddp_point p = quiet_point();
    (void)state;
    make_quiet(&r);
    p.pingpong_ns[1] = 910; /* during the point the ranks moved apart */
    assert_int_equal(judge(&r, &p), BIT(SLOW_PINGPONG));
    p.pingpong_ns[1] = 890;
    assert_int_equal(judge(&r, &p), 0);
    assert_int_equal(ddp_record_add_point(&r, &p, NULL, &err), 0);
    p.pingpong_ns[0] = p.pingpong_ns[1] = 910;
    assert_int_equal(judge(&r, &p), BIT(SLOW_PINGPONG));
    p.spec.ranks = 4;
    assert_int_equal(judge(&r, &p), 0);
    p.spec.ranks = 2;
    strcpy(p.spec.backend, "mpi");
    assert_int_equal(judge(&r, &p), 0);

    /* a run in which every ping-pong is slow: 60 us inside a host, which once had no mark */
    p.pingpong_ns[0] = p.pingpong_ns[1] = 60e3;
    assert_int_equal(judge(&r, &p), BIT(SLOW_PINGPONG));
    p.pingpong_ns[0] = p.pingpong_ns[1] = NAN; /* one rank */
    assert_int_equal(judge(&r, &p), 0);

    p = quiet_point();
    p.interference.clock_MHz = 2710;
    assert_int_equal(judge(&r, &p), 0);
    p.interference.clock_MHz = 2690;
    assert_int_equal(judge(&r, &p), BIT(CLOCK));
    p.interference.clock_MHz = NAN; /* a virtual machine hides it */
    assert_int_equal(judge(&r, &p), 0);
    ddp_record_release(&r);
}

static void test_several_hosts(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_record r;
    struct ddp_point p = quiet_point();
    (void)state;
    make_quiet(&r);
    const struct ddp_host other = {.name = "other", .cores = 4, .ranks = 2, .load = NAN};
    assert_int_equal(ddp_record_add_host(&r, &other, &err), 0);
    p.pingpong_ns[0] = p.pingpong_ns[1] = 60e3; /* usual for Ethernet */
    assert_int_equal(judge(&r, &p), 0);
    p.pingpong_ns[0] = p.pingpong_ns[1] = 600e3;
    assert_int_equal(judge(&r, &p), BIT(SLOW_PINGPONG));
    ddp_record_release(&r);
}

/* Returns the output of a reporter for the record. */
static char *output_of(const struct ddp_record *r, const char *reporter)
{
    struct ddp_err err;
    struct ddp_report_set *set = open_set();
    size_t bytes;
    unlink("out");
    assert_int_equal(add(set, reporter, "out", &err), 0);
    assert_int_equal(ddp_report_begin(set, r, &err), 0);
    assert_int_equal(ddp_report_end(set, r, &err), 0);
    ddp_report_close(set);
    return slurp("out", &bytes);
}

/* Every format names the codes of a doubtful point, and no code of a point that is not doubtful. */
static void test_every_format(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_record r;
    (void)state;
    for (int doubtful = 0; doubtful < 2; doubtful++) {
        make_quiet(&r);
        strcpy(r.world_backend, "shm");
        r.status = DDP_STATUS_COMPLETE;
        for (int i = 0; i < 2; i++) {
            struct ddp_point p = quiet_point();
            p.spec.placement = i == 0 ? DDP_IN_PLACE : DDP_OUT_OF_PLACE;
            if (doubtful && i == 1) {
                p.pingpong_ns[0] = 60e3;
                p.time_ns.ci95_hi = 12e6;
            }
            assert_int_equal(ddp_record_add_point(&r, &p, NULL, &err), 0);
        }
        for (const struct ddp_reporter *const *f = ddp_reporter_all(); *f; f++) {
            char *text = output_of(&r, (*f)->name);
            for (int c = 0; c < DDP_QUALITY_COUNT; c++) {
                const bool has =
                    doubtful && (c == DDP_QUALITY_SLOW_PINGPONG || c == DDP_QUALITY_WIDE_INTERVAL);
                /* documents and csv have keys of these names */
                const bool is_key = c == DDP_QUALITY_DRIFTING || c == DDP_QUALITY_OVERSUBSCRIBED ||
                                    c == DDP_QUALITY_RETRANSMITS || c == DDP_QUALITY_CLOCK ||
                                    c == DDP_QUALITY_THROTTLED;
                if (!is_key && (strstr(text, ddp_quality_names[c]) != NULL) != has)
                    fail_msg("%s: %s: %s", (*f)->name, ddp_quality_names[c], text);
            }
            free(text);
        }
        ddp_record_release(&r);
    }
}

static void test_document(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_record r;
    struct ddp_point p = quiet_point();
    char text[320];
    (void)state;
    make_quiet(&r);
    ddp_quality_summary(&r, text, sizeof text);
    assert_string_equal(text, "");
    p.oversubscribed = true;
    p.network[DDP_NET_RETRANSMITS] = 7;
    assert_int_equal(ddp_record_add_point(&r, &p, NULL, &err), 0);
    p = quiet_point();
    assert_int_equal(ddp_record_add_point(&r, &p, NULL, &err), 0);
    ddp_quality_summary(&r, text, sizeof text);
    assert_string_equal(text, "1 of 2 points is doubtful: oversubscribed (1), retransmits (1)");
    cJSON *doc = cJSON_CreateObject();
    ddp_fields_show(&ddp_point_fields, &r.points[0], doc);
    const cJSON *codes = get(doc, "quality");
    assert_int_equal(cJSON_GetArraySize(codes), 2);
    assert_string_equal(cJSON_GetArrayItem(codes, 0)->valuestring, "oversubscribed");
    assert_string_equal(cJSON_GetArrayItem(codes, 1)->valuestring, "retransmits");
    cJSON_Delete(doc);
    ddp_record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),          cmocka_unit_test(test_gpu_clocks),
        cmocka_unit_test(test_against_the_run), cmocka_unit_test(test_several_hosts),
        IN_FOLDER(test_every_format),           cmocka_unit_test(test_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
