#include "run/sweep_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/rng.h"
#include "base/unit.h"

/* The state of the parser. Messages name the document and the run. */
struct reader {
    const char *name;
    int run; /* index of the current run; -1: outside of a run */
    const char *command;
    ddp_sweep_takes_list takes_list;
    void *arg;
    struct ddp_err *err;
};

/* One key of a run. */
struct axis {
    const char *key; /* the option */
    char **args;     /* [count]: argument for each value; "" (no argument) for `false` */
    int count;
};

static int bad(const struct reader *r, const char *key, const char *why)
{
    char clean[80];
    ddp_printable(key ? key : "", clean, sizeof clean);
    if (r->run < 0)
        return ddp_fail(r->err, DDP_ECONFIG, "'%s': '%s' %s", r->name, clean, why);
    return ddp_fail(r->err, DDP_ECONFIG, "'%s', runs[%d]: '%s' %s", r->name, r->run, clean, why);
}

/* Writes a string or number as text. The text of a number can be parsed back to the same number.
 * Returns false for other types and for strings that are too long. */
static bool scalar_text(const cJSON *item, char *out, size_t out_bytes)
{
    if (cJSON_IsString(item) && strlen(item->valuestring) < out_bytes) {
        memcpy(out, item->valuestring, strlen(item->valuestring) + 1);
        return true;
    }
    if (!cJSON_IsNumber(item))
        return false;
    const double v = item->valuedouble;
    if (v == floor(v) && fabs(v) <= 0x1p53) {
        snprintf(out, out_bytes, "%.0f", v + 0.0);
        return true;
    }
    ddp_format_double(v, out, out_bytes);
    return true;
}

/* Returns "--key" followed by `equals` ("=" or "") and value. Returns NULL if there is no
 * memory. */
static char *make_arg(const struct reader *r, const char *key, const char *equals,
                      const char *value)
{
    size_t bytes = strlen(key) + strlen(value) + 4;
    char *argument = malloc(bytes);
    if (argument)
        snprintf(argument, bytes, "--%s%s%s", key, equals, value);
    else
        ddp_fail(r->err, DDP_ENOMEM, "no memory for a sweep");
    return argument;
}

/* Returns the argument for one value, or "" for false. Returns NULL after an error. */
static char *arg_of(const struct reader *r, const char *key, const cJSON *item)
{
    char text[DDP_SWEEP_VALUE_MAX + 1];
    if (cJSON_IsTrue(item))
        return make_arg(r, key, "", "");
    if (cJSON_IsFalse(item))
        return ddp_calloc(1, 1);
    if (scalar_text(item, text, sizeof text))
        return make_arg(r, key, "=", text);
    bad(r, key,
        cJSON_IsString(item) ? "has a value that is too long"
                             : "takes strings, numbers, true, false, or a list of these");
    return NULL;
}

/* Returns one argument with all values of a list, for an option that takes lists. Returns NULL
 * after an error. */
static char *joined_arg(const struct reader *r, const char *key, const cJSON *list)
{
    struct ddp_strbuf joined = DDP_STRBUF_INIT;
    const cJSON *item;
    char text[DDP_SWEEP_VALUE_MAX + 1], *argument = NULL;
    cJSON_ArrayForEach(item, list)
    {
        if (!scalar_text(item, text, sizeof text)) {
            bad(r, key, "takes strings and numbers");
            goto out;
        }
        ddp_strbuf_addf(&joined, "%s%s", item == list->child ? "" : ",", text);
    }
    if (joined.failed)
        ddp_fail(r->err, DDP_ENOMEM, "no memory for a sweep");
    else
        argument = make_arg(r, key, "=", joined.text);
out:
    ddp_strbuf_release(&joined);
    return argument;
}

static bool key_is_legal(const char *key)
{
    size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n > 0 && n <= 32 && key[n] == '\0' && key[0] != '-';
}

static int check_list(const struct reader *r, const cJSON *list)
{
    const int n = cJSON_GetArraySize(list);
    if (n == 0)
        return bad(r, list->string, "is an empty list");
    if (n > DDP_SWEEP_AXIS_MAX)
        return bad(r, list->string, "has too many values");
    for (const cJSON *a = list->child; a; a = a->next)
        for (const cJSON *b = list->child; b != a; b = b->next)
            if (cJSON_Compare(a, b, true))
                return bad(r, list->string, "contains a value twice");
    return 0;
}

static int read_axis(const struct reader *r, const cJSON *item, struct axis *axis)
{
    const char *key = item->string;
    if (!key_is_legal(key))
        return bad(r, key, "is not an option");
    axis->key = key;
    axis->count = 0;
    const bool list = cJSON_IsArray(item);
    if (list)
        DDP_TRY(check_list(r, item));
    const bool joined = list && r->takes_list(r->arg, r->command, key);
    const int n = list && !joined ? cJSON_GetArraySize(item) : 1;
    DDP_TRY(DDP_NEW(&axis->args, (size_t)n, r->err));
    const cJSON *value = list ? item->child : item;
    for (int i = 0; i < n; i++, value = value->next) {
        axis->args[i] = joined ? joined_arg(r, key, item) : arg_of(r, key, value);
        if (!axis->args[i])
            return r->err->code;
        axis->count++;
    }
    return 0;
}

static void release_axes(struct axis *axes, int count)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < axes[i].count; k++)
            free(axes[i].args[k]);
        free(axes[i].args);
    }
}

/* Creates the cell of the combination with this index. argv and the texts of the arguments are in
 * one allocation. */
