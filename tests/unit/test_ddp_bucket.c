/* libddp: the bucketer and the buckets below it. Ranks are threads (DDP_LAUNCH_THREADS) and
 * processes. */
#include "base/clock.h"
#include "base/mem.h"
#include "ddp_ranks.h"
#include "exchange/bucket.h"
#include "names.h"

#define TENSORS 6

/* The layout of the tensors: separate, or in one block of private or registered memory. MIXED:
 * in one block on rank 0 only. */
enum layout { APART, FLAT, FLAT_REGISTERED, MIXED, LAYOUTS };

struct net {
    struct ddp *d;
    unsigned char *private;
    void *block;
    struct ddp_array grads[TENSORS];
};

static int net_open(struct net *net, struct ddp *d, enum layout layout, struct ddp_err *err)
{
    static const size_t counts[TENSORS] = {9, 10, 0, 1024, 3000, 17};
    const size_t gap = layout == APART || (layout == MIXED && ddp_rank(d) > 0) ? 40 : 0;
    net->d = d;
    net->private = malloc(64u << 10);
    CHECK(net->private != NULL);
    DDP_TRY(ddp_alloc(d, 64u << 10, &net->block, err));
    unsigned char *at = layout == FLAT_REGISTERED ? net->block : net->private;
    for (int i = 0; i < TENSORS; i++) {
        net->grads[i] = (struct ddp_array){at, counts[i], DDP_F32};
        at += counts[i] * sizeof(float) + gap;
    }
    return 0;
}

static void net_close(struct net *net)
{
    free(net->private);
    ddp_free(net->d, net->block);
}

static float gradient(int rank, int step, int tensor, size_t i)
{
    return (float)((rank + 1) * (int)(i % 13 + 1) + step * 8 + tensor);
}

static void set_gradient(const struct net *net, int step, int tensor)
{
    float *g = net->grads[tensor].data;
    for (size_t i = 0; i < net->grads[tensor].count; i++)
        g[i] = gradient(ddp_rank(net->d), step, tensor, i);
}

static bool is_sum(const struct net *net, int step, int ranks, float scale)
{
    for (int t = 0; t < TENSORS; t++) {
        const float *g = net->grads[t].data;
        for (size_t i = 0; i < net->grads[t].count; i++) {
            float sum = 0;
            for (int r = 0; r < ranks; r++)
                sum += gradient(r, step, t, i);
            if (g[i] != sum * scale)
                return false;
        }
    }
    return true;
}

/* Buckets of 1024 bytes cut tensor 4 in three and hold two to four of the other tensors. */
static int check_bucketer(struct ddp *d, enum layout layout, size_t pack, struct ddp_err *err)
{
    struct net net;
    struct ddp_bucketer *b;
    DDP_TRY(net_open(&net, d, layout, err));
    DDP_TRY(ddp_bucketer_create(d, net.grads, TENSORS, pack, NULL, &b, err));
    for (int step = 0; step < 4; step++) {
        for (int t = TENSORS - 1; t >= 0; t--) {
            set_gradient(&net, step, t);
            DDP_TRY(ddp_bucketer_ready(b, t, err));
        }
        int64_t exposed = -1;
        DDP_TRY(ddp_bucketer_finish(b, step % 2 ? &exposed : NULL, err));
        CHECK(step % 2 ? exposed >= 0 && exposed < 20000000000 : exposed == -1);
        CHECK(is_sum(&net, step, ddp_size(d), 1));
        /* Another collective between steps, and one during the next step. */
        float one = 1;
        const struct ddp_array array = {&one, 1, DDP_F32};
        DDP_TRY(ddp_all_reduce(d, &array, 1, NULL, err));
        CHECK(one == (float)ddp_size(d));
    }
    ddp_bucketer_destroy(b);
    net_close(&net);
    return 0;
}

