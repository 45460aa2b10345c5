#include "record/pays_record.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "record/field.h"

#define P(member) DDP_FIELD_AT(ddp_pays_record, member)
#define L(member) DDP_FIELD_AT(ddp_pays_link, member)
#define M(member) DDP_FIELD_AT(ddp_pays_method, member)

static const struct ddp_field pays_fields[] = {
    {P(parameters), DDP_FIELD_COUNT, "parameters", "parameters", .least = 1},
    {P(step_ns), DDP_FIELD_TIME, "step_us", "step_compute_us"},
    {P(ranks), DDP_FIELD_COUNT, "ranks", "ranks", .least = 2},
    {P(bucket_bytes), DDP_FIELD_COUNT, "bucket_bytes", "bucket_bytes", .least = 1},
    {P(overlap), DDP_FIELD_BOOL, "overlap", "overlap"},
    {.kind = DDP_FIELD_LIST, .path = "links"},
};
const struct ddp_fields ddp_pays_fields = {pays_fields, DDP_COUNT_OF(pays_fields)};

static const struct ddp_field link_fields[] = {
    {L(GBps), DDP_FIELD_NUMBER, "GBps", "link_GBps"},
    {L(latency_ns), DDP_FIELD_TIME, "latency_us", "link_latency_us"},
    {L(first), DDP_FIELD_TEXT, "first", "first"},
    {L(answer), DDP_FIELD_TEXT, "answer", "answer"},
    {.kind = DDP_FIELD_LIST, .path = "methods"},
};
const struct ddp_fields ddp_pays_link_fields = {link_fields, DDP_COUNT_OF(link_fields)};

/* Writes whether the method pays, in the words that CSV has for a strategy, too. */
static void pays_of(const void *method, char *out)
{
    const bool pays = ((const struct ddp_pays_method *)method)->pays;
    snprintf(out, DDP_FIELD_TEXT_BYTES, "%s", pays ? "yes" : "no");
}

static const struct ddp_field method_fields[] = {
    {M(method), DDP_FIELD_TEXT, "method", "compress"},
    {M(pays), DDP_FIELD_BOOL, "pays"},
    {.kind = DDP_FIELD_TEXT, .column = "pays", .text = pays_of},
    {M(sends_less), DDP_FIELD_BOOL, "sends_less", "sends_less"},
    {M(step_ns), DDP_FIELD_TIME, "step_us.median", "step_median_us"},
    {M(step_ci95_ns), DDP_FIELD_TIME_RANGE, "step_us.ci95", "step_ci95_lo_us,step_ci95_hi_us"},
    {M(arithmetic_ns), DDP_FIELD_TIME, "arithmetic_us", "arithmetic_us"},
    {M(link_ns), DDP_FIELD_TIME, "link_us", "link_us"},
    {M(sent_bytes), DDP_FIELD_NUMBER, "sent_bytes", "sent_bytes"},
    {M(speedup), DDP_FIELD_NUMBER, "speedup.median", "speedup"},
    {M(speedup_ci95), DDP_FIELD_RANGE, "speedup.ci95", "speedup_ci95_lo,speedup_ci95_hi"},
    {M(break_even_GBps), DDP_FIELD_NUMBER, "break_even_GBps", "break_even_GBps"},
    {M(pays_below_GBps), DDP_FIELD_NUMBER, "pays_below_GBps", "pays_below_GBps"},
    {M(break_even_density), DDP_FIELD_NUMBER, "break_even_density", "break_even_density"},
    {M(accuracy_change), DDP_FIELD_NUMBER, "accuracy_change", "accuracy_change"},
};
const struct ddp_fields ddp_pays_method_fields = {method_fields, DDP_COUNT_OF(method_fields)};

int ddp_pays_init(struct ddp_pays_record *p, int links, int methods, struct ddp_err *err)
{
    *p = (struct ddp_pays_record){.link_count = links, .method_count = methods};
    ddp_fields_init(&ddp_pays_fields, p);
    int rc = DDP_NEW(&p->links, (size_t)links, err);
    if (rc == 0)
        rc = DDP_NEW(&p->methods, (size_t)links * (size_t)methods, err);
    if (rc != 0) {
        ddp_pays_release(p);
        return rc;
    }
    for (int l = 0; l < links; l++)
        ddp_fields_init(&ddp_pays_link_fields, &p->links[l]);
    for (int m = 0; m < links * methods; m++)
        ddp_fields_init(&ddp_pays_method_fields, &p->methods[m]);
    return 0;
}

void ddp_pays_release(struct ddp_pays_record *p)
{
    free(p->links);
    free(p->methods);
    *p = (struct ddp_pays_record){.link_count = 0};
}

struct ddp_pays_method *ddp_pays_at(const struct ddp_pays_record *p, int link, int method)
{
    return &p->methods[link * p->method_count + method];
}
