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
static const char *aggregate_choice(int i)
{
    return ddp_aggregates()[i] ? ddp_aggregates()[i]->name : NULL;
}
static const char *const off_on[] = {"off", "on", NULL};
static const char *const check_names[] = {"epoch", "step", NULL};
static const char *const device_names[] = {"auto", "cpu", "cuda", NULL};

#define AT(field) offsetof(struct ddp_train_values, field)

const struct ddp_opt ddp_train_rows[] = {
    DDP_OPT_HEADING("Training"),
    DDP_OPT(ENUM, "model", 0, AT(model), "NAME", "singa-cnn", "the network",
            .choice = model_choice),
    DDP_OPT(ENUM, "dataset", 0, AT(dataset), "NAME", NULL,
            "data set to train on (default: the model's)", .choice = dataset_choice),
    DDP_OPT(STRING, "data", 0, AT(dir), "DIR", NULL,
            "folder with the data set's files, plain or .gz (default: DDPBENCH_DATA_DIR, else the "
            "folder of its package)"),
    DDP_OPT(INT, "images", 0, AT(images), "N", NULL,
            "data set synthetic: number of training images; a fifth as many evaluate the model "
            "(default 10000)",
            .min = 1, .max = 16777216),
    DDP_OPT(INT, "batch", 0, AT(batch), "N", NULL,
            "images per rank and step (default: the model's)", .min = 1, .max = 1048576),
    DDP_OPT(INT, "global-batch", 0, AT(global_batch), "N", NULL,
            "images per step of all ranks together, divided among them; instead of --batch",
            .min = 1, .max = 1048576),
    DDP_OPT(INT, "epochs", 0, AT(epochs), "N", "10", "passes over the training data", .min = 1,
            .max = 100000),
    DDP_OPT(INT, "max-steps", 0, AT(max_steps), "N", "0",
            "stop after N steps, then evaluate; 0: no limit", .max = 1e15),
    DDP_OPT(ENUM, "optimizer", 0, AT(optimizer), "NAME", NULL, "update rule (default: the model's)",
            .choices = ddp_optimizer_names),
    DDP_OPT(DOUBLE, "lr", 0, AT(lr), "X", NULL, "learning rate (default: the model's)", .max = 1e6),
    DDP_OPT(DOUBLE, "momentum", 0, AT(momentum), "X", NULL,
            "sgd: fraction of the last step that is kept (default: the model's)", .max = 1),
    DDP_OPT(DOUBLE, "weight-decay", 0, AT(weight_decay), "X", NULL,
            "L2 penalty (default: the model's)", .max = 1e6),
    DDP_OPT(ENUM, "init", 0, AT(init), "NAME", NULL,
            "initial weights, uniform in +-sqrt(6/fan_in) or +-sqrt(6/(fan_in+fan_out)) (default: "
            "the model's)",
            .choices = ddp_init_names),
    DDP_OPT(DOUBLE, "target-accuracy", 0, AT(target_accuracy), "X", NULL,
            "record the epoch, seconds and bytes at which the evaluation first reaches X",
            .max = 1),
    DDP_OPT_HEADING("Exchange"),
    DDP_OPT(STRING, "sync", 0, AT(sync), "STRATEGY", "dense",
            "how ranks synchronise their models; see `ddpbench list`"),
    DDP_OPT(STRING_LIST, "compare", 0, AT(compare), "STRATEGY[,...]", NULL,
            "train once with each strategy, instead of --sync, and compare each with the first "
            "'dense', or with the first strategy if none is 'dense'"),
    DDP_OPT(INT_LIST, "seeds", 0, AT(seeds), "N[,...]", NULL,
            "train once with each seed, instead of --seed; runs of the same seed are consecutive; "
            "synthetic images stay those of seed 1",
            .max = 9007199254740991.0),
    DDP_OPT(ENUM, "feedback", 0, AT(feedback), "WHEN", "auto",
            "error feedback: add the values that were not sent to the next gradient; auto: on for "
            "the sparse methods",
            .choices = ddp_feedback_names),
    DDP_OPT(ENUM, "aggregate", 0, AT(aggregate), "WHERE", "allreduce",
            "where dense gradients are summed: on all ranks, on rank 0, on each tensor's owner, or "
            "within hosts first",
            .choice = aggregate_choice),
    DDP_OPT(STRING, "algorithm", 0, AT(algorithm), "NAME", "auto",
            "algorithm of the exchange; see `ddpbench list`"),
    DDP_OPT(ENUM, "overlap", 0, AT(overlap), "on|off", "off",
            "exchange full buckets during the backward pass, in a progress thread (on a GPU: on a "
            "separate stream)",
            .choices = off_on),
    DDP_OPT(SIZE, "bucket-bytes", 0, AT(bucket_bytes), "S", "0",
            "exchange gradients in buckets of at most S bytes, each as soon as it is full; 0: all "
            "at once"),
    DDP_OPT(ENUM, "partition", 0, AT(partition), "HOW", "batch",
            "batch: divide each global batch among the ranks; shard: divide the data set once",
            .choices = ddp_partition_names),
    DDP_OPT(
        ENUM, "init-sync", 0, AT(init_sync), "HOW", "broadcast",
        "initial weights: rank 0's, the average of all ranks', or computed from the common seed",
        .choices = ddp_init_sync_names),
    DDP_OPT(ENUM, "check-replicas", 0, AT(check_replicas), "WHEN", "epoch",
            "compare a hash of all parameters across ranks after every epoch or every step",
            .choices = check_names),
    DDP_OPT(STRING, "dump-gradients", 0, AT(dump_dir), "DIR", NULL,
            "record each rank's gradients before any exchange in DIR/rank0.npy, rank1.npy, ..."),
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
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};
