/* Completes the options of `ddpbench train` with the model's defaults, and refuses options that
 * contradict each other. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train_options.h"

static bool given(const struct ddp_opt_result *parsed, const char *name)
{
    return ddp_opt_given(ddp_train_rows, parsed, name);
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

int ddp_train_values_complete(struct ddp_train_values *v, const struct ddp_opt_result *parsed,
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
