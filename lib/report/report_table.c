/* The wide table, in the style of nccl-tests, for pipes, files and the option --wide. On a terminal
 * without --wide, terminal_table.h draws the table. Lines that begin with '#' are heads or
 * explanations. Each point or epoch is one row. Points appear in the order of measurement, and the
 * first column is their index in the plan. A missing value is '-'. The head of a table names the
 * units. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "record/field.h"
#include "record/point_verdict.h"
#include "record/quality.h"
#include "record/straggler_text.h"
#include "report/legend.h"
#include "report/report_parts.h"

void ddp_comment_label(const struct ddp_record *r, struct ddp_strbuf *out)
{
    if (!r->label[0])
        return;
    ddp_strbuf_add(out, "# label: ");
    ddp_table_text(out, r->label);
    ddp_strbuf_add(out, "\n");
}

void ddp_comment_epoch(const struct ddp_record *r, int run, int index, struct ddp_strbuf *out)
{
    const struct ddp_epoch *e = &r->train[run].epochs[index];
    ddp_strbuf_addf(out, "# train %s, epoch %d: ", r->train[run].sync, e->epoch);
    if (isfinite(e->eval_accuracy)) /* The baseline run on one rank is not evaluated. */
        ddp_strbuf_addf(out, "eval accuracy %.4f, ", e->eval_accuracy);
    ddp_strbuf_addf(out, "%.3f s\n", e->seconds);
}

void ddp_comment_cut_off(const struct ddp_record *r, struct ddp_strbuf *out)
{
    if (r->status == DDP_STATUS_COMPLETE)
        return;
    ddp_strbuf_add(out, "# cut off: ");
    ddp_table_text(out, r->reason);
    ddp_strbuf_add(out, "\n");
}

void ddp_comment_quality(const struct ddp_record *r, struct ddp_strbuf *out)
{
    char text[320];
    ddp_quality_summary(r, text, sizeof text);
    if (text[0])
        ddp_strbuf_addf(out, "# %s; `ddpbench explain quality`\n", text);
}

void ddp_comment_point_quality(const struct ddp_point *p, struct ddp_strbuf *out)
{
    char codes[160];
    ddp_quality_list(p->quality, ", ", codes, sizeof codes);
    if (codes[0] && p->spec.coll == DDP_BARRIER)
        ddp_strbuf_addf(out, "# doubtful: %s\n", codes);
    else if (codes[0])
        ddp_strbuf_addf(out, "# doubtful, %llu bytes %s place: %s\n",
                        (unsigned long long)p->spec.size_bytes,
                        p->spec.placement == DDP_IN_PLACE ? "in" : "out of", codes);
}

void ddp_comment_algorithm(const struct ddp_point *before, const struct ddp_point *p,
                           struct ddp_strbuf *out)
{
    const bool library = strcmp(p->algorithm_used, "native") == 0;
    if (before && strcmp(before->algorithm_used, p->algorithm_used) == 0 &&
        strcmp(before->spec.backend, p->spec.backend) == 0)
        return;
    ddp_strbuf_addf(out, "# algorithm that ran: %s (%s, backend %s)\n", p->algorithm_used,
                    library ? "the library's own" : "ddpbench's", p->spec.backend);
}

void ddp_table_text(struct ddp_strbuf *out, const char *text)
{
    ddp_escaped_text(out, text, "", NULL);
}

void ddp_escaped_text(struct ddp_strbuf *out, const char *text, const char *special,
                      const char *const *by)
{
    char clean[2400];
    ddp_printable(text, clean, sizeof clean);
    for (const char *c = clean; *c; c++) {
        const char *found = strchr(special, *c);
        if (found)
            ddp_strbuf_add(out, by[found - special]);
        else
            ddp_strbuf_add_n(out, c, 1);
    }
}

void ddp_table_cell(struct ddp_strbuf *out, int width, double value)
{
    double size = fabs(value);
    if (size > 0 && size < 0.001) {
        ddp_strbuf_addf(out, " %*.2e", width, value);
        return;
    }
    int digits = size >= 1000               ? 0
                 : size >= 100              ? 1
                 : size >= 10               ? 2
                 : size >= 0.1 || size == 0 ? 3
                                            : 5;
    ddp_table_fixed(out, width, digits, value);
}

void ddp_table_fixed(struct ddp_strbuf *out, int width, int digits, double value)
{
    if (isfinite(value))
        ddp_strbuf_addf(out, " %*.*f", width, digits, value);
    else
        ddp_strbuf_addf(out, " %*s", width, "-");
}

