/* The end of an epoch: averages the running statistics of batch normalisation over the ranks,
 * evaluates the evaluation images, and combines the figures of all ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/trainer_impl.h"

/* Each rank sends this struct to all ranks, which compute the weights of the average from it. */
struct state_weight {
    int64_t images;    /* images that the rank trained on in this epoch */
    int64_t exchanged; /* 1 if this rank has exchanged anything since the run began, else 0 */
};

/* Sets share [size] to each rank's fraction of the epoch's images. If the ranks have never
 * exchanged anything, sets all shares to zero, because the statistics must not be averaged. Also
 * sets all shares to zero if there are no images. */
static int shares(struct ddp_trainer *t, double *share, struct ddp_err *err)
{
    struct ddp_sync_counters now;
    t->o->sync.cls->counters(t->sync, &now);
    struct state_weight mine = {t->sums.images, now.exchange_ns > 0}, *all = t->gathered;
    int64_t images = 0, exchanged = 0;
    DDP_TRY(ddp_comm_allgather_bytes(t->comm, &mine, all, sizeof mine, err));
    for (int r = 0; r < t->comm->size; r++) {
        images += all[r].images;
        exchanged |= all[r].exchanged;
    }
    for (int r = 0; r < t->comm->size; r++)
        share[r] = exchanged && images > 0 ? (double)all[r].images / (double)images : 0.0;
    return 0;
}

/* Replaces the model's running statistics by their weighted mean over the ranks, unless all weights
 * are zero. Averages in rank order, so that all ranks get the same bits. Collective. */
static int average_state(struct ddp_trainer *t, struct ddp_err *err)
{
    size_t count = t->o->model->state_count;
    int ranks = t->comm->size, rc;
    if (count == 0 || ranks == 1)
        return 0;
    float *state = ddp_calloc(count, sizeof *state);
    float *all = ddp_calloc(count * (size_t)ranks, sizeof *all);
    double *share = ddp_calloc((size_t)ranks, sizeof *share);
    rc = all && share && state ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for running statistics");
    DDP_TRY_GOTO(ddp_comm_agree(t->comm, rc, err), err_memory);
    memcpy(state, ddp_trainer_read(t, t->o->model->state(t->model), count), count * sizeof *state);
    DDP_TRY_GOTO(shares(t, share, err), err_memory);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(t->comm, state, all, count * sizeof *state, err),
                 err_memory);
    double sum = 0.0;
    for (int r = 0; r < ranks; r++)
        sum += share[r];
    for (size_t i = 0; i < count && sum > 0.0; i++) {
        double mean = 0.0;
        for (int r = 0; r < ranks; r++)
            mean += share[r] * (double)all[(size_t)r * count + i];
        state[i] = (float)mean;
    }
    ddp_trainer_write(t, t->o->model->state(t->model), state, count);

err_memory:
    free(share);
    free(all);
    free(state);
    return rc;
}

int ddp_trainer_compare(const struct ddp_trainer *t, const void *hashes, size_t stride,
                        struct ddp_err *err)
{
    uint64_t first, other;
    int rc = 0;
    memcpy(&first, hashes, sizeof first);
    for (int r = 1; r < t->comm->size && rc == 0; r++) {
        memcpy(&other, (const char *)hashes + (size_t)r * stride, sizeof other);
        if (other != first)
            rc = ddp_fail(err, DDP_EDATA,
                          "parameters differ after step %lld: the hash of rank 0 is %016llx, but "
                          "that of rank %d is %016llx (sync '%s')",
                          (long long)t->step, (unsigned long long)first, r,
                          (unsigned long long)other, t->run.sync);
    }
    /* All ranks compare the same hashes, so either all ranks call ddp_comm_agree or none does. The
     * call marks the error as an error of all ranks. */
    return rc ? ddp_comm_agree(t->comm, rc, err) : 0;
}

