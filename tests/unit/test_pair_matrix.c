/* The tournament of `ddpbench matrix`, and the matrix as a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "bench/pair_matrix.h"
#include "record/matrix_record.h"

/* Every pair meets exactly once, and each end has at most one partner in a round. */
static void test_tournament(void **state)
{
    (void)state;
    for (int ends = 0; ends <= 33; ends++) {
        int met[33][33] = {{0}};
        for (int round = 0; round < ddp_pair_rounds(ends); round++)
            for (int end = 0; end < ends; end++) {
                const int partner = ddp_pair_partner(ends, round, end);
                if (partner < 0) {
                    assert_int_equal(ends % 2, 1);
                    continue;
                }
                assert_int_not_equal(partner, end);
                assert_int_equal(ddp_pair_partner(ends, round, partner), end);
                met[end][partner]++;
            }
        for (int a = 0; a < ends; a++)
            for (int b = 0; b < ends; b++)
                assert_int_equal(met[a][b], a != b);
    }
    assert_int_equal(ddp_pair_rounds(4), 3);
    assert_int_equal(ddp_pair_rounds(5), 5);
}

static void test_message(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_matrix m, copy;
    void *message;
    size_t bytes;
    assert_int_equal(ddp_matrix_init(&m, 3, &err), 0);
    m.by_host = true;
    m.rounds = 2;
    m.all_rounds = 3;
    m.bytes = 77;
    m.rank[2] = 9;
    m.cell[5].GBps = 1.5;
    assert_int_equal(ddp_matrix_pack(&m, &message, &bytes, &err), 0);
    assert_int_equal(ddp_matrix_unpack(message, bytes, &copy, &err), 0);
    assert_true(copy.by_host && copy.ends == 3 && copy.rounds == 2 && copy.all_rounds == 3);
    assert_true(copy.bytes == 77 && copy.rank[2] == 9 && copy.cell[5].GBps == 1.5);
    assert_true(isnan(copy.cell[4].GBps));
    ddp_matrix_release(&copy);
    assert_int_equal(ddp_matrix_unpack(message, bytes - 1, &copy, &err), DDP_EINTERNAL);
    assert_int_equal(ddp_matrix_unpack(message, 4, &copy, &err), DDP_EINTERNAL);
    free(message);
    ddp_matrix_release(&m);
}

static void test_summary(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_matrix_summary s;
    struct ddp_matrix m;
    assert_int_equal(ddp_matrix_init(&m, 3, &err), 0);
    assert_int_equal(ddp_matrix_summarize(&m, &s, &err), 0);
    assert_int_equal(s.measured, 0);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            if (i != j)
                m.cell[i * 3 + j] = (struct ddp_matrix_cell){10 * i + j, 1, 0.1, 1, 0};
    m.cell[2 * 3 + 0].GBps = 0.25;
    m.cell[0 * 3 + 1].GBps = 4;
    assert_int_equal(ddp_matrix_summarize(&m, &s, &err), 0);
    assert_int_equal(s.measured, 6);
    assert_true(s.median_GBps == 1);
    assert_true(s.slowest[0] == 2 && s.slowest[1] == 0 && s.fastest[0] == 0 && s.fastest[1] == 1);
    ddp_matrix_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tournament),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