void ddp_table_count(struct ddp_strbuf *out, int width, int64_t value)
{
    if (value < 0)
        ddp_strbuf_addf(out, " %*s", width, "-");
    else
        ddp_strbuf_addf(out, " %*lld", width, (long long)value);
}

void ddp_table_interval(struct ddp_strbuf *out, const struct ddp_summary *t)
{
    ddp_table_fixed(out, 6, 1, ddp_quality_interval(t) * 100);
}

void ddp_table_ranks(const struct ddp_point_spec *spec, char *out)
{
    if (spec->group_list[0])
        snprintf(out, 24, "%.23s", spec->group_list);
    else if (spec->groups > 1)
        snprintf(out, 24, "%dx%d", spec->groups, spec->ranks);
    else
        snprintf(out, 24, "%d", spec->ranks);
}

void ddp_table_spec(const struct ddp_point *p, struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &p->spec;
    char ranks[24];
    ddp_table_ranks(s, ranks);
    ddp_strbuf_addf(out, "%12llu %12llu %-5s %-4s %-9s %5s %-5s %-10s",
                    (unsigned long long)s->size_bytes, (unsigned long long)s->count,
                    s->coll == DDP_BARRIER ? "-" : ddp_dtype_name(s->dtype),
                    ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : "-", p->algorithm_used, ranks,
                    ddp_placement_name(s->placement), ddp_memory_name(s->memory));
}

static void quality(const struct ddp_point *p, struct ddp_strbuf *out)
{
    char codes[160];
    ddp_quality_list(p->quality, ",", codes, sizeof codes);
    if (codes[0])
        ddp_strbuf_addf(out, " " DDP_RED "%s" DDP_PLAIN "\n", codes);
    else
        ddp_strbuf_add(out, " -\n");
}

void ddp_table_tail(const struct ddp_point *p, struct ddp_strbuf *out)
{
    if (p->check_wrong > 0)
        ddp_strbuf_add(out, DDP_RED);
    ddp_table_count(out, 6, p->check_wrong);
    if (p->check_wrong > 0)
        ddp_strbuf_add(out, DDP_PLAIN);
    ddp_table_fixed(out, 8, 0, p->pingpong_ns[1]);
    quality(p, out);
}

void ddp_table_facts(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_build *build = &r->build;
    char size[24], nic[96];
    ddp_strbuf_addf(out, "ddpbench %s (%s), %s, ", build->version, build->commit, r->command);
    if (r->rank_counts[0])
        ddp_strbuf_addf(out, "%s ranks", r->rank_counts);
    else
        ddp_strbuf_addf(out, "%d rank%s", r->world_ranks, r->world_ranks == 1 ? "" : "s");
    ddp_strbuf_addf(out, ", backend %s%s%s%s%s, launcher %s%s\n", r->world_backend,
                    r->feature_mpi[0] ? ", " : "", r->feature_mpi, r->feature_ucx[0] ? ", " : "",
                    r->feature_ucx, r->launcher,
                    strcmp(r->launch, "threads") == 0 ? " (threads)" : "");
    if (r->subset[0])
        ddp_strbuf_addf(out, "smaller rank counts: ranks chosen by --subset %s\n", r->subset);
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        ddp_format_size(h->memory_bytes > 0 ? (uint64_t)h->memory_bytes : 0, size, sizeof size);
        ddp_strbuf_addf(out, "host %s: %s, %d core%s", h->name,
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
        ddp_nic_text(&h->network.nic, nic, sizeof nic);
        if (r->host_count > 1 && nic[0])
            ddp_strbuf_addf(out, ", NIC %s%s%s", nic,
                            h->network.congestion_control[0] ? ", TCP " : "",
                            h->network.congestion_control);
        ddp_strbuf_addf(out, ", %d rank%s\n", h->ranks, h->ranks == 1 ? "" : "s");
    }
    if (isfinite(r->timer_cost_ns))
        ddp_strbuf_addf(
            out, "timer: CLOCK_MONOTONIC, %.0f ns per reading, resolution %.0f ns; SIMD %s\n",
            r->timer_cost_ns, r->timer_resolution_ns, r->simd);
}

static void begin(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_strbuf facts = DDP_STRBUF_INIT;
    ddp_table_facts(r, &facts);
    ddp_strbuf_add(out, DDP_DIM);
    ddp_comment_label(r, out);
    for (const char *line = facts.text, *end; line && (end = strchr(line, '\n')); line = end + 1)
        ddp_strbuf_addf(out, "# %.*s\n", (int)(end - line), line);
    if (r->note[0])
        ddp_strbuf_addf(out, "# NOTE: %s\n", r->note);
    ddp_strbuf_add(out, DDP_PLAIN);
    out->failed |= facts.failed;
    ddp_strbuf_release(&facts);
}

