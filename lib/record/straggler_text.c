#include "record/straggler_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/unit.h"

static void add_sentence(const struct ddp_straggler *s, const char *iterations, char *out,
                         size_t bytes)
{
    static const char *const verbs[DDP_STRAGGLER_CAUSES] = {[DDP_STRAGGLER_COMPUTE] = "came",
                                                            [DDP_STRAGGLER_LINK] = "left",
                                                            [DDP_STRAGGLER_CORE] = "was"};
    char lo[24], hi[24];
    if (s->rank < 0)
        return;
    ddp_format_ns(s->late_ns[0], lo, sizeof lo);
    ddp_format_ns(s->late_ns[1], hi, sizeof hi);
    ddp_text_append(out, bytes, ": rank %d%s%s %s last in %.0f %% of the %s", (int)s->rank,
                    s->host[0] ? " on host " : "", s->host, verbs[s->cause], s->share * 100,
                    iterations);
    if (isfinite(s->late_ns[0]))
        ddp_text_append(out, bytes, ", by %s to %s (95 %% interval of the median),", lo, hi);
    ddp_text_append(out, bytes, " and ");
    ddp_text_append(out, bytes, "cost %.0f %% of their time; cause: %s", s->cost * 100,
                    ddp_straggler_cause_names[s->cause]);
}

/* Writes the sentence of a training run. If the run has no straggler, the sentence is about the
 * last epoch that has one. Returns false if no epoch has a straggler, either. */
static bool train_line(const struct ddp_train_run *run, char *out, size_t bytes)
{
    const struct ddp_straggler *found = &run->straggler;
    snprintf(out, bytes, "straggler, %s", run->sync);
    for (int e = run->epoch_count - 1; e >= 0 && found->rank < 0; e--) {
        found = &run->epochs[e].straggler;
        if (found->rank >= 0)
            ddp_text_append(out, bytes, ", epoch %d", run->epochs[e].epoch);
    }
    if (found->rank >= 0 && found->bucket >= 0)
        ddp_text_append(out, bytes, ", with the longest delay at bucket %d", (int)found->bucket);
    add_sentence(found, "steps", out, bytes);
    return found->rank >= 0;
}

static void point_line(const struct ddp_point *p, char *out, size_t bytes)
{
    char size[24];
    ddp_format_size(p->spec.size_bytes, size, sizeof size);
    snprintf(out, bytes, "straggler, %s", ddp_coll_name(p->spec.coll));
    if (p->spec.coll != DDP_BARRIER)
        ddp_text_append(out, bytes, " %s %s place", size,
                        p->spec.placement == DDP_IN_PLACE ? "in" : "out of");
    if (p->algorithm_used[0])
        ddp_text_append(out, bytes, ", %s", p->algorithm_used);
    add_sentence(&p->straggler, "iterations", out, bytes);
}

bool ddp_straggler_line(const struct ddp_record *r, int *next, char *out, size_t bytes)
{
    int named = 0, more = 0;
    for (int i = 0; i < r->point_count; i++) {
        if (r->points[i].straggler.rank < 0)
            continue;
        if (i >= *next && named < DDP_STRAGGLER_LINES) {
            *next = i + 1;
            point_line(&r->points[i], out, bytes);
            return true;
        }
        more += ++named > DDP_STRAGGLER_LINES;
    }
    if (more > 0 && *next <= r->point_count) {
        *next = r->point_count + 1;
        snprintf(out, bytes, "straggler: %d more point%s a rank", more,
                 more == 1 ? " names" : "s name");
        return true;
    }
    for (int t = *next > r->point_count + 1 ? *next - r->point_count - 2 : 0; t < r->train_count;
         t++) {
        *next = r->point_count + 2 + t + 1;
        if (train_line(&r->train[t], out, bytes))
            return true;
    }
    return false;
}

/* True if two points agree in all that must be equal to compare their algorithms. */
static bool comparable(const struct ddp_point *a, const struct ddp_point *b)
{
    const struct ddp_point_spec *p = &a->spec, *q = &b->spec;
    return p->coll == q->coll && p->size_bytes == q->size_bytes && p->dtype == q->dtype &&
           p->op == q->op && p->placement == q->placement && p->memory == q->memory &&
           p->ranks == q->ranks && p->groups == q->groups &&
           strcmp(p->group_list, q->group_list) == 0 && strcmp(p->compress, q->compress) == 0 &&
           p->partial == q->partial && strcmp(p->split, q->split) == 0 &&
           strcmp(p->backend, q->backend) == 0 && strcmp(p->arrival, q->arrival) == 0;
}

bool ddp_arrival_line(const struct ddp_record *r, int *next, char *out, size_t bytes)
{
    for (int i = *next; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i], *best = p;
        char size[24], time[24];
        int first = 0, count = 0;
        if (!isfinite(p->after_last_ns))
            continue;
        while (!comparable(&r->points[first], p))
            first++;
        if (first < i)
            continue;
        for (int j = i; j < r->point_count; j++)
            if (comparable(&r->points[j], p)) {
                count++;
                best = r->points[j].after_last_ns < best->after_last_ns ? &r->points[j] : best;
            }
        *next = i + 1;
        ddp_format_size(p->spec.size_bytes, size, sizeof size);
        ddp_format_ns(best->after_last_ns, time, sizeof time);
        snprintf(out, bytes, "arrival %s, %s %s place: ", p->spec.arrival, size,
                 p->spec.placement == DDP_IN_PLACE ? "in" : "out of");
        ddp_text_append(out, bytes, "algorithm %s ends %s after the last arrival",
                        best->algorithm_used, time);
        if (count > 1)
            ddp_text_append(out, bytes, ", the least of %d points", count);
        return true;
    }
    return false;
}
