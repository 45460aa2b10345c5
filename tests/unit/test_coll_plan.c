/* The table of algorithms, the choice of `auto`, plans and costs, on communicators that are
 * structs in this file: no rank runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coll/coll.h"
#include "comm/hosts.h"
#include "comm/shm/comm_shm.h"
#include "names.h"

static unsigned char registered_block[4096];
static unsigned char private_block[4096];

static void *fake_map(struct ddp_comm *comm, int peer, const void *ptr)
{
    (void)comm;
    (void)peer;
    const uintptr_t offset = (uintptr_t)ptr - (uintptr_t)registered_block;
    return offset < sizeof(registered_block) ? registered_block + offset : NULL;
}

static int fake_native_supports(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                                struct ddp_err *err)
{
    (void)comm;
    return args->dtype == DDP_F32 ? 0 : ddp_fail(err, DDP_EUNAVAIL, "fake does f32 only");
}

static int fake_native(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    (void)comm;
    (void)args;
    (void)err;
    return 0;
}

static const struct ddp_backend shm_like = {
    .name = "shm-like", .caps = DDP_CAP_MAP | DDP_CAP_REGISTERED, .map = fake_map};
static const struct ddp_backend mpi_like = {.name = "mpi-like",
                                            .caps = DDP_CAP_NATIVE,
                                            .native_supports = fake_native_supports,
                                            .native = fake_native};
static const char *open_mpi(void)
{
    return "Open MPI 4.1.4";
}
static const struct ddp_backend open_mpi_like = {.name = "open-mpi-like",
                                                 .caps = DDP_CAP_NATIVE | DDP_CAP_P2P,
                                                 .library = open_mpi,
                                                 .native_supports = fake_native_supports,
                                                 .native = fake_native};
static const struct ddp_backend bare = {.name = "bare"};
static struct ddp_comm_shm some_shm;

static struct ddp_comm comm_of(const struct ddp_backend *backend, int size)
{
    return (struct ddp_comm){.backend = backend,
                             .size = size,
                             .device = ddp_device_cpu(DDP_SIMD_SCALAR),
                             .shm = backend == &shm_like ? &some_shm : NULL};
}

static const char *choice(const struct ddp_backend *backend, int ranks, size_t bytes,
                          bool registered)
{
    const struct ddp_comm comm = comm_of(backend, ranks);
    const struct ddp_coll_shape shape = {.coll = DDP_ALLREDUCE,
                                         .count = bytes / 4,
                                         .dtype = DDP_F32,
                                         .in_place = true,
                                         .registered = registered};
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_coll_alg *alg = ddp_coll_auto(&comm, &shape, &err);
    return alg != NULL ? alg->name : "none";
}

static void test_table(void **state)
{
    (void)state;
    int n = 0;
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++, n++) {
        assert_non_null((*a)->summary);
        assert_true((*a)->supports != NULL || (*a)->needs != 0);
        assert_non_null((*a)->run);
        assert_true((*a)->path != NULL || (*a)->cost_model > DDP_COST_FORMULA);
        assert_ptr_equal(ddp_coll_find((*a)->coll, (*a)->name), *a);
    }
    assert_true(n >= 5);
    assert_null(ddp_coll_find(DDP_ALLREDUCE, "nonsense"));
    assert_null(ddp_coll_find(DDP_BARRIER, "flat"));
}

static void test_auto(void **state)
{
    (void)state;
    assert_string_equal(choice(&shm_like, 1, 4096, true), "self");
    assert_string_equal(choice(&bare, 1, 4096, false), "self");
    assert_string_equal(choice(&shm_like, 2, 0, true), "flat");
    assert_string_equal(choice(&shm_like, 2, 4, true), "flat");
    assert_string_equal(choice(&shm_like, 2, 8192, true), "direct");
    assert_string_equal(choice(&shm_like, 2, 64 << 20, true), "direct");
    assert_string_equal(choice(&shm_like, 2, 8, false), "flat");
    assert_string_equal(choice(&shm_like, 2, 8192, false), "staged");
    assert_string_equal(choice(&shm_like, 8, 64 << 20, false), "staged");
    assert_string_equal(choice(&mpi_like, 2, 8192, false), "native");
    assert_string_equal(choice(&bare, 2, 8192, false), "none");
}

/* Ranks on `count` hosts. taken, own: the expected choices of ddp_coll_auto and
 * ddp_coll_auto_own. */
