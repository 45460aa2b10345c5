/* list: everything that can be chosen, from the registries themselves: built or not, usable here or
 * why not. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd.h"
#include "coll/coll.h"
#include "exchange/sync.h"
#include "model/dataset.h"
#include "model/model.h"
#include "report/report.h"

struct list_values {
    bool json, help;
};

static const struct ddp_opt rows[] = {{"json", 0, DDP_OPT_FLAG, offsetof(struct list_values, json),
                                       NULL, NULL, "Output", "as JSON", 0, 0, NULL, NULL, NULL},
                                      {"help", 'h', DDP_OPT_FLAG,
                                       offsetof(struct list_values, help), NULL, NULL, "Output",
                                       "this text", 0, 0, NULL, NULL, NULL},
                                      DDP_OPT_END};

/* Where the entries go: text lines or a JSON array. */
struct listing {
    FILE *out;
    cJSON *json; /* NULL: text */
};

/* One entry; reason NULL or "": usable. */
static void entry(struct listing *l, const char *kind, const char *name, const char *reason,
                  const char *summary)
{
    bool usable = !reason || !reason[0];
    if (!l->json) {
        fprintf(l->out, "%-10s %-24s %-4s %s%s%s\n", kind, name, usable ? "yes" : "no", summary,
                usable ? "" : "; not usable: ", usable ? "" : reason);
        return;
    }
    cJSON *item = cJSON_CreateObject();
    ddp_json_str(item, "kind", kind);
    ddp_json_str(item, "name", name);
    ddp_json_bool(item, "usable", usable);
    ddp_json_str(item, "reason", usable ? NULL : reason);
    ddp_json_str(item, "summary", summary);
    cJSON_AddItemToArray(l->json, item);
}

static void list_backends(struct ddp_app *app, struct listing *l)
{
    for (const struct ddp_backend *const *b = ddp_backend_all(); *b; b++) {
        struct ddp_err why = DDP_ERR_INIT;
        if ((*b)->probe(app->binary_dir, &why) == 0)
            why.text[0] = '\0';
        entry(l, "backend", (*b)->name, why.text, (*b)->summary);
    }
}

static void list_devices(struct ddp_app *app, struct listing *l)
{
    (void)app;
    for (const struct ddp_device *const *d = ddp_device_all(); *d; d++) {
        struct ddp_err why = DDP_ERR_INIT;
        if ((*d)->probe(&why) == 0)
            why.text[0] = '\0';
        entry(l, "device", (*d)->name, why.text, (*d)->summary);
    }
}

static void list_algorithms(struct ddp_app *app, struct listing *l)
{
    (void)app;
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%s", ddp_coll_name((*a)->coll), (*a)->name);
        entry(l, "algorithm", name, NULL, (*a)->summary);
    }
}

static void list_reporters(struct ddp_app *app, struct listing *l)
{
    (void)app;
    for (const struct ddp_reporter *const *r = ddp_reporter_all(); *r; r++)
        entry(l, "reporter", (*r)->name, NULL, (*r)->summary);
}

static void list_datasets(struct ddp_app *app, struct listing *l)
{
    (void)app;
    for (const struct ddp_dataset_reader *const *d = ddp_dataset_readers(); *d; d++) {
        char why[160] = "";
        if (!ddp_dataset_default_dir(*d))
            snprintf(why, sizeof why, "not found; %s%s%s give --data DIR",
                     (*d)->package ? "install " : "", (*d)->package ? (*d)->package : "",
                     (*d)->package ? " or" : "");
        entry(l, "data set", (*d)->name, why, (*d)->summary);
    }
}

static void list_models(struct ddp_app *app, struct listing *l)
{
    (void)app;
    for (const struct ddp_model_class *const *m = ddp_models(); *m; m++)
        entry(l, "model", (*m)->name, NULL, (*m)->summary);
}

static void list_syncs(struct ddp_app *app, struct listing *l)
{
    (void)app;
    for (const struct ddp_sync_class *const *s = ddp_syncs(); *s; s++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", (*s)->name, (*s)->argument_help ? ":" : "",
                 (*s)->argument_help ? (*s)->argument_help : "");
        entry(l, "sync", name, NULL, (*s)->summary);
    }
}

static const struct {
    const char *name;
    void (*list)(struct ddp_app *app, struct listing *l);
} kinds[] = {
    {"backends", list_backends},   {"devices", list_devices},   {"algorithms", list_algorithms},
    {"reporters", list_reporters}, {"datasets", list_datasets}, {"models", list_models},
    {"syncs", list_syncs},
};

static const char *kind_word(const void *ctx, int i)
{
    (void)ctx;
    return i < (int)DDP_COUNT_OF(kinds) ? kinds[i].name : NULL;
}

static int check_kinds(const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    for (int i = 0; i < parsed->operand_count; i++) {
        size_t k = 0;
        while (k < DDP_COUNT_OF(kinds) && strcmp(kinds[k].name, parsed->operands[i]) != 0)
            k++;
        if (k < DDP_COUNT_OF(kinds))
            continue;
        const char *near = ddp_nearest(parsed->operands[i], kind_word, NULL);
        ddp_fail(err, DDP_EUSAGE, "no list of '%s'", parsed->operands[i]);
        return ddp_hint(
            err, "%s%s%slists: backends, devices, algorithms, reporters, datasets, models, syncs",
            near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
    }
    return 0;
}

static bool wanted(const struct ddp_opt_result *parsed, const char *kind)
{
    for (int i = 0; i < parsed->operand_count; i++) {
        if (strcmp(parsed->operands[i], kind) == 0)
            return true;
    }
    return parsed->operand_count == 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct list_values *v = values;
    struct listing l = {.out = app->out};
    DDP_TRY(check_kinds(parsed, err));
    if (v->json)
        l.json = cJSON_CreateArray();
    else
        fprintf(app->out, "%-10s %-24s %-4s %s\n", "kind", "name", "here", "what it is");
    for (size_t k = 0; k < DDP_COUNT_OF(kinds); k++) {
        if (wanted(parsed, kinds[k].name))
            kinds[k].list(app, &l);
    }
    if (l.json) {
        char *text = cJSON_Print(l.json);
        fprintf(app->out, "%s\n", text ? text : "");
        cJSON_free(text);
        cJSON_Delete(l.json);
    }
    return 0;
}

const struct ddp_cmd ddp_cmd_list = {
    .name = "list",
    .summary = "every backend, algorithm, device, reporter, data set, model and strategy",
    .operands = "[backends|devices|algorithms|reporters|datasets|models|syncs ...]",
    .rows = rows,
    .values_bytes = sizeof(struct list_values),
    .help_offset = offsetof(struct list_values, help),
    .run = run,
};
