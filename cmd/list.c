/* `ddpbench list` prints backends, algorithms, models and the like. It also says whether an entry
 * is usable here. Entries of kinds that every machine can use count as usable. */
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/cpuinfo.h"
#include "base/fault.h"
#include "base/mem.h"
#include "coll/coll.h"
#include "coll/sparse/sparse_coll.h"
#include "compress/compress.h"
#include "exchange/sync.h"
#include "model/dataset.h"
#include "model/model.h"
#include "plain.h"
#include "report/report.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

#define TEXT_COLUMN 41 /* The column in which the description begins. */

/* The destination of the entries. */
struct listing {
    struct ddp_app *app;
    cJSON *json;      /* the array to append to; NULL: print lines of text */
    const char *kind; /* kind of the entries being listed */
};

/* Prints the line of an entry. */
static void print_entry(const struct listing *l, const char *name, const char *reason,
                        const char *summary)
{
    struct ddp_strbuf head = DDP_STRBUF_INIT, text = DDP_STRBUF_INIT;
    const bool usable = reason[0] == '\0';
    ddp_strbuf_addf(&head, "%-10s %-24s ", l->kind, name);
    ddp_strbuf_addf(&text, "%s%s%s", summary, usable ? "" : "; not usable here: ", reason);
    ddp_terminal_entry(l->app->out, head.failed ? name : head.text, usable ? "yes" : "no",
                       usable ? DDP_GREEN : DDP_YELLOW, TEXT_COLUMN,
                       text.failed ? summary : text.text);
    ddp_strbuf_release(&head);
    ddp_strbuf_release(&text);
}

/* Prints or appends one entry. An empty reason means that the entry is usable, or that
 * entries of this kind are not checked. */
static void entry(struct listing *l, const char *name, const char *reason, const char *summary)
{
    bool usable = reason[0] == '\0';
    if (!l->json) {
        print_entry(l, name, reason, summary);
        return;
    }
    cJSON *item = ddp_json_append(l->json);
    ddp_json_str(item, "kind", l->kind);
    ddp_json_str(item, "name", name);
    ddp_json_bool(item, "usable", usable);
    ddp_json_str(item, "reason", reason);
    ddp_json_str(item, "summary", summary);
}

static void list_backends(struct listing *l)
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
        entry(l, (*b)->name, usable ? "" : why.text, summary);
    }
}

static void list_devices(struct listing *l)
{
    for (const struct ddp_device *const *d = ddp_device_all(); *d; d++) {
        struct ddp_err why = DDP_ERR_INIT;
        bool usable = (*d)->probe(&why) == 0;
        entry(l, (*d)->name, usable ? "" : why.text, (*d)->summary);
    }
}

static void list_simd(struct listing *l)
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
        entry(l, ddp_simd_name((enum ddp_simd)i), reason, summaries[i]);
    }
}

static void list_algorithms(struct listing *l)
{
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%s", ddp_coll_name((*a)->coll), (*a)->name);
        entry(l, name, "", (*a)->summary);
    }
}

static void list_reporters(struct listing *l)
{
    for (const struct ddp_reporter *const *r = ddp_reporter_all(); *r; r++)
        entry(l, (*r)->name, "", (*r)->summary);
}

static void list_datasets(struct listing *l)
{
    for (const struct ddp_dataset_reader *const *d = ddp_dataset_readers(); *d; d++) {
        char why[160] = "";
        if (!ddp_dataset_default_dir(*d) && (*d)->package)
            snprintf(why, sizeof why, "install the package %s, or give --data DIR", (*d)->package);
        else if (!ddp_dataset_default_dir(*d) && (*d)->dirs)
            snprintf(why, sizeof why, "give --data DIR");
        entry(l, (*d)->name, why, (*d)->summary);
    }
}

static void list_models(struct listing *l)
{
    for (const struct ddp_model_class *const *m = ddp_models(); *m; m++)
        entry(l, (*m)->name, "", (*m)->summary);
}

