#include "run/catalog.h"

#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/cpuinfo.h"
#include "base/fault.h"
#include "bench/break_even.h"
#include "coll/coll.h"
#include "coll/sparse/sparse_coll.h"
#include "compress/compress.h"
#include "exchange/sync.h"
#include "model/dataset.h"
#include "model/model.h"
#include "report/report.h"
#include "run/kernels_run.h"

/* The arguments of ddp_catalog_list. */
struct catalog {
    const struct ddp_app *app;
    ddp_catalog_entry *entry;
    void *arg;
};

static void list_backends(const struct catalog *l)
{
    char dir[4200];
    ddp_conf_module_dir(l->app->binary_dir, dir, sizeof dir);
    for (const struct ddp_backend *const *b = ddp_backend_all(); *b; b++) {
        struct ddp_err why = DDP_ERR_INIT;
        bool usable = (*b)->probe(dir, &why) == 0;
        char summary[200];
        const char *library = (*b)->library ? (*b)->library() : NULL;
        snprintf(summary, sizeof summary, "%s%s%s%s", (*b)->summary, library ? " (" : "",
                 library ? library : "", library ? ")" : "");
        l->entry(l->arg, (*b)->name, usable ? "" : why.text, summary);
    }
}

static void list_devices(const struct catalog *l)
{
    for (const struct ddp_device *const *d = ddp_device_all(); *d; d++) {
        struct ddp_err why = DDP_ERR_INIT;
        bool usable = (*d)->probe(&why) == 0;
        l->entry(l->arg, (*d)->name, usable ? "" : why.text, (*d)->summary);
    }
}

static void list_simd(const struct catalog *l)
{
    static const char *const summaries[DDP_SIMD_COUNT] = {
        [DDP_SIMD_SCALAR] = "plain C: runs anywhere",
        [DDP_SIMD_AVX2] = "256 bits, with FMA and F16C",
        [DDP_SIMD_AVX512] = "512 bits, with AVX-512 F, BW, DQ and VL",
    };
    const char *cap = ddp_conf_get(DDP_CONF_SIMD);
    for (int i = 0; i < DDP_SIMD_COUNT; i++) {
        const char *reason = "";
        if (i > (int)ddp_cpu_best_simd())
            reason = "this processor lacks it";
        else if (cap && i > ddp_simd_parse(cap))
            reason = "DDPBENCH_SIMD excludes it";
        l->entry(l->arg, ddp_simd_name((enum ddp_simd)i), reason, summaries[i]);
    }
}

static void list_algorithms(const struct catalog *l)
{
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%s", ddp_coll_name((*a)->coll), (*a)->name);
        l->entry(l->arg, name, "", (*a)->summary);
    }
}

static void list_reporters(const struct catalog *l)
{
    for (const struct ddp_reporter *const *r = ddp_reporter_all(); *r; r++)
        l->entry(l->arg, (*r)->name, "", (*r)->summary);
}

static void list_datasets(const struct catalog *l)
{
    for (const struct ddp_dataset_reader *const *d = ddp_dataset_readers(); *d; d++) {
        char why[160] = "";
        if (!ddp_dataset_default_dir(*d) && (*d)->package)
            snprintf(why, sizeof why, "install the package %s, or give --data DIR", (*d)->package);
        else if (!ddp_dataset_default_dir(*d) && (*d)->dirs)
            snprintf(why, sizeof why, "give --data DIR");
        l->entry(l->arg, (*d)->name, why, (*d)->summary);
    }
}

static void list_models(const struct catalog *l)
{
    for (const struct ddp_model_class *const *m = ddp_models(); *m; m++)
        l->entry(l->arg, (*m)->name, "", (*m)->summary);
}

/* Lists a registry in which an entry may have an argument. */
static void list_named(const struct catalog *l, bool (*at)(int i, struct ddp_named *out))
{
    struct ddp_named named;
    char text[64];
    for (int i = 0; at(i, &named); i++) {
        ddp_named_form(&named, text, sizeof text);
        l->entry(l->arg, text, "", named.summary);
    }
}

static void list_sparse(const struct catalog *l)
{
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a; a++)
        l->entry(l->arg, (*a)->name, "", (*a)->summary);
}

static void list_compressors(const struct catalog *l)
{
    list_named(l, ddp_compressor_at);
}

static void list_syncs(const struct catalog *l)
{
    list_named(l, ddp_sync_at);
}

