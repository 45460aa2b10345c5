#include "record/health_record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "record/field.h"
#include "record/record.h"

const char *const ddp_health_verdict_names[] = {"none", "HEALTHY", "DEGRADED", "CANNOT TELL", NULL};
const char *const ddp_health_figure_names[] = {"bandwidth", "latency",    "resent", "compute",
                                               "copy",      "collective", NULL};
const char *const ddp_peer_place_names[] = {"unit",  "sending", "receiving", "link",
                                            "value", "all",     NULL};

#define H(member) DDP_FIELD_AT(ddp_health, member)
#define F(member) DDP_FIELD_AT(ddp_health_finding, member)
#define R(member) DDP_FIELD_AT(ddp_health_rank, member)
#define P(member) DDP_FIELD_AT(ddp_health_power, member)
#define FIGURE_ENUM                                                                                \
    DDP_FIELD_ENUM, "figure", .most = DDP_HEALTH_FIGURES - 1, .choices = ddp_health_figure_names

static const struct ddp_field health_fields[] = {
    {H(verdict), DDP_FIELD_ENUM, "verdict", .least = DDP_HEALTH_NONE + 1,
     .most = DDP_HEALTH_VERDICTS - 1, .choices = ddp_health_verdict_names},
    {H(reason), DDP_FIELD_PATH, "reason"},
    {H(level), DDP_FIELD_NUMBER, "level"},
    {H(min_effect), DDP_FIELD_NUMBER, "min_effect"},
    {H(min_latency_us), DDP_FIELD_NUMBER, "min_latency_us"},
    {H(must_find), DDP_FIELD_NUMBER, "must_find"},
    {H(passes), DDP_FIELD_COUNT, "passes", .least = -1},
    {H(reference), DDP_FIELD_PATH, "reference"},
    {H(rounds), DDP_FIELD_COUNT, "rounds", .least = -1},
    {H(group_ends), DDP_FIELD_COUNT, "group_ends", .least = -1, .from = 2},
    {H(collective), DDP_FIELD_TEXT, "collective"},
};
static const struct ddp_field finding_fields[] = {
    {F(figure), FIGURE_ENUM},
    {F(place), DDP_FIELD_ENUM, "place", .most = DDP_PEER_PLACES - 1,
     .choices = ddp_peer_place_names},
    {F(of_host), DDP_FIELD_BOOL, "of_host"},
    {F(rank), DDP_FIELD_COUNT, "rank", .least = -1},
    {F(to), DDP_FIELD_COUNT, "to", .least = -1},
    {F(from_reference), DDP_FIELD_BOOL, "from_reference"},
    {F(either), DDP_FIELD_BOOL, "either"},
    {F(factor), DDP_FIELD_NUMBER, "factor"},
    {F(lower), DDP_FIELD_NUMBER, "lower"},
    {F(upper), DDP_FIELD_NUMBER, "upper"},
    {F(value), DDP_FIELD_NUMBER, "value"},
    {F(usual), DDP_FIELD_NUMBER, "usual"},
    {F(resent), DDP_FIELD_NUMBER, "resent_percent"},
};
static const struct ddp_field rank_fields[] = {
    {R(compute_ms), DDP_FIELD_NUMBER, "compute_ms"},
    {R(core_percent), DDP_FIELD_NUMBER, "core_percent"},
    {R(copy_GBps), DDP_FIELD_NUMBER, "copy_GBps"},
};
static const struct ddp_field power_fields[] = {
    {P(figure), FIGURE_ENUM},
    {P(scatter), DDP_FIELD_NUMBER, "scatter"},
    {P(host_factor), DDP_FIELD_NUMBER, "host_factor"},
    {P(link_factor), DDP_FIELD_NUMBER, "link_factor"},
};
const struct ddp_fields ddp_health_fields = {health_fields, DDP_COUNT_OF(health_fields)};
const struct ddp_fields ddp_health_finding_fields = {finding_fields, DDP_COUNT_OF(finding_fields)};
const struct ddp_fields ddp_health_rank_fields = {rank_fields, DDP_COUNT_OF(rank_fields)};
const struct ddp_fields ddp_health_power_fields = {power_fields, DDP_COUNT_OF(power_fields)};

void ddp_health_init(struct ddp_health *h)
{
    memset(h, 0, sizeof *h);
    ddp_fields_init(&ddp_health_fields, h);
    for (int f = 0; f < DDP_HEALTH_FIGURES; f++)
        h->power[f] = (struct ddp_health_power){(enum ddp_health_figure)f, NAN, NAN, NAN};
}

