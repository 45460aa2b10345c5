/* libddp: opening, running and ending worlds; barrier, abort, memory. Ranks are threads
 * (DDP_LAUNCH_THREADS) and processes. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ddp_ranks.h"
#include "names.h"

static void test_init_one(void **state)
{
    struct ddp *d = NULL;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_init(NULL, &d, &err), 0);
    assert_non_null(d);
    assert_int_equal(ddp_rank(d), 0);
    assert_int_equal(ddp_size(d), 1);
    assert_int_equal(ddp_local_rank(d), 0);
    assert_string_equal(ddp_name(d), "self");
    assert_int_equal(ddp_barrier(d, NULL, &err), 0);
    float x = 3;
    const struct ddp_array array = {&x, 1, DDP_F32};
    assert_int_equal(ddp_all_reduce(d, &array, 1, NULL, &err), 0);
    assert_true(x == 3);

    /* A second call is an error and leaves the first world alone. */
    struct ddp *other = NULL;
    assert_int_equal(ddp_init(NULL, &other, &err), DDP_EUSAGE);
    assert_null(other);
    assert_true(text_names(err.text, "world"));
    assert_int_equal(ddp_init(NULL, &other, NULL), DDP_EUSAGE);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_barrier(d, NULL, &err), 0);

    /* Starting ranks from inside a world is an error, too. */
    assert_int_equal(ddp_run(1, true, NULL, NULL, NULL, &err), DDP_EUSAGE);
    assert_true(text_names(err.text, "rank"));

    /* After finalize another world may be opened. */
    ddp_finalize(d);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_init(NULL, &d, &err), 0);
    ddp_finalize(d);
    ddp_finalize(NULL);
}

static void test_init_options(void **state)
{
    static const struct {
        struct ddp_init_options options;
        const char *text;
    } wrong[] = {
        {{.timeout_s = -1}, "timeout_s|-1"},     {{.timeout_s = 1e300}, "timeout_s|1e+300"},
        {{.timeout_s = 0.0 / 0.0}, "timeout_s"}, {{.heap_bytes = UINT64_MAX}, "heap_bytes"},
        {{.backend = "shm"}, "'shm'"},           {{.backend = "pigeons"}, "'pigeons'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ddp *d = NULL;
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(ddp_init(&wrong[i].options, &d, &err), DDP_EUSAGE);
        assert_null(d);
        assert_true(text_names(err.text, wrong[i].text));
    }
    /* The backend is named, and there is no mpiexec. */
    struct ddp *d = NULL;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_init(&(struct ddp_init_options){.backend = "mpi"}, &d, &err),
                     DDP_EUNAVAIL);
    err = DDP_ERR_INIT;
    assert_int_equal(
        ddp_init(&(struct ddp_init_options){.backend = "self", .timeout_s = 1}, &d, &err), 0);
    ddp_finalize(d);
}

/* A process that mpiexec started must not open a world of one rank. Without the right module it
 * cannot open any. */
static void test_init_launched(void **state)
{
    struct ddp *d = NULL;
    struct ddp_err err = DDP_ERR_INIT;
    setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    int self = ddp_init(&(struct ddp_init_options){.backend = "self"}, &d, &err);
    struct ddp_err absent = DDP_ERR_INIT;
    int none = ddp_init(&(struct ddp_init_options){.module_dir = "/nowhere"}, &d, &absent);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    assert_int_equal(self, DDP_EMISMATCH);
    assert_true(text_names(err.text, "3"));
    assert_int_equal(none, DDP_EUNAVAIL);
    assert_true(text_names(absent.text, "/nowhere"));
    assert_null(d);
}

/* Shared by parent and ranks. */
struct board {
    _Atomic(int) seen, order;
};

static struct board *board_create(void)
{
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    return map;
}

static int body_who(struct ddp *d, void *arg, struct ddp_err *err)
{
    struct board *board = arg;
    CHECK(ddp_size(d) == 4 && ddp_rank(d) >= 0 && ddp_rank(d) < 4);
    CHECK(ddp_local_rank(d) == ddp_rank(d));
    CHECK(strcmp(ddp_name(d), "shm") == 0);
    atomic_fetch_add(&board->seen, 1 << 8 * ddp_rank(d));
    struct ddp *other = NULL;
    CHECK_FAILS(DDP_EUSAGE, "world", ddp_init(NULL, &other, refused));
    CHECK_FAILS(DDP_EUSAGE, "rank", ddp_run(2, true, NULL, body_who, arg, refused));
    return 0;
}

