/* Checks the options of a collective command. */
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "run/points.h"

#define BLOCKS 20 /* number of blocks (--block) without -n */

/* Parses PCT@ID into o->inject_percent and o->inject_id. */
static int parse_inject(const char *text, struct ddp_bench_options *o, struct ddp_err *err)
{
    char number[32];
    struct ddp_err ignored = DDP_ERR_INIT;
    const size_t digits = strcspn(text, "@");
    const char *id = text[digits] == '@' ? text + digits + 1 : "";
    snprintf(number, sizeof number, "%.*s", (int)DDP_MIN(digits, sizeof number), text);
    if (ddp_parse_double(number, 0, 1000, &o->inject_percent, &ignored) != 0 ||
        o->inject_percent == 0 || id[0] == '\0' || strlen(id) >= sizeof o->inject_id) {
        ddp_fail(err, DDP_EUSAGE, "--inject-delay '%s' is not of the form PCT@ID", text);
        return ddp_hint(err,
                        "for example 10@ID for 10 %% (at most 1000); --dry-run prints the ids");
    }
    snprintf(o->inject_id, sizeof o->inject_id, "%s", id);
    return 0;
}

/* Adds a note to the record if a delay is injected, ranks arrive at different times or blocks are
 * timed, because the times are then not the normal times of single calls. */
static void add_note(struct ddp_collective_values *v)
{
    const struct ddp_bench_options *o = &v->bench;
    char *out = v->world.note;
    const size_t bytes = sizeof v->world.note;
    if (o->inject_id[0])
        snprintf(out, bytes, "injected delay of %g %%", o->inject_percent);
    if (o->arrival.name[0]) {
        const size_t n = strlen(out);
        snprintf(out + n, bytes - n, "%sarrival %s", n ? "; " : "", o->arrival.name);
    }
    if (o->block > 1) {
        const size_t n = strlen(out);
        snprintf(out + n, bytes - n, "%sblocks of %lld calls", n ? "; " : "", (long long)o->block);
    }
}

/* Turns the parsed options into bench options. By default, --precision and --max-time decide when a
 * point ends. With -n or --block, the number of iterations is fixed, and these two options apply
 * only if the user gave them. Returns DDP_EUSAGE for a malformed --inject-delay or --arrival, for
 * --precision with --block, and for --arrival with --start window. Adds a note to the record if a
 * delay is injected, ranks arrive at different times or blocks are timed. */
static int set_timing(struct ddp_collective_values *v, const struct ddp_opt *rows,
                      const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    struct ddp_bench_options *o = &v->bench;
    const bool exactly = ddp_opt_given(rows, parsed, "iters") || o->block > 1;
    if (!exactly || ddp_opt_given(rows, parsed, "precision"))
        o->precision = v->precision_percent / 100;
    if (exactly && !ddp_opt_given(rows, parsed, "max-time"))
        o->max_time_s = 0;
    if (!ddp_opt_given(rows, parsed, "iters"))
        o->iters = o->block > 1 ? BLOCKS : DDP_PLAN_ITERS_ADAPTIVE;
    if (o->block > 1 && ddp_opt_given(rows, parsed, "precision"))
        return ddp_fail(
            err, DDP_EUSAGE,
            "--precision has no effect with --block %lld, because blocks have no interval",
            (long long)o->block);
    if (v->inject)
        DDP_TRY(parse_inject(v->inject, o, err));
    if (v->arrival)
        DDP_TRY(ddp_arrival_parse(v->arrival, &o->arrival, err));
    if (v->arrival && o->start == DDP_START_WINDOW)
        return ddp_fail(err, DDP_EUSAGE,
                        "--arrival and --start window contradict each other, because in a window "
                        "all ranks start at the same time");
    add_note(v);
    return 0;
}

/* Fails if two options define the sizes in different ways, because neither of the two may be
 * ignored. */
