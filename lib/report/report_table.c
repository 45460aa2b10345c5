/* The table for people, in the manner of nccl-tests: '#' lines explain, one row a point or epoch.
 *
 * A value that does not exist is '-'. Units stand in the head. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "record/provenance.h"
#include "report/table_cells.h"
#include "report/table_compressed.h"
#include "report/table_strategies.h"
#include "report/table_verdict.h"

static void begin(const struct ddp_record *r, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    const struct ddp_build *build = ddp_build_info();
    char size[24];
    ddp_table_dim(style, out);
    ddp_strbuf_addf(out, "# ddpbench %s (%s), %s, %d rank%s, backend %s%s%s, launcher %s\n",
                    build->version, build->commit, r->command, r->world_ranks,
                    r->world_ranks == 1 ? "" : "s", r->world_backend, r->feature_mpi[0] ? ", " : "",
                    r->feature_mpi, r->launcher);
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        ddp_format_size(h->memory_bytes > 0 ? (uint64_t)h->memory_bytes : 0, size, sizeof size);
        ddp_strbuf_addf(out, "# host %s: %s, %d core%s", h->name,
                        h->cpu[0] ? h->cpu : "processor unknown", h->cores,
                        h->cores == 1 ? "" : "s");
        if (h->usable_cores > 0 && h->usable_cores < h->cores)
            ddp_strbuf_addf(out, " (%d usable%s)", h->usable_cores,
                            strcmp(r->launcher, "own") != 0 ? " by each rank" : "");
        ddp_strbuf_addf(out, ", %s, Linux %s", h->memory_bytes > 0 ? size : "memory unknown",
                        h->kernel);
        if (h->governor[0])
            ddp_strbuf_addf(out, ", governor %s", h->governor);
        if (isfinite(h->load))
            ddp_strbuf_addf(out, ", load %.2f", h->load);
        ddp_strbuf_addf(out, ", %d rank%s\n", h->ranks, h->ranks == 1 ? "" : "s");
    }
    if (isfinite(r->timer_cost_ns))
        ddp_strbuf_addf(out,
                        "# timer: CLOCK_MONOTONIC, %.0f ns a reading, steps of %.0f ns; SIMD %s\n",
                        r->timer_cost_ns, r->timer_resolution_ns, r->simd);
    ddp_table_plain(style, out);
}

static void point_head(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    ddp_strbuf_add(
        out, "# time: one operation, the slowest rank; median of the iterations with its 95 % "
             "interval. algbw = size/time,\n"
             "# busbw = algbw x the collective's factor (`ddpbench explain busbw`). 1 GB = 1e9 "
             "bytes. Ping-pong: ranks 0 and 1, round trip.\n"
             "#       size        count type  op   algorithm ranks place memory         time   "
             "ci95       min       p95    algbw    busbw  wrong pingpong\n"
             "#        (B)   (elements)                                                (us)   "
             "+-%      (us)      (us)   (GB/s)   (GB/s)           (ns)\n");
    ddp_table_plain(style, out);
}

/* Dense and compressed points have columns of their own, and a head where the kind changes. */
static bool begins_kind(const struct ddp_record *r, int index)
{
    return index == 0 || ddp_point_is_reduced(&r->points[index].spec) !=
                             ddp_point_is_reduced(&r->points[index - 1].spec);
}

static void dense_row(const struct ddp_point *p, const struct ddp_report_style *style,
                      struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &p->spec;
    const struct ddp_summary *t = &p->time_ns;
    char ranks[24];
    ddp_table_ranks(s, ranks);
    ddp_strbuf_addf(out, "%12llu %12llu %-5s %-4s %-9s %5s %-5s %-10s",
                    (unsigned long long)s->size_bytes, (unsigned long long)s->count,
                    s->coll == DDP_BARRIER ? "-" : ddp_dtype_name(s->dtype),
                    ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : "-", p->algorithm_used, ranks,
                    ddp_placement_name(s->placement), ddp_memory_name(s->memory));
    ddp_table_cell(out, 8, t->median / 1e3);
    ddp_table_interval(out, t);
    ddp_table_cell(out, 9, t->min / 1e3);
    ddp_table_cell(out, 9, t->p95 / 1e3);
    ddp_table_cell(out, 8, ddp_point_algbw_GBps(p, t->median));
    ddp_table_bold(style, out);
    ddp_table_cell(out, 8, ddp_point_busbw_GBps(p, t->median));
    ddp_table_plain(style, out);
    ddp_table_tail(p, style, out);
}

static void point(const struct ddp_record *r, int index, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    const struct ddp_point *p = &r->points[index];
    const bool reduced = ddp_point_is_reduced(&p->spec);
    if (begins_kind(r, index)) {
        if (reduced)
            ddp_table_compressed_head(style, out);
        else
            point_head(style, out);
    }
    if (reduced)
        ddp_table_compressed_row(p, style, out);
    else
        dense_row(p, style, out);
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
                    t->baseline ? ": a few steps, for speed-up" : "");
    ddp_strbuf_addf(out, "# %s lr %g", t->optimizer, t->lr);
    if (isfinite(t->momentum))
        ddp_strbuf_addf(out, ", momentum %g", t->momentum);
    ddp_strbuf_addf(out, ", weight decay %g; sync %s; seed %llu; BLAS %s\n", t->weight_decay,
                    t->sync, (unsigned long long)t->seed, t->blas[0] ? t->blas : "-");
    ddp_strbuf_add(
        out, "# exchange: seconds in collectives; exposed: those nothing else was done in; "
             "sent: bytes a rank sent in the epoch; peak: memory of a rank so far (1 MB = 1e6 B)\n"
             "# epoch  train-loss train-acc  eval-loss  eval-acc   time(s)  images/s "
             "exchange(s) exposed(s)  sent(MB)  peak(MB)\n");
    ddp_table_plain(style, out);
}

/* A number in `width` columns with `digits` decimals, '-' when it does not exist. */
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

/* Best busbw, what was verified, and what the ping-pong said: the notes below the rows. */
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
        ddp_strbuf_addf(out, "# best busbw: %.3f GB/s at %s\n", best, size);
    }
    ddp_table_compressed_verdicts(r, out);
    if (checked > 0)
        ddp_strbuf_addf(out, "# verified: %d of %d points, %.0f elements, %.0f wrong\n", checked,
                        r->point_count, elements, wrong);
    else
        ddp_strbuf_add(out, "# verified: nothing (--check off)\n");
    if (isfinite(lowest))
        ddp_strbuf_addf(out,
                        "# ping-pong: %.0f to %.0f ns; where it moves, so did the ranks or their "
                        "neighbours: compare only points of one level\n",
                        lowest, highest);
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
        ddp_strbuf_addf(out, ", %.2f MB sent a rank", t->total_wire_bytes / 1e6);
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
    ddp_table_plain(style, out);
    ddp_table_strategies(r, style, out);
    if (r->verdict)
        ddp_table_verdict(r->verdict, style, out);
    if (r->status != DDP_STATUS_COMPLETE) {
        char reason[sizeof r->reason];
        ddp_printable(r->reason, reason, sizeof reason);
        ddp_strbuf_addf(out, "# %s: %s\n",
                        r->status == DDP_STATUS_FAILED ? "FAILED" : "cut off, partial", reason);
    }
}

const struct ddp_reporter ddp_reporter_table = {
    .name = "table",
    .summary = "for people, in the manner of nccl-tests",
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
