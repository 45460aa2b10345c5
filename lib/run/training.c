/* Trains with the strategies and seeds of `ddpbench train`, one after the other. */
#include "run/training.h"

#include <math.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "launch/launch_in_subprocess.h"
#include "model/blas.h"

/* Largest number of training steps of the baseline, which rank 0 trains alone. This number is
 * enough to measure a speed, and takes little time compared with a training run. */
#define BASELINE_STEPS 60

/* The time of a run is extrapolated only after this fraction of its steps. */
#define LEAST_PART 0.05

/* Used to estimate the time of a run. */
#define START_S    0.1
#define FLOP_PER_S 2e10 /* matrix products on an older core */

/* Used to estimate the memory of a run. The buffers for measuring the memory-copy speed have at
 * most BASELINE_RANK_BYTES per rank and BASELINE_HOST_BYTES per host. They are freed before the
 * training. The BLAS library and its buffer have PROCESS_BYTES in each process. */
#define BASELINE_RANK_BYTES ((uint64_t)32 << 20)
#define BASELINE_HOST_BYTES ((uint64_t)256 << 20)
#define PROCESS_BYTES       ((uint64_t)8 << 20)

/* Time limit of the CUDA probe. A driver starts slowly on a machine with many GPUs. */
#define CUDA_ANSWER_NS INT64_C(30000000000)
#define BLAS_ANSWER_NS INT64_C(20000000000) /* time limit of the BLAS probe */

/* Fills *out with the trainer's options for v->jobs[job] and v->seeds.v[seed]. *out borrows from
 * v. */
static void options_of(const struct ddp_train_values *v, int job, int seed,
                       struct ddp_train_options *out)
{
    *out = (struct ddp_train_options){
        .model = ddp_models()[v->model],
        .data = &v->data,
        .sync = v->jobs[job],
        .blas = v->blas,
        .device = v->model_device,
        .graph = v->model_device != NULL && v->graph != 0,
        .tf32 = v->tf32 != 0,
        .conv = (enum ddp_conv_way)v->conv,
        .batch = (int)v->batch,
        .global_batch = (int)v->global_batch,
        .epochs = (int)v->epochs,
        .max_steps = v->max_steps,
        .optimizer = (enum ddp_optimizer)v->optimizer,
        .lr = v->lr,
        .momentum = v->momentum,
        .weight_decay = v->weight_decay,
        .init = (enum ddp_init)v->init,
        .init_sync = (enum ddp_init_sync)v->init_sync,
        .partition = v->partition_spec,
        .seed = (uint64_t)v->seeds.v[seed],
        .bucket_bytes = v->bucket_bytes,
        .overlap = v->overlap != 0,
        .feedback = (enum ddp_feedback)v->feedback,
        .aggregate = ddp_aggregates()[v->aggregate],
        .algorithm = strcmp(v->algorithm, "auto") != 0 ? v->algorithm : NULL,
        .check_replicas = v->check_replicas != 0,
        .dump_dir = v->dump_dir,
        .dump_every = v->dump_every,
        .target_accuracy = v->target_accuracy,
        .arrival = v->arrival_spec,
    };
}

const struct ddp_dataset_reader *ddp_train_values_data(const struct ddp_train_values *v,
                                                       struct ddp_dataset_request *request)
{
    const struct ddp_model_class *model = ddp_models()[v->model];
    *request = (struct ddp_dataset_request){.dir = v->dir,
                                            .named = v->named,
                                            .channels = model->channels,
                                            .height = model->height,
                                            .width = model->width,
                                            .classes = model->classes,
                                            .images = (size_t)v->images,
                                            .seed = (uint64_t)v->world.seed};
    return ddp_dataset_readers()[v->dataset];
}

/* Checks that every strategy can train with its model on `model_device` (NULL: the processor). */
static int check_strategies(const struct ddp_train_values *v, const struct ddp_device *model_device,
                            const struct ddp_backend *backend, int ranks, struct ddp_err *err)
{
    for (int job = 0; job < v->job_count; job++) {
        struct ddp_train_options o;
        options_of(v, job, 0, &o);
        o.device = model_device;
        DDP_TRY(ddp_train_check_device(&o, backend, ranks, err));
    }
    return 0;
}

