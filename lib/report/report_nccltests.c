/* The table in the format of NVIDIA's nccl-tests (common.cu of 2.1x), for programs that parse it.
 *
 * Each row is one size, with the out-of-place point on the left and the in-place point on the
 * right. A row is written when both its points are known. Incomplete rows follow at the end.
 * Parsers expect numbers, so a point that was not measured has the time 0.00. Its #wrong is N/A.
 * The #wrong of a point that was not checked is N/A, too. A comment is written where a setting that
 * is not in the columns changes, such as the collective or the number of ranks (same_table).
 * Comments also name the algorithm that ran, and the codes of doubtful points. Compressed and
 * partial exchanges have no bus bandwidth and become comments.
 *
 * The list of devices has one line per rank. It is written before the first point, because the
 * ranks do not run yet when the table begins. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "report/report_parts.h"

/* Stores the name of the type in nccl-tests. This name is the first alias of the type. */
static void type_name(char *out, size_t out_bytes, enum ddp_dtype dtype)
{
    const char *first = ddp_dtypes[dtype].aliases + 1;
    snprintf(out, out_bytes, "%.*s", (int)strcspn(first, " "), first);
}

/* Returns true if the points differ at most in their placement, so that they form one row. */
static bool same_row(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
           a->memory == b->memory && a->ranks == b->ranks && a->groups == b->groups &&
           strcmp(a->group_list, b->group_list) == 0 && a->requested_bytes == b->requested_bytes &&
           a->partial == b->partial && strcmp(a->algorithm, b->algorithm) == 0 &&
           strcmp(a->backend, b->backend) == 0 && strcmp(a->compress, b->compress) == 0 &&
           strcmp(a->split, b->split) == 0 && strcmp(a->arrival, b->arrival) == 0;
}

static bool same_table(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return a->coll == b->coll && a->memory == b->memory && a->ranks == b->ranks &&
           a->groups == b->groups && strcmp(a->group_list, b->group_list) == 0 &&
           strcmp(a->algorithm, b->algorithm) == 0 && strcmp(a->split, b->split) == 0 &&
           strcmp(a->arrival, b->arrival) == 0;
}

/* Searches the points from index `from` to `to` - 1 for the other half of the row of point `index`.
 * Returns the index of this other half, or -1. */
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
    const struct ddp_build *build = &r->build;
    ddp_strbuf_addf(out, "# ddpbench %s (%s), columns of nccl-tests; times are medians\n#\n",
                    build->version, build->commit);
    ddp_comment_label(r, out);
}

/* Reads domain, bus and device of a PCI bus id such as "0000:1b:00.0" or "00000000:1B:00.0". */
static bool read_bus(const char *text, unsigned bus[3])
{
    return sscanf(text, "%x:%x:%x", &bus[0], &bus[1], &bus[2]) == 3;
}

/* Writes the name of the GPU with this bus id, or "" if the host has no such GPU. */
static void gpu_name(const struct ddp_host *h, const char *text, char *out, size_t out_bytes)
{
    unsigned bus[3], other[3];
    out[0] = '\0';
    for (int i = 0; h && i < h->gpu_count && read_bus(text, bus); i++)
        if (read_bus(h->gpus[i].bus, other) && memcmp(bus, other, sizeof bus) == 0)
            snprintf(out, out_bytes, "%s", h->gpus[i].name);
}

/* Writes the line of a rank. nccl-tests gives each rank a device with a bus id. Here, a rank that
 * computes on a processor has device 0 and bus 0000:00:00. Process ids are not recorded, so Pid is
 * 0. */
static void device_line(const struct ddp_record *r, int rank, const struct ddp_rank_device *d,
                        struct ddp_strbuf *out)
{
    const struct ddp_host *h = NULL;
    unsigned bus[3] = {0, 0, 0};
    char name[96] = "";
    for (int i = 0; i < r->host_count && !h; i++)
        if (strcmp(r->hosts[i].name, d->host) == 0)
            h = &r->hosts[i];
    if (d->device < 0)
        snprintf(name, sizeof name, "%s", h ? h->cpu : "");
    else if (read_bus(d->bus, bus))
        gpu_name(h, d->bus, name, sizeof name);
    ddp_strbuf_addf(out, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s\n",
                    rank, 0, 0, d->host, DDP_MAX(d->device, 0), bus[0], bus[1], bus[2],
                    name[0] ? name : "unknown");
}

/* Writes the devices. Documents of older versions do not tell where each rank ran. If such a
 * document has a single host, all ranks ran on this host, and each rank has a line. Otherwise each
 * host has a line. */
static void devices(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_rank_device unknown = {.device = -1};
    ddp_strbuf_add(out, "# Using devices\n");
    for (int rank = 0; rank < r->rank_count; rank++)
        device_line(r, rank, &r->ranks[rank], out);
    for (int i = 0; r->rank_count == 0 && i < r->host_count; i++) {
        snprintf(unknown.host, sizeof unknown.host, "%s", r->hosts[i].name);
        for (int rank = 0; r->host_count == 1 && rank < r->hosts[i].ranks; rank++)
            device_line(r, rank, &unknown, out);
        if (r->host_count > 1)
            ddp_strbuf_addf(out, "#  %d ranks on %s: %s\n", r->hosts[i].ranks, r->hosts[i].name,
                            r->hosts[i].cpu);
    }
}

