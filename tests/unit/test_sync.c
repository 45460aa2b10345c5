/* Sync strategies without a model: parsing of names, division of arrays, error feedback that
 * loses nothing, and the places where gradients are added. test_train_sync.c tests training with
 * them. */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "exchange/sync.h"

#include "comm_ranks.h"
#include "names.h"

static void names_are_read_whole(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "''"},
        {"dens", "dense"},
        {"densee", "'densee'"},
        {"DENSE", "'DENSE'"},
        {"dense:1", "'dense:1'"},
        {"dense:", "'dense:'"},
        {":", "'"},
        {"topk", "'topk'"},
        {"topk:", "topk"},
        {"topk:0", "topk:0"},
        {"topk:1.5", "topk:1.5"},
        {"topk:0.01x", "0.01x"},
        {"threshold:-1", "threshold:-1"},
        {"threshold:nan", "nan"},
        {"oktopk:2", "oktopk:2"},
        {"fp16:0", "fp16:0"},
        {"bf16:1", "'bf16:1'"},
        {"partial:0", "partial:0"},
        {"partial:1.5", "1.5"},
        {"partial:100000", "100000"},
        {"local", "'local'"},
        {"local:0", "local:0"},
    };
    static const struct {
        const char *text, *name; /* name: of the compressor, else of the class */
        double argument;
    } good[] = {
        {"dense", "dense", 0},
        {"fp16", "fp16", NAN},
        {"fp16:2.5", "fp16", 2.5},
        {"bf16", "bf16", NAN},
        {"topk:0.01", "topk", 0.01},
        {"topk:1", "topk", 1},
        {"oktopk:1e-3", "oktopk", 1e-3},
        {"threshold:0.5", "threshold", 0.5},
        {"partial:4", "partial", 4},
        {"local:10", "local", 10},
        {"none", "none", 0},
    };
    struct ddp_sync_spec spec;
    struct ddp_err err = DDP_ERR_INIT;
    for (size_t i = 0; i < DDP_COUNT_OF(good); i++) {
        if (ddp_sync_parse(good[i].text, &spec, &err) != 0)
            fail_msg("%s", err.text);
        const bool compresses = spec.cls->compresses;
        const double got = compresses ? spec.compress.argument : (double)spec.number;
        assert_string_equal(compresses ? spec.compress.compressor->name : spec.cls->name,
                            good[i].name);
        assert_true(isnan(good[i].argument) ? isnan(got) : got == good[i].argument);
        assert_string_equal(spec.text, good[i].text);
    }
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        err = DDP_ERR_INIT;
        assert_int_equal(ddp_sync_parse(bad[i].text, &spec, &err), DDP_EUSAGE);
        if (!text_names(err.text, bad[i].words) && !text_names(err.hint, bad[i].words))
            fail_msg("'%s': '%s' is not in '%s'", bad[i].text, bad[i].words, err.text);
    }
}

static void buckets_close_at_tensor_ends(void **state)
{
    const size_t counts[] = {100, 10, 300, 20, 20}, offsets[] = {0, 100, 110, 410, 430};
    static const struct {
        size_t bytes;
        int count;
        struct ddp_bucket want[5];
    } cases[] = {
        {0, 1, {{0, 5, 0, 450}}},
        {4,
         5,
         {{4, 1, 430, 20}, {3, 1, 410, 20}, {2, 1, 110, 300}, {1, 1, 100, 10}, {0, 1, 0, 100}}},
        {160, 4, {{3, 2, 410, 40}, {2, 1, 110, 300}, {1, 1, 100, 10}, {0, 1, 0, 100}}},
        {1396, 2, {{2, 3, 110, 340}, {0, 2, 0, 110}}},
        {1 << 20, 1, {{0, 5, 0, 450}}},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_bucket got[5];
        const struct ddp_sync_setup setup = {.total = 450,
                                             .offsets = offsets,
                                             .counts = counts,
                                             .param_count = 5,
                                             .bucket_bytes = cases[i].bytes};
        assert_int_equal(ddp_sync_buckets(&setup, got), cases[i].count);
        for (int b = 0; b < cases[i].count; b++) {
            assert_int_equal(got[b].first, cases[i].want[b].first);
            assert_int_equal(got[b].tensors, cases[i].want[b].tensors);
            assert_int_equal(got[b].offset, cases[i].want[b].offset);
            assert_int_equal(got[b].count, cases[i].want[b].count);
        }
    }
}

/* libddp's buckets have equal sizes. A tensor may span several, and an empty tensor adds nothing.
 */