/* The heads of the columns of each kind of point. */
static const char *const heads[DDP_POINT_KIND_COUNT] = {
    [DDP_POINT_DENSE] =
        "#index         size        count type  op   algorithm ranks place memory         time   "
        "ci95       min       p95     n    algbw    busbw  bound  wrong pingpong quality\n"
        "#               (B)   (elements)                                                (us)   "
        "+-%      (us)      (us)         (GB/s)   (GB/s)      %            (ns)\n",
    [DDP_POINT_REDUCED] =
        "#index         size        count compress         part fdbk algorithm ranks memory        "
        " "
        "time   ci95    encode  exchange    decode         sent density      eff  x f32  x f16 "
        "ovrflw  wrong pingpong quality\n"
        "#               (B)   (elements)                                                         "
        "(us)   +-%      (us)      (us)      (us)          (B)           (GB/s)                   "
        "             (ns)\n",
    [DDP_POINT_OVERLAPPED] =
        "#index         size        count type  op   algorithm ranks place memory         pure   "
        "ci95   compute     total  overlap    busbw  wrong pingpong quality\n"
        "#               (B)   (elements)                                                (us)   "
        "+-%      (us)      (us)        %   (GB/s)           (ns)\n",
};

static void head(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, DDP_DIM "%s" DDP_PLAIN, heads[ddp_point_kind(&r->points[index].spec)]);
}

static void head_with_legend(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, DDP_DIM);
    ddp_legend_add(DDP_LEGEND_POINTS, NULL, 0, "# ", DDP_LEGEND_COLUMNS, out);
    ddp_legend_add(ddp_legend_of(ddp_point_kind(&r->points[index].spec)), NULL, 0, "# ",
                   DDP_LEGEND_COLUMNS, out);
    ddp_strbuf_add(out, DDP_PLAIN);
    head(r, index, out);
}

static void compressed_row(const struct ddp_point *p, struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &p->spec;
    char ranks[24];
    ddp_table_ranks(s, ranks);
    ddp_strbuf_addf(out, "%12llu %12llu %-16s", (unsigned long long)s->size_bytes,
                    (unsigned long long)s->count, s->compress);
    ddp_table_count(out, 4, s->partial > 0 ? s->partial : -1);
    ddp_strbuf_addf(out, " %-4s %-9s %5s %-10s", p->feedback[0] ? p->feedback : "-",
                    p->algorithm_used, ranks, ddp_memory_name(s->memory));
    ddp_table_cell(out, 8, p->time_ns.median / 1e3);
    ddp_table_interval(out, &p->time_ns);
    for (int i = 0; i < 3; i++)
        ddp_table_cell(out, 9, p->phase_ns[i] / 1e3);
    ddp_table_count(out, 12,
                    isfinite(p->wire_bytes_per_rank) ? llround(p->wire_bytes_per_rank) : -1);
    ddp_table_cell(out, 7, p->achieved_density);
    ddp_strbuf_add(out, DDP_BOLD);
    ddp_table_cell(out, 8, ddp_point_effective_GBps(p, p->time_ns.median));
    ddp_strbuf_add(out, DDP_PLAIN);
    for (int i = 0; i < DDP_BASELINE_COUNT; i++)
        ddp_table_cell(out, 6, ddp_point_speedup(p, (enum ddp_baseline)i));
    ddp_table_count(out, 6, p->overflow_count);
    ddp_table_tail(p, out);
}

/* Adds, for example, ": 0.5 measured" or, after another density, ", 0.5 measured". */
static void add_density(struct ddp_strbuf *out, const char **before, const char *what,
                        double density)
{
    if (!isfinite(density))
        return;
    ddp_strbuf_addf(out, "%s%.2g %s", *before, density, what);
    *before = ", ";
}

/* Adds the break-even densities that are known. */
static void add_break_even(const struct ddp_point *p, struct ddp_strbuf *out)
{
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        const struct ddp_break_even *even = &p->break_even[i];
        if (!isfinite(even->predicted) && !isfinite(even->estimated))
            continue;
        const char *before = ": ";
        ddp_strbuf_addf(out, "#   break-even density against %s",
                        ddp_baseline_name((enum ddp_baseline)i));
        add_density(out, &before, "from the bytes alone", even->predicted);
        add_density(out, &before, "estimated from the times above", even->estimated);
        add_density(out, &before, "measured", even->measured);
        ddp_strbuf_add(out, "\n");
    }
}

