#include "record/id_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Compares two ids. Equal ids are ordered by their position in the array. */
static int compare_ids(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const int order = strcmp(x, y);
    return order ? order : (x > y) - (x < y);
}

int ddp_id_index_build(struct ddp_id_index *index, const char *first, size_t stride, size_t count,
                       struct ddp_err *err)
{
    const char **sorted;
    DDP_TRY(DDP_NEW(&sorted, count, err));
    for (size_t i = 0; i < count; i++)
        sorted[i] = first + i * stride;
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_ids);
    *index =
        (struct ddp_id_index){.first = first, .stride = stride, .count = count, .sorted = sorted};
    return 0;
}

void ddp_id_index_release(struct ddp_id_index *index)
{
    free(index->sorted);
    *index = (struct ddp_id_index){.count = 0};
}

static size_t position(const struct ddp_id_index *index, size_t i)
{
    return (size_t)(index->sorted[i] - index->first) / index->stride;
}

size_t ddp_id_index_find(const struct ddp_id_index *index, const char *id)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(index->sorted[middle], id);
        if (order == 0)
            return position(index, middle);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return DDP_ID_NONE;
}

bool ddp_id_index_twice(const struct ddp_id_index *index, size_t *a, size_t *b)
{
    for (size_t i = 1; i < index->count; i++)
        if (strcmp(index->sorted[i - 1], index->sorted[i]) == 0) {
            *a = position(index, i - 1);
            *b = position(index, i);
            return true;
        }
    return false;
}