static void buckets_of_equal_size(void **state)
{
    const size_t counts[] = {0, 5, 0, 7, 0};
    static const struct ddp_bucket want[] = {{3, 1, 8, 4}, {1, 3, 4, 4}, {1, 1, 0, 4}};
    const struct ddp_bucket_layout layout = {.counts = counts, .n = 5, .most = 4, .split = true};
    struct ddp_bucket got[3];
    assert_int_equal(ddp_buckets_cut(&layout, NULL), 3);
    assert_int_equal(ddp_buckets_cut(&layout, got), 3);
    for (int b = 0; b < 3; b++) {
        assert_int_equal(got[b].first, want[b].first);
        assert_int_equal(got[b].tensors, want[b].tensors);
        assert_int_equal(got[b].offset, want[b].offset);
        assert_int_equal(got[b].count, want[b].count);
    }
    const struct ddp_bucket_layout empty = {.counts = counts, .n = 1, .split = true};
    assert_int_equal(ddp_buckets_cut(&empty, NULL), 0);
}

/* Chunks have no gap or overlap and differ by at most one cache line. With more chunks than
 * cache lines some are empty. */
static void chunks_are_balanced(void **state)
{
    static const size_t totals[] = {0, 1, 15, 16, 17, 1000, 431080};
    static const int chunks[] = {1, 2, 3, 4, 7, 64};
    for (size_t t = 0; t < DDP_COUNT_OF(totals); t++) {
        for (size_t k = 0; k < DDP_COUNT_OF(chunks); k++) {
            size_t end = 0, least = SIZE_MAX, most = 0;
            for (int c = 0; c < chunks[k]; c++) {
                size_t first, n;
                ddp_sync_chunk(totals[t], chunks[k], c, &first, &n);
                assert_int_equal(first, end);
                assert_true(first % 16 == 0 || first == totals[t]);
                end = first + n;
                least = DDP_MIN(least, n);
                most = DDP_MAX(most, n);
            }
            assert_int_equal(end, totals[t]);
            assert_true(most - least <= 32);
        }
    }
}

static void owners_are_balanced(void **state)
{
    static const size_t counts[] = {500, 20, 25000, 50, 400000, 500, 5000, 10};
    int owner[8];
    for (int owners = 1; owners <= 5; owners++) {
        size_t owns[5] = {0}, most = 0;
        ddp_aggregate_owners(counts, 8, owners, owner);
        for (int i = 0; i < 8; i++) {
            assert_in_range(owner[i], 0, owners - 1);
            owns[owner[i]] += counts[i];
        }
        for (int o = 0; o < owners; o++)
            most = DDP_MAX(most, owns[o]);
        assert_int_equal(most, owners == 1 ? 431080 : 400000);
    }
}

/* One strategy with the same gradient in every step. The test adds up the results of all steps. */
enum { N = 2000, STEPS = 200, RANKS = 3 };
struct constant {
    const char *sync;
    enum ddp_feedback feedback;
    /* largest difference between the wanted and the delivered sum, as a number of steps of the
     * largest gradient */
    float worst;
};

/* A few large entries and many small ones. top-K without feedback sends only the large ones. */
static float gradient(int rank, size_t i)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, (uint64_t)rank + 1, i);
    return (i % 40 == 0 ? 1.0f : 0.05f) * (0.5f + (float)ddp_rng_below(&rng, 1000) / 1000.0f);
}

static int same_gradient(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                         struct ddp_err *err)
{
    struct constant *c = arg;
    const size_t offset = 0, count = N;
    struct ddp_sync_spec spec;
    struct ddp_sync *sync;
    void *memory;
    static _Thread_local float delivered[N];
    comm->device = ddp_device_cpu(ddp_cpu_best_simd());
    DDP_TRY(ddp_comm_alloc(comm, N * sizeof(float), &memory, err));
    float *grads = memory;
    struct ddp_sync_setup setup = {.comm = comm,
                                   .grads = grads,
                                   .total = N,
                                   .offsets = &offset,
                                   .counts = &count,
                                   .param_count = 1,
                                   .feedback = c->feedback};
    DDP_TRY(ddp_sync_parse(c->sync, &spec, err));
    const struct ddp_sync_class *cls = spec.cls;
    setup.compress = spec.compress;
    DDP_TRY(cls->create(&setup, &sync, err));
    memset(delivered, 0, sizeof delivered);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < N; i++)
            grads[i] = gradient(comm->rank, i);
        DDP_TRY(cls->on_grad_ready(sync, 0, err));
        DDP_TRY(cls->finish_backward(sync, err));
        for (size_t i = 0; i < N; i++)
            delivered[i] += grads[i];
    }
    float worst = 0.0f;
    for (size_t i = 0; i < N; i++) {
        float mean = 0.0f;
        for (int r = 0; r < comm->size; r++)
            mean += gradient(r, i) / (float)comm->size;
        worst = fmaxf(worst, fabsf(STEPS * mean - delivered[i]));
    }
    if (comm->rank == 0)
        c->worst = worst;
    cls->destroy(sync);
    ddp_comm_free(comm, memory);
    return 0;
}