static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    const struct ddp_train_values *v = values;
    (void)out;
    const struct ddp_device *model_device =
        v->device == DDP_TRAIN_CPU ? NULL : ddp_device_find("cuda");
    return check_strategies(v, model_device, ddp_backend_find("nccl"), 2, err);
}

static int probe_cuda(void *unused, struct ddp_err *err)
{
    (void)unused;
    return ddp_device_find("cuda")->probe(err);
}

/* Checks that CUDA works. Does nothing with a backend that probes the GPUs itself, and with backend
 * mpi. This check precedes the other checks of options, because without a GPU their errors do not
 * matter. An initialised CUDA driver does not work after fork(), and the ranks are forked later.
 * The probe therefore runs in a child process. */
static int check_cuda(const struct ddp_backend *backend, struct ddp_err *err)
{
    char unused;
    if (backend->caps & (DDP_CAP_DEVICE | DDP_CAP_LAUNCHED))
        return 0;
    return ddp_launch_in_subprocess(probe_cuda, &unused, sizeof unused, CUDA_ANSWER_NS, err);
}

/* Sets v->model_device, the device of the models, for ranks that exchange with `backend`. Returns
 * DDP_EUSAGE if a GPU option is given but no GPU is used. Returns DDP_EUNAVAIL if CUDA does not
 * work, or if the device cannot train with this backend and number of ranks. Does not initialise
 * CUDA in this process. */
static int choose_device(struct ddp_train_values *v, const struct ddp_backend *backend, int ranks,
                         struct ddp_err *err)
{
    const bool moves_device = backend->caps & DDP_CAP_DEVICE;
    const bool cuda = v->device == DDP_TRAIN_CUDA || (v->device == DDP_TRAIN_AUTO && moves_device);
    v->model_device = cuda ? ddp_device_find("cuda") : NULL;
    if (!cuda && v->gpu_option)
        return ddp_fail(err, DDP_EUSAGE, "--%s is for --device cuda", v->gpu_option);
    if (v->model_device)
        DDP_TRY(check_cuda(backend, err));
    return check_strategies(v, v->model_device, backend, ranks, err);
}

/* Returns the bytes that each of the `local` ranks of a host needs. */
static uint64_t rank_bytes(const struct ddp_train_options *o, int ranks, int local)
{
    const uint64_t training = ddp_train_heap_bytes(o, ranks) + ddp_train_private_bytes(o, ranks);
    const uint64_t baseline =
        DDP_MIN(BASELINE_RANK_BYTES, BASELINE_HOST_BYTES / (uint64_t)DDP_MAX(local, 1));
    return DDP_MAX(training, baseline) + PROCESS_BYTES;
}

/* Loads the BLAS library. Runs in a child process, and discards text that the library prints on
 * stderr, for example when it fails to load. */
static int load_blas(void *name, struct ddp_err *err)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        (void)dup2(null, STDERR_FILENO);
    DDP_TRY(ddp_blas_load(NULL, err));
    snprintf(name, DDP_BLAS_NAME_BYTES, "%s", ddp_blas_name());
    return 0;
}

int ddp_training_probe_blas(char *name, struct ddp_err *err)
{
    return ddp_launch_in_subprocess(load_blas, name, DDP_BLAS_NAME_BYTES, BLAS_ANSWER_NS, err);
}

