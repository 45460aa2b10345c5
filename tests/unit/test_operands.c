/* Operands: for every collective, placement, type and root, this process lays out and fills the
 * arrays of all ranks and runs a naive collective on them. The results of all ranks must be
 * accepted. One wrong element, two swapped blocks and a missing result must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "bench/operands.h"
#include "device/stream.h"

#define RANKS 3
/* elements of the full buffer: more than one block of values, and 400 per rank */
#define COUNT 1200
#define BYTES (COUNT * 4)

struct ranks {
    unsigned char a[RANKS][BYTES], b[RANKS][BYTES], sent[RANKS][BYTES];
    struct ddp_operands o[RANKS];
};

static void set_up(struct ranks *r, enum ddp_coll coll, enum ddp_placement placement, int root)
{
    const struct ddp_point_spec spec = {.coll = coll,
                                        .dtype = DDP_I32,
                                        .op = DDP_SUM,
                                        .root = root,
                                        .placement = placement,
                                        .ranks = RANKS,
                                        .size_bytes = BYTES,
                                        .count = COUNT};
    for (int i = 0; i < RANKS; i++) {
        ddp_operands_init(&r->o[i], &spec, i, RANKS, r->a[i], r->b[i]);
        ddp_operands_fill(&r->o[i], 7);
        if (placement == DDP_IN_PLACE) {
            /* in place, a measured operation leaves arbitrary values in its input */
            memset(r->a[i] + r->o[i].input_first * 4, 0xee, r->o[i].input_count * 4);
            ddp_operands_restore(&r->o[i]);
        }
        memcpy(r->sent[i], r->o[i].args.send, r->o[i].input_count * 4);
    }
}

static int32_t sum_at(const struct ranks *r, size_t i)
{
    int32_t sum = 0;
    for (int j = 0; j < RANKS; j++)
        sum += ((const int32_t *)r->sent[j])[i];
    return sum;
}

/* Runs the collective as the top of coll.h defines it, on copies of the inputs. */
static void run_naively(struct ranks *r, enum ddp_coll coll, int root)
{
    for (int me = 0; me < RANKS; me++) {
        int32_t *recv = r->o[me].args.recv;
        const size_t part = COUNT / RANKS, own = (size_t)me * part;
        switch (coll) {
        case DDP_ALLREDUCE:
        case DDP_REDUCE:
            for (size_t i = 0; i < COUNT && (coll == DDP_ALLREDUCE || me == root); i++)
                recv[i] = sum_at(r, i);
            break;
        case DDP_REDUCE_SCATTER:
        case DDP_REDUCE_SCATTER_V:
            for (size_t i = 0; i < part; i++)
                recv[i] = sum_at(r, own + i);
            break;
        case DDP_BROADCAST:
            memcpy(recv, r->sent[root], BYTES);
            break;
        case DDP_SCATTER:
            memcpy(recv, r->sent[root] + own * 4, part * 4);
            break;
        case DDP_SEND_RECV:
            memcpy(recv, r->sent[(me + RANKS - 1) % RANKS], BYTES);
            break;
        default:
            for (int j = 0; j < RANKS && (coll != DDP_GATHER || me == root); j++)
                memcpy(recv + (size_t)j * part,
                       r->sent[j] +
                           (coll == DDP_ALL_TO_ALL || coll == DDP_ALL_TO_ALL_V ? own * 4 : 0),
                       part * 4);
        }
    }
}

static bool accepts(const struct ranks *r, int rank, int64_t *elements)
{
    struct ddp_err err = DDP_ERR_INIT;
    int64_t wrong = -1;
    return ddp_operands_verify(&r->o[rank], 7, elements, &wrong, &err) == 0;
}

