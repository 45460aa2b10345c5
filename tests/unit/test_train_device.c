/* The trainer on a device (streams, kernels on streams, results that arrive later), here on CPU
 * streams: a run gives the same bits as without a device. Unsupported runs are rejected. */
#include <stdarg.h>
#include <setjmp.h>
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/blas.h"

#include "trainer_runs.h"
#include "names.h"

/* Fewer images than those of other tests, for each run is repeated. */
static int make_few(void **state)
{
    int rc = make_data(state);
    data.train.count = 300;
    data.eval.count = 50;
    return rc;
}

static void on_streams(struct run *r)
{
    r->o.device = ddp_device_cpu(ddp_cpu_best_simd());
}

static void expect_same(struct run *plain)
{
    static struct run there;
    there = *plain;
    on_streams(&there);
    expect_success(plain);
    expect_success(&there);
    assert_int_equal(there.steps, plain->steps);
    assert_memory_equal(there.losses, plain->losses, sizeof plain->losses);
    assert_int_equal(there.epoch_count, plain->epoch_count);
    for (int e = 0; e < plain->epoch_count; e++) {
        const struct ddp_epoch *a = &there.epochs[e], *b = &plain->epochs[e];
        assert_true(a->parameter_hash == b->parameter_hash);
        assert_true(a->train_loss == b->train_loss && a->train_accuracy == b->train_accuracy);
        assert_true(a->eval_loss == b->eval_loss && a->eval_accuracy == b->eval_accuracy);
        if (!plain->o.sync.cls->compresses) /* on a device, sparse lists are sent in full */
            assert_true(a->wire_bytes_per_rank == b->wire_bytes_per_rank);
        assert_true(a->overflow_count == b->overflow_count);
        assert_true(a->achieved_density == b->achieved_density || isnan(b->achieved_density));
    }
}

static void same_bits(void **state)
{
    static struct run r;
    r = defaults(1, 64); /* 300 images: the last batch is smaller */
    r.o.epochs = 2;
    expect_same(&r);
    r = defaults(3, 33);
    r.o.check_replicas = true;
    r.o.bucket_bytes = 65536;
    expect_same(&r);
    r = defaults(2, 50);
    r.o.optimizer = DDP_OPTIM_ADAM;
    r.o.lr = 1e-3;
    r.o.model = ddp_model_find("lenet");
    r.o.init_sync = DDP_INIT_AVERAGE;
    r.o.partition.kind = DDP_PARTITION_SHARD;
    expect_same(&r);
    r = defaults(2, 64);
    set_sync(&r.o, "none");
    expect_same(&r);
}

/* The strategies. The lists of threshold:1e-30 hold nearly all values and are sent in rounds. */
static void strategies(void **state)
{
    static const char *const texts[] = {
        "fp16",          "fp16:0.5",        "bf16", "topk:0.01", "topk:1", "partial:3", "local:3",
        "threshold:0.2", "threshold:1e-30", "fp16", "fp16:0.5",  "bf16"};
    const size_t first_with_feedback = DDP_COUNT_OF(texts) - 3; /* strategies without feedback */
    static struct run r;
    for (size_t i = 0; i < DDP_COUNT_OF(texts); i++) {
        r = defaults(3, 9);
        r.o.max_steps = 5;
        set_sync(&r.o, texts[i]);
        if (r.o.sync.cls->buckets)
            r.o.bucket_bytes = 65536;
        if (i >= first_with_feedback)
            r.o.feedback = DDP_FEEDBACK_ON;
        if (r.o.sync.cls->replicas_equal)
            r.o.check_replicas = true;
        print_message("# %s\n", texts[i]);
        expect_same(&r);
    }
}

/* The CPU's selection among the sums is exact in the first step only, and adds in the same order
 * only with two ranks. */
