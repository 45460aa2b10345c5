/* The noise floor: the self-test's result for gates with known times, and the file that keeps
 * it, whose content is not trusted. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "record/noise.h"
#include "run/selftest.h"

enum { CELLS = 2, PAIRS = 8 };

/* Makes a gate as a journal has it: times around 100 with relative noise. The new times of cell
 * `slowed` are larger by `effect`. */
static struct ddp_noise_gate *make_gate(int index, int slowed, double effect, double noise,
                                        struct ddp_rng *rng)
{
    const struct ddp_noise_gate head = {
        .index = index, .injected = slowed, .pairs = PAIRS, .cells = CELLS};
    struct ddp_noise_gate *gate = calloc(1, ddp_noise_gate_bytes(&head));
    struct ddp_gate_data data;
    assert_non_null(gate);
    *gate = head;
    ddp_selftest_data(gate, &data);
    for (int i = 0; i < CELLS * PAIRS; i++) {
        data.median[DDP_BASE][i] = 100 * exp(noise * ddp_rng_normal(rng));
        data.median[DDP_NEXT][i] =
            100 * exp(noise * ddp_rng_normal(rng)) * (i % CELLS == slowed ? 1 + effect : 1);
    }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < PAIRS; i++)
            data.pingpong[side][i] = data.memory[side][i] = NAN;
    for (int c = 0; c < CELLS; c++)
        snprintf(data.id[c], sizeof data.id[c], "cell %d", c);
    return gate;
}

/* The journal has `more` additional gates without a delay, each of which took an hour. */
static void judge_with(int same, int injected, int more, double effect, double noise,
                       struct ddp_noise *out)
{
    struct ddp_noise_gate *gates[64];
    struct ddp_selftest test = {.gates = gates, .count = same + injected + more};
    struct ddp_selftest_setup setup = {.command = "x",
                                       .same = same,
                                       .injected = injected,
                                       .effect = effect,
                                       .gate = {.min_effect = 0.05}};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_rng rng;
    assert_int_equal(ddp_gate_plan_looks(PAIRS, true, &setup.gate.looks, &err), 0);
    ddp_rng_init(&rng, 7, 7);
    for (int i = 0; i < same + injected; i++)
        gates[i] = i < same ? make_gate(i, -1, 0, noise, &rng)
                            : make_gate(i - same, (i - same) % CELLS, effect, noise, &rng);
    for (int i = 0; i < more; i++) {
        gates[same + injected + i] = make_gate(same + i, -1, 0, noise, &rng);
        gates[same + injected + i]->took_ms = 3600000;
    }
    assert_int_equal(ddp_selftest_judge(&setup, &test, out, &err), 0);
    for (int i = 0; i < test.count; i++)
        free(gates[i]);
}

static void judge(int same, int injected, double effect, double noise, struct ddp_noise *out)
{
    judge_with(same, injected, 0, effect, noise, out);
}

/* Gates that the journal has beyond those asked for count for nothing, also not for the medians. */
static void test_more_gates(void **state)
{
    struct ddp_noise noise;
    (void)state;
    judge_with(6, 3, 30, 0.10, 0.005, &noise);
    assert_int_equal(noise.same, 6);
    assert_true(noise.median_seconds == 0 && noise.median_pairs == PAIRS);
}

static void test_quiet_and_noisy(void **state)
{
    struct ddp_noise quiet, noisy;
    judge(20, 10, 0.10, 0.005, &quiet);
    assert_int_equal(quiet.same, 20);
    assert_int_equal(quiet.false_alarms + quiet.inconclusive + quiet.elsewhere, 0);
    assert_int_equal(quiet.found, 10);
    assert_true(quiet.noise_floor > 0.001 && quiet.noise_floor < 0.01);
    assert_true(quiet.detectable > 0.05 && quiet.detectable < 0.06);
    assert_true(ddp_selftest_holds(&quiet));

    judge(20, 10, 0.10, 0.10, &noisy);
    assert_true(noisy.noise_floor > 0.05 && noisy.noise_floor < 0.25);
    assert_true(noisy.found < 9 && noisy.inconclusive > 2);
    assert_true(noisy.detectable > noisy.noise_floor);
    assert_false(ddp_selftest_holds(&noisy));
}