/* Lists the separate program that `ddpbench kernels` starts. */
static void list_helpers(const struct catalog *l)
{
    char path[4300];
    struct ddp_err why = DDP_ERR_INIT;
    bool usable = ddp_kernels_find(l->app, path, sizeof path, &why) == 0;
    l->entry(l->arg, DDP_KERNELS_HELPER, usable ? "" : why.text,
             "`ddpbench kernels`: Google Benchmark on the CPU kernels");
}

/* Lists the fault points. A build without them lists none. */
static void list_faults(const struct catalog *l)
{
    for (int i = 0; DDP_FAULTS && i < DDP_AT_COUNT; i++) {
        const struct ddp_fault_row *row = &ddp_fault_rows()[i];
        char summary[160];
        snprintf(summary, sizeof summary, "%s; actions: errno (the run ends with exit code %d)%s%s",
                 row->help, ddp_exit_code(row->code), row->data ? ", flip (changes data)" : "",
                 row->collector ? "; occurs in the collector" : "");
        l->entry(l->arg, row->name, "", summary);
    }
}

static const struct {
    const char *kind;
    void (*list)(const struct catalog *l);
} kinds[] = {
    {"backend", list_backends},   {"algorithm", list_algorithms},
    {"sparse", list_sparse},      {"compressor", list_compressors},
    {"device", list_devices},     {"simd", list_simd},
    {"reporter", list_reporters}, {"dataset", list_datasets},
    {"model", list_models},       {"sync", list_syncs},
    {"helper", list_helpers},     {"fault", list_faults}, /* must be last */
};

/* A build without fault points leaves out the last kind. */
#define KIND_COUNT (DDP_COUNT_OF(kinds) - (DDP_FAULTS ? 0 : 1))

const char *ddp_catalog_kind(int i)
{
    return i < (int)KIND_COUNT ? kinds[i].kind : NULL;
}

void ddp_catalog_list(const struct ddp_app *app, int kind, ddp_catalog_entry *entry, void *arg)
{
    const struct catalog catalog = {.app = app, .entry = entry, .arg = arg};
    kinds[kind].list(&catalog);
}

const char *ddp_catalog_backend(int i)
{
    return ddp_backend_all()[i] ? ddp_backend_all()[i]->name : NULL;
}

const char *ddp_catalog_model(int i)
{
    return ddp_models()[i] ? ddp_models()[i]->name : NULL;
}

const char *ddp_catalog_dataset(int i)
{
    return ddp_dataset_readers()[i] ? ddp_dataset_readers()[i]->name : NULL;
}

const char *ddp_catalog_aggregate(int i)
{
    return ddp_aggregates()[i] ? ddp_aggregates()[i]->name : NULL;
}

/* Writes the i-th name of a registry in which an entry may have an argument. The name ends in a
 * colon if the entry needs an argument. */
static bool write_named(bool (*at)(int i, struct ddp_named *out), int i, char *out,
                        size_t out_bytes)
{
    struct ddp_named entry;
    if (!at(i, &entry))
        return false;
    const bool needs_argument = entry.argument_help && entry.argument_help[0] != '[';
    snprintf(out, out_bytes, "%s%s", entry.name, needs_argument ? ":" : "");
    return true;
}

bool ddp_catalog_compressor(int i, char *out, size_t out_bytes)
{
    return write_named(ddp_compressor_at, i, out, out_bytes);
}

bool ddp_catalog_sync(int i, char *out, size_t out_bytes)
{
    return write_named(ddp_sync_at, i, out, out_bytes);
}

const char *ddp_catalog_algorithm(enum ddp_coll coll, int i)
{
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++)
        if ((*a)->coll == coll && i-- == 0)
            return (*a)->name;
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms();
         coll == DDP_ALLREDUCE && *a; a++)
        if (!ddp_coll_find(coll, (*a)->name) && i-- == 0)
            return (*a)->name;
    return NULL;
}

const char *ddp_catalog_break_even(int i, const struct ddp_point_spec *spec, double *f32,
                                   double *f16)
{
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a; a++) {
        struct ddp_coll_cost cost = {0};
        bool exact;
        (*a)->cost(2, spec->count, 1, &cost, &exact);
        if (cost.sent_bytes <= 0 || i-- != 0)
            continue;
        *f32 = ddp_break_even_predicted(*a, spec->ranks, spec->count,
                                        ddp_point_dense_bytes(spec, DDP_BASELINE_F32));
        *f16 = ddp_break_even_predicted(*a, spec->ranks, spec->count,
                                        ddp_point_dense_bytes(spec, DDP_BASELINE_F16));
        return (*a)->name;
    }
    return NULL;
}