static void head(const struct ddp_record *r, struct ddp_strbuf *out)
{
    devices(r, out);
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
    double us = p ? p->time_ns.median / 1e3 : 0;
    double algbw = p ? ddp_point_algbw_GBps(p, p->time_ns.median) : NAN;
    double busbw = p ? ddp_point_busbw_GBps(p, p->time_ns.median) : NAN;
    char wrong[24] = "N/A";
    if (p && p->check_elements >= 0)
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
    char type[16];
    type_name(type, sizeof type, s->dtype);
    ddp_strbuf_addf(out, "%12llu  %12llu  %8s  %6s  %6d", (unsigned long long)s->size_bytes,
                    (unsigned long long)s->count, type,
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

/* Writes the settings that the rows of a table have in common. */
static void table_name(const struct ddp_point_spec *s, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s, %d ranks, algorithm %s, %s memory", ddp_coll_name(s->coll),
             s->ranks, s->algorithm, ddp_memory_name(s->memory));
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
    char table[160];
    table_name(s, table, sizeof table);
    ddp_strbuf_addf(out, "# %s\n", table);
    ddp_comment_algorithm(NULL, p, out);
}

static void reduced(const struct ddp_point *p, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "# %llu bytes, ", (unsigned long long)p->spec.size_bytes);
    if (strcmp(p->spec.compress, "none") != 0)
        ddp_strbuf_addf(out, "%s%s", p->spec.compress, p->spec.partial > 0 ? ", " : "");
    if (p->spec.partial > 0)
        ddp_strbuf_addf(out, "partial %d", p->spec.partial);
    ddp_strbuf_addf(out, ": %.2f us, no bus bandwidth\n", p->time_ns.median / 1e3);
    ddp_comment_point_quality(p, out);
}

static void point(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    const struct ddp_point *p = &r->points[index], *before = NULL;
    if (index == 0)
        head(r, out);
    if (compressed(p)) {
        reduced(p, out);
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

static void epoch(const struct ddp_record *r, int run, int index, struct ddp_strbuf *out)
{
    if (run == 0 && index == 0)
        head(r, out);
    ddp_comment_epoch(r, run, index, out);
}

/* Returns the mean bus bandwidth of the points in the table of `spec`, or of all points if `spec`
 * is NULL. Returns NaN if no point has a bus bandwidth. */
static double mean_busbw(const struct ddp_record *r, const struct ddp_point_spec *spec)
{
    double sum = 0;
    int counted = 0;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        const double busbw = ddp_point_busbw_GBps(p, p->time_ns.median);
        if (!isfinite(busbw) || (spec && !same_table(&p->spec, spec)))
            continue;
        sum += busbw;
        counted++;
    }
    return counted ? sum / counted : NAN;
}

/* Writes the mean bus bandwidth of each table if there are several tables. */
static void table_means(const struct ddp_record *r, struct ddp_strbuf *out)
{
    bool several = false;
    for (int i = 1; i < r->point_count; i++)
        several |= !same_table(&r->points[i].spec, &r->points[0].spec);
    for (int i = 0; i < r->point_count && several; i++) {
        const struct ddp_point_spec *s = &r->points[i].spec;
        char table[160];
        int first = 0;
        while (!same_table(&r->points[first].spec, s))
            first++;
        const double mean = first == i ? mean_busbw(r, s) : NAN;
        if (isnan(mean))
            continue;
        table_name(s, table, sizeof table);
        ddp_strbuf_addf(out, "# mean bus bandwidth of %s: %g\n", table, mean);
    }
}

/* Writes the rows that have only one half, because the other half was not measured. */
static void incomplete_rows(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_point *before = NULL;
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        if (compressed(p) || find_other_half(r, i, 0, r->point_count) >= 0)
            continue;
        if (!before)
            ddp_strbuf_add(out, "# 0.00 with #wrong N/A: this placement was not measured\n");
        table_comment(before, p, out);
        row(p, NULL, out);
        before = p;
    }
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    double wrong = 0;
    if (r->point_count == 0 && (r->train_count == 0 || r->train[0].epoch_count == 0))
        head(r, out);
    incomplete_rows(r, out);
    for (int i = 0; i < r->point_count; i++)
        wrong += (double)DDP_MAX(r->points[i].check_wrong, (int64_t)0);
    table_means(r, out);
    const double mean = mean_busbw(r, NULL);
    ddp_strbuf_addf(out, "# Out of bounds values : %.0f %s\n", wrong,
                    wrong > 0 || r->status == DDP_STATUS_FAILED ? "FAILED" : "OK");
    ddp_strbuf_addf(out, "# Avg bus bandwidth    : %g \n#\n", isnan(mean) ? 0.0 : mean);
    ddp_comment_quality(r, out);
    ddp_comment_cut_off(r, out);
}

const struct ddp_reporter ddp_reporter_nccl_tests = {
    .name = "nccl-tests",
    .summary = "columns of nccl-tests, for programs that parse them",
    .shows = DDP_RECORD_POINTS,
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