/* A slow-down of the detectable size is found by 90 % of new gates. Half of this slow-down is
 * mostly not found. */
static void test_detectable_is_what_it_says(void **state)
{
    struct ddp_noise first, again, half;
    judge(40, 20, 0.10, 0.02, &first);
    judge(40, 20, first.detectable * 1.05, 0.02, &again);
    assert_true(again.found >= 17);
    judge(40, 20, first.detectable / 2, 0.02, &half);
    assert_true(half.found <= 3);
}

/* The conditions of make bench-gate. */
static void test_holds(void **state)
{
    struct ddp_noise n = {.same = 60, .injected = 30, .found = 29, .inconclusive = 4};
    assert_true(ddp_selftest_holds(&n));
    n.false_alarms = 1;
    assert_true(ddp_selftest_holds(&n));
    n.false_alarms = 2;
    assert_false(ddp_selftest_holds(&n));
    n.false_alarms = 0;
    n.inconclusive = 5;
    assert_false(ddp_selftest_holds(&n));
    n.inconclusive = 0;
    n.found = 28;
    assert_false(ddp_selftest_holds(&n));
    n.found = 30;
    n.elsewhere = 1;
    assert_false(ddp_selftest_holds(&n));
}

/* From this number of gates on, the largest value lies above the 90 % quantile in at least 95 %
 * of cases. */
static void test_least_gates(void **state)
{
    const int least = ddp_selftest_least_gates();
    assert_int_equal(least, 29);
    assert_true(pow(0.9, least) <= 0.05 && pow(0.9, least - 1) > 0.05);
}

static void test_kinds_are_spread(void **state)
{
    int injected = 0;
    assert_false(ddp_selftest_injects(60, 30, 0));
    for (int i = 0; i < 90; i++) {
        injected += ddp_selftest_injects(60, 30, i);
        assert_true(injected == (i + 1) / 3);
    }
}

static struct ddp_noise sample(void)
{
    struct ddp_noise n = {.measured = "2026-11-21T00:00:00Z",
                          .command = "x",
                          .pairs = 12,
                          .cells = 3,
                          .same = 60,
                          .injected = 30,
                          .found = 29,
                          .injected_effect = 0.1,
                          .min_effect = 0.05,
                          .noise_floor = 0.034,
                          .detectable = NAN};
    ddp_noise_machine_read(&n.machine);
    return n;
}

static char *read_text(const char *path, size_t *bytes)
{
    char *text = malloc(65536);
    FILE *file = fopen(path, "rb");
    assert_non_null(text);
    assert_non_null(file);
    *bytes = fread(text, 1, 65535, file);
    fclose(file);
    text[*bytes] = '\0';
    return text;
}

