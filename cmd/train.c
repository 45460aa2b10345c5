/* `ddpbench train` trains a real model data-parallel, and measures its accuracy and speed with a
 * chosen gradient exchange. */
#include <stdio.h>

#include "base/mem.h"
#include "base/unit.h"
#include "cmd.h"
#include "run/catalog.h"
#include "run/training.h"

static bool offer_sync(const char *command, int i, char *out, size_t out_bytes)
{
    (void)command;
    return ddp_catalog_sync(i, out, out_bytes);
}

static const char *const off_on[] = {"off", "on", NULL};
static const char *const check_names[] = {"epoch", "step", NULL};
static const char *const device_names[] = {"auto", "cpu", "cuda", NULL};

#define AT(field) offsetof(struct ddp_train_values, field)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Training"),
    DDP_OPT(ENUM, "model", 0, AT(model), "NAME", "singa-cnn", "the network",
            .choice = ddp_catalog_model, .brief = ""),
    DDP_OPT(ENUM, "dataset", 0, AT(dataset), "NAME", NULL,
            "data set to train on (default: the model's)", .choice = ddp_catalog_dataset,
            .brief = "the data set (default: the model's)"),
    DDP_OPT(STRING, "data", 0, AT(dir), "DIR", NULL,
            "folder with the data set's files, plain or .gz (default: DDPBENCH_DATA_DIR, else the "
            "folder of its package)",
            .brief = "folder with the files of the data set"),
    DDP_OPT(INT, "images", 0, AT(images), "N", NULL,
            "data set synthetic: number of training images; a fifth as many evaluate the model "
            "(default 10000)",
            .min = 1, .max = 16777216),
    DDP_OPT(INT, "batch", 0, AT(batch), "N", NULL,
            "images per rank and step (default: the model's)", .min = 1, .max = 1048576,
            .brief = "images per rank and step"),
    DDP_OPT(INT, "global-batch", 0, AT(global_batch), "N", NULL,
            "images per step of all ranks together, divided among them; instead of --batch",
            .min = 1, .max = 1048576),
    DDP_OPT(INT, "epochs", 0, AT(epochs), "N", "10", "passes over the training data", .min = 1,
            .max = 100000, .brief = ""),
    DDP_OPT(INT, "max-steps", 0, AT(max_steps), "N", "0",
            "stop after N steps, then evaluate; 0: no limit", .max = 1e15),
    DDP_OPT(ENUM, "optimizer", 0, AT(optimizer), "NAME", NULL, "update rule (default: the model's)",
            .choices = ddp_optimizer_names),
    DDP_OPT(DOUBLE, "lr", 0, AT(lr), "X", NULL, "learning rate (default: the model's)", .max = 1e6,
            .brief = ""),
    DDP_OPT(DOUBLE, "momentum", 0, AT(momentum), "X", NULL,
            "sgd: fraction of the last step that is kept (default: the model's)", .max = 1),
    DDP_OPT(DOUBLE, "weight-decay", 0, AT(weight_decay), "X", NULL,
            "L2 penalty (default: the model's)", .max = 1e6),
    DDP_OPT(ENUM, "init", 0, AT(init), "NAME", NULL,
            "initial weights, uniform in +-sqrt(6/fan_in) or +-sqrt(6/(fan_in+fan_out)) (default: "
            "the model's)",
            .choices = ddp_init_names),
    DDP_OPT(DOUBLE, "target-accuracy", 0, AT(target_accuracy), "X", NULL,
            "record the epoch, seconds and bytes at which the evaluation first reaches X", .max = 1,
            .brief = "record when the accuracy reaches X"),
    DDP_OPT_HEADING("Exchange"),
    DDP_OPT(STRING, "sync", 0, AT(sync), "STRATEGY", "dense",
            "how ranks synchronise their models; see `ddpbench list`", .offer = offer_sync,
            .brief = "fp16, topk:D, ..., local:H"),
    DDP_OPT(STRING_LIST, "compare", 0, AT(compare), "STRATEGY[,...]", NULL,
            "train once with each strategy, instead of --sync, and compare each with the first "
            "'dense', or with the first strategy if none is 'dense'",
            .offer = offer_sync, .brief = "train once with each strategy, and compare"),
    DDP_OPT(INT_LIST, "seeds", 0, AT(seeds), "N[,...]", NULL,
            "train once with each seed, instead of --seed; runs of the same seed are consecutive; "
            "synthetic images stay those of seed 1",
            .max = 9007199254740991.0, .brief = "train once with each seed"),
    DDP_OPT_INCLUDE(ddp_feedback_rows, AT(feedback)),
    DDP_OPT(ENUM, "aggregate", 0, AT(aggregate), "WHERE", "allreduce",
            "where dense gradients are summed: on all ranks, on rank 0, on each tensor's owner, or "
            "within hosts first",
            .choice = ddp_catalog_aggregate),
    DDP_OPT(STRING, "algorithm", 0, AT(algorithm), "NAME", "auto",
            "algorithm of the exchange; see `ddpbench list`", .offer = ddp_offer_algorithm),
    DDP_OPT(ENUM, "overlap", 0, AT(overlap), "on|off", "off",
            "exchange full buckets during the backward pass, in a progress thread (on a GPU: on a "
            "separate stream)",
            .choices = off_on, .brief = "exchange during the backward pass"),
    DDP_OPT(SIZE, "bucket-bytes", 0, AT(bucket_bytes), "S", "0",
            "exchange gradients in buckets of at most S bytes, each as soon as it is full; 0: all "
            "at once"),
    DDP_OPT(STRING, "partition", 0, AT(partition), "HOW", "batch",
            "batch: divide each global batch evenly among the ranks; shard: divide the data set "
            "once; weights:W,...: divide each global batch in proportion to one weight per rank"),
    DDP_OPT(STRING, "arrival", 0, AT(arrival), "HOW", NULL,
            "delay ranks in the middle of each backward pass: late:R,MS (rank R, MS milliseconds), "
            "ramp[:MS] or random[:MS], to test what a slow rank costs; the record gets a note"),
    DDP_OPT(
        ENUM, "init-sync", 0, AT(init_sync), "HOW", "broadcast",
        "initial weights: rank 0's, the average of all ranks', or computed from the common seed",
        .choices = ddp_init_sync_names),
    DDP_OPT(ENUM, "check-replicas", 0, AT(check_replicas), "WHEN", "epoch",
            "compare a hash of all parameters across ranks after every epoch or every step",
            .choices = check_names),
    DDP_OPT(STRING, "dump-gradients", 0, AT(dump_dir), "DIR", NULL,
            "record in DIR/rank0.npy, rank1.npy, ... each rank's gradients before they are "
            "exchanged"),
    DDP_OPT(INT, "dump-every", 0, AT(dump_every), "N", "100",
            "with --dump-gradients: record the first step and every N-th step after it", .min = 1,
            .max = 1e15),
    DDP_OPT_HEADING("World"),
    DDP_OPT(ENUM, "device", 0, AT(device), "WHERE", "auto",
            "device of the models: cpu, cuda (one GPU per rank), or auto: the device whose memory "
            "the backend exchanges",
            .choices = device_names),
    DDP_OPT(ENUM, "cuda-graph", 0, AT(graph), "on|off", "on",
            "device cuda: capture a step of the model once and launch it as one graph (with "
            "--overlap: one graph per bucket)",
            .choices = off_on),
    DDP_OPT(ENUM, "tf32", 0, AT(tf32), "on|off", "off",
            "device cuda: matrix products may round their inputs to TF32", .choices = off_on),
    DDP_OPT(ENUM, "conv", 0, AT(conv), "HOW", "auto",
            "device cuda: compute convolutions with cuDNN, or as matrix products of unfolded "
            "images; auto: cuDNN if it is installed",
            .choices = ddp_conv_names),
    DDP_OPT(STRING, "blas", 0, AT(blas), "LIB", NULL,
            "CBLAS library for the matrix products (default: DDPBENCH_BLAS_LIB, else the first one "
            "found)"),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "dry-run", 0, AT(dry_run), NULL, NULL,
            "print the runs, the memory they need and an estimate of their time; train nothing",
            .brief = "print the runs; train nothing"),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

