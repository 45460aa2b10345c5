/* The check of the options of `ddpbench train`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/training.h"

/* The command's option table, and which of its options the user gave. */
struct options {
    const struct ddp_opt *rows;
    const struct ddp_opt_result *parsed;
};

static bool given(const struct options *options, const char *name)
{
    return ddp_opt_given(options->rows, options->parsed, name);
}

static const struct ddp_model_class *model_of(const struct ddp_train_values *v)
{
    return ddp_models()[v->model];
}

static void complete_data(struct ddp_train_values *v, const struct options *options)
{
    const char *name = model_of(v)->defaults.dataset;
    v->named = given(options, "dataset");
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

static int check_data(const struct ddp_train_values *v, const struct options *options,
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
    if (!reader->dirs && given(options, "data"))
        return ddp_fail(err, DDP_EUSAGE, "data set '%s' is generated: --data has no meaning",
                        reader->name);
    if (reader->dirs && given(options, "images"))
        return ddp_fail(err, DDP_EUSAGE, "--images is for the data set 'synthetic', not '%s'",
                        reader->name);
    return 0;
}

static int complete_batch(struct ddp_train_values *v, const struct options *options,
                          struct ddp_err *err)
{
    if (given(options, "batch") && given(options, "global-batch"))
        return ddp_fail(err, DDP_EUSAGE, "give --batch (per rank) or --global-batch, not both");
    if (given(options, "batch") || given(options, "global-batch"))
        return 0;
    v->batch = model_of(v)->defaults.batch;
    v->global_batch = model_of(v)->defaults.global_batch;
    return 0;
}

static int complete_optimizer(struct ddp_train_values *v, const struct options *options,
                              struct ddp_err *err)
{
    const struct ddp_model_defaults *d = &model_of(v)->defaults;
    if (!given(options, "optimizer"))
        v->optimizer = ddp_optimizer_find(d->optimizer);
    const char *name = ddp_optimizer_names[v->optimizer];
    if (v->optimizer == DDP_OPTIM_ADAM && given(options, "momentum"))
        return ddp_fail(err, DDP_EUSAGE, "--momentum is for the optimizer 'sgd', not 'adam'");
    if (strcmp(name, d->optimizer) != 0 && !given(options, "lr")) {
        ddp_fail(err, DDP_EUSAGE,
                 "the optimizer '%s' needs --lr: the default %g of '%s' is for '%s'", name, d->lr,
                 model_of(v)->name, d->optimizer);
        return ddp_hint(err, "common values: 0.001 for adam, 0.01 for sgd");
    }
    if (!given(options, "lr"))
        v->lr = d->lr;
    if (!given(options, "momentum"))
        v->momentum = d->momentum;
    if (!given(options, "weight-decay"))
        v->weight_decay = d->weight_decay;
    if (!given(options, "init"))
        v->init = (int)d->init;
    return 0;
}

/* Options that only a GPU uses. */
static const char *const gpu_options[] = {"cuda-graph", "tf32", "conv"};

/* Fills the options that the user left out with the model's defaults. Returns DDP_EUSAGE if options
 * contradict each other. */
static int complete(struct ddp_train_values *v, const struct options *options, struct ddp_err *err)
{
    complete_data(v, options);
    v->gpu_option = NULL;
    for (size_t i = 0; i < DDP_COUNT_OF(gpu_options); i++)
        if (given(options, gpu_options[i]))
            v->gpu_option = gpu_options[i];
    DDP_TRY(complete_batch(v, options, err));
    DDP_TRY(complete_optimizer(v, options, err));
    return check_data(v, options, err);
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
static int check_dump(const struct ddp_train_values *v, const struct options *options,
                      struct ddp_err *err)
{
    const int runs = v->job_count * v->seeds.n * DDP_MAX(v->world.ranks.n, 1);
    if (v->dump_dir && runs > 1)
        return ddp_fail(err, DDP_EUSAGE, "--dump-gradients records one run, not %d", runs);
    if (!v->dump_dir && given(options, "dump-every"))
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
static int choose_jobs(struct ddp_train_values *v, const struct options *options,
                       struct ddp_err *err)
{
    if (v->compare.n > 0 && given(options, "sync"))
        return ddp_fail(err, DDP_EUSAGE, "--sync and --compare are mutually exclusive");
    if (v->seeds.n > 0 && given(options, "seed"))
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
    DDP_TRY(check_dump(v, options, err));
    return check_meaning(v, err);
}

int ddp_training_check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                       struct ddp_err *err)
{
    struct ddp_train_values *v = values;
    const struct options options = {.rows = app->cmd->rows, .parsed = parsed};
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no operands", err));
    DDP_TRY(choose_jobs(v, &options, err));
    DDP_TRY(ddp_partition_parse(v->partition, &v->partition_spec, err));
    if (v->arrival) {
        DDP_TRY(ddp_arrival_parse(v->arrival, &v->arrival_spec, err));
        snprintf(v->world.note, sizeof v->world.note, "arrival %s", v->arrival_spec.name);
    }
    if (!given(&options, "target-accuracy"))
        v->target_accuracy = NAN;
    return complete(v, &options, err);
}