static void global_topk(void **state)
{
    static struct run r, there;
    for (int feedback = 0; feedback < 2; feedback++) {
        r = defaults(2, 64);
        r.o.max_steps = 1;
        set_sync(&r.o, "oktopk:0.02");
        r.o.feedback = feedback ? DDP_FEEDBACK_ON : DDP_FEEDBACK_OFF;
        r.o.check_replicas = true;
        expect_same(&r);
    }
    r = defaults(3, 11);
    r.o.epochs = 6;
    set_sync(&r.o, "oktopk:0.02");
    r.o.check_replicas = true;
    there = r;
    on_streams(&there);
    expect_success(&r);
    expect_success(&there);
    print_message("# loss %g to %g, on processors %g\n", there.epochs[0].train_loss,
                  there.epochs[5].train_loss, r.epochs[5].train_loss);
    const double density = there.epochs[5].achieved_density;
    assert_true(density > 0.019 && density < 0.021);
    assert_true(there.epochs[5].train_loss < 1.05 * r.epochs[5].train_loss);
    assert_true(there.epochs[5].train_loss < there.epochs[0].train_loss);
}

/* Buckets that the progress thread exchanges on its own stream give the same bits. */
static void overlap_changes_no_bit(void **state)
{
    static const char *const texts[] = {"dense",     "fp16",          "bf16",       "fp16:0.5",
                                        "topk:0.01", "threshold:0.2", "oktopk:0.02"};
    static struct run off, on;
    for (size_t i = 0; i < DDP_COUNT_OF(texts); i++) {
        off = defaults(3, 9);
        off.o.max_steps = 5;
        off.o.bucket_bytes = 65536;
        set_sync(&off.o, texts[i]);
        if (strcmp(texts[i], "bf16") == 0)
            off.o.feedback = DDP_FEEDBACK_ON;
        on_streams(&off);
        on = off;
        on.o.overlap = true;
        on.o.check_replicas = true;
        print_message("# %s\n", texts[i]);
        expect_success(&off);
        expect_success(&on);
        const struct ddp_epoch *a = &on.epochs[0], *b = &off.epochs[0];
        assert_memory_equal(on.losses, off.losses, sizeof on.losses);
        assert_true(a->parameter_hash == b->parameter_hash);
        assert_true(a->wire_bytes_per_rank == b->wire_bytes_per_rank);
        assert_true(a->overflow_count == b->overflow_count);
        assert_true(a->achieved_density == b->achieved_density || isnan(b->achieved_density));
        assert_true(a->exchange_seconds > 0 && on.start.overlap && !off.start.overlap);
        assert_true(b->exposed_seconds == b->exchange_seconds);
    }
}

/* A strategy that records when it is notified of gradients, and otherwise works like dense. */
struct witness {
    struct ddp_sync *dense;
    float *grads;
    size_t total, offsets[64], counts[64];
    int param_count;
    bool inside; /* notifications are expected during the backward pass */
};

static const struct ddp_sync_class *dense;

static int witness_create(const struct ddp_sync_setup *setup, struct ddp_sync **out,
                          struct ddp_err *err)
{
    struct witness *w = ddp_calloc(1, sizeof *w);
    if (w == NULL || setup->param_count > (int)DDP_COUNT_OF(w->offsets))
        return ddp_fail(err, DDP_EINTERNAL, "no room for a witness");
    w->grads = setup->grads;
    w->total = setup->total;
    w->param_count = setup->param_count;
    w->inside = setup->overlap;
    memcpy(w->offsets, setup->offsets, sizeof *w->offsets * (size_t)setup->param_count);
    memcpy(w->counts, setup->counts, sizeof *w->counts * (size_t)setup->param_count);
    *out = (struct ddp_sync *)(void *)w;
    return dense->create(setup, &w->dense, err);
}

static struct witness *witness_of(const struct ddp_sync *s)
{
    return (struct witness *)(uintptr_t)s;
}

static void witness_destroy(struct ddp_sync *s)
{
    dense->destroy(witness_of(s)->dense);
    free(s);
}

static void witness_begin(struct ddp_sync *s, size_t images, size_t global)
{
    struct witness *w = witness_of(s);
    for (size_t i = 0; i < w->total; i++)
        w->grads[i] = NAN;
}

static int witness_ready(struct ddp_sync *s, int param, struct ddp_err *err)
{
    const struct witness *w = witness_of(s);
    const size_t at = w->offsets[param];
    if (isnan(w->grads[at]) || isnan(w->grads[at + w->counts[param] - 1]))
        return ddp_fail(err, DDP_EDATA, "gradient %d is not there", param);
    if (param >= 2 && isnan(w->grads[0]) != w->inside)
        return ddp_fail(err, DDP_EDATA, "the first gradient at %d: %g", param, w->grads[0]);
    return dense->on_grad_ready(w->dense, param, err);
}

