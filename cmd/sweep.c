/* The options and the dry run of `ddpbench sweep`. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "cmd.h"
#include "run/points.h"
#include "run/sweep.h"

/* Chooses the default journal: FILE.journal for --json FILE. There is no journal for stdout, for a
 * FILE that exists and is not a regular file, such as a pipe, and for a path that is too long. */
static void choose_journal(struct ddp_sweep_values *v)
{
    struct stat st;
    const char *json = v->world.json;
    if (v->journal_path || !json || strcmp(json, "-") == 0)
        return;
    if (stat(json, &st) == 0 && !S_ISREG(st.st_mode))
        return;
    if (strlen(json) + sizeof ".journal" <= sizeof v->default_journal)
        snprintf(v->default_journal, sizeof v->default_journal, "%s.journal", json);
}

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_sweep_values *v = values;
    if (parsed->operand_count == 0) {
        ddp_fail(err, DDP_EUSAGE, "sweep needs a configuration");
        return ddp_hint(err, "ddpbench sweep CONFIG.json; examples are in configs/ of the sources, "
                             "installed in share/ddpbench/configs");
    }
    DDP_TRY(ddp_check_operands(app, parsed, 1, "one configuration", err));
    if (v->launches < 1)
        v->launches = 1;
    v->config_path = parsed->operands[0];
    choose_journal(v);
    if (v->restart && !v->journal_path && !v->default_journal[0])
        return ddp_fail(err, DDP_EUSAGE,
                        "--restart: this command has no journal; use --json with a regular "
                        "file, or --journal FILE");
    DDP_TRY(ddp_sweep_read(app, v, err));
    v->world.protected_path[v->world.protected_count++] = v->config_path;
    if (ddp_sweep_journal_path(v))
        v->world.protected_path[v->world.protected_count++] = ddp_sweep_journal_path(v);
    return 0;
}

static void print_head(const struct ddp_sweep_values *v, FILE *out)
{
    struct ddp_sysinfo host;
    char most[24], have[24], path[256];
    struct ddp_estimate all = {0};
    int trained = 0;
    for (int i = 0; i < v->count; i++) {
        const struct ddp_estimate *e = &v->items[i].estimate;
        all.bytes = DDP_MAX(all.bytes, e->bytes);
        all.seconds += e->seconds * (double)v->launches;
        all.most += e->most * (double)v->launches;
        trained += ddp_sweep_item_plan(&v->items[i]) == NULL;
    }
    ddp_sysinfo_read(&host);
    ddp_memory_text(host.available_bytes, have, sizeof have);
    ddp_format_size(all.bytes, most, sizeof most);
    ddp_printable(v->config_path, path, sizeof path);
    ddp_print_note(
        out,
        "dry run of %s: %d points and %d training run%s per repetition, %lld repetition%s "
        "(--launches), ranks are started %d time%s in all",
        path, v->points, trained, trained == 1 ? "" : "s", (long long)v->launches,
        v->launches == 1 ? "" : "s", v->stage_count, v->stage_count == 1 ? "" : "s");
    ddp_print_note(out, "memory: at most %s at a time; available: %s", most, have);
    ddp_print_time(&all, out);
    for (int i = 0; i < v->skipped_count; i++)
        ddp_print_note(out, "left out: %s: %s", v->skipped[i].what, v->skipped[i].reason);
}

static void print_item(const struct ddp_sweep_item *item, FILE *out)
{
    const struct ddp_bench_plan *plan = ddp_sweep_item_plan(item);
    char text[1024];
    ddp_sweep_item_text(item, text, sizeof text);
    if (!plan)
        fprintf(out, "%s\n", text);
    for (int k = 0; plan && k < plan->count; k++) {
        ddp_point_id(&plan->points[k], text, sizeof text);
        fprintf(out, "%s\n", text);
    }
}

/* Prints the dry run. */
static int show(struct ddp_app *app, const void *values, const char *backend, int ranks,
                struct ddp_err *err)
{
    const struct ddp_sweep_values *v = values;
    (void)backend;
    (void)ranks;
    (void)err;
    if (v->dry_run && ddp_app_is_root(app)) {
        print_head(v, app->out);
        for (int s = 0; s < v->stage_count; s++) {
            const struct ddp_sweep_launch_group *stage = &v->stages[s];
            ddp_print_note(app->out, "repetition %d: %d rank%s over %s", stage->launch,
                           stage->ranks, stage->ranks == 1 ? "" : "s", stage->backend);
            for (int i = 0; i < stage->count; i++)
                print_item(&v->items[stage->items[i]], app->out);
        }
    }
    return v->dry_run ? DDP_PREPARE_DONE : 0;
}

#define AT(field) offsetof(struct ddp_sweep_values, field)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Sweep"),
    DDP_OPT(
        INT, "launches", 0, AT(launches), "N", "1",
        "measure everything N times, each time with newly started ranks; under mpiexec each start "
        "of the command measures once: run the same command line N times",
        .min = 1, .max = DDP_JOURNAL_LAUNCH_MAX, .brief = "measure everything N times"),
    DDP_OPT(STRING, "journal", 0, AT(journal_path), "FILE", NULL,
            "record finished points in FILE, which is kept; without this option --json RESULT uses "
            "RESULT.journal, and removes it when the result is complete",
            .brief = "record finished points in FILE, and keep it"),
    DDP_OPT(FLAG, "restart", 0, AT(restart), NULL, NULL,
            "discard the finished points in the journal", .brief = ""),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "dry-run", 0, AT(dry_run), NULL, NULL,
            "print the plan, the memory it needs and an estimate of its time; measure nothing",
            .brief = "print the plan; measure nothing"),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

const struct ddp_cmd ddp_cmd_sweep = {
    .name = "sweep",
    .group = DDP_CMD_MEASURE,
    .summary = "many runs from a configuration; continues after an interruption",
    .operands = "CONFIG.json",
    .details =
        "The configuration is JSON. The keys of a run are options of its command. If\n"
        "values are lists, every combination is measured.\n"
        "\n"
        "  {\"runs\": [\n"
        "    {\"command\": \"allreduce\", \"ranks\": [1, 2], \"size\": [\"8\", \"64K\"],\n"
        "     \"dtype\": [\"f32\", \"f16\"]},\n"
        "    {\"command\": \"train\", \"sync\": [\"dense\", \"topk:0.01\"], \"epochs\": 2}]}\n"
        "\n"
        "With --json FILE or --journal FILE, each finished point goes to a journal before\n"
        "it is shown. The same command line then continues an interrupted sweep, on the\n"
        "same machine with the same build. An interrupted training run starts over.\n"
        "--seed sets the order of the runs. It is also the seed of runs that set none.\n"
        "\"ranks\": \"all\" stands for all ranks of mpiexec, else for the default of --ranks.\n"
        "With backend nccl a run that sets no number of ranks gets one rank per GPU, at\n"
        "most 8. A run with more ranks than mpiexec started is left out with a warning. A\n"
        "run that its ranks find impossible is left out with a warning, too, and the exit\n"
        "code is then 69. If a run is found to be impossible before its ranks are\n"
        "started, for another reason than too many ranks, the sweep ends at once.\n",
    .examples = "  ddpbench sweep configs/quick.json --json today.json\n"
                "  ddpbench sweep configs/full.json --dry-run\n"
                "  mpiexec -n 16 ddpbench sweep configs/cluster.json --json cluster.json\n",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_sweep_values),
    .help_offset = AT(world.help),
    .check = check,
    .show = show,
    .job = &ddp_sweep_job,
};
