/* The result record: growing arrays of plain data, and the metrics derived from a point. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/provenance.h"
#include "record/quality.h"
#include "record/record.h"

const char *const ddp_placement_names[] = {"in", "out", "both", NULL};
const char *const ddp_memory_names[] = {"registered", "private", "window", NULL};
const char *const ddp_check_names[] = {"off", "once", "all", NULL};
const char *const ddp_start_names[] = {"barrier", "window", NULL};
const char *const ddp_status_names[] = {"complete", "partial", "failed"};

const char *ddp_placement_name(enum ddp_placement p)
{
    return ddp_placement_names[p];
}

const char *ddp_memory_name(enum ddp_memory m)
{
    return ddp_memory_names[m];
}

void ddp_point_id(const struct ddp_point_spec *s, char *out, unsigned long out_bytes)
{
    snprintf(out, out_bytes, "%s/%s/%s/%s/%s/r%d/%s/%s/n%d/%llu/%s/%d", ddp_coll_name(s->coll),
             s->backend, s->algorithm, ddp_dtype_name(s->dtype), ddp_op_name(s->op), s->root,
             ddp_placement_name(s->placement), ddp_memory_name(s->memory), s->ranks,
             (unsigned long long)s->requested_bytes, s->compress, s->partial);
    if (s->groups > 1 || s->group_list[0]) {
        size_t n = strlen(out);
        if (s->group_list[0])
            snprintf(out + n, out_bytes - n, "/g%s", s->group_list);
        else
            snprintf(out + n, out_bytes - n, "/g%d", s->groups);
    }
    if (s->overlap) {
        size_t n = strlen(out);
        snprintf(out + n, out_bytes - n, "/overlap");
    }
    if (s->graph) {
        size_t n = strlen(out);
        snprintf(out + n, out_bytes - n, "/graph");
    }
    if (s->split[0] && strcmp(s->split, "even") != 0) {
        size_t n = strlen(out);
        snprintf(out + n, out_bytes - n, "/split=%s", s->split);
    }
    if (s->arrival[0]) {
        size_t n = strlen(out);
        snprintf(out + n, out_bytes - n, "/arrival=%s", s->arrival);
    }
}

enum ddp_point_kind ddp_point_kind(const struct ddp_point_spec *spec)
{
    return ddp_point_is_reduced(spec) ? DDP_POINT_REDUCED
           : spec->overlap            ? DDP_POINT_OVERLAPPED
                                      : DDP_POINT_DENSE;
}

bool ddp_point_is_reduced(const struct ddp_point_spec *spec)
{
    return (spec->compress[0] && strcmp(spec->compress, "none") != 0) || spec->partial != 0;
}

/* algbw and busbw are defined for dense exchanges only. */
static bool is_dense(const struct ddp_point *p)
{
    return !ddp_point_is_reduced(&p->spec);
}

/* Returns size / time in bytes per ns, which equals GB (1e9) per second. */
static double rate(const struct ddp_point *p, double ns)
{
    if (!(ns > 0) || p->correctness_only || p->spec.size_bytes == 0 || p->spec.ranks < 2)
        return NAN;
    return (double)p->spec.size_bytes / ns;
}

double ddp_point_algbw_GBps(const struct ddp_point *p, double ns)
{
    return is_dense(p) ? rate(p, ns) : NAN;
}

double ddp_point_busiest_bytes(const struct ddp_point_spec *spec)
{
    if (ddp_coll_has_split(spec->coll) && spec->ranks > 1)
        return (double)spec->busiest_bytes;
    return (double)spec->size_bytes * ddp_coll_busbw_factor(spec->coll, spec->ranks);
}

double ddp_point_busbw_GBps(const struct ddp_point *p, double ns)
{
    const double factor = ddp_coll_busbw_factor(p->spec.coll, p->spec.ranks);
    if (!ddp_coll_has_split(p->spec.coll))
        return ddp_point_algbw_GBps(p, ns) * factor;
    if (p->spec.busiest_bytes == 0)
        return NAN;
    return ddp_point_algbw_GBps(p, ns) * (double)p->spec.busiest_bytes / (double)p->spec.size_bytes;
}

