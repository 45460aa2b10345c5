/* Finds the rank for which the other ranks wait in a training. Each rank keeps, for a sample of the
 * steps of an epoch, when the step began and when the exchange of each bucket began and ended. The
 * strategy reads the clock at these points anyway, so the only additional cost of a step is two
 * readings of the core time (base/core_time.h). After the epoch, the ranks exchange the times and
 * judge them. A rank that is late at a bucket makes the others wait there, and afterwards all ranks
 * continue together. The delay of a step is therefore the sum of the delays at its buckets. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/trainer_impl.h"

#define ROWS    1024 /* steps of an epoch that are kept */
#define CHUNK   64   /* rows that are exchanged in one call */
#define MOST_NS 1e15

/* A row has the begin of the step, the time for which the core was taken from the rank, and for
 * each bucket the begin and end of its exchange. */
enum { BEGIN, STOLEN, BUCKETS };

#define FLOOR_NS 20e3 /* smaller delays of a step are not judged */

int ddp_trainer_straggler_open(struct ddp_trainer *t, struct ddp_err *err)
{
    struct ddp_trainer_straggler *s = &t->straggler;
    struct ddp_bucket *buckets;
    const size_t size = (size_t)t->comm->size;
    ddp_clocks_init(&s->clocks, t->comm);
    if (size == 1 || t->o->sync.cls->exchanged == NULL)
        return 0;
    DDP_TRY(DDP_NEW(&buckets, (size_t)t->o->model->param_count, err));
    s->buckets = ddp_trainer_buckets(t, buckets);
    free(buckets);
    s->width = BUCKETS + 2 * (size_t)s->buckets;
    DDP_TRY(DDP_NEW(&s->row, ROWS * s->width, err));
    DDP_TRY(DDP_NEW(&s->gathered, size * CHUNK * s->width, err));
    DDP_TRY(DDP_NEW(&s->times, size, err));
    DDP_TRY(DDP_NEW(&s->throttled_ns, size, err));
    DDP_TRY(DDP_NEW(&s->run_throttled_ns, size, err));
    DDP_TRY(DDP_NEW(&s->late_ns, (size_t)s->buckets * size, err));
    DDP_TRY(DDP_NEW(&s->run_late_ns, (size_t)s->buckets * size, err));
    if (ddp_straggler_create((int)size, &s->sums) != 0 ||
        ddp_straggler_create((int)size, &s->run_sums) != 0)
        return ddp_fail_memory(err, size, sizeof *s->times, __func__);
    return 0;
}

void ddp_trainer_straggler_close(struct ddp_trainer *t)
{
    struct ddp_trainer_straggler *s = &t->straggler;
    ddp_straggler_destroy(s->sums);
    ddp_straggler_destroy(s->run_sums);
    free(s->row);
    free(s->gathered);
    free(s->times);
    free(s->throttled_ns);
    free(s->run_throttled_ns);
    free(s->late_ns);
    free(s->run_late_ns);
}

int ddp_trainer_straggler_epoch(struct ddp_trainer *t, int64_t steps, struct ddp_err *err)
{
    struct ddp_trainer_straggler *s = &t->straggler;
    s->rows = 0;
    if (t->o->max_steps > 0)
        steps = DDP_MIN(steps, DDP_MAX(t->o->max_steps - t->step, 1));
    s->stride = (steps + ROWS - 1) / ROWS;
    if (s->sums == NULL)
        return 0;
    ddp_interference_read(&s->before);
    return ddp_clocks_estimate(&s->clocks, err);
}

static bool is_due(const struct ddp_trainer *t)
{
    const struct ddp_trainer_straggler *s = &t->straggler;
    return s->sums != NULL && s->rows < ROWS && t->sums.steps % s->stride == 0;
}

void ddp_trainer_straggler_begin(struct ddp_trainer *t)
{
    if (is_due(t))
        ddp_core_time_read(&t->straggler.core);
}

void ddp_trainer_straggler_computed(struct ddp_trainer *t)
{
    struct ddp_trainer_straggler *s = &t->straggler;
    struct ddp_core_time now;
    if (!is_due(t))
        return;
    ddp_core_time_read(&now);
    int64_t *row = s->row + (size_t)s->rows * s->width;
    row[BEGIN] = s->core.wall_ns;
    row[STOLEN] = ddp_core_time_stolen(&s->core, &now);
}

void ddp_trainer_straggler_end(struct ddp_trainer *t)
{
    struct ddp_trainer_straggler *s = &t->straggler;
    if (!is_due(t))
        return;
    int64_t *bucket = s->row + (size_t)s->rows * s->width + BUCKETS;
    for (int b = 0; b < s->buckets; b++)
        if (!t->o->sync.cls->exchanged(t->sync, b, &bucket[2 * b], &bucket[2 * b + 1]))
            return;
    s->rows++;
}

/* Returns for how long a rank computed in a step: the time from the begin of the step to the
 * exchange of the last bucket, without the earlier exchanges. With `overlap`, a progress thread
 * runs the exchanges beside the computation, so they are not subtracted. */
static double computed(const struct ddp_trainer_straggler *s, const int64_t *row, bool overlap)
{
    const int64_t *bucket = row + BUCKETS;
    const int last = s->buckets - 1;
    double ns = (double)(bucket[2 * last] - row[BEGIN]);
    for (int b = 0; b < last && !overlap; b++)
        ns -= (double)(bucket[2 * b + 1] - bucket[2 * b]);
    return ns;
}

