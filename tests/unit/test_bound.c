/* Bounds of a point, the memcpy baseline, and the interference of other processes. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/sysinfo.h"
#include "base/mem.h"
#include "bench/bound.h"
#include "bench/memory_baseline.h"
#include "comm_ranks.h"

#define BYTES (1 << 20)

static void point_of(const struct ddp_comm *comm, uint64_t bytes, struct ddp_point *p)
{
    ddp_point_init(p);
    p->spec.coll = DDP_ALLREDUCE;
    p->spec.ranks = comm->size;
    p->spec.size_bytes = bytes;
    p->spec.count = bytes / 4;
    p->time_ns.median = 1e6;
    p->pingpong_ns[0] = 300;
    p->pingpong_ns[1] = 200;
}

static struct ddp_coll_shape shape_of(const struct ddp_point *p)
{
    return (struct ddp_coll_shape){
        .coll = DDP_ALLREDUCE, .count = p->spec.count, .in_place = true, .registered = true};
}

/* Checks the bound `memory` of one call. bytes: bytes that all ranks must read and write. */
static int check_call(struct ddp_comm *comm, struct ddp_bound *b, enum ddp_coll coll,
                      const char *algorithm, bool in_place, double bytes, struct ddp_err *err)
{
    const struct ddp_coll_alg *alg = ddp_coll_find(coll, algorithm);
    struct ddp_point p;
    point_of(comm, BYTES, &p);
    p.spec.coll = coll;
    p.spec.placement = in_place ? DDP_IN_PLACE : DDP_OUT_OF_PLACE;
    struct ddp_coll_shape shape = shape_of(&p);
    shape.coll = coll;
    shape.in_place = in_place;
    DDP_TRY(ddp_bound_before(b, alg, &shape, &p, err));
    CHECK(p.bound_before_ns > 0 && isnan(p.bound_after_ns));
    DDP_TRY(ddp_bound_fill(b, alg, &shape, &p, err));
    CHECK(strcmp(p.bound_kind, "memory") == 0);
    CHECK(p.bound_GBps > 0.1 && p.bound_GBps < 1e5);
    CHECK(p.bound_after_ns > 0 && p.bound_ns == fmin(p.bound_before_ns, p.bound_after_ns));
    CHECK(p.bound_fraction == p.bound_ns / 1e6);
    if (fabs(p.bound_ns * p.bound_GBps / bytes - 1) > 1e-9)
        print_message("%s %s: %g bytes, not %g\n", ddp_coll_name(coll), algorithm,
                      p.bound_ns * p.bound_GBps, bytes);
    CHECK(fabs(p.bound_ns * p.bound_GBps / bytes - 1) < 1e-9);
    return 0;
}

/* Each input is read once and each result is written once, whichever algorithm runs. */
static int check_memory(struct ddp_comm *comm, struct ddp_bound *b, struct ddp_err *err)
{
    const double n = comm->size, all = n * BYTES;
    DDP_TRY(check_call(comm, b, DDP_ALLREDUCE, "direct", true, 2 * all, err));
    DDP_TRY(check_call(comm, b, DDP_ALLREDUCE, "direct", false, 2 * all, err));
    DDP_TRY(check_call(comm, b, DDP_ALLREDUCE, "staged", false, 2 * all, err));
    DDP_TRY(check_call(comm, b, DDP_ALLREDUCE, "ring", true, 2 * all, err));
    for (int in_place = 0; in_place < 2; in_place++) {
        const double part = BYTES / (int)n, kept = in_place ? 1 : 0;
        DDP_TRY(
            check_call(comm, b, DDP_REDUCE_SCATTER, "direct", in_place, n * (n + 1) * part, err));
        DDP_TRY(check_call(comm, b, DDP_REDUCE, "direct", in_place, n * (n + 1) * part, err));
        DDP_TRY(check_call(comm, b, DDP_ALL_GATHER, "direct", in_place, n * (n + 1 - kept) * part,
                           err));
        DDP_TRY(
            check_call(comm, b, DDP_BROADCAST, "staged", in_place, n * (n + 1 - kept) * part, err));
    }
    DDP_TRY(check_call(comm, b, DDP_ALL_TO_ALL, "direct", false, 2 * all, err));
    DDP_TRY(check_call(comm, b, DDP_ALL_GATHER_V, "direct", false, n * (n + 1) * (BYTES / (int)n),
                       err));
    DDP_TRY(check_call(comm, b, DDP_REDUCE_SCATTER_V, "direct", false,
                       n * (n + 1) * (BYTES / (int)n), err));
    DDP_TRY(check_call(comm, b, DDP_ALL_TO_ALL_V, "direct", false, 2 * all, err));
    DDP_TRY(check_call(comm, b, DDP_SEND_RECV, "direct", false, 2 * all, err));
    DDP_TRY(check_call(comm, b, DDP_GATHER, "direct", false, 2 * n * (BYTES / (int)n), err));
    return check_call(comm, b, DDP_SCATTER, "staged", false, 2 * n * (BYTES / (int)n), err);
}