static void check_rank(struct ranks *r, enum ddp_coll coll, int rank, int root)
{
    int32_t *recv = r->o[rank].args.recv;
    int64_t elements;

    if (!accepts(r, rank, &elements))
        fail_msg("%s, rank %d: a right result is refused", ddp_coll_name(coll), rank);
    if ((coll == DDP_REDUCE || coll == DDP_GATHER) && rank != root) {
        assert_int_equal(elements, 0);
        return;
    }
    const bool one_part =
        coll == DDP_REDUCE_SCATTER || coll == DDP_REDUCE_SCATTER_V || coll == DDP_SCATTER;
    assert_int_equal(elements, one_part ? COUNT / RANKS : COUNT);
    for (size_t i = 0; i < (size_t)elements; i += (size_t)elements - 1) {
        recv[i] ^= 1;
        if (accepts(r, rank, &elements))
            fail_msg("%s, rank %d: element %zu may be wrong", ddp_coll_name(coll), rank, i);
        recv[i] ^= 1;
    }
    for (size_t i = 0; !one_part && i < 400; i++) {
        const int32_t kept = recv[i];
        recv[i] = recv[400 + i];
        recv[400 + i] = kept;
    }
    if (!one_part && accepts(r, rank, &elements))
        fail_msg("%s, rank %d: parts may change places", ddp_coll_name(coll), rank);
}

static void test_every_collective(void **state)
{
    (void)state;
    struct ranks *r = malloc(sizeof *r);
    assert_non_null(r);
    for (int coll = 0; coll < DDP_BARRIER; coll++) {
        const enum ddp_coll c = (enum ddp_coll)coll;
        const int first = ddp_coll_has_in_place(c) ? DDP_IN_PLACE : DDP_OUT_OF_PLACE;
        for (int p = first; p < DDP_PLACEMENT_COUNT; p++) {
            for (int root = 0; root < (ddp_coll_has_root(c) ? RANKS : 1); root++) {
                set_up(r, c, (enum ddp_placement)p, root);
                run_naively(r, c, root);
                for (int rank = 0; rank < RANKS; rank++)
                    check_rank(r, c, rank, root);
            }
        }
    }
    free(r);
}

/* The content of recv before the operation is not a right result: an operation that does nothing
 * fails on some rank, in place as well. */
static void test_nothing_done(void **state)
{
    (void)state;
    struct ranks *r = malloc(sizeof *r);
    assert_non_null(r);
    for (int coll = 0; coll < DDP_BARRIER; coll++) {
        const enum ddp_coll c = (enum ddp_coll)coll;
        const int first = ddp_coll_has_in_place(c) ? DDP_IN_PLACE : DDP_OUT_OF_PLACE;
        for (int p = first; p < DDP_PLACEMENT_COUNT; p++) {
            bool all = true;
            int64_t elements;
            set_up(r, c, (enum ddp_placement)p, 1);
            for (int rank = 0; rank < RANKS; rank++)
                all &= accepts(r, rank, &elements);
            if (all)
                fail_msg("%s, %s: nothing done, nothing noticed", ddp_coll_name(c),
                         ddp_placement_name((enum ddp_placement)p));
        }
    }
    free(r);
}

/* The tables of test_split. In the all-to-all-v, rank 2 has the largest array, which it sends. Rank
 * 1 sends no element to itself, nor to rank 2. In the reduce-scatter-v, rank 1 has no part. */
static const size_t split[RANKS * RANKS] = {0, 900, 5, 700, 0, 0, 1, 300, 2000};
static const size_t parts[RANKS] = {301, 0, 2000};
#define SPLIT_LARGEST 2301

/* Copies the parts for rank `me` from a[RANKS] to its result, or adds them. */
static void run_split(const struct ddp_operands *o, int me)
{
    int32_t *recv = o[me].args.recv;
    if (o[me].args.coll == DDP_REDUCE_SCATTER_V) {
        const size_t first = me == 0 ? 0 : parts[0];
        memset(recv, 0, parts[me] * sizeof *recv);
        for (int from = 0; from < RANKS; from++)
            for (size_t i = 0; i < parts[me]; i++)
                recv[i] += ((const int32_t *)o[from].args.send)[first + i];
        return;
    }
    for (int from = 0; from < RANKS; from++) {
        const int32_t *part = o[from].args.send;
        for (int to = 0; to < me; to++)
            part += split[from * RANKS + to];
        memcpy(recv, part, split[from * RANKS + me] * sizeof *recv);
        recv += split[from * RANKS + me];
    }
}

