/* The table for people, in the style of nccl-tests. Lines that begin with '#' are explanations.
 * Each point or epoch is one row. A missing value is '-'. The head of a table names the units. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "record/provenance.h"
#include "report/table_cells.h"
#include "report/table_compressed.h"
#include "report/table_overlap.h"
#include "report/table_strategies.h"
#include "report/table_verdict.h"

static void begin(const struct ddp_record *r, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    const struct ddp_build *build = ddp_build_info();
    char size[24];
    ddp_table_dim(style, out);
    ddp_strbuf_addf(out, "# ddpbench %s (%s), %s, ", build->version, build->commit, r->command);
    if (r->rank_counts[0])
        ddp_strbuf_addf(out, "%s ranks", r->rank_counts);
    else
        ddp_strbuf_addf(out, "%d rank%s", r->world_ranks, r->world_ranks == 1 ? "" : "s");
    ddp_strbuf_addf(out, ", backend %s%s%s, launcher %s%s\n", r->world_backend,
                    r->feature_mpi[0] ? ", " : "", r->feature_mpi, r->launcher,
                    strcmp(r->launch, "threads") == 0 ? " (threads)" : "");
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        ddp_format_size(h->memory_bytes > 0 ? (uint64_t)h->memory_bytes : 0, size, sizeof size);
        ddp_strbuf_addf(out, "# host %s: %s, %d core%s", h->name,
                        h->cpu[0] ? h->cpu : "unknown processor", h->cores,
                        h->cores == 1 ? "" : "s");
        if (h->usable_cores > 0 && h->usable_cores < h->cores)
            ddp_strbuf_addf(out, " (%d usable%s)", h->usable_cores,
                            strcmp(r->launcher, "own") != 0 ? " by each rank" : "");
        ddp_strbuf_addf(out, ", %s, Linux %s", h->memory_bytes > 0 ? size : "unknown memory size",
                        h->kernel);
        if (h->governor[0])
            ddp_strbuf_addf(out, ", governor %s", h->governor);
        if (isfinite(h->load))
            ddp_strbuf_addf(out, ", load %.2f", h->load);
        if (h->gpu_count > 0)
            ddp_strbuf_addf(out, ", %d GPU%s (%s)", h->gpu_count, h->gpu_count == 1 ? "" : "s",
                            h->gpus[0].name);
        ddp_strbuf_addf(out, ", %d rank%s\n", h->ranks, h->ranks == 1 ? "" : "s");
    }
    if (isfinite(r->timer_cost_ns))
        ddp_strbuf_addf(
            out, "# timer: CLOCK_MONOTONIC, %.0f ns per reading, resolution %.0f ns; SIMD %s\n",
            r->timer_cost_ns, r->timer_resolution_ns, r->simd);
    if (r->label[0])
        ddp_strbuf_addf(out, "# NOTE: %s\n", r->label);
    ddp_table_plain(style, out);
}

static void point_head(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    ddp_strbuf_add(
        out,
        "# time: of the slowest rank, as the median over the iterations, with its 95 % "
        "interval. algbw = size/time,\n"
        "# busbw = algbw x the collective's factor (`ddpbench explain busbw`). 1 GB = 1e9 "
        "bytes. n: iterations. bound: lower bound of the time on this machine, in percent of the "
        "time\n"
        "# (`ddpbench explain bound`). pingpong: round trip between ranks 0 and 1. notes: warnings "
        "about the iterations (`ddpbench explain time`).\n"
        "#       size        count type  op   algorithm ranks place memory         time   "
        "ci95       min       p95     n    algbw    busbw  bound  wrong pingpong notes\n"
        "#        (B)   (elements)                                                (us)   "
        "+-%      (us)      (us)         (GB/s)   (GB/s)      %            (ns)\n");
    ddp_table_plain(style, out);
}

/* Each kind of point has its own columns. A new head is printed whenever the kind changes. REDUCED:
 * a compressed or partial exchange. */
enum kind { DENSE, REDUCED, OVERLAPPED };

static enum kind kind_of(const struct ddp_point_spec *spec)
{
    return ddp_point_is_reduced(spec) ? REDUCED : spec->overlap ? OVERLAPPED : DENSE;
}