static int check_memory(const struct ddp_train_options *o, int ranks, int local,
                        struct ddp_err *err)
{
    struct ddp_sysinfo host;
    uint64_t each = rank_bytes(o, ranks, local);
    uint64_t need = each * (uint64_t)local;
    char each_text[24], need_text[24];
    ddp_sysinfo_read(&host);
    ddp_format_size(each, each_text, sizeof each_text);
    ddp_format_size(need, need_text, sizeof need_text);
    if (ddp_memory_check(need, host.available_bytes, err,
                         "not enough memory: batches of %d need %s per rank, %s for %d rank%s",
                         ddp_train_batch(o, ranks), each_text, need_text, local,
                         local == 1 ? "" : "s") == 0)
        return 0;
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
    for (int i = 0; i < v->world.ranks.n; i++)
        DDP_TRY(ddp_arrival_check(&v->arrival_spec, (int)v->world.ranks.v[i], err));
    DDP_TRY(ddp_arrival_check(&v->arrival_spec, most, err));
    DDP_TRY(choose_device(v, ddp_backend_find(backend), most, err));
    /* Load the data before the ranks are forked, so that the ranks share the pages. */
    const struct ddp_dataset_reader *reader = ddp_train_values_data(v, &request);
    if (!v->borrowed)
        DDP_TRY(ddp_dataset_load(reader->name, &request, &v->data, err));
    for (int job = 0; job < v->job_count; job++) {
        options_of(v, job, 0, &o);
        for (int i = 0; i < v->world.ranks.n; i++)
            DDP_TRY(ddp_train_check(&o, (int)v->world.ranks.v[i], err));
        DDP_TRY(ddp_train_check(&o, ranks, err));
        DDP_TRY(check_memory(&o, ranks, ddp_app_local_ranks(app, ranks), err));
    }
    return 0;
}

static uint64_t heap_bytes(const void *values, int ranks)
{
    const struct ddp_train_values *v = values;
    struct ddp_train_options o;
    uint64_t most = 0;
    for (int job = 0; job < v->job_count; job++) {
        options_of(v, job, 0, &o);
        most = DDP_MAX(most, ddp_train_heap_bytes(&o, ranks));
    }
    return most;
}

static bool threads(const void *values)
{
    const struct ddp_train_values *v = values;
    return v->overlap != 0;
}

static int64_t epochs(const void *values)
{
    const struct ddp_train_values *v = values;
    return v->epochs * v->job_count * v->seeds.n;
}

static void release(void *values)
{
    struct ddp_train_values *v = values;
    if (!v->borrowed)
        ddp_dataset_release(&v->data);
}

/* Borrows the data set if `others` have loaded the same data set. */
static bool borrow(void *values, const void *others)
{
    struct ddp_train_values *v = values;
    const struct ddp_train_values *o = others;
    struct ddp_dataset_request want, have;
    const bool same_reader = ddp_train_values_data(v, &want) == ddp_train_values_data(o, &have);
    const bool same_dir =
        want.dir && have.dir ? strcmp(want.dir, have.dir) == 0 : !want.dir && !have.dir;
    v->borrowed = same_reader && same_dir && have.channels == want.channels &&
                  have.height == want.height && have.width == want.width &&
                  have.classes == want.classes && have.images == want.images &&
                  have.seed == want.seed;
    if (v->borrowed)
        v->data = o->data;
    return v->borrowed;
}

double ddp_train_values_steps(const struct ddp_train_values *v, int ranks, int *batch)
{
    struct ddp_train_options o;
    options_of(v, 0, 0, &o);
    *batch = ddp_train_batch(&o, ranks);
    const double images = (double)v->data.train.count;
    const double global = (double)ddp_train_global_batch(&o, ranks);
    const double steps = o.epochs * ceil(images / DDP_MAX(global, 1));
    return o.max_steps > 0 ? fmin(steps, (double)o.max_steps) : steps;
}

static double estimate_seconds(const struct ddp_train_values *v, int job, int ranks)
{
    struct ddp_train_options o;
    int each;
    options_of(v, job, 0, &o);
    const double steps = ddp_train_values_steps(v, ranks, &each);
    const double batch = (double)ddp_train_global_batch(&o, ranks);
    /* Evaluation runs once per epoch. Its forward pass is about a third of the work of a step. */
    const double images_processed = steps * batch + o.epochs * (double)v->data.eval.count / 3;
    return START_S + images_processed * o.model->flops_per_image(o.model) / ranks / FLOP_PER_S;
}

static void estimate(const void *values, int ranks, int local, struct ddp_estimate *out)
{
    const struct ddp_train_values *v = values;
    *out = (struct ddp_estimate){.seconds = 0, .most = NAN};
    for (int job = 0; job < v->job_count; job++) {
        struct ddp_train_options o;
        options_of(v, job, 0, &o);
        out->seconds += estimate_seconds(v, job, ranks) * v->seeds.n;
        out->bytes = DDP_MAX(out->bytes, rank_bytes(&o, ranks, local) * (uint64_t)local);
    }
}

