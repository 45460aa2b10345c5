/* How an index-sorted list travels: as words of 4 bytes, without a header. For lib/coll's sparse_*
 * and its tests.
 *
 * Both sides know the number of entries and the *span* of indices they come from; from these two
 * alone follows the coding, the shortest of:
 *   indices   2 count                         indices, then values
 *   bitmap    ceil(length / 32) + count       a bit an index of the span, then values
 *   full      count, if it is the span's      values
 * So indices cost more than a bitmap from a density of 1/32 up. Values are the last `count` words
 * in all of them. What it does not do: send, allocate, trust what arrives. */
#ifndef DDP_COLL_SPARSE_CODE_H
#define DDP_COLL_SPARSE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices begin .. begin + length - 1; their end is at most 2^32. */
struct ddp_sparse_span {
    size_t begin, length;
};

/* Words of `count` entries, count <= length. */
size_t ddp_sparse_code_words(size_t count, size_t length);
/* The most words of any count up to `most` (or length, if that is less). */
size_t ddp_sparse_code_bound(size_t most, size_t length);

/* Does the coding have no indices of its own, so that decoding needs room for them? */
bool ddp_sparse_code_needs_room(size_t count, size_t length);

/* words [ddp_sparse_code_words]; every index of list lies in the span. */
void ddp_sparse_encode(const struct ddp_sparse *list, struct ddp_sparse_span span, uint32_t *words);

/* The list in words [ddp_sparse_code_words(count, span.length)]: out->value points into words,
 * out->index into words or into room [count]. DDP_EDATA when the indices do not ascend, leave the
 * span, or are not `count` (also when count > length): whatever words hold, nothing outside the
 * arrays is touched; out is then empty. */
int ddp_sparse_decode(uint32_t *words, size_t count, struct ddp_sparse_span span, uint32_t *room,
                      struct ddp_sparse *out, struct ddp_err *err) DDP_MUST_CHECK;

/* Do indices [count] ascend strictly, from `begin` on and below `end`? */
bool ddp_sparse_ascends(const uint32_t *index, size_t count, size_t begin, size_t end);
/* First entry of index [count] that is not below `at`. */
size_t ddp_sparse_lower_bound(const uint32_t *index, size_t count, size_t at);

#ifdef __cplusplus
}
#endif
#endif