static bool begins_kind(const struct ddp_record *r, int index)
{
    return index == 0 || kind_of(&r->points[index].spec) != kind_of(&r->points[index - 1].spec);
}

static void dense_row(const struct ddp_point *p, const struct ddp_report_style *style,
                      struct ddp_strbuf *out)
{
    const struct ddp_summary *t = &p->time_ns;
    ddp_table_spec(p, out);
    ddp_table_cell(out, 8, t->median / 1e3);
    ddp_table_interval(out, t);
    ddp_table_cell(out, 9, t->min / 1e3);
    ddp_table_cell(out, 9, t->p95 / 1e3);
    ddp_table_count(out, 5, p->iterations);
    ddp_table_cell(out, 8, ddp_point_algbw_GBps(p, t->median));
    ddp_table_bold(style, out);
    ddp_table_cell(out, 8, ddp_point_busbw_GBps(p, t->median));
    ddp_table_plain(style, out);
    if (isnan(p->bound_fraction))
        ddp_strbuf_addf(out, " %6s", "-");
    else
        ddp_strbuf_addf(out, " %6.0f", p->bound_fraction * 100);
    ddp_table_tail(p, style, out);
}

static void point(const struct ddp_record *r, int index, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    const struct ddp_point *p = &r->points[index];
    static void (*const heads[])(const struct ddp_report_style *, struct ddp_strbuf *) = {
        point_head, ddp_table_compressed_head, ddp_table_overlap_head};
    static void (*const rows[])(const struct ddp_point *, const struct ddp_report_style *,
                                struct ddp_strbuf *) = {dense_row, ddp_table_compressed_row,
                                                        ddp_table_overlap_row};
    const enum kind kind = kind_of(&p->spec);
    if (begins_kind(r, index))
        heads[kind](style, out);
    rows[kind](p, style, out);
}

static void epoch_head(const struct ddp_train_run *t, const struct ddp_report_style *style,
                       struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    ddp_strbuf_addf(out,
                    "# train %s (%lld parameters, init %s) on %s (%lld + %lld images), %d rank%s x "
                    "batch %lld%s\n",
                    t->model, (long long)t->parameters, t->init, t->dataset,
                    (long long)t->train_images, (long long)t->eval_images, t->ranks,
                    t->ranks == 1 ? "" : "s", (long long)t->batch_per_rank,
                    t->baseline ? ": a few steps to compute the speed-up" : "");
    ddp_strbuf_addf(out, "# %s lr %g", t->optimizer, t->lr);
    if (isfinite(t->momentum))
        ddp_strbuf_addf(out, ", momentum %g", t->momentum);
    ddp_strbuf_addf(out, ", weight decay %g; sync %s; seed %llu; %s%s %s\n", t->weight_decay,
                    t->sync, (unsigned long long)t->seed,
                    strcmp(t->device, "cuda") == 0 ? "device cuda" : "BLAS",
                    t->graph ? ", graph," : "", t->blas[0] ? t->blas : "-");
    ddp_strbuf_add(
        out,
        "# exchange: seconds in collectives; exposed: seconds not overlapped with computation; "
        "sent: bytes that each rank sent in the epoch; peak: memory of a rank so far (1 MB = 1e6 "
        "B)\n"
        "# epoch  train-loss train-acc  eval-loss  eval-acc   time(s)  images/s "
        "exchange(s) exposed(s)  sent(MB)  peak(MB)\n");
    ddp_table_plain(style, out);
}

/* Adds a number in `width` columns with `digits` decimals, or '-' if the number is missing. */
static void fixed(struct ddp_strbuf *out, int width, int digits, double value)
{
    if (isfinite(value))
        ddp_strbuf_addf(out, " %*.*f", width, digits, value);
    else
        ddp_strbuf_addf(out, " %*s", width, "-");
}

