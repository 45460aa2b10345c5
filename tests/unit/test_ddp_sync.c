/* libddp: the sync strategies. Ranks are threads and processes. */
#include <math.h>

#include "base/mem.h"
#include "ddp_ranks.h"

enum { TENSORS = 3, TOTAL = 1031, STEPS = 5 };
static const size_t counts[TENSORS] = {700, 301, 30}, cols[TENSORS] = {35, 0, 0};

/* A model with its strategy. */
struct model {
    struct ddp *d;
    float *params, *grads;
    struct ddp_strategy *s;
};

static int model_open(struct model *m, struct ddp *d, const char *strategy, bool overlap,
                      struct ddp_err *err)
{
    void *memory;
    *m = (struct model){.d = d};
    DDP_TRY(ddp_alloc(d, 2 * TOTAL * sizeof(float), &memory, err));
    m->params = memory;
    m->grads = m->params + TOTAL;
    memset(m->params, 0, 2 * TOTAL * sizeof(float));
    const struct ddp_sync_options o = {.params = m->params,
                                       .grads = m->grads,
                                       .counts = counts,
                                       .n = TENSORS,
                                       .cols = cols,
                                       .bucket_bytes = 1600,
                                       .overlap = overlap,
                                       .seed = 3};
    return ddp_sync_create(d, strategy, &o, &m->s, err);
}

static void model_close(struct model *m)
{
    ddp_sync_destroy(m->s);
    ddp_free(m->d, m->params);
}

/* Sum of the gradients over the samples of a rank. Rank r has r + 1 samples. */
static float gradient(const float *params, int rank, int step, size_t i)
{
    const float target = (float)(i % 7) - 3 + 0.125f * (float)((step + rank) % 3);
    return (float)(rank + 1) * (params[i] - target);
}

static size_t samples(int ranks)
{
    return (size_t)(ranks * (ranks + 1) / 2);
}

/* Takes a step of gradient descent on the parts of this rank. `report`: report the tensors. */
static int step(struct model *m, int number, bool report, struct ddp_err *err)
{
    const int rank = ddp_rank(m->d), ranks = ddp_size(m->d);
    double scale = 0;
    size_t begin = 0, n = 0;
    DDP_TRY(ddp_sync_begin_step(m->s, (size_t)rank + 1, samples(ranks), &scale, err));
    for (size_t i = 0; i < TOTAL; i++)
        m->grads[i] = (float)scale * gradient(m->params, rank, number, i);
    for (int t = TENSORS - 1; t >= 0 && report; t--)
        DDP_TRY(ddp_sync_ready(m->s, t, err));
    DDP_TRY(ddp_sync_finish(m->s, err));
    for (int p = 0; p < ddp_sync_part(m->s, p, &begin, &n); p++)
        for (size_t i = begin; i < begin + n; i++)
            m->params[i] -= 0.5f * m->grads[i];
    return ddp_sync_end_step(m->s, err);
}

/* How far the parameters may be from those of the exact mean. */
struct method {
    const char *text;
    float tolerance;
    bool equal; /* all ranks hold the same parameters after the last step */
    float density;
};
static const struct method methods[] = {
    {"dense", 1e-5f, true, 1},
    {"zero1", 1e-5f, true, 1},
    {"fp16", 0.02f, true, 1},
    {"bf16", 0.1f, true, 1},
    {"q8", 0.2f, true, 1},
    {"q8:64+sr", 0.3f, true, 1},
    {"topk:1", 1e-5f, true, 1},
    {"topk:0.1", 4, true, 0.2f},
    {"threshold:0.2", 1.5f, true, 1},
    {"oktopk:0.2", 4, true, 0.5f},
    {"powersgd:40", 1e-5f, true, 1},
    {"sign", 4, true, 1},
    {"partial:2", 0.5f, false, 1},
    {"local:2", 0.5f, true, 1},
    {"diloco:2", 2, true, 1},
    {"none", 1, false, 1},
};

static int check_equal(const struct model *m, const char *text, struct ddp_err *err)
{
    const int ranks = ddp_size(m->d);
    struct ddp_array *all = calloc((size_t)ranks, sizeof *all);
    float *memory = calloc((size_t)ranks, TOTAL * sizeof(float));
    CHECK(all != NULL && memory != NULL);
    const struct ddp_array mine = {m->params, TOTAL, DDP_F32};
    for (int r = 0; r < ranks; r++)
        all[r] = (struct ddp_array){memory + r * TOTAL, TOTAL, DDP_F32};
    DDP_TRY(ddp_all_gather(m->d, &mine, all, NULL, err));
    for (int r = 0; r < ranks; r++)
        if (memcmp(all[r].data, m->params, TOTAL * sizeof(float)) != 0)
            return ddp_fail(err, DDP_EDATA, "%s: ranks differ", text);
    free(memory);
    free(all);
    return 0;
}

