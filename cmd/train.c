/* `ddpbench train` trains a real model data-parallel, and measures its accuracy and speed with a
 * chosen gradient exchange. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "cmd.h"
#include "run/training.h"

static const char *model_choice(int i)
{
    return ddp_models()[i] ? ddp_models()[i]->name : NULL;
}
static const char *dataset_choice(int i)
{
    return ddp_dataset_readers()[i] ? ddp_dataset_readers()[i]->name : NULL;
}
static const char *aggregate_choice(int i)
{
    return ddp_aggregates()[i] ? ddp_aggregates()[i]->name : NULL;
}
static bool offer_sync(const char *command, int i, char *out, size_t out_bytes)
{
    (void)command;
    return ddp_offer_named(ddp_sync_at, i, out, out_bytes);
}

static const char *const off_on[] = {"off", "on", NULL};
static const char *const check_names[] = {"epoch", "step", NULL};
static const char *const device_names[] = {"auto", "cpu", "cuda", NULL};

#define AT(field) offsetof(struct ddp_train_values, field)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Training"),
    DDP_OPT(ENUM, "model", 0, AT(model), "NAME", "singa-cnn", "the network", .choice = model_choice,
            .brief = ""),
    DDP_OPT(ENUM, "dataset", 0, AT(dataset), "NAME", NULL,
            "data set to train on (default: the model's)", .choice = dataset_choice,
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
            .choice = aggregate_choice),
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

static bool given(const struct ddp_opt_result *parsed, const char *name)
{
    return ddp_opt_given(rows, parsed, name);
}

static const struct ddp_model_class *model_of(const struct ddp_train_values *v)
{
    return ddp_models()[v->model];
}

static void complete_data(struct ddp_train_values *v, const struct ddp_opt_result *parsed)
{
    const char *name = model_of(v)->defaults.dataset;
    v->named = given(parsed, "dataset");
    for (int i = 0; ddp_dataset_readers()[i] && !v->named; i++)
        if (strcmp(ddp_dataset_readers()[i]->name, name) == 0)
            v->dataset = i;
}

/* Writes the names of the data sets that fit the model, separated by commas. */
static void fitting(const struct ddp_dataset_request *request, char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (const struct ddp_dataset_reader *const *r = ddp_dataset_readers(); *r; r++)
        if (ddp_dataset_fits(*r, request) && used < out_bytes)
            used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "",
                                     (*r)->name);
}

static int check_data(const struct ddp_train_values *v, const struct ddp_opt_result *parsed,
                      struct ddp_err *err)
{
    struct ddp_dataset_request request;
    const struct ddp_dataset_reader *reader = ddp_train_values_data(v, &request);
    if (!ddp_dataset_fits(reader, &request)) {
        char names[160];
        fitting(&request, names, sizeof names);
        ddp_fail(err, DDP_EUSAGE,
                 "model '%s' needs %d x %d x %d images of at most %d classes; data set '%s' does "
                 "not have them",
                 model_of(v)->name, request.channels, request.height, request.width,
                 request.classes, reader->name);
        return ddp_hint(err, "data sets for '%s': %s", model_of(v)->name, names);
    }
    if (!reader->dirs && given(parsed, "data"))
        return ddp_fail(err, DDP_EUSAGE, "data set '%s' is generated: --data has no meaning",
                        reader->name);
    if (reader->dirs && given(parsed, "images"))
        return ddp_fail(err, DDP_EUSAGE, "--images is for the data set 'synthetic', not '%s'",
                        reader->name);
    return 0;
}

static int complete_batch(struct ddp_train_values *v, const struct ddp_opt_result *parsed,
                          struct ddp_err *err)
{
    if (given(parsed, "batch") && given(parsed, "global-batch"))
        return ddp_fail(err, DDP_EUSAGE, "give --batch (per rank) or --global-batch, not both");
    if (given(parsed, "batch") || given(parsed, "global-batch"))
        return 0;
    v->batch = model_of(v)->defaults.batch;
    v->global_batch = model_of(v)->defaults.global_batch;
    return 0;
}

static int complete_optimizer(struct ddp_train_values *v, const struct ddp_opt_result *parsed,
                              struct ddp_err *err)
{
    const struct ddp_model_defaults *d = &model_of(v)->defaults;
    if (!given(parsed, "optimizer"))
        v->optimizer = ddp_optimizer_find(d->optimizer);
    const char *name = ddp_optimizer_names[v->optimizer];
    if (v->optimizer == DDP_OPTIM_ADAM && given(parsed, "momentum"))
        return ddp_fail(err, DDP_EUSAGE, "--momentum is for the optimizer 'sgd', not 'adam'");
    if (strcmp(name, d->optimizer) != 0 && !given(parsed, "lr")) {
        ddp_fail(err, DDP_EUSAGE,
                 "the optimizer '%s' needs --lr: the default %g of '%s' is for '%s'", name, d->lr,
                 model_of(v)->name, d->optimizer);
        return ddp_hint(err, "common values: 0.001 for adam, 0.01 for sgd");
    }
    if (!given(parsed, "lr"))
        v->lr = d->lr;
    if (!given(parsed, "momentum"))
        v->momentum = d->momentum;
    if (!given(parsed, "weight-decay"))
        v->weight_decay = d->weight_decay;
    if (!given(parsed, "init"))
        v->init = (int)d->init;
    return 0;
}

/* Options that only a GPU uses. */
static const char *const gpu_options[] = {"cuda-graph", "tf32", "conv"};

/* Fills the options that the user left out with the model's defaults. Returns DDP_EUSAGE if options
 * contradict each other. */
static int complete(struct ddp_train_values *v, const struct ddp_opt_result *parsed,
                    struct ddp_err *err)
{
    complete_data(v, parsed);
    v->gpu_option = NULL;
    for (size_t i = 0; i < DDP_COUNT_OF(gpu_options); i++)
        if (given(parsed, gpu_options[i]))
            v->gpu_option = gpu_options[i];
    DDP_TRY(complete_batch(v, parsed, err));
    DDP_TRY(complete_optimizer(v, parsed, err));
    return check_data(v, parsed, err);
}

/* Fails with DDP_EUSAGE if no strategy has the property `has`, because the option then has no
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

/* Checks the options of gradient dumps. Dump files are named after ranks, so a second run would
 * overwrite the files of the first. */
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
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no operands", err));
    DDP_TRY(choose_jobs(app->cmd, v, parsed, err));
    DDP_TRY(ddp_partition_parse(v->partition, &v->partition_spec, err));
    if (!ddp_opt_given(app->cmd->rows, parsed, "target-accuracy"))
        v->target_accuracy = NAN;
    return complete(v, parsed, err);
}

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
            fprintf(app->out, "train %s on %s, sync %s, seed %lld, %d rank%s\n", model_of(v)->name,
                    ddp_dataset_readers()[v->dataset]->name, v->jobs[job].text,
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
               "Each step uses the gradients of all ranks (dense, and all compressors such as\n"
               "fp16, q8 and topk), or each rank uses its own gradients and parameters are\n"
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
    .check = check,
    .show = show,
    .job = &ddp_training_job,
};
