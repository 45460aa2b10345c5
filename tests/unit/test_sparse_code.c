/* The encoding of sparse lists: every coding is encoded and decoded again, its length is right,
 * and any received message is either a list in ascending order or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "coll/sparse/sparse_code.h"

#define LENGTH_MAX 300

static size_t fill(struct ddp_rng *rng, size_t count, struct ddp_sparse_span span,
                   struct ddp_sparse *list)
{
    list->count = 0;
    for (size_t i = 0; i < span.length && list->count < count; i++)
        if (ddp_rng_below(rng, span.length - i) < count - list->count) {
            list->index[list->count] = (uint32_t)(span.begin + i);
            list->value[list->count++] = (float)ddp_rng_normal(rng);
        }
    return list->count;
}

/* Tests every count of every length. The arrays have exactly the permitted size. */
static void check_length(size_t begin, size_t length)
{
    const struct ddp_sparse_span span = {begin, length};
    struct ddp_rng rng;
    ddp_rng_init(&rng, 3, length);
    for (size_t count = 0; count <= length; count++) {
        const size_t words = ddp_sparse_code_words(count, length);
        uint32_t *wire = malloc(words * sizeof *wire + 1);
        uint32_t index[LENGTH_MAX], *room = malloc(count * sizeof *room + 1);
        float value[LENGTH_MAX];
        struct ddp_sparse list = {index, value, 0}, back;
        struct ddp_err err = DDP_ERR_INIT;

        assert_int_equal(fill(&rng, count, span, &list), count);
        assert_true(words <= 2 * count && words >= count);
        assert_true(words <= ddp_sparse_code_bound(count, length));
        assert_true(words <= ddp_sparse_code_bound(length, length));
        ddp_sparse_encode(&list, span, wire);
        assert_int_equal(ddp_sparse_decode(wire, count, span, room, &back, &err), 0);
        assert_int_equal(back.count, count);
        assert_memory_equal(back.index, index, count * sizeof *index);
        assert_memory_equal(back.value, value, count * sizeof *value);
        free(wire);
        free(room);
    }
}

static void test_round_trips(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 100, 256, 299, LENGTH_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_length(0, lengths[i]);
        check_length(12345, lengths[i]);
        check_length(((size_t)1 << 32) - lengths[i], lengths[i]);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    assert_int_equal(ddp_sparse_code_words(0, 1000), 0);
    assert_int_equal(ddp_sparse_code_words(1, 1000), 2);
    assert_int_equal(ddp_sparse_code_words(32, 1000), 64); /* a bitmap needs as much: 32 words */
    assert_int_equal(ddp_sparse_code_words(33, 1000), 32 + 33);
    assert_int_equal(ddp_sparse_code_words(999, 1000), 32 + 999);
    assert_int_equal(ddp_sparse_code_words(1000, 1000), 1000);
    assert_false(ddp_sparse_code_needs_room(32, 1000));
    assert_true(ddp_sparse_code_needs_room(33, 1000));
    assert_true(ddp_sparse_code_needs_room(1000, 1000));
    assert_int_equal(ddp_sparse_code_bound(20, 1000), 40);
    assert_int_equal(ddp_sparse_code_bound(5000, 1000), 1032);
}

static void refuse(const uint32_t *words, size_t n, size_t count, struct ddp_sparse_span span)
{
    uint32_t wire[64], room[64];
    struct ddp_sparse out = {NULL, NULL, 77};
    struct ddp_err err = DDP_ERR_INIT;
    memcpy(wire, words, n * sizeof *words);
    assert_int_equal(ddp_sparse_decode(wire, count, span, room, &out, &err), DDP_EDATA);
    assert_int_equal(out.count, 0);
    assert_true(err.text[0] != '\0');
}

static void test_refused(void **state)
{
    (void)state;
    const struct ddp_sparse_span wide = {100, 1000}, narrow = {100, 40};
    refuse((uint32_t[]){99, 200, 0, 0}, 4, 2, wide);            /* before the span */
    refuse((uint32_t[]){200, 1100, 0, 0}, 4, 2, wide);          /* after the span */
    refuse((uint32_t[]){200, 200, 0, 0}, 4, 2, wide);           /* twice */
    refuse((uint32_t[]){300, 200, 0, 0}, 4, 2, wide);           /* falling */
    refuse((uint32_t[]){200, UINT32_MAX, 0, 0}, 4, 2, wide);    /* far after the span */
    refuse((uint32_t[]){7, 0, 0, 0, 0, 0}, 6, 4, narrow);       /* 3 bits for 4 entries */
    refuse((uint32_t[]){31, 0, 0, 0, 0, 0}, 6, 4, narrow);      /* 5 bits */
    refuse((uint32_t[]){7, 1u << 8, 0, 0, 0, 0}, 6, 4, narrow); /* bit 40 */
    refuse((uint32_t[]){0}, 1, 41, narrow);                     /* more entries than elements */
    refuse((uint32_t[]){0}, 1, SIZE_MAX, narrow);
}

static void test_searches(void **state)
{
    (void)state;
    const uint32_t index[] = {3, 5, 5000, UINT32_MAX};
    assert_int_equal(ddp_sparse_lower_bound(index, 4, 0), 0);
    assert_int_equal(ddp_sparse_lower_bound(index, 4, 3), 0);
    assert_int_equal(ddp_sparse_lower_bound(index, 4, 4), 1);
    assert_int_equal(ddp_sparse_lower_bound(index, 4, 5001), 3);
    assert_int_equal(ddp_sparse_lower_bound(index, 4, (size_t)1 << 32), 4);
    assert_int_equal(ddp_sparse_lower_bound(index, 0, 7), 0);
    assert_true(ddp_sparse_ascends(index, 4, 3, (size_t)1 << 32));
    assert_false(ddp_sparse_ascends(index, 4, 4, (size_t)1 << 32));
    assert_false(ddp_sparse_ascends(index, 4, 3, UINT32_MAX));
    assert_true(ddp_sparse_ascends(index, 0, 9, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_searches),
    };
    return cmocka_run_group_tests_name("sparse codings", tests, NULL, NULL);
}