static int body_steps(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const size_t packs[] = {0, 1, 7, 1024, 4060, 100000};
    for (int layout = 0; layout < LAYOUTS; layout++) {
        for (int p = 0; p < 6; p++) {
            if (packs[p] == 1 && (layout != APART || ddp_size(d) > 2))
                continue; /* this layout makes 4060 buckets: one step is enough */
            DDP_TRY(check_bucketer(d, (enum layout)layout, packs[p], err));
        }
    }
    ddp_bucketer_destroy(NULL);
    return 0;
}

static void test_steps(void **state)
{
    run_all_ranks(4, body_steps, NULL);
}

/* Averages, a group, two bucketers in turn, a bucketer that ddp_finalize destroys, and other
 * collectives during a step. */
static int body_options(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const int ranks[] = {1, 2};
    DDP_TRY(ddp_new_group(d, "pair", ranks, 2, err));
    struct ddp_call call = {.division = true, .group = ddp_get_group(d, "pair")};
    struct net net;
    struct ddp_bucketer *world, *pair = NULL;
    DDP_TRY(net_open(&net, d, FLAT, err));
    DDP_TRY(ddp_bucketer_create(d, net.grads, TENSORS, 500, NULL, &world, err));
    if (ddp_rank(d) > 0)
        DDP_TRY(ddp_bucketer_create(d, net.grads, TENSORS, 300, &call, &pair, err));
    for (int step = 0; step < 3; step++) {
        float one = 1;
        const struct ddp_array array = {&one, 1, DDP_F32};
        for (int t = TENSORS - 1; t >= 0; t--) {
            set_gradient(&net, step, t);
            DDP_TRY(ddp_bucketer_ready(world, t, err));
            DDP_TRY(ddp_all_reduce(d, &array, 1, NULL, err));
        }
        CHECK(one == 729);
        DDP_TRY(ddp_bucketer_finish(world, NULL, err));
        CHECK(is_sum(&net, step, 3, 1));
        if (pair == NULL)
            continue;
        for (int t = TENSORS - 1; t >= 0; t--) {
            float *g = net.grads[t].data;
            for (size_t i = 0; i < net.grads[t].count; i++)
                g[i] = gradient(ddp_rank(d) - 1, step, t, i);
            DDP_TRY(ddp_bucketer_ready(pair, t, err));
        }
        DDP_TRY(ddp_bucketer_finish(pair, NULL, err));
        CHECK(is_sum(&net, step, 2, 0.5f));
    }
    DDP_TRY(ddp_barrier(d, NULL, err));
    ddp_bucketer_destroy(world);
    free(net.private);
    return 0;
}

static void test_variants(void **state)
{
    run_ranks(3, body_options, NULL);
}

