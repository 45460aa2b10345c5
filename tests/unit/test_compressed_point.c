/* Compressed and partial points: every method is measured and verified. If a kernel selects,
 * keeps or adds a wrong value on one rank, all ranks get an error. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bench/verify_burst.h"
#include "compressed_runs.h"
#include "device/sparse.h"
#include "names.h"

/* Checks the properties that every point must have, and density and bytes where the method
 * determines them. */
static int look(const struct ddp_point *p, const double *samples, void *arg, struct ddp_err *err)
{
    const bool many = p->spec.ranks > 1;
    const double n = (double)p->spec.count, others = p->spec.ranks - 1;
    const double f32 = ddp_point_speedup(p, DDP_BASELINE_F32);
    CHECK(p->time_ns.median > 0 && p->iterations == 3 && p->check_wrong == 0);
    /* two exchanges at first, a warm-up, three timed ones and the burst */
    CHECK(p->check_operations == 6 + ddp_exchange_burst_count(p->spec.count));
    CHECK(p->check_elements == (int64_t)p->spec.count * p->spec.ranks * p->check_operations);
    CHECK(isnan(ddp_point_busbw_GBps(p, p->time_ns.median)));
    CHECK(isnan(ddp_point_effective_GBps(p, p->time_ns.median)) == !many);
    for (int i = 0; i < 3; i++)
        CHECK(p->phase_ns[i] >= 0 && p->phase_ns[i] <= p->time_ns.max);
    CHECK(many ? f32 > 0 : isnan(f32));
    CHECK(isnan(p->dense_ns[DDP_BASELINE_F16]) == (!many || strcmp(p->spec.compress, "fp16") == 0));
    const bool sparse = strchr("to", p->spec.compress[0]) != NULL;
    CHECK(isnan(p->break_even[0].predicted) == (!sparse || !many));
    const bool low_rank = strncmp(p->spec.compress, "powersgd", 8) == 0;
    CHECK(isnan(p->break_even[0].measured) && (p->overflow_count == 0) == !(sparse || low_rank));
    const bool keeps = sparse || strcmp(p->spec.compress, "q4") == 0 ||
                       strcmp(p->spec.compress, "sign") == 0 || low_rank;
    CHECK(strcmp(p->feedback, keeps ? "on" : "off") == 0);
    CHECK(p->wire_bytes_per_rank >= 0 && (many || p->wire_bytes_per_rank == 0));
    if (strncmp(p->spec.compress, "topk", 4) == 0) {
        double k = ceil(0.01 * n);
        CHECK(p->density == 0.01 && fabs(p->achieved_density * n - k) < 1e-9);
        if (p->spec.ranks == 2 || strcmp(p->algorithm_used, "direct") == 0)
            CHECK(p->wire_bytes_per_rank <= 8 * k * others);
    }
    if (strcmp(p->spec.compress, "powersgd:2") == 0) /* P and Q of a matrix of 100 x 101 */
        CHECK(fabs(p->achieved_density * n - (p->spec.count > 1 ? 2 * 201 : 1)) < 1e-9);
    if (strcmp(p->spec.compress, "threshold:2") == 0 && p->spec.count > 1)
        CHECK(p->threshold == 2 && p->achieved_density > 0.02 && p->achieved_density < 0.5);
    ++*(int *)arg;
    return 0;
}

static int body_all(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                    struct ddp_err *err)
{
    struct ddp_bench_options o = options_of();
    int seen = 0;
    (void)rank;
    o.ops = (struct ddp_int_list){2, {DDP_SUM, DDP_AVG}};
    o.samples = true;
    o.memory = *(int *)arg;
    DDP_TRY(run_all(comm, &o, look, &seen, err));
    CHECK(seen == 44);
    return 0;
}

static void test_every_method(void **state)
{
    for (int ranks = 1; ranks <= 4; ranks++) {
        int memory = ranks % 2;
        run_ranks(ranks, (struct ranks_job){.body = body_all, .arg = &memory});
    }
}

