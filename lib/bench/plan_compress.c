/* The functions of the plan for --compress, --partial and the options that need one of the two. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bench/gradient.h"
#include "bench/plan.h"
#include "coll/sparse/sparse_coll.h"
#include "exchange/block_exchange.h"
#include "exchange/compressed.h"

int ddp_plan_methods(const struct ddp_bench_options *o)
{
    return DDP_MAX(o->compress.n, 1);
}

const struct ddp_compress_spec *ddp_plan_method(const struct ddp_bench_options *o, int i)
{
    return o->compress.n > 0 ? &o->compress.v[i] : &ddp_compress_none;
}

const struct ddp_compress_spec *ddp_plan_method_of(const struct ddp_bench_options *o,
                                                   const struct ddp_point_spec *spec)
{
    int i = ddp_plan_methods(o) - 1;
    while (i > 0 && strcmp(ddp_plan_method(o, i)->text, spec->compress) != 0)
        i--;
    return ddp_plan_method(o, i);
}

static bool compresses(const struct ddp_bench_options *o)
{
    for (int i = 0; i < o->compress.n; i++) {
        if (!ddp_compressor_is_lossless(o->compress.v[i].compressor))
            return true;
    }
    return false;
}

bool ddp_plan_reduces(const struct ddp_bench_options *o)
{
    return o->partial.n > 0 || compresses(o);
}

bool ddp_plan_feedback(const struct ddp_bench_options *o, const struct ddp_point_spec *spec)
{
    return ddp_compress_keeps(ddp_plan_method_of(o, spec), (enum ddp_feedback)o->feedback);
}

/* Returns the j-th exchange algorithm for a sparse compressor, or NULL after the last. A compressor
 * with a global selection (oktopk) uses the algorithms that select among the sums. All other
 * compressors use the algorithms that do not select. */
static const char *sparse_algorithm(const struct ddp_compressor *compressor, int j)
{
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a; a++) {
        if ((*a)->selects == compressor->global_topk && j-- == 0)
            return (*a)->name;
    }
    return NULL;
}

const char *ddp_plan_algorithm(const struct ddp_bench_options *o, int method, int j)
{
    const struct ddp_compressor *compressor = ddp_plan_method(o, method)->compressor;
    if (compressor->combine == DDP_COMBINE_GATHER)
        return sparse_algorithm(compressor, j);
    if (compressor->combine == DDP_COMBINE_BLOCKS)
        return j == 0 ? ddp_block_exchange_name(compressor) : NULL;
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++) {
        if ((*a)->coll == o->coll && j-- == 0)
            return (*a)->name;
    }
    return NULL;
}

/* Rejects types, operations and placements that a compressed or partial exchange does not support.
 * Like training, such an exchange sums or averages f32 gradients in place. */
static int check_kind(const struct ddp_bench_options *o, struct ddp_err *err)
{
    const char *option = compresses(o) ? "compress" : "partial";
    for (int i = 0; i < o->dtypes.n; i++) {
        if (o->dtypes.v[i] != DDP_F32)
            return ddp_fail(err, DDP_EUSAGE, "--%s exchanges f32 gradients, not '%s'", option,
                            ddp_dtype_name((enum ddp_dtype)o->dtypes.v[i]));
    }
    for (int i = 0; i < o->ops.n; i++) {
        if (o->ops.v[i] != DDP_SUM && o->ops.v[i] != DDP_AVG)
            return ddp_fail(err, DDP_EUSAGE, "--%s has the operations sum and avg, not '%s'",
                            option, ddp_op_name((enum ddp_op)o->ops.v[i]));
    }
    if (o->placement == DDP_OUT_OF_PLACE) {
        ddp_fail(err, DDP_EUSAGE, "--placement out: --%s works in place, as training does", option);
        return ddp_hint(err, "leave out --placement, or use --placement in");
    }
    return 0;
}

