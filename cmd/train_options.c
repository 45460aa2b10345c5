#include "train_options.h"

#include <stddef.h>

static const char *model_word(int i)
{
    return ddp_models()[i] ? ddp_models()[i]->name : NULL;
}
static const char *dataset_word(int i)
{
    return ddp_dataset_readers()[i] ? ddp_dataset_readers()[i]->name : NULL;
}
static const char *optimizer_word(int i)
{
    return i == 0 ? "sgd" : NULL;
}
static const char *partition_word(int i)
{
    return i <= DDP_PARTITION_SHARD ? ddp_partition_name((enum ddp_partition)i) : NULL;
}
static const char *init_word(int i)
{
    return i <= DDP_INIT_GLOROT ? ddp_init_name((enum ddp_init)i) : NULL;
}
static const char *init_sync_word(int i)
{
    return i <= DDP_INIT_SEED ? ddp_init_sync_name((enum ddp_init_sync)i) : NULL;
}
enum { CHECK_EPOCH, CHECK_STEP };
static const char *check_word(int i)
{
    return i == CHECK_EPOCH ? "epoch" : i == CHECK_STEP ? "step" : NULL;
}
static const struct ddp_opt_words model_words = {.word = model_word},
                                  dataset_words = {.word = dataset_word},
                                  optimizer_words = {.word = optimizer_word},
                                  partition_words = {.word = partition_word},
                                  init_words = {.word = init_word},
                                  init_sync_words = {.word = init_sync_word},
                                  check_words = {.word = check_word};

#define AT(field) offsetof(struct ddp_train_values, field)

const struct ddp_opt ddp_train_rows[] = {
    {.name = "model",
     .kind = DDP_OPT_ENUM,
     .offset = AT(model),
     .value = "NAME",
     .initial = "singa-cnn",
     .group = "Training",
     .help = "the network",
     .words = &model_words},
    {.name = "dataset",
     .kind = DDP_OPT_ENUM,
     .offset = AT(dataset),
     .value = "NAME",
     .initial = "fashion-mnist",
     .group = "Training",
     .help = "what it learns",
     .words = &dataset_words},
    {.name = "data",
     .kind = DDP_OPT_STRING,
     .offset = AT(dir),
     .value = "DIR",
     .group = "Training",
     .help = "folder with the data set's files (else DDPBENCH_DATA_DIR, else where its package "
             "puts them)"},
    {.name = "batch",
     .kind = DDP_OPT_INT,
     .offset = AT(batch),
     .value = "N",
     .initial = "64",
     .group = "Training",
     .help = "images a rank and step",
     .min = 1,
     .max = 1048576},
    {.name = "epochs",
     .kind = DDP_OPT_INT,
     .offset = AT(epochs),
     .value = "N",
     .initial = "10",
     .group = "Training",
     .help = "times through the data",
     .min = 1,
     .max = 100000},
    {.name = "max-steps",
     .kind = DDP_OPT_INT,
     .offset = AT(max_steps),
     .value = "N",
     .initial = "0",
     .group = "Training",
     .help = "stop after N steps, then evaluate; 0: no such limit",
     .min = 0,
     .max = 1e15},
    {.name = "optimizer",
     .kind = DDP_OPT_ENUM,
     .offset = AT(optimizer),
     .value = "NAME",
     .initial = "sgd",
     .group = "Training",
     .help = "how gradients become steps",
     .words = &optimizer_words},
    {.name = "lr",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(lr),
     .value = "X",
     .initial = "0.005",
     .group = "Training",
     .help = "learning rate",
     .min = 0,
     .max = 1e6},
    {.name = "momentum",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(momentum),
     .value = "X",
     .initial = "0.9",
     .group = "Training",
     .help = "share of the last step kept",
     .min = 0,
     .max = 1},
    {.name = "weight-decay",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(weight_decay),
     .value = "X",
     .initial = "1e-5",
     .group = "Training",
     .help = "L2 penalty",
     .min = 0,
     .max = 1e6},
    {.name = "init",
     .kind = DDP_OPT_ENUM,
     .offset = AT(init),
     .value = "NAME",
     .initial = "he",
     .group = "Training",
     .help = "first weights, uniform in +-sqrt(6/fan_in) or +-sqrt(6/(fan_in+fan_out))",
     .words = &init_words},
    {.name = "target-accuracy",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(target_accuracy),
     .value = "X",
     .group = "Training",
     .help = "note the epoch, seconds and bytes at which evaluation first reaches X",
     .min = 0,
     .max = 1},
    {.name = "sync",
     .kind = DDP_OPT_STRING,
     .offset = AT(sync),
     .value = "STRATEGY",
     .initial = "dense",
     .group = "Exchange",
     .help = "how ranks keep their models together; see `ddpbench list`"},
    {.name = "bucket-bytes",
     .kind = DDP_OPT_SIZE,
     .offset = AT(bucket_bytes),
     .value = "S",
     .initial = "0",
     .group = "Exchange",
     .help = "exchange gradients in buckets of at most S, each as soon as it is full; 0: all at "
             "once"},
    {.name = "partition",
     .kind = DDP_OPT_ENUM,
     .offset = AT(partition),
     .value = "HOW",
     .initial = "batch",
     .group = "Exchange",
     .help = "batch: each global batch is cut over the ranks; shard: the data set is, once",
     .words = &partition_words},
    {.name = "init-sync",
     .kind = DDP_OPT_ENUM,
     .offset = AT(init_sync),
     .value = "HOW",
     .initial = "broadcast",
     .group = "Exchange",
     .help = "first weights: rank 0's, the average of all ranks', or from the common seed",
     .words = &init_sync_words},
    {.name = "check-replicas",
     .kind = DDP_OPT_ENUM,
     .offset = AT(check_replicas),
     .value = "WHEN",
     .initial = "epoch",
     .group = "Exchange",
     .help = "compare a hash of all parameters over the ranks after every epoch or every step",
     .words = &check_words},
    {.name = "blas",
     .kind = DDP_OPT_STRING,
     .offset = AT(blas),
     .value = "LIB",
     .group = "World",
     .help = "CBLAS library for the matrix products (else DDPBENCH_BLAS_LIB, else searched)"},
    DDP_WORLD_ROWS(struct ddp_train_values),
    DDP_OPT_END,
};

void ddp_train_values_options(const struct ddp_train_values *v, struct ddp_train_options *out)
{
    *out = (struct ddp_train_options){
        .model = ddp_models()[v->model],
        .data = &v->data,
        .sync = v->sync_class,
        .sync_text = v->sync,
        .sync_argument = v->sync_argument,
        .blas = v->blas,
        .batch = (int)v->batch,
        .epochs = (int)v->epochs,
        .max_steps = v->max_steps,
        .lr = v->lr,
        .momentum = v->momentum,
        .weight_decay = v->weight_decay,
        .init = (enum ddp_init)v->init,
        .init_sync = (enum ddp_init_sync)v->init_sync,
        .partition = (enum ddp_partition)v->partition,
        .seed = (uint64_t)v->world.seed,
        .bucket_bytes = v->bucket_bytes,
        .check_replicas = v->check_replicas == CHECK_STEP,
        .target_accuracy = v->target_accuracy,
    };
}