static int check_contradictions(const struct ddp_opt *rows, const struct ddp_opt_result *parsed,
                                struct ddp_err *err)
{
    static const char *const range[] = {"min-bytes", "max-bytes", "step-factor", "step-bytes"};
    for (size_t i = 0; i < DDP_COUNT_OF(range) && ddp_opt_given(rows, parsed, "size"); i++) {
        if (ddp_opt_given(rows, parsed, range[i])) {
            ddp_fail(err, DDP_EUSAGE, "--size and --%s contradict each other", range[i]);
            return ddp_hint(err, "--size lists sizes, --%s belongs to a range: use one of them",
                            range[i]);
        }
    }
    if (ddp_opt_given(rows, parsed, "step-factor") && ddp_opt_given(rows, parsed, "step-bytes"))
        return ddp_fail(err, DDP_EUSAGE, "--step-factor and --step-bytes contradict each other");
    return 0;
}

/* A barrier moves no data, so all points of its plan have size 0, and none is verified. */
static void choose_no_data(struct ddp_bench_options *o)
{
    o->sizes.n = 1;
    o->sizes.v[0] = 0;
    o->placement = DDP_OUT_OF_PLACE;
    o->check = DDP_CHECK_OFF;
}

static int check_values(enum ddp_coll coll, struct ddp_app *app, void *values,
                        const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    struct ddp_collective_values *v = values;
    const struct ddp_opt *rows = app->cmd->rows;
    if (ddp_check_operands(app, parsed, 0, "no operands", err) != 0) {
        uint64_t bytes;
        struct ddp_err no_size = DDP_ERR_INIT;
        if (ddp_parse_size(parsed->operands[0], &bytes, &no_size) == 0)
            return ddp_hint(err, "to choose the size, write --size %s", parsed->operands[0]);
        return ddp_hint(err, "`ddpbench %s --help` lists the options", app->cmd->name);
    }
    if (coll != DDP_BARRIER) /* a barrier does not have these options */
        DDP_TRY(check_contradictions(rows, parsed, err));
    v->bench.coll = coll;
    DDP_TRY(ddp_plan_parse_groups(v->groups, &v->bench, err));
    v->bench.seed = v->world.seed;
    if (v->split != NULL)
        DDP_TRY(ddp_split_parse(v->split, &v->bench.split, err));
    if (v->bench.split.path != NULL)
        v->world.protected_path[v->world.protected_count++] = v->bench.split.path;
    for (int i = 0; i < v->world.ranks.n; i++) {
        int of_a_group;
        DDP_TRY(ddp_plan_group_ranks(&v->bench, (int)v->world.ranks.v[i], &of_a_group, err));
    }
    if (coll == DDP_BARRIER)
        choose_no_data(&v->bench);
    DDP_TRY(set_timing(v, rows, parsed, err));
    for (int i = 0; i < v->bench.gradient.n; i++)
        v->world.protected_path[v->world.protected_count++] = v->bench.gradient.v[i];
    if (v->bench.step_bytes > 0)
        v->bench.step_factor = 0;
    if (coll == DDP_BARRIER || !ddp_opt_given(rows, parsed, "memory"))
        v->bench.memory = -1;
    const bool one_size = v->bench.sizes.n == 1 ||
                          (v->bench.sizes.n == 0 && v->bench.min_bytes == v->bench.max_bytes);
    if (v->world.plot > 0 && one_size) {
        ddp_fail(err, DDP_EUSAGE, "--plot needs several sizes");
        return ddp_hint(err, "for example -b 8 -e 64M -f 4");
    }
    return ddp_plan_check(&v->bench, err);
}

int ddp_points_check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                     struct ddp_err *err)
{
    struct ddp_collective_values *v = values;
    struct ddp_bench_options *o = &v->bench;
    DDP_TRY(ddp_compress_parse_list(&v->compress, &o->compress, err));
    /* Exchanges with --compress or --partial work in place. If the plan has some, its dense points
     * work in place, too, so that the two kinds can be compared. */
    if (ddp_plan_reduces(o) && !ddp_opt_given(app->cmd->rows, parsed, "placement"))
        o->placement = DDP_IN_PLACE;
    return check_values((enum ddp_coll)ddp_coll_parse(app->cmd->name), app, values, parsed, err);
}
