#include "record/verdict_record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

const char *ddp_unjudged_kind(const struct ddp_unjudged *item)
{
    static const char *const kinds[2][2] = {{"cell of new only", "cell of base"},
                                            {"training run of new only", "training run of base"}};
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
    free(v->cells);
    ddp_verdict_record_init(v);
}

bool ddp_verdict_is_final(const struct ddp_verdict_record *v)
{
    bool unjudged = false;
    for (size_t i = 0; i < v->unjudged.count; i++)
        unjudged |= v->unjudged.items[i].base;
    for (size_t c = 0; c < v->count; c++) {
        const enum ddp_cell_state state = v->cells[c].cell.state;
        if (state == DDP_CELL_UNCERTAIN || state == DDP_CELL_SLOWER)
            return false;
        unjudged |= state == DDP_CELL_MISSING;
    }
    return unjudged;
}