double ddp_point_effective_GBps(const struct ddp_point *p, double ns)
{
    if (is_dense(p))
        return NAN;
    return rate(p, ns) * ddp_coll_busbw_factor(p->spec.coll, p->spec.ranks);
}

double ddp_point_speedup(const struct ddp_point *p, enum ddp_baseline baseline)
{
    return p->time_ns.median > 0 ? p->dense_ns[baseline] / p->time_ns.median : NAN;
}

double ddp_point_dense_bytes(const struct ddp_point_spec *spec, enum ddp_baseline baseline)
{
    double factor = ddp_coll_busbw_factor(DDP_ALLREDUCE, spec->ranks);
    return factor * (double)spec->size_bytes / (baseline == DDP_BASELINE_F16 ? 2 : 1);
}

bool ddp_record_shares_memory(const char *backend)
{
    return strcmp(backend, "shm") == 0;
}

bool ddp_record_is_on_gpu(const char *backend)
{
    return strcmp(backend, "nccl") == 0;
}

double ddp_point_pays_below_GBps(const struct ddp_point *p, enum ddp_baseline baseline)
{
    double saved = ddp_point_dense_bytes(&p->spec, baseline) - p->wire_bytes_per_rank;
    bool shared = ddp_record_shares_memory(p->spec.backend);
    double more_ns =
        shared ? p->time_ns.median - p->dense_ns[baseline] : p->phase_ns[0] + p->phase_ns[2];
    if (is_dense(p) || p->correctness_only || p->spec.ranks < 2 || p->spec.size_bytes == 0)
        return NAN;
    if (isnan(saved) || isnan(more_ns))
        return NAN;
    return saved <= 0 ? 0 : more_ns > 0 ? saved / more_ns : INFINITY;
}

void ddp_point_init(struct ddp_point *p)
{
    memset(p, 0, sizeof *p);
    ddp_fields_init(&ddp_point_fields, p);
    p->block = 1;
    snprintf(p->spec.compress, sizeof p->spec.compress, "none");
}

void ddp_epoch_init(struct ddp_epoch *e)
{
    memset(e, 0, sizeof *e);
    ddp_fields_init(&ddp_epoch_fields, e);
}

void ddp_train_run_init(struct ddp_train_run *r)
{
    memset(r, 0, sizeof *r);
    ddp_fields_init(&ddp_train_fields, r);
}

void ddp_record_init(struct ddp_record *record)
{
    memset(record, 0, sizeof *record);
    record->status = DDP_STATUS_PARTIAL;
    ddp_fields_init(&ddp_record_fields, record);
    ddp_fields_init(&ddp_timer_fields, record);
    record->build = *ddp_build_info();
    ddp_health_init(&record->health);
}

const char *ddp_record_host_of(const struct ddp_record *record, int rank)
{
    return rank >= 0 && rank < record->rank_count ? record->ranks[rank].host : "";
}

void ddp_record_release(struct ddp_record *record)
{
    for (int i = 0; i < record->point_count; i++) {
        free(record->samples[i]);
        free(record->texts[i]);
    }
    for (int i = 0; i < record->train_count; i++)
        free(record->train[i].epochs);
    free(record->points);
    free(record->samples);
    free(record->texts);
    free(record->train);
    free(record->controls);
    free(record->left_out);
    free(record->hosts);
    free(record->ranks);
    free(record->environment);
    ddp_matrix_release(&record->matrix);
    ddp_health_release(&record->health);
    ddp_pays_release(&record->pays);
    ddp_record_init(record);
}

