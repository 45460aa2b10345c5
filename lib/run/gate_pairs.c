/* Runs the child processes of the gate, and judges their results. */
#include "run/gate_pairs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "record/result_file.h"
#include "run/gate_launch.h"
#include "stats/signflip.h"
#include "stats/summary.h"

#define RERUNS 2
/* If the gate chooses the number of runs, the runs of one command in a pair take about this time
 * together. A single run may take longer. */
#define SIDE_NS 500000000
/* Ratio of two ping-pong times above which they belong to different classes. Between cores that
 * share a cache level, the times differ by less. Between cores that share only the next level, the
 * time is 2 to 10 times as long (results/notes/bench.md). */
#define CLASS_RATIO 1.5

/* Number of pairs before the first look, and between two looks. Both numbers are even, because with
 * one run of each command per pair, the order base new new base takes two pairs. */
#define FIRST_LOOK 8
#define NEXT_LOOK  4

int ddp_gate_plan_looks(int max_pairs, bool fixed, struct ddp_gate_looks *out, struct ddp_err *err)
{
    struct ddp_gate_looks looks = {.count = 0, .fixed = fixed};
    for (int n = FIRST_LOOK; n < max_pairs && !fixed; n += NEXT_LOOK)
        looks.pairs[looks.count++] = n;
    looks.pairs[looks.count++] = max_pairs;
    if (ddp_sequential_levels(looks.pairs, (size_t)looks.count, DDP_VERDICT_LEVEL, looks.level) !=
        0)
        return ddp_fail(err, DDP_ENOMEM, "no memory to plan a gate");
    *out = looks;
    return 0;
}

int ddp_gate_max_pairs(const struct ddp_gate_setup *setup)
{
    return setup->looks.pairs[setup->looks.count - 1];
}

struct ddp_verdict_rule ddp_gate_rule(const struct ddp_gate_setup *setup, int pairs)
{
    int look = 0;
    while (look < setup->looks.count - 1 && setup->looks.pairs[look] < pairs)
        look++;
    return (struct ddp_verdict_rule){.min_effect = setup->min_effect,
                                     .level = setup->looks.level[look]};
}

int ddp_gate_first(uint64_t seed, int pair)
{
    int drawn = (int)(ddp_mix64(seed ^ ddp_mix64((uint64_t)(pair / 2))) >> 63);
    return pair % 2 ? !drawn : drawn;
}

bool ddp_gate_class_differs(double a_ns, double b_ns)
{
    return a_ns > CLASS_RATIO * b_ns || b_ns > CLASS_RATIO * a_ns;
}

/* Checks the document of a child. A child that exited with 0 may still have written a document that
 * reports a failure. */
static int check_document(const struct ddp_gate_side *side, const struct ddp_result *result,
                          struct ddp_err *err)
{
    if (result->flaw[0])
        return ddp_fail(err, result->wrong_data ? DDP_EDATA : DDP_EUNAVAIL,
                        "the document of '%s' cannot be judged: %s", side->text, result->flaw);
    if (strcmp(result->status, "complete") != 0)
        return ddp_fail(err, DDP_EUNAVAIL, "the document of '%s' has the status '%s': %s",
                        side->text, result->status,
                        result->reason[0] ? result->reason : "no reason is given");
    if (result->count > 0)
        return 0;
    ddp_fail(err, DDP_EINPUT, "'%s' measured no point", side->text);
    if (result->run_count > 0)
        ddp_hint(err, "the training run '%s' has no epoch", result->runs[0].name);
    return err->code;
}

static int run_child(const struct ddp_gate_setup *setup, int which, struct ddp_result *result,
                     struct ddp_err *err)
{
    DDP_TRY(ddp_gate_launch(setup, which, result, err));
    const int rc = check_document(&setup->side[which], result, err);
    if (rc != 0)
        ddp_result_release(result);
    return rc;
}

/* Returns the median ping-pong time over the points of a child process, or NaN if there is no
 * ping-pong, for example with one rank. */
