/* The `run` function of an algorithm allocates no memory (invariant 5 of lib/ARCHITECTURE.md). The
 * functions that allocate memory are replaced by functions that count their calls. Every algorithm
 * runs once, and then several times while the calls are counted. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm/shm/shm_impl.h"
#include "grid/grid.h"
#include "grid/sparse_lists.h"

/* With a sanitizer, or without glibc, malloc and mmap cannot be replaced here. The algorithms then
 * run, but no call is counted. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define COUNTS 0
#else
#define COUNTS 1
#endif

#define RUNS       3
#define SPARSE_N   ((size_t)10007)
#define SPARSE_K   ((size_t)1009)
#define ALGORITHMS 128

/* counting: the calls of this thread are counted. calls: the number of these calls that the
 * invariant forbids. early_header: the last call may have been the first of the two calls for a
 * message that arrives before its receive is posted (keep_early in lib/comm/shm/shm_pipe.c). */
static _Thread_local bool counting, messages_allowed, early_header;
static _Thread_local int calls;
/* How often a rank has run the algorithm with this index. */
static atomic_int dense_runs[ALGORITHMS], sparse_runs[ALGORITHMS];

#if COUNTS
/* Counts a call of calloc. The calls for an early message are calloc for its header, and malloc for
 * its data. */
static void count_calloc(size_t bytes)
{
    early_header = messages_allowed && bytes == sizeof(struct ddp_shm_message);
    calls += counting && !early_header;
}

static void count_malloc(void)
{
    calls += counting && !early_header;
    early_header = false;
}

static void count_other(void)
{
    calls += counting;
    early_header = false;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *ptr, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    count_malloc();
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    count_calloc(n * bytes);
    return __libc_calloc(n, bytes);
}

void *realloc(void *ptr, size_t bytes)
{
    count_other();
    return __libc_realloc(ptr, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_other();
    return __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    count_other();
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    count_other();
    *out = __libc_memalign(alignment, bytes);
    return *out != NULL ? 0 : ENOMEM;
}

void *mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
    count_other();
    return (void *)syscall(SYS_mmap, addr, length, protection, flags, fd, offset);
}
#endif

static void begin_count(unsigned needs)
{
    /* An algorithm without DDP_NEEDS_SHARED may send messages. DDP_NEEDS_MESSAGES is not tested,
     * because "hier" sends messages only between hosts and lacks it. */
    messages_allowed = (needs & DDP_NEEDS_SHARED) == 0;
    early_header = false;
    calls = 0;
    counting = true;
}

static int end_count(const char *what, const char *name, struct ddp_err *err)
{
    counting = false;
    return calls == 0 ? 0
                      : ddp_fail(err, DDP_EDATA, "%d runs of %s %s called malloc or mmap %d times",
                                 RUNS, what, name, calls);
}

static int run_dense(const struct grid *grid, int index, const struct ddp_coll_args *args,
                     struct ddp_err *err)
{
    const struct ddp_coll_alg *alg = ddp_coll_algorithms()[index];
    struct ddp_coll_plan plan;
    struct ddp_err reason = DDP_ERR_INIT;
    int rc = ddp_coll_plan_init(&plan, grid->comm, alg, args, &reason);
    if (rc == DDP_EUNAVAIL)
        return 0;
    if (rc == 0)
        rc = ddp_coll_run(grid->comm, &plan, &reason);
    begin_count(alg->needs);
    for (int i = 0; i < RUNS && rc == 0; i++)
        rc = ddp_coll_run(grid->comm, &plan, &reason);
    ddp_coll_plan_release(&plan);
    if (rc != 0) {
        counting = false;
        return ddp_fail(err, rc, "%s %s: %s", ddp_coll_name(args->coll), alg->name, reason.text);
    }
    atomic_fetch_add(&dense_runs[index], 1);
    return end_count(ddp_coll_name(args->coll), alg->name, err);
}

static int run_all_dense(const struct grid *grid, struct ddp_err *err)
{
    static const size_t counts[] = {1, 1000, 100000};
    static const struct {
        enum ddp_dtype dtype;
        enum ddp_op op;
    } kinds[] = {{DDP_F32, DDP_SUM}, {DDP_F16, DDP_AVG}};
    const int n = grid->comm->size;
    size_t split[GRID_RANKS_MAX * GRID_RANKS_MAX];

    for (size_t c = 0; c < DDP_COUNT_OF(counts) * DDP_COUNT_OF(kinds) * 2; c++) {
        const bool registered = c % 2 == 1;
        const size_t count = counts[c / 2 % DDP_COUNT_OF(counts)];
        for (int i = 0; i < n * n; i++)
            split[i] = i % 3 == 1 ? 0 : count;
        for (int a = 0; ddp_coll_algorithms()[a] != NULL; a++) {
            const enum ddp_coll coll = ddp_coll_algorithms()[a]->coll;
            const struct ddp_coll_args args = {
                .coll = coll,
                .send = grid->memory[registered][0],
                .recv = grid->memory[registered][1],
                .count = coll == DDP_BARRIER ? 0 : count,
                .dtype = kinds[c / 2 / DDP_COUNT_OF(counts)].dtype,
                .op = kinds[c / 2 / DDP_COUNT_OF(counts)].op,
                .split = ddp_coll_has_split(coll) ? split : NULL,
            };
            DDP_TRY(run_dense(grid, a, &args, err));
        }
    }
    return 0;
}

