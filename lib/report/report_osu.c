/* The table in the format of the OSU micro-benchmarks 7.x with option -f, for programs that parse
 * it. A row has the size, the average, minimum and maximum of the ranks' mean times, and the number
 * of iterations. If results were verified, a row also has the column of option -c. The row of a
 * barrier has no size, as in osu_barrier. Comments name the algorithm that ran, and the codes of
 * doubtful points. The title names MPI or NCCL only if the collective is that of the library
 * (--algorithm native).
 *
 * A point begins a new table if its settings differ from those of the previous row (same_table).
 * The OSU benchmarks measure out of place and print one table, in which parsers look rows up by
 * their size. A point in place therefore becomes a comment if the same point was also measured out
 * of place. Otherwise the point gets a row. This row is written at the end, because only then is it
 * known that no point out of place exists. */
#include <math.h>
#include <string.h>

#include "report/report_parts.h"

static const char *const osu_names[DDP_COLL_COUNT] = {
    [DDP_ALLREDUCE] = "Allreduce",
    [DDP_REDUCE_SCATTER] = "Reduce_scatter",
    [DDP_ALL_GATHER] = "Allgather",
    [DDP_BROADCAST] = "Broadcast",
    [DDP_REDUCE] = "Reduce",
    [DDP_ALL_TO_ALL] = "All-to-All Personalized Exchange",
    [DDP_ALL_TO_ALL_V] = "All-to-Allv Personalized Exchange",
    [DDP_ALL_GATHER_V] = "Allgatherv",
    [DDP_REDUCE_SCATTER_V] = "Reduce_scatter of Uneven Parts",
    [DDP_GATHER] = "Gather",
    [DDP_SCATTER] = "Scatter",
    [DDP_SEND_RECV] = "Ring Shift",
    [DDP_BARRIER] = "Barrier",
};

static bool same_table(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
           a->placement == b->placement && a->memory == b->memory && a->ranks == b->ranks &&
           a->groups == b->groups && strcmp(a->group_list, b->group_list) == 0 &&
           a->partial == b->partial && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->algorithm, b->algorithm) == 0 && strcmp(a->compress, b->compress) == 0 &&
           strcmp(a->split, b->split) == 0 && strcmp(a->arrival, b->arrival) == 0;
}

/* Returns the owner of the collective, for the title. Only `native` is a collective of the MPI
 * library or of NCCL. */
static const char *owner(const struct ddp_point_spec *s)
{
    if (strcmp(s->algorithm, "native") != 0)
        return "ddpbench";
    return strcmp(s->backend, "nccl") == 0 ? "NCCL" : "MPI";
}

/* Returns whether the results of the point were verified. */
static bool is_checked(const struct ddp_point *p)
{
    return p->check_elements >= 0;
}

static void head(const struct ddp_build *build, const struct ddp_point *p, bool first,
                 struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &p->spec;
    const bool barrier = s->coll == DDP_BARRIER;
    ddp_strbuf_addf(out, "%s# OSU %s %s Latency Test (columns; measured by ddpbench %s)\n",
                    first ? "" : "\n", owner(s), osu_names[s->coll], build->version);
    ddp_strbuf_addf(out, "# %d ranks, ", s->ranks);
    if (ddp_coll_reduces(s->coll))
        ddp_strbuf_addf(out, "%s %s, ", ddp_dtype_name(s->dtype), ddp_op_name(s->op));
    else if (!barrier)
        ddp_strbuf_addf(out, "%s, ", ddp_dtype_name(s->dtype));
    if (!barrier)
        ddp_strbuf_addf(out, "%s place, %s memory, ",
                        s->placement == DDP_IN_PLACE ? "in" : "out of", ddp_memory_name(s->memory));
    ddp_strbuf_addf(out, "algorithm %s", s->algorithm);
    if (strcmp(s->compress, "none") != 0)
        ddp_strbuf_addf(out, ", compress %s", s->compress);
    if (s->partial > 0)
        ddp_strbuf_addf(out, ", partial %d", s->partial);
    ddp_strbuf_addf(out, "\n%s   Min Latency(us)   Max Latency(us)  Iterations%s\n",
                    barrier ? "# Avg Latency(us)" : "# Size       Avg Latency(us)",
                    is_checked(p) ? "        Validation" : "");
}