/* Prints the runs with one rank count. */
static void print_runs(const struct ddp_app *app, const struct ddp_train_values *v,
                       const char *backend, int ranks)
{
    struct ddp_estimate estimate;
    char bytes[24];
    int batch;
    const int runs = v->job_count * v->seeds.n;
    const double steps = ddp_train_values_steps(v, ranks, &batch);
    ddp_training_job.estimate(v, ranks, ddp_app_local_ranks(app, ranks), &estimate);
    ddp_format_size(estimate.bytes, bytes, sizeof bytes);
    ddp_print_note(app->out,
                   "dry run: %d training run%s of %.0f steps, %d rank%s x batch %d, backend %s",
                   runs, runs == 1 ? "" : "s", steps, ranks, ranks == 1 ? "" : "s", batch, backend);
    ddp_print_note(app->out, "memory of this host's ranks: %s, without the data set", bytes);
    ddp_print_time(&estimate, app->out);
    ddp_print_note(app->out, "the time of the exchange is not counted");
    for (int seed = 0; seed < v->seeds.n; seed++)
        for (int job = 0; job < v->job_count; job++)
            fprintf(app->out, "train %s on %s, sync %s, seed %lld, %d rank%s\n",
                    ddp_catalog_model(v->model), ddp_catalog_dataset(v->dataset), v->jobs[job].text,
                    (long long)v->seeds.v[seed], ranks, ranks == 1 ? "" : "s");
}

