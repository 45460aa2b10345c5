#include "record/verdict_record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/vary.h"

#define MANY               1000000
#define TEXT               DDP_FIELD_PATH
#define BOOL               DDP_FIELD_BOOL
#define ENUM               DDP_FIELD_ENUM
#define COUNT              DDP_FIELD_COUNT
#define NUMBER             DDP_FIELD_NUMBER
#define TIME               DDP_FIELD_TIME
#define LIST               DDP_FIELD_LIST
#define V(member)          DDP_FIELD_AT(ddp_verdict_record, member)
#define C(member)          DDP_FIELD_AT(ddp_verdict_cell, member)
#define U(member)          DDP_FIELD_AT(ddp_unjudged, member)
#define A(member)          DDP_FIELD_AT(ddp_verdict_accuracy, member)
#define DERIVED            .name = NULL, .offset = 0, .bytes = 0
#define CHOICE(names, end) .most = (end)-1, .choices = names

const char *const ddp_vary_names[] = {"algorithm", "backend", "memory",   "compress", "ranks",
                                      "dtype",     "sync",    "feedback", "lr",       NULL};
const char *const ddp_verdict_kind_names[] = {"none", "gate", "compare", "selftest", "across"};
static const char *const unjudged_kinds[] = {"cell", "train"};
static const char *const unjudged_sides[] = {"new", "base"};

static bool has_outcome(const void *verdict)
{
    return ((const struct ddp_verdict_record *)verdict)->outcome != DDP_VERDICT_NONE;
}

static bool has_noise(const void *verdict)
{
    return ((const struct ddp_verdict_record *)verdict)->noise != NULL;
}

static bool has_across(const void *verdict)
{
    return ((const struct ddp_verdict_record *)verdict)->across != NULL;
}

static const struct ddp_field verdict_rows[] = {
    {V(kind), ENUM, "kind", .least = DDP_BY_GATE,
     CHOICE(ddp_verdict_kind_names, DDP_BY_ACROSS + 1)},
    {V(outcome), ENUM, "outcome", CHOICE(ddp_verdict_names, DDP_VERDICT_NONE),
     .applies = has_outcome},
    {V(reason), TEXT, "reason"},
    {V(level), NUMBER, "level"},
    {V(min_effect), NUMBER, "min_effect"},
    {V(effect_from), TEXT, "min_effect_from"},
    {V(noise_floor), NUMBER, "noise_floor"},
    {V(pairs), COUNT, "pairs", .most = MANY, .from = 1},
    {V(max_pairs), COUNT, "max_pairs", .most = MANY, .from = 1},
    {V(runs), COUNT, "runs", .most = MANY, .from = 1},
    {V(rerun), COUNT, "pairs_rerun", .most = MANY},
    {V(mixed), COUNT, "pairs_mixed", .most = MANY},
    {V(vary), DDP_FIELD_SET, "varied", CHOICE(ddp_vary_names, DDP_VARY_COUNT)},
    {V(base_command), TEXT, "base.command"},
    {V(base_build), TEXT, "base.build"},
    {V(edited[0]), BOOL, "base.edited"},
    {V(next_command), TEXT, "new.command"},
    {V(next_build), TEXT, "new.build"},
    {V(edited[1]), BOOL, "new.edited"},
    {V(fingerprint), TEXT, "fingerprint"},
    {V(pingpong_ratio), NUMBER, "control.pingpong.ratio"},
    {V(pingpong_p), NUMBER, "control.pingpong.p"},
    {V(memory_ratio), NUMBER, "control.memory.ratio"},
    {V(memory_p), NUMBER, "control.memory.p"},
    {DERIVED, DDP_FIELD_OBJECT, "selftest", .applies = has_noise},
    {DERIVED, DDP_FIELD_OBJECT, "across", .applies = has_across},
    {DERIVED, LIST, "cells"},
    {DERIVED, LIST, "unjudged"},
    {DERIVED, LIST, "accuracy"},
};