void ddp_health_release(struct ddp_health *h)
{
    free(h->rank);
    ddp_health_init(h);
}

int ddp_health_pack(const struct ddp_health *h, void **out, size_t *bytes, struct ddp_err *err)
{
    char *text;
    const size_t ranks = (size_t)h->ranks * sizeof *h->rank;
    *bytes = sizeof *h + ranks;
    DDP_TRY(DDP_NEW(&text, *bytes, err));
    memcpy(text, h, sizeof *h);
    if (ranks > 0)
        memcpy(text + sizeof *h, h->rank, ranks);
    *out = text;
    return 0;
}

int ddp_health_unpack(const void *message, size_t bytes, struct ddp_health *h, struct ddp_err *err)
{
    const char *text = message;
    struct ddp_health head = {.ranks = -1};
    memcpy(&head, text, DDP_MIN(bytes, sizeof head));
    if (bytes < sizeof head || head.ranks < 0 || head.finding_count < 0 ||
        head.finding_count > DDP_HEALTH_FINDINGS ||
        bytes != sizeof head + (size_t)head.ranks * sizeof *head.rank)
        return ddp_fail(err, DDP_EINTERNAL, "a rank sent a damaged health report (%zu bytes)",
                        bytes);
    head.rank = NULL;
    DDP_TRY(DDP_NEW(&head.rank, (size_t)head.ranks, err));
    memcpy(head.rank, text + sizeof head, (size_t)head.ranks * sizeof *head.rank);
    *h = head;
    return 0;
}

int ddp_health_code(const struct ddp_health *h)
{
    return h->verdict == DDP_HEALTH_DEGRADED      ? DDP_EREGRESSION
           : h->verdict == DDP_HEALTH_CANNOT_TELL ? DDP_EINCONCLUSIVE
                                                  : 0;
}

/* The functions below write the sentence of a finding. */

/* Returns the entry of the record for the host of a rank, or NULL. */
static const struct ddp_host *host_of(const struct ddp_record *r, int rank)
{
    const char *name = ddp_record_host_of(r, rank);
    for (int h = 0; h < r->host_count; h++)
        if (strcmp(r->hosts[h].name, name) == 0)
            return &r->hosts[h];
    return NULL;
}

/* Appends "host c", "rank 3 (host c)" or "the host of rank 3 (host c)". The last form is for
 * simulated hosts, because they all have the same name. */
static void add_name(const struct ddp_record *r, const struct ddp_health_finding *f, int rank,
                     char *out, size_t out_bytes)
{
    const char *host = ddp_record_host_of(r, rank);
    if (f->of_host && host[0] && r->host_count > 1)
        ddp_text_append(out, out_bytes, "host %s", host);
    else
        ddp_text_append(out, out_bytes, "%srank %d%s%s%s", f->of_host ? "the host of " : "", rank,
                        host[0] ? " (host " : "", host, host[0] ? ")" : "");
}

static void add_place(const struct ddp_record *r, const struct ddp_health_finding *f, char *out,
                      size_t out_bytes)
{
    const bool direction = f->place == DDP_PEER_VALUE && f->figure != DDP_HEALTH_LATENCY;
    if (f->place == DDP_PEER_ALL) {
        ddp_text_append(out, out_bytes, "all %s", r->host_count > 1 ? "hosts" : "ranks");
        return;
    }
    if (f->to >= 0)
        ddp_text_append(out, out_bytes, "%s", direction ? "from " : "between ");
    add_name(r, f, f->rank, out, out_bytes);
    if (f->to >= 0) {
        ddp_text_append(out, out_bytes, "%s", direction ? " to " : " and ");
        add_name(r, f, f->to, out, out_bytes);
    }
    if (f->place == DDP_PEER_SENDING)
        ddp_text_append(out, out_bytes, ", sending");
    else if (f->place == DDP_PEER_RECEIVING)
        ddp_text_append(out, out_bytes, ", receiving");
    else if (f->place == DDP_PEER_UNIT &&
             (f->figure == DDP_HEALTH_BANDWIDTH || f->figure == DDP_HEALTH_RESENT))
        ddp_text_append(out, out_bytes, ", sending and receiving");
}

/* Appends the interval of the slow-down factor and the measured and the expected value. For
 * segments that are sent again: the interval of their percentage, and the expected percentage. */