/* Lists the entries of a registry whose entries may have an argument. */
static void list_named(struct listing *l, bool (*at)(int i, struct ddp_named *out))
{
    struct ddp_named named;
    char text[64];
    for (int i = 0; at(i, &named); i++) {
        ddp_named_form(&named, text, sizeof text);
        entry(l, text, "", named.summary);
    }
}

static void list_sparse(struct listing *l)
{
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a; a++)
        entry(l, (*a)->name, "", (*a)->summary);
}

static void list_compressors(struct listing *l)
{
    list_named(l, ddp_compressor_at);
}

static void list_syncs(struct listing *l)
{
    list_named(l, ddp_sync_at);
}

/* Lists the separate program that `ddpbench kernels` starts. */
static void list_helpers(struct listing *l)
{
    char path[4300];
    struct ddp_err why = DDP_ERR_INIT;
    bool usable = ddp_kernels_find(l->app, path, sizeof path, &why) == 0;
    entry(l, DDP_KERNELS_HELPER, usable ? "" : why.text,
          "`ddpbench kernels`: Google Benchmark on the CPU kernels");
}

/* Lists the fault points. A build without them lists none. */
static void list_faults(struct listing *l)
{
    for (int i = 0; DDP_FAULTS && i < DDP_AT_COUNT; i++) {
        const struct ddp_fault_row *row = &ddp_fault_rows()[i];
        char summary[160];
        snprintf(summary, sizeof summary, "%s; actions: errno (the run ends with exit code %d)%s%s",
                 row->help, ddp_exit_code(row->code), row->data ? ", flip (changes data)" : "",
                 row->collector ? "; occurs in the collector" : "");
        entry(l, row->name, "", summary);
    }
}

static const struct {
    const char *kind;
    void (*list)(struct listing *l);
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

const char *ddp_list_kind(const void *ctx, int i)
{
    return i < (int)KIND_COUNT ? kinds[i].kind : NULL;
}

/* Returns true if the operand is this kind or its plural. */
static bool names_kind(const char *operand, const char *kind)
{
    size_t n = strlen(kind);
    return strncmp(operand, kind, n) == 0 && (!operand[n] || strcmp(operand + n, "s") == 0);
}

static int check_operands(const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    for (int i = 0; i < parsed->operand_count; i++) {
        bool known = false;
        for (size_t k = 0; k < KIND_COUNT; k++)
            known |= names_kind(parsed->operands[i], kinds[k].kind);
        if (!known)
            return ddp_refuse_operand("kind of list", parsed->operands[i], ddp_list_kind, NULL,
                                      err);
    }
    return 0;
}

static bool wanted(const struct ddp_opt_result *parsed, const char *kind)
{
    for (int i = 0; i < parsed->operand_count; i++)
        if (names_kind(parsed->operands[i], kind))
            return true;
    return parsed->operand_count == 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct ddp_plain_values *v = values;
    struct listing l = {.app = app};
    DDP_TRY(check_operands(parsed, err));
    if (v->json) {
        l.json = cJSON_CreateArray();
        if (!l.json)
            return ddp_fail(err, DDP_ENOMEM, "no memory for a JSON document");
    } else {
        fprintf(app->out, "%-10s %-24s %-4s %s\n", "kind", "name", "here", "description");
    }
    for (size_t k = 0; k < KIND_COUNT; k++) {
        l.kind = kinds[k].kind;
        if (wanted(parsed, l.kind))
            kinds[k].list(&l);
    }
    return v->json ? ddp_json_write(l.json, app->out, err) : 0;
}

const struct ddp_cmd ddp_cmd_list = {
    .name = "list",
    .summary =
        "every backend, algorithm, compressor, device, reporter, data set, model and strategy",
    .operands = "[KIND...]",
    .details = "Kinds: backend, algorithm, sparse, compressor, device, simd, reporter, dataset,\n"
               "model, sync, helper (default: all). `here` is no, with a reason, for a backend,\n"
               "device, simd, dataset or helper that cannot be used here. Other kinds can be\n"
               "used on every machine.\n",
    .examples = "  ddpbench list algorithms\n",
    .rows = ddp_plain_json_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