static const struct ddp_field cell_rows[] = {
    {C(id), TEXT, "id"},
    {C(cell.state), ENUM, "state", CHOICE(ddp_cell_state_names, DDP_CELL_MISSING + 1)},
    {C(cell.pairs), COUNT, "pairs", .most = MANY},
    {C(base_ns), TIME, "base_us"},
    {C(next_ns), TIME, "new_us"},
    {C(cell.ratio), NUMBER, "ratio"},
    {C(cell.lower), NUMBER, "lower"},
    {C(cell.upper), NUMBER, "upper"},
    {C(cell.p), NUMBER, "p"},
    {C(cell.p_holm), NUMBER, "p_holm"},
};

static const struct ddp_field unjudged_rows[] = {
    {U(name), TEXT, "name"},
    {U(train), ENUM, "kind", CHOICE(unjudged_kinds, 2)},
    {U(base), ENUM, "side", CHOICE(unjudged_sides, 2)},
};

static const struct ddp_field accuracy_rows[] = {
    {A(name), TEXT, "name"},
    {A(test.state), ENUM, "state", CHOICE(ddp_noninferior_names, DDP_ACCURACY_UNCERTAIN + 1)},
    {A(test.seeds), COUNT, "seeds", .most = MANY},
    {A(base), NUMBER, "base"},
    {A(next), NUMBER, "new"},
    {A(test.mean), NUMBER, "difference"},
    {A(test.deviation), NUMBER, "deviation"},
    {A(test.lower), NUMBER, "lower"},
    {A(test.upper), NUMBER, "upper"},
    {A(margin), NUMBER, "margin"},
    {A(test.seeds_needed), COUNT, "seeds_needed", .most = MANY, .from = 1},
    {A(diverged_seed), NUMBER, "diverged_seed"},
};

const struct ddp_fields ddp_verdict_fields = {verdict_rows, DDP_COUNT_OF(verdict_rows)};
const struct ddp_fields ddp_verdict_cell_fields = {cell_rows, DDP_COUNT_OF(cell_rows)};
const struct ddp_fields ddp_unjudged_fields = {unjudged_rows, DDP_COUNT_OF(unjudged_rows)};
const struct ddp_fields ddp_verdict_accuracy_fields = {accuracy_rows, DDP_COUNT_OF(accuracy_rows)};

int ddp_unjudged_add(struct ddp_unjudged_list *list, const char *name, bool train, bool base,
                     struct ddp_err *err)
{
    if (list->count == list->room) {
        const size_t room = DDP_MAX(2 * list->room, (size_t)8);
        DDP_TRY(DDP_RESIZE(&list->items, room, err));
        list->room = room;
    }
    struct ddp_unjudged *item = &list->items[list->count++];
    *item = (struct ddp_unjudged){.train = train, .base = base};
    snprintf(item->name, sizeof item->name, "%s", name);
    return 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct ddp_unjudged *x = a, *y = b;
    return x->train != y->train ? x->train - y->train : strcmp(x->name, y->name);
}