/* Prints the runs of every rank count (--dry-run). */
static int show(struct ddp_app *app, const void *values, const char *backend, int ranks,
                struct ddp_err *err)
{
    const struct ddp_train_values *v = values;
    const struct ddp_int_list *counts = &v->world.ranks;
    (void)err;
    if (!v->dry_run)
        return 0;
    for (int i = 0; i < DDP_MAX(counts->n, 1) && ddp_app_is_root(app); i++)
        print_runs(app, v, backend, counts->n > 0 ? (int)counts->v[i] : ranks);
    return DDP_PREPARE_DONE;
}

const struct ddp_cmd ddp_cmd_train = {
    .name = "train",
    .group = DDP_CMD_TRAIN,
    .summary = "train a real network data-parallel, with a chosen gradient exchange",
    .operands = "",
    .details = "Every rank holds the whole model and its slice of each global batch. Gradients\n"
               "are averaged over the global batch, so P ranks with batch B train like one rank\n"
               "with batch P*B. Batch normalisation (resnet9) is the exception: each rank\n"
               "normalises only its own images. On one machine, the same options give the same\n"
               "losses, bit for bit. Seconds and images/s cover only the training, and not the\n"
               "evaluation.\n"
               "\n"
               "Each step uses the gradients of all ranks (dense, zero1, and all compressors\n"
               "such as fp16 and topk), or each rank uses its own gradients and parameters are\n"
               "averaged from time to time (partial, local, diloco). With --compare or --seeds\n"
               "there are several runs, and a table compares them. Before these runs, rank 0\n"
               "trains a few steps alone, as the baseline of the speed-up.\n",
    .examples = "  ddpbench train --epochs 10 --json run.json\n"
                "  ddpbench train --ranks 2 --batch 64 --data ~/mnist --dataset mnist\n"
                "  ddpbench train --model resnet9 --data ~/cifar-10-batches-py \\\n"
                "      --target-accuracy 0.7\n"
                "  ddpbench train --model resnet9 --dataset synthetic --images 5000 --epochs 2\n"
                "  ddpbench train --compare dense,fp16,topk:0.01 --seeds 1,2,3 --format markdown\n"
                "  mpiexec -n 16 ddpbench train --sync dense --bucket-bytes 256K --overlap on\n",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_train_values),
    .help_offset = offsetof(struct ddp_train_values, world.help),
    .check = ddp_training_check,
    .show = show,
    .job = &ddp_training_job,
};
