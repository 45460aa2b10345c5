#include "record/quality.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"

const char *const ddp_quality_names[DDP_QUALITY_COUNT + 1] = {
    [DDP_QUALITY_SLOW_PINGPONG] = "slow-pingpong",
    [DDP_QUALITY_WIDE_INTERVAL] = "wide-interval",
    [DDP_QUALITY_DRIFTING] = "drifting",
    [DDP_QUALITY_STOLEN] = "stolen",
    [DDP_QUALITY_THROTTLED] = "throttled",
    [DDP_QUALITY_OVERSUBSCRIBED] = "oversubscribed",
    [DDP_QUALITY_BUSY] = "busy",
    [DDP_QUALITY_CLOCK] = "clock",
    [DDP_QUALITY_RETRANSMITS] = "retransmits",
};

/* Definition and advice of each code. The numbers in the texts must agree with quality.h. */
static const struct {
    const char *meaning, *advice;
} texts[DDP_QUALITY_COUNT] = {
    [DDP_QUALITY_SLOW_PINGPONG] =
        {"The ping-pong before or after the point took more than 3 times as long as the "
         "shortest one so far with this backend and number of ranks. Or, without a GPU, it took "
         "more than 5 us on one host, or more than 500 us on several hosts.",
         "Repeat the point, and bind each rank to a core of its own if the ping-pong stays slow."},
    [DDP_QUALITY_WIDE_INTERVAL] =
        {"An end of the 95 % interval is more than 10 % of the median away from the median.",
         "Measure more iterations with a larger --max-time, or with -n."},
    [DDP_QUALITY_DRIFTING] =
        {"The times have a significant trend, and the median of their last third differs from "
         "that of their first third by more than 10 %.",
         "Run more warm-up iterations with -w, and repeat the point when the machine is steady."},
    [DDP_QUALITY_STOLEN] = {"The hypervisor took processor time from the ranks of a host: at least "
                            "20 ms, and more than 5 % of their time.",
                            "Use a machine with dedicated cores, or repeat the point when the "
                            "neighbours are quiet."},
    [DDP_QUALITY_THROTTLED] =
        {"The control group stopped the ranks for more than 5 % of the time of the iterations.",
         "Raise the processor limit of the container or job, or use fewer ranks."},
    [DDP_QUALITY_OVERSUBSCRIBED] =
        {"A host has more ranks than cores for them, so the ranks take turns.",
         "Use at most as many ranks as cores, or check the binding of the launcher."},
    [DDP_QUALITY_BUSY] =
        {"No ranks shared a core, but other programs interrupted the ranks at least 3 times and "
         "more than 20 times per second and rank. Or the load average of a host was above 1.5 "
         "per core when the run began.",
         "Stop other programs, or wait until they end, and repeat the run."},
    [DDP_QUALITY_CLOCK] =
        {"The processor's clock was more than 10 % lower than at an earlier point of the run, or "
         "heat or power limits reduced the clocks of a GPU.",
         "Choose the governor `performance`, and check cooling and power limits."},
    [DDP_QUALITY_RETRANSMITS] =
        {"While the point was measured, a host sent TCP segments again, a retransmission timer of "
         "TCP expired, a host dropped TCP segments that had arrived, or the network interface of "
         "a host counted errors. Connections of other programs count, too.",
         "Look for a bad cable or an overloaded switch or host, because a lost segment can delay "
         "a message by 200 ms or more."},
};

const char *ddp_quality_meaning(enum ddp_quality code)
{
    return texts[code].meaning;
}

const char *ddp_quality_advice(enum ddp_quality code)
{
    return texts[code].advice;
}

double ddp_quality_interval(const struct ddp_summary *t)
{
    return t->median > 0 ? fmax(t->ci95_hi - t->median, t->median - t->ci95_lo) / t->median : NAN;
}

/* True if the two points ran on equally many ranks over the same backend. */
static bool same_ranks(const struct ddp_point_spec *a, const struct ddp_point_spec *b)
{
    return a->ranks * DDP_MAX(a->groups, 1) == b->ranks * DDP_MAX(b->groups, 1) &&
           strcmp(a->backend, b->backend) == 0;
}

static bool slow_pingpong(const struct ddp_record *r, const struct ddp_point *p)
{
    const double slower = fmax(p->pingpong_ns[0], p->pingpong_ns[1]);
    const bool on_gpu = ddp_record_is_on_gpu(p->spec.backend);
    double fastest = fmin(p->pingpong_ns[0], p->pingpong_ns[1]); /* fmin ignores a NaN. */
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *q = &r->points[i];
        if (same_ranks(&p->spec, &q->spec))
            fastest = fmin(fastest, fmin(q->pingpong_ns[0], q->pingpong_ns[1]));
    }
    const double limit =
        r->host_count > 1 ? DDP_QUALITY_PINGPONG_NETWORK_NS : DDP_QUALITY_PINGPONG_HOST_NS;
    return slower > DDP_QUALITY_PINGPONG_FACTOR * fastest || (!on_gpu && slower > limit);
}