static double pingpong_of(const struct ddp_result *r)
{
    size_t n = 0;
    double *all = ddp_calloc(2 * r->count, sizeof *all);
    if (!all)
        return NAN;
    for (size_t i = 0; i < r->count; i++)
        for (int k = 0; k < 2; k++)
            if (isfinite(r->points[i].pingpong_ns[k]))
                all[n++] = r->points[i].pingpong_ns[k];
    const double median = ddp_median(all, n);
    free(all);
    return median;
}

/* Returns the median of the values [n] that are not NaN, or NaN if there is none. */
static double median_of_known(const double *values, size_t n)
{
    size_t known = 0;
    double *all = ddp_calloc(n, sizeof *all);
    if (!all)
        return NAN;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            all[known++] = values[i];
    const double median = ddp_median(all, known);
    free(all);
    return median;
}

/* The results of the runs of one pair. */
struct pair {
    struct ddp_result *run[2]; /* [count] by side, in the order in which they ran */
    int count[2];
};

static void release_pair(struct pair *p)
{
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < p->count[side]; i++)
            ddp_result_release(&p->run[side][i]);
        free(p->run[side]);
    }
    *p = (struct pair){.count = {0, 0}};
}

/* Returns the median of figure(run) over the runs of a side. */
static double median_over_runs(const struct pair *p, int side,
                               double (*figure)(const struct ddp_result *run))
{
    double all[DDP_GATE_RUNS_MAX];
    for (int i = 0; i < p->count[side]; i++)
        all[i] = figure(&p->run[side][i]);
    return median_of_known(all, (size_t)p->count[side]);
}

static int add_run(const struct ddp_gate_setup *setup, int which, struct pair *p,
                   struct ddp_err *err)
{
    int *count = &p->count[which];
    DDP_TRY(DDP_RESIZE(&p->run[which], (size_t)*count + 1, err));
    DDP_TRY(run_child(setup, which, &p->run[which][*count], err));
    ++*count;
    return 0;
}

/* Runs both commands data->runs times, in the order first, other, other, first and so on. If
 * data->runs is 0, chooses an odd number after one run of each command. With an even number the
 * median would be the mean of two runs, which differ much if the host moved the ranks to other
 * cores between the runs. */
static int run_both(const struct ddp_gate_setup *setup, int pair, struct ddp_gate_data *data,
                    struct pair *p, struct ddp_err *err)
{
    const int first = ddp_gate_first(setup->seed, pair);
    double slowest = 1;
    for (int i = 0; i < 2 * DDP_MAX(data->runs, 1); i++) {
        const int which = (i ^ i >> 1) & 1 ? !first : first;
        const int64_t began_ns = ddp_now_ns();
        if (setup->on_child)
            setup->on_child(setup->arg, pair, ddp_gate_max_pairs(setup), which);
        DDP_TRY(add_run(setup, which, p, err));
        slowest = fmax(slowest, (double)(ddp_now_ns() - began_ns));
        if (data->runs == 0 && i == 1)
            data->runs = (int)fmin(SIDE_NS / slowest, DDP_GATE_RUNS_MAX) | 1;
    }
    return 0;
}

/* Runs a pair. Repeats the pair, at most RERUNS times, while the ping-pong classes of its sides
 * differ. */
static int run_pair(const struct ddp_gate_setup *setup, int pair, struct ddp_gate_data *data,
                    struct pair *p, struct ddp_err *err)
{
    for (int attempt = 0;; attempt++) {
        DDP_TRY(run_both(setup, pair, data, p, err));
        const bool differs = ddp_gate_class_differs(median_over_runs(p, DDP_BASE, pingpong_of),
                                                    median_over_runs(p, DDP_NEXT, pingpong_of));
        if (!differs || attempt == RERUNS) {
            data->mixed += differs;
            return 0;
        }
        data->rerun++;
        release_pair(p);
    }
}

/* Fails if the injected delays of the sides differ, because the gate would then measure the delay.
 * Always succeeds if setup->injects is true. */