/* All parts, and the bytes behind them, are verified. */
static void check_split(enum ddp_coll coll, const size_t *table, const int64_t *received)
{
    static int32_t a[RANKS][SPLIT_LARGEST], b[RANKS][SPLIT_LARGEST];
    const struct ddp_point_spec spec = {.coll = coll,
                                        .dtype = DDP_I32,
                                        .op = DDP_SUM,
                                        .placement = DDP_OUT_OF_PLACE,
                                        .ranks = RANKS,
                                        .size_bytes = BYTES,
                                        .count = COUNT};
    struct ranks *r = malloc(sizeof *r);
    int64_t elements;
    assert_non_null(r);
    for (int me = 0; me < RANKS; me++) {
        ddp_operands_init(&r->o[me], &spec, me, RANKS, a[me], b[me]);
        ddp_operands_split(&r->o[me], table);
        assert_int_equal(r->o[me].full_bytes, sizeof a[me]);
        ddp_operands_fill(&r->o[me], 7);
    }
    for (int me = 0; me < RANKS; me++) {
        assert_int_equal(accepts(r, me, &elements), received[me] == 0);
        run_split(r->o, me);
        assert_true(accepts(r, me, &elements));
        assert_int_equal(elements, received[me]);
        for (int64_t i = 0; i <= received[me]; i++) { /* the last one lies behind the data */
            b[me][i] ^= 1 << 30;
            assert_false(accepts(r, me, &elements));
            b[me][i] ^= 1 << 30;
        }
        r->o[me].stride = 2;
    }
    /* The blocks that a sender refills are those that its receivers verify. */
    for (int me = 0; me < RANKS; me++) {
        ddp_operands_fill(&r->o[me], 8);
        ddp_operands_refill(&r->o[me], 7);
    }
    for (int me = 0; me < RANKS; me++) {
        run_split(r->o, me);
        assert_true(accepts(r, me, &elements));
    }
    free(r);
}

static void test_split(void **state)
{
    static const int64_t moved[RANKS] = {701, 1200, 2005}, summed[RANKS] = {301, 0, 2000};
    (void)state;
    check_split(DDP_ALL_TO_ALL_V, split, moved);
    check_split(DDP_REDUCE_SCATTER_V, parts, summed);
}

/* A barrier has no arrays, and nothing is verified. */
static void test_barrier(void **state)
{
    (void)state;
    const struct ddp_point_spec spec = {.coll = DDP_BARRIER, .ranks = 2};
    struct ddp_operands o;
    struct ddp_err err = DDP_ERR_INIT;
    unsigned char byte[2] = {1, 2};
    int64_t elements = -1, wrong = -1;
    ddp_operands_init(&o, &spec, 0, 2, &byte[0], &byte[1]);
    ddp_operands_fill(&o, 1);
    assert_int_equal(byte[0] + byte[1], 3);
    assert_int_equal(ddp_operands_verify(&o, 1, &elements, &wrong, &err), 0);
    assert_int_equal(elements, 0);
    assert_int_equal(wrong, 0);
}

/* A device whose memory the test can access. Copies are as long as the staging memory at most,
 * except between two buffers of the device. */
static unsigned char *device_begin, *device_end, *stage_begin;
static size_t longest_copy;

static void counted_copy(void *dst, const void *src, size_t bytes)
{
    const unsigned char *from = src, *to = dst;
    const bool from_device = from >= device_begin && from + bytes <= device_end,
               to_device = to >= device_begin && to + bytes <= device_end;
    assert_true(from_device || (from == stage_begin && bytes <= DDP_OPERANDS_STAGE_BYTES));
    assert_true(to_device || (to == stage_begin && bytes <= DDP_OPERANDS_STAGE_BYTES));
    if (!from_device || !to_device)
        longest_copy = DDP_MAX(longest_copy, bytes);
    memcpy(dst, src, bytes);
}

