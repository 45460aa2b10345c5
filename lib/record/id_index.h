/* Finds an id among many, for example among the ids of a document's cells, in O(log n). */
#ifndef DDP_RECORD_ID_INDEX_H
#define DDP_RECORD_ID_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returned by ddp_id_index_find for an id that does not exist. */
#define DDP_ID_NONE ((size_t)-1)

/* An index of the ids in an array. The elements of the array are structs or char arrays. The index
 * points into the array. */
struct ddp_id_index {
    const char *first; /* the first id in the array */
    size_t stride;     /* bytes from one id to the next */
    size_t count;
    const char **sorted; /* [count], the ids in the order of strcmp */
};

/* Builds the index of the `count` ids at first, first + stride and so on. The ids must not change
 * or move until the index is released. Returns 0 or DDP_ENOMEM. */
int ddp_id_index_build(struct ddp_id_index *index, const char *first, size_t stride, size_t count,
                       struct ddp_err *err) DDP_MUST_CHECK;
void ddp_id_index_release(struct ddp_id_index *index);
/* Returns the position of an id in the array, or DDP_ID_NONE. */
size_t ddp_id_index_find(const struct ddp_id_index *index, const char *id);
/* Returns whether some id occurs twice. If so, sets *a < *b to the positions of two equal ids. */
bool ddp_id_index_twice(const struct ddp_id_index *index, size_t *a, size_t *b);

#ifdef __cplusplus
}
#endif
#endif