static int same_delays(const struct ddp_gate_setup *setup, const struct pair *p,
                       struct ddp_err *err)
{
    char text[320];
    bool differ = false;
    for (int i = 0; i < p->count[DDP_BASE] && !setup->injects && !differ; i++)
        differ =
            ddp_result_find_delays(&p->run[DDP_BASE][i], &p->run[DDP_NEXT][i], text, sizeof text);
    if (!differ)
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "%s", text);
    return ddp_hint(err, "remove --inject-delay from both commands");
}

/* Allocates the arrays, and copies the cells from base's first child process. */
static int open_data(const struct ddp_gate_setup *setup, const struct ddp_result *base,
                     struct ddp_gate_data *data, struct ddp_err *err)
{
    const size_t pairs = (size_t)ddp_gate_max_pairs(setup);
    data->count = base->count;
    DDP_TRY(DDP_NEW(&data->id, base->count, err));
    for (int side = 0; side < 2; side++) {
        DDP_TRY(DDP_NEW(&data->median[side], base->count * pairs, err));
        DDP_TRY(DDP_NEW(&data->pingpong[side], pairs, err));
        DDP_TRY(DDP_NEW(&data->memory[side], pairs, err));
    }
    for (size_t c = 0; c < base->count; c++)
        memcpy(data->id[c], base->points[c].id, sizeof data->id[c]);
    memcpy(data->fingerprint, base->fingerprint, sizeof data->fingerprint);
    memcpy(data->hosts, base->hosts, sizeof data->hosts);
    data->copy_bytes = base->copy_bytes;
    return ddp_id_index_build(&data->index, data->id[0], sizeof data->id[0], data->count, err);
}

static int keep_unjudged(int side, const struct ddp_result *result, struct ddp_gate_data *data,
                         struct ddp_err *err)
{
    const bool base = side == DDP_BASE;
    for (size_t i = 0; i < result->count; i++)
        if (ddp_id_index_find(&data->index, result->points[i].id) == DDP_ID_NONE)
            DDP_TRY(ddp_unjudged_add(&data->unjudged, result->points[i].id, false, base, err));
    for (size_t i = 0; i < result->run_count; i++)
        if (!result->runs[i].timed)
            DDP_TRY(ddp_unjudged_add(&data->unjudged, result->runs[i].name, true, base, err));
    return 0;
}

/* Fails if a child ran on other hosts or with another set-up than the first child. */
static int check_machine(const struct ddp_gate_side *side, const struct ddp_result *result,
                         const struct ddp_gate_data *data, struct ddp_err *err)
{
    if (strcmp(result->fingerprint, data->fingerprint) != 0) {
        ddp_fail(err, DDP_EMISMATCH, "'%s' ran with the set-up '%s', but the first child with '%s'",
                 side->text, result->fingerprint, data->fingerprint);
        return ddp_hint(err, "both commands must run with the same ranks and backend; --vary "
                             "ranks,backend allows them to differ");
    }
    if (strcmp(result->hosts, data->hosts) == 0)
        return 0;
    ddp_fail(err, DDP_EMISMATCH, "'%s' ran on '%s', but the first child on '%s'", side->text,
             result->hosts, data->hosts);
    return ddp_hint(err, "both commands must run on the same hosts");
}

static double copy_time_of(const struct ddp_result *r)
{
    return 1 / r->copy_GBps;
}

/* Stores the median of each cell over the runs of one side. */
static void keep_cells(int pair, int side, const struct pair *p, struct ddp_gate_data *data)
{
    double all[DDP_GATE_RUNS_MAX];
    for (size_t c = 0; c < data->count; c++) {
        for (int i = 0; i < p->count[side]; i++) {
            const struct ddp_result_point *point = ddp_result_find(&p->run[side][i], data->id[c]);
            all[i] = point ? point->median_ns : NAN;
        }
        data->median[side][(size_t)pair * data->count + c] =
            median_of_known(all, (size_t)p->count[side]);
    }
}

