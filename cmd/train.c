/* `ddpbench train` trains a real model data-parallel, and measures its accuracy and speed with a
 * chosen gradient exchange. */
#include <math.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "train_options.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_train_values *v = values;
    if (parsed->operand_count > 0)
        return ddp_fail(err, DDP_EUSAGE, "train takes no operands; unexpected argument '%s'",
                        parsed->operands[0]);
    DDP_TRY(ddp_train_values_jobs(app->cmd, v, parsed, err));
    if (!ddp_opt_given(app->cmd->rows, parsed, "target-accuracy"))
        v->target_accuracy = NAN;
    return ddp_train_values_complete(v, parsed, err);
}

/* Returns the number of ranks that share this machine's memory. */
static int local_ranks(const struct ddp_app *app, int ranks)
{
    bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    return own ? ranks : DDP_MIN(ranks, app->launcher.rank_info.local_size);
}

static int check_memory(const struct ddp_train_options *o, int ranks, int local,
                        struct ddp_err *err)
{
    struct ddp_sysinfo host;
    uint64_t each = ddp_train_heap_bytes(o, ranks) + ddp_train_private_bytes(o, ranks);
    uint64_t need = each * (uint64_t)local;
    char each_text[24], need_text[24], have_text[24];
    ddp_sysinfo_read(&host);
    if (host.available_bytes < 0 || need <= (uint64_t)host.available_bytes)
        return 0;
    ddp_format_size(each, each_text, sizeof each_text);
    ddp_format_size(need, need_text, sizeof need_text);
    ddp_format_size((uint64_t)host.available_bytes, have_text, sizeof have_text);
    ddp_fail(err, DDP_ENOMEM, "does not fit: %d rank%s x %s for batches of %d = %s, available: %s",
             local, local == 1 ? "" : "s", each_text, ddp_train_batch(o, ranks), need_text,
             have_text);
    return ddp_hint(err, "use a smaller --batch, or fewer --ranks");
}

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    struct ddp_train_values *v = values;
    struct ddp_train_options o;
    struct ddp_dataset_request request;
    int most = ranks;
    for (int i = 0; i < v->world.ranks.n; i++)
        most = DDP_MAX(most, (int)v->world.ranks.v[i]);
    DDP_TRY(ddp_train_values_device(v, ddp_backend_find(backend), most, err));
    /* Load the data before the ranks are forked, so that the ranks share the pages. */
    const struct ddp_dataset_reader *reader = ddp_train_values_data(v, &request);
    if (!v->data.train.pixels) /* otherwise the sweep has loaded the data */
        DDP_TRY(ddp_dataset_load(reader->name, &request, &v->data, err));
    for (int job = 0; job < v->job_count; job++) {
        ddp_train_values_options(v, job, 0, &o);
        for (int i = 0; i < v->world.ranks.n; i++)
            DDP_TRY(ddp_train_check(&o, (int)v->world.ranks.v[i], err));
        DDP_TRY(ddp_train_check(&o, ranks, err));
        DDP_TRY(check_memory(&o, ranks, local_ranks(app, ranks), err));
    }
    return 0;
}

static uint64_t heap_bytes(const void *values, int ranks)
{
    const struct ddp_train_values *v = values;
    struct ddp_train_options o;
    uint64_t most = 0;
    for (int job = 0; job < v->job_count; job++) {
        ddp_train_values_options(v, job, 0, &o);
        most = DDP_MAX(most, ddp_train_heap_bytes(&o, ranks));
    }
    return most;
}

static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    return ddp_train_run_all(rank, values, err);
}

static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    (void)out;
    return ddp_train_values_gpu(values, err);
}

static bool threads(const void *values)
{
    const struct ddp_train_values *v = values;
    return v->overlap != 0;
}

static void release(void *values)
{
    struct ddp_train_values *v = values;
    ddp_dataset_release(&v->data);
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
    .flags = DDP_CMD_NEEDS_WORLD,
    .check = check,
    .prepare = prepare,
    .heap_bytes = heap_bytes,
    .threads = threads,
    .gpu = gpu,
    .rank_main = rank_main,
    .release = release,
};
