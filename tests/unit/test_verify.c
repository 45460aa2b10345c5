/* Verification accepts right results of every type, operation and rank count, and finds every
 * kind of wrong result. The reference is the CPU device at its scalar level, which test_reduce.c
 * tests. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bench/verify.h"
#include "device/device.h"

#define N 3000 /* crosses block boundaries and is no multiple of a block */

struct world {
    int ranks;
    enum ddp_dtype dtype;
    enum ddp_op op;
    size_t bytes;
    void *input[DDP_REDUCE_MAX];
    void *result;
};

/* Fills the inputs of all ranks and reduces them with the CPU device, the shipped code. */
static void world_init(struct world *w, int ranks, enum ddp_dtype dtype, enum ddp_op op,
                       size_t first, uint64_t round)
{
    *w = (struct world){.ranks = ranks, .dtype = dtype, .op = op};
    w->bytes = N * ddp_dtype_size(dtype);
    const void *src[DDP_REDUCE_MAX];
    w->result = malloc(w->bytes);
    assert_non_null(w->result);
    for (int r = 0; r < ranks; r++) {
        w->input[r] = malloc(w->bytes);
        assert_non_null(w->input[r]);
        ddp_verify_fill(w->input[r], first, N, dtype, op, r, ranks, round);
        src[r] = w->input[r];
    }
    struct ddp_reduce reduce = {.dst = &w->result,
                                .dst_count = 1,
                                .src = src,
                                .src_count = ranks,
                                .count = N,
                                .dtype = dtype,
                                .op = op,
                                .divisor = op == DDP_AVG ? ranks : 1};
    ddp_device_cpu(DDP_SIMD_SCALAR)->reduce(&reduce);
}

static void world_release(struct world *w)
{
    for (int r = 0; r < w->ranks; r++)
        free(w->input[r]);
    free(w->result);
}

static int verify(const struct world *w, size_t first, uint64_t round, int64_t *wrong,
                  struct ddp_err *err)
{
    return ddp_verify_reduced(w->result, first, N, w->dtype, w->op, 0, w->ranks, round, wrong, err);
}

static void test_right_results_pass(void **state)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 7, 8, 16};
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
        for (int d = 0; d < DDP_DTYPE_COUNT; d++) {
            for (int op = 0; op < DDP_OP_COUNT; op++) {
                struct world w;
                struct ddp_err err = DDP_ERR_INIT;
                int64_t wrong = -1;
                size_t first = i % 2 ? 777 : 0;
                world_init(&w, ranks[i], (enum ddp_dtype)d, (enum ddp_op)op, first, i);
                int rc = verify(&w, first, i, &wrong, &err);
                if (rc != 0)
                    print_message("%d ranks: %s\n", ranks[i], err.text);
                assert_int_equal(rc, 0);
                assert_int_equal(wrong, 0);
                world_release(&w);
            }
        }
    }
}

/* Averages as NCCL does: each value is multiplied by 1/ranks in its type, rounded, and then
 * added. */
static void average_first(struct world *w)
{
    const float share = 1.0f / (float)w->ranks;
    for (size_t i = 0; i < N; i++) {
        float sum = 0;
        for (int r = 0; r < w->ranks; r++)
            sum += ((float *)w->input[r])[i] * share;
        ((float *)w->result)[i] = sum;
    }
}

static void test_averages_that_round_before_the_sum(void **state)
{
    static const int ranks[] = {2, 3, 4, 5, 7, 41, 250};
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
        const bool exact = (ranks[i] & (ranks[i] - 1)) == 0;
        struct world w;
        struct ddp_err err = DDP_ERR_INIT;
        int64_t wrong = -1;
        world_init(&w, ranks[i], DDP_F32, DDP_AVG, 0, i);
        average_first(&w);
        assert_int_equal(
            ddp_verify_averaged_first(w.result, 0, N, DDP_F32, 0, w.ranks, i, &wrong, &err), 0);
        /* the plain check refuses inexact averages, otherwise averaged_first would not be needed */
        assert_int_equal(verify(&w, 0, i, &wrong, &err), exact ? 0 : DDP_EDATA);
        /* the contribution of one rank is missing or counted twice */
        err = DDP_ERR_INIT;
        ((float *)w.result)[5] += ((float *)w.input[1])[5] / (float)w.ranks;
        assert_int_equal(
            ddp_verify_averaged_first(w.result, 0, N, DDP_F32, 0, w.ranks, i, &wrong, &err),
            DDP_EDATA);
        assert_int_equal(wrong, 1);
        world_release(&w);
    }
}

