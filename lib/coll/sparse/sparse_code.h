/* The coding in which an index-sorted list is sent. It consists of 4-byte words without a header.
 * Only coll/sparse and tests use this header.
 *
 * Both sides know the number of entries (count) and the *span*, the range of indices that the
 * entries may have. `length` is the length of the span. The coding is the shortest of the
 * following:
 *   name      number of words                 contents
 *   indices   2 count                         indices, then values
 *   bitmap    ceil(length / 32) + count       one bit per index of the span, then values
 *   full      count, if it equals the length  values
 * Above a density of 1/32, a bitmap takes fewer words than indices. In all codings the values are
 * the last `count` words. The functions do not send or allocate. The decoder checks its input,
 * because the input comes from another rank. */
#ifndef DDP_COLL_SPARSE_SPARSE_CODE_H
#define DDP_COLL_SPARSE_SPARSE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The indices begin .. begin + length - 1. begin + length is at most 2^32. */
struct ddp_sparse_span {
    size_t begin, length;
};

/* Returns the number of words for `count` entries, count <= length. */
size_t ddp_sparse_code_words(size_t count, size_t length);
/* Returns a number of words that is enough for any count up to the smaller of `most` and `length`.
 */
size_t ddp_sparse_code_bound(size_t most, size_t length);

/* True if the coding contains no indices. ddp_sparse_decode then writes the indices to `room`. */
bool ddp_sparse_code_needs_room(size_t count, size_t length);

/* Encodes `list` to the array `words` [ddp_sparse_code_words]. Every index of `list` must lie in
 * the span. */
void ddp_sparse_encode(const struct ddp_sparse *list, struct ddp_sparse_span span, uint32_t *words);

/* Decodes `words` [ddp_sparse_code_words(count, span.length)]. out->value points into `words`.
 * out->index points into `words` or into `room` [count]. Returns DDP_EDATA and an empty list if
 * count > span.length, or if `words` does not contain `count` ascending indices inside the span. An
 * invalid input cannot cause an access outside the arrays. */
int ddp_sparse_decode(uint32_t *words, size_t count, struct ddp_sparse_span span, uint32_t *room,
                      struct ddp_sparse *out, struct ddp_err *err) DDP_MUST_CHECK;

/* True if the array `index` [count] is strictly ascending and all its elements are >= begin and <
 * end. */
bool ddp_sparse_ascends(const uint32_t *index, size_t count, size_t begin, size_t end);
/* Returns the position of the first element of `index` [count] that is at least `at`, or `count` if
 * there is no such element. */
size_t ddp_sparse_lower_bound(const uint32_t *index, size_t count, size_t at);

#ifdef __cplusplus
}
#endif
#endif