static int look_at_part(const struct ddp_point *p, const double *samples, void *arg,
                        struct ddp_err *err)
{
    const double n = (double)p->spec.count;
    CHECK(p->spec.partial == 4 && p->check_wrong == 0);
    CHECK(p->spec.count == 0 || p->achieved_density <= 0.25 + 1 / n);
    CHECK(p->wire_bytes_per_rank <= ceil(n / 4) * 4 + 8);
    CHECK(isnan(p->break_even[0].predicted));
    ++*(int *)arg;
    return 0;
}

static int body_partial(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    struct ddp_bench_options o = options_of();
    int seen = 0;
    (void)rank;
    (void)arg;
    o.sizes = (struct ddp_size_list){3, {0, 8, 40004}};
    set_compress(&o, "none,topk:0.1");
    o.partial = (struct ddp_int_list){1, {4}};
    o.iters = 8;
    for (int check = DDP_CHECK_OFF; check <= DDP_CHECK_ALL; check++) {
        struct ddp_bench_options of_this = o;
        of_this.check = check;
        if (check == DDP_CHECK_OFF)
            DDP_TRY(run_all(comm, &of_this, NULL, NULL, err));
        else
            DDP_TRY(run_all(comm, &of_this, look_at_part, &seen, err));
    }
    CHECK(seen == 12);
    return 0;
}

static void test_partial(void **state)
{
    run_ranks(2, (struct ranks_job){.body = body_partial});
}

static int look_at_break_even(const struct ddp_point *p, const double *samples, void *arg,
                              struct ddp_err *err)
{
    (void)arg;
    for (int i = 0; i < DDP_BASELINE_COUNT; i++) {
        double d = p->break_even[i].measured;
        CHECK(d >= 0 && d <= 1);
        CHECK(p->break_even[i].estimated >= 0 && p->break_even[i].estimated <= 1);
    }
    return 0;
}

static int body_break_even(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                           struct ddp_err *err)
{
    struct ddp_bench_options o = options_of();
    (void)rank;
    o.sizes = (struct ddp_size_list){1, {40000}};
    set_compress(&o, "topk:0.01,oktopk:0.01");
    o.break_even = true;
    return run_all(comm, &o, look_at_break_even, arg, err);
}

static void test_break_even_is_measured(void **state)
{
    run_ranks(2, (struct ranks_job){.body = body_break_even});
}

/* Kernels with an error. */
static const struct ddp_grad_kernels *good(void)
{
    return ddp_device_cpu(DDP_SIMD_SCALAR)->grad;
}

/* The defect of SINGA: selects the first k by index instead of the largest k. */
static size_t first_k(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch)
{
    (void)hint;
    (void)scratch;
    for (size_t i = 0; i < s->n; i++) {
        float acc = s->in[i] + (s->residual ? s->residual[i] : 0);
        if (i < k) {
            s->out.index[i] = (uint32_t)i;
            s->out.value[i] = acc;
        }
        if (s->residual)
            s->residual[i] = i < k ? 0 : acc;
    }
    return s->out.count = DDP_MIN(k, s->n);
}

/* Selects one entry too many. */
static size_t one_more(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch)
{
    size_t n = good()->select_topk(s, k, hint, scratch);
    if (n > 1) {
        s->out.index[n - 1] = s->out.index[n - 2] + 1;
        s->out.value[n - 1] = 1;
    }
    return n;
}

/* Loses one value, which is neither sent nor kept. */
static size_t forgetful(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch)
{
    size_t n = good()->select_topk(s, k, hint, scratch);
    for (size_t i = 0; i < s->n && s->residual; i++) {
        if (s->residual[i] != 0) {
            s->residual[i] = 0;
            break;
        }
    }
    return n;
}

static size_t above_not_from(struct ddp_select *s, float threshold)
{
    return good()->select_threshold(s, threshold * 1.25f);
}

