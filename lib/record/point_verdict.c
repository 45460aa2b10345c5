#include "record/point_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/unit.h"
#include "record/quality.h"

/* Times that differ by a smaller fraction count as equal. */
#define ALIKE 0.05

const char *ddp_baseline_name(enum ddp_baseline baseline)
{
    return baseline == DDP_BASELINE_F16 ? "dense fp16" : "dense f32";
}

static bool is_alike(double speedup)
{
    return speedup > 1 - ALIKE && speedup < 1 + ALIKE;
}

/* Adds the setting, for example "topk:0.01, one of 4 chunks, 16 MiB on 2 ranks: ". */
static void add_setting(const struct ddp_point_spec *s, char *out, size_t out_bytes)
{
    char size[24];
    ddp_format_size(s->size_bytes, size, sizeof size);
    ddp_text_append(out, out_bytes, "%s", s->compress);
    if (s->partial > 0)
        ddp_text_append(out, out_bytes, ", one of %d chunks", s->partial);
    if (s->op != DDP_SUM)
        ddp_text_append(out, out_bytes, ", %s", ddp_op_name(s->op));
    if (strcmp(s->algorithm, "auto") != 0)
        ddp_text_append(out, out_bytes, ", %s", s->algorithm);
    ddp_text_append(out, out_bytes, ", %s on %d ranks: ", size, s->ranks);
}

/* Adds, for example, "1.8x slower than dense f32 (12 ms against 6.6 ms by ring)". */
static void add_ratio(const struct ddp_point *p, enum ddp_baseline baseline, char *out,
                      size_t out_bytes)
{
    const char *name = ddp_baseline_name(baseline);
    const double speedup = ddp_point_speedup(p, baseline);
    const double ratio = speedup >= 1 ? speedup : 1 / speedup;
    char own[24], dense[24];
    ddp_format_ns(p->time_ns.median, own, sizeof own);
    ddp_format_ns(p->dense_ns[baseline], dense, sizeof dense);
    if (is_alike(speedup))
        ddp_text_append(out, out_bytes, "as fast as %s", name);
    else
        ddp_text_append(out, out_bytes, "%.*fx %s than %s", ratio < 10 ? 1 : 0, ratio,
                        speedup >= 1 ? "faster" : "slower", name);
    ddp_text_append(out, out_bytes, " (%s against %s by %s)", own, dense,
                    p->dense_algorithm[baseline]);
}

void ddp_verdict_add_link(double pays_below_GBps, const char *reference, char *out,
                          unsigned long out_bytes)
{
    char speed[24];
    if (!isfinite(pays_below_GBps))
        return;
    if (!(pays_below_GBps > 0)) {
        ddp_text_append(out, out_bytes,
                        ", nor on any link, because it sends at least as many bytes as %s",
                        reference);
        return;
    }
    ddp_format_GBps(pays_below_GBps, speed, sizeof speed);
    ddp_text_append(out, out_bytes, "; it would pay on links below about %s (", speed);
    const double Gbps = pays_below_GBps * 8;
    ddp_text_append(out, out_bytes, Gbps < 9.95 ? "%.2g Gbit/s) per rank" : "%.0f Gbit/s) per rank",
                    Gbps);
}

/* Adds whether the exchange is faster than dense f32 and dense fp16 here. If it is not, adds on
 * which links it would be faster. */
static void add_conclusion(const struct ddp_point *p, char *out, size_t out_bytes)
{
    const double f32 = ddp_point_speedup(p, DDP_BASELINE_F32);
    const double f16 = ddp_point_speedup(p, DDP_BASELINE_F16);
    char ring[48];
    if (f32 >= 1 + ALIKE) {
        ddp_text_append(out, out_bytes,
                        f16 <= 1 - ALIKE ? ": dense fp16 pays more here" : ": it pays here");
        return;
    }
    ddp_text_append(out, out_bytes,
                    is_alike(f32) ? ": it gains nothing here" : ": it does not pay here");
    snprintf(ring, sizeof ring, "a dense ring of %d ranks", p->spec.ranks);
    ddp_verdict_add_link(ddp_point_pays_below_GBps(p, DDP_BASELINE_F32), ring, out, out_bytes);
}

void ddp_point_verdict(const struct ddp_point *p, char *out, unsigned long out_bytes)
{
    out[0] = '\0';
    if (!ddp_point_is_reduced(&p->spec) || p->correctness_only ||
        isnan(ddp_point_speedup(p, DDP_BASELINE_F32)))
        return;
    add_setting(&p->spec, out, out_bytes);
    add_ratio(p, DDP_BASELINE_F32, out, out_bytes);
    if (isfinite(p->dense_ns[DDP_BASELINE_F16])) {
        ddp_text_append(out, out_bytes, ", ");
        add_ratio(p, DDP_BASELINE_F16, out, out_bytes);
    }
    add_conclusion(p, out, out_bytes);
    if (p->quality != 0) {
        char codes[160];
        ddp_quality_list(p->quality, ", ", codes, sizeof codes);
        ddp_text_append(out, out_bytes, "; doubtful: %s", codes);
    }
}

static bool same_method(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return strcmp(a->compress, b->compress) == 0 && a->partial == b->partial &&
           a->ranks == b->ranks && a->groups == b->groups &&
           strcmp(a->group_list, b->group_list) == 0 && a->op == b->op &&
           strcmp(a->algorithm, b->algorithm) == 0;
}

bool ddp_point_verdict_in_summary(const struct ddp_record *record, int index)
{
    const struct ddp_point *p = &record->points[index];
    char verdict[512];
    ddp_point_verdict(p, verdict, sizeof verdict);
    if (verdict[0] == '\0')
        return false;
    for (int i = 0; i < record->point_count; i++) {
        const struct ddp_point_spec *other = &record->points[i].spec;
        if (i == index || !ddp_point_is_reduced(other) || !same_method(&p->spec, other))
            continue;
        if (other->size_bytes > p->spec.size_bytes ||
            (other->size_bytes == p->spec.size_bytes && i > index))
            return false;
    }
    return true;
}