static void row(const struct ddp_build *build, const struct ddp_point *before,
                const struct ddp_point *p, struct ddp_strbuf *out)
{
    const bool begins = !before || !same_table(&before->spec, &p->spec);
    if (begins)
        head(build, p, !before, out);
    ddp_comment_algorithm(begins ? NULL : before, p, out);
    if (p->spec.coll == DDP_BARRIER)
        ddp_strbuf_addf(out, "%17.2f", p->rank_mean_ns[1] / 1e3);
    else
        ddp_strbuf_addf(out, "%-10llu%18.2f", (unsigned long long)p->spec.size_bytes,
                        p->rank_mean_ns[1] / 1e3);
    ddp_strbuf_addf(out, "%18.2f%18.2f%12lld", p->rank_mean_ns[0] / 1e3, p->rank_mean_ns[2] / 1e3,
                    (long long)p->iterations);
    if (is_checked(p))
        ddp_strbuf_addf(out, "%18s", p->check_wrong > 0 ? "Fail" : "Pass");
    ddp_strbuf_add(out, "\n");
    ddp_comment_point_quality(p, out);
}

/* Returns whether the point always has a row. The function point() writes this row. */
static bool has_row(const struct ddp_point *p)
{
    return p->spec.placement != DDP_IN_PLACE || ddp_point_is_reduced(&p->spec);
}

/* Searches the first `to` points for a point that differs from point `index` only in its placement.
 * Returns the point that was found, or NULL. */
static const struct ddp_point *other_placement(const struct ddp_record *r, int index, int to)
{
    const struct ddp_point *p = &r->points[index];
    struct ddp_point_spec wanted = p->spec;
    wanted.placement = p->spec.placement == DDP_IN_PLACE ? DDP_OUT_OF_PLACE : DDP_IN_PLACE;
    for (int i = 0; i < to; i++)
        if (r->points[i].launch == p->launch && same_table(&r->points[i].spec, &wanted) &&
            r->points[i].spec.requested_bytes == wanted.requested_bytes)
            return &r->points[i];
    return NULL;
}

static void in_place_comment(const struct ddp_point *p, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out,
                    "# in place, %llu bytes: average %.2f us, minimum %.2f us, maximum %.2f us\n",
                    (unsigned long long)p->spec.size_bytes, p->rank_mean_ns[1] / 1e3,
                    p->rank_mean_ns[0] / 1e3, p->rank_mean_ns[2] / 1e3);
    ddp_comment_point_quality(p, out);
}

static void point(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    const struct ddp_point *p = &r->points[index], *other = other_placement(r, index, index);
    int before = index - 1;
    if (!has_row(p)) {
        if (other)
            in_place_comment(p, out);
        return;
    }
    while (before >= 0 && !has_row(&r->points[before]))
        before--;
    row(&r->build, before >= 0 ? &r->points[before] : NULL, p, out);
    if (other)
        in_place_comment(other, out);
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_point *before = NULL;
    for (int i = 0; i < r->point_count; i++)
        before = has_row(&r->points[i]) ? &r->points[i] : before;
    for (int i = 0; i < r->point_count; i++) {
        if (has_row(&r->points[i]) || other_placement(r, i, r->point_count))
            continue;
        row(&r->build, before, &r->points[i], out);
        before = &r->points[i];
    }
    ddp_comment_quality(r, out);
    ddp_comment_cut_off(r, out);
}

const struct ddp_reporter ddp_reporter_osu = {
    .name = "osu",
    .summary = "columns of the OSU micro-benchmarks, for programs that parse them",
    .shows = DDP_RECORD_POINTS,
    .begin = ddp_comment_label,
    .point = point,
    .epoch = ddp_comment_epoch,
    .end = end,
};