static void add_factor(const struct ddp_health_finding *f, char *out, size_t out_bytes)
{
    const char *than = f->from_reference                 ? "than in the reference"
                       : f->figure == DDP_HEALTH_COMPUTE ? "than elsewhere"
                                                         : "than its peers";
    switch (f->figure) {
    case DDP_HEALTH_BANDWIDTH:
        ddp_text_append(out, out_bytes, ": %.2f to %.2f times slower %s (%.3g GB/s, usual %.3g)",
                        f->lower, f->upper, than, f->value, f->usual);
        break;
    case DDP_HEALTH_LATENCY:
        ddp_text_append(out, out_bytes,
                        ": latency %.2f to %.2f times higher %s (%.0f us, usual %.0f)", f->lower,
                        f->upper, than, f->value, f->usual);
        break;
    case DDP_HEALTH_RESENT:
        ddp_text_append(out, out_bytes,
                        ": %.2g to %.2g %% of the TCP segments are sent again, usual %.2g %%",
                        f->lower, f->upper, f->usual);
        break;
    case DDP_HEALTH_COMPUTE:
        ddp_text_append(out, out_bytes,
                        ": the same computation is %.2f to %.2f times slower %s (%.3g ms, "
                        "usual %.3g)",
                        f->lower, f->upper, than, f->value, f->usual);
        break;
    case DDP_HEALTH_COLLECTIVE:
        ddp_text_append(out, out_bytes,
                        ": collectives are %.2f to %.2f times slower in groups with %s (%.3g ms, "
                        "usual %.3g)",
                        f->lower, f->upper,
                        f->to >= 0 ? "both than in groups with one of them" : "it", f->value,
                        f->usual);
        break;
    default:
        ddp_text_append(out, out_bytes,
                        ": memory copies are %.2f to %.2f times slower %s (%.3g GB/s, usual %.3g)",
                        f->lower, f->upper, than, f->value, f->usual);
    }
    if (isfinite(f->resent))
        ddp_text_append(out, out_bytes, "; %.2g %% of its TCP segments are sent again", f->resent);
}

/* Appends the speed of the NIC if it is below that of the fastest NIC of the job. Returns whether
 * this is the case. */
static bool add_nic(const struct ddp_record *r, const struct ddp_health_finding *f, char *out,
                    size_t out_bytes)
{
    const struct ddp_host *host = host_of(r, f->rank);
    int64_t most = 0;
    for (int h = 0; h < r->host_count; h++)
        most = DDP_MAX(most, r->hosts[h].network.nic.speed_Mbps);
    if (!host || host->network.nic.speed_Mbps <= 0 || host->network.nic.speed_Mbps >= most)
        return false;
    ddp_text_append(
        out, out_bytes, "; its NIC %s runs at %lld Mbit/s, and the fastest at %lld Mbit/s",
        host->network.nic.name, (long long)host->network.nic.speed_Mbps, (long long)most);
    return true;
}

/* Returns whether the computation is slow, too, on the rank or host of a finding. */
static bool is_slow_cpu(const struct ddp_record *r, const struct ddp_health_finding *f)
{
    const struct ddp_health *h = &r->health;
    for (int i = 0; i < h->finding_count; i++) {
        const struct ddp_health_finding *g = &h->finding[i];
        if (g->figure == DDP_HEALTH_COMPUTE && g->rank >= 0 && f->rank >= 0 &&
            f->figure != DDP_HEALTH_COMPUTE &&
            (g->rank == f->rank ||
             (f->of_host && r->host_count > 1 && host_of(r, g->rank) == host_of(r, f->rank))))
            return true;
    }
    return false;
}

static void add_step(const struct ddp_record *r, const struct ddp_health_finding *f, char *out,
                     size_t out_bytes)
{
    const struct ddp_health *h = &r->health;
    const double core = f->rank >= 0 && f->rank < h->ranks ? h->rank[f->rank].core_percent : NAN;
    const char *step = "look at its cable, its switch port and `ethtool` of its NIC";
    if (f->place == DDP_PEER_ALL)
        step = "find out what changed on all hosts since the reference";
    else if (is_slow_cpu(r, f))
        step = "its computation is slow, too, so first find out why";
    else if (f->figure == DDP_HEALTH_COMPUTE && core < 90)
        step = "look for a CPU quota (cpu.max) and for other programs there";
    else if (f->figure == DDP_HEALTH_COMPUTE)
        step = "compare the clock of its processor with the others (governor, temperature)";
    else if (f->figure == DDP_HEALTH_COPY)
        step = "compare its memory modules and NUMA placement with the others";
    else if (f->either)
        step = f->from_reference ? "measure each of the two with a third one"
                                 : "measure each of the two with a third one, or give --reference";
    else if (f->to >= 0)
        step = "look at the path between the two: cables, switch ports, routes";
    else if (f->figure == DDP_HEALTH_COLLECTIVE)
        step = "run `ddpbench health`; if it finds nothing there, look at what matters only under "
               "load: PCIe lanes, pause frames, interrupts, other programs";
    else if (f->figure == DDP_HEALTH_LATENCY)
        step = "look at its route, its interrupt settings and its power states";
    if (f->figure == DDP_HEALTH_COMPUTE && isfinite(core))
        ddp_text_append(out, out_bytes, "; the rank had %.0f %% of a core", core);
    if (f->figure <= DDP_HEALTH_RESENT && f->to < 0 && add_nic(r, f, out, out_bytes))
        step = "find out why its link is slower (cable, switch port, autonegotiation)";
    if (f->either)
        ddp_text_append(out, out_bytes,
                        "; a measurement between two %s cannot show which of them is at fault",
                        f->of_host ? "hosts" : "ranks");
    ddp_text_append(out, out_bytes, "; next: %s", step);
}

