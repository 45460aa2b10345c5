/* Configurations of sweeps: axes, and every error that must be refused. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strbuf.h"
#include "run/sweep_plan.h"
#include "names.h"

/* Stands for the option tables of the commands. */
static bool takes_list(void *arg, const char *command, const char *option)
{
    (void)arg;
    return strcmp(command, "allreduce") == 0 &&
           (strcmp(option, "size") == 0 || strcmp(option, "dtype") == 0);
}

static int parse(const char *text, struct ddp_sweep_plan *plan, struct ddp_err *err)
{
    *err = DDP_ERR_INIT;
    return ddp_sweep_plan_parse(text, strlen(text), "c.json", takes_list, NULL, plan, err);
}

/* Compares all cells, one per line. */
static void expect(const char *text, const char *lines)
{
    struct ddp_sweep_plan plan;
    struct ddp_err err;
    struct ddp_strbuf all = DDP_STRBUF_INIT;
    if (parse(text, &plan, &err) != 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < plan.count; i++) {
        assert_null(plan.cells[i].argv[plan.cells[i].argc]);
        for (int k = 0; k < plan.cells[i].argc; k++)
            ddp_strbuf_addf(&all, "%s%s", k ? " " : "", plan.cells[i].argv[k]);
        ddp_strbuf_add(&all, "\n");
    }
    assert_string_equal(all.text, lines);
    ddp_strbuf_release(&all);
    ddp_sweep_plan_release(&plan);
}

static void test_axes(void **state)
{
    expect("{\"runs\": [{\"command\": \"barrier\"}]}", "barrier\n");
    expect("{\"description\": \"d\", \"runs\": [{\"command\": \"allreduce\", \"ranks\": [1, 2], "
           "\"size\": [8, \"64K\"], \"partial\": [2, 4], \"description\": \"x\"}]}",
           "allreduce --ranks=1 --size=8,64K --partial=2\n"
           "allreduce --ranks=1 --size=8,64K --partial=4\n"
           "allreduce --ranks=2 --size=8,64K --partial=2\n"
           "allreduce --ranks=2 --size=8,64K --partial=4\n");
    expect("{\"runs\": [{\"command\": \"train\", \"size\": [8, \"64K\"]}, {\"command\": \"b\"}]}",
           "train --size=8\ntrain --size=64K\nb\n");
}

static void test_values(void **state)
{
    expect(
        "{\"runs\": [{\"command\": \"train\", \"lr\": 0.005, \"images\": 1e6, \"samples\": true, "
        "\"quiet\": false, \"x\": [true, false], \"y\": -3}]}",
        "train --lr=0.005 --images=1000000 --samples --x --y=-3\n"
        "train --lr=0.005 --images=1000000 --samples --y=-3\n");
    /* a text stays one argument, whatever it contains */
    expect("{\"runs\": [{\"command\": \"train\", \"data\": \"a b --json x\"}]}",
           "train --data=a b --json x\n");
}

static void refused(const char *text, int code, const char *why)
{
    struct ddp_sweep_plan plan;
    struct ddp_err err;
    int rc = parse(text, &plan, &err);
    if (rc != code || !text_names(err.text, why))
        fail_msg("%s: %d '%s', not '%s'", text, rc, err.text, why);
}