static int body_methods(struct ddp *d, void *arg, struct ddp_err *err)
{
    static _Thread_local float want[TOTAL];
    const int ranks = ddp_size(d);
    for (size_t k = 0; k < 2 * DDP_COUNT_OF(methods); k++) {
        const struct method *method = &methods[k / 2];
        struct ddp_sync_stats stats;
        struct model m;
        float worst = 0;
        DDP_TRY(model_open(&m, d, method->text, k % 2 == 1, err));
        memset(want, 0, sizeof want);
        for (int number = 0; number < STEPS; number++) {
            DDP_TRY(step(&m, number, number % 2 == 0, err));
            for (size_t i = 0; i < TOTAL; i++) {
                float mean = 0;
                for (int r = 0; r < ranks; r++)
                    mean += gradient(want, r, number, i) / (float)samples(ranks);
                want[i] -= 0.5f * mean;
            }
        }
        DDP_TRY(ddp_sync_end_epoch(m.s, err));
        for (size_t i = 0; i < TOTAL; i++)
            worst = fmaxf(worst, fabsf(m.params[i] - want[i]));
        if (worst > method->tolerance)
            return ddp_fail(err, DDP_EDATA, "%s: differs by %g", method->text, (double)worst);
        if (method->equal)
            DDP_TRY(check_equal(&m, method->text, err));
        ddp_sync_read_stats(m.s, &stats);
        CHECK(stats.exchange_ns >= 0 && stats.exposed_ns >= 0);
        CHECK(stats.density > 0 && stats.density <= (double)method->density);
        CHECK((stats.wire_bytes > 0) == (ranks > 1 && strcmp(method->text, "none") != 0));
        model_close(&m);
    }
    return 0;
}

static void test_methods(void **state)
{
    run_all_ranks(4, body_methods, NULL);
}

/* The parts of zero1 cover the parameters, and each rank has about 1/P of them. */
static int body_parts(struct ddp *d, void *arg, struct ddp_err *err)
{
    static _Thread_local float owners[TOTAL];
    const int ranks = ddp_size(d);
    struct model m;
    size_t begin, n, sum = 0;
    DDP_TRY(model_open(&m, d, "zero1", false, err));
    memset(owners, 0, sizeof owners);
    for (int p = 0; p < ddp_sync_part(m.s, p, &begin, &n); p++, sum += n)
        for (size_t i = begin; i < begin + n; i++)
            owners[i]++;
    CHECK(sum <= TOTAL / (size_t)ranks + 16 * (size_t)ranks);
    const struct ddp_array array = {owners, TOTAL, DDP_F32};
    DDP_TRY(ddp_all_reduce(d, &array, 1, NULL, err));
    for (size_t i = 0; i < TOTAL; i++)
        CHECK(owners[i] == 1 || (i >= TOTAL - 16 * (size_t)ranks && owners[i] == (float)ranks));
    return 0; /* ddp_finalize destroys the strategy */
}

static void test_parts(void **state)
{
    run_all_ranks(4, body_parts, NULL);
}

static int body_order(struct ddp *d, void *arg, struct ddp_err *err)
{
    struct model m;
    double scale;
    DDP_TRY(model_open(&m, d, "local:2", true, err));
    CHECK_FAILS(DDP_EUSAGE, "ddp_sync_finish", ddp_sync_finish(m.s, refused));
    CHECK_FAILS(DDP_EUSAGE, "ddp_sync_ready", ddp_sync_ready(m.s, 0, refused));
    CHECK_FAILS(DDP_EUSAGE, "ddp_sync_end_step", ddp_sync_end_step(m.s, refused));
    CHECK_FAILS(DDP_EUSAGE, "0", ddp_sync_begin_step(m.s, 0, 0, &scale, refused));
    CHECK_FAILS(DDP_EUSAGE, "3", ddp_sync_begin_step(m.s, 3, 2, &scale, refused));
    DDP_TRY(ddp_sync_begin_step(m.s, 1, 4, &scale, err));
    CHECK(scale == 1); /* each rank learns from its own images */
    CHECK_FAILS(DDP_EUSAGE, "ddp_sync_begin_step", ddp_sync_begin_step(m.s, 1, 4, &scale, refused));
    CHECK_FAILS(DDP_EUSAGE, "ddp_sync_end_epoch", ddp_sync_end_epoch(m.s, refused));
    CHECK_FAILS(DDP_EUSAGE, "3", ddp_sync_ready(m.s, TENSORS, refused));
    CHECK_FAILS(DDP_EUSAGE, "-1", ddp_sync_ready(m.s, -1, refused));
    DDP_TRY(ddp_sync_ready(m.s, 1, err));
    CHECK_FAILS(DDP_EUSAGE, "1", ddp_sync_ready(m.s, 1, refused));
    CHECK_FAILS(DDP_EUSAGE, "ddp_sync_end_step", ddp_sync_end_step(m.s, refused));
    DDP_TRY(ddp_sync_finish(m.s, err));
    CHECK_FAILS(DDP_EUSAGE, "ddp_sync_finish", ddp_sync_finish(m.s, refused));
    DDP_TRY(ddp_sync_end_step(m.s, err));
    ddp_sync_destroy(NULL);
    model_close(&m);
    return 0;
}

