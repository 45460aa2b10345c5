#include "record/pays_record.h"

#include <stdlib.h>

#include "base/mem.h"
#include "record/field.h"

#define P(member) DDP_FIELD_AT(ddp_pays_record, member)
#define L(member) DDP_FIELD_AT(ddp_pays_link, member)
#define M(member) DDP_FIELD_AT(ddp_pays_method, member)

static const struct ddp_field pays_fields[] = {
    {P(parameters), DDP_FIELD_COUNT, "parameters", .least = 1},
    {P(step_ns), DDP_FIELD_TIME, "step_us"},
    {P(ranks), DDP_FIELD_COUNT, "ranks", .least = 2},
    {P(bucket_bytes), DDP_FIELD_COUNT, "bucket_bytes", .least = 1},
    {P(overlap), DDP_FIELD_BOOL, "overlap"},
    {.kind = DDP_FIELD_LIST, .path = "links"},
};
const struct ddp_fields ddp_pays_fields = {pays_fields, DDP_COUNT_OF(pays_fields)};

static const struct ddp_field link_fields[] = {
    {L(GBps), DDP_FIELD_NUMBER, "GBps"},         {L(latency_ns), DDP_FIELD_TIME, "latency_us"},
    {L(first), DDP_FIELD_TEXT, "first"},         {L(answer), DDP_FIELD_TEXT, "answer"},
    {.kind = DDP_FIELD_LIST, .path = "methods"},
};
const struct ddp_fields ddp_pays_link_fields = {link_fields, DDP_COUNT_OF(link_fields)};

static const struct ddp_field method_fields[] = {
    {M(method), DDP_FIELD_TEXT, "method"},
    {M(pays), DDP_FIELD_BOOL, "pays"},
    {M(step_ns), DDP_FIELD_TIME, "step_us.median"},
    {M(step_ci95_ns), DDP_FIELD_TIME_RANGE, "step_us.ci95"},
    {M(arithmetic_ns), DDP_FIELD_TIME, "arithmetic_us"},
    {M(link_ns), DDP_FIELD_TIME, "link_us"},
    {M(sent_bytes), DDP_FIELD_NUMBER, "sent_bytes"},
    {M(speedup), DDP_FIELD_NUMBER, "speedup.median"},
    {M(speedup_ci95), DDP_FIELD_RANGE, "speedup.ci95"},
    {M(break_even_GBps), DDP_FIELD_NUMBER, "break_even_GBps"},
    {M(pays_below_GBps), DDP_FIELD_NUMBER, "pays_below_GBps"},
    {M(break_even_density), DDP_FIELD_NUMBER, "break_even_density"},
    {M(accuracy_change), DDP_FIELD_NUMBER, "accuracy_change"},
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
