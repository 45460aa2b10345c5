/* Partition: every image occurs once per epoch, the slices fit the batch, and P ranks of batch B
 * see the images that one rank of batch P*B sees. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "train/partition.h"

/* Images, ranks and batch: even, an uneven last batch, fewer images than ranks, one rank. */
static const struct {
    size_t images;
    int ranks, batch;
} shapes[] = {{64, 2, 8},   {67, 2, 8}, {65, 3, 7},   {5, 8, 4},
              {100, 1, 30}, {1, 1, 1},  {1000, 7, 64}};

static void sees_every_image_once(void **state)
{
    static const int weight[] = {3, 1, 7, 2, 1, 1, 5, 1};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int kind = DDP_PARTITION_BATCH; kind <= DDP_PARTITION_WEIGHTS; kind++) {
            struct ddp_partition_plan plan = {.kind = (enum ddp_partition)kind,
                                              .images = shapes[s].images,
                                              .ranks = shapes[s].ranks,
                                              .batch = shapes[s].batch,
                                              .weight = weight,
                                              .seed = 3};
            size_t least;
            plan.global_batch = (size_t)plan.ranks * (size_t)plan.batch;
            if (kind == DDP_PARTITION_WEIGHTS)
                plan.batch =
                    (int)ddp_partition_largest(plan.global_batch, weight, plan.ranks, &least);
            int64_t steps = ddp_partition_steps(&plan);
            int seen[1000] = {0};
            size_t total = 0;
            for (int r = 0; r < plan.ranks; r++) {
                uint32_t order[1000];
                size_t count;
                ddp_partition_order(&plan, 2, r, order, &count);
                for (int64_t step = 0; step < steps; step++) {
                    size_t first, n, global;
                    ddp_partition_slice(&plan, step, r, &first, &n, &global);
                    assert_true(n <= (size_t)plan.batch && global >= 1);
                    assert_true(n == 0 || first + n <= count);
                    for (size_t i = 0; i < n; i++)
                        seen[order[first + i]]++;
                    total += r == 0 ? global : 0;
                }
            }
            assert_int_equal(total, plan.images);
            for (size_t i = 0; i < plan.images; i++)
                assert_int_equal(seen[i], 1);
        }
}

static void ranks_together_see_the_global_batch(void **state)
{
    struct ddp_partition_plan two = {
        .kind = DDP_PARTITION_BATCH, .images = 67, .ranks = 2, .batch = 8, .seed = 9};
    struct ddp_partition_plan one = two;
    one.ranks = 1;
    one.batch = 16;
    uint32_t a[67], b[67];
    size_t count;
    ddp_partition_order(&two, 1, 1, a, &count);
    ddp_partition_order(&one, 1, 0, b, &count);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(ddp_partition_steps(&two), ddp_partition_steps(&one));
    for (int64_t step = 0; step < ddp_partition_steps(&two); step++) {
        size_t first0, n0, first1, n1, first, n, global, global1;
        ddp_partition_slice(&two, step, 0, &first0, &n0, &global);
        ddp_partition_slice(&two, step, 1, &first1, &n1, &global);
        ddp_partition_slice(&one, step, 0, &first, &n, &global1);
        assert_int_equal(first0, first);
        assert_int_equal(first1, first0 + n0);
        assert_int_equal(n0 + n1, n);
        assert_int_equal(global, global1);
    }
}

/* Global batches of 16 images and a last one of 3, split 3 to 1. */
static void weights_split_every_global_batch(void **state)
{
    static const int weight[] = {3, 1};
    struct ddp_partition_plan plan = {.kind = DDP_PARTITION_WEIGHTS,
                                      .images = 67,
                                      .weight = weight,
                                      .ranks = 2,
                                      .batch = 12,
                                      .global_batch = 16,
                                      .seed = 9};
    assert_int_equal(ddp_partition_steps(&plan), 5);
    for (int64_t step = 0; step < 5; step++) {
        size_t first[2], n[2], global;
        for (int r = 0; r < 2; r++)
            ddp_partition_slice(&plan, step, r, &first[r], &n[r], &global);
        assert_int_equal(global, step < 4 ? 16 : 3);
        assert_int_equal(first[0], 16 * step);
        assert_int_equal(n[0], step < 4 ? 12 : 2);
        assert_int_equal(first[1], first[0] + n[0]);
        assert_int_equal(n[1], global - n[0]);
    }
}