/* The time of the point must not change the bound, and the faster measurement counts. */
static int check_judged(struct ddp_comm *comm, struct ddp_bound *b, struct ddp_err *err)
{
    const struct ddp_coll_alg *direct = ddp_coll_find(DDP_ALLREDUCE, "direct");
    struct ddp_point p;
    point_of(comm, BYTES, &p);
    const struct ddp_coll_shape shape = shape_of(&p);
    p.time_ns.median = 1;
    DDP_TRY(ddp_bound_before(b, direct, &shape, &p, err));
    DDP_TRY(ddp_bound_fill(b, direct, &shape, &p, err));
    CHECK(p.bound_ns > 1 && p.bound_fraction == p.bound_ns);
    p.bound_before_ns = 1;
    DDP_TRY(ddp_bound_fill(b, direct, &shape, &p, err));
    CHECK(p.bound_ns == 1 && p.bound_after_ns > 1);
    p.bound_before_ns = NAN;
    DDP_TRY(ddp_bound_fill(b, direct, &shape, &p, err));
    CHECK(p.bound_ns == p.bound_after_ns);
    return 0;
}

static int check_latency(struct ddp_comm *comm, struct ddp_bound *b, struct ddp_err *err)
{
    const struct ddp_coll_alg *flat = ddp_coll_find(DDP_ALLREDUCE, "flat");
    struct ddp_point p;
    struct ddp_coll_cost cost;
    point_of(comm, 8, &p);
    struct ddp_coll_shape shape = shape_of(&p);
    DDP_TRY(ddp_bound_fill(b, flat, &shape, &p, err));
    ddp_coll_cost_of(flat, comm->size, &shape, &cost);
    CHECK(strcmp(p.bound_kind, "latency") == 0 && isnan(p.bound_GBps));
    CHECK(p.bound_ns == cost.steps * 100); /* the ping-pong after the point: 200 ns */
    DDP_TRY(ddp_bound_before(b, flat, &shape, &p, err));
    CHECK(p.bound_before_ns == cost.steps * 150); /* the one before the point: 300 ns */
    DDP_TRY(ddp_bound_fill(b, flat, &shape, &p, err));
    CHECK(p.bound_ns == cost.steps * 100);
    point_of(comm, 8, &p);
    p.pingpong_ns[0] = p.pingpong_ns[1] = NAN;
    DDP_TRY(ddp_bound_fill(b, flat, &shape, &p, err));
    CHECK(p.bound_kind[0] == '\0' && isnan(p.bound_ns) && isnan(p.bound_fraction));
    return 0;
}

/* On a backend that only sends messages, the bound follows from the messages alone. */
static int check_messages(struct ddp_comm *comm, struct ddp_bound *b, struct ddp_err *err)
{
    const struct ddp_coll_alg *ring = ddp_coll_find(DDP_ALLREDUCE, "ring");
    struct ddp_point p;
    struct ddp_coll_cost cost;
    point_of(comm, BYTES, &p);
    struct ddp_coll_shape shape = shape_of(&p);
    ddp_coll_cost_of(ring, comm->size, &shape, &cost);
    DDP_TRY(ddp_bound_fill(b, ring, &shape, &p, err));
    CHECK(strcmp(p.bound_kind, "point-to-point") == 0);
    CHECK(fabs(p.bound_ns * p.bound_GBps / cost.sent_bytes - 1) < 1e-9);
    point_of(comm, 8, &p);
    shape = shape_of(&p);
    ddp_coll_cost_of(ring, comm->size, &shape, &cost);
    DDP_TRY(ddp_bound_fill(b, ring, &shape, &p, err));
    CHECK(p.bound_ns > 10 * cost.steps && isnan(p.bound_GBps));
    /* an algorithm on shared memory sends no messages, whichever backend the ranks have */
    const struct ddp_coll_alg *direct = ddp_coll_find(DDP_ALLREDUCE, "direct");
    point_of(comm, BYTES, &p);
    shape = shape_of(&p);
    DDP_TRY(ddp_bound_fill(b, direct, &shape, &p, err));
    CHECK(strcmp(p.bound_kind, "memory") == 0);
    return 0;
}