/* All-gathers the byte `more` of each rank into `all` [ranks]. The byte of rank 0 says whether rank
 * 0 is still training alone. Called outside timed regions. */
static int share_more(struct ddp_comm *comm, char more, char *all, struct ddp_err *err)
{
    return ddp_comm_allgather_bytes(comm, &more, all, 1, err);
}

/* Waits until rank 0 has finished its baseline. The wait consists of one all-gather per training
 * step, because the whole baseline may take longer than the deadline of one all-gather. */
static int wait_for_rank0(struct ddp_comm *comm, char *all, struct ddp_err *err)
{
    do
        DDP_TRY(share_more(comm, 0, all, err));
    while (all[0]);
    return 0;
}

/* The times of the runs with several strategies and seeds. */
struct run_times {
    int64_t all_ns, run_ns;           /* when the command and the present run began */
    double seconds[DDP_OPT_LIST_MAX]; /* by strategy: time of the last run; 0: none has ended */
};

/* The argument of the functions that the trainer calls. `all` is NULL except during the baseline on
 * rank 0. During the baseline, on_step calls share_more, in which the other ranks wait. */
struct observer {
    struct ddp_rank *rank;
    char *all; /* [ranks] */
    struct ddp_err err;
    int code;
    /* The following members are not set during a baseline. */
    const struct ddp_train_values *v;
    struct run_times *times;
    int job, seed;
};

static int on_start(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    const struct observer *o = arg;
    return ddp_emit_train(o->rank, run, false, err);
}

static void on_step(void *arg, int64_t step, double loss)
{
    struct observer *o = arg;
    (void)step;
    (void)loss;
    if (o->code == 0)
        o->code = share_more(o->rank->comm, 1, o->all, &o->err);
}

static int on_epoch(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                    struct ddp_err *err)
{
    const struct observer *o = arg;
    (void)run;
    if (o->code == 0)
        return ddp_emit_epoch(o->rank, epoch, err);
    *err = o->err;
    return o->code;
}

static int on_end(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    const struct observer *o = arg;
    return ddp_emit_train(o->rank, run, true, err);
}

/* Estimates how many more seconds the present run and the later runs will take. `done` is the
 * fraction of its steps that the present run has done. All runs of a strategy get the same
 * estimate. For the strategy of the present run, it is the extrapolated time of this run if `done`
 * is at least LEAST_PART. Otherwise it is the time of the strategy's last finished run, or the mean
 * of the known times if there is none. Returns NaN if no run has finished and `done` is below
 * LEAST_PART. */
static double seconds_left(const struct observer *o, double done)
{
    const struct ddp_train_values *v = o->v;
    const double in_run = (double)(ddp_now_ns() - o->times->run_ns) / 1e9;
    double each[DDP_OPT_LIST_MAX], sum = 0, left = 0;
    int known = 0;
    memcpy(each, o->times->seconds, sizeof each);
    if (done >= LEAST_PART)
        each[o->job] = in_run / done;
    for (int job = 0; job < v->job_count; job++) {
        sum += each[job];
        known += each[job] > 0;
    }
    if (known == 0)
        return NAN;
    for (int job = 0; job < v->job_count; job++) {
        const int runs = v->seeds.n - o->seed - (job < o->job);
        left += runs * (each[job] > 0 ? each[job] : sum / known);
    }
    return left - in_run;
}

/* Returns which fraction of the steps of a run is done. */
static double part_done(const struct ddp_train_values *v, int epoch, int64_t step, int64_t steps)
{
    const double all = (double)v->epochs * (double)steps;
    const double most = v->max_steps > 0 ? fmin(all, (double)v->max_steps) : all;
    return ((double)(epoch - 1) * (double)steps + (double)step) / fmax(most, 1);
}

static void on_progress(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                        double images_per_second)
{
    const struct observer *o = arg;
    const struct ddp_train_values *v = o->v;
    char text[256] = "";
    ddp_text_append(text, sizeof text, "strategy %s", v->jobs[o->job].text);
    if (v->seeds.n > 1)
        ddp_text_append(text, sizeof text, ", seed %d of %d", o->seed + 1, v->seeds.n);
    ddp_text_append(text, sizeof text, ", epoch %d of %lld", epoch, (long long)v->epochs);
    if (!o->rank->sweep) /* in a sweep the line begins with the times of the sweep */
        ddp_log_progress_times(text, sizeof text, (double)(ddp_now_ns() - o->times->all_ns) / 1e9,
                               "about", seconds_left(o, part_done(v, epoch, step, steps)));
    ddp_emit_progress(o->rank, "%s, step %lld of %lld, loss %.4f, %.0f images/s", text,
                      (long long)step, (long long)steps, loss, images_per_second);
}