static int keep(const struct ddp_gate_setup *setup, int pair, int side, const struct pair *p,
                struct ddp_gate_data *data, struct ddp_err *err)
{
    for (int i = 0; i < p->count[side]; i++) {
        const struct ddp_result *result = &p->run[side][i];
        DDP_TRY(check_machine(&setup->side[side], result, data, err));
        memcpy(data->build[side], result->build, sizeof data->build[side]);
        data->busy += result->busy;
        data->copies_differ |= result->copy_bytes != data->copy_bytes;
        if (result->run_count > 0)
            snprintf(data->trains, sizeof data->trains, "%s", result->runs[0].name);
        DDP_TRY(ddp_accuracy_add(&data->accuracy, result, side, err));
        DDP_TRY(keep_unjudged(side, result, data, err));
    }
    data->pingpong[side][pair] = median_over_runs(p, side, pingpong_of);
    data->memory[side][pair] = data->copies_differ ? NAN : median_over_runs(p, side, copy_time_of);
    keep_cells(pair, side, p, data);
    return 0;
}

/* Sets *stop to whether the gate ends after these pairs (struct ddp_gate_looks). */
static int may_stop(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                    bool *stop, struct ddp_err *err)
{
    struct ddp_verdict_record v;
    bool look = false;
    for (int i = 0; i < setup->looks.count; i++)
        look |= setup->looks.pairs[i] == data->pairs;
    *stop = data->pairs == ddp_gate_max_pairs(setup);
    if (*stop || !look)
        return 0;
    DDP_TRY(ddp_gate_judge(setup, data, &v, err));
    *stop = v.outcome != DDP_VERDICT_INCONCLUSIVE || ddp_verdict_is_final(&v);
    ddp_verdict_record_release(&v);
    return 0;
}

/* Returns the largest ratio new/base of a cell. The ratio of a cell is its median over the
 * pairs. */
static double worst_ratio(const struct ddp_gate_data *data)
{
    double worst = NAN, all[DDP_SIGNFLIP_MAX];
    for (size_t c = 0; c < data->count; c++) {
        for (int pair = 0; pair < data->pairs; pair++) {
            const size_t at = (size_t)pair * data->count + c;
            all[pair] = data->median[DDP_NEXT][at] / data->median[DDP_BASE][at];
        }
        worst = fmax(worst, median_of_known(all, (size_t)data->pairs));
    }
    return worst;
}

int ddp_gate_measure(const struct ddp_gate_setup *setup, struct ddp_gate_data *out,
                     struct ddp_err *err)
{
    struct ddp_gate_data data = {.runs = setup->runs};
    bool stop = false;
    int rc = ddp_gate_warm_up(setup, err);
    for (int pair = 0; !stop && rc == 0; pair++) {
        struct pair p = {.count = {0, 0}};
        rc = run_pair(setup, pair, &data, &p, err);
        if (rc == 0)
            rc = same_delays(setup, &p, err);
        if (rc == 0 && pair == 0)
            rc = open_data(setup, p.run[DDP_BASE], &data, err);
        if (rc == 0 && pair == 0 && setup->check)
            rc = setup->check(setup, &data, err);
        for (int side = 0; side < 2 && rc == 0; side++)
            rc = keep(setup, pair, side, &p, &data, err);
        ddp_unjudged_merge(&data.unjudged); /* after every pair, so that the list stays small */
        release_pair(&p);
        if (rc == 0) {
            data.pairs = pair + 1;
            if (setup->on_pair)
                setup->on_pair(setup->arg, worst_ratio(&data));
            rc = may_stop(setup, &data, &stop, err);
        }
    }
    if (rc != 0 && !ddp_code_is_signal(rc))
        ddp_gate_release(&data);
    else
        *out = data;
    return rc;
}

void ddp_gate_release(struct ddp_gate_data *data)
{
    ddp_id_index_release(&data->index);
    free(data->id);
    free(data->unjudged.items);
    free(data->accuracy.items);
    for (int side = 0; side < 2; side++) {
        free(data->median[side]);
        free(data->pingpong[side]);
        free(data->memory[side]);
    }
    *data = (struct ddp_gate_data){.count = 0};
}

