/* The table in the format of the OSU micro-benchmarks 7.x with option -f, for programs that parse
 * it. A row has the size, the average, minimum and maximum of the ranks' mean times, and the number
 * of iterations. Comments name the algorithm that ran, and the codes of doubtful points. The title
 * names MPI only if the collective is that of the MPI library (--algorithm native).
 *
 * A point for which same_table() is false begins a new table. */
#include <math.h>
#include <string.h>

#include "record/provenance.h"
#include "report/report_parts.h"

static const char *const osu_names[DDP_COLL_COUNT] = {
    [DDP_ALLREDUCE] = "Allreduce",  [DDP_REDUCE_SCATTER] = "Reduce_scatter",
    [DDP_ALL_GATHER] = "Allgather", [DDP_BROADCAST] = "Broadcast",
    [DDP_REDUCE] = "Reduce",        [DDP_ALL_TO_ALL] = "All-to-All Personalized Exchange",
    [DDP_GATHER] = "Gather",        [DDP_SCATTER] = "Scatter",
    [DDP_SEND_RECV] = "Ring Shift", [DDP_BARRIER] = "Barrier",
};

static bool same_table(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
           a->placement == b->placement && a->memory == b->memory && a->ranks == b->ranks &&
           a->groups == b->groups && strcmp(a->group_list, b->group_list) == 0 &&
           a->partial == b->partial && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->algorithm, b->algorithm) == 0 && strcmp(a->compress, b->compress) == 0;
}

/* Returns the owner of the collective, for the title. Only `native` is a collective of the MPI
 * library, or of NCCL. */
static const char *owner(const struct ddp_point_spec *s)
{
    if (strcmp(s->algorithm, "native") != 0)
        return "ddpbench";
    return strcmp(s->backend, "nccl") == 0 ? "NCCL" : "MPI";
}

static void head(const struct ddp_point_spec *s, bool first, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%s# OSU %s %s Latency Test (columns; measured by ddpbench %s)\n",
                    first ? "" : "\n", owner(s), osu_names[s->coll], ddp_build_info()->version);
    ddp_strbuf_addf(out, "# %d ranks, ", s->ranks);
    if (s->coll != DDP_BARRIER)
        ddp_strbuf_addf(out, "%s %s, ", ddp_dtype_name(s->dtype),
                        ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : "-");
    ddp_strbuf_addf(out, "%s place, %s memory, algorithm %s",
                    s->placement == DDP_IN_PLACE ? "in" : "out of", ddp_memory_name(s->memory),
                    s->algorithm);
    if (strcmp(s->compress, "none") != 0)
        ddp_strbuf_addf(out, ", compress %s", s->compress);
    if (s->partial > 0)
        ddp_strbuf_addf(out, ", partial %d", s->partial);
    ddp_strbuf_add(
        out, "\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n");
}

static void point(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    const struct ddp_point *p = &r->points[index];
    const bool begins = index == 0 || !same_table(&r->points[index - 1].spec, &p->spec);
    if (begins)
        head(&p->spec, index == 0, out);
    ddp_comment_algorithm(begins ? NULL : &r->points[index - 1], p, out);
    ddp_strbuf_addf(out, "%-10llu%18.2f%18.2f%18.2f%12lld\n",
                    (unsigned long long)p->spec.size_bytes, p->rank_mean_ns[1] / 1e3,
                    p->rank_mean_ns[0] / 1e3, p->rank_mean_ns[2] / 1e3, (long long)p->iterations);
    ddp_comment_point_quality(p, out);
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    ddp_comment_quality(r, out);
    ddp_comment_cut_off(r, out);
}

const struct ddp_reporter ddp_reporter_osu = {
    .name = "osu",
    .summary = "columns of the OSU micro-benchmarks, for programs that parse them",
    .point = point,
    .epoch = ddp_comment_epoch,
    .end = end,
};
