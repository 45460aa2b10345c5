/* Opens a result document and reads everything but its points, which result_points.c reads. */
#include "record/result_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "record/result_points.h"

static const char *const top_keys[] = {"schema",      "status",     "reason",   "label",   "tool",
                                       "command",     "started",    "finished", "seed",    "world",
                                       "environment", "points",     "train",    "verdict", "digest",
                                       "control",     "comparison", "timer",    NULL};

static int known_keys(const cJSON *doc, const char *name, struct ddp_err *err)
{
    for (const cJSON *c = doc->child; c; c = c->next) {
        int i = 0;
        while (top_keys[i] && strcmp(top_keys[i], c->string) != 0)
            i++;
        if (!top_keys[i]) {
            char key[64];
            ddp_printable(c->string, key, sizeof key);
            return ddp_fail(err, DDP_EINPUT, "'%s': unknown key '%s'", name, key);
        }
    }
    return 0;
}

/* Reads the string at obj[key]; "" if it is null. */
static int text_of(const cJSON *obj, const char *key, const char *name, char *out, size_t bytes,
                   struct ddp_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    out[0] = '\0';
    if (!item || (!cJSON_IsString(item) && !cJSON_IsNull(item)))
        return ddp_fail(err, DDP_EINPUT, "'%s': '%s' is missing or not a string", name, key);
    if (cJSON_IsString(item))
        ddp_printable(item->valuestring, out, bytes);
    return 0;
}

static const cJSON *object_of(const cJSON *doc, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(doc, key);
    return cJSON_IsObject(item) ? item : NULL;
}

static void note_machine(const char *cpu, const cJSON *cores, bool first, struct ddp_result *out)
{
    const double count = cJSON_IsNumber(cores) ? cores->valuedouble : -1;
    const int n = count >= 0 && count <= 1e6 ? (int)count : -1;
    if (first) {
        snprintf(out->cpu, sizeof out->cpu, "%s", cpu);
        out->cores = n;
    } else if (strcmp(out->cpu, cpu) != 0 || out->cores != n) {
        out->cpu[0] = '\0';
        out->cores = -1;
    }
}

/* Writes the fingerprint, for example "name: cpu, 2 cores; 2 ranks, shm". */
static int read_fingerprint(const cJSON *doc, const char *name, struct ddp_result *out,
                            struct ddp_err *err)
{
    const cJSON *world = object_of(doc, "world"), *host;
    const cJSON *hosts = cJSON_GetObjectItemCaseSensitive(world, "hosts");
    const cJSON *ranks = cJSON_GetObjectItemCaseSensitive(world, "ranks");
    char backend[16];
    bool first = true;
    if (!world || !cJSON_IsArray(hosts) || !cJSON_IsNumber(ranks))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'world' is missing or incomplete", name);
    DDP_TRY(text_of(world, "backend", name, backend, sizeof backend, err));
    size_t at = 0, room = sizeof out->fingerprint;
    cJSON_ArrayForEach(host, hosts)
    {
        char host_name[64], cpu[96];
        const cJSON *cores = cJSON_GetObjectItemCaseSensitive(host, "cores");
        DDP_TRY(text_of(host, "name", name, host_name, sizeof host_name, err));
        DDP_TRY(text_of(host, "cpu", name, cpu, sizeof cpu, err));
        int n = snprintf(out->fingerprint + at, room - at, "%s: %s, %.0f cores; ", host_name, cpu,
                         cJSON_IsNumber(cores) ? cores->valuedouble : -1);
        at = DDP_MIN(at + (size_t)DDP_MAX(n, 0), room - 1);
        note_machine(cpu, cores, first, out);
        first = false;
    }
    snprintf(out->fingerprint + at, room - at, "%.0f ranks, %s", ranks->valuedouble, backend);
    return 0;
}

/* Stores the reason of the status. Status "failed" means wrong data, because no other failure gets
 * this status. */
static void note_status(const cJSON *doc, struct ddp_result *out)
{
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(doc, "reason");
    if (cJSON_IsString(reason))
        ddp_printable(reason->valuestring, out->reason, sizeof out->reason);
    if (strcmp(out->status, "failed") != 0)
        return;
    out->wrong_data = true;
    snprintf(out->flaw, sizeof out->flaw, "its status is \"failed\": %s",
             out->reason[0] ? out->reason : "no reason is given");
}