static void test_refused(void **state)
{
    refused("", DDP_EINPUT, "c.json");
    refused("{\"runs\": [}", DDP_EINPUT, "c.json");
    refused("{\"runs\": [{\"command\": \"a\"}], \"runs\": []}", DDP_EINPUT, "'");
    refused("[]", DDP_ECONFIG, "");
    refused("{}", DDP_ECONFIG, "'runs'");
    refused("{\"runs\": []}", DDP_ECONFIG, "'runs'");
    refused("{\"runs\": {}}", DDP_ECONFIG, "'runs'");
    refused("{\"run\": []}", DDP_ECONFIG, "'run'");
    refused("{\"description\": 3, \"runs\": [{\"command\": \"a\"}]}", DDP_ECONFIG, "description");
    refused("{\"runs\": [3]}", DDP_ECONFIG, "runs[0]");
    refused("{\"runs\": [{\"size\": 8}]}", DDP_ECONFIG, "'command'");
    refused("{\"runs\": [{\"command\": \"a\"}, {\"command\": \"--x\"}]}", DDP_ECONFIG, "runs[1]");
    refused("{\"runs\": [{\"command\": \"a\", \"size\": []}]}", DDP_ECONFIG, "'size'");
    refused("{\"runs\": [{\"command\": \"a\", \"size\": [8, 8.0]}]}", DDP_ECONFIG, "'");
    refused("{\"runs\": [{\"command\": \"a\", \"size\": [[8]]}]}", DDP_ECONFIG, "'size'");
    refused("{\"runs\": [{\"command\": \"a\", \"size\": {}}]}", DDP_ECONFIG, "'size'");
    refused("{\"runs\": [{\"command\": \"a\", \"size\": null}]}", DDP_ECONFIG, "'size'");
    refused("{\"runs\": [{\"command\": \"allreduce\", \"size\": [true]}]}", DDP_ECONFIG, "'size'");
    refused("{\"runs\": [{\"command\": \"a\", \"si ze\": 8}]}", DDP_ECONFIG, "runs[0]");
    refused("{\"runs\": [{\"command\": \"a\", \"-b\": 8}]}", DDP_ECONFIG, "runs[0]");
    refused("{\"runs\": [{\"command\": \"a\", \"\\u001b[31m\": 8}]}", DDP_ECONFIG, "'?[31m'");
}

/* Limits are checked before memory is allocated. */
static void test_bounds(void **state)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_add(&text, "{\"runs\": [{\"command\": \"a\"");
    for (int axis = 0; axis < 3; axis++) {
        ddp_strbuf_addf(&text, ", \"x%d\": [", axis);
        for (int i = 0; i < 200; i++)
            ddp_strbuf_addf(&text, "%s%d", i ? "," : "", i);
        ddp_strbuf_add(&text, "]");
    }
    ddp_strbuf_add(&text, "}]}");
    refused(text.text, DDP_ECONFIG, "runs[0]");
    ddp_strbuf_release(&text);
    ddp_strbuf_add(&text, "{\"runs\": [{\"command\": \"a\", \"x\": [0");
    for (int i = 1; i <= DDP_SWEEP_AXIS_MAX; i++)
        ddp_strbuf_addf(&text, ",%d", i);
    ddp_strbuf_add(&text, "]}]}");
    refused(text.text, DDP_ECONFIG, "runs[0]");
    ddp_strbuf_release(&text);
    ddp_strbuf_add(&text, "{\"runs\": [{\"command\": \"a\"");
    for (int i = 0; i <= DDP_SWEEP_KEYS_MAX; i++)
        ddp_strbuf_addf(&text, ", \"x%d\": 1", i);
    ddp_strbuf_add(&text, "}]}");
    refused(text.text, DDP_ECONFIG, "runs[0]");
    ddp_strbuf_release(&text);
    ddp_strbuf_add(&text, "{\"runs\": [{\"command\": \"a\", \"x\": \"");
    ddp_strbuf_pad(&text, DDP_SWEEP_VALUE_MAX + 1);
    ddp_strbuf_add(&text, "\"}]}");
    refused(text.text, DDP_ECONFIG, "runs[0]");
    ddp_strbuf_pad(&text, DDP_SWEEP_FILE_MAX);
    refused(text.text, DDP_EINPUT, "c.json");
    ddp_strbuf_release(&text);
}

/* Different texts have different hashes, by which a journal identifies its configuration. */
static void test_hash(void **state)
{
    struct ddp_sweep_plan a, b;
    struct ddp_err err;
    assert_int_equal(parse("{\"runs\": [{\"command\": \"a\"}]}", &a, &err), 0);
    assert_int_equal(parse("{\"runs\": [{\"command\": \"b\"}]}", &b, &err), 0);
    assert_true(a.hash != b.hash);
    assert_int_equal(a.runs, 1);
    ddp_sweep_plan_release(&a);
    ddp_sweep_plan_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),    cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