static void test_order(void **state)
{
    run_all_ranks(2, body_order, NULL);
}

static int body_arguments(struct ddp *d, void *arg, struct ddp_err *err)
{
    struct ddp_strategy *s;
    void *memory;
    float private[2 * TOTAL];
    const size_t huge[] = {SIZE_MAX, 2};
    DDP_TRY(ddp_alloc(d, sizeof private, &memory, err));
    const struct ddp_sync_options good = {
        .params = private, .grads = private + TOTAL, .counts = counts, .n = TENSORS};
    struct ddp_sync_options o = good;
    CHECK_FAILS(DDP_EUSAGE, "'densee'", ddp_sync_create(d, "densee", &o, &s, refused));
    CHECK_FAILS(DDP_EUSAGE, "topk:7", ddp_sync_create(d, "topk:7", &o, &s, refused));
    CHECK_FAILS(DDP_EUSAGE, "NULL", ddp_sync_create(d, NULL, &o, &s, refused));
    CHECK_FAILS(DDP_EUSAGE, "NULL", ddp_sync_create(d, "dense", NULL, &s, refused));
    o.algorithm = "rign";
    if (ddp_size(d) > 1)
        CHECK_FAILS(DDP_EUSAGE, "'rign'", ddp_sync_create(d, "dense", &o, &s, refused));
    o = good;
    o.counts = huge;
    o.n = 2;
    CHECK_FAILS(DDP_EUSAGE, "address space", ddp_sync_create(d, "dense", &o, &s, refused));
    o = good;
    o.grads = NULL;
    CHECK_FAILS(DDP_EUSAGE, "NULL", ddp_sync_create(d, "dense", &o, &s, refused));
    if (ddp_size(d) > 1) {
        o = good;
        o.seed = (uint64_t)ddp_rank(d);
        CHECK_FAILS(DDP_EMISMATCH, "sync_create", ddp_sync_create(d, "dense", &o, &s, refused));
        o = good;
        if (ddp_rank(d) == 1)
            o.params = memory;
        CHECK_FAILS(DDP_EMISMATCH, "'dense'", ddp_sync_create(d, "dense", &o, &s, refused));
        o.params = (float *)memory + ddp_rank(d);
        CHECK_FAILS(DDP_EMISMATCH, "'dense'", ddp_sync_create(d, "dense", &o, &s, refused));
    }
    /* An empty model, and private memory. */
    o = (struct ddp_sync_options){.n = 0};
    DDP_TRY(ddp_sync_create(d, "zero1", &o, &s, err));
    CHECK(ddp_sync_part(s, 0, NULL, NULL) == 0);
    ddp_sync_destroy(s);
    DDP_TRY(ddp_sync_create(d, "zero1", &good, &s, NULL));
    ddp_sync_destroy(s);
    ddp_free(d, memory);
    return 0;
}

static void test_arguments(void **state)
{
    run_all_ranks(3, body_arguments, NULL);
}

static int body_lost(struct ddp *d, void *arg, struct ddp_err *err)
{
    struct model m;
    double scale;
    DDP_TRY(model_open(&m, d, "dense", false, err));
    ddp_abort(d, DDP_EDATA);
    CHECK_FAILS(DDP_ELOST, "ddp_abort", ddp_sync_begin_step(m.s, 1, 1, &scale, refused));
    return DDP_EDATA;
}

static void test_lost(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_run(1, true, &test_options, body_lost, NULL, &err), DDP_EDATA);
    if (strstr(err.text, __FILE__) != NULL)
        fail_msg("%s", err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_order),   cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