static int witness_finish(struct ddp_sync *s, struct ddp_err *err)
{
    return dense->finish_backward(witness_of(s)->dense, err);
}

static int witness_settle(struct ddp_sync *s, struct ddp_err *err)
{
    return dense->settle(witness_of(s)->dense, err);
}

static void witness_counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    dense->counters(witness_of(s)->dense, out);
}

/* With overlap the strategy is notified of a gradient before those of earlier layers are computed.
 * Without overlap it is notified when all are computed. */
static void told_inside_backward(void **state)
{
    static struct run r;
    for (int overlap = 0; overlap < 2; overlap++) {
        r = defaults(2, 10);
        r.o.max_steps = 4;
        r.o.overlap = overlap;
        dense = r.o.sync.cls;
        struct ddp_sync_class witness = *dense;
        witness.create = witness_create;
        witness.destroy = witness_destroy;
        witness.begin_step = witness_begin;
        witness.on_grad_ready = witness_ready;
        witness.finish_backward = witness_finish;
        witness.settle = witness_settle;
        witness.counters = witness_counters;
        witness.exchanged = NULL;
        r.o.sync.cls = &witness;
        on_streams(&r);
        expect_success(&r);
        assert_int_equal(r.steps, 4);
    }
}

/* A threshold that nearly all values exceed: all of these are sent, and the model learns. */
static void threshold_in_rounds(void **state)
{
    static struct run r;
    r = defaults(2, 64);
    set_sync(&r.o, "threshold:1e-9");
    on_streams(&r);
    r.o.check_replicas = true;
    r.o.epochs = 3;
    expect_success(&r);
    assert_true(r.epochs[0].achieved_density > 0.13 && r.epochs[0].achieved_density <= 1);
    assert_true(r.epochs[2].train_loss < r.epochs[0].train_loss);
}

/* More steps than the buffer has room for results (1024), without a callback that collects them. */
static void many_steps(void **state)
{
    static struct run plain, there;
    plain = defaults(1, 1);
    plain.o.model = ddp_model_find("lenet");
    plain.o.max_steps = 1100;
    plain.o.epochs = 4;
    plain.quiet = true;
    there = plain;
    on_streams(&there);
    expect_success(&plain);
    expect_success(&there);
    assert_int_equal(there.epoch_count, 4);
    for (int e = 0; e < 4; e++) {
        assert_true(there.epochs[e].train_loss == plain.epochs[e].train_loss);
        assert_true(there.epochs[e].parameter_hash == plain.epochs[e].parameter_hash);
    }
}

static void expect_refusal(struct run *r, const char *word)
{
    run_it(r);
    assert_int_equal(r->code, DDP_EUNAVAIL);
    if (!text_names(r->err.text, word))
        fail_msg("'%s' is not in: %s", word, r->err.text);
}

static void refusals(void **state)
{
    static struct run r;
    r = defaults(1, 64);
    on_streams(&r);
    r.o.graph = true;
    expect_refusal(&r, "graphs");
}

/* Device cuda on a machine without a GPU, or with ranks that exchange CPU memory. */
static void no_gpu(void **state)
{
    static struct run r;
    const struct ddp_device *cuda = ddp_device_all()[1];
    struct ddp_err why = DDP_ERR_INIT;
    assert_string_equal(cuda->name, "cuda");
    r = defaults(2, 64);
    r.o.device = cuda;
    expect_refusal(&r, "'shm'|'cuda'");
    if (cuda->probe(&why) == 0)
        skip();
    r = defaults(1, 64);
    r.o.device = cuda;
    expect_refusal(&r, why.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(strategies),
        cmocka_unit_test(global_topk),
        cmocka_unit_test(overlap_changes_no_bit),
        cmocka_unit_test(told_inside_backward),
        cmocka_unit_test(threshold_in_rounds),
        cmocka_unit_test(many_steps),
        cmocka_unit_test(refusals),
        cmocka_unit_test(no_gpu),
    };
    return cmocka_run_group_tests(tests, make_few, NULL);
}
