/* Rows and verdicts of compressed and partial exchanges. */
#include "report/table_compressed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "report/table_cells.h"

static const char *const baseline_name[DDP_BASELINE_COUNT] = {"dense f32", "fp16"};

void ddp_table_compressed_head(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    ddp_strbuf_add(
        out,
        "# time: from gradient to sum, of the slowest rank; encode, exchange, decode: its phases, "
        "each of the slowest rank. sent: bytes that a rank sent.\n"
        "# density: share of the values that a rank sent. eff: bandwidth that a dense exchange "
        "would need for this time (`ddpbench explain effective`).\n"
        "# x f32, x f16: speed relative to the dense exchange in the same run; below 1: slower.\n"
        "#       size        count compress         part fdbk algorithm ranks memory         time  "
        " "
        "ci95    encode  exchange    decode         sent density      eff  x f32  x f16 ovrflw  "
        "wrong pingpong notes\n"
        "#        (B)   (elements)                                                         (us)   "
        "+-%      (us)      (us)      (us)          (B)           (GB/s)                       "
        "         (ns)\n");
    ddp_table_plain(style, out);
}

void ddp_table_compressed_row(const struct ddp_point *p, const struct ddp_report_style *style,
                              struct ddp_strbuf *out)
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
    ddp_table_bold(style, out);
    ddp_table_cell(out, 8, ddp_point_effective_GBps(p, p->time_ns.median));
    ddp_table_plain(style, out);
    for (int i = 0; i < DDP_BASELINE_COUNT; i++)
        ddp_table_cell(out, 6, ddp_point_speedup(p, (enum ddp_baseline)i));
    ddp_table_count(out, 6, p->overflow_count);
    ddp_table_tail(p, style, out);
}

/* Times that differ by a smaller fraction count as equal. */
#define ALIKE 0.05

static bool is_alike(double speedup)
{
    return speedup > 1 - ALIKE && speedup < 1 + ALIKE;
}

/* Adds, for example, "1.8x slower than dense f32 (12 ms against 6.6 ms by ring)". */
static void add_ratio(const struct ddp_point *p, enum ddp_baseline baseline, struct ddp_strbuf *out)
{
    const double speedup = ddp_point_speedup(p, baseline);
    const double ratio = speedup >= 1 ? speedup : 1 / speedup;
    char own[24], dense[24];
    ddp_format_ns(p->time_ns.median, own, sizeof own);
    ddp_format_ns(p->dense_ns[baseline], dense, sizeof dense);
    if (is_alike(speedup))
        ddp_strbuf_addf(out, "as fast as %s", baseline_name[baseline]);
    else
        ddp_strbuf_addf(out, "%.*fx %s than %s", ratio < 10 ? 1 : 0, ratio,
                        speedup >= 1 ? "faster" : "slower", baseline_name[baseline]);
    ddp_strbuf_addf(out, " (%s against %s by %s)", own, dense, p->dense_algorithm[baseline]);
}

/* Adds, for example, "3.2 GB/s" or "12 MB/s". */
static void add_speed(double GBps, struct ddp_strbuf *out)
{
    const double value = GBps >= 1 ? GBps : GBps * 1e3;
    ddp_strbuf_addf(out, "%.*f %s", value < 10 ? 1 : 0, value, GBps >= 1 ? "GB/s" : "MB/s");
}

/* Adds whether the method is faster than dense f32 here and, if not, on which links it would be. */
static void add_verdict(const struct ddp_point *p, struct ddp_strbuf *out)
{
    const double f32 = ddp_point_speedup(p, DDP_BASELINE_F32);
    const double f16 = ddp_point_speedup(p, DDP_BASELINE_F16);
    const double below = ddp_point_pays_below_GBps(p, DDP_BASELINE_F32);
    if (f32 >= 1 + ALIKE) {
        ddp_strbuf_add(out, f16 <= 1 - ALIKE ? ": fp16 pays more here" : ": it pays here");
        return;
    }
    ddp_strbuf_add(out, is_alike(f32) ? ": it gains nothing here" : ": it does not pay here");
    if (below == 0) {
        ddp_strbuf_addf(out,
                        ", nor on any link, because it sends at least as many bytes as a dense "
                        "ring of %d ranks",
                        p->spec.ranks);
    } else if (isfinite(below)) {
        ddp_strbuf_add(out, "; it would pay on links below about ");
        add_speed(below, out);
        ddp_strbuf_add(out, " per rank");
    }
}

static void add_density(struct ddp_strbuf *out, const char *what, double density)
{
    if (isfinite(density))
        ddp_strbuf_addf(out, ", %.2g %s", density, what);
}

/* Adds the break-even densities that are known. */
static void add_break_even(const struct ddp_point *p, struct ddp_strbuf *out)
{
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        const struct ddp_break_even *even = &p->break_even[i];
        if (!isfinite(even->predicted) && !isfinite(even->estimated))
            continue;
        ddp_strbuf_addf(out, "#   break-even density against %s", baseline_name[i]);
        ddp_strbuf_add(out, ": ");
        ddp_strbuf_addf(out, "%.2g from the bytes alone", even->predicted);
        add_density(out, "estimated from the times above", even->estimated);
        add_density(out, "measured", even->measured);
        ddp_strbuf_add(out, "\n");
    }
}

static bool same_method(const struct ddp_point *a, const struct ddp_point *b)
{
    return strcmp(a->spec.compress, b->spec.compress) == 0 && a->spec.partial == b->spec.partial &&
           a->spec.ranks == b->spec.ranks && a->spec.groups == b->spec.groups &&
           a->spec.op == b->spec.op && strcmp(a->spec.algorithm, b->spec.algorithm) == 0;
}

/* True if the point has the largest size of its method. Among several such points, the last one
 * counts. */
static bool stands_for_method(const struct ddp_record *r, int index)
{
    const struct ddp_point *p = &r->points[index];
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *other = &r->points[i];
        if (i == index || !ddp_point_is_reduced(&other->spec) || !same_method(p, other))
            continue;
        if (other->spec.size_bytes > p->spec.size_bytes ||
            (other->spec.size_bytes == p->spec.size_bytes && i > index))
            return false;
    }
    return true;
}

void ddp_table_compressed_verdicts(const struct ddp_record *r, struct ddp_strbuf *out)
{
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        char size[24];
        if (!ddp_point_is_reduced(&p->spec) || isnan(p->dense_ns[DDP_BASELINE_F32]) ||
            !stands_for_method(r, i))
            continue;
        ddp_format_size(p->spec.size_bytes, size, sizeof size);
        ddp_strbuf_addf(out, "# %s", p->spec.compress);
        if (p->spec.partial > 0)
            ddp_strbuf_addf(out, ", one of %d chunks", p->spec.partial);
        if (p->spec.op != DDP_SUM)
            ddp_strbuf_addf(out, ", %s", ddp_op_name(p->spec.op));
        if (strcmp(p->spec.algorithm, "auto") != 0)
            ddp_strbuf_addf(out, ", %s", p->spec.algorithm);
        ddp_strbuf_addf(out, ", %s on %d ranks: ", size, p->spec.ranks);
        add_ratio(p, DDP_BASELINE_F32, out);
        if (isfinite(p->dense_ns[DDP_BASELINE_F16])) {
            ddp_strbuf_add(out, ", ");
            add_ratio(p, DDP_BASELINE_F16, out);
        }
        add_verdict(p, out);
        ddp_strbuf_add(out, "\n");
        add_break_even(p, out);
    }
}