static uint64_t flipping(void *dst, const float *src, size_t n, enum ddp_dtype to, float scale,
                         float clip)
{
    uint64_t overflows = good()->narrow(dst, src, n, to, scale, clip);
    if (n > 17)
        ((uint16_t *)dst)[17] ^= 0x200; /* not the last bit, because a sum may round it away */
    return overflows;
}

static uint64_t never_clips(void *dst, const float *src, size_t n, enum ddp_dtype to, float scale,
                            float clip)
{
    (void)clip;
    return good()->narrow(dst, src, n, to, scale, 0);
}

/* Loses the error of the encoding. */
static void keeps_nothing(float *residual, const float *in, const void *wire, size_t n,
                          enum ddp_dtype type)
{
    (void)in;
    (void)wire;
    (void)type;
    memset(residual, 0, n * sizeof *residual);
}

struct defect {
    const char *method, *says;
    size_t (*topk)(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch);
    size_t (*threshold)(struct ddp_select *s, float threshold);
    uint64_t (*narrow)(void *dst, const float *src, size_t n, enum ddp_dtype to, float scale,
                       float clip);
    /* A compressor of 16 bits with error feedback. */
    void (*residual)(float *residual, const float *in, const void *wire, size_t n,
                     enum ddp_dtype type);
};

static int body_defect(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    const struct defect *d = arg;
    struct ddp_device device = *ddp_device_cpu(DDP_SIMD_SCALAR);
    struct ddp_grad_kernels grad = *device.grad;
    struct ddp_bench_options o = options_of();
    (void)rank;
    device.grad = &grad;
    if (comm->rank == 1) {
        grad.select_topk = d->topk ? d->topk : grad.select_topk;
        grad.select_threshold = d->threshold ? d->threshold : grad.select_threshold;
        grad.narrow = d->narrow ? d->narrow : grad.narrow;
        grad.narrow_residual = d->residual ? d->residual : grad.narrow_residual;
    }
    comm->device = &device;
    o.check = DDP_CHECK_ONCE;
    o.sizes = (struct ddp_size_list){1, {4000}};
    set_compress(&o, d->method);
    o.feedback = d->residual ? DDP_FEEDBACK_ON : DDP_FEEDBACK_AUTO;
    int rc = run_all(comm, &o, NULL, NULL, err);
    comm->device = ddp_device_cpu(DDP_SIMD_SCALAR);
    CHECK(rc == DDP_EDATA);
    if (!text_names(err->text, d->says) || !text_names(err->text, "rank ") ||
        !text_names(err->text, "element ")) {
        char text[sizeof err->text];
        memcpy(text, err->text, sizeof text);
        *err = DDP_ERR_INIT;
        return ddp_fail(err, DDP_EINTERNAL, "'%.400s' lacks '%s'", text, d->says);
    }
    *err = DDP_ERR_INIT;
    return 0; /* the other ranks compute correctly */
}

static void test_defects_are_found(void **state)
{
    static struct defect defects[] = {
        {"topk:0.01", "rank |element ", .topk = first_k},
        {"topk:0.01", "rank |element ", .topk = one_more},
        {"topk:0.01", "rank 1, element 0 (topk:0.01, residual)", .topk = forgetful},
        {"oktopk:0.01", "rank |element ", .topk = first_k},
        {"threshold:2", "rank |element ", .threshold = above_not_from},
        {"fp16", "element 17 (fp16, sum)", .narrow = flipping},
        {"bf16", "element 17 (bf16, sum)", .narrow = flipping},
        {"fp16:1", "element |(fp16:1, sum)", .narrow = never_clips},
        {"fp16", "rank 1, element |(fp16, residual)", .residual = keeps_nothing},
        {"bf16", "rank 1, element |(bf16, residual)", .residual = keeps_nothing},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(defects); i++)
        run_ranks(3, (struct ranks_job){.body = body_defect, .arg = &defects[i]});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_break_even_is_measured),
        cmocka_unit_test(test_defects_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
