/* `ddpbench allreduce`: combines an array over all ranks and leaves the result on every rank. */
#include "collective.h"

static const char *feedback_choice(int i)
{
    static const char *const choices[DDP_FEEDBACK_COUNT] = {
        [DDP_FEEDBACK_AUTO] = "auto", [DDP_FEEDBACK_ON] = "on", [DDP_FEEDBACK_OFF] = "off"};
    return i < DDP_FEEDBACK_COUNT ? choices[i] : NULL;
}
static const struct ddp_opt_choices feedback_choices = {feedback_choice, NULL};

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_bench_options *o = &((struct ddp_collective_values *)values)->bench;
    /* Compressed and partial exchanges work in place. The dense points of the same plan then do
     * too, so that they can be compared. */
    if (ddp_plan_reduces(o) && !ddp_opt_given(app->cmd->rows, parsed, "placement"))
        o->placement = DDP_IN_PLACE;
    return ddp_collective_check(DDP_ALLREDUCE, app, values, parsed, err);
}

static const char *const aliases[] = {"all-reduce", "all_reduce", NULL};

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ROWS,
    DDP_COLLECTIVE_OP_ROW,
    {.name = "compress",
     .kind = DDP_OPT_STRING_LIST,
     .offset = DDP_COLLECTIVE_FIELD(compress),
     .value = "HOW[,HOW...]",
     .group = "Compression",
     .help = "compression of what ranks send: none, fp16[:CLIP], bf16, topk:D (the fraction D of "
             "largest magnitude), threshold:T (|x| >= T), oktopk:D; each is measured in place, "
             "with f32"},
    {.name = "feedback",
     .kind = DDP_OPT_ENUM,
     .offset = DDP_COLLECTIVE_FIELD(feedback),
     .value = "WHEN",
     .initial = "auto",
     .group = "Compression",
     .help = "error feedback: add the values that were not sent to the next gradient; auto: on for "
             "the sparse methods",
     .choices = &feedback_choices},
    {.name = "partial",
     .kind = DDP_OPT_INT,
     .offset = DDP_COLLECTIVE_FIELD(partial),
     .value = "K",
     .group = "Compression",
     .help = "exchange one of K equal chunks per iteration, in turn",
     .min = 1,
     .max = DDP_PLAN_PARTIAL_MAX},
    {.name = "gradient",
     .kind = DDP_OPT_STRING_LIST,
     .offset = DDP_COLLECTIVE_FIELD(gradient),
     .value = "WHAT",
     .group = "Compression",
     .help = "input data: normal (the default), heavy-tail (Student's t, 3 degrees of freedom), or "
             "FILE.npy[,...] recorded by `train --dump-gradients` and replayed in sequence"},
    {.name = "break-even",
     .kind = DDP_OPT_FLAG,
     .offset = DDP_COLLECTIVE_FIELD(break_even),
     .group = "Compression",
     .help = "measure topk and oktopk at other densities as well, to find the density above which "
             "dense is faster; takes as long as about ten more points"},
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_allreduce;
const struct ddp_cmd ddp_cmd_allreduce = {
    .name = "allreduce",
    .aliases = aliases,
    .summary = "sum, average, ... over all ranks; every rank gets the result",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; the slowest rank's time counts.\n"
        "Before a point is timed, its result is verified exactly, element by element.\n\n"
        "Examples:\n"
        "  ddpbench allreduce --size 64M\n"
        "  ddpbench allreduce -b 8 -e 1G -f 2 --json out.json\n"
        "  mpiexec -n 16 ddpbench allreduce --algorithm all -d f32,f16\n"
        "  ddpbench allreduce --size 64M --compress fp16,topk:0.01 --break-even\n"
        "  ddpbench all_reduce_perf -b 8 -e 128M -f 2 -g 1    (flags of nccl-tests)\n\n"
        "Compressed and partial exchanges have no bus bandwidth. `ddpbench explain effective`\n"
        "and `ddpbench explain break-even` say what their figures mean. On GPUs each rank's\n"
        "sparse list has a fixed capacity. For n values this is D*n (topk, oktopk) or n/8\n"
        "(threshold; without feedback: n). All lists are gathered in full. The bytes shown are\n"
        "modelled, and oktopk sends as many bytes as topk.",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .check = check,
    .show = ddp_collective_show,
    .job = &ddp_points_job,
};