/* Significance level of the test of one covariate: 0.01, divided by two because there are two
 * covariates (Bonferroni). The level is stricter than the level of cells, because the Holm
 * correction does not include covariates. */
#define COVARIATE_LEVEL (0.01 / 2)

/* Returns the median over the pairs that have the cell, or NaN if no pair has it. `medians` points
 * to the cell's time in the first pair. The time of the cell in the next pair is `cells` values
 * later. */
static double median_over_pairs(const double *medians, size_t cells, int pairs)
{
    double all[DDP_SIGNFLIP_MAX];
    for (size_t i = 0; i < (size_t)pairs; i++)
        all[i] = medians[i * cells];
    return median_of_known(all, (size_t)pairs);
}

/* Tests a covariate [pairs] like a cell, once for a slow-down and once for a speed-up. *p becomes
 * the two-sided p-value. */
static int judge_covariate(double *const covariate[2], int pairs, double *ratio, double *p,
                           struct ddp_err *err)
{
    struct ddp_cell slower, faster;
    enum ddp_verdict ignored;
    const struct ddp_verdict_rule rule = {.min_effect = 0, .level = DDP_VERDICT_LEVEL};
    const double *base = covariate[DDP_BASE], *next = covariate[DDP_NEXT];
    if (ddp_verdict_decide(base, next, 1, (size_t)pairs, &rule, &slower, &ignored) != 0 ||
        ddp_verdict_decide(next, base, 1, (size_t)pairs, &rule, &faster, &ignored) != 0)
        return ddp_fail(err, DDP_ENOMEM, "no memory to judge a covariate");
    *ratio = slower.ratio;
    *p = slower.pairs ? fmin(1, 2 * fmin(slower.p, faster.p)) : NAN;
    return 0;
}

/* Turns the verdict into INCONCLUSIVE if a covariate shows that a drift of the host may have caused
 * the verdict. This is so for a FAIL if the host was slower for the new command, and for a PASS if
 * the host was faster for it. */
static void check_drift(const char *what, double ratio, double p, struct ddp_verdict_record *v)
{
    const double least = 2 * ddp_signflip_least_p((size_t)v->pairs);
    const bool explained = (v->outcome == DDP_VERDICT_FAIL && ratio > 1) ||
                           (v->outcome == DDP_VERDICT_PASS && ratio < 1);
    if (!explained || !(p <= fmax(COVARIATE_LEVEL, least)) ||
        !(fabs(log(ratio)) > log1p(v->min_effect)))
        return;
    v->outcome = DDP_VERDICT_INCONCLUSIVE;
    snprintf(v->reason, sizeof v->reason,
             "the host drifted: the %s of new differs from that of base by %+.1f %%", what,
             (ratio - 1) * 100);
}

static void name_reason(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                        struct ddp_verdict_record *v)
{
    char *out = v->reason;
    const size_t bytes = sizeof v->reason;
    size_t states[DDP_CELL_MISSING + 1];
    ddp_verdict_count_states(v, states);
    if (v->outcome == DDP_VERDICT_FAIL)
        snprintf(out, bytes, "%zu of %zu cells are slower by more than %.3g %%",
                 states[DDP_CELL_SLOWER], v->count, v->min_effect * 100);
    else if (states[DDP_CELL_MISSING] == v->count)
        snprintf(out, bytes, "no cell was judged");
    else if (states[DDP_CELL_UNCERTAIN] == 0)
        snprintf(out, bytes, "no cell is slower by %.3g %% or more", v->min_effect * 100);
    else
        snprintf(out, bytes,
                 "%zu of %zu cells may or may not be slower by %.3g %%; use a larger --%spairs",
                 states[DDP_CELL_UNCERTAIN], v->count, v->min_effect * 100,
                 setup->looks.fixed ? "" : "max-");
    if (data->busy > 0 && v->outcome != DDP_VERDICT_PASS)
        ddp_text_append(out, bytes, "; other programs ran during %d of %d runs (busy)", data->busy,
                        2 * data->runs * data->pairs);
}

