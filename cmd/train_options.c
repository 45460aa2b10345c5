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
    return i < DDP_OPTIM_COUNT ? ddp_optimizer_name((enum ddp_optimizer)i) : NULL;
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
static const char *overlap_word(int i)
{
    return i == 0 ? "off" : i == 1 ? "on" : NULL;
}
static const char *feedback_word(int i)
{
    return i == DDP_FEEDBACK_AUTO  ? "auto"
           : i == DDP_FEEDBACK_ON  ? "on"
           : i == DDP_FEEDBACK_OFF ? "off"
                                   : NULL;
}
static const char *aggregate_word(int i)
{
    return ddp_aggregates()[i] ? ddp_aggregates()[i]->name : NULL;
}
enum { CHECK_EPOCH, CHECK_STEP };
static const char *check_word(int i)
{
    return i == CHECK_EPOCH ? "epoch" : i == CHECK_STEP ? "step" : NULL;
}
static const char *device_word(int i)
{
    return i == DDP_TRAIN_AUTO   ? "auto"
           : i == DDP_TRAIN_CPU  ? "cpu"
           : i == DDP_TRAIN_CUDA ? "cuda"
                                 : NULL;
}
static const char *conv_word(int i)
{
    return i <= DDP_CONV_UNFOLD ? ddp_conv_way_name((enum ddp_conv_way)i) : NULL;
}
static const struct ddp_opt_words model_words = {.word = model_word},
                                  dataset_words = {.word = dataset_word},
                                  optimizer_words = {.word = optimizer_word},
                                  partition_words = {.word = partition_word},
                                  init_words = {.word = init_word},
                                  init_sync_words = {.word = init_sync_word},
                                  overlap_words = {.word = overlap_word},
                                  feedback_words = {.word = feedback_word},
                                  aggregate_words = {.word = aggregate_word},
                                  check_words = {.word = check_word},
                                  device_words = {.word = device_word},
                                  conv_words = {.word = conv_word};

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
     .group = "Training",
     .help = "what it learns (default: the model's)",
     .words = &dataset_words},
    {.name = "data",
     .kind = DDP_OPT_STRING,
     .offset = AT(dir),
     .value = "DIR",
     .group = "Training",
     .help = "folder with the data set's files, plain or, where those are missing, .gz (else "
             "DDPBENCH_DATA_DIR, else where its package puts them)"},
    {.name = "images",
     .kind = DDP_OPT_INT,
     .offset = AT(images),
     .value = "N",
     .group = "Training",
     .help = "data set synthetic: images to train on, a fifth as many to evaluate (default 10000)",
     .min = 1,
     .max = 16777216},
    {.name = "batch",
     .kind = DDP_OPT_INT,
     .offset = AT(batch),
     .value = "N",
     .group = "Training",
     .help = "images a rank and step (default: the model's)",
     .min = 1,
     .max = 1048576},
    {.name = "global-batch",
     .kind = DDP_OPT_INT,
     .offset = AT(global_batch),
     .value = "N",
     .group = "Training",
     .help = "images a step of all ranks together, cut over them, instead of --batch",
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
     .group = "Training",
     .help = "how gradients become steps (default: the model's)",
     .words = &optimizer_words},
    {.name = "lr",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(lr),
     .value = "X",
     .group = "Training",
     .help = "learning rate (default: the model's)",
     .min = 0,
     .max = 1e6},
    {.name = "momentum",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(momentum),
     .value = "X",
     .group = "Training",
     .help = "sgd: share of the last step kept (default: the model's)",
     .min = 0,
     .max = 1},
    {.name = "weight-decay",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(weight_decay),
     .value = "X",
     .group = "Training",
     .help = "L2 penalty (default: the model's)",
     .min = 0,
     .max = 1e6},
    {.name = "init",
     .kind = DDP_OPT_ENUM,
     .offset = AT(init),
     .value = "NAME",
     .group = "Training",
     .help = "first weights, uniform in +-sqrt(6/fan_in) or +-sqrt(6/(fan_in+fan_out)) (default: "
             "the model's)",
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
    {.name = "compare",
     .kind = DDP_OPT_STRING_LIST,
     .offset = AT(compare),
     .value = "STRATEGY[,...]",
     .group = "Exchange",
     .help = "train once with each instead, and say what each gains and costs against the first "
             "'dense' (else the first)"},
    {.name = "seeds",
     .kind = DDP_OPT_INT_LIST,
     .offset = AT(seeds),
     .value = "N[,...]",
     .group = "Exchange",
     .help = "train once with each seed instead of --seed; runs of one seed follow each other; "
             "synthetic images stay those of seed 1",
     .min = 0,
     .max = 9007199254740991.0},
    {.name = "feedback",
     .kind = DDP_OPT_ENUM,
     .offset = AT(feedback),
     .value = "WHEN",
     .initial = "auto",
     .group = "Exchange",
     .help = "keep what compression left out and add it next time; auto: on for the sparse ones",
     .words = &feedback_words},
    {.name = "aggregate",
     .kind = DDP_OPT_ENUM,
     .offset = AT(aggregate),
     .value = "WHERE",
     .initial = "allreduce",
     .group = "Exchange",
     .help = "where dense gradients are added up: by all, at rank 0, at each tensor's owner, or "
             "first within hosts",
     .words = &aggregate_words},
    {.name = "algorithm",
     .kind = DDP_OPT_STRING,
     .offset = AT(algorithm),
     .value = "NAME",
     .initial = "auto",
     .group = "Exchange",
     .help = "of the exchange; see `ddpbench list`"},
    {.name = "overlap",
     .kind = DDP_OPT_ENUM,
     .offset = AT(overlap),
     .value = "on|off",
     .initial = "off",
     .group = "Exchange",
     .help = "exchange full buckets while the backward pass goes on, by a thread beside it (on a "
             "GPU: on a stream of its own)",
     .words = &overlap_words},
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
    {.name = "dump-gradients",
     .kind = DDP_OPT_STRING,
     .offset = AT(dump_dir),
     .value = "DIR",
     .group = "Exchange",
     .help = "record each rank's gradients before any exchange in DIR/rank0.npy, rank1.npy, ..."},
    {.name = "dump-every",
     .kind = DDP_OPT_INT,
     .offset = AT(dump_every),
     .value = "N",
     .initial = "100",
     .group = "Exchange",
     .help = "with --dump-gradients: those of the first step and of every N-th after it",
     .min = 1,
     .max = 1e15},
    {.name = "device",
     .kind = DDP_OPT_ENUM,
     .offset = AT(device),
     .value = "WHERE",
     .initial = "auto",
     .group = "World",
     .help = "where models compute: cpu, cuda (a GPU a rank), or auto: where the backend exchanges",
     .words = &device_words},
    {.name = "cuda-graph",
     .kind = DDP_OPT_ENUM,
     .offset = AT(graph),
     .value = "on|off",
     .initial = "on",
     .group = "World",
     .help = "device cuda: a step of the model is captured once and launched as one graph, with "
             "--overlap as one a bucket",
     .words = &overlap_words},
    {.name = "tf32",
     .kind = DDP_OPT_ENUM,
     .offset = AT(tf32),
     .value = "on|off",
     .initial = "off",
     .group = "World",
     .help = "device cuda: products may round their factors to TF32",
     .words = &overlap_words},
    {.name = "conv",
     .kind = DDP_OPT_ENUM,
     .offset = AT(conv),
     .value = "HOW",
     .initial = "auto",
     .group = "World",
     .help = "device cuda: convolutions by cuDNN, or as products of unfolded images; auto: cuDNN "
             "where it is installed",
     .words = &conv_words},
    {.name = "blas",
     .kind = DDP_OPT_STRING,
     .offset = AT(blas),
     .value = "LIB",
     .group = "World",
     .help = "CBLAS library for the matrix products (else DDPBENCH_BLAS_LIB, else searched)"},
    DDP_WORLD_ROWS(struct ddp_train_values),
    DDP_OPT_END,
};
