#include "record/isolate_judge.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/strbuf.h"

/* The smallest slow-down that counts if ranks share cores: a factor of 4. */
#define OVERSUBSCRIBED_LEAST 3

double ddp_isolate_least(double min_effect, bool oversubscribed)
{
    return oversubscribed ? DDP_MAX(min_effect, OVERSUBSCRIBED_LEAST) : min_effect;
}

static int rank_of(const struct ddp_isolate_input *in, int end)
{
    return in->leader && end >= 0 ? in->leader[end] : end;
}

static void add_findings(const struct ddp_isolate_input *in, struct ddp_health *h)
{
    for (int i = 0; i < in->result->fault_count; i++) {
        const struct ddp_group_fault *f = &in->result->fault[i];
        h->finding[h->finding_count++] =
            (struct ddp_health_finding){.figure = DDP_HEALTH_COLLECTIVE,
                                        .place = f->to >= 0 ? DDP_PEER_LINK : DDP_PEER_UNIT,
                                        .of_host = in->by_host,
                                        .rank = rank_of(in, f->end),
                                        .to = rank_of(in, f->to),
                                        .factor = exp(f->effect),
                                        .lower = exp(f->lower),
                                        .upper = exp(f->upper),
                                        .value = exp(f->time),
                                        .usual = exp(f->usual),
                                        .resent = NAN};
    }
}

/* Appends the reason why slow groups may be left at the end of the search. */
static void add_end(const struct ddp_isolate_input *in, char *out, size_t out_bytes)
{
    if (in->out_of_time)
        ddp_text_append(out, out_bytes, "the search was not finished within --max-time");
    else if (in->result->end == DDP_GROUP_LIMIT)
        ddp_text_append(out, out_bytes, "the search was not finished within %d rounds (--rounds)",
                        in->result->rounds);
    else if (in->result->end == DDP_GROUP_TOO_MANY)
        ddp_text_append(out, out_bytes,
                        "the times of the groups differ more than a few slow places can explain");
    else
        ddp_text_append(out, out_bytes, "some groups were slow, but no place was slow every time");
}

static void add_too_few(const struct ddp_isolate_input *in, char *out, size_t out_bytes)
{
    const char *unit = in->by_host ? "host" : "rank";
    if (in->ends == 2)
        ddp_text_append(out, out_bytes,
                        "between two %ss, a slow link cannot be told from a slow %s", unit, unit);
    else
        ddp_text_append(out, out_bytes,
                        "among three %ss, one slow %s cannot be told from one fast "
                        "pair",
                        unit, unit);
    ddp_text_append(out, out_bytes, "; isolate needs at least %d %ss", DDP_GROUP_ENDS_LEAST, unit);
}

/* Appends why a slow-down by must_find might not have been found. */
static void add_scatter(const struct ddp_isolate_input *in, const struct ddp_health *h, char *out,
                        size_t out_bytes)
{
    const double factor = exp(in->result->detectable);
    ddp_text_append(out, out_bytes, "the times of the groups scatter by %.2g %%, so ",
                    100 * in->result->scatter);
    if (factor <= DDP_HEALTH_SHOWN_MOST)
        ddp_text_append(out, out_bytes,
                        "a fault would be found only if it made a collective %.2f times slower",
                        factor);
    else
        ddp_text_append(out, out_bytes, "no fault would be found");
    if (in->oversubscribed)
        ddp_text_append(out, out_bytes,
                        "; ranks share cores, so only slow-downs of %.2g times and more count",
                        1 + h->min_effect);
    ddp_text_append(out, out_bytes, "; stop other programs, or repeat with a larger --max-time");
}

static void conclude(const struct ddp_isolate_input *in, struct ddp_health *h)
{
    const struct ddp_group_result *r = in->result;
    const bool ended = r->end == DDP_GROUP_CLEAN && !in->out_of_time;
    char *out = h->reason;
    const size_t bytes = sizeof h->reason;
    out[0] = '\0';
    h->verdict = DDP_HEALTH_CANNOT_TELL;
    if (r->fault_count > 0) {
        h->verdict = DDP_HEALTH_DEGRADED;
        ddp_text_append(out, bytes, "%d finding%s in %d rounds", r->fault_count,
                        r->fault_count == 1 ? "" : "s", r->rounds);
        if (!ended) {
            ddp_text_append(out, bytes, "; there may be more: ");
            add_end(in, out, bytes);
        }
    } else if (r->end == DDP_GROUP_TOO_FEW) {
        add_too_few(in, out, bytes);
    } else if (!ended) {
        add_end(in, out, bytes);
    } else if (!(r->detectable <= log1p(h->must_find))) {
        add_scatter(in, h, out, bytes);
    } else {
        h->verdict = DDP_HEALTH_HEALTHY;
        ddp_text_append(
            out, bytes,
            "%d %ss in %d rounds: a %s or link that slows down the %s of %d %ss by a factor "
            "of %.2f would have been found",
            in->ends, in->by_host ? "host" : "rank", r->rounds, in->by_host ? "host" : "rank",
            in->collective, r->group_ends, in->by_host ? "host" : "rank", exp(r->detectable));
    }
}

void ddp_isolate_judge(const struct ddp_isolate_input *in, struct ddp_health *h)
{
    const double detectable = exp(in->result->detectable);
    h->power[DDP_HEALTH_COLLECTIVE] = (struct ddp_health_power){
        DDP_HEALTH_COLLECTIVE, in->result->scatter, detectable, detectable};
    h->rounds = in->result->rounds;
    h->group_ends = in->result->group_ends;
    snprintf(h->collective, sizeof h->collective, "%s", in->collective);
    add_findings(in, h);
    conclude(in, h);
}