static void test_run(void **state)
{
    struct board *board = board_create();
    for (int threads = ONLY_THREADS; threads <= 1; threads++) {
        struct ddp_err err = DDP_ERR_INIT;
        atomic_store(&board->seen, 0);
        if (ddp_run(4, threads, NULL, body_who, board, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(atomic_load(&board->seen), 0x01010101);
    }
    /* After ddp_run this process may be a rank itself. */
    struct ddp *d;
    assert_int_equal(ddp_init(NULL, &d, NULL), 0);
    ddp_finalize(d);
    munmap(board, 4096);
}

static int body_fails(struct ddp *d, void *arg, struct ddp_err *err)
{
    if (ddp_rank(d) != 1)
        return ddp_barrier(d, NULL, err);
    int code = *(int *)arg;
    if (code == 0)
        raise(SIGKILL);
    return code > 0 ? code : ddp_fail(err, code, "the disk is full");
}

static void expect_failure(bool threads, int code, int expected, const char *text)
{
    struct ddp_err err = DDP_ERR_INIT;
    const int64_t start = ddp_now_ns();
    int rc = ddp_run(3, threads, &test_options, body_fails, &code, &err);
    if (rc != expected || err.code != rc || err.rank != 1 || !text_names(err.text, text) ||
        !text_names(err.text, "rank 1"))
        fail_msg("%d from rank %d: %s", rc, err.rank, err.text);
    assert_true(ddp_now_ns() - start < 5000000000);
}

static void test_run_fails(void **state)
{
    for (int threads = ONLY_THREADS; threads <= 1; threads++) {
        expect_failure(threads, DDP_EIO, DDP_EIO, "the disk is full");
        expect_failure(threads, 7, DDP_EINTERNAL, "rank_main");
    }
    if (!ONLY_THREADS)
        expect_failure(false, 0, DDP_ELOST, "signal 9");
}

static void *sleep_thread(void *arg)
{
    pthread_mutex_lock(arg);
    pthread_mutex_unlock(arg);
    return NULL;
}

static void test_run_options(void **state)
{
    static const struct {
        int ranks;
        struct ddp_init_options options;
        const char *text;
    } wrong[] = {
        {.ranks = 0, .text = "0 ranks"},
        {.ranks = -1, .text = "-1 ranks"},
        {.ranks = 257, .text = "257 ranks"},
        {.ranks = 2, .options = {.backend = "mpi"}, .text = "'mpi'"},
        {.ranks = 2, .options = {.timeout_s = -1}, .text = "timeout_s"},
    };
    struct board *board = board_create();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(ddp_run(wrong[i].ranks, true, &wrong[i].options, body_who, board, &err),
                         DDP_EUSAGE);
        assert_true(text_names(err.text, wrong[i].text));
    }
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    struct ddp_err err = DDP_ERR_INIT;
    pthread_mutex_lock(&lock);
    assert_int_equal(pthread_create(&thread, NULL, sleep_thread, &lock), 0);
    int rc = ddp_run(4, false, NULL, body_who, board, &err);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    assert_int_equal(rc, DDP_EUSAGE);
    if (!ONLY_THREADS) /* ThreadSanitizer starts a thread of its own */
        assert_true(text_names(err.text, "2"));
    assert_int_equal(atomic_load(&board->seen), 0);
    munmap(board, 4096);
}

/* No rank leaves a barrier before all have entered it. */
static int body_barrier(struct ddp *d, void *arg, struct ddp_err *err)
{
    struct board *board = arg;
    for (int i = 1; i <= 20; i++) {
        if (i % ddp_size(d) == ddp_rank(d))
            ddp_sleep_ns(1000000);
        atomic_fetch_add(&board->order, 1);
        DDP_TRY(ddp_barrier(d, i % 2 ? NULL : ddp_get_group(d, "world"), err));
        CHECK(atomic_load(&board->order) >= i * ddp_size(d));
    }
    return 0;
}

static void test_barrier(void **state)
{
    struct board *board = board_create();
    for (int ranks = 1; ranks <= 4; ranks++) {
        for (int threads = ONLY_THREADS; threads <= 1; threads++) {
            struct ddp_err err = DDP_ERR_INIT;
            atomic_store(&board->order, 0);
            if (ddp_run(ranks, threads, &test_options, body_barrier, board, &err) != 0)
                fail_msg("%s", err.text);
        }
    }
    munmap(board, 4096);
}

/* Ranks that call different operations get an error, and can continue. */
static int body_mixed(struct ddp *d, void *arg, struct ddp_err *err)
{
    float x = 1;
    const struct ddp_array array = {&x, 1, DDP_F32};
    if (ddp_rank(d) == 1)
        CHECK_FAILS(DDP_EMISMATCH, "rank 1|all_reduce|rank 0|barrier",
                    ddp_all_reduce(d, &array, 1, NULL, refused));
    else
        CHECK_FAILS(DDP_EMISMATCH, "rank 1|all_reduce|rank 0|barrier",
                    ddp_barrier(d, NULL, refused));
    return ddp_barrier(d, NULL, err);
}

static void test_mixed(void **state)
{
    run_ranks(2, body_mixed, NULL);
    run_ranks(3, body_mixed, NULL);
}

static int body_abort(struct ddp *d, void *arg, struct ddp_err *err)
{
    const int64_t start = ddp_now_ns();
    if (ddp_rank(d) == 1) {
        ddp_sleep_ns(20000000);
        ddp_abort(d, DDP_EIO);
    }
    CHECK_FAILS(DDP_ELOST, "", ddp_barrier(d, NULL, refused));
    CHECK_FAILS(DDP_ELOST, "", ddp_barrier(d, NULL, refused));
    CHECK(ddp_now_ns() - start < 2000000000);
    return 0;
}

static void test_abort(void **state)
{
    for (int threads = ONLY_THREADS; threads <= 1; threads++) {
        struct ddp_err err = DDP_ERR_INIT;
        int rc = ddp_run(3, threads, &test_options, body_abort, NULL, &err);
        if (rc != DDP_EIO || err.rank != 1 || text_names(err.text, "CHECK"))
            fail_msg("%d: %s", rc, err.text);
    }
    /* A world of one rank ends by abort, too. Code 0 is not a valid reason. */
    struct ddp *d;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_init(NULL, &d, NULL), 0);
    ddp_abort(d, 0);
    assert_int_equal(ddp_barrier(d, NULL, &err), DDP_ELOST);
    ddp_finalize(d);
}