/* True if any method has a fixed density, which --break-even needs. */
static bool has_density(const struct ddp_bench_options *o)
{
    for (int i = 0; i < o->compress.n; i++) {
        if (o->compress.v[i].compressor->fixed_count)
            return true;
    }
    return false;
}

/* Rejects options that have no meaning for the methods of --compress. */
static int check_meaning(const struct ddp_bench_options *o, struct ddp_err *err)
{
    if (o->break_even && o->partial.n > 0)
        return ddp_fail(err, DDP_EUSAGE, "--break-even cannot be combined with --partial");
    if (o->break_even && !has_density(o))
        return ddp_fail(err, DDP_EUSAGE, "--break-even needs --compress topk or oktopk");
    if (o->feedback != DDP_FEEDBACK_AUTO && !compresses(o))
        return ddp_fail(err, DDP_EUSAGE,
                        "--feedback needs a method of --compress that loses values");
    return 0;
}

int ddp_plan_check_compress(const struct ddp_bench_options *o, struct ddp_err *err)
{
    DDP_TRY(ddp_gradient_check(&o->gradient, err));
    if (ddp_plan_reduces(o)) {
        if (o->graph)
            return ddp_fail(err, DDP_EUSAGE,
                            "--graph cannot be combined with --compress or "
                            "--partial");
        DDP_TRY(check_meaning(o, err));
        return check_kind(o, err);
    }
    const char *option = o->feedback != DDP_FEEDBACK_AUTO ? "feedback"
                         : o->gradient.n > 0              ? "gradient"
                         : o->break_even                  ? "break-even"
                                                          : NULL;
    if (option) {
        if (o->compress.n > 0)
            return ddp_fail(err, DDP_EUSAGE, "--%s has no effect with --compress none", option);
        ddp_fail(err, DDP_EUSAGE, "--%s needs --compress or --partial", option);
        return ddp_hint(err, "for example: --compress topk:0.01 --%s ...", option);
    }
    return 0;
}

/* Adds host memory only. The size of the device's memory is not known here. If the device has too
 * little memory, the allocation fails later. */
static void add_device_bytes(struct ddp_bench_plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        plan->compress_private =
            DDP_MAX(plan->compress_private, plan->points[i].count * sizeof(float));
}

/* A point needs memory for its own exchange, for the two baselines, for a second candidate of the
 * f16 baseline, and for the expected residual. With --break-even it also needs memory for an
 * exchange of density 1. */
void ddp_plan_add_compress_bytes(const struct ddp_bench_options *o, bool on_device,
                                 struct ddp_bench_plan *plan)
{
    const struct ddp_compress_spec f16 = ddp_compress_with(ddp_compressor_find("fp16"), NAN);
    const struct ddp_compress_spec others[] = {ddp_compress_none, f16, f16,
                                               ddp_compress_with(ddp_compressor_find("topk"), 1)};
    if (on_device) {
        add_device_bytes(plan);
        return;
    }
    for (int i = 0; i < plan->count; i++) {
        const struct ddp_point_spec *s = &plan->points[i];
        uint64_t registered, private_bytes, sum, sum_private;
        if (!ddp_point_is_reduced(s))
            continue;
        struct ddp_compressed_setup setup = {
            .n = s->count, .spec = *ddp_plan_method_of(o, s), .feedback = ddp_plan_feedback(o, s)};
        ddp_compressed_bytes(&setup, s->ranks, &sum, &sum_private);
        for (size_t j = 0; j < DDP_COUNT_OF(others) - !o->break_even; j++) {
            setup.spec = others[j];
            setup.feedback = j == DDP_COUNT_OF(others) - 1;
            ddp_compressed_bytes(&setup, s->ranks, &registered, &private_bytes);
            sum += registered;
            sum_private += private_bytes;
        }
        plan->compress_registered = DDP_MAX(plan->compress_registered, sum);
        plan->compress_private =
            DDP_MAX(plan->compress_private, sum_private + s->count * sizeof(float));
    }
}
