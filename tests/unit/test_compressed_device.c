/* Compressed and partial points whose gradients lie on a device are measured and verified. If a
 * stream kernel selects, keeps or converts a wrong value on one rank, all ranks get an error.
 * The device is the CPU, whose streams the sampler uses as it would use a GPU's. */
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
#include "compressed_runs.h"
#include "device/stream_kernels.h"
#include "names.h"

/* Checks the bytes of a point, whose lists have 8 bytes per entry. Lists of equal length are
 * gathered, so their bytes are modelled. A threshold also sends the lengths of 8 blocks. oktopk on
 * three ranks sends its own bytes, whose bound sparse_oktopk.c explains. */
static int look_at_bytes(const struct ddp_point *p, struct ddp_err *err)
{
    const double others = p->spec.ranks - 1, n = (double)p->spec.count;
    const double entries = p->achieved_density * n, bytes = p->wire_bytes_per_rank;
    const bool threshold = strncmp(p->spec.compress, "threshold", 9) == 0;
    const bool oktopk = strncmp(p->spec.compress, "oktopk", 6) == 0 && p->spec.ranks > 2;
    CHECK(p->wire_counted == (threshold || oktopk));
    if (strncmp(p->spec.compress, "topk", 4) == 0)
        CHECK(p->spec.partial > 0 || fabs(bytes - 8 * others * entries) < 1e-6 * bytes + 1e-9);
    /* the bytes are those of the rank with most entries, the density is that of all ranks */
    if (threshold)
        CHECK(bytes >= (8 * entries + 32) * others * (1 - 1e-9) &&
              bytes <= (8.8 * entries + 40) * others);
    if (oktopk)
        CHECK(bytes > 0 && bytes <= (24 * ceil(entries) / p->spec.ranks + 536) * others);
    return 0;
}

/* Checks the properties that every point must have. */
static int look_there(const struct ddp_point *p, const double *samples, void *arg,
                      struct ddp_err *err)
{
    const bool many = p->spec.ranks > 1, sparse = strchr("to", p->spec.compress[0]) != NULL;
    const double n = (double)p->spec.count;
    double phases = 0;
    CHECK(p->time_ns.median > 0 && p->iterations == 3 && p->check_wrong == 0);
    CHECK(p->check_elements >=
          (int64_t)p->spec.count * p->spec.ranks / DDP_MAX(p->spec.partial, 1));
    for (int i = 0; i < 3; i++)
        phases += p->phase_ns[i];
    CHECK(phases > 0 || p->spec.partial > 0);
    CHECK((p->wire_bytes_per_rank > 0) == many);
    DDP_TRY(look_at_bytes(p, err));
    CHECK(isnan(p->dense_ns[DDP_BASELINE_F32]) == !many);
    CHECK(!sparse ||
          strcmp(p->algorithm_used, p->spec.compress[0] == 'o' ? "oktopk" : "allgather") == 0);
    CHECK(!sparse || isnan(p->break_even[0].predicted) == (!many || p->spec.partial > 0));
    CHECK(p->page_bytes == -1 && isnan(p->device_ns));
    if (p->spec.partial == 0 && strstr(p->spec.compress, "topk"))
        CHECK(fabs(p->achieved_density * n - ceil(p->density * n)) < 1e-9);
    /* nearly all values reach this threshold, and all of them are sent, in several rounds */
    if (strcmp(p->spec.compress, "threshold:0.1") == 0 && p->spec.count > 8)
        CHECK(fabs(p->achieved_density * n - n) < n / 10);
    ++*(int *)arg;
    return 0;
}

/* Runs all points on comm, whose backend and device are replaced meanwhile: its memory counts as
 * memory of `device`. */
static int
run_there(struct ddp_comm *comm, const struct ddp_device *device, const struct ddp_bench_options *o,
          int (*each)(const struct ddp_point *, const double *, void *, struct ddp_err *),
          void *arg, struct ddp_err *err)
{
    const struct ddp_backend *before = comm->backend;
    struct ddp_backend there = *before;
    there.caps |= DDP_CAP_DEVICE;
    comm->backend = &there;
    comm->device = device;
    int rc = run_all(comm, o, each, arg, err);
    comm->backend = before;
    return rc;
}