/* Returns the time of all iterations, in ms. */
static double measured_ms(const struct ddp_point *p)
{
    return p->time_ns.mean * (double)(p->iterations * DDP_MAX(p->block, 1)) / 1e6;
}

static int ranks_of(const struct ddp_point *p)
{
    return p->spec.ranks * DDP_MAX(p->spec.groups, 1);
}

static bool stolen(const struct ddp_record *r, const struct ddp_point *p)
{
    const double ms = p->interference.steal_ms;
    const double on_host = fmax(1, (double)ranks_of(p) / DDP_MAX(r->host_count, 1));
    return ms >= DDP_QUALITY_STOLEN_LEAST_MS && ms > DDP_QUALITY_LOST * measured_ms(p) * on_host;
}

static bool throttled(const struct ddp_point *p)
{
    const double ms = p->interference.throttled_ms;
    return ms > 0 && ms > DDP_QUALITY_LOST * measured_ms(p);
}

/* Ranks that share a core switch involuntarily too, so switches do not count if the point is
 * oversubscribed. */
static bool busy(const struct ddp_record *r, const struct ddp_point *p)
{
    const int64_t switches = p->interference.involuntary_switches;
    const double usual = DDP_QUALITY_SWITCHES_PER_S * measured_ms(p) / 1e3 * ranks_of(p);
    if (!p->oversubscribed && switches >= DDP_QUALITY_SWITCHES_LEAST && (double)switches > usual)
        return true;
    for (int i = 0; i < r->host_count; i++)
        if (r->hosts[i].load > DDP_QUALITY_LOAD_PER_CORE * r->hosts[i].cores)
            return true;
    return false;
}

static bool slow_clock(const struct ddp_record *r, const struct ddp_point *p)
{
    double highest = p->interference.clock_MHz;
    for (int i = 0; i < r->point_count; i++)
        highest = fmax(highest, r->points[i].interference.clock_MHz);
    if (p->interference.clock_MHz < (1 - DDP_QUALITY_TOLERANCE) * highest)
        return true;
    for (int i = 0; i < r->host_count && ddp_record_is_on_gpu(p->spec.backend); i++)
        for (int g = 0; g < r->hosts[i].gpu_count; g++)
            if (ddp_gpu_facts_slowed(&r->hosts[i].gpus[g]))
                return true;
    return false;
}

/* Drops of the interface do not count, because some of them are normal (base/network.h). */
static bool network_failed(const struct ddp_point *p)
{
    return p->network[DDP_NET_RETRANSMITS] > 0 || p->network[DDP_NET_TIMEOUTS] > 0 ||
           p->network[DDP_NET_TCP_DROPS] > 0 || p->network[DDP_NET_NIC_ERRORS] > 0;
}

static unsigned bit(enum ddp_quality code, bool is_set)
{
    return is_set ? 1u << code : 0;
}

unsigned ddp_quality_judge(const struct ddp_record *r, const struct ddp_point *p)
{
    return bit(DDP_QUALITY_SLOW_PINGPONG, slow_pingpong(r, p)) |
           bit(DDP_QUALITY_WIDE_INTERVAL,
               ddp_quality_interval(&p->time_ns) > DDP_QUALITY_TOLERANCE) |
           bit(DDP_QUALITY_DRIFTING,
               p->series.drifting && fabs(p->series.shift) > DDP_QUALITY_TOLERANCE) |
           bit(DDP_QUALITY_STOLEN, stolen(r, p)) | bit(DDP_QUALITY_THROTTLED, throttled(p)) |
           bit(DDP_QUALITY_OVERSUBSCRIBED, p->oversubscribed) | bit(DDP_QUALITY_BUSY, busy(r, p)) |
           bit(DDP_QUALITY_CLOCK, slow_clock(r, p)) |
           bit(DDP_QUALITY_RETRANSMITS, network_failed(p));
}

void ddp_quality_list(unsigned codes, const char *separator, char *out, size_t out_bytes)
{
    out[0] = '\0';
    for (int c = 0; c < DDP_QUALITY_COUNT; c++)
        if (codes >> c & 1)
            ddp_text_append(out, out_bytes, "%s%s", out[0] ? separator : "", ddp_quality_names[c]);
}

void ddp_quality_summary(const struct ddp_record *r, char *out, size_t out_bytes)
{
    int doubtful = 0, with[DDP_QUALITY_COUNT] = {0};
    const char *before = ": ";
    out[0] = '\0';
    for (int i = 0; i < r->point_count; i++) {
        doubtful += r->points[i].quality != 0;
        for (int c = 0; c < DDP_QUALITY_COUNT; c++)
            with[c] += (int)(r->points[i].quality >> c & 1);
    }
    if (doubtful == 0)
        return;
    snprintf(out, out_bytes, "%d of %d point%s %s doubtful", doubtful, r->point_count,
             r->point_count == 1 ? "" : "s", doubtful == 1 ? "is" : "are");
    for (int c = 0; c < DDP_QUALITY_COUNT; c++)
        if (with[c] > 0) {
            ddp_text_append(out, out_bytes, "%s%s (%d)", before, ddp_quality_names[c], with[c]);
            before = ", ";
        }
}
