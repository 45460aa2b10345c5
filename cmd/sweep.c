/* `ddpbench sweep`: its options, and the functions that concern the whole sweep. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sweep.h"

/* Chooses the default journal, FILE.journal beside the result FILE. A result that is not a regular
 * file gets no journal. */
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
    if (parsed->operand_count > 1)
        return ddp_fail(err, DDP_EUSAGE,
                        "sweep takes one configuration; unexpected argument '%.64s'",
                        parsed->operands[1]);
    if (v->launches < 1)
        v->launches = 1;
    v->config_path = parsed->operands[0];
    choose_journal(v);
    if (v->restart && !v->journal_path && !v->default_journal[0])
        return ddp_fail(err, DDP_EUSAGE,
                        "--restart: there is no journal without --json FILE or "
                        "--journal FILE");
    return ddp_sweep_read(app, v, err);
}

static const char *protected_path(const void *values, int i)
{
    const struct ddp_sweep_values *v = values;
    return i == 0 ? v->config_path : i == 1 ? ddp_sweep_journal_path(v) : NULL;
}

/* Returns the largest heap that any item of the current launch group needs. Before the launch
 * groups are made, all items with at most `ranks` ranks count. */
static uint64_t heap_bytes(const void *values, int ranks)
{
    const struct ddp_sweep_values *v = values;
    uint64_t most = 0;
    if (v->current >= v->stage_count) {
        for (int i = 0; i < v->count; i++)
            if (v->items[i].ranks <= ranks)
                most = DDP_MAX(most, v->items[i].heap_bytes);
        return most;
    }
    const struct ddp_sweep_launch_group *stage = &v->stages[v->current];
    for (int i = 0; i < stage->count; i++)
        most = DDP_MAX(most, v->items[stage->items[i]].heap_bytes);
    return most;
}

static bool threads(const void *values)
{
    const struct ddp_sweep_values *v = values;
    for (int i = 0; i < v->count; i++)
        if (v->items[i].threads)
            return true;
    return false;
}

static void release(void *values)
{
    struct ddp_sweep_values *v = values;
    ddp_sweep_plan_release(&v->plan);
    free(v->items);
    for (int i = 0; i < v->data_count; i++)
        ddp_dataset_release(&v->data[i].set);
    free(v->data);
    free(v->ids);
    free(v->order);
    free(v->measured);
    free(v->stages);
    free(v->done.keys);
}

static const struct ddp_cmd_launch_groups stages = {
    .next = ddp_sweep_next,
    .open = ddp_sweep_collector_open,
    .share = ddp_sweep_share,
    .keep = ddp_sweep_collector_keep,
    .close = ddp_sweep_collector_close,
    .closed = ddp_sweep_collector_closed,
};

#define AT(field) offsetof(struct ddp_sweep_values, field)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Sweep"),
    DDP_OPT(INT, "launches", 0, AT(launches), "N", "1",
            "measure everything N times, each time with newly started ranks; under mpiexec run the "
            "command N times, because each run measures once",
            .min = 1, .max = DDP_JOURNAL_LAUNCH_MAX),
    DDP_OPT(STRING, "journal", 0, AT(journal_path), "FILE", NULL,
            "record finished points in FILE and keep it (default: FILE.journal beside the result "
            "of --json, removed when the result is complete)"),
    DDP_OPT(FLAG, "restart", 0, AT(restart), NULL, NULL,
            "discard the finished points in the journal"),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "dry-run", 0, AT(dry_run), NULL, NULL,
            "print the plan, the memory it needs and an estimate of its time; measure nothing"),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_sweep;
const struct ddp_cmd ddp_cmd_sweep = {
    .name = "sweep",
    .summary = "many runs from a configuration; continues after an interruption",
    .operands = "CONFIG.json",
    .details =
        "The configuration is JSON. The keys of a run are options of its command. If values\n"
        "are lists, every combination is measured.\n"
        "\n"
        "  {\"runs\": [\n"
        "    {\"command\": \"allreduce\", \"ranks\": [1, 2], \"size\": [\"8\", \"64K\"],\n"
        "     \"dtype\": [\"f32\", \"f16\"]},\n"
        "    {\"command\": \"train\", \"sync\": [\"dense\", \"topk:0.01\"], \"epochs\": 2}]}\n"
        "\n"
        "Each finished point goes to a journal before it is shown. The same command line\n"
        "continues an interrupted sweep, on the same machine with the same build; an\n"
        "interrupted training run starts over. --seed sets the order of the runs. It is also\n"
        "the seed of runs that set none. With backend nccl a run that sets no number of ranks\n"
        "gets one rank per GPU. Runs that are impossible here are left out with a warning,\n"
        "and the exit code is then 69.\n"
        "\n"
        "Examples:\n"
        "  ddpbench sweep configs/quick.json --json today.json\n"
        "  ddpbench sweep configs/full.json --dry-run\n"
        "  mpiexec -n 16 ddpbench sweep configs/full.json --json full.json",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_sweep_values),
    .help_offset = AT(world.help),
    .flags = DDP_CMD_NEEDS_WORLD,
    .check = check,
    .protected_path = protected_path,
    .prepare = ddp_sweep_prepare,
    .heap_bytes = heap_bytes,
    .threads = threads,
    .gpu = ddp_sweep_gpu,
    .rank_main = ddp_sweep_rank_main,
    .release = release,
    .stages = &stages,
};
