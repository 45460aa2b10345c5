/* `ddpbench train`: does a real model learn as it should when its gradients are exchanged this way,
 * and how fast? */
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
        return ddp_fail(err, DDP_EUSAGE, "'train' takes no operand: '%s'", parsed->operands[0]);
    DDP_TRY(ddp_sync_find(v->sync, &v->sync_class, &v->sync_argument, err));
    if (!ddp_opt_given(app->cmd->rows, parsed, "target-accuracy"))
        v->target_accuracy = NAN;
    return 0;
}

/* Ranks of this run that share this machine's memory. */
static int local_ranks(const struct ddp_app *app, int ranks)
{
    bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    return own ? ranks : DDP_MIN(ranks, app->launcher.place.local_size);
}

static int check_memory(const struct ddp_train_options *o, int local, struct ddp_err *err)
{
    struct ddp_sysinfo host;
    uint64_t each = ddp_train_heap_bytes(o) + ddp_train_private_bytes(o);
    uint64_t need = each * (uint64_t)local;
    char each_text[24], need_text[24], have_text[24];
    ddp_sysinfo_read(&host);
    if (host.available_bytes < 0 || need <= (uint64_t)host.available_bytes)
        return 0;
    ddp_format_size(each, each_text, sizeof each_text);
    ddp_format_size(need, need_text, sizeof need_text);
    ddp_format_size((uint64_t)host.available_bytes, have_text, sizeof have_text);
    ddp_fail(err, DDP_ENOMEM, "does not fit: %d rank%s x %s for batches of %d = %s, available: %s",
             local, local == 1 ? "" : "s", each_text, o->batch, need_text, have_text);
    return ddp_hint(err, "use a smaller --batch, or fewer --ranks");
}

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    struct ddp_train_values *v = values;
    struct ddp_train_options o;
    (void)backend;
    /* Before the ranks are forked: they share these pages. */
    DDP_TRY(ddp_dataset_load(ddp_dataset_readers()[v->dataset]->name, v->dir, &v->data, err));
    ddp_train_values_options(v, &o);
    return check_memory(&o, local_ranks(app, ranks), err);
}

static uint64_t heap_bytes(const void *values, int ranks)
{
    struct ddp_train_options o;
    (void)ranks;
    ddp_train_values_options(values, &o);
    return ddp_train_heap_bytes(&o);
}

static int on_start(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    return ddp_emit_train(arg, run, err);
}

static int on_epoch(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                    struct ddp_err *err)
{
    (void)run;
    return ddp_emit_epoch(arg, epoch, err);
}

static int on_end(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    return ddp_emit_train_end(arg, run, err);
}

static void on_progress(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                        double images_per_second)
{
    ddp_emit_progress(arg, "epoch %d, step %lld of %lld, loss %.4f, %.0f images/s", epoch,
                      (long long)step, (long long)steps, loss, images_per_second);
}

static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    struct ddp_train_options o;
    const struct ddp_train_events events = {.on_start = on_start,
                                            .on_epoch = on_epoch,
                                            .on_progress = on_progress,
                                            .on_end = on_end,
                                            .arg = rank};
    ddp_train_values_options(values, &o);
    return ddp_train(rank->comm, &o, &events, err);
}

static void release(void *values)
{
    struct ddp_train_values *v = values;
    ddp_dataset_release(&v->data);
}

extern const struct ddp_cmd ddp_cmd_train;
const struct ddp_cmd ddp_cmd_train = {
    .name = "train",
    .summary = "a real training run, data parallel, with the exchange of your choice",
    .operands = "",
    .details =
        "Every rank holds the whole model and its slice of each global batch; gradients are\n"
        "averaged over the global batch, so P ranks of batch B train as one of P*B. The same\n"
        "seed gives the same losses, bit for bit. Seconds and images/s are of training alone;\n"
        "evaluation, over all images, is outside.\n"
        "\n"
        "Examples:\n"
        "  ddpbench train --epochs 10 --json run.json\n"
        "  ddpbench train --ranks 2 --batch 64 --data ~/mnist --dataset mnist\n"
        "  mpiexec -n 16 ddpbench train --sync dense --bucket-bytes 256K",
    .rows = ddp_train_rows,
    .values_bytes = sizeof(struct ddp_train_values),
    .help_offset = offsetof(struct ddp_train_values, world.help),
    .flags = DDP_CMD_NEEDS_WORLD,
    .check = check,
    .prepare = prepare,
    .heap_bytes = heap_bytes,
    .rank_main = rank_main,
    .release = release,
};