/* Finds every flipped bit of some elements. */
static void test_one_flipped_bit_is_found(void **state)
{
    for (int d = 0; d < DDP_DTYPE_COUNT; d++) {
        for (int op = 0; op < DDP_OP_COUNT; op++) {
            struct world w;
            world_init(&w, 4, (enum ddp_dtype)d, (enum ddp_op)op, 0, 1);
            size_t size = ddp_dtype_size((enum ddp_dtype)d);
            static const size_t at[] = {0, 1023, 1024, 2047, N - 1};
            for (size_t e = 0; e < DDP_COUNT_OF(at); e++) {
                for (size_t bit = 0; bit < size * 8; bit++) {
                    struct ddp_err err = DDP_ERR_INIT;
                    char where[64];
                    int64_t wrong;
                    unsigned char *byte = (unsigned char *)w.result + at[e] * size + bit / 8;
                    *byte ^= (unsigned char)(1u << bit % 8);
                    assert_int_equal(verify(&w, 0, 1, &wrong, &err), DDP_EDATA);
                    assert_int_equal(wrong, 1);
                    snprintf(where, sizeof where, "rank 0, element %zu ", at[e]);
                    assert_non_null(strstr(err.text, where));
                    *byte ^= (unsigned char)(1u << bit % 8);
                }
            }
            world_release(&w);
        }
    }
}

/* An average over 3 or 7 ranks is rounded, but only one result is right, including its last bit. */
static void test_flipped_bit_of_an_inexact_mean(void **state)
{
    for (int ranks = 3; ranks <= 7; ranks += 4) {
        for (int d = 0; d < DDP_DTYPE_COUNT; d++) {
            struct world w;
            struct ddp_err err = DDP_ERR_INIT;
            int64_t wrong;
            world_init(&w, ranks, (enum ddp_dtype)d, DDP_AVG, 0, 1);
            for (size_t e = 0; e < N; e++)
                ((unsigned char *)w.result)[e * ddp_dtype_size((enum ddp_dtype)d)] ^= 1;
            assert_int_equal(verify(&w, 0, 1, &wrong, &err), DDP_EDATA);
            assert_int_equal(wrong, N);
            world_release(&w);
        }
    }
}

static void test_swapped_blocks_are_found(void **state)
{
    static const size_t lengths[] = {16, 64, 512, 1024};
    for (int d = 0; d < DDP_DTYPE_COUNT; d++) {
        for (size_t i = 0; i < DDP_COUNT_OF(lengths); i++) {
            struct world w;
            struct ddp_err err = DDP_ERR_INIT;
            int64_t wrong;
            size_t n = lengths[i] * ddp_dtype_size((enum ddp_dtype)d);
            unsigned char *a, *b, *kept = malloc(n);
            assert_non_null(kept);
            world_init(&w, 2, (enum ddp_dtype)d, DDP_SUM, 0, 3);
            a = w.result;
            b = a + n;
            memcpy(kept, a, n);
            memcpy(a, b, n);
            memcpy(b, kept, n);
            assert_int_equal(verify(&w, 0, 3, &wrong, &err), DDP_EDATA);
            /* more than half of the 2 x length swapped elements */
            assert_true(wrong > (int64_t)lengths[i]);
            free(kept);
            world_release(&w);
        }
    }
}

/* One rank is counted twice and another not at all; a rank's data is shifted by one element; the
 * data is from the wrong round. */
static void test_wrong_contributions_are_found(void **state)
{
    for (int d = 0; d < DDP_DTYPE_COUNT; d++) {
        struct world w;
        struct ddp_err err = DDP_ERR_INIT;
        int64_t wrong;
        void *right;
        world_init(&w, 4, (enum ddp_dtype)d, DDP_SUM, 0, 9);
        right = w.input[3];
        for (int kind = 0; kind < 2; kind++) {
            const void *src[4] = {w.input[0], w.input[1], w.input[2], right};
            unsigned char *shifted = malloc(w.bytes);
            assert_non_null(shifted);
            size_t size = ddp_dtype_size((enum ddp_dtype)d);
            memcpy(shifted, (unsigned char *)right + size, w.bytes - size);
            memset(shifted + w.bytes - size, 0, size);
            src[3] = kind == 0 ? w.input[2] : shifted;
            struct ddp_reduce reduce = {.dst = &w.result,
                                        .dst_count = 1,
                                        .src = src,
                                        .src_count = 4,
                                        .count = N,
                                        .dtype = (enum ddp_dtype)d,
                                        .op = DDP_SUM,
                                        .divisor = 1};
            ddp_device_cpu(DDP_SIMD_SCALAR)->reduce(&reduce);
            err = DDP_ERR_INIT;
            assert_int_equal(verify(&w, 0, 9, &wrong, &err), DDP_EDATA);
            assert_true(wrong > N / 3);
            free(shifted);
        }
        world_release(&w);
        world_init(&w, 4, (enum ddp_dtype)d, DDP_SUM, 0, 9);
        err = DDP_ERR_INIT;
        assert_int_equal(verify(&w, 0, 10, &wrong, &err), DDP_EDATA);
        world_release(&w);
    }
}