/* The backend of this rank, its barriers, and the delay before each of them. */
static _Thread_local const struct ddp_backend *real;
static _Thread_local int barriers;
static _Thread_local int64_t delay_ns;

static int slow_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    barriers++;
    nanosleep(&(struct timespec){.tv_nsec = delay_ns}, NULL);
    return real->barrier(comm, err);
}

/* A loop of 64 KiB has one barrier per round, and up to 1,000 rounds. It has few if the user asked
 * for few iterations, and if other programs delay the barriers. */
static int check_rounds(struct ddp_comm *comm, struct ddp_bound_setup setup, struct ddp_err *err)
{
    const struct ddp_coll_alg *direct = ddp_coll_find(DDP_ALLREDUCE, "direct");
    struct ddp_backend slow = *comm->backend;
    struct ddp_point p;
    real = comm->backend;
    slow.barrier = slow_barrier;
    point_of(comm, DDP_BOUND_BYTES, &p);
    const struct ddp_coll_shape shape = shape_of(&p);
    for (int i = 0; i < 2; i++) {
        struct ddp_bound *b;
        setup.iters = i == 0 ? 3 : 0;
        delay_ns = i == 0 ? 0 : 4000000;
        barriers = 0;
        DDP_TRY(ddp_bound_create(&setup, &b, err));
        comm->backend = &slow;
        const int rc = ddp_bound_before(b, direct, &shape, &p, err);
        comm->backend = real;
        ddp_bound_destroy(b);
        DDP_TRY(rc);
        /* three loops, each with one round more to choose the number of rounds */
        CHECK(p.bound_before_ns > 0 && barriers <= 3 * (i == 0 ? 2 + 3 * DDP_BOUND_ROUNDS : 40));
    }
    return 0;
}

static int body_bounds(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    struct ddp_bound *b;
    void *x, *y;
    comm->device = ddp_device_cpu(DDP_SIMD_SCALAR);
    DDP_TRY(ddp_comm_alloc(comm, BYTES, &x, err));
    DDP_TRY(ddp_comm_alloc(comm, BYTES, &y, err));
    const struct ddp_bound_setup setup = {comm, comm, x, y, BYTES, 0};
    DDP_TRY(ddp_bound_create(&setup, &b, err));
    int rc = comm->size > 1 ? check_memory(comm, b, err) : 0;
    if (rc == 0 && comm->size > 1)
        rc = check_judged(comm, b, err);
    if (rc == 0 && comm->size > 1)
        rc = check_latency(comm, b, err);
    if (rc == 0 && comm->size > 1) {
        const struct ddp_backend *shm = comm->backend;
        struct ddp_backend sends = *shm;
        sends.caps &= ~(unsigned)DDP_CAP_MAP;
        comm->backend = &sends;
        rc = check_messages(comm, b, err);
        comm->backend = shm;
    }
    if (rc == 0 && comm->size > 1)
        rc = check_rounds(comm, setup, err);
    struct ddp_point p;
    point_of(comm, 0, &p);
    const struct ddp_coll_shape none = shape_of(&p);
    if (rc == 0 && comm->size == 1) {
        rc = ddp_bound_fill(b, ddp_coll_find(DDP_ALLREDUCE, "self"), &none, &p, err);
        CHECK(p.bound_kind[0] == '\0');
    }
    ddp_bound_destroy(b);
    ddp_comm_free(comm, y);
    ddp_comm_free(comm, x);
    return rc;
}

