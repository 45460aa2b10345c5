#include "record/accuracy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"

enum { BASE, NEXT };

static struct ddp_accuracy_seed *find(const struct ddp_accuracy_list *list,
                                      const struct ddp_result_run *run)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].seed == run->seed && strcmp(list->items[i].group, run->group) == 0)
            return &list->items[i];
    return NULL;
}

static int append(struct ddp_accuracy_list *list, const struct ddp_result_run *run,
                  struct ddp_accuracy_seed **out, struct ddp_err *err)
{
    if (list->count == list->room) {
        const size_t room = DDP_MAX(2 * list->room, (size_t)8);
        DDP_TRY(DDP_RESIZE(&list->items, room, err));
        list->room = room;
    }
    *out = &list->items[list->count++];
    **out = (struct ddp_accuracy_seed){.seed = run->seed, .eval_images = run->eval_images};
    memcpy((*out)->group, run->group, sizeof run->group);
    return 0;
}

int ddp_accuracy_add(struct ddp_accuracy_list *list, const struct ddp_result *result, int side,
                     struct ddp_err *err)
{
    for (size_t i = 0; i < result->run_count; i++) {
        const struct ddp_result_run *run = &result->runs[i];
        if (isnan(run->seed) || (isnan(run->accuracy) && !run->diverged))
            continue;
        struct ddp_accuracy_seed *item = find(list, run);
        if (!item)
            DDP_TRY(append(list, run, &item, err));
        item->sum[side] += run->diverged ? 0 : run->accuracy;
        item->count[side]++;
        item->diverged[side] |= run->diverged;
        item->eval_images = fmin(item->eval_images, run->eval_images); /* ignores a NaN */
    }
    return 0;
}

static int compare_seeds(const void *a, const void *b)
{
    const struct ddp_accuracy_seed *x = a, *y = b;
    const int order = strcmp(x->group, y->group);
    return order ? order : (x->seed > y->seed) - (x->seed < y->seed);
}

/* Returns how many items at the start of `items` [n] belong to the group of the first item. */
static size_t group_length(const struct ddp_accuracy_seed *items, size_t n)
{
    size_t length = 1;
    while (length < n && strcmp(items[0].group, items[length].group) == 0)
        length++;
    return length;
}

static bool is_of_base(const struct ddp_accuracy_seed *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].count[BASE] > 0)
            return true;
    return false;
}

/* Judges the group `items` [n]. d [n]: scratch. */
static void judge_group(const struct ddp_accuracy_seed *items, size_t n,
                        const struct ddp_noninferior_rule *common, double *d,
                        struct ddp_verdict_accuracy *out)
{
    struct ddp_noninferior_rule rule = *common;
    double sum[2] = {0, 0};
    size_t seeds = 0;
    *out = (struct ddp_verdict_accuracy){.diverged_seed = NAN, .margin = rule.margin};
    memcpy(out->name, items[0].group, sizeof items[0].group);
    for (size_t i = 0; i < n; i++) {
        const struct ddp_accuracy_seed *s = &items[i];
        if (s->count[BASE] == 0 || s->count[NEXT] == 0 || s->diverged[BASE])
            continue;
        const double base = s->sum[BASE] / s->count[BASE], next = s->sum[NEXT] / s->count[NEXT];
        sum[BASE] += base;
        sum[NEXT] += next;
        d[seeds++] = next - base;
        if (s->diverged[NEXT] && isnan(out->diverged_seed))
            out->diverged_seed = s->seed;
        /* Each accuracy is rounded to a multiple of 1 / eval_images. The test therefore assumes at
         * least the standard deviation that the difference of two such rounding errors has. */
        if (s->eval_images > 0)
            rule.least_deviation = fmax(rule.least_deviation, 1 / (s->eval_images * sqrt(6)));
    }
    out->base = seeds > 0 ? sum[BASE] / (double)seeds : NAN;
    out->next = seeds > 0 ? sum[NEXT] / (double)seeds : NAN;
    ddp_noninferior_decide(d, seeds, &rule, &out->test);
    if (!isnan(out->diverged_seed)) {
        out->test.state = DDP_WORSE;
        out->test.seeds_needed = 0;
    }
}

