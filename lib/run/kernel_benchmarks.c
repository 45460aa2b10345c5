#include "run/kernel_benchmarks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "bench/kernel_cases.h"
#include "record/provenance.h"
#include "run/kernels_run.h"

/* The arrays that all benchmarks share. They are created when the first benchmark runs, because
 * listing the benchmarks needs no arrays. */
struct kernel_arrays {
    struct ddp_kernel_data *data;
    uint64_t largest_bytes;
    enum ddp_simd level;
};

/* One kernel at one array size. */
struct kernel_at_size {
    const struct ddp_kernel_case *kernel;
    struct kernel_arrays *arrays;
    size_t bytes;
    char name[96];
};

static int begin_case(void *arg)
{
    struct kernel_at_size *b = arg;
    struct ddp_err err = DDP_ERR_INIT;
    struct kernel_arrays *a = b->arrays;
    if (!a->data && ddp_kernel_data_create(a->largest_bytes, a->level, &a->data, &err) != 0)
        return -1;
    ddp_kernel_begin(b->kernel, a->data, b->bytes);
    return 0;
}

static void restore_case(void *arg)
{
    const struct kernel_at_size *b = arg;
    ddp_kernel_restore(b->kernel, b->arrays->data);
}

static void run_case(void *arg)
{
    const struct kernel_at_size *b = arg;
    ddp_kernel_run(b->kernel, b->arrays->data);
}

static double bytes_of(void *arg)
{
    const struct kernel_at_size *b = arg;
    return ddp_kernel_bytes(b->kernel, b->arrays->data);
}

static double items_of(void *arg)
{
    const struct kernel_at_size *b = arg;
    return (double)b->arrays->data->n;
}

int ddp_kernel_benchmarks_check(const char *build, const struct ddp_size_list *sizes,
                                struct ddp_err *err)
{
    if (build && strcmp(build, ddp_build_info()->commit) != 0) {
        ddp_fail(err, DDP_EMISMATCH,
                 "'" DDP_KERNELS_HELPER "' is from build '%.60s', ddpbench from '%.60s'",
                 ddp_build_info()->commit, build);
        return ddp_hint(err, "build both together: `make`");
    }
    for (int i = 0; i < sizes->n; i++)
        if (sizes->v[i] % 8 != 0)
            return ddp_fail(err, DDP_EUSAGE, "--size %llu is not a multiple of 8 bytes",
                            (unsigned long long)sizes->v[i]);
    return 0;
}

static int count_kernels(void)
{
    int count = 0;
    while (ddp_kernel_cases()[count].name)
        count++;
    return count;
}

int ddp_kernel_benchmarks_create(const struct ddp_size_list *sizes,
                                 struct ddp_kernel_benchmarks *out, struct ddp_err *err)
{
    *out = (struct ddp_kernel_benchmarks){.simd = ddp_simd_name(ddp_conf_simd())};
    const size_t kernels = (size_t)count_kernels();
    int rc;
    out->count = kernels * (size_t)sizes->n;
    DDP_TRY_GOTO(DDP_NEW(&out->arrays, 1, err), failed);
    DDP_TRY_GOTO(DDP_NEW(&out->kernels, out->count, err), failed);
    DDP_TRY_GOTO(DDP_NEW(&out->cases, out->count, err), failed);
    out->arrays->level = ddp_conf_simd();
    for (size_t i = 0; i < out->count; i++) {
        struct kernel_at_size *k = &out->kernels[i];
        k->kernel = &ddp_kernel_cases()[i / (size_t)sizes->n];
        k->arrays = out->arrays;
        k->bytes = sizes->v[i % (size_t)sizes->n];
        snprintf(k->name, sizeof k->name, "%s/%llu", k->kernel->name, (unsigned long long)k->bytes);
        out->cases[i] = (struct ddp_gbench_case){
            .name = k->name,
            .label = out->simd,
            .arg = k,
            .begin = begin_case,
            .restore = k->kernel->feedback ? restore_case : NULL,
            .run = run_case,
            .bytes = bytes_of,
            .items = items_of,
        };
        out->arrays->largest_bytes = DDP_MAX(out->arrays->largest_bytes, k->bytes);
    }
    return 0;
failed:
    ddp_kernel_benchmarks_release(out);
    return rc;
}

void ddp_kernel_benchmarks_release(struct ddp_kernel_benchmarks *b)
{
    if (b->arrays)
        ddp_kernel_data_destroy(b->arrays->data);
    free(b->arrays);
    free(b->kernels);
    free(b->cases);
}