static int read_outline(const cJSON *doc, const char *name, struct ddp_result *out,
                        struct ddp_err *err)
{
    char schema[32], version[32], commit[64], flags[128];
    const cJSON *tool = object_of(doc, "tool");
    if (!cJSON_IsObject(doc))
        return ddp_fail(err, DDP_EINPUT,
                        "'%s' is not a result of ddpbench: it holds no JSON object", name);
    DDP_TRY(text_of(doc, "schema", name, schema, sizeof schema, err));
    if (strcmp(schema, "ddpbench/1") != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' has the schema '%s', expected 'ddpbench/1'", name,
                        schema);
    DDP_TRY(known_keys(doc, name, err));
    DDP_TRY(text_of(doc, "status", name, out->status, sizeof out->status, err));
    note_status(doc, out);
    DDP_TRY(text_of(doc, "label", name, out->label, sizeof out->label, err));
    if (!tool)
        return ddp_fail(err, DDP_EINPUT, "'%s': 'tool' is missing", name);
    DDP_TRY(text_of(tool, "version", name, version, sizeof version, err));
    DDP_TRY(text_of(tool, "commit", name, commit, sizeof commit, err));
    DDP_TRY(text_of(tool, "cflags", name, flags, sizeof flags, err));
    snprintf(out->build, sizeof out->build, "%s (%s) %s", version, commit, flags);
    return read_fingerprint(doc, name, out, err);
}

/* Reads the copy speed under the key "control", which documents of other tools may lack. The list
 * is empty if nothing was measured. A speed is null if there was too little memory. */
static int read_control(const cJSON *doc, const char *name, struct ddp_result *out,
                        struct ddp_err *err)
{
    const cJSON *controls = cJSON_GetObjectItemCaseSensitive(doc, "control"), *item;
    double logs = 0;
    int n = 0;
    if (controls && !cJSON_IsArray(controls))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'control' is not an array", name);
    cJSON_ArrayForEach(item, controls)
    {
        const cJSON *copy = cJSON_GetObjectItemCaseSensitive(item, "copy_GBps");
        if (cJSON_IsNull(copy))
            continue;
        if (!cJSON_IsNumber(copy) || !(copy->valuedouble > 0))
            return ddp_fail(err, DDP_EINPUT,
                            "'%s': 'copy_GBps' in 'control' is not a positive number", name);
        logs += log(copy->valuedouble);
        n++;
    }
    out->copy_GBps = n > 0 ? exp(logs / n) : NAN;
    return 0;
}

/* The settings that distinguish training runs, in the order in which the name of a run lists them.
 * label: text before a number or a string; it replaces `true`. */
static const struct {
    const char *object, *key, *label;
} settings[] = {
    {NULL, "model", ""},
    {"sync", "strategy", ""},
    {NULL, "ranks", "ranks "},
    {"optimizer", "lr", "lr "},
    {NULL, "seed", "seed "},
    {NULL, "batch_per_rank", "batch "},
    {NULL, "dataset", ""},
    {NULL, "train_images", "images "},
    {"optimizer", "name", ""},
    {"optimizer", "momentum", "momentum "},
    {"optimizer", "weight_decay", "weight-decay "},
    {"optimizer", "max_steps", "max-steps "},
    {NULL, "baseline", "baseline"},
    {"sync", "feedback", "feedback "},
    {"sync", "aggregate", ""},
    {"sync", "algorithm", ""},
    {"sync", "bucket_bytes", "bucket "},
    {"sync", "overlap", "overlap"},
    {"sync", "partition", "partition "},
    {"sync", "init", "init "},
    {"sync", "init_sync", ""},
    {"compute", "device", ""},
    {"compute", "graph", "graph"},
    {"compute", "tf32", "tf32"},
    {"data", "path", ""},
};

/* Writes the name of a run, for example "singa-cnn dense ranks 2 lr 0.05 seed 1 batch 16
 * synthetic". A setting that is null or false is left out. */