/* Every documented error. */
static int body_errors(struct ddp *d, void *arg, struct ddp_err *err)
{
    float x[3] = {1, 2, 3};
    struct ddp_array arrays[] = {{&x[0], 1, DDP_F32}, {&x[1], 1, DDP_F32}, {&x[2], 1, DDP_F32}};
    const struct ddp_array mixed[] = {{&x[0], 1, DDP_F32}, {&x[1], 1, DDP_I32}};
    const struct ddp_array null = {NULL, 1, DDP_F32};
    const int me = ddp_rank(d), n = ddp_size(d);
    struct ddp_bucketer *b = NULL;
    CHECK_FAILS(DDP_EUSAGE, "i32|f32", ddp_bucketer_create(d, mixed, 2, 0, NULL, &b, refused));
    CHECK_FAILS(DDP_EUSAGE, "array 0", ddp_bucketer_create(d, &null, 1, 0, NULL, &b, refused));
    CHECK_FAILS(DDP_EUSAGE, "-1", ddp_bucketer_create(d, arrays, -1, 0, NULL, &b, refused));
    if (n > 1) {
        CHECK_FAILS(DDP_EMISMATCH, "bucketer_create",
                    ddp_bucketer_create(d, arrays, 3, (size_t)me + 1, NULL, &b, refused));
        CHECK_FAILS(DDP_EMISMATCH, "bucketer_create",
                    ddp_bucketer_create(d, arrays, me == 0 ? 3 : 2, 0, NULL, &b, refused));
    }
    CHECK(b == NULL);
    DDP_TRY(ddp_bucketer_create(d, arrays, 3, 2, NULL, &b, err));
    CHECK_FAILS(DDP_EUSAGE, "2|3", ddp_bucketer_finish(b, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "1|2", ddp_bucketer_ready(b, 1, refused));
    CHECK_FAILS(DDP_EUSAGE, "3", ddp_bucketer_ready(b, 3, refused));
    CHECK_FAILS(DDP_EUSAGE, "-1", ddp_bucketer_ready(b, -1, refused));
    DDP_TRY(ddp_bucketer_ready(b, 2, err));
    CHECK_FAILS(DDP_EUSAGE, "2|1", ddp_bucketer_ready(b, 2, refused)); /* twice */
    DDP_TRY(ddp_bucketer_ready(b, 1, err));
    CHECK_FAILS(DDP_EUSAGE, "0|3", ddp_bucketer_finish(b, NULL, refused));
    DDP_TRY(ddp_bucketer_ready(b, 0, err));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_bucketer_ready(b, 0, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_bucketer_ready(b, -1, refused));
    DDP_TRY(ddp_bucketer_finish(b, NULL, err));
    CHECK(x[0] == 1 * (float)n && x[1] == 2 * (float)n && x[2] == 3 * (float)n);
    ddp_bucketer_destroy(b);
    /* a bucketer without tensors is allowed */
    DDP_TRY(ddp_bucketer_create(d, NULL, 0, 0, NULL, &b, err));
    DDP_TRY(ddp_bucketer_finish(b, NULL, err));
    ddp_bucketer_destroy(b);
    return 0;
}

static void test_errors(void **state)
{
    run_all_ranks(3, body_errors, NULL);
}

/* Destroying in the middle of a step waits for the buckets under way. Then the caller may write
 * to the memory again. */
static int body_destroy(struct ddp *d, void *arg, struct ddp_err *err)
{
    for (int round = 0; round < 20; round++) {
        struct net net;
        struct ddp_bucketer *b;
        DDP_TRY(net_open(&net, d, round % 2 ? APART : FLAT, err));
        DDP_TRY(ddp_bucketer_create(d, net.grads, TENSORS, 100, NULL, &b, err));
        for (int t = TENSORS - 1; t >= 2; t--) {
            set_gradient(&net, 0, t);
            DDP_TRY(ddp_bucketer_ready(b, t, err));
        }
        ddp_bucketer_destroy(b);
        float sum = 0;
        for (int r = 0; r < ddp_size(d); r++)
            sum += gradient(r, 0, 5, 16);
        CHECK(((float *)net.grads[5].data)[16] == sum);
        memset(net.private, 0xff, 64u << 10);
        net_close(&net);
        DDP_TRY(ddp_barrier(d, NULL, err));
    }
    return 0;
}

static void test_destroy(void **state)
{
    run_ranks(2, body_destroy, NULL);
    run_ranks(3, body_destroy, NULL);
}

/* A rank stops taking part: finish on the other ranks fails at the deadline. */
static int body_lost(struct ddp *d, void *arg, struct ddp_err *err)
{
    float x = 1;
    const struct ddp_array array = {&x, 1, DDP_F32};
    struct ddp_bucketer *b;
    DDP_TRY(ddp_bucketer_create(d, &array, 1, 0, NULL, &b, err));
    if (ddp_rank(d) == 1) {
        ddp_sleep_ns(800000000);
        return 0;
    }
    DDP_TRY(ddp_bucketer_ready(b, 0, err));
    CHECK_FAILS(DDP_ELOST, "rank 1", ddp_bucketer_finish(b, NULL, refused));
    CHECK_FAILS(DDP_ELOST, "", ddp_barrier(d, NULL, refused));
    return 0;
}

static void test_lost(void **state)
{
    const struct ddp_init_options options = {.timeout_s = 0.3};
    for (int threads = ONLY_THREADS; threads <= 1; threads++) {
        struct ddp_err err = DDP_ERR_INIT;
        int rc = ddp_run(2, threads, &options, body_lost, NULL, &err);
        if (rc != DDP_ELOST || err.rank != 1 || text_names(err.text, "test_ddp"))
            fail_msg("%d: %s", rc, err.text);
    }
}

/* Buckets are reduced during the backward pass and not in finish: the sum of each tensor is
 * present before the next tensor is ready. The test reads memory that belongs to the progress
 * thread, so ThreadSanitizer does not run it. */
static int body_overlap(struct ddp *d, void *arg, struct ddp_err *err)
{
    struct net net;
    struct ddp_bucketer *b;
    DDP_TRY(net_open(&net, d, *(enum layout *)arg, err));
    DDP_TRY(ddp_bucketer_create(d, net.grads, TENSORS, 1, NULL, &b, err));
    for (int t = TENSORS - 1; t >= 0; t--) {
        set_gradient(&net, 0, t);
        DDP_TRY(ddp_bucketer_ready(b, t, err));
        float sum = 0;
        for (int r = 0; r < ddp_size(d); r++)
            sum += gradient(r, 0, t, 0);
        const volatile float *lowest = net.grads[t].data; /* the element that is reduced last */
        const int64_t end = ddp_now_ns() + 15000000000;
        while (net.grads[t].count > 0 && *lowest != sum && ddp_now_ns() < end)
            ddp_sleep_ns(100000);
        CHECK(net.grads[t].count == 0 || *lowest == sum);
    }
    DDP_TRY(ddp_bucketer_finish(b, NULL, err));
    CHECK(is_sum(&net, 0, ddp_size(d), 1));
    ddp_bucketer_destroy(b);
    net_close(&net);
    return 0;
}

static void test_overlap(void **state)
{
    if (ONLY_THREADS)
        return;
    enum layout layouts[] = {APART, FLAT};
    for (int i = 0; i < 2; i++)
        run_ranks(2, body_overlap, &layouts[i]);
}

/* Counts the exchanges of each bucket. Those of the failing bucket fail. */
struct counted {
    int runs[3], opened, failing;
};

struct counted_bucket {
    struct counted *all;
    int number;
};

static int open_counted(void *arg, struct ddp_comm *comm, struct ddp_stream *stream,
                        const struct ddp_bucket *bucket, void **state, struct ddp_err *err)
{
    struct counted_bucket *b;
    struct counted *all = arg;
    DDP_TRY(DDP_NEW(&b, 1, err));
    *b = (struct counted_bucket){.all = all, .number = all->opened++};
    *state = b;
    return 0;
}

static int run_counted(void *state, struct ddp_err *err)
{
    const struct counted_bucket *b = state;
    b->all->runs[b->number]++;
    return b->number == b->all->failing ? ddp_fail(err, DDP_EDATA, "failed") : 0;
}

/* After a bucket has failed, no later call exchanges it again. */
static void test_failed_bucket(void **state)
{
    static const struct ddp_bucket_method method = {
        .open = open_counted, .run = run_counted, .close = free};
    static const size_t counts[3] = {5, 5, 5};
    struct counted all = {.failing = 1};
    const struct ddp_buckets_setup setup = {
        .layout = {.counts = counts, .n = 3, .most = 5}, .method = &method, .arg = &all};
    struct ddp_buckets *b;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_buckets_create(&setup, &b, &err), 0);
    assert_int_equal(ddp_buckets_ready(b, 2, &err), 0);
    assert_int_equal(ddp_buckets_ready(b, 1, &err), DDP_EDATA);
    assert_int_equal(ddp_buckets_finish(b, &err), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(all.runs[i], 1);
    ddp_buckets_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_variants),
        cmocka_unit_test(test_errors),        cmocka_unit_test(test_destroy),
        cmocka_unit_test(test_lost),          cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_failed_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