static void test_file(void **state)
{
    const struct ddp_noise n = sample();
    struct ddp_noise back;
    struct ddp_err err = DDP_ERR_INIT;
    char path[] = "/tmp/test_noise.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(ddp_noise_write(path, &n, &err), 0);
    assert_int_equal(ddp_noise_read(path, &back, &err), 0);
    assert_true(back.noise_floor == n.noise_floor && isnan(back.detectable));
    assert_int_equal(back.found, 29);
    assert_string_equal(back.machine.cpu, n.machine.cpu);
    assert_int_equal(ddp_noise_machine_key(&back.machine), ddp_noise_machine_key(&n.machine));

    size_t bytes;
    char *text = read_text(path, &bytes);
    /* A flipped byte is found by the digest, unless it is white space between values. With a
     * repaired digest the file is read or refused. A cut file is refused. */
    char *const digest = strstr(text, ",\n  \"digest\": \"jcs-fnv1a64:");
    assert_non_null(digest);
    bool in_string = false;
    for (size_t i = 0; i + 1 < bytes; i++) {
        in_string ^= text[i] == '"';
        for (int bit = 0; bit < 8; bit++) {
            err = DDP_ERR_INIT;
            text[i] ^= (char)(1 << bit);
            int rc = ddp_noise_parse(text, bytes, "x", &back, &err);
            text[i] ^= (char)(1 << bit);
            assert_true(rc == DDP_EINPUT || (rc == 0 && !in_string && strchr(" \n\"", text[i])));
        }
    }
    for (size_t i = 0; text + i < digest; i++)
        for (int bit = 0; bit < 8; bit++) {
            struct ddp_strbuf repaired = DDP_STRBUF_INIT;
            cJSON *doc;
            bool changed;
            err = DDP_ERR_INIT;
            text[i] ^= (char)(1 << bit);
            int rc = ddp_json_parse_digest(text, bytes, "x", &changed, &doc, &err);
            text[i] ^= (char)(1 << bit);
            if (rc != 0)
                continue;
            cJSON_DeleteItemFromObjectCaseSensitive(doc, "digest");
            assert_int_equal(ddp_json_print_digest(doc, &repaired, &err), 0);
            rc = ddp_noise_parse(repaired.text, repaired.length, "x", &back, &err);
            assert_true(rc == DDP_EINPUT || rc == 0);
            assert_true(rc != 0 || (back.noise_floor >= 0 && back.noise_floor <= 1000));
            ddp_strbuf_release(&repaired);
            cJSON_Delete(doc);
        }
    for (size_t i = 0; i < bytes - 2; i++) {
        err = DDP_ERR_INIT;
        assert_int_equal(ddp_noise_parse(text, i, "x", &back, &err), DDP_EINPUT);
    }
    free(text);
    assert_int_equal(unlink(path), 0);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_noise_read(path, &back, &err), DDP_ENOINPUT);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_noise_read("/dev/zero", &back, &err), DDP_EINPUT);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_noise_write("/dev/null/x", &n, &err), DDP_ECREATE);
}

/* A repeated gate and a gate of other cells are refused, because no self-test writes them. */
static void test_visit(void **state)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 1, 1);
    struct ddp_noise_gate *gate = make_gate(0, -1, 0, 0.01, &rng);
    struct ddp_selftest test = {.count = 0};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_journal_entry entry = {.kind = DDP_JOURNAL_GATE,
                                      .launch = 1,
                                      .payload = gate,
                                      .payload_bytes = ddp_noise_gate_bytes(gate)};
    assert_int_equal(ddp_selftest_visit(&test, &entry, &err), 0);
    assert_int_equal(ddp_selftest_visit(&test, &entry, &err), DDP_EINPUT);
    err = DDP_ERR_INIT;
    gate->index = 1;
    assert_int_equal(ddp_selftest_visit(&test, &entry, &err), 0);
    struct ddp_gate_data data;
    ddp_selftest_data(gate, &data);
    gate->index = 2;
    data.id[1][0] = 'C';
    assert_int_equal(ddp_selftest_visit(&test, &entry, &err), DDP_EINPUT);
    err = DDP_ERR_INIT;
    entry.kind = DDP_JOURNAL_END;
    assert_int_equal(ddp_selftest_visit(&test, &entry, &err), DDP_EINPUT);
    assert_int_equal(test.count, 2);
    ddp_selftest_release(&test);
    free(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_gates),
        cmocka_unit_test(test_quiet_and_noisy),
        cmocka_unit_test(test_detectable_is_what_it_says),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_least_gates),
        cmocka_unit_test(test_kinds_are_spread),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_visit),
    };
    return cmocka_run_group_tests_name("noise floor", tests, NULL, NULL);
}