static int name_run(const cJSON *run, const char *name, char *out, size_t bytes,
                    struct ddp_err *err)
{
    char text[192];
    size_t at = 0;
    DDP_TRY(text_of(run, "model", name, text, sizeof text, err));
    if (!ddp_result_begins_name(text[0]))
        return ddp_fail(err, DDP_EINPUT, "'%s': a training run has no model", name);
    DDP_TRY(text_of(object_of(run, "sync"), "strategy", name, text, sizeof text, err));
    out[0] = '\0';
    for (size_t i = 0; i < DDP_COUNT_OF(settings); i++) {
        const cJSON *object = settings[i].object ? object_of(run, settings[i].object) : run;
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, settings[i].key);
        if (cJSON_IsString(item))
            ddp_printable(item->valuestring, text, sizeof text);
        else if (cJSON_IsNumber(item))
            snprintf(text, sizeof text, "%.15g", item->valuedouble);
        else if (cJSON_IsTrue(item))
            text[0] = '\0';
        else
            continue;
        int n = snprintf(out + at, bytes - at, "%s%s%s", at ? " " : "", settings[i].label, text);
        at = DDP_MIN(at + (size_t)DDP_MAX(n, 0), bytes - 1);
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sorts the names of the training runs and removes duplicates. The repetitions of a run have the
 * same name. */
static void keep_distinct(struct ddp_result *out)
{
    size_t kept = 0;
    if (out->run_count > 0)
        qsort(out->runs, out->run_count, sizeof out->runs[0], compare_names);
    for (size_t i = 0; i < out->run_count; i++)
        if (kept == 0 || strcmp(out->runs[kept - 1], out->runs[i]) != 0)
            memmove(out->runs[kept++], out->runs[i], sizeof out->runs[0]);
    out->run_count = kept;
}

static int read_runs(const cJSON *doc, const char *name, struct ddp_result *out,
                     struct ddp_err *err)
{
    const cJSON *train = cJSON_GetObjectItemCaseSensitive(doc, "train"), *run;
    if (train && !cJSON_IsArray(train))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'train' is not a list", name);
    const size_t count = train ? (size_t)cJSON_GetArraySize(train) : 0;
    if (count > DDP_RESULT_MAX_RUNS)
        return ddp_fail(err, DDP_EINPUT, "'%s': %zu training runs are more than %d", name, count,
                        DDP_RESULT_MAX_RUNS);
    out->runs = ddp_calloc(count, sizeof *out->runs);
    if (!out->runs)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu training runs", count);
    cJSON_ArrayForEach(run, train)
    {
        DDP_TRY(name_run(run, name, out->runs[out->run_count], sizeof out->runs[0], err));
        out->run_count++;
    }
    keep_distinct(out);
    return 0;
}

int ddp_result_parse(const char *text, size_t bytes, const char *name, struct ddp_result *out,
                     struct ddp_err *err)
{
    struct ddp_result r = {.count = 0};
    cJSON *doc = NULL;
    int rc;
    DDP_TRY(ddp_json_check_digest(text, bytes, name, err));
    DDP_TRY(ddp_json_parse(text, bytes, name, &doc, err));
    DDP_TRY_GOTO(read_outline(doc, name, &r, err), err_doc);
    DDP_TRY_GOTO(read_control(doc, name, &r, err), err_doc);
    DDP_TRY_GOTO(ddp_result_read_points(doc, name, &r, err), err_doc);
    DDP_TRY_GOTO(read_runs(doc, name, &r, err), err_doc);
    *out = r;
err_doc:
    cJSON_Delete(doc);
    if (rc != 0)
        ddp_result_release(&r);
    return rc;
}

static int read_whole(int fd, const char *path, char **text, size_t *bytes, struct ddp_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ddp_fail_errno(err, DDP_EIO, errno, "cannot stat '%s'", path);
    if (!S_ISREG(st.st_mode))
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a regular file", path);
    if (st.st_size > DDP_JSON_MAX_BYTES)
        return ddp_fail(err, DDP_EINPUT, "'%s' is too large to be a result", path);
    size_t size = (size_t)st.st_size;
    char *buffer = malloc(size + 1);
    if (!buffer)
        return ddp_fail(err, DDP_ENOMEM, "no memory to read '%s'", path);
    *bytes = 0;
    while (*bytes < size) {
        ssize_t n = read(fd, buffer + *bytes, size - *bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int error = errno;
            free(buffer);
            return ddp_fail_errno(err, DDP_EIO, error, "cannot read '%s'", path);
        }
        if (n == 0)
            break; /* The file shrank; the digest check will reject it. */
        *bytes += (size_t)n;
    }
    buffer[*bytes] = '\0';
    *text = buffer;
    return 0;
}

int ddp_result_read(const char *path, struct ddp_result *out, struct ddp_err *err)
{
    char *text = NULL;
    size_t bytes = 0;
    /* O_NONBLOCK: opening a pipe without a writer must not block. Pipes are rejected below. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ddp_fail_errno(err, errno == EACCES ? DDP_EPERM : DDP_ENOINPUT, errno,
                              "cannot open '%s'", path);
    int rc = read_whole(fd, path, &text, &bytes, err);
    close(fd);
    DDP_TRY(rc);
    rc = ddp_result_parse(text, bytes, path, out, err);
    free(text);
    return rc;
}

void ddp_result_release(struct ddp_result *result)
{
    free(result->points);
    free(result->runs);
    *result = (struct ddp_result){.count = 0};
}

const struct ddp_result_point *ddp_result_find(const struct ddp_result *result, const char *id)
{
    for (size_t i = 0; i < result->count; i++)
        if (strcmp(result->points[i].id, id) == 0)
            return &result->points[i];
    return NULL;
}

bool ddp_result_delays_differ(const struct ddp_result_point *a, const struct ddp_result_point *b)
{
    const double x = a->injected_percent, y = b->injected_percent;
    return !(x == y || (isnan(x) && isnan(y)));
}

void ddp_result_name_delays(const struct ddp_result_point *base,
                            const struct ddp_result_point *next, char *out, size_t bytes)
{
    const double percent[2] = {base->injected_percent, next->injected_percent};
    char name[2][24];
    for (int side = 0; side < 2; side++) {
        snprintf(name[side], sizeof name[side], "none");
        if (!isnan(percent[side]))
            snprintf(name[side], sizeof name[side], "%.9g %%", percent[side]);
    }
    snprintf(out, bytes, "%s in base, %s in new", name[0], name[1]);
}
