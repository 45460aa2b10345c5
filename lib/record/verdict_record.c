#include "record/verdict_record.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

int ddp_unjudged_add(struct ddp_unjudged_list *list, const char *name, bool train, bool base,
                     struct ddp_err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        struct ddp_unjudged *item = &list->items[i];
        if (item->train == train && strcmp(item->name, name) == 0) {
            item->base |= base;
            return 0;
        }
    }
    struct ddp_unjudged *items =
        ddp_realloc_array(list->items, list->count + 1, sizeof *list->items);
    if (!items)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu cells and training runs",
                        list->count + 1);
    list->items = items;
    struct ddp_unjudged *item = &items[list->count++];
    *item = (struct ddp_unjudged){.train = train, .base = base};
    snprintf(item->name, sizeof item->name, "%s", name);
    return 0;
}

const char *ddp_unjudged_kind(const struct ddp_unjudged *item)
{
    static const char *const kinds[2][2] = {{"cell of new only", "cell of base"},
                                            {"training run of new only", "training run of base"}};
    return kinds[item->train][item->base];
}