/* Evaluates this rank's part of the evaluation images. */
static int evaluate_part(struct ddp_trainer *t, struct ddp_epoch_totals *totals,
                         struct ddp_err *err)
{
    const struct ddp_images *eval = &t->o->data->eval;
    size_t first, n, batch = (size_t)t->batch;
    ddp_partition_part(eval->count, t->comm->size, t->comm->rank, &first, &n);
    totals->eval_images = (int64_t)n;
    for (size_t at = 0; at < n; at += batch) {
        size_t m = DDP_MIN(batch, n - at);
        double loss;
        int correct;
        if (ddp_trainer_device_is_full(t))
            DDP_TRY(ddp_trainer_device_collect(t, &totals->eval_loss, &totals->eval_correct, err));
        if (t->device) {
            ddp_trainer_device_evaluate(t, first + at, m);
            continue;
        }
        ddp_flight_compute(t->comm->flight, true);
        t->o->model->gather(t->model, eval->pixels, eval->labels, ddp_trainer_pixels(eval), NULL,
                            first + at, (int)m, t->x, t->labels);
        t->o->model->evaluate(t->model, t->x, t->labels, (int)m, &loss, &correct);
        ddp_flight_compute(t->comm->flight, false);
        totals->eval_loss += loss;
        totals->eval_correct += correct;
    }
    return ddp_trainer_device_collect(t, &totals->eval_loss, &totals->eval_correct, err);
}

/* Returns the peak resident memory in bytes, or -1 if unknown. Reads VmHWM instead of calling
 * getrusage(), because ddp_trainer_reset_peak() can reset VmHWM. */
static int64_t peak_memory(void)
{
    char line[256];
    long long kB = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lld kB", &kB) == 1)
            break;
    if (status)
        fclose(status);
    return kB >= 0 ? (int64_t)kB * 1024 : -1;
}

void ddp_trainer_reset_peak(void)
{
    FILE *refs = fopen("/proc/self/clear_refs", "we");
    if (!refs)
        return;
    fputs("5\n", refs); /* proc(5): resets VmHWM */
    fclose(refs);
}

/* Returns the number of overflows since `before`, or -1 if the strategy does not count them. */
static int64_t overflows(const struct ddp_sync_counters *now,
                         const struct ddp_sync_counters *before)
{
    return now->overflow_count < 0 ? -1 : now->overflow_count - before->overflow_count;
}

/* Sets *totals to this rank's figures for the training steps of the epoch. */
static void fill_totals(const struct ddp_trainer *t, int64_t end_ns,
                        struct ddp_epoch_totals *totals)
{
    struct ddp_sync_counters now;
    const struct ddp_sync_counters *before = &t->sums.before;
    t->o->sync.cls->counters(t->sync, &now);
    *totals = (struct ddp_epoch_totals){
        .loss = t->sums.loss,
        .correct = t->sums.correct,
        .images = t->sums.images,
        .seconds = (double)(end_ns - t->sums.start_ns - t->sums.pause_ns) * 1e-9,
        .exchange_seconds = (double)(now.exchange_ns - before->exchange_ns) * 1e-9,
        .exposed_seconds = (double)(now.exposed_ns - before->exposed_ns) * 1e-9,
        .wire_bytes = now.wire_bytes - before->wire_bytes,
        .wire_counted = now.wire_counted,
        .encode_seconds = (double)(now.encode_ns - before->encode_ns) * 1e-9,
        .decode_seconds = (double)(now.decode_ns - before->decode_ns) * 1e-9,
        .overflow_count = overflows(&now, before),
        .values_sent = now.values_sent - before->values_sent,
        .values_total = now.values_total - before->values_total,
        .hash = ddp_trainer_hash(t),
    };
}

static double ratio(double a, double b)
{
    return b > 0.0 ? a / b : NAN;
}

