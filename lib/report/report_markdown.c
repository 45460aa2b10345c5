/* Markdown for an issue, a wiki or a pull request: the verdict, the set-up, then tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "record/field.h"
#include "record/point_verdict.h"
#include "record/quality.h"
#include "report/report_parts.h"

static void head(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_build *build = &r->build;
    struct ddp_strbuf command = DDP_STRBUF_INIT;
    for (int i = 0; i < r->argc; i++)
        ddp_strbuf_addf(&command, "%s%s", i > 0 ? " " : "", r->argv[i]);
    ddp_strbuf_addf(out, "# ddpbench %s", r->command);
    if (r->label[0]) {
        ddp_strbuf_add(out, ": ");
        ddp_markdown_code(out, r->label);
    }
    ddp_strbuf_add(out, "\n\n");
    ddp_markdown_code(out, command.text ? command.text : "");
    ddp_strbuf_release(&command);
    ddp_strbuf_addf(out, "\n\nddpbench %s (%s), %d rank%s, backend %s, launcher %s, SIMD %s",
                    build->version, build->commit, r->world_ranks, r->world_ranks == 1 ? "" : "s",
                    r->world_backend, r->launcher, r->simd);
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        ddp_strbuf_addf(out, "; %d on ", h->ranks);
        ddp_markdown_code(out, h->name);
        ddp_strbuf_add(out, " (");
        ddp_markdown_code(out, h->cpu[0] ? h->cpu : "unknown processor");
        ddp_strbuf_addf(out, ", %d cores)", h->cores);
    }
    ddp_strbuf_addf(out, "; started %s", r->started);
    if (r->status != DDP_STATUS_COMPLETE) {
        ddp_strbuf_addf(out, "; **%s**: ", r->status == DDP_STATUS_FAILED ? "failed" : "partial");
        ddp_markdown_code(out, r->reason);
    }
    if (r->note[0]) {
        ddp_strbuf_add(out, "; **note**: ");
        ddp_markdown_code(out, r->note);
    }
    ddp_strbuf_add(out, "\n\n");
}

void ddp_markdown_points(const struct ddp_record *r, struct ddp_strbuf *out)
{
    char summary[320];
    ddp_strbuf_add(
        out,
        "The time of an iteration is that of its slowest rank. The table has the "
        "median. 1 GB is 1e9 bytes.\n\n| collective | size | type | ranks | algorithm | compress | "
        "time (us) | algbw (GB/s) | busbw (GB/s) | effective (GB/s) | "
        "pays below (GB/s) | quality |\n"
        "|:--|--:|:--|--:|:--|:--|--:|--:|--:|--:|--:|:--|\n");
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        char size[24], codes[160];
        ddp_format_size(p->spec.size_bytes, size, sizeof size);
        ddp_strbuf_addf(out, "| %s | %s | %s | %d | %s | %s |", ddp_coll_name(p->spec.coll), size,
                        p->spec.coll == DDP_BARRIER ? "-" : ddp_dtype_name(p->spec.dtype),
                        p->spec.ranks, p->algorithm_used, p->spec.compress);
        ddp_markdown_number(out, 2, p->time_ns.median / 1e3);
        ddp_markdown_number(out, 3, ddp_point_algbw_GBps(p, p->time_ns.median));
        ddp_markdown_number(out, 3, ddp_point_busbw_GBps(p, p->time_ns.median));
        ddp_markdown_number(out, 3, ddp_point_effective_GBps(p, p->time_ns.median));
        ddp_markdown_number(out, 3, ddp_point_pays_below_GBps(p, DDP_BASELINE_F32));
        ddp_quality_list(p->quality, ", ", codes, sizeof codes);
        ddp_strbuf_addf(out, " %s |\n", codes[0] ? codes : "-");
    }
    ddp_strbuf_add(out, "\n");
    ddp_quality_summary(r, summary, sizeof summary);
    if (summary[0])
        ddp_strbuf_addf(out, "%s (`ddpbench explain quality`).\n\n", summary);
}

/* Adds a list of the verdicts on exchanges with compression or with --partial. Adds nothing if
 * there are none. */
static void verdicts(const struct ddp_record *r, struct ddp_strbuf *out)
{
    bool any = false;
    for (int i = 0; i < r->point_count; i++) {
        char text[DDP_FIELD_TEXT_BYTES];
        if (!ddp_point_verdict_in_summary(r, i))
            continue;
        ddp_point_verdict(&r->points[i], text, sizeof text);
        ddp_strbuf_addf(out, "- %s\n", text);
        any = true;
    }
    ddp_strbuf_add(out, any ? "\n" : "");
}

static void train(const struct ddp_record *r, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "## Runs\n\nSeconds and images/s leave out the evaluation. A run on one "
                        "rank takes only a few steps, from which the speed-up is computed.\n\n"
                        "| sync | ranks | seed | model | data | epochs | accuracy | seconds | "
                        "images/s | sent per rank (MB) |\n"
                        "|:--|--:|--:|:--|:--|--:|--:|--:|--:|--:|\n");
    for (int i = 0; i < r->train_count; i++) {
        const struct ddp_train_run *t = &r->train[i];
        double seconds = 0.0, images = 0.0, sent = 0.0, accuracy = NAN;
        for (int e = 0; e < t->epoch_count; e++) {
            seconds += t->epochs[e].seconds;
            images += t->epochs[e].seconds * t->epochs[e].images_per_second;
            sent += t->epochs[e].wire_bytes_per_rank;
            accuracy = t->epochs[e].eval_accuracy;
        }
        ddp_strbuf_addf(out, "| %s | %d | %llu | %s | %s%s | %d |", t->sync, t->ranks,
                        (unsigned long long)t->seed, t->model, t->dataset,
                        t->synthetic ? " (synthetic)" : "", t->epoch_count);
        ddp_markdown_number(out, 4, accuracy);
        ddp_markdown_number(out, 2, seconds);
        ddp_markdown_number(out, 0, seconds > 0.0 ? images / seconds : NAN);
        ddp_markdown_number(out, 2, sent / 1e6);
        ddp_strbuf_add(out, "\n");
    }
    ddp_strbuf_add(out, "\n");
}

static int render(const struct ddp_record *r, struct ddp_strbuf *out, struct ddp_err *err)
{
    (void)err;
    if (r->verdict) {
        ddp_markdown_verdict(r, out);
        ddp_markdown_fold(out, "How this was measured");
    }
    head(r, out);
    if (r->verdict)
        ddp_markdown_unfold(out);
    if (r->point_count > 0) {
        ddp_strbuf_add(out, "## Points\n\n");
        ddp_markdown_points(r, out);
    }
    verdicts(r, out);
    ddp_markdown_strategies(r, out);
    ddp_markdown_pays(&r->pays, out);
    if (r->train_count > 0)
        train(r, out);
    return 0;
}

const struct ddp_reporter ddp_reporter_markdown = {
    .name = "markdown",
    .summary = "tables for an issue or a wiki; rewritten after every point",
    .shows = DDP_RECORD_ALL & ~DDP_RECORD_MATRIX,
    .joins = true,
    .document = true,
    .render = render,
};