static void test_moved_data(void **state)
{
    for (int d = 0; d < DDP_DTYPE_COUNT; d++) {
        struct ddp_err err = DDP_ERR_INIT;
        int64_t wrong;
        enum ddp_dtype t = (enum ddp_dtype)d;
        void *data = malloc(N * ddp_dtype_size(t));
        assert_non_null(data);
        ddp_verify_fill(data, 5, N, t, DDP_SUM, 2, 4, 0);
        assert_int_equal(ddp_verify_moved(data, 5, N, t, DDP_SUM, 0, 2, 4, 0, &wrong, &err), 0);
        assert_int_equal(wrong, 0);
        assert_int_equal(ddp_verify_moved(data, 5, N, t, DDP_SUM, 0, 1, 4, 0, &wrong, &err),
                         DDP_EDATA);
        assert_true(wrong > N / 3);
        err = DDP_ERR_INIT;
        assert_int_equal(ddp_verify_moved(data, 6, N, t, DDP_SUM, 0, 2, 4, 0, &wrong, &err),
                         DDP_EDATA);
        assert_true(wrong > N / 3);
        free(data);
    }
}

/* The sum of absolute values stays exact for any number of ranks, and the values are not
 * trivial. */
static void test_sums_stay_exact(void **state)
{
    static const int64_t limit[DDP_DTYPE_COUNT] = {[DDP_F32] = 1 << 24,
                                                   [DDP_F16] = 2048,
                                                   [DDP_BF16] = 256,
                                                   [DDP_F64] = 1 << 30,
                                                   [DDP_I32] = 1 << 30,
                                                   [DDP_U8] = 255,
                                                   [DDP_I8] = 127,
                                                   [DDP_I64] = 1 << 30,
                                                   [DDP_U32] = (1 << 30) - 1,
                                                   [DDP_U64] = (1 << 30) - 1,
                                                   [DDP_FP8_E4M3] = 16,
                                                   [DDP_FP8_E5M2] = 8};
    static const int ranks[] = {1, 2, 3, 100, 255, 256, 257, 300, 2049, 5000};
    for (int d = 0; d < DDP_DTYPE_COUNT; d++) {
        for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
            struct ddp_verify_input in = ddp_verify_input_of((enum ddp_dtype)d, DDP_SUM, ranks[i]);
            int64_t sum[64] = {0}, largest = 0, other_ranks = 0;
            for (int r = 0; r < ranks[i]; r++) {
                int32_t v[64];
                ddp_verify_values(&in, r, 7, 960, 64, v);
                for (int j = 0; j < 64; j++)
                    sum[j] += llabs(v[j]);
                other_ranks += v[0] != 0;
            }
            for (int j = 0; j < 64; j++)
                largest = sum[j] > largest ? sum[j] : largest;
            assert_true(largest <= limit[d]);
            assert_true(largest >= DDP_MIN(limit[d], ranks[i]) / 4);
            assert_true(ranks[i] == 1 || other_ranks < ranks[i] || in.active == ranks[i]);
        }
    }
}

/* Filling in several calls gives the same values as filling in one call. */
static void test_fill_is_positional(void **state)
{
    float whole[N], pieces[N];
    ddp_verify_fill(whole, 100, N, DDP_F32, DDP_SUM, 1, 3, 4);
    for (size_t done = 0, n; done < N; done += n) {
        n = DDP_MIN((size_t)371, N - done);
        ddp_verify_fill(pieces + done, 100 + done, n, DDP_F32, DDP_SUM, 1, 3, 4);
    }
    assert_memory_equal(whole, pieces, sizeof whole);
}

static void test_no_elements(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    int64_t wrong = 5;
    char nothing = 0;
    assert_int_equal(ddp_verify_reduced(&nothing, 0, 0, DDP_F32, DDP_SUM, 0, 2, 0, &wrong, &err),
                     0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_results_pass),
        cmocka_unit_test(test_averages_that_round_before_the_sum),
        cmocka_unit_test(test_one_flipped_bit_is_found),
        cmocka_unit_test(test_flipped_bit_of_an_inexact_mean),
        cmocka_unit_test(test_swapped_blocks_are_found),
        cmocka_unit_test(test_wrong_contributions_are_found),
        cmocka_unit_test(test_moved_data),
        cmocka_unit_test(test_sums_stay_exact),
        cmocka_unit_test(test_fill_is_positional),
        cmocka_unit_test(test_no_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