static void device_fill(void *dst, unsigned char byte, size_t bytes)
{
    memset(dst, byte, bytes);
}

static void check_on_device(enum ddp_placement placement, size_t bytes,
                            const struct ddp_operands_device *on)
{
    const size_t count = bytes / sizeof(float);
    unsigned char *memory = device_begin;
    const struct ddp_point_spec spec = {.coll = DDP_BROADCAST,
                                        .dtype = DDP_F32,
                                        .placement = placement,
                                        .ranks = 2,
                                        .size_bytes = (int64_t)bytes,
                                        .count = (int64_t)count};
    struct ddp_operands o, host;
    struct ddp_err err = DDP_ERR_INIT;
    int64_t elements, wrong;
    float *a = (float *)(void *)memory, *b = a + count, *other_a = b + count,
          *other_b = a + 3 * count;
    ddp_operands_init(&o, &spec, 0, 2, a, b);
    ddp_operands_on(&o, on);
    ddp_operands_init(&host, &spec, 0, 2, other_a, other_b);
    ddp_operands_fill(&o, 3);
    ddp_operands_fill(&host, 3);
    assert_memory_equal(a, other_a, bytes);
    assert_memory_equal(b, other_b, bytes);
    float *result = placement == DDP_IN_PLACE ? a : b;
    if (placement == DDP_IN_PLACE) {
        a[5] += 1; /* modify the device's memory as an operation would */
        ddp_operands_restore(&o);
    } else {
        memcpy(b, a, bytes);
    }
    memset(on->stage, 0, DDP_OPERANDS_STAGE_BYTES);
    assert_int_equal(ddp_operands_verify(&o, 3, &elements, &wrong, &err), 0);
    assert_int_equal(elements, count);
    result[count - 1] += 1;
    assert_int_equal(ddp_operands_verify(&o, 3, &elements, &wrong, &err), DDP_EDATA);
    assert_int_equal(wrong, 1);
    o.stride = host.stride = 7;
    ddp_operands_refill(&o, 4);
    ddp_operands_refill(&host, 4);
    assert_memory_equal(a, other_a, bytes);
}

/* With a device all data is copied through the staging memory, which does not grow with the size,
 * and the device's memory is what is verified. */
static void test_on_device(void **state)
{
    (void)state;
    static const size_t sizes[] = {256, 3 * DDP_OPERANDS_STAGE_BYTES + 52};
    struct ddp_device device = *ddp_device_cpu(DDP_SIMD_SCALAR);
    uint64_t counted = 9;
    struct ddp_operands_device on = {.device = &device, .wrong = &counted};
    void *stage = ddp_alloc_pages(DDP_OPERANDS_STAGE_BYTES);
    unsigned char *memory = ddp_alloc_pages(4 * sizes[1]);
    assert_true(stage != NULL && memory != NULL);
    device_begin = memory;
    device_end = memory + 4 * sizes[1];
    on.stage = stage_begin = stage;
    device.copy = counted_copy;
    device.fill = device_fill;
    for (int placement = 0; placement < DDP_PLACEMENT_COUNT; placement++)
        for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
            check_on_device((enum ddp_placement)placement, sizes[s], &on);
    assert_int_equal(longest_copy, DDP_OPERANDS_STAGE_BYTES);
    /* With kernels, the host reads data only to describe an error. */
    assert_int_equal(device.streams->create(&on.stream, NULL), 0);
    for (int placement = 0; placement < DDP_PLACEMENT_COUNT; placement++)
        for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++)
            check_on_device((enum ddp_placement)placement, sizes[s], &on);
    device.streams->destroy(on.stream);
    ddp_free_pages(memory, 4 * sizes[1]);
    ddp_free_pages(stage, DDP_OPERANDS_STAGE_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_collective),
        cmocka_unit_test(test_nothing_done),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_on_device),
    };
    return cmocka_run_group_tests_name("operands", tests, NULL, NULL);
}