static int train(struct ddp_comm *comm, const struct ddp_train_options *options, struct observer *o,
                 struct ddp_err *err)
{
    const struct ddp_train_events events = {.on_start = on_start,
                                            .on_step = o->all ? on_step : NULL,
                                            .on_epoch = on_epoch,
                                            .on_progress = o->all ? NULL : on_progress,
                                            .on_end = on_end,
                                            .arg = o};
    return ddp_train(comm, options, &events, err);
}

static int train_alone(struct ddp_rank *rank, const struct ddp_train_values *v, int seed, char *all,
                       struct ddp_err *err)
{
    const int zero = 0;
    struct ddp_comm *alone;
    struct ddp_train_options o;
    struct observer observer = {.rank = rank, .all = all, .err = DDP_ERR_INIT};
    options_of(v, 0, seed, &o);
    DDP_TRY(ddp_sync_parse("dense", &o.sync, err));
    if (o.partition.kind == DDP_PARTITION_WEIGHTS)
        o.partition = (struct ddp_partition_spec){.kind = DDP_PARTITION_BATCH};
    o.aggregate = NULL;
    o.algorithm = NULL;
    o.overlap = false;
    o.epochs = 1;
    o.max_steps = BASELINE_STEPS;
    o.target_accuracy = NAN;
    o.baseline = true;
    DDP_TRY(ddp_comm_group(rank->comm, &zero, 1, &alone, err));
    int rc = train(alone, &o, &observer, err);
    ddp_comm_destroy(alone);
    return rc;
}

/* Trains a few steps on rank 0 while the other ranks are idle. */
static int run_baseline(struct ddp_rank *rank, const struct ddp_train_values *v, int seed,
                        struct ddp_err *err)
{
    char *all;
    int rc = DDP_NEW(&all, (size_t)rank->comm->size, err);
    if (rc == 0 && rank->comm->rank != 0)
        rc = wait_for_rank0(rank->comm, all, err);
    else if (rc == 0)
        rc = train_alone(rank, v, seed, all, err);
    if (rc == 0 && rank->comm->rank == 0)
        rc = share_more(rank->comm, 0, all, err);
    free(all);
    return rc;
}

/* If there are several runs and several ranks, rank 0 first trains a few steps alone for each seed,
 * because speed-ups are relative to one rank. Measures the memory-copy speed before the training
 * and again after it, because a training may take hours. In a sweep, the items of a launch group
 * after the first successful one do not measure this speed again. */
static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    const struct ddp_train_values *v = values;
    struct run_times times = {.all_ns = ddp_now_ns()};
    struct observer observer = {.rank = rank, .err = DDP_ERR_INIT, .v = v, .times = &times};
    const bool several = v->job_count * v->seeds.n > 1;
    DDP_TRY(ddp_emit_baseline(rank, err));
    for (int seed = 0; seed < v->seeds.n; seed++) {
        if (several && rank->comm->size > 1)
            DDP_TRY(run_baseline(rank, v, seed, err));
        for (int job = 0; job < v->job_count; job++) {
            struct ddp_train_options o;
            options_of(v, job, seed, &o);
            observer.job = job;
            observer.seed = seed;
            times.run_ns = ddp_now_ns();
            DDP_TRY(train(rank->comm, &o, &observer, err));
            times.seconds[job] = (double)(ddp_now_ns() - times.run_ns) / 1e9;
        }
    }
    return ddp_emit_baseline(rank, err);
}

const struct ddp_job ddp_training_job = {
    .prepare = prepare,
    .heap_bytes = heap_bytes,
    .threads = threads,
    .gpu = gpu,
    .estimate = estimate,
    .epochs = epochs,
    .borrow = borrow,
    .rank_main = rank_main,
    .release = release,
};