static int body_control(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    struct ddp_control c, all[3];
    DDP_TRY(ddp_memory_baseline_measure(comm, &c, err));
    CHECK(c.ranks == comm->size && c.bytes_per_rank >= 1 << 20);
    CHECK(c.copy_GBps > 0.05 && c.copy_GBps < 1e5 && c.read_GBps > 0.05 && c.read_GBps < 1e5);
    DDP_TRY(ddp_comm_allgather_bytes(comm, &c.copy_GBps, all, sizeof c.copy_GBps, err));
    for (int r = 0; r < comm->size; r++)
        CHECK(((double *)all)[r] == c.copy_GBps);
    return 0;
}

static void run(int (*body)(struct ddp_comm *, struct ddp_launch_rank *, void *, struct ddp_err *))
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(
            ranks_run(ranks, DDP_LAUNCH_THREADS, (struct ranks_job){.body = body}, &outcome, &err),
            0);
        if (outcome.code != 0)
            print_message("%d ranks: %s\n", ranks, err.text);
        assert_int_equal(outcome.code, 0);
    }
}

static void test_bounds(void **state)
{
    run(body_bounds);
}

static void test_control(void **state)
{
    run(body_control);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Writes the clock of every processor that may run this test. */
static void write_clocks(const char *dir, const char *kHz)
{
    char path[96];
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        snprintf(path, sizeof path, "%s/cpu%d", dir, cpu);
        (void)mkdir(path, 0700); /* may exist */
        snprintf(path, sizeof path, "%s/cpu%d/cpufreq", dir, cpu);
        (void)mkdir(path, 0700);
        write_file(path, "scaling_cur_freq", kHz);
    }
}

/* Files as Linux shows them: both versions of control groups, and no group. */
static void test_interference(void **state)
{
    char dir[] = "/tmp/ddp_test_bound_XXXXXX", stat[64], membership[64], path[96];
    struct ddp_interference before, after;
    assert_non_null(mkdtemp(dir));
    snprintf(stat, sizeof stat, "%s/stat", dir);
    snprintf(membership, sizeof membership, "%s/cgroup", dir);
    const struct ddp_interference_files files = {stat, membership, dir, dir};
    ddp_interference_read_from(&files, &before);
    assert_true(isnan(before.steal_ms) && isnan(before.throttled_ms) && isnan(before.clock_MHz));
    /* the kernel gives this counter without a file */
    assert_true(before.involuntary_switches >= 0);

    write_file(dir, "stat", "cpu  10 20 30 40 50 60 70 800 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
    write_file(dir, "cgroup", "0::/job\n");
    snprintf(path, sizeof path, "%s/job", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, "cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 1500\n");
    write_clocks(dir, "2500000\n");
    ddp_interference_read_from(&files, &before);
    assert_true(before.throttled_ms == 1.5 && before.clock_MHz == 2500);
    assert_true(before.steal_ms == 800e3 / (double)sysconf(_SC_CLK_TCK));

    /* Version 1, in a container that sees only its mount. */
    snprintf(path, sizeof path, "%s/cpu", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, "cpu.stat", "nr_periods 1\nthrottled_time 2500000\n");
    write_file(dir, "cgroup", "3:cpuset:/\n2:cpu,cpuacct:/of/the/host\n");
    write_file(dir, "stat", "cpu  10 20 30 40 50 60 70 801 0 0\n");
    write_clocks(dir, "3000000\n");
    ddp_interference_read_from(&files, &after);
    assert_true(after.throttled_ms == 2.5 && after.clock_MHz == 3000);
    after.involuntary_switches = before.involuntary_switches + 3;
    ddp_interference_since(&before, &after);
    assert_true(after.throttled_ms == 1 && after.involuntary_switches == 3);
    assert_true(after.clock_MHz == 2500); /* the lower clock */
    assert_true(fabs(after.steal_ms - 1e3 / (double)sysconf(_SC_CLK_TCK)) < 1e-6);

    /* A counter that is unknown before or after stays unknown. A counter that went backwards
     * counts as 0. */
    before = (struct ddp_interference){20, NAN, -1, NAN};
    after = (struct ddp_interference){10, 5, 7, 3000};
    ddp_interference_since(&before, &after);
    assert_true(after.steal_ms == 0 && isnan(after.throttled_ms));
    assert_int_equal(after.involuntary_switches, -1);
    assert_true(isnan(after.clock_MHz));

    snprintf(path, sizeof path, "rm -r '%s'", dir);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_interference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