/* Makes room for one more point in the three parallel arrays. */
static int grow_points(struct ddp_record *record, struct ddp_err *err)
{
    if (record->point_count < record->point_capacity)
        return 0;
    int capacity = record->point_capacity ? record->point_capacity * 2 : 16;
    DDP_TRY(DDP_RESIZE(&record->points, (size_t)capacity, err));
    DDP_TRY(DDP_RESIZE(&record->samples, (size_t)capacity, err));
    DDP_TRY(DDP_RESIZE(&record->texts, (size_t)capacity, err));
    record->point_capacity = capacity;
    return 0;
}

static void clean_host(struct ddp_host *h)
{
    ddp_fields_printable(&ddp_host_fields, h);
    for (int i = 0; i < h->gpu_count; i++)
        ddp_fields_printable(&ddp_gpu_fields, &h->gpus[i]);
}

/* True if point a comes before b, by repetition and plan index. */
static bool comes_before(const struct ddp_point *a, const struct ddp_point *b)
{
    return a->launch != b->launch ? a->launch < b->launch : a->place < b->place;
}

/* Returns the index at which a new point is inserted, so that the points of each repetition are in
 * plan order. A point whose launch is 0 begins a new repetition if the last repetition is complete,
 * already has this plan index, or has another `of`. */
static int insert_index(struct ddp_record *record, const struct ddp_point *p)
{
    const int count = record->point_count;
    int at = count;
    if (p->of == 0) {
        record->launch_first = count;
        return count;
    }
    if (p->launch > 0) {
        while (at > 0 && comes_before(p, &record->points[at - 1]))
            at--;
        return at;
    }
    const struct ddp_point *first = &record->points[record->launch_first];
    if (count == record->launch_first || first->of != p->of ||
        count - record->launch_first >= p->of)
        record->launch_first = count;
    while (at > record->launch_first && record->points[at - 1].place > p->place)
        at--;
    if (at > record->launch_first && record->points[at - 1].place == p->place)
        at = record->launch_first = count;
    return at;
}

/* Sets s->host to the host of rank s->rank. */
static void name_host(const struct ddp_record *record, struct ddp_straggler *s)
{
    if (s->rank >= 0)
        snprintf(s->host, sizeof s->host, "%s", ddp_record_host_of(record, s->rank));
}

int ddp_record_add_point(struct ddp_record *record, const struct ddp_point *p,
                         const double *samples, struct ddp_err *err)
{
    double *copy = NULL;
    DDP_TRY(grow_points(record, err));
    if (p->sample_count > 0) {
        DDP_TRY(DDP_NEW(&copy, (size_t)p->sample_count, err));
        memcpy(copy, samples, (size_t)p->sample_count * sizeof *copy);
    }
    const unsigned quality = ddp_quality_judge(record, p);
    const int at = insert_index(record, p);
    const size_t behind = (size_t)(record->point_count - at);
    memmove(&record->points[at + 1], &record->points[at], behind * sizeof *record->points);
    memmove(&record->samples[at + 1], &record->samples[at], behind * sizeof *record->samples);
    memmove(&record->texts[at + 1], &record->texts[at], behind * sizeof *record->texts);
    record->points[at] = *p;
    record->points[at].quality = quality;
    name_host(record, &record->points[at].straggler);
    ddp_fields_printable(&ddp_point_fields, &record->points[at]);
    record->samples[at] = copy;
    record->texts[at] = NULL;
    record->newest = at;
    record->point_count++;
    return 0;
}

int ddp_record_settled(const struct ddp_record *record)
{
    int n = record->launch_first;
    for (; n < record->point_count; n++) {
        const struct ddp_point *p = &record->points[n];
        const int before = p->launch > 0 ? (p->launch - 1) * p->of : 0;
        if (p->of != 0 && p->place + before != n - record->launch_first)
            break;
    }
    return n;
}