static void expect_across_hosts(int ranks, int count, size_t bytes, enum ddp_dtype dtype,
                                const char *taken, const char *own)
{
    struct ddp_hosts hosts = {.count = count};
    struct ddp_comm comm = comm_of(&open_mpi_like, ranks);
    const struct ddp_coll_shape shape = {
        .coll = DDP_ALLREDUCE, .count = bytes / ddp_dtype_size(dtype), .dtype = dtype};
    struct ddp_err err = DDP_ERR_INIT;
    comm.hosts = &hosts;
    assert_string_equal(ddp_coll_auto(&comm, &shape, &err)->name, taken);
    assert_string_equal(ddp_coll_auto_own(&comm, &shape, &err)->name, own);
}

static void test_auto_across_hosts(void **state)
{
    (void)state;
    expect_across_hosts(4, 4, 8, DDP_F32, "native", "rhd");
    expect_across_hosts(4, 4, 1 << 20, DDP_F32, "native", "ring");
    expect_across_hosts(4, 4, 4 << 20, DDP_F32, "ring", "ring");
    expect_across_hosts(3, 3, 64 << 20, DDP_F32, "ring", "ring");
    /* The MPI library does not support f16. */
    expect_across_hosts(4, 4, 8, DDP_F16, "rhd", "rhd");
    expect_across_hosts(4, 4, 1 << 20, DDP_F16, "ring", "ring");
    /* More hosts than were measured, and two ranks on one host. */
    expect_across_hosts(5, 5, 4 << 20, DDP_F32, "native", "ring");
    expect_across_hosts(4, 3, 4 << 20, DDP_F32, "native", "ring");
}

static void test_reasons(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const struct ddp_backend *backend;
        size_t count;
        enum ddp_dtype dtype;
        bool registered;
        const char *reason; /* expected in the error text; NULL: supported */
    } cases[] = {
        {"flat", &shm_like, DDP_SHM_SLOT_BYTES / 4, DDP_F32, false, NULL},
        {"flat", &shm_like, DDP_SHM_SLOT_BYTES / 4 + 1, DDP_F32, false, "at most"},
        {"flat", &bare, 1, DDP_F32, false, "'bare'"},
        {"direct", &shm_like, 1 << 20, DDP_BF16, true, NULL},
        {"direct", &shm_like, 1 << 20, DDP_BF16, false, "registered"},
        {"direct", &mpi_like, 1 << 20, DDP_F32, true, "'mpi-like'"},
        {"staged", &shm_like, 1 << 20, DDP_U8, false, NULL},
        {"staged", &mpi_like, 1 << 20, DDP_F32, false, "'mpi-like'"},
        {"native", &mpi_like, 1 << 20, DDP_F32, false, NULL},
        {"native", &mpi_like, 1 << 20, DDP_F16, false, "f32 only"},
        {"native", &shm_like, 1 << 20, DDP_F32, false, "'shm-like'"},
        {"self", &shm_like, 1, DDP_F32, false, "'self'"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        const struct ddp_comm comm = comm_of(cases[i].backend, 2);
        const struct ddp_coll_shape shape = {.coll = DDP_ALLREDUCE,
                                             .count = cases[i].count,
                                             .dtype = cases[i].dtype,
                                             .registered = cases[i].registered};
        struct ddp_err err = DDP_ERR_INIT;
        const int rc =
            ddp_coll_supports(ddp_coll_find(DDP_ALLREDUCE, cases[i].name), &comm, &shape, &err);
        assert_int_equal(rc, cases[i].reason != NULL ? DDP_EUNAVAIL : 0);
        if (cases[i].reason != NULL && !text_names(err.text, cases[i].reason))
            fail_msg("%s: '%s' does not say '%s'", cases[i].name, err.text, cases[i].reason);
    }
}

/* A plan finds out by itself whether its buffers are registered completely. */
static void test_plan(void **state)
{
    (void)state;
    struct ddp_comm comm = comm_of(&shm_like, 2);
    struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                 .send = registered_block,
                                 .recv = registered_block,
                                 .count = 1024,
                                 .dtype = DDP_F32,
                                 .op = DDP_SUM};
    struct ddp_coll_plan plan;
    struct ddp_err err = DDP_ERR_INIT;

    assert_int_equal(ddp_coll_plan_init(&plan, &comm, NULL, &args, &err), 0);
    assert_string_equal(plan.alg->name, "direct");
    assert_int_equal(plan.bytes, 4096);
    assert_true(plan.scratch_bytes > 0);
    assert_int_equal((uintptr_t)plan.scratch % 64, 0);
    for (size_t i = 0; i < plan.scratch_bytes; i++)
        assert_int_equal(((unsigned char *)plan.scratch)[i], 0);
    ddp_coll_plan_release(&plan);
    assert_null(plan.scratch);

    args.count = 1025; /* one element beyond the block */
    assert_int_equal(ddp_coll_plan_init(&plan, &comm, NULL, &args, &err), 0);
    assert_string_equal(plan.alg->name, "staged");
    ddp_coll_plan_release(&plan);

    args.count = 1024;
    args.send = private_block; /* only one of the two buffers is registered */
    const struct ddp_coll_alg *direct = ddp_coll_find(DDP_ALLREDUCE, "direct");
    assert_int_equal(ddp_coll_plan_init(&plan, &comm, direct, &args, &err), DDP_EUNAVAIL);
    assert_true(text_names(err.text, "registered"));

    err = DDP_ERR_INIT;
    args.count = SIZE_MAX / 4;
    assert_int_equal(ddp_coll_plan_init(&plan, &comm, NULL, &args, &err), DDP_EUSAGE);

    err = DDP_ERR_INIT;
    struct ddp_comm lonely = comm_of(&bare, 2);
    args.count = 8;
    assert_int_equal(ddp_coll_plan_init(&plan, &lonely, NULL, &args, &err), DDP_EUNAVAIL);
    assert_true(text_names(err.text, "'bare'"));
}

