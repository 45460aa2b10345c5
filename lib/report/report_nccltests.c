/* The table in the format of NVIDIA's nccl-tests (common.cu of 2.1x), for programs that parse it.
 *
 * Each row is one size, with the out-of-place point on the left and the in-place point on the
 * right. N/A stands for a point that was not measured or not checked. A row is written when both
 * its points are known. Incomplete rows follow at the end. A comment line is written where the
 * collective, algorithm, memory or number of ranks changes. Comments also name the algorithm that
 * ran, and the codes of doubtful points. Compressed and partial exchanges have
 * no bus bandwidth and become comments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/provenance.h"
#include "report/report_parts.h"

static const char *const type_names[] = {"float", "half", "bfloat16", "double", "int32", "uint8"};

/* True if the points may differ in their placement only, so that they form one row. */
static bool same_row(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
           a->memory == b->memory && a->ranks == b->ranks && a->groups == b->groups &&
           strcmp(a->group_list, b->group_list) == 0 && a->requested_bytes == b->requested_bytes &&
           a->partial == b->partial && strcmp(a->algorithm, b->algorithm) == 0 &&
           strcmp(a->backend, b->backend) == 0 && strcmp(a->compress, b->compress) == 0;
}

static bool same_table(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return a->coll == b->coll && a->memory == b->memory && a->ranks == b->ranks &&
           a->groups == b->groups && strcmp(a->group_list, b->group_list) == 0 &&
           strcmp(a->algorithm, b->algorithm) == 0;
}

/* Returns the index of the other half of point `index`'s row among points [from, to), or -1. */
static int find_other_half(const struct ddp_record *r, int index, int from, int to)
{
    const struct ddp_point_spec *s = &r->points[index].spec;
    for (int i = from; i < to; i++)
        if (same_row(&r->points[i].spec, s) && r->points[i].spec.placement != s->placement &&
            r->points[i].launch == r->points[index].launch)
            return i;
    return -1;
}

static void begin(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_build *build = ddp_build_info();
    ddp_strbuf_addf(out, "# ddpbench %s (%s), columns of nccl-tests; times are medians\n#\n",
                    build->version, build->commit);
    ddp_strbuf_addf(out, "# Using devices\n");
    for (int i = 0; i < r->host_count; i++) {
        char name[sizeof r->hosts[i].name], cpu[sizeof r->hosts[i].cpu];
        ddp_printable(r->hosts[i].name, name, sizeof name);
        ddp_printable(r->hosts[i].cpu, cpu, sizeof cpu);
        ddp_strbuf_addf(out, "#  Ranks %2d on %10s: %s\n", r->hosts[i].ranks, name, cpu);
    }
    ddp_strbuf_add(
        out,
        "#\n"
        "#                                                              out-of-place           "
        "            in-place          \n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong  "
        "   time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)         "
        "   (us)  (GB/s)  (GB/s)       \n");
}

static void half(const struct ddp_point *p, struct ddp_strbuf *out)
{
    if (!p) {
        ddp_strbuf_add(out, "      N/A     N/A     N/A    N/A");
        return;
    }
    double us = p->time_ns.median / 1e3;
    double algbw = ddp_point_algbw_GBps(p, p->time_ns.median);
    double busbw = ddp_point_busbw_GBps(p, p->time_ns.median);
    char wrong[24] = "N/A";
    if (p->check_elements >= 0)
        snprintf(wrong, sizeof wrong, "%lld", (long long)p->check_wrong);
    /* Like nccl-tests, print fewer decimals for long times, and 0.00 without a bandwidth. */
    ddp_strbuf_addf(out, "  %7.*f  %6.2f  %6.2f  %5s",
                    us >= 10000 ? 0
                    : us >= 100 ? 1
                                : 2,
                    us, isfinite(algbw) ? algbw : 0.0, isfinite(busbw) ? busbw : 0.0, wrong);
}

static void row(const struct ddp_point *a, const struct ddp_point *b, struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &a->spec;
    const struct ddp_point *in = s->placement == DDP_IN_PLACE ? a : b;
    const struct ddp_point *out_of_place = s->placement == DDP_IN_PLACE ? b : a;
    ddp_strbuf_addf(out, "%12llu  %12llu  %8s  %6s  %6d", (unsigned long long)s->size_bytes,
                    (unsigned long long)s->count, type_names[s->dtype],
                    ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : "none",
                    ddp_coll_has_root(s->coll) ? s->root : -1);
    half(out_of_place, out);
    half(in, out);
    ddp_strbuf_add(out, "\n");
    ddp_comment_point_quality(a, out);
    if (b)
        ddp_comment_point_quality(b, out);
}

static bool compressed(const struct ddp_point *p)
{
    return strcmp(p->spec.compress, "none") != 0 || p->spec.partial > 0;
}

/* `before` is the point of the previous row, or NULL for the first row. */
static void table_comment(const struct ddp_point *before, const struct ddp_point *p,
                          struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &p->spec;
    if (before && same_table(&before->spec, s)) {
        ddp_comment_algorithm(before, p, out);
        return;
    }
    ddp_strbuf_addf(out, "# %s, %d ranks, algorithm %s, %s memory\n", ddp_coll_name(s->coll),
                    s->ranks, s->algorithm, ddp_memory_name(s->memory));
    ddp_comment_algorithm(NULL, p, out);
}

static void point(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    const struct ddp_point *p = &r->points[index], *before = NULL;
    if (compressed(p)) {
        ddp_strbuf_addf(out, "# %llu bytes, %s, partial %d: %.2f us, no bus bandwidth\n",
                        (unsigned long long)p->spec.size_bytes, p->spec.compress, p->spec.partial,
                        p->time_ns.median / 1e3);
        ddp_comment_point_quality(p, out);
        return;
    }
    int other_half = find_other_half(r, index, 0, index);
    if (other_half < 0)
        return;
    for (int i = 0; i < index; i++)
        if (find_other_half(r, i, 0, i) >= 0)
            before = &r->points[i];
    table_comment(before, p, out);
    row(&r->points[other_half], p, out);
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_point *before = NULL;
    int counted = 0;
    double sum = 0, wrong = 0;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        if (compressed(p) || find_other_half(r, i, 0, r->point_count) >= 0)
            continue;
        table_comment(before, p, out);
        row(p, NULL, out);
        before = p;
    }
    for (int i = 0; i < r->point_count; i++) {
        double busbw = ddp_point_busbw_GBps(&r->points[i], r->points[i].time_ns.median);
        if (isfinite(busbw)) {
            sum += busbw;
            counted++;
        }
        if (r->points[i].check_wrong > 0)
            wrong += (double)r->points[i].check_wrong;
    }
    ddp_strbuf_addf(out, "# Out of bounds values : %.0f %s\n", wrong,
                    wrong > 0 || r->status == DDP_STATUS_FAILED ? "FAILED" : "OK");
    ddp_strbuf_addf(out, "# Avg bus bandwidth    : %g \n#\n", counted ? sum / counted : 0.0);
    ddp_comment_quality(r, out);
    ddp_comment_cut_off(r, out);
}

const struct ddp_reporter ddp_reporter_nccl_tests = {
    .name = "nccl-tests",
    .summary = "columns of nccl-tests, for programs that parse them",
    .begin = begin,
    .point = point,
    .epoch = ddp_comment_epoch,
    .end = end,
};