static void epoch(const struct ddp_record *r, int run, int index,
                  const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    const struct ddp_train_run *t = &r->train[run];
    const struct ddp_epoch *e = &t->epochs[index];
    if (index == 0)
        epoch_head(t, style, out);
    ddp_strbuf_addf(out, "%7d", e->epoch);
    fixed(out, 11, 6, e->train_loss);
    fixed(out, 9, 4, e->train_accuracy);
    fixed(out, 10, 6, e->eval_loss);
    ddp_table_bold(style, out);
    fixed(out, 9, 4, e->eval_accuracy);
    ddp_table_plain(style, out);
    fixed(out, 9, 3, e->seconds);
    fixed(out, 9, 0, e->images_per_second);
    fixed(out, 11, 3, e->exchange_seconds);
    fixed(out, 10, 3, e->exposed_seconds);
    fixed(out, 9, 2, e->wire_bytes_per_rank / 1e6);
    fixed(out, 9, 1, e->peak_memory_bytes < 0 ? NAN : (double)e->peak_memory_bytes / 1e6);
    ddp_strbuf_add(out, "\n");
}

static void controls_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    /* `train` measures the memory-copy speed before and after its runs. */
    const bool pairs = r->point_count == 0 && r->train_count > 0;
    for (int i = 0; i < r->control_count; i++) {
        const struct ddp_control *c = &r->controls[i];
        if (isfinite(c->copy_GBps))
            ddp_strbuf_addf(out,
                            "# memory baseline%s (%d rank%s): copy %.1f GB/s, read %.1f GB/s\n",
                            !pairs       ? ""
                            : i % 2 == 0 ? " before"
                                         : " after",
                            c->ranks, c->ranks == 1 ? "" : "s", c->copy_GBps, c->read_GBps);
    }
}

/* Reports the memory-copy speeds and the known interference. */
static void conditions_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    double steal = 0, throttled = 0, switches = 0;
    controls_foot(r, out);
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_interference *seen = &r->points[i].interference;
        steal += isnan(seen->steal_ms) ? 0 : seen->steal_ms;
        throttled += isnan(seen->throttled_ms) ? 0 : seen->throttled_ms;
        switches += seen->involuntary_switches > 0 ? (double)seen->involuntary_switches : 0;
    }
    if (steal > 0 || throttled > 0 || switches > 0)
        ddp_strbuf_addf(
            out,
            "# during the run: %.0f ms stolen by the hypervisor, %.0f ms throttled, %.0f "
            "involuntary context switches\n",
            steal, throttled, switches);
}

/* Above these thresholds the machine was noisy. The first is the factor by which the ping-pong time
 * changed, the second the half width of the interval relative to the median. */
#define PINGPONG_CHANGE_MAX 10
#define INTERVAL_WIDE       0.5
#define RANKS_SEPARATE      1024 /* All numbers from 1023 on share the last entry. */

/* Returns the largest factor by which the ping-pong changed among points with equal numbers of
 * ranks. */
static double pingpong_change(const struct ddp_record *r)
{
    double lowest[RANKS_SEPARATE], highest[RANKS_SEPARATE], change = 1;
    for (int n = 0; n < RANKS_SEPARATE; n++)
        lowest[n] = highest[n] = NAN;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        int n = DDP_MIN(p->spec.ranks * DDP_MAX(p->spec.groups, 1), RANKS_SEPARATE - 1);
        for (int j = 0; j < 2; j++) {
            lowest[n] = fmin(lowest[n], p->pingpong_ns[j]); /* fmin and fmax ignore a NaN. */
            highest[n] = fmax(highest[n], p->pingpong_ns[j]);
        }
        change = fmax(change, highest[n] / lowest[n]);
    }
    return change;
}

static void noise_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    double change = pingpong_change(r);
    int wide = 0;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_summary *t = &r->points[i].time_ns;
        wide += fmax(t->ci95_hi - t->median, t->median - t->ci95_lo) > INTERVAL_WIDE * t->median;
    }
    if (change > PINGPONG_CHANGE_MAX)
        ddp_strbuf_addf(
            out,
            "# NOISY: the ping-pong changed by a factor of %.0f: ranks may have shared cores with "
            "other processes or with each other\n",
            change);
    if (wide > 0)
        ddp_strbuf_addf(out,
                        "# NOISY: %d of %d points have a 95 %% interval wider than +-%.0f %%: do "
                        "not compare them\n",
                        wide, r->point_count, INTERVAL_WIDE * 100);
}