/* Adds a step. row [ranks]: the first rank's row of the step; the row of the next rank is `stride`
 * values further. */
static void add_step(struct ddp_trainer_straggler *s, int ranks, bool overlap, const int64_t *row,
                     size_t stride)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int b = 0; b < s->buckets; b++) {
        double margin;
        for (int r = 0; r < ranks; r++) {
            const int64_t *own = row + (size_t)r * stride, *times = own + BUCKETS + 2 * b;
            s->times[r] = (struct ddp_straggler_times){
                .entry = (double)times[0],
                .exit = (double)times[1],
                .stolen = b == 0 ? (double)own[STOLEN] : 0,
                .window = b == 0 ? computed(s, own, overlap) : 0,
            };
            first = DDP_MIN(first, own[BEGIN]);
            last = DDP_MAX(last, times[1]);
        }
        const int late = ddp_straggler_add(s->sums, s->times, &margin);
        s->late_ns[b * ranks + late] += margin;
        s->run_late_ns[b * ranks + late] += margin;
        (void)ddp_straggler_add(s->run_sums, s->times, &margin);
    }
    ddp_straggler_next(s->sums, (double)(last - first));
    ddp_straggler_next(s->run_sums, (double)(last - first));
}

/* Converts this rank's rows to the common clock. */
static void convert_rows(struct ddp_trainer_straggler *s)
{
    for (size_t i = 0; i < (size_t)s->rows * s->width; i++)
        if (i % s->width != STOLEN)
            s->row[i] = ddp_clocks_global(&s->clocks, s->row[i]);
}

/* Judges the sums of an epoch or of a run. late_ns: the sums per bucket and rank. */
static void judge(const struct ddp_trainer_straggler *s, const struct ddp_straggler_sums *sums,
                  const struct ddp_straggler_setup *setup, const double *late_ns, int ranks,
                  struct ddp_straggler *out)
{
    ddp_straggler_judge(sums, setup, out);
    if (out->rank < 0 || s->buckets == 1)
        return;
    out->bucket = 0;
    for (int b = 1; b < s->buckets; b++)
        if (late_ns[b * ranks + out->rank] > late_ns[out->bucket * ranks + out->rank])
            out->bucket = b;
}

/* Agrees on the number of rows, and sets what all ranks must know for the verdict. Uses s->gathered
 * as scratch. */
static int agree(struct ddp_trainer *t, int *rows, struct ddp_straggler_setup *setup,
                 struct ddp_err *err)
{
    struct ddp_trainer_straggler *s = &t->straggler;
    struct ddp_interference now;
    ddp_interference_read(&now);
    ddp_interference_since(&s->before, &now);
    const int64_t mine[5] = {s->rows, t->comm->rank_info.oversubscribed,
                             s->clocks.common ? 0 : (int64_t)fmin(s->clocks.error_ns, MOST_NS),
                             ddp_now_ns() - t->sums.start_ns,
                             isnan(now.throttled_ms) ? -1 : (int64_t)(now.throttled_ms * 1e6)};
    DDP_TRY(ddp_comm_allgather_bytes(t->comm, mine, s->gathered, sizeof mine, err));
    *rows = s->rows;
    setup->passed_ns = (double)s->gathered[3];
    s->run_passed_ns += setup->passed_ns;
    setup->throttled_ns = s->throttled_ns;
    for (int r = 0; r < t->comm->size; r++) {
        const int64_t *own = s->gathered + 5 * r;
        s->throttled_ns[r] = own[4] < 0 ? NAN : (double)own[4];
        s->run_throttled_ns[r] += s->throttled_ns[r];
        *rows = (int)DDP_MIN(*rows, own[0]);
        setup->oversubscribed |= own[1] != 0;
        setup->floor_ns = fmax(setup->floor_ns, 2 * (double)own[2]);
    }
    return 0;
}

int ddp_trainer_straggler_judge(struct ddp_trainer *t, struct ddp_straggler *out,
                                struct ddp_err *err)
{
    struct ddp_trainer_straggler *s = &t->straggler;
    struct ddp_straggler_setup setup = {.floor_ns = FLOOR_NS, .same_role = true};
    const int ranks = t->comm->size;
    int rows;
    if (s->sums == NULL)
        return 0;
    DDP_TRY(ddp_clocks_estimate(&s->clocks, err));
    DDP_TRY(agree(t, &rows, &setup, err));
    convert_rows(s);
    ddp_straggler_reset(s->sums);
    for (int i = 0; i < s->buckets * ranks; i++)
        s->late_ns[i] = 0;
    for (int first = 0; first < rows; first += CHUNK) {
        const size_t n = (size_t)DDP_MIN(rows - first, CHUNK), length = n * s->width;
        DDP_TRY(ddp_comm_allgather_bytes(t->comm, s->row + (size_t)first * s->width, s->gathered,
                                         length * sizeof *s->row, err));
        for (size_t i = 0; i < n; i++)
            add_step(s, ranks, t->o->overlap, s->gathered + i * s->width, length);
    }
    judge(s, s->sums, &setup, s->late_ns, ranks, out);
    setup.throttled_ns = s->run_throttled_ns;
    setup.passed_ns = s->run_passed_ns;
    judge(s, s->run_sums, &setup, s->run_late_ns, ranks, &t->run.straggler);
    return 0;
}