static void test_message_bytes(void **state)
{
    (void)state;
    assert_int_equal(ddp_coll_message_bytes(DDP_ALLREDUCE, 4, 10, DDP_F32), 40);
    assert_int_equal(ddp_coll_message_bytes(DDP_BROADCAST, 4, 10, DDP_F64), 80);
    assert_int_equal(ddp_coll_message_bytes(DDP_ALL_GATHER, 4, 10, DDP_F16), 80);
    assert_int_equal(ddp_coll_message_bytes(DDP_REDUCE_SCATTER, 4, 10, DDP_U8), 40);
}

/* Worked out by hand for 2 ranks and 1000 bytes, from each algorithm's opening comment. */
static void test_costs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double steps, memory_bytes;
    } rows[] = {
        /* 2 ranks: each moves 1000 in and out of a slot, reads 2000, writes 1000 */
        {"flat", 1, 10000},
        {"direct", 2, 4000}, /* 2 ranks: 2 x 500 read, 2 x 500 written */
        {"staged", 2, 8000}, /* 2 ranks: 500 in, 1000 + 1000 sum, 500 out; copies count twice */
        {"self", 0, 2000},
    };
    const struct ddp_coll_shape shape = {.coll = DDP_ALLREDUCE, .count = 250, .dtype = DDP_F32};
    struct ddp_coll_cost cost;
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        ddp_coll_cost_of(ddp_coll_find(DDP_ALLREDUCE, rows[i].name), 2, &shape, &cost);
        assert_true(cost.modelled);
        assert_float_equal(cost.steps, rows[i].steps, 0);
        assert_float_equal(cost.memory_bytes, rows[i].memory_bytes, 0);
        assert_float_equal(cost.sent_bytes, 0, 0);
        assert_float_equal(cost.messages, 0, 0);
    }
    ddp_coll_cost_of(ddp_coll_find(DDP_ALLREDUCE, "native"), 2, &shape, &cost);
    assert_false(cost.modelled);
}

/* A summary that names a logarithm names the number of steps that the cost has. */
static void test_summaries(void **state)
{
    (void)state;
    struct ddp_coll_cost cost;
    int found = 0;
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++) {
        const char *text = (*a)->summary;
        const struct ddp_coll_shape shape = {.coll = (*a)->coll, .count = 240, .dtype = DDP_F32};
        if (strstr(text, "log2") == NULL)
            continue;
        assert_non_null(strstr(text, "ceil(log2 n) steps"));
        for (int n = 2, log = 1; n <= 17; n++) {
            log += n > 1 << log;
            const int more = strstr(text, "1 more unless n is a power of 2") && n != 1 << log;
            ddp_coll_cost_of(*a, n, &shape, &cost);
            assert_float_equal(cost.steps, (strstr(text, " 2 ceil") ? 2 * log : log) + more, 0);
        }
        found++;
    }
    assert_true(found >= 7);
}

static void test_self(void **state)
{
    (void)state;
    struct ddp_comm comm = comm_of(&bare, 1);
    struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                 .send = private_block,
                                 .recv = registered_block,
                                 .count = 100,
                                 .dtype = DDP_F32,
                                 .op = DDP_AVG};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_coll_plan plan;

    memset(private_block, 3, sizeof(private_block));
    memset(registered_block, 0, sizeof(registered_block));
    assert_int_equal(ddp_coll_plan_init(&plan, &comm, NULL, &args, &err), 0);
    assert_int_equal(plan.alg->run(&comm, &plan.args, plan.scratch, &err), 0);
    assert_memory_equal(registered_block, private_block, 400);
    assert_int_equal(registered_block[400], 0);
    ddp_coll_plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_auto_across_hosts),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_message_bytes),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_self),
    };
    return cmocka_run_group_tests_name("coll plan", tests, NULL, NULL);
}