static void the_option_is_parsed(void **state)
{
    static const char *const wrong[] = {"",
                                        "weights",
                                        "weights:",
                                        "weights:0",
                                        "weights:1,",
                                        "weights:,1",
                                        "weights:1.5",
                                        "weights:1000001",
                                        "Batch",
                                        "shard:1",
                                        "weights:99999999999999999999"};
    static const char *const right[] = {"batch", "shard", "weights:3,1", "weights:1000000"};
    struct ddp_partition_spec spec;
    struct ddp_err err = DDP_ERR_INIT;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        char text[64];
        assert_int_equal(ddp_partition_parse(right[i], &spec, &err), 0);
        ddp_partition_text(&spec, text, sizeof text);
        assert_string_equal(text, right[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(ddp_partition_parse(wrong[i], &spec, &err), DDP_EUSAGE);
    char many[8 + 2 * DDP_PARTITION_WEIGHTS_MAX + 2] = "weights:1";
    for (int i = 1; i < DDP_PARTITION_WEIGHTS_MAX; i++)
        strcat(many, ",1");
    assert_int_equal(ddp_partition_parse(many, &spec, &err), 0);
    assert_int_equal(spec.count, DDP_PARTITION_WEIGHTS_MAX);
    strcat(many, ",1");
    assert_int_equal(ddp_partition_parse(many, &spec, &err), DDP_EUSAGE);
}

/* MXNet's split with even_split=False: the first `extra` slices get one image more. */
static void parts_are_mxnets_slices(void **state)
{
    static const struct {
        size_t count;
        int ranks;
        size_t sizes[5];
    } want[] = {{10, 3, {4, 3, 3}},   {11, 3, {4, 4, 3}}, {12, 3, {4, 4, 4}},
                {2, 4, {1, 1, 0, 0}}, {0, 2, {0, 0}},     {13, 5, {3, 3, 3, 2, 2}}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        size_t at = 0;
        for (int r = 0; r < want[i].ranks; r++) {
            size_t first, n;
            ddp_partition_part(want[i].count, want[i].ranks, r, &first, &n);
            assert_int_equal(first, at);
            assert_int_equal(n, want[i].sizes[r]);
            at += n;
        }
        assert_int_equal(at, want[i].count);
    }
}

/* A global batch that is not a multiple of the ranks: each step has the same images at any number
 * of ranks. */
static void global_batches_do_not_depend_on_ranks(void **state)
{
    struct ddp_partition_plan one = {
        .kind = DDP_PARTITION_BATCH, .images = 1000, .ranks = 1, .batch = 128, .seed = 1};
    for (int ranks = 2; ranks <= 5; ranks++) {
        struct ddp_partition_plan many = one;
        many.ranks = ranks;
        many.batch = (128 + ranks - 1) / ranks;
        many.global_batch = 128;
        assert_int_equal(ddp_partition_steps(&many), ddp_partition_steps(&one));
        for (int64_t step = 0; step < ddp_partition_steps(&many); step++) {
            size_t first, n, global, all = 0, want_first, want_n;
            ddp_partition_slice(&one, step, 0, &want_first, &want_n, &global);
            for (int r = 0; r < ranks; r++) {
                ddp_partition_slice(&many, step, r, &first, &n, &global);
                assert_int_equal(first, want_first + all);
                assert_true(n <= (size_t)many.batch);
                assert_int_equal(global, want_n);
                all += n;
            }
            assert_int_equal(all, want_n);
        }
    }
}

static void orders_follow_seed_and_epoch(void **state)
{
    for (int kind = DDP_PARTITION_BATCH; kind <= DDP_PARTITION_SHARD; kind++) {
        struct ddp_partition_plan plan = {
            .kind = (enum ddp_partition)kind, .images = 500, .ranks = 2, .batch = 8, .seed = 1};
        uint32_t a[500], b[500];
        size_t n;
        ddp_partition_order(&plan, 1, 1, a, &n);
        ddp_partition_order(&plan, 1, 1, b, &n);
        assert_memory_equal(a, b, n * sizeof *a);
        ddp_partition_order(&plan, 2, 1, b, &n);
        assert_memory_not_equal(a, b, n * sizeof *a);
        plan.seed = 2;
        ddp_partition_order(&plan, 1, 1, b, &n);
        assert_memory_not_equal(a, b, n * sizeof *a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_every_image_once),
        cmocka_unit_test(ranks_together_see_the_global_batch),
        cmocka_unit_test(weights_split_every_global_batch),
        cmocka_unit_test(the_option_is_parsed),
        cmocka_unit_test(parts_are_mxnets_slices),
        cmocka_unit_test(global_batches_do_not_depend_on_ranks),
        cmocka_unit_test(orders_follow_seed_and_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