void ddp_accuracy_text(const struct ddp_verdict_accuracy *a, char *out, size_t bytes)
{
    const struct ddp_noninferior *t = &a->test;
    out[0] = '\0';
    if (!isnan(a->diverged_seed))
        ddp_text_append(out, bytes, "new diverged with seed %.0f", a->diverged_seed);
    else if (t->seeds == 0)
        ddp_text_append(out, bytes, "no seed is in both base and new");
    else if (t->state == DDP_ACCURACY_UNCERTAIN && t->seeds_needed == 0)
        ddp_text_append(out, bytes, "%zu seeds, more than %d are needed", t->seeds,
                        DDP_NONINFERIOR_SEEDS_MAX);
    else if (t->state == DDP_ACCURACY_UNCERTAIN)
        ddp_text_append(out, bytes, "%zu seed%s, %s %zu are needed", t->seeds,
                        t->seeds == 1 ? "" : "s", t->seeds < 2 ? "at least" : "about",
                        t->seeds_needed);
    else
        ddp_text_append(out, bytes, "%+.4f (one-sided bounds %+.4f and %+.4f)", t->mean, t->lower,
                        t->upper);
    if (t->seeds == 0 || t->seeds_needed == 0 || t->seeds_needed > 8)
        return;
    for (size_t seed = 1; seed <= t->seeds_needed; seed++)
        ddp_text_append(out, bytes, "%s%zu", seed == 1 ? " (--seeds " : ",", seed);
    ddp_text_append(out, bytes, ")");
}

/* For each state, the reason of a verdict names at most this many groups. */
#define NAMES_MAX 2

/* Appends to the reason the groups that are in this state. Returns the number of these groups. */
static size_t name_groups(struct ddp_verdict_record *v, enum ddp_noninferior_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < v->accuracy_count; i++) {
        const struct ddp_verdict_accuracy *a = &v->accuracy[i];
        char text[400], why[160];
        if (a->test.state != state || count++ >= NAMES_MAX)
            continue;
        ddp_accuracy_text(a, why, sizeof why);
        snprintf(text, sizeof text, "accuracy%s: %s: %s", state == DDP_WORSE ? " is worse" : "",
                 why, a->name);
        ddp_verdict_append(v, "; ", text);
    }
    if (count > NAMES_MAX) {
        char more[64];
        snprintf(more, sizeof more, "and %zu more", count - NAMES_MAX);
        ddp_verdict_append(v, ", ", more);
    }
    return count;
}

static void conclude(double margin, struct ddp_verdict_record *v)
{
    const size_t worse = name_groups(v, DDP_WORSE);
    const size_t uncertain = name_groups(v, DDP_ACCURACY_UNCERTAIN);
    char text[96];
    if (worse > 0)
        v->outcome = DDP_VERDICT_FAIL;
    else if (uncertain > 0 && v->outcome == DDP_VERDICT_PASS)
        v->outcome = DDP_VERDICT_INCONCLUSIVE;
    snprintf(text, sizeof text, "no accuracy is worse by %.3g or more", margin);
    if (v->accuracy_count > 0 && worse + uncertain == 0)
        ddp_verdict_append(v, "; ", text);
}

int ddp_accuracy_judge(const struct ddp_accuracy_list *list, double margin,
                       struct ddp_verdict_record *v, struct ddp_err *err)
{
    struct ddp_accuracy_seed *sorted = NULL;
    double *d = NULL;
    size_t groups = 0, length;
    int rc;
    DDP_TRY(DDP_NEW(&v->accuracy, list->count, err));
    DDP_TRY_GOTO(DDP_NEW(&sorted, list->count, err), out);
    DDP_TRY_GOTO(DDP_NEW(&d, list->count, err), out);
    if (list->count > 0) {
        memcpy(sorted, list->items, list->count * sizeof *sorted);
        qsort(sorted, list->count, sizeof *sorted, compare_seeds);
    }
    for (size_t i = 0; i < list->count; i += length) {
        length = group_length(&sorted[i], list->count - i);
        groups += is_of_base(&sorted[i], length);
    }
    const struct ddp_noninferior_rule rule = {.margin = margin,
                                              .pass_level = DDP_VERDICT_LEVEL,
                                              .fail_level =
                                                  DDP_VERDICT_LEVEL / fmax(1, (double)groups)};
    for (size_t i = 0; i < list->count; i += length) {
        length = group_length(&sorted[i], list->count - i);
        if (is_of_base(&sorted[i], length))
            judge_group(&sorted[i], length, &rule, d, &v->accuracy[v->accuracy_count++]);
    }
    conclude(margin, v);
out:
    free(sorted);
    free(d);
    return rc;
}