static int make_cell(const struct reader *r, const struct axis *axes, int count, int64_t index,
                     struct ddp_sweep_cell *out)
{
    const char *args[DDP_SWEEP_KEYS_MAX + 1] = {r->command};
    int argc = 1;
    for (int i = count - 1; i >= 0; i--) {
        args[i + 1] = axes[i].args[index % axes[i].count];
        index /= axes[i].count;
    }
    size_t bytes = strlen(r->command) + 1;
    for (int i = 1; i <= count; i++)
        if (args[i][0]) {
            bytes += strlen(args[i]) + 1;
            args[argc++] = args[i];
        }
    char **argv = malloc(((size_t)argc + 1) * sizeof *argv + bytes);
    if (!argv)
        return ddp_fail(r->err, DDP_ENOMEM, "no memory for a sweep");
    char *text = (char *)(argv + argc + 1);
    for (int i = 0; i < argc; i++) {
        argv[i] = text;
        memcpy(text, args[i], strlen(args[i]) + 1);
        text += strlen(args[i]) + 1;
    }
    argv[argc] = NULL;
    *out = (struct ddp_sweep_cell){.run = r->run, .argc = argc, .argv = argv};
    return 0;
}

static int add_cells(const struct reader *r, const struct axis *axes, int count,
                     struct ddp_sweep_plan *plan)
{
    int64_t n = 1;
    for (int i = 0; i < count && n <= DDP_SWEEP_CELLS_MAX; i++)
        n *= axes[i].count;
    if (plan->count + n > DDP_SWEEP_CELLS_MAX)
        return ddp_fail(r->err, DDP_ECONFIG,
                        "'%s', runs[%d]: the combinations up to this run exceed %d", r->name,
                        r->run, DDP_SWEEP_CELLS_MAX);
    DDP_TRY(DDP_RESIZE(&plan->cells, (size_t)(plan->count + n), r->err));
    for (int64_t i = 0; i < n; i++) {
        DDP_TRY(make_cell(r, axes, count, i, &plan->cells[plan->count]));
        plan->count++;
    }
    return 0;
}

static int read_run(struct reader *r, const cJSON *run, struct ddp_sweep_plan *plan)
{
    struct axis axes[DDP_SWEEP_KEYS_MAX];
    const cJSON *command = cJSON_GetObjectItemCaseSensitive(run, "command"), *item;
    int count = 0, rc = 0;
    if (!cJSON_IsObject(run))
        return ddp_fail(r->err, DDP_ECONFIG, "'%s', runs[%d] is not an object", r->name, r->run);
    if (!cJSON_IsString(command) || !key_is_legal(command->valuestring))
        return bad(r, "command", "must name a command, such as \"allreduce\"");
    r->command = command->valuestring;
    cJSON_ArrayForEach(item, run)
    {
        if (item == command)
            continue;
        if (strcmp(item->string, "description") == 0 && cJSON_IsString(item))
            continue;
        if (count == DDP_SWEEP_KEYS_MAX) {
            char why[64];
            snprintf(why, sizeof why, "exceeds the limit of %d keys per run", DDP_SWEEP_KEYS_MAX);
            rc = bad(r, item->string, why);
            break;
        }
        axes[count] = (struct axis){0};
        rc = read_axis(r, item, &axes[count++]);
        if (rc != 0)
            break;
    }
    if (rc == 0)
        rc = add_cells(r, axes, count, plan);
    release_axes(axes, count);
    return rc;
}

static const char *top_key(const void *ctx, int i)
{
    static const char *const keys[] = {"description", "runs", NULL};
    (void)ctx;
    return keys[i];
}

static int check_top(const struct reader *r, const cJSON *doc)
{
    if (!cJSON_IsObject(doc))
        return ddp_fail(r->err, DDP_ECONFIG, "'%s' is not an object", r->name);
    for (const cJSON *item = doc->child; item; item = item->next) {
        int i = 0;
        while (top_key(NULL, i) && strcmp(top_key(NULL, i), item->string) != 0)
            i++;
        if (!top_key(NULL, i)) {
            bad(r, item->string, "is not a key of a sweep");
            return ddp_hint_nearest(r->err, item->string, top_key, NULL, NULL);
        }
        if (i == 0 && !cJSON_IsString(item))
            return bad(r, "description", "must be a string");
    }
    const cJSON *runs = cJSON_GetObjectItemCaseSensitive(doc, "runs");
    if (!cJSON_IsArray(runs) || !runs->child)
        return bad(r, "runs", "must be a list of runs");
    return 0;
}

int ddp_sweep_plan_parse(const char *text, size_t bytes, const char *name,
                         ddp_sweep_takes_list takes_list, void *arg, struct ddp_sweep_plan *out,
                         struct ddp_err *err)
{
    struct ddp_err own = DDP_ERR_INIT;
    struct reader r = {
        .name = name, .run = -1, .takes_list = takes_list, .arg = arg, .err = err ? err : &own};
    struct ddp_sweep_plan plan = {.hash = ddp_fnv1a(DDP_FNV_INIT, text, bytes)};
    cJSON *doc;
    if (bytes > DDP_SWEEP_FILE_MAX)
        return ddp_fail(err, DDP_EINPUT, "'%s' is too large for a configuration", name);
    DDP_TRY(ddp_json_parse(text, bytes, name, &doc, err));
    int rc = check_top(&r, doc);
    const cJSON *runs = cJSON_GetObjectItemCaseSensitive(doc, "runs"), *run;
    if (rc == 0) {
        cJSON_ArrayForEach(run, runs)
        {
            r.run = plan.runs++;
            rc = read_run(&r, run, &plan);
            if (rc != 0)
                break;
        }
    }
    cJSON_Delete(doc);
    if (rc == 0)
        *out = plan;
    else
        ddp_sweep_plan_release(&plan);
    return rc;
}

void ddp_sweep_plan_release(struct ddp_sweep_plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        free(plan->cells[i].argv);
    free(plan->cells);
    *plan = (struct ddp_sweep_plan){0};
}
