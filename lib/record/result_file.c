/* Opening and outline of a result document; its points are result_points.c's. */
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

/* The string obj[key]; "" when it is null. */
static int text_of(const cJSON *obj, const char *key, const char *name, char *out, size_t bytes,
                   struct ddp_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    out[0] = '\0';
    if (!item || (!cJSON_IsString(item) && !cJSON_IsNull(item)))
        return ddp_fail(err, DDP_EINPUT, "'%s': '%s' is missing or no text", name, key);
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

/* "name: cpu, 2 cores; 2 ranks, shm". */
static int read_fingerprint(const cJSON *doc, const char *name, struct ddp_result *out,
                            struct ddp_err *err)
{
    const cJSON *world = object_of(doc, "world"), *host;
    const cJSON *hosts = cJSON_GetObjectItemCaseSensitive(world, "hosts");
    const cJSON *ranks = cJSON_GetObjectItemCaseSensitive(world, "ranks");
    char backend[16];
    bool first = true;
    if (!world || !cJSON_IsArray(hosts) || !cJSON_IsNumber(ranks))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'world' is not whole", name);
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

/* A document whose status is "failed" has wrong data: no other failure gets that status. */
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
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a result of ddpbench: no object", name);
    DDP_TRY(text_of(doc, "schema", name, schema, sizeof schema, err));
    if (strcmp(schema, "ddpbench/1") != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s': schema '%s', not 'ddpbench/1'", name, schema);
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

/* Absent in documents of other tools, empty where nothing was measured, null where memory was
 * short.
 */
static int read_control(const cJSON *doc, const char *name, struct ddp_result *out,
                        struct ddp_err *err)
{
    const cJSON *controls = cJSON_GetObjectItemCaseSensitive(doc, "control"), *item;
    double logs = 0;
    int n = 0;
    if (controls && !cJSON_IsArray(controls))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'control' is no list", name);
    cJSON_ArrayForEach(item, controls)
    {
        const cJSON *copy = cJSON_GetObjectItemCaseSensitive(item, "copy_GBps");
        if (cJSON_IsNull(copy))
            continue;
        if (!cJSON_IsNumber(copy) || !(copy->valuedouble > 0))
            return ddp_fail(err, DDP_EINPUT, "'%s': 'copy_GBps' of 'control' is no speed", name);
        logs += log(copy->valuedouble);
        n++;
    }
    out->copy_GBps = n > 0 ? exp(logs / n) : NAN;
    return 0;
}

/* "singa-cnn dense ranks 2 lr 0.05 seed 1". */
static int name_run(const cJSON *run, const char *name, char *out, size_t bytes,
                    struct ddp_err *err)
{
    const cJSON *optimizer = cJSON_GetObjectItemCaseSensitive(run, "optimizer");
    const cJSON *lr = cJSON_GetObjectItemCaseSensitive(optimizer, "lr");
    const cJSON *ranks = cJSON_GetObjectItemCaseSensitive(run, "ranks");
    const cJSON *seed = cJSON_GetObjectItemCaseSensitive(run, "seed");
    char model[64], strategy[64];
    DDP_TRY(text_of(run, "model", name, model, sizeof model, err));
    DDP_TRY(text_of(cJSON_GetObjectItemCaseSensitive(run, "sync"), "strategy", name, strategy,
                    sizeof strategy, err));
    if (!ddp_result_begins_name(model[0]))
        return ddp_fail(err, DDP_EINPUT, "'%s': a training run has no model", name);
    snprintf(out, bytes, "%s %s ranks %.0f lr %g seed %.0f", model, strategy,
             cJSON_IsNumber(ranks) ? ranks->valuedouble : NAN,
             cJSON_IsNumber(lr) ? lr->valuedouble : NAN,
             cJSON_IsNumber(seed) ? seed->valuedouble : NAN);
    return 0;
}

static int read_runs(const cJSON *doc, const char *name, struct ddp_result *out,
                     struct ddp_err *err)
{
    const cJSON *train = cJSON_GetObjectItemCaseSensitive(doc, "train"), *run;
    if (train && !cJSON_IsArray(train))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'train' is no list", name);
    const size_t count = train ? (size_t)cJSON_GetArraySize(train) : 0;
    if (count > DDP_RESULT_MAX_RUNS)
        return ddp_fail(err, DDP_EINPUT, "'%s': %zu training runs are more than %d", name, count,
                        DDP_RESULT_MAX_RUNS);
    out->runs = ddp_calloc(count, sizeof *out->runs);
    if (!out->runs)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu training runs", count);
    cJSON_ArrayForEach(run, train)
    {
        char *last = out->runs[out->run_count];
        size_t same = 0;
        DDP_TRY(name_run(run, name, last, sizeof out->runs[0], err));
        while (strcmp(out->runs[same], last) != 0)
            same++;
        out->run_count += same == out->run_count;
    }
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
        return ddp_fail_errno(err, DDP_EIO, errno, "cannot look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a file", path);
    if (st.st_size > DDP_JSON_MAX_BYTES)
        return ddp_fail(err, DDP_EINPUT, "'%s' is larger than a result can be", path);
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
            break; /* it shrank meanwhile: the digest will say so */
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
    /* Not blocked by a pipe without a writer: that is no file, and is refused. */
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