int ddp_record_plan_index(const struct ddp_record *record, int point)
{
    const struct ddp_point *p = &record->points[point];
    if (p->of > 0 && p->launch > 0)
        return (p->launch - 1) * p->of + p->place + 1;
    /* Earlier repetitions are complete, so their points lie in the order of the plan. */
    return (p->of > 0 && point >= record->launch_first ? record->launch_first + p->place : point) +
           1;
}

int ddp_record_add_control(struct ddp_record *record, const struct ddp_control *control,
                           struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&record->controls, (size_t)record->control_count + 1, err));
    record->controls[record->control_count++] = *control;
    return 0;
}

int ddp_record_set_ranks(struct ddp_record *record, const struct ddp_rank_device *ranks, int count,
                         struct ddp_err *err)
{
    if (count < record->rank_count)
        return 0;
    DDP_TRY(DDP_RESIZE(&record->ranks, (size_t)count, err));
    record->rank_count = count;
    for (int r = 0; r < count; r++) {
        record->ranks[r] = ranks[r];
        ddp_fields_printable(&ddp_rank_fields, &record->ranks[r]);
    }
    return 0;
}

int ddp_record_add_left_out(struct ddp_record *record, const struct ddp_left_out *left_out,
                            struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&record->left_out, (size_t)record->left_out_count + 1, err));
    struct ddp_left_out *added = &record->left_out[record->left_out_count++];
    *added = *left_out;
    ddp_fields_printable(&ddp_left_out_fields, added);
    return 0;
}

int ddp_record_add_train(struct ddp_record *record, const struct ddp_train_run *run,
                         struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&record->train, (size_t)record->train_count + 1, err));
    struct ddp_train_run *added = &record->train[record->train_count++];
    *added = *run;
    ddp_fields_printable(&ddp_train_fields, added);
    added->epochs = NULL;
    added->epoch_count = 0;
    return 0;
}

int ddp_record_add_epoch(struct ddp_record *record, const struct ddp_epoch *epoch,
                         struct ddp_err *err)
{
    if (record->train_count == 0)
        return ddp_fail(err, DDP_EINTERNAL, "epoch %d has no training run", epoch->epoch);
    struct ddp_train_run *run = &record->train[record->train_count - 1];
    DDP_TRY(DDP_RESIZE(&run->epochs, (size_t)run->epoch_count + 1, err));
    run->epochs[run->epoch_count] = *epoch;
    name_host(record, &run->epochs[run->epoch_count++].straggler);
    return 0;
}

void ddp_record_end_train(struct ddp_record *record, const struct ddp_train_run *run)
{
    struct ddp_train_run *last = &record->train[record->train_count - 1];
    struct ddp_epoch *epochs = last->epochs;
    int count = last->epoch_count;
    *last = *run;
    name_host(record, &last->straggler);
    ddp_fields_printable(&ddp_train_fields, last);
    last->epochs = epochs;
    last->epoch_count = count;
}

int ddp_record_add_host(struct ddp_record *record, const struct ddp_host *host, struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&record->hosts, (size_t)record->host_count + 1, err));
    record->hosts[record->host_count] = *host;
    clean_host(&record->hosts[record->host_count++]);
    return 0;
}

void ddp_record_set_gpus(struct ddp_record *record, int index, const struct ddp_gpu_facts *facts,
                         int count)
{
    struct ddp_host *h = &record->hosts[index];
    assert(index < record->host_count && count <= DDP_GPU_FACTS_MAX);
    memcpy(h->gpus, facts, (size_t)count * sizeof *facts);
    h->gpu_count = count;
    clean_host(h);
}

int ddp_record_best_busbw(const struct ddp_record *record)
{
    double best = NAN;
    int at = -1;
    for (int i = 0; i < record->point_count; i++) {
        const struct ddp_point *p = &record->points[i];
        const double busbw = ddp_point_busbw_GBps(p, p->time_ns.median);
        if (p->check_wrong > 0)
            continue;
        if (busbw > best || (isnan(best) && isfinite(busbw))) {
            best = busbw;
            at = i;
        }
    }
    return at;
}