static int run_sparse(const struct grid *grid, int index, const struct ddp_sparse_args *args,
                      struct ddp_err *err)
{
    const struct ddp_sparse_alg *alg = ddp_sparse_algorithms()[index];
    struct ddp_err reason = DDP_ERR_INIT;
    if (ddp_sparse_supports(alg, grid->comm, args->n, &reason) != 0)
        return 0;
    const size_t bytes =
        (alg->scratch_bytes(grid->comm, args->n, args->most) + DDP_CACHE_LINE - 1) /
        DDP_CACHE_LINE * DDP_CACHE_LINE;
    void *scratch = aligned_alloc(DDP_CACHE_LINE, DDP_MAX(bytes, (size_t)DDP_CACHE_LINE));
    if (scratch == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the scratch");
    memset(scratch, 0, bytes);
    int rc = ddp_sparse_run(grid->comm, alg, args, scratch, err);
    begin_count(alg->needs);
    for (int i = 0; i < RUNS && rc == 0; i++)
        rc = ddp_sparse_run(grid->comm, alg, args, scratch, err);
    counting = false;
    free(scratch);
    DDP_TRY(rc);
    atomic_fetch_add(&sparse_runs[index], 1);
    return end_count("the sparse all-reduce", alg->name, err);
}

static int run_all_sparse(const struct grid *grid, struct ddp_err *err)
{
    for (int uneven = 0; uneven < 2; uneven++) {
        const struct lists_case c = {
            .values = VALUES_NORMAL, .n = SPARSE_N, .k = SPARSE_K, .uneven = uneven, .seed = 7};
        struct ddp_sparse_args args = {
            .mine = {.index = (uint32_t *)(void *)grid->memory[1][0],
                     .value = (float *)(void *)grid->memory[1][1]},
            .result = (float *)(void *)grid->memory[0][0],
            .n = SPARSE_N,
            .most = SPARSE_K,
            .k = SPARSE_K,
            .fixed = !uneven,
            .rejected = (float *)(void *)grid->memory[0][1],
            .scale = 1,
        };
        lists_fill(&c, grid->comm->rank, grid->comm->size, &args.mine);
        memset(args.rejected, 0, SPARSE_N * sizeof(float));
        for (int a = 0; ddp_sparse_algorithms()[a] != NULL; a++)
            DDP_TRY(run_sparse(grid, a, &args, err));
    }
    return 0;
}

static int run_all(const struct grid *grid, struct ddp_err *err)
{
    memset(grid->memory[0][0], 0, GRID_ARRAY_BYTES);
    memset(grid->memory[1][0], 0, GRID_ARRAY_BYTES);
    DDP_TRY(run_all_dense(grid, err));
    DDP_TRY(ddp_comm_barrier(grid->comm, err));
    DDP_TRY(run_all_sparse(grid, err));
    return ddp_comm_barrier(grid->comm, err);
}

static void test_calls_are_counted(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    void *volatile block;
    begin_count(DDP_NEEDS_SHARED);
    block = malloc(100);
    free(block);
    assert_int_equal(end_count("a", "malloc", &err), COUNTS ? DDP_EDATA : 0);
    begin_count(DDP_NEEDS_MESSAGES);
    block = ddp_alloc_pages(100);
    ddp_free_pages(block, 100);
    block = calloc(1, sizeof(struct ddp_shm_message)); /* an early message */
    free(block);
    block = malloc(100);
    free(block);
    counting = false;
    assert_int_equal(calls, COUNTS ? 1 : 0);
}

static void test_one_host(void **state)
{
    (void)state;
    struct grid_job job = {.body = run_all};
    for (int ranks = 1; ranks <= 4; ranks++)
        grid_start(&job, DDP_LAUNCH_THREADS, ranks);
}

/* Algorithm "hier" runs only on several hosts. */
static void test_two_hosts(void **state)
{
    (void)state;
    struct grid_job job = {.body = run_all};
    setenv("DDPBENCH_SIMULATE_HOSTS", "2", 1);
    grid_start(&job, DDP_LAUNCH_THREADS, 4);
    unsetenv("DDPBENCH_SIMULATE_HOSTS");
}

/* Native algorithms need not have run, because the rule does not apply to the library of a
 * backend. */
static void test_all_ran(void **state)
{
    (void)state;
    for (int a = 0; ddp_coll_algorithms()[a] != NULL; a++) {
        const struct ddp_coll_alg *alg = ddp_coll_algorithms()[a];
        assert_true(a < ALGORITHMS);
        if (!(alg->needs & DDP_NEEDS_LIBRARY) && atomic_load(&dense_runs[a]) == 0)
            fail_msg("%s %s did not run", ddp_coll_name(alg->coll), alg->name);
    }
    for (int a = 0; ddp_sparse_algorithms()[a] != NULL; a++)
        if (atomic_load(&sparse_runs[a]) == 0)
            fail_msg("the sparse all-reduce %s did not run", ddp_sparse_algorithms()[a]->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_are_counted),
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_all_ran),
    };
    return cmocka_run_group_tests_name("memory of run()", tests, NULL, NULL);
}
