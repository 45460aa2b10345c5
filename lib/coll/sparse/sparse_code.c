/* Encodes and decodes the lists that sparse algorithms send. See sparse_code.h. */
#include "coll/sparse/sparse_code.h"

#include <string.h>

#include "base/mem.h"
#include "device/element_ops.h"

enum coding { CODE_INDEX, CODE_BITMAP, CODE_FULL };

static size_t bitmap_words(size_t length)
{
    return length / 32 + (length % 32 != 0);
}

static enum coding coding_of(size_t count, size_t length)
{
    if (count == length)
        return CODE_FULL;
    return bitmap_words(length) < count ? CODE_BITMAP : CODE_INDEX;
}

size_t ddp_sparse_code_words(size_t count, size_t length)
{
    switch (coding_of(count, length)) {
    case CODE_FULL:
        return count;
    case CODE_BITMAP:
        return bitmap_words(length) + count;
    case CODE_INDEX:
        break;
    }
    return 2 * count;
}

size_t ddp_sparse_code_bound(size_t most, size_t length)
{
    const size_t count = DDP_MIN(most, length);
    return count + DDP_MIN(count, bitmap_words(length));
}

bool ddp_sparse_code_needs_room(size_t count, size_t length)
{
    return coding_of(count, length) != CODE_INDEX;
}

static void encode_bitmap(const struct ddp_sparse *list, struct ddp_sparse_span span,
                          uint32_t *words)
{
    memset(words, 0, bitmap_words(span.length) * sizeof *words);
    for (size_t i = 0; i < list->count; i++) {
        const size_t bit = list->index[i] - span.begin;
        words[bit / 32] |= UINT32_C(1) << bit % 32;
    }
}

void ddp_sparse_encode(const struct ddp_sparse *list, struct ddp_sparse_span span, uint32_t *words)
{
    const size_t count = list->count;
    if (count == 0)
        return;
    switch (coding_of(count, span.length)) {
    case CODE_FULL:
        break;
    case CODE_BITMAP:
        encode_bitmap(list, span, words);
        break;
    case CODE_INDEX:
        memcpy(words, list->index, count * sizeof *words);
        break;
    }
    memcpy(words + ddp_sparse_code_words(count, span.length) - count, list->value,
           count * sizeof *words);
}

bool ddp_sparse_ascends(const uint32_t *index, size_t count, size_t begin, size_t end)
{
    unsigned wrong = 0;
    if (count == 0)
        return true;
    for (size_t i = 1; i < count; i++)
        wrong |= index[i] <= index[i - 1];
    return wrong == 0 && index[0] >= begin && index[count - 1] < end;
}

/* Converts the bitmap `words` to indices. Returns true if exactly `count` bits are set and all of
 * them lie in the span, else false. */
static bool decode_bitmap(const uint32_t *words, size_t count, struct ddp_sparse_span span,
                          uint32_t *index)
{
    const size_t length = bitmap_words(span.length);
    size_t found = 0;

    if (span.length % 32 != 0 && words[length - 1] >> span.length % 32 != 0)
        return false;
    for (size_t w = 0; w < length; w++)
        found += (size_t)__builtin_popcount(words[w]);
    if (found != count)
        return false;
    for (size_t w = 0; w < length; w++)
        for (uint32_t bits = words[w]; bits != 0; bits &= bits - 1)
            *index++ = (uint32_t)(span.begin + w * 32 + (size_t)__builtin_ctz(bits));
    return true;
}

static uint32_t *decode_index(uint32_t *words, size_t count, struct ddp_sparse_span span,
                              uint32_t *room)
{
    switch (coding_of(count, span.length)) {
    case CODE_FULL:
        for (size_t i = 0; i < count; i++)
            room[i] = (uint32_t)(span.begin + i);
        return room;
    case CODE_BITMAP:
        return decode_bitmap(words, count, span, room) ? room : NULL;
    case CODE_INDEX:
        break;
    }
    return ddp_sparse_ascends(words, count, span.begin, span.begin + span.length) ? words : NULL;
}

int ddp_sparse_decode(uint32_t *words, size_t count, struct ddp_sparse_span span, uint32_t *room,
                      struct ddp_sparse *out, struct ddp_err *err)
{
    *out = (struct ddp_sparse){.count = 0};
    if (count == 0)
        return 0;
    if (count > span.length)
        return ddp_fail(err, DDP_EDATA, "received %zu entries for a range of %zu indices", count,
                        span.length);
    uint32_t *index = decode_index(words, count, span, room);
    if (index == NULL)
        return ddp_fail(
            err, DDP_EDATA,
            "received a list that does not hold %zu ascending indices from %zu to below %zu", count,
            span.begin, span.begin + span.length);
    *out = (struct ddp_sparse){
        .index = index,
        .value = (float *)(void *)(words + ddp_sparse_code_words(count, span.length) - count),
        .count = count,
    };
    return 0;
}

size_t ddp_sparse_lower_bound(const uint32_t *index, size_t count, size_t at)
{
    return at > UINT32_MAX ? count : ddp_lower_bound(index, (uint32_t)count, (uint32_t)at);
}