/* Adds the verdicts and the break-even densities of compressed and partial exchanges. */
static void compressed_verdicts(const struct ddp_record *r, struct ddp_strbuf *out)
{
    for (int i = 0; i < r->point_count; i++) {
        char text[DDP_FIELD_TEXT_BYTES];
        if (!ddp_point_verdict_in_summary(r, i))
            continue;
        ddp_point_verdict(&r->points[i], text, sizeof text);
        ddp_strbuf_addf(out, "# %s\n", text);
        add_break_even(&r->points[i], out);
    }
}

static void overlap_row(const struct ddp_point *p, struct ddp_strbuf *out)
{
    ddp_table_spec(p, out);
    ddp_table_cell(out, 8, p->time_ns.median / 1e3);
    ddp_table_interval(out, &p->time_ns);
    ddp_table_cell(out, 9, p->overlap.compute_ns / 1e3);
    ddp_table_cell(out, 9, p->overlap.total_ns / 1e3);
    ddp_strbuf_add(out, DDP_BOLD);
    ddp_table_cell(out, 8, p->overlap.percent);
    ddp_strbuf_add(out, DDP_PLAIN);
    ddp_table_cell(out, 8, ddp_point_busbw_GBps(p, p->time_ns.median));
    ddp_table_tail(p, out);
}

static void dense_row(const struct ddp_point *p, struct ddp_strbuf *out)
{
    const struct ddp_summary *t = &p->time_ns;
    ddp_table_spec(p, out);
    ddp_table_cell(out, 8, t->median / 1e3);
    ddp_table_interval(out, t);
    ddp_table_cell(out, 9, t->min / 1e3);
    ddp_table_cell(out, 9, t->p95 / 1e3);
    ddp_table_count(out, 5, p->iterations);
    ddp_table_cell(out, 8, ddp_point_algbw_GBps(p, t->median));
    ddp_strbuf_add(out, DDP_BOLD);
    ddp_table_cell(out, 8, ddp_point_busbw_GBps(p, t->median));
    ddp_strbuf_add(out, DDP_PLAIN);
    ddp_table_fixed(out, 6, 0, p->bound_fraction * 100);
    ddp_table_tail(p, out);
    if (isfinite(p->spec.imbalance))
        ddp_strbuf_addf(out, "#   split %s: imbalance %.3g\n", p->spec.split, p->spec.imbalance);
}

static void point(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    static void (*const rows[DDP_POINT_KIND_COUNT])(const struct ddp_point *,
                                                    struct ddp_strbuf *) = {
        [DDP_POINT_DENSE] = dense_row,
        [DDP_POINT_REDUCED] = compressed_row,
        [DDP_POINT_OVERLAPPED] = overlap_row,
    };
    ddp_strbuf_addf(out, "%6d ", ddp_record_plan_index(r, index));
    rows[ddp_point_kind(&r->points[index].spec)](&r->points[index], out);
}

static void epoch_head(const struct ddp_train_run *t, bool legend, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, DDP_DIM);
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
    if (legend)
        ddp_legend_add(DDP_LEGEND_TRAIN, NULL, 0, "# ", DDP_LEGEND_COLUMNS, out);
    ddp_strbuf_add(out, "# epoch  train-loss train-acc  eval-loss  eval-acc   time(s)  images/s "
                        "exchange(s) exposed(s)  sent(MB)  peak(MB)\n" DDP_PLAIN);
}

static void epoch_row(const struct ddp_epoch *e, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%7d", e->epoch);
    ddp_table_fixed(out, 11, 6, e->train_loss);
    ddp_table_fixed(out, 9, 4, e->train_accuracy);
    ddp_table_fixed(out, 10, 6, e->eval_loss);
    ddp_strbuf_add(out, DDP_BOLD);
    ddp_table_fixed(out, 9, 4, e->eval_accuracy);
    ddp_strbuf_add(out, DDP_PLAIN);
    ddp_table_fixed(out, 9, 3, e->seconds);
    ddp_table_fixed(out, 9, 0, e->images_per_second);
    ddp_table_fixed(out, 11, 3, e->exchange_seconds);
    ddp_table_fixed(out, 10, 3, e->exposed_seconds);
    ddp_table_fixed(out, 9, 2, e->wire_bytes_per_rank / 1e6);
    ddp_table_fixed(out, 9, 1, e->peak_memory_bytes < 0 ? NAN : (double)e->peak_memory_bytes / 1e6);
    ddp_strbuf_add(out, "\n");
}

static void epoch(const struct ddp_record *r, int run, int index, struct ddp_strbuf *out)
{
    if (index == 0)
        epoch_head(&r->train[run], false, out);
    epoch_row(&r->train[run].epochs[index], out);
}