static int body_there(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    struct ddp_bench_options o = options_of();
    int seen = 0, want = 0;
    (void)rank;
    (void)arg;
    o.ops = (struct ddp_int_list){2, {DDP_SUM, DDP_AVG}};
    set_compress(&o, "fp16,fp16:0.5,bf16,topk:0.01,threshold:2,oktopk:0.02,threshold:0.1");
    for (int feedback = DDP_FEEDBACK_AUTO; feedback < DDP_FEEDBACK_COUNT; feedback++) {
        o.feedback = feedback;
        want += 2 * 2 * o.compress.n;
        DDP_TRY(run_there(comm, ddp_device_cpu(DDP_SIMD_SCALAR), &o, look_there, &seen, err));
    }
    CHECK(seen == want);
    o.feedback = DDP_FEEDBACK_AUTO;
    o.partial = (struct ddp_int_list){1, {3}};
    set_compress(&o, "none,topk:0.1,oktopk:0.1");
    o.check = DDP_CHECK_ONCE;
    DDP_TRY(run_there(comm, ddp_device_cpu(DDP_SIMD_SCALAR), &o, look_there, &seen, err));
    CHECK(seen == want + 12);
    return 0;
}

static void test_on_a_device(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++)
        run_ranks(ranks, (struct ranks_job){.body = body_there});
}

/* An algorithm that a device lacks is refused by name. `all` runs the algorithms that the device
 * has. */
static int body_algorithms(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                           struct ddp_err *err)
{
    const struct ddp_device *device = ddp_device_cpu(DDP_SIMD_SCALAR);
    struct ddp_bench_options o = options_of();
    int seen = 0;
    (void)rank;
    (void)arg;
    o.sizes = (struct ddp_size_list){1, {4000}};
    set_compress(&o, "topk:0.01");
    o.algorithms = (struct ddp_string_list){1, {"rd"}};
    CHECK(run_there(comm, device, &o, NULL, NULL, err) == DDP_EUNAVAIL);
    CHECK(text_names(err->text, "'rd'"));
    *err = DDP_ERR_INIT;
    snprintf(o.algorithms.v[0], sizeof o.algorithms.v[0], "all");
    DDP_TRY(run_there(comm, device, &o, look_there, &seen, err));
    CHECK(seen == 1);
    return 0;
}

static void test_algorithms_on_a_device(void **state)
{
    run_ranks(2, (struct ranks_job){.body = body_algorithms});
}

/* Stream kernels that make an error on one rank. */
static const struct ddp_stream_kernels *good_there(void)
{
    return ddp_device_cpu(DDP_SIMD_SCALAR)->stream_kernels;
}

static void one_less(struct ddp_stream *s, const struct ddp_stream_select *x, size_t k)
{
    good_there()->select_topk(s, x, k);
    --*x->out.count;
}

static void swapped(struct ddp_stream *s, const struct ddp_stream_select *x, float threshold)
{
    good_there()->select_threshold(s, x, threshold);
    x->out.value[0] = -x->out.value[0];
}

static void flipping_there(struct ddp_stream *s, void *dst, const float *src, size_t n,
                           enum ddp_dtype to, float scale, float clip, uint64_t *overflows)
{
    good_there()->narrow(s, dst, src, n, to, scale, clip, overflows);
    if (n > 17)
        ((uint16_t *)dst)[17] ^= 0x200;
}

struct defect_there {
    const char *method, *says;
    struct ddp_stream_kernels kernels;
};

static int body_defect_there(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                             struct ddp_err *err)
{
    const struct defect_there *d = arg;
    struct ddp_device device = *ddp_device_cpu(DDP_SIMD_SCALAR);
    struct ddp_stream_kernels kernels = *device.stream_kernels;
    struct ddp_bench_options o = options_of();
    (void)rank;
    if (comm->rank == 1) {
        kernels.select_topk = d->kernels.select_topk ? d->kernels.select_topk : kernels.select_topk;
        kernels.select_threshold =
            d->kernels.select_threshold ? d->kernels.select_threshold : kernels.select_threshold;
        kernels.narrow = d->kernels.narrow ? d->kernels.narrow : kernels.narrow;
    }
    device.stream_kernels = &kernels;
    o.check = DDP_CHECK_ONCE;
    o.sizes = (struct ddp_size_list){1, {4000}};
    set_compress(&o, d->method);
    CHECK(run_there(comm, &device, &o, NULL, NULL, err) == DDP_EDATA);
    const bool said = text_names(err->text, d->says);
    *err = DDP_ERR_INIT;
    CHECK(said);
    return 0;
}

static void test_defects_on_a_device_are_found(void **state)
{
    static struct defect_there defects[] = {
        {"topk:0.01", "rank |element ", {.select_topk = one_less}},
        {"oktopk:0.01", "rank |element ", {.select_topk = one_less}},
        {"threshold:2", "rank |element ", {.select_threshold = swapped}},
        {"bf16", "element 17 (bf16, sum)", {.narrow = flipping_there}},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(defects); i++)
        run_ranks(3, (struct ranks_job){.body = body_defect_there, .arg = &defects[i]});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_a_device),
        cmocka_unit_test(test_algorithms_on_a_device),
        cmocka_unit_test(test_defects_on_a_device_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