/* A rank never takes part: the deadline of the options ends the wait. */
static int body_late(struct ddp *d, void *arg, struct ddp_err *err)
{
    if (ddp_rank(d) == 1) {
        ddp_sleep_ns(700000000);
        return 0;
    }
    const int64_t start = ddp_now_ns();
    CHECK_FAILS(DDP_ELOST, "200 ms|rank 1", ddp_barrier(d, NULL, refused));
    CHECK(ddp_now_ns() - start > 150000000 && ddp_now_ns() - start < 650000000);
    return 0;
}

static void test_deadline(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_init_options options = {.timeout_s = 0.2};
    int rc = ddp_run(2, true, &options, body_late, NULL, &err);
    if (rc != DDP_ELOST || err.rank != 1 || text_names(err.text, "test_ddp"))
        fail_msg("%d: %s", rc, err.text);
}

static int body_alloc(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const size_t sizes[] = {0, 1, 4096, 100000, 5u << 20};
    void *block[5] = {NULL};
    for (int i = 0; i < 5; i++) {
        DDP_TRY(ddp_alloc(d, sizes[i], &block[i], err));
        CHECK(block[i] != NULL && (uintptr_t)block[i] % 4096 == 0);
        memset(block[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < 5; i++)
        for (size_t j = 0; j < sizes[i]; j += 997)
            CHECK(((unsigned char *)block[i])[j] == i + 1);
    for (int i = 0; i < 5; i++)
        ddp_free(d, block[i]);
    ddp_free(d, NULL);
    ddp_free(d, block[1]);
    ddp_free(d, &block);
    /* Freed memory can be allocated again. The heap holds 64 MiB, and as much again for
     * rounding. */
    for (int i = 0; i < 20; i++) {
        void *again;
        DDP_TRY(ddp_alloc(d, 48u << 20, &again, err));
        ddp_free(d, again);
    }
    void *none = NULL;
    CHECK_FAILS(DDP_ENOMEM, "1 GiB", ddp_alloc(d, (size_t)1 << 30, &none, refused));
    CHECK(none == NULL);
    if (ddp_size(d) > 1)
        CHECK_FAILS(DDP_EMISMATCH, "alloc", ddp_alloc(d, (size_t)ddp_rank(d) + 1, &none, refused));
    /* ddp_finalize frees it. */
    return ddp_alloc(d, 1 << 20, &none, err);
}

static void test_alloc(void **state)
{
    run_all_ranks(3, body_alloc, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_one),      cmocka_unit_test(test_init_options),
        cmocka_unit_test(test_init_launched), cmocka_unit_test(test_run),
        cmocka_unit_test(test_run_fails),     cmocka_unit_test(test_run_options),
        cmocka_unit_test(test_barrier),       cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_abort),         cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_alloc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
