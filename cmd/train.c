/* `ddpbench train` trains a real model data-parallel, and measures its accuracy and speed with a
 * chosen gradient exchange. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "train_options.h"

/* Fails with DDP_EUSAGE if no strategy has the property `has`, because the option would have no
 * effect. */
static int needs_one(const struct ddp_train_values *v, const char *option,
                     bool (*has)(const struct ddp_sync_class *cls), const char *what,
                     struct ddp_err *err)
{
    for (int i = 0; i < v->job_count; i++)
        if (has(v->jobs[i].cls))
            return 0;
    return ddp_fail(err, DDP_EUSAGE, "--%s has no effect with '%s', which %s", option,
                    v->jobs[0].text, what);
}

static bool has_buckets(const struct ddp_sync_class *cls)
{
    return cls->buckets;
}
static bool has_aggregates(const struct ddp_sync_class *cls)
{
    return cls->aggregates;
}
static bool has_compressor(const struct ddp_sync_class *cls)
{
    return cls->compresses;
}

/* Returns true if the strategy exchanges data. */
static bool has_exchange(const struct ddp_sync_class *cls)
{
    return cls->replicas_equal || cls->equal_part != NULL;
}

/* Dump files are named after ranks, so a second run would overwrite them. */
static int check_dump(const struct ddp_cmd *cmd, const struct ddp_train_values *v,
                      const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    const int runs = v->job_count * v->seeds.n * DDP_MAX(v->world.ranks.n, 1);
    if (v->dump_dir && runs > 1)
        return ddp_fail(err, DDP_EUSAGE, "--dump-gradients records one run, not %d", runs);
    if (!v->dump_dir && ddp_opt_given(cmd->rows, parsed, "dump-every"))
        return ddp_fail(err, DDP_EUSAGE, "--dump-every has no effect without --dump-gradients");
    return 0;
}

static int check_meaning(const struct ddp_train_values *v, struct ddp_err *err)
{
    if (strcmp(v->algorithm, "auto") != 0)
        DDP_TRY(needs_one(v, "algorithm", has_exchange, "exchanges nothing", err));
    if (v->overlap)
        DDP_TRY(needs_one(v, "overlap on", has_buckets, "exchanges no gradients", err));
    if (v->bucket_bytes > 0)
        DDP_TRY(needs_one(v, "bucket-bytes", has_buckets, "exchanges no gradients", err));
    if (v->aggregate > 0)
        DDP_TRY(needs_one(v, "aggregate", has_aggregates, "sums no dense gradients", err));
    if (v->feedback != DDP_FEEDBACK_AUTO)
        DDP_TRY(needs_one(v, "feedback", has_compressor, "compresses nothing", err));
    return 0;
}

/* Fills v->jobs and v->seeds. Returns DDP_EUSAGE if options contradict each other. */
static int choose_jobs(const struct ddp_cmd *cmd, struct ddp_train_values *v,
                       const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    if (v->compare.n > 0 && ddp_opt_given(cmd->rows, parsed, "sync"))
        return ddp_fail(err, DDP_EUSAGE, "--sync and --compare are mutually exclusive");
    if (v->seeds.n > 0 && ddp_opt_given(cmd->rows, parsed, "seed"))
        return ddp_fail(err, DDP_EUSAGE, "--seed and --seeds are mutually exclusive");
    v->job_count = v->compare.n > 0 ? v->compare.n : 1;
    for (int i = 0; i < v->job_count; i++) {
        const char *text = v->compare.n > 0 ? v->compare.v[i] : v->sync;
        DDP_TRY(ddp_sync_parse(text, &v->jobs[i], err));
        for (int other = 0; other < i; other++)
            if (strcmp(v->jobs[other].text, text) == 0)
                return ddp_fail(err, DDP_EUSAGE, "--compare has '%s' twice", text);
    }
    if (v->seeds.n == 0) {
        v->seeds.n = 1;
        v->seeds.v[0] = v->world.seed;
    }
    for (int i = 0; i < v->seeds.n; i++)
        for (int other = 0; other < i; other++)
            if (v->seeds.v[other] == v->seeds.v[i])
                return ddp_fail(err, DDP_EUSAGE, "--seeds has %lld twice",
                                (long long)v->seeds.v[i]);
    DDP_TRY(check_dump(cmd, v, parsed, err));
    return check_meaning(v, err);
}

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_train_values *v = values;
    if (parsed->operand_count > 0)
        return ddp_fail(err, DDP_EUSAGE, "train takes no operands; unexpected argument '%s'",
                        parsed->operands[0]);
    DDP_TRY(choose_jobs(app->cmd, v, parsed, err));
    if (!ddp_opt_given(app->cmd->rows, parsed, "target-accuracy"))
        v->target_accuracy = NAN;
    return ddp_train_values_complete(v, parsed, err);
}

extern const struct ddp_cmd ddp_cmd_train;
const struct ddp_cmd ddp_cmd_train = {
    .name = "train",
    .summary = "train a real network data-parallel, with a chosen gradient exchange",
    .operands = "",
    .details =
        "Every rank holds the whole model and its slice of each global batch. Gradients are\n"
        "averaged over the global batch, so P ranks with batch B train like one with P*B.\n"
        "Batch normalisation (resnet9) is the exception: it sees each rank's images alone.\n"
        "On one machine, the same options give the same losses, bit for bit. Seconds and\n"
        "images/s cover the training alone, without the evaluation over all images.\n"
        "\n"
        "Each step uses the gradients of all ranks (dense, fp16, bf16, topk, threshold,\n"
        "oktopk), or each rank uses its own gradients and parameters are averaged from time\n"
        "to time (partial, local). With --compare or --seeds there are several runs, and a\n"
        "table compares them. Before these runs, rank 0 trains a few steps alone, as the\n"
        "baseline of the speed-up.\n"
        "\n"
        "Examples:\n"
        "  ddpbench train --epochs 10 --json run.json\n"
        "  ddpbench train --ranks 2 --batch 64 --data ~/mnist --dataset mnist\n"
        "  ddpbench train --model resnet9 --data ~/cifar-10-batches-py --target-accuracy 0.7\n"
        "  ddpbench train --model resnet9 --dataset synthetic --images 5000 --epochs 2\n"
        "  ddpbench train --compare dense,fp16,topk:0.01 --seeds 1,2,3 --format markdown\n"
        "  mpiexec -n 16 ddpbench train --sync dense --bucket-bytes 256K --overlap on",
    .rows = ddp_train_rows,
    .values_bytes = sizeof(struct ddp_train_values),
    .help_offset = offsetof(struct ddp_train_values, world.help),
    .check = check,
    .job = &ddp_training_job,
};