int ddp_gate_judge(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                   struct ddp_verdict_record *out, struct ddp_err *err)
{
    const struct ddp_verdict_rule rule = ddp_gate_rule(setup, data->pairs);
    struct ddp_verdict_record v;
    struct ddp_cell *cells;
    int rc;
    ddp_verdict_record_init(&v);
    v.kind = DDP_BY_GATE;
    v.level = rule.level;
    v.min_effect = setup->min_effect;
    v.vary = setup->vary;
    v.pairs = data->pairs;
    v.max_pairs = ddp_gate_max_pairs(setup);
    v.runs = data->runs;
    v.rerun = data->rerun;
    v.mixed = data->mixed;
    v.count = data->count;
    DDP_TRY_GOTO(DDP_NEW(&cells, data->count, err), err_cells);
    DDP_TRY_GOTO(DDP_NEW(&v.cells, data->count, err), err_cells);
    if (ddp_verdict_decide(data->median[DDP_BASE], data->median[DDP_NEXT], data->count,
                           (size_t)data->pairs, &rule, cells, &v.outcome) != 0) {
        rc = ddp_fail_memory(err, data->count, (size_t)data->pairs * sizeof(double), __func__);
        goto err_cells;
    }
    for (size_t i = 0; i < data->unjudged.count; i++) {
        const struct ddp_unjudged *item = &data->unjudged.items[i];
        DDP_TRY_GOTO(ddp_unjudged_add(&v.unjudged, item->name, item->train, item->base, err),
                     err_cells);
    }
    for (size_t c = 0; c < data->count; c++) {
        memcpy(v.cells[c].id, data->id[c], sizeof v.cells[c].id);
        v.cells[c].cell = cells[c];
        v.cells[c].base_ns =
            median_over_pairs(data->median[DDP_BASE] + c, data->count, data->pairs);
        v.cells[c].next_ns =
            median_over_pairs(data->median[DDP_NEXT] + c, data->count, data->pairs);
    }
    DDP_TRY_GOTO(
        judge_covariate(data->pingpong, data->pairs, &v.pingpong_ratio, &v.pingpong_p, err),
        err_cells);
    DDP_TRY_GOTO(judge_covariate(data->memory, data->pairs, &v.memory_ratio, &v.memory_p, err),
                 err_cells);
    name_reason(setup, data, &v);
    check_drift("ping-pong time", v.pingpong_ratio, v.pingpong_p, &v);
    check_drift("memory copy time", v.memory_ratio, v.memory_p, &v);
    DDP_TRY_GOTO(ddp_accuracy_judge(&data->accuracy, setup->accuracy_margin, &v, err), err_cells);
    ddp_verdict_check_unjudged(&v);
    snprintf(v.base_command, sizeof v.base_command, "%s", setup->side[DDP_BASE].text);
    snprintf(v.next_command, sizeof v.next_command, "%s", setup->side[DDP_NEXT].text);
    memcpy(v.base_build, data->build[DDP_BASE], sizeof v.base_build);
    memcpy(v.next_build, data->build[DDP_NEXT], sizeof v.next_build);
    memcpy(v.fingerprint, data->fingerprint, sizeof v.fingerprint);
    *out = v;
    free(cells);
    return 0;

err_cells:
    ddp_verdict_record_release(&v);
    free(cells);
    return rc;
}

int ddp_gate_judge_partial(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                           struct ddp_verdict_record *out, struct ddp_err *err)
{
    DDP_TRY(ddp_gate_judge(setup, data, out, err));
    out->outcome = DDP_VERDICT_NONE;
    snprintf(out->reason, sizeof out->reason,
             "partial: the ratios are those of the %d finished pairs, of at most %d", out->pairs,
             out->max_pairs);
    for (size_t i = 0; i < out->count; i++)
        if (out->cells[i].cell.state != DDP_CELL_MISSING)
            out->cells[i].cell.state = DDP_CELL_UNCERTAIN;
    for (size_t i = 0; i < out->accuracy_count; i++)
        out->accuracy[i].test.state = DDP_ACCURACY_UNCERTAIN;
    return 0;
}
