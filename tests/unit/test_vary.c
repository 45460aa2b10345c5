/* The keys of --vary in the ids of points, and the index of ids. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "record/id_index.h"
#include "record/point_keys.h"
#include "record/record.h"
#include "record/vary.h"

static const struct ddp_point_spec first = {.coll = DDP_ALLREDUCE,
                                            .backend = "shm",
                                            .algorithm = "ring",
                                            .dtype = DDP_F32,
                                            .memory = DDP_MEMORY_REGISTERED,
                                            .ranks = 2,
                                            .groups = 4,
                                            .requested_bytes = 4096,
                                            .compress = "none",
                                            .graph = true};

/* Two points that differ in one key have the same id exactly if --vary has this key. */
static void test_keys(void **state)
{
    for (int changed = 0; changed <= DDP_VARY_SYNC; changed++) {
        struct ddp_point_spec second = first;
        char a[192], b[192], x[192], y[192];
        switch (changed) {
        case DDP_VARY_ALGORITHM:
            snprintf(second.algorithm, sizeof second.algorithm, "auto");
            break;
        case DDP_VARY_BACKEND:
            snprintf(second.backend, sizeof second.backend, "mpi");
            break;
        case DDP_VARY_MEMORY:
            second.memory = DDP_MEMORY_PRIVATE;
            break;
        case DDP_VARY_COMPRESS:
            snprintf(second.compress, sizeof second.compress, "topk:0.01");
            break;
        case DDP_VARY_RANKS:
            second.ranks = 16;
            break;
        case DDP_VARY_DTYPE:
            second.dtype = DDP_F16;
            break;
        default:
            second.requested_bytes = 8192; /* no key of --vary */
        }
        ddp_point_id(&first, a, sizeof a);
        ddp_point_id(&second, b, sizeof b);
        assert_string_not_equal(a, b);
        for (unsigned vary = 0; vary < 1 << DDP_VARY_SYNC; vary++) {
            assert_true(ddp_point_id_vary(vary, a, x, sizeof x) &&
                        ddp_point_id_vary(vary, b, y, sizeof y));
            assert_int_equal(strcmp(x, y) == 0, vary >> changed & 1);
        }
    }
}

static void test_texts(void **state)
{
    static const char *const others[] = {"a", "", "a/b/c/d/e/f/g/h/i/j/k/l", "////////////",
                                         "allreduce/shm/ring/f32/sum/r0/in/registered/2/4/none/0"};
    char id[192], out[192];
    ddp_point_id(&first, id, sizeof id);
    assert_true(ddp_point_id_vary(0, id, out, sizeof out));
    assert_string_equal(out, id);
    assert_true(ddp_point_id_vary(1 << DDP_VARY_RANKS | 1 << DDP_VARY_DTYPE, id, out, sizeof out));
    assert_string_equal(out, "allreduce/shm/ring/*/sum/r0/in/registered/*/4096/none/0/g4/graph");
    for (size_t bytes = 1; bytes <= strlen(id); bytes++)
        assert_false(ddp_point_id_vary(0, id, out, bytes));
    for (size_t i = 0; i < DDP_COUNT_OF(others); i++)
        assert_false(ddp_point_id_vary(1, others[i], out, sizeof out));
    ddp_vary_text(0, out, sizeof out);
    assert_string_equal(out, "");
    ddp_vary_text(1 << DDP_VARY_RANKS | 1 << DDP_VARY_ALGORITHM, out, sizeof out);
    assert_string_equal(out, "algorithm, ranks");
}

static void test_index(void **state)
{
    static char ids[1000][8];
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_id_index index;
    size_t a, b;
    for (size_t n = 0; n <= DDP_COUNT_OF(ids); n += n < 5 ? 1 : 199) {
        for (size_t i = 0; i < n; i++)
            snprintf(ids[i], sizeof ids[i], "%zu", i * 7919 % n);
        assert_int_equal(ddp_id_index_build(&index, ids[0], sizeof ids[0], n, &err), 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(ddp_id_index_find(&index, ids[i]), i);
        assert_true(ddp_id_index_find(&index, "x") == DDP_ID_NONE);
        assert_true(ddp_id_index_find(&index, "") == DDP_ID_NONE);
        assert_false(ddp_id_index_twice(&index, &a, &b));
        ddp_id_index_release(&index);
    }
    snprintf(ids[700], sizeof ids[0], "%s", ids[300]);
    assert_int_equal(ddp_id_index_build(&index, ids[0], sizeof ids[0], 1000, &err), 0);
    assert_true(ddp_id_index_twice(&index, &a, &b) && a == 300 && b == 700);
    ddp_id_index_release(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