void ddp_unjudged_merge(struct ddp_unjudged_list *list)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, compare_items);
    for (size_t i = 0; i < list->count; i++) {
        struct ddp_unjudged *last = kept > 0 ? &list->items[kept - 1] : NULL;
        if (last && compare_items(last, &list->items[i]) == 0)
            last->base |= list->items[i].base;
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

void ddp_vary_text(unsigned vary, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (int k = 0; ddp_vary_names[k]; k++)
        if (vary >> k & 1 && at < bytes)
            at += (size_t)snprintf(out + at, bytes - at, "%s%s", at ? ", " : "", ddp_vary_names[k]);
}

const char *ddp_unjudged_kind(const struct ddp_unjudged *item)
{
    static const char *const kinds[2][2] = {{"cell only in new", "cell of base"},
                                            {"training run only in new", "training run of base"}};
    return kinds[item->train][item->base];
}

void ddp_verdict_record_init(struct ddp_verdict_record *v)
{
    *v = (struct ddp_verdict_record){.noise_floor = NAN,
                                     .pingpong_ratio = NAN,
                                     .pingpong_p = NAN,
                                     .memory_ratio = NAN,
                                     .memory_p = NAN};
}

void ddp_verdict_record_release(struct ddp_verdict_record *v)
{
    free(v->unjudged.items);
    free(v->accuracy);
    free(v->cells);
    ddp_verdict_record_init(v);
}

bool ddp_verdict_is_final(const struct ddp_verdict_record *v)
{
    bool unjudged = false;
    for (size_t i = 0; i < v->unjudged.count; i++)
        unjudged |= v->unjudged.items[i].base;
    for (size_t i = 0; i < v->accuracy_count; i++)
        unjudged |= v->accuracy[i].test.state == DDP_ACCURACY_UNCERTAIN;
    for (size_t c = 0; c < v->count; c++) {
        const enum ddp_cell_state state = v->cells[c].cell.state;
        if (state == DDP_CELL_UNCERTAIN || state == DDP_CELL_SLOWER)
            return false;
        unjudged |= state == DDP_CELL_MISSING;
    }
    return unjudged;
}

void ddp_verdict_count_states(const struct ddp_verdict_record *v,
                              size_t states[DDP_CELL_MISSING + 1])
{
    memset(states, 0, (DDP_CELL_MISSING + 1) * sizeof *states);
    for (size_t c = 0; c < v->count; c++)
        states[v->cells[c].cell.state]++;
}

/* For each kind of item, the reason of a verdict names at most this many items. */
#define NAMES_MAX 4

void ddp_verdict_append(struct ddp_verdict_record *v, const char *before, const char *text)
{
    const size_t at = strlen(v->reason);
    snprintf(v->reason + at, sizeof v->reason - at, "%s%s", before, text);
}

/* Appends the name with index `nth` of `all` names. For index NAMES_MAX, appends how many names are
 * left instead. Ignores names with a larger index. */
static void append_name(struct ddp_verdict_record *v, size_t nth, size_t all, const char *name)
{
    char more[40];
    snprintf(more, sizeof more, "and %zu more", all - nth);
    if (nth <= NAMES_MAX)
        ddp_verdict_append(v, nth ? ", " : ": ", nth < NAMES_MAX ? name : more);
}

/* Appends the cells of base that new lacks. Returns the number of these cells. */
static size_t name_missing(struct ddp_verdict_record *v)
{
    size_t all = 0, n = 0;
    char head[80];
    for (size_t c = 0; c < v->count; c++)
        all += v->cells[c].cell.state == DDP_CELL_MISSING;
    snprintf(head, sizeof head, "%zu of %zu cells of base are missing in new", all, v->count);
    if (all > 0)
        ddp_verdict_append(v, "; ", head);
    for (size_t c = 0; c < v->count; c++)
        if (v->cells[c].cell.state == DDP_CELL_MISSING)
            append_name(v, n++, all, v->cells[c].id);
    return all;
}

/* Appends the unjudged items of one kind. Returns the number of these items. */
static size_t name_unjudged(struct ddp_verdict_record *v, bool train, bool base)
{
    const struct ddp_unjudged_list *list = &v->unjudged;
    size_t all = 0, n = 0;
    char head[80];
    for (size_t i = 0; i < list->count; i++)
        all += list->items[i].train == train && list->items[i].base == base;
    snprintf(head, sizeof head, "%zu %s%s %s %s not judged", all, train ? "training run" : "cell",
             all == 1 ? "" : "s", base ? "of base" : "only in new", all == 1 ? "was" : "were");
    if (all > 0)
        ddp_verdict_append(v, "; ", head);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].train == train && list->items[i].base == base)
            append_name(v, n++, all, list->items[i].name);
    return all;
}

void ddp_verdict_check_unjudged(struct ddp_verdict_record *v)
{
    size_t of_base = name_missing(v);
    of_base += name_unjudged(v, false, true);
    of_base += name_unjudged(v, true, true);
    name_unjudged(v, false, false);
    name_unjudged(v, true, false);
    if (of_base > 0 && v->outcome == DDP_VERDICT_PASS)
        v->outcome = DDP_VERDICT_INCONCLUSIVE;
}