static void feedback_loses_nothing(void **state)
{
    /* With feedback an element waits until its sum is among the largest: a residual is at most
     * about the largest gradient times the steps between two turns (here 50). Without feedback
     * the small elements are never sent: 200 steps of at least 0.025 are missing. */
    struct constant cases[] = {
        {"topk:0.05", DDP_FEEDBACK_AUTO, 0},   {"topk:0.05", DDP_FEEDBACK_OFF, 0},
        {"threshold:0.4", DDP_FEEDBACK_ON, 0}, {"threshold:0.4", DDP_FEEDBACK_OFF, 0},
        {"oktopk:0.05", DDP_FEEDBACK_AUTO, 0}, {"oktopk:0.05", DDP_FEEDBACK_OFF, 0},
        {"fp16", DDP_FEEDBACK_AUTO, 0},        {"bf16", DDP_FEEDBACK_AUTO, 0},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        const struct ranks_job job = {.body = same_gradient, .arg = &cases[i]};
        const bool kept = cases[i].feedback != DDP_FEEDBACK_OFF;
        assert_int_equal(ranks_run(RANKS, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
        if (outcome.code != 0)
            fail_msg("%s: %s", cases[i].sync, err.text[0] ? err.text : outcome.report_text);
        if (kept ? cases[i].worst > 3.0f : cases[i].worst < 7.0f)
            fail_msg("%s, feedback %s: %f is missing", cases[i].sync, kept ? "on" : "off",
                     (double)cases[i].worst);
    }
}

/* Returns what a rank's step subtracts from parameter i. */
static float change(int rank, int step, size_t i)
{
    return (float)((int)((i + 3) * (size_t)(step + 2) * (size_t)(rank + 1) % 23) - 9) / 64;
}

/* Outer steps of diloco:2 against a reference in double. The seventh step is followed by an
 * evaluation, so the third outer step averages two steps, and the fourth only one. */
static int outer_steps(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    static _Thread_local double own[RANKS][N], outer[N], velocity[N];
    struct ddp_sync_spec spec;
    struct ddp_sync *sync;
    void *memory;
    (void)rank;
    (void)arg;
    comm->device = ddp_device_cpu(ddp_cpu_best_simd());
    DDP_TRY(ddp_comm_alloc(comm, N * sizeof(float), &memory, err));
    float *params = memory;
    DDP_TRY(ddp_sync_parse("diloco:2", &spec, err));
    const struct ddp_sync_setup setup = {
        .comm = comm, .params = params, .total = N, .number = spec.number};
    DDP_TRY(spec.cls->create(&setup, &sync, err));
    for (size_t i = 0; i < N; i++) {
        params[i] = (float)(outer[i] = (double)i / 1024);
        velocity[i] = 0;
        for (int r = 0; r < RANKS; r++)
            own[r][i] = outer[i];
    }
    for (int step = 0; step < 7; step++) {
        spec.cls->begin_step(sync, 4, 4 * RANKS);
        for (size_t i = 0; i < N; i++) {
            params[i] -= change(comm->rank, step, i);
            for (int r = 0; r < RANKS; r++)
                own[r][i] -= (double)change(r, step, i);
        }
        DDP_TRY(spec.cls->end_step(sync, err));
        if (step == 6)
            DDP_TRY(spec.cls->end_epoch(sync, err));
        for (size_t i = 0; i < N && (step % 2 == 1 || step == 6); i++) {
            double mean = 0;
            for (int r = 0; r < RANKS; r++)
                mean += own[r][i] / RANKS;
            velocity[i] = 0.9 * velocity[i] + (outer[i] - mean);
            outer[i] -= 0.7 * (outer[i] - mean + 0.9 * velocity[i]);
            for (int r = 0; r < RANKS; r++)
                own[r][i] = outer[i];
        }
        for (size_t i = 0; i < N; i++)
            CHECK(fabs((double)params[i] - own[comm->rank][i]) < 5e-6);
    }
    spec.cls->destroy(sync);
    ddp_comm_free(comm, memory);
    return 0;
}

static void diloco_takes_outer_steps(void **state)
{
    (void)state;
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ranks_job job = {.body = outer_steps};
    assert_int_equal(ranks_run(RANKS, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
    if (outcome.code != 0)
        fail_msg("%s", err.text[0] ? err.text : outcome.report_text);
}

/* Tensors, one of which is large enough to be divided among hosts. */
enum { KEYS = 4, TOTAL = 1000 + DDP_AGGREGATE_BIG_KEY + 7 + 300 };
struct placement {
    const struct ddp_aggregate *how;
    double mean_bytes;
};

static int add_up(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                  struct ddp_err *err)
{
    struct placement *p = arg;
    const size_t counts[KEYS] = {1000, DDP_AGGREGATE_BIG_KEY + 7, 0, 300};
    const size_t offsets[KEYS] = {0, 1000, 1000 + DDP_AGGREGATE_BIG_KEY + 7,
                                  1000 + DDP_AGGREGATE_BIG_KEY + 7};
    struct ddp_host_groups groups = {0};
    struct ddp_aggregation *a;
    void *memory;
    comm->device = ddp_device_cpu(ddp_cpu_best_simd());
    DDP_TRY(ddp_comm_alloc(comm, TOTAL * sizeof(float), &memory, err));
    float *data = memory;
    if (p->how->needs_hosts)
        DDP_TRY(ddp_host_groups_open(comm, &groups, err));
    const struct ddp_aggregate_setup setup = {.comm = comm,
                                              .data = data,
                                              .n = TOTAL,
                                              .offsets = offsets,
                                              .counts = counts,
                                              .key_count = KEYS,
                                              .hosts = &groups};
    DDP_TRY(ddp_aggregation_create(p->how, &setup, &a, err));
    for (int run = 1; run <= 3; run++) {
        for (size_t i = 0; i < TOTAL; i++) /* small whole numbers, so the sum is exact */
            data[i] = (float)((i * 7 + (size_t)comm->rank * 13 + (size_t)run) % 64);
        DDP_TRY(ddp_aggregation_run(a, err));
        for (size_t i = 0; i < TOTAL; i++) {
            float want = 0.0f;
            for (int r = 0; r < comm->size; r++)
                want += (float)((i * 7 + (size_t)r * 13 + (size_t)run) % 64);
            CHECK(data[i] == want);
        }
    }
    bool counted;
    double mine = ddp_aggregation_wire_bytes(a, &counted), all[8], sum = 0.0;
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        sum += all[r];
    if (comm->rank == 0)
        p->mean_bytes = sum / comm->size / 3;
    ddp_aggregation_destroy(a);
    ddp_host_groups_close(&groups);
    ddp_comm_free(comm, memory);
    return 0;
}

/* Every placement adds correctly and sends the bytes of its tree: all data up each edge and down
 * again. */
static void placements_add_up(void **state)
{
    for (int ranks = 1; ranks <= 4; ranks++) {
        for (int i = 0; ddp_aggregates()[i]; i++) {
            for (int hosts = 1; hosts <= DDP_MIN(ranks, 3); hosts++) {
                struct ddp_launch_outcome outcome;
                struct ddp_err err = DDP_ERR_INIT;
                struct placement p = {.how = ddp_aggregates()[i]};
                char text[8];
                const struct ranks_job job = {.body = add_up, .arg = &p};
                snprintf(text, sizeof text, "%d*", hosts);
                if (hosts > 1)
                    setenv("DDPBENCH_SIMULATE_HOSTS", text, 1);
                const int rc = ranks_run(ranks, DDP_LAUNCH_THREADS, job, &outcome, &err);
                unsetenv("DDPBENCH_SIMULATE_HOSTS");
                if (rc != 0 || outcome.code != 0)
                    fail_msg("%s, %d ranks: %s%s", p.how->name, ranks, err.text,
                             outcome.report_text);
                const double want = 2.0 * (ranks - 1) / ranks * TOTAL * 4.0;
                if (fabs(p.mean_bytes - want) > 1.0)
                    fail_msg("%s, %d ranks, %d hosts: %f bytes, %f wanted", p.how->name, ranks,
                             hosts, p.mean_bytes, want);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_whole),     cmocka_unit_test(buckets_close_at_tensor_ends),
        cmocka_unit_test(buckets_of_equal_size),    cmocka_unit_test(chunks_are_balanced),
        cmocka_unit_test(owners_are_balanced),      cmocka_unit_test(feedback_loses_nothing),
        cmocka_unit_test(diloco_takes_outer_steps), cmocka_unit_test(placements_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
