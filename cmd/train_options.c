#include "train_options.h"

#include <stddef.h>

static const char *model_choice(int i)
{
    return ddp_models()[i] ? ddp_models()[i]->name : NULL;
}
static const char *dataset_choice(int i)
{
    return ddp_dataset_readers()[i] ? ddp_dataset_readers()[i]->name : NULL;
}
static const char *optimizer_choice(int i)
{
    return i < DDP_OPTIM_COUNT ? ddp_optimizer_name((enum ddp_optimizer)i) : NULL;
}
static const char *partition_choice(int i)
{
    return i <= DDP_PARTITION_SHARD ? ddp_partition_name((enum ddp_partition)i) : NULL;
}
static const char *init_choice(int i)
{
    return i <= DDP_INIT_GLOROT ? ddp_init_name((enum ddp_init)i) : NULL;
}
static const char *init_sync_choice(int i)
{
    return i <= DDP_INIT_SEED ? ddp_init_sync_name((enum ddp_init_sync)i) : NULL;
}
static const char *overlap_choice(int i)
{
    return i == 0 ? "off" : i == 1 ? "on" : NULL;
}
static const char *feedback_choice(int i)
{
    return i == DDP_FEEDBACK_AUTO  ? "auto"
           : i == DDP_FEEDBACK_ON  ? "on"
           : i == DDP_FEEDBACK_OFF ? "off"
                                   : NULL;
}
static const char *aggregate_choice(int i)
{
    return ddp_aggregates()[i] ? ddp_aggregates()[i]->name : NULL;
}
enum { CHECK_EPOCH, CHECK_STEP };
static const char *check_choice(int i)
{
    return i == CHECK_EPOCH ? "epoch" : i == CHECK_STEP ? "step" : NULL;
}
static const char *device_choice(int i)
{
    return i == DDP_TRAIN_AUTO   ? "auto"
           : i == DDP_TRAIN_CPU  ? "cpu"
           : i == DDP_TRAIN_CUDA ? "cuda"
                                 : NULL;
}
static const char *conv_choice(int i)
{
    return i <= DDP_CONV_UNFOLD ? ddp_conv_way_name((enum ddp_conv_way)i) : NULL;
}
static const struct ddp_opt_choices model_choices = {.choice = model_choice},
                                    dataset_choices = {.choice = dataset_choice},
                                    optimizer_choices = {.choice = optimizer_choice},
                                    partition_choices = {.choice = partition_choice},
                                    init_choices = {.choice = init_choice},
                                    init_sync_choices = {.choice = init_sync_choice},
                                    overlap_choices = {.choice = overlap_choice},
                                    feedback_choices = {.choice = feedback_choice},
                                    aggregate_choices = {.choice = aggregate_choice},
                                    check_choices = {.choice = check_choice},
                                    device_choices = {.choice = device_choice},
                                    conv_choices = {.choice = conv_choice};

#define AT(field) offsetof(struct ddp_train_values, field)