static void points_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    double best = NAN, lowest = NAN, highest = NAN;
    int best_at = 0, checked = 0;
    double elements = 0, wrong = 0;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        double busbw = ddp_point_busbw_GBps(p, p->time_ns.median);
        if (busbw > best || (isnan(best) && isfinite(busbw))) {
            best = busbw;
            best_at = i;
        }
        if (p->check_elements >= 0) {
            checked++;
            elements += (double)p->check_elements;
            wrong += (double)p->check_wrong;
        }
        for (int j = 0; j < 2; j++) {
            lowest = fmin(lowest, p->pingpong_ns[j]); /* fmin and fmax ignore a NaN */
            highest = fmax(highest, p->pingpong_ns[j]);
        }
    }
    if (isfinite(best)) {
        char size[24];
        ddp_format_size(r->points[best_at].spec.size_bytes, size, sizeof size);
        const struct ddp_point *p = &r->points[best_at];
        char ranks[24];
        ddp_table_ranks(&p->spec, ranks);
        ddp_strbuf_addf(out, "# best busbw: %.4g GB/s at %s, %s ranks, %s, %s, %s\n", best, size,
                        ranks, ddp_dtype_name(p->spec.dtype),
                        p->spec.placement == DDP_IN_PLACE ? "in place" : "out of place",
                        p->algorithm_used);
    }
    ddp_table_compressed_verdicts(r, out);
    if (checked > 0)
        ddp_strbuf_addf(out, "# verified: %d of %d points, %.0f elements, %.0f wrong\n", checked,
                        r->point_count, elements, wrong);
    else
        ddp_strbuf_add(out, "# verified: nothing (--check off)\n");
    if (isfinite(lowest))
        ddp_strbuf_addf(
            out,
            "# ping-pong: %.0f to %.0f ns; if it changes, ranks may have migrated: compare "
            "only points with similar ping-pong times\n",
            lowest, highest);
    noise_foot(r, out);
    conditions_foot(r, out);
}

static void train_foot(const struct ddp_train_run *t, struct ddp_strbuf *out)
{
    if (isfinite(t->total_seconds) && t->epoch_count > 0)
        ddp_strbuf_addf(out, "# %s: eval accuracy %.4f after %d epoch%s, %.1f s", t->sync,
                        t->epochs[t->epoch_count - 1].eval_accuracy, t->epoch_count,
                        t->epoch_count == 1 ? "" : "s", t->total_seconds);
    else
        return;
    if (isfinite(t->total_wire_bytes))
        ddp_strbuf_addf(out, ", %.2f MB sent per rank", t->total_wire_bytes / 1e6);
    ddp_strbuf_add(out, "\n");
    if (isfinite(t->target_accuracy) && t->target_epoch > 0)
        ddp_strbuf_addf(out, "# target accuracy %g reached in epoch %d, after %.1f s\n",
                        t->target_accuracy, t->target_epoch, t->target_seconds);
    else if (isfinite(t->target_accuracy))
        ddp_strbuf_addf(out, "# target accuracy %g was not reached\n", t->target_accuracy);
}

static void end(const struct ddp_record *r, const struct ddp_report_style *style,
                struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    if (r->point_count > 0)
        points_foot(r, out);
    for (int i = 0; i < r->train_count; i++)
        if (!r->train[i].baseline)
            train_foot(&r->train[i], out);
    if (r->point_count == 0 && r->train_count > 0)
        controls_foot(r, out);
    ddp_table_plain(style, out);
    ddp_table_strategies(r, style, out);
    if (r->verdict)
        ddp_table_verdict(r->verdict, style, out);
    if (r->status != DDP_STATUS_COMPLETE) {
        char reason[sizeof r->reason];
        ddp_printable(r->reason, reason, sizeof reason);
        ddp_strbuf_addf(out, "# %s: %s\n",
                        r->status == DDP_STATUS_FAILED ? "FAILED" : "interrupted, partial", reason);
    }
}

const struct ddp_reporter ddp_reporter_table = {
    .name = "table",
    .summary = "a table to read, in the style of nccl-tests",
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