void ddp_health_sentence(const struct ddp_record *r, int i, char *out, size_t out_bytes)
{
    const struct ddp_health_finding *f = &r->health.finding[i];
    out[0] = '\0';
    add_place(r, f, out, out_bytes);
    add_factor(f, out, out_bytes);
    add_step(r, f, out, out_bytes);
}

/* The functions below compare facts about the hosts. */

static const struct {
    const char *path, *name;
} subjects[] = {
    {"cpu", "processor"},
    {"cores", "cores"},
    {"usable_cores", "usable cores"},
    {"memory_bytes", "memory in GiB"},
    {"kernel", "kernel"},
    {"governor", "clock governor"},
    {"nic.driver", "NIC driver"},
    {"nic.speed_Mbps", "NIC speed in Mbit/s"},
    {"nic.mtu", "MTU"},
    {"congestion_control", "TCP congestion control"},
    {NULL, "GPUs"},
};

/* Writes the value that a host has in a row of subjects[]. */
static void fact_of(const struct ddp_host *host, size_t subject, char *out, size_t out_bytes)
{
    struct ddp_field_value value;
    if (!subjects[subject].path) {
        snprintf(out, out_bytes, "%d%s%s", host->gpu_count, host->gpu_count > 0 ? " of " : "",
                 host->gpu_count > 0 ? host->gpus[0].name : "");
        return;
    }
    ddp_field_get(ddp_fields_find(&ddp_host_fields, subjects[subject].path), host, &value);
    if (strcmp(subjects[subject].path, "memory_bytes") == 0 && value.count >= 0)
        value.count = (value.count + ((int64_t)1 << 29)) >> 30;
    if (value.text[0])
        snprintf(out, out_bytes, "%s", value.text);
    else if (value.count >= 0)
        snprintf(out, out_bytes, "%lld", (long long)value.count);
    else
        snprintf(out, out_bytes, "unknown");
}

/* Writes the value that the majority of the hosts has (Boyer & Moore's majority vote). If there is
 * no majority, writes the value of some host. If there are two hosts, this is the first. Returns
 * whether there is a majority. */
static bool usual_fact(const struct ddp_record *r, size_t subject, char *out, size_t out_bytes)
{
    char fact[128];
    int votes = 0, equal = 0;
    for (int h = 0; h < r->host_count; h++) {
        fact_of(&r->hosts[h], subject, fact, sizeof fact);
        if (votes == 0)
            snprintf(out, out_bytes, "%s", fact);
        votes += strcmp(fact, out) == 0 ? 1 : -1;
    }
    for (int h = 0; h < r->host_count; h++) {
        fact_of(&r->hosts[h], subject, fact, sizeof fact);
        equal += strcmp(fact, out) == 0;
    }
    return 2 * equal > r->host_count;
}

bool ddp_health_difference(const struct ddp_record *r, int i, char *out, size_t out_bytes)
{
    for (size_t subject = 0; subject < DDP_COUNT_OF(subjects); subject++) {
        char usual[128] = "", fact[128];
        const bool majority = usual_fact(r, subject, usual, sizeof usual);
        const char *others = r->host_count == 2 ? "the other host"
                             : majority         ? "most hosts"
                                                : "other hosts";
        for (int h = 0; h < r->host_count; h++) {
            fact_of(&r->hosts[h], subject, fact, sizeof fact);
            if (strcmp(fact, usual) == 0 || i-- > 0)
                continue;
            snprintf(out, out_bytes, "host %s differs from %s in %s: it has %s, %s %s %s",
                     r->hosts[h].name, others, subjects[subject].name, fact, others,
                     r->host_count == 2 ? "has" : "have", usual);
            return true;
        }
    }
    return false;
}