const struct ddp_opt ddp_train_rows[] = {
    {.name = "model",
     .kind = DDP_OPT_ENUM,
     .offset = AT(model),
     .value = "NAME",
     .initial = "singa-cnn",
     .group = "Training",
     .help = "the network",
     .choices = &model_choices},
    {.name = "dataset",
     .kind = DDP_OPT_ENUM,
     .offset = AT(dataset),
     .value = "NAME",
     .group = "Training",
     .help = "data set to train on (default: the model's)",
     .choices = &dataset_choices},
    {.name = "data",
     .kind = DDP_OPT_STRING,
     .offset = AT(dir),
     .value = "DIR",
     .group = "Training",
     .help = "folder with the data set's files, plain or .gz (default: DDPBENCH_DATA_DIR, else the "
             "folder of its package)"},
    {.name = "images",
     .kind = DDP_OPT_INT,
     .offset = AT(images),
     .value = "N",
     .group = "Training",
     .help = "data set synthetic: number of training images; a fifth as many evaluate the model "
             "(default 10000)",
     .min = 1,
     .max = 16777216},
    {.name = "batch",
     .kind = DDP_OPT_INT,
     .offset = AT(batch),
     .value = "N",
     .group = "Training",
     .help = "images per rank and step (default: the model's)",
     .min = 1,
     .max = 1048576},
    {.name = "global-batch",
     .kind = DDP_OPT_INT,
     .offset = AT(global_batch),
     .value = "N",
     .group = "Training",
     .help = "images per step of all ranks together, divided among them; instead of --batch",
     .min = 1,
     .max = 1048576},
    {.name = "epochs",
     .kind = DDP_OPT_INT,
     .offset = AT(epochs),
     .value = "N",
     .initial = "10",
     .group = "Training",
     .help = "passes over the training data",
     .min = 1,
     .max = 100000},
    {.name = "max-steps",
     .kind = DDP_OPT_INT,
     .offset = AT(max_steps),
     .value = "N",
     .initial = "0",
     .group = "Training",
     .help = "stop after N steps, then evaluate; 0: no limit",
     .min = 0,
     .max = 1e15},
    {.name = "optimizer",
     .kind = DDP_OPT_ENUM,
     .offset = AT(optimizer),
     .value = "NAME",
     .group = "Training",
     .help = "update rule (default: the model's)",
     .choices = &optimizer_choices},
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
     .help = "sgd: fraction of the last step that is kept (default: the model's)",
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
     .help = "initial weights, uniform in +-sqrt(6/fan_in) or +-sqrt(6/(fan_in+fan_out)) (default: "
             "the model's)",
     .choices = &init_choices},
    {.name = "target-accuracy",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(target_accuracy),
     .value = "X",
     .group = "Training",
     .help = "record the epoch, seconds and bytes at which the evaluation first reaches X",
     .min = 0,
     .max = 1},
    {.name = "sync",
     .kind = DDP_OPT_STRING,
     .offset = AT(sync),
     .value = "STRATEGY",
     .initial = "dense",
     .group = "Exchange",
     .help = "how ranks synchronise their models; see `ddpbench list`"},
    {.name = "compare",
     .kind = DDP_OPT_STRING_LIST,
     .offset = AT(compare),
     .value = "STRATEGY[,...]",
     .group = "Exchange",
     .help = "train once with each strategy, instead of --sync, and compare each with the first "
             "'dense', or with the first strategy if none is 'dense'"},
    {.name = "seeds",
     .kind = DDP_OPT_INT_LIST,
     .offset = AT(seeds),
     .value = "N[,...]",
     .group = "Exchange",
     .help = "train once with each seed, instead of --seed; runs of the same seed are consecutive; "
             "synthetic images stay those of seed 1",
     .min = 0,
     .max = 9007199254740991.0},
    {.name = "feedback",
     .kind = DDP_OPT_ENUM,
     .offset = AT(feedback),
     .value = "WHEN",
     .initial = "auto",
     .group = "Exchange",
     .help = "error feedback: add the values that were not sent to the next gradient; auto: on for "
             "the sparse methods",
     .choices = &feedback_choices},
    {.name = "aggregate",
     .kind = DDP_OPT_ENUM,
     .offset = AT(aggregate),
     .value = "WHERE",
     .initial = "allreduce",
     .group = "Exchange",
     .help = "where dense gradients are summed: on all ranks, on rank 0, on each tensor's owner, "
             "or within hosts first",
     .choices = &aggregate_choices},
    {.name = "algorithm",
     .kind = DDP_OPT_STRING,
     .offset = AT(algorithm),
     .value = "NAME",
     .initial = "auto",
     .group = "Exchange",
     .help = "algorithm of the exchange; see `ddpbench list`"},
    {.name = "overlap",
     .kind = DDP_OPT_ENUM,
     .offset = AT(overlap),
     .value = "on|off",
     .initial = "off",
     .group = "Exchange",
     .help = "exchange full buckets during the backward pass, in a progress thread (on a GPU: on a "
             "separate stream)",
     .choices = &overlap_choices},
    {.name = "bucket-bytes",
     .kind = DDP_OPT_SIZE,
     .offset = AT(bucket_bytes),
     .value = "S",
     .initial = "0",
     .group = "Exchange",
     .help = "exchange gradients in buckets of at most S bytes, each as soon as it is full; 0: all "
             "at once"},
    {.name = "partition",
     .kind = DDP_OPT_ENUM,
     .offset = AT(partition),
     .value = "HOW",
     .initial = "batch",
     .group = "Exchange",
     .help = "batch: divide each global batch among the ranks; shard: divide the data set once",
     .choices = &partition_choices},
    {.name = "init-sync",
     .kind = DDP_OPT_ENUM,
     .offset = AT(init_sync),
     .value = "HOW",
     .initial = "broadcast",
     .group = "Exchange",
     .help =
         "initial weights: rank 0's, the average of all ranks', or computed from the common seed",
     .choices = &init_sync_choices},
    {.name = "check-replicas",
     .kind = DDP_OPT_ENUM,
     .offset = AT(check_replicas),
     .value = "WHEN",
     .initial = "epoch",
     .group = "Exchange",
     .help = "compare a hash of all parameters across ranks after every epoch or every step",
     .choices = &check_choices},
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
     .help = "with --dump-gradients: record the first step and every N-th step after it",
     .min = 1,
     .max = 1e15},
    {.name = "device",
     .kind = DDP_OPT_ENUM,
     .offset = AT(device),
     .value = "WHERE",
     .initial = "auto",
     .group = "World",
     .help = "device of the models: cpu, cuda (one GPU per rank), or auto: the device whose memory "
             "the backend exchanges",
     .choices = &device_choices},
    {.name = "cuda-graph",
     .kind = DDP_OPT_ENUM,
     .offset = AT(graph),
     .value = "on|off",
     .initial = "on",
     .group = "World",
     .help = "device cuda: capture a step of the model once and launch it as one graph (with "
             "--overlap: one graph per bucket)",
     .choices = &overlap_choices},
    {.name = "tf32",
     .kind = DDP_OPT_ENUM,
     .offset = AT(tf32),
     .value = "on|off",
     .initial = "off",
     .group = "World",
     .help = "device cuda: matrix products may round their inputs to TF32",
     .choices = &overlap_choices},
    {.name = "conv",
     .kind = DDP_OPT_ENUM,
     .offset = AT(conv),
     .value = "HOW",
     .initial = "auto",
     .group = "World",
     .help = "device cuda: compute convolutions with cuDNN, or as matrix products of unfolded "
             "images; auto: cuDNN if it is installed",
     .choices = &conv_choices},
    {.name = "blas",
     .kind = DDP_OPT_STRING,
     .offset = AT(blas),
     .value = "LIB",
     .group = "World",
     .help = "CBLAS library for the matrix products (default: DDPBENCH_BLAS_LIB, else the first "
             "one found)"},
    DDP_WORLD_ROWS(struct ddp_train_values),
    DDP_OPT_END,
};