static void epoch_with_legend(const struct ddp_record *r, int run, int index,
                              struct ddp_strbuf *out)
{
    if (index == 0)
        epoch_head(&r->train[run], true, out);
    epoch_row(&r->train[run].epochs[index], out);
}

static void controls_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    /* `train` measures the memory baseline before and after its runs, so the baselines come in
     * pairs. */
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

static void best_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const int best = ddp_record_best_busbw(r);
    char size[24], ranks[24];
    if (best < 0)
        return;
    const struct ddp_point *p = &r->points[best];
    ddp_format_size(p->spec.size_bytes, size, sizeof size);
    ddp_table_ranks(&p->spec, ranks);
    ddp_strbuf_addf(
        out, "# best busbw: %.4g GB/s at %s, %s ranks, %s, %s, %s\n",
        ddp_point_busbw_GBps(p, p->time_ns.median), size, ranks, ddp_dtype_name(p->spec.dtype),
        p->spec.placement == DDP_IN_PLACE ? "in place" : "out of place", p->algorithm_used);
}

static void points_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    double elements = 0, wrong = 0;
    int checked = 0;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        if (p->check_elements < 0)
            continue;
        checked++;
        elements += (double)p->check_elements;
        wrong += (double)p->check_wrong;
    }
    best_foot(r, out);
    compressed_verdicts(r, out);
    if (checked > 0)
        ddp_strbuf_addf(out, "# verified: %d of %d points, %.0f elements, %.0f wrong\n", checked,
                        r->point_count, elements, wrong);
    else if (r->point_count > 0 && r->points[0].spec.coll != DDP_BARRIER)
        ddp_strbuf_add(out, "# verified: nothing\n");
    controls_foot(r, out);
    ddp_comment_quality(r, out);
}

static void stragglers_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    char text[512];
    for (int next = 0; ddp_arrival_line(r, &next, text, sizeof text);)
        ddp_strbuf_addf(out, "# %s\n", text);
    for (int next = 0; ddp_straggler_line(r, &next, text, sizeof text);)
        ddp_strbuf_addf(out, "# %s; `ddpbench explain straggler`\n", text);
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

static void left_out_foot(const struct ddp_record *r, struct ddp_strbuf *out)
{
    for (int i = 0; i < r->left_out_count; i++) {
        const struct ddp_left_out *l = &r->left_out[i];
        ddp_strbuf_add(out, "# left out: ");
        ddp_table_text(out, l->what);
        if (l->points >= 0)
            ddp_strbuf_addf(out, ", %d point%s", l->points, l->points == 1 ? "" : "s");
        ddp_strbuf_addf(out, ", %d rank%s: ", l->ranks, l->ranks == 1 ? "" : "s");
        ddp_table_text(out, l->reason);
        ddp_strbuf_add(out, "\n");
    }
}

static void foot(const struct ddp_record *r, bool legend, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, DDP_DIM);
    if (r->point_count > 0)
        points_foot(r, out);
    for (int i = 0; i < r->train_count; i++)
        if (!r->train[i].baseline)
            train_foot(&r->train[i], out);
    if (r->point_count == 0 && r->train_count > 0)
        controls_foot(r, out);
    stragglers_foot(r, out);
    left_out_foot(r, out);
    ddp_strbuf_add(out, DDP_PLAIN);
    ddp_table_strategies(r, legend, out);
    ddp_table_matrix(r, 0, out);
    ddp_table_health(r, 0, out);
    ddp_table_pays(&r->pays, legend, 0, out);
    if (r->verdict)
        ddp_table_verdict(r->verdict, out);
    if (r->status != DDP_STATUS_COMPLETE) {
        ddp_strbuf_add(out, r->status == DDP_STATUS_FAILED ? "# FAILED: " : "# partial: ");
        ddp_table_text(out, r->reason);
        ddp_strbuf_add(out, "\n");
    }
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    foot(r, false, out);
}

static void end_with_legend(const struct ddp_record *r, struct ddp_strbuf *out)
{
    foot(r, true, out);
}

static const struct ddp_reporter table_with_legend = {
    .name = "table",
    .measured_order = true,
    .begin = begin,
    .head = head_with_legend,
    .point = point,
    .epoch = epoch_with_legend,
    .end = end_with_legend,
};

const struct ddp_reporter ddp_reporter_table = {
    .name = "table",
    .summary = "a table to read: it fits a terminal; in a pipe or a file it has all columns",
    .shows = DDP_RECORD_ALL,
    .with_legend = &table_with_legend,
    .measured_order = true,
    .begin = begin,
    .head = head,
    .point = point,
    .epoch = epoch,
    .end = end,
};