/* Combines the figures of all ranks in rank order, so that every rank gets the same bits. */
static void merge(const struct ddp_epoch_totals *all, int ranks, struct ddp_epoch *out)
{
    struct ddp_epoch_totals sum = {.peak_memory_bytes = -1, .wire_counted = true};
    double compute = 0.0, images, eval_images;
    for (int r = 0; r < ranks; r++) {
        sum.loss += all[r].loss;
        sum.eval_loss += all[r].eval_loss;
        sum.correct += all[r].correct;
        sum.eval_correct += all[r].eval_correct;
        sum.images += all[r].images;
        sum.eval_images += all[r].eval_images;
        sum.seconds = DDP_MAX(sum.seconds, all[r].seconds);
        sum.exchange_seconds += all[r].exchange_seconds;
        sum.exposed_seconds += all[r].exposed_seconds;
        sum.wire_bytes += all[r].wire_bytes;
        sum.wire_counted &= all[r].wire_counted;
        sum.encode_seconds += all[r].encode_seconds;
        sum.decode_seconds += all[r].decode_seconds;
        sum.overflow_count += all[r].overflow_count;
        sum.values_sent += all[r].values_sent;
        sum.values_total += all[r].values_total;
        sum.peak_memory_bytes = DDP_MAX(sum.peak_memory_bytes, all[r].peak_memory_bytes);
        compute += all[r].seconds - all[r].exposed_seconds;
    }
    images = (double)sum.images;
    eval_images = (double)sum.eval_images;
    out->train_loss = ratio(sum.loss, images);
    out->train_accuracy = ratio((double)sum.correct, images);
    out->eval_loss = ratio(sum.eval_loss, eval_images);
    out->eval_accuracy = ratio((double)sum.eval_correct, eval_images);
    out->seconds = sum.seconds;
    out->compute_seconds = compute / ranks;
    out->exchange_seconds = sum.exchange_seconds / ranks;
    out->exposed_seconds = sum.exposed_seconds / ranks;
    out->images_per_second = ratio(images, sum.seconds);
    out->wire_bytes_per_rank = sum.wire_bytes / ranks;
    out->wire_counted = sum.wire_counted;
    out->encode_seconds = sum.encode_seconds / ranks;
    out->decode_seconds = sum.decode_seconds / ranks;
    out->overflow_count = sum.overflow_count < 0 ? -1 : sum.overflow_count;
    out->achieved_density = ratio(sum.values_sent, sum.values_total);
    out->peak_memory_bytes = sum.peak_memory_bytes;
    out->parameter_hash = all[0].hash;
}

/* Returns the bus bandwidth of the exchange if there are several ranks and the strategy sums dense
 * gradients (--aggregate). Otherwise returns NaN. */
static double exchange_busbw(const struct ddp_trainer *t, double seconds)
{
    const struct ddp_sync_class *cls = t->o->sync.cls;
    if (!cls->aggregates || t->comm->size < 2)
        return NAN;
    const double bytes = (double)t->sums.steps * (double)t->total * sizeof(float);
    return ratio(bytes * ddp_coll_busbw_factor(DDP_ALLREDUCE, t->comm->size) * 1e-9, seconds);
}

int ddp_trainer_evaluate(struct ddp_trainer *t, int epoch, struct ddp_epoch *out,
                         struct ddp_err *err)
{
    struct ddp_epoch_totals mine, *all = t->gathered;
    fill_totals(t, ddp_now_ns(), &mine);
    ddp_flight_phase(t->comm->flight, "epoch %d evaluation", epoch);
    DDP_TRY(average_state(t, err));
    if (!t->o->baseline)
        DDP_TRY(evaluate_part(t, &mine, err));
    mine.peak_memory_bytes = peak_memory();
    DDP_TRY(ddp_comm_allgather_bytes(t->comm, &mine, all, sizeof mine, err));
    if (t->o->sync.cls->replicas_equal || t->o->sync.cls->end_epoch)
        DDP_TRY(ddp_trainer_compare(t, &all->hash, sizeof *all, err));
    ddp_epoch_init(out);
    merge(all, t->comm->size, out);
    if (!t->o->sync.cls->compresses)
        out->encode_seconds = out->decode_seconds = NAN;
    out->exchange_busbw_GBps = exchange_busbw(t, out->exchange_seconds);
    out->epoch = epoch;
    out->steps = t->sums.steps;
    return ddp_trainer_straggler_judge(t, &out->straggler, err);
}
