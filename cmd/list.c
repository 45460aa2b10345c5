/* `ddpbench list` prints backends, algorithms, models and the like. It also says whether an entry
 * is usable here. Some kinds are not checked; their entries count as usable. */
#include <string.h>

#include "plain.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"
#include "run/catalog.h"

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

/* Prints or appends one entry. */
static void entry(void *arg, const char *name, const char *reason, const char *summary)
{
    const struct listing *l = arg;
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

const char *ddp_list_kind(const void *ctx, int i)
{
    (void)ctx;
    return ddp_catalog_kind(i);
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
        for (int k = 0; ddp_catalog_kind(k); k++)
            known |= names_kind(parsed->operands[i], ddp_catalog_kind(k));
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
    for (int k = 0; ddp_catalog_kind(k); k++) {
        l.kind = ddp_catalog_kind(k);
        if (wanted(parsed, l.kind))
            ddp_catalog_list(app, k, entry, &l);
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
               "device, simd, dataset or helper that cannot be used here. Other kinds are\n"
               "not checked, and `here` is yes.\n",
    .examples = "  ddpbench list algorithms\n",
    .rows = ddp_plain_json_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
