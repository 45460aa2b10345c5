/* The layout of a segment: heaps are far enough apart, and their addresses do not collide in a
 * cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "launch/segment.h"

#define MIB       ((uint64_t)1 << 20)
#define ALIKE_MIB 256 /* addresses at this distance agree in bits 12 to 27 */

static void no_heaps_alike(int ranks, uint64_t heap_bytes)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_segment *s;
    int fd;
    if (ddp_segment_create(ranks, heap_bytes, &s, &fd, &err) != 0)
        fail_msg("%d ranks, heaps of %llu MiB: %s", ranks, (unsigned long long)(heap_bytes / MIB),
                 err.text);
    assert_true(s->heap_stride >= 2 * heap_bytes);
    assert_true(s->heap_offset + (uint64_t)ranks * s->heap_stride <= s->total_bytes);
    assert_int_equal((uintptr_t)ddp_segment_heap_of(s, 0) % DDP_SEGMENT_HUGE, 0);
    assert_int_equal(s->heap_stride % DDP_SEGMENT_HUGE, 0);
    for (uint64_t apart = 1; apart < 128; apart++)
        if (apart * s->heap_stride % (ALIKE_MIB * MIB) == 0)
            fail_msg("heaps of %llu MiB: ranks %llu apart are alike",
                     (unsigned long long)(heap_bytes / MIB), (unsigned long long)apart);
    ddp_segment_destroy(s, fd);
}

static void test_heaps_apart(void **state)
{
    (void)state;
    for (uint64_t mib = 0; mib <= 2 * ALIKE_MIB; mib++)
        no_heaps_alike(2, mib * MIB);
    no_heaps_alike(8, 1024 * MIB);
    no_heaps_alike(3, 1000 * MIB + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heaps_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
