#include "record/noise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "record/provenance.h"

#define SCHEMA    "ddpbench-noise/1"
#define MAX_BYTES 65536

void ddp_noise_machine_read(struct ddp_noise_machine *out)
{
    const struct ddp_build *build = ddp_build_info();
    struct ddp_sysinfo host;
    char text[sizeof out->build];
    ddp_sysinfo_read(&host);
    *out = (struct ddp_noise_machine){.cores = host.machine_cores};
    ddp_printable(host.cpu, out->cpu, sizeof out->cpu);
    ddp_printable(host.kernel, out->kernel, sizeof out->kernel);
    snprintf(text, sizeof text, "%s %s", build->compiler, build->cflags);
    ddp_printable(text, out->build, sizeof out->build);
}

uint64_t ddp_noise_machine_key(const struct ddp_noise_machine *m)
{
    char text[sizeof *m + 64];
    int n = snprintf(text, sizeof text, "%s|%d|%s|%s", m->cpu, m->cores, m->kernel, m->build);
    return ddp_fnv1a(DDP_FNV_INIT, text, (size_t)DDP_MAX(n, 0));
}

size_t ddp_noise_gate_doubles(const struct ddp_noise_gate *gate)
{
    return 2 * (size_t)gate->pairs * ((size_t)gate->cells + 2);
}

size_t ddp_noise_gate_bytes(const struct ddp_noise_gate *gate)
{
    return sizeof *gate + ddp_noise_gate_doubles(gate) * sizeof(double) +
           (size_t)gate->cells * DDP_NOISE_ID_BYTES;
}

/* The members of the file by type. Writer and reader share these tables. Counts are >= 0. */
static const struct {
    const char *key;
    size_t offset, bytes;
} texts[] = {
    {"measured", offsetof(struct ddp_noise, measured), sizeof((struct ddp_noise *)0)->measured},
    {"command", offsetof(struct ddp_noise, command), sizeof((struct ddp_noise *)0)->command},
};
static const struct {
    const char *key;
    size_t offset;
} counts[] =
    {
        {"pairs", offsetof(struct ddp_noise, pairs)},
        {"cells", offsetof(struct ddp_noise, cells)},
        {"same_gates", offsetof(struct ddp_noise, same)},
        {"false_alarms", offsetof(struct ddp_noise, false_alarms)},
        {"inconclusive", offsetof(struct ddp_noise, inconclusive)},
        {"injected_gates", offsetof(struct ddp_noise, injected)},
        {"found", offsetof(struct ddp_noise, found)},
        {"elsewhere", offsetof(struct ddp_noise, elsewhere)},
},
  effects[] = {
      {"injected_effect", offsetof(struct ddp_noise, injected_effect)},
      {"min_effect", offsetof(struct ddp_noise, min_effect)},
      {"noise_floor", offsetof(struct ddp_noise, noise_floor)},
      {"detectable", offsetof(struct ddp_noise, detectable)},
};

#define MEMBER(noise, offset) ((void *)((char *)(noise) + (offset)))

void ddp_noise_add(cJSON *obj, const struct ddp_noise *noise)
{
    for (size_t i = 0; i < DDP_COUNT_OF(texts); i++)
        ddp_json_str(obj, texts[i].key, MEMBER(noise, texts[i].offset));
    for (size_t i = 0; i < DDP_COUNT_OF(counts); i++)
        ddp_json_count(obj, counts[i].key, *(int *)MEMBER(noise, counts[i].offset));
    for (size_t i = 0; i < DDP_COUNT_OF(effects); i++)
        ddp_json_num(obj, effects[i].key, *(double *)MEMBER(noise, effects[i].offset));
}

static int print(const struct ddp_noise *noise, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the noise floor");
    ddp_json_str(doc, "schema", SCHEMA);
    cJSON *machine = ddp_json_obj(doc, "machine");
    ddp_json_str(machine, "cpu", noise->machine.cpu);
    ddp_json_count(machine, "cores", noise->machine.cores);
    ddp_json_str(machine, "kernel", noise->machine.kernel);
    ddp_json_str(machine, "build", noise->machine.build);
    ddp_noise_add(doc, noise);
    int rc = ddp_json_print_digest(doc, out, err);
    cJSON_Delete(doc);
    return rc;
}

static int refuse(const char *name, const char *key, struct ddp_err *err)
{
    ddp_fail(err, DDP_EINPUT, "'%s': '%s' is missing or not valid in a noise floor", name, key);
    return ddp_hint(err, "remove the file and measure again: `ddpbench gate --selftest`");
}

static int read_text(const cJSON *obj, const char *key, const char *name, char *out, size_t bytes,
                     struct ddp_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    out[0] = '\0';
    if (!cJSON_IsString(item) && !cJSON_IsNull(item))
        return refuse(name, key, err);
    if (cJSON_IsString(item))
        ddp_printable(item->valuestring, out, bytes);
    return 0;
}

static int read_count(const cJSON *obj, const char *key, const char *name, int *out,
                      struct ddp_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= INT_MAX) ||
        item->valuedouble != floor(item->valuedouble))
        return refuse(name, key, err);
    *out = (int)item->valuedouble;
    return 0;
}

/* Reads an effect from 0 to 1000, or NaN if it is null. */
static int read_effect(const cJSON *obj, const char *key, const char *name, double *out,
                       struct ddp_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    *out = NAN;
    if (cJSON_IsNull(item))
        return 0;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 1000))
        return refuse(name, key, err);
    *out = item->valuedouble;
    return 0;
}

static int read_members(const cJSON *doc, const char *name, struct ddp_noise *n,
                        struct ddp_err *err)
{
    const cJSON *machine = cJSON_GetObjectItemCaseSensitive(doc, "machine");
    struct ddp_noise_machine *m = &n->machine;
    char schema[32];
    DDP_TRY(read_text(doc, "schema", name, schema, sizeof schema, err));
    if (strcmp(schema, SCHEMA) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' has the schema '%s', expected '" SCHEMA "'", name,
                        schema);
    if (!cJSON_IsObject(machine) || cJSON_GetArraySize(machine) != 4)
        return refuse(name, "machine", err);
    if ((size_t)cJSON_GetArraySize(doc) !=
        3 + DDP_COUNT_OF(texts) + DDP_COUNT_OF(counts) + DDP_COUNT_OF(effects))
        return ddp_fail(err, DDP_EINPUT, "'%s' must have exactly the keys of a noise floor", name);
    DDP_TRY(read_text(machine, "cpu", name, m->cpu, sizeof m->cpu, err));
    DDP_TRY(read_count(machine, "cores", name, &m->cores, err));
    DDP_TRY(read_text(machine, "kernel", name, m->kernel, sizeof m->kernel, err));
    DDP_TRY(read_text(machine, "build", name, m->build, sizeof m->build, err));
    for (size_t i = 0; i < DDP_COUNT_OF(texts); i++)
        DDP_TRY(
            read_text(doc, texts[i].key, name, MEMBER(n, texts[i].offset), texts[i].bytes, err));
    for (size_t i = 0; i < DDP_COUNT_OF(counts); i++)
        DDP_TRY(read_count(doc, counts[i].key, name, MEMBER(n, counts[i].offset), err));
    for (size_t i = 0; i < DDP_COUNT_OF(effects); i++)
        DDP_TRY(read_effect(doc, effects[i].key, name, MEMBER(n, effects[i].offset), err));
    if (isnan(n->noise_floor))
        return refuse(name, "noise_floor", err);
    return 0;
}

int ddp_noise_parse(const char *text, size_t bytes, const char *name, struct ddp_noise *out,
                    struct ddp_err *err)
{
    struct ddp_noise n = {.pairs = 0};
    cJSON *doc = NULL;
    DDP_TRY(ddp_json_check_digest(text, bytes, name, err));
    DDP_TRY(ddp_json_parse(text, bytes, name, &doc, err));
    int rc = read_members(doc, name, &n, err);
    cJSON_Delete(doc);
    if (rc == 0)
        *out = n;
    return rc;
}

int ddp_noise_read(const char *path, struct ddp_noise *out, struct ddp_err *err)
{
    char text[MAX_BYTES];
    struct ddp_noise_machine here;
    struct stat st;
    ssize_t n = -1;
    /* O_NONBLOCK: opening a pipe without a writer must not block. Pipes are rejected below. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ddp_fail_errno(err, errno == EACCES ? DDP_EPERM : DDP_ENOINPUT, errno,
                              "cannot open '%s'", path);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < MAX_BYTES)
        n = read(fd, text, sizeof text);
    close(fd);
    if (n < 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a noise floor", path);
    DDP_TRY(ddp_noise_parse(text, (size_t)n, path, out, err));
    ddp_noise_machine_read(&here);
    if (ddp_noise_machine_key(&here) == ddp_noise_machine_key(&out->machine))
        return 0;
    ddp_fail(err, DDP_EMISMATCH,
             "'%s' was measured on another machine or build: %s, %d cores, Linux %s", path,
             out->machine.cpu, out->machine.cores, out->machine.kernel);
    return ddp_hint(err, "run `ddpbench gate --selftest` to measure this one");
}

int ddp_noise_write(const char *path, const struct ddp_noise *noise, struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    char temp[PATH_MAX];
    int rc, fd = -1;
    if ((size_t)snprintf(temp, sizeof temp, "%s.tmp", path) >= sizeof temp)
        return ddp_fail(err, DDP_ECREATE, "the path '%.200s...' is too long", path);
    DDP_TRY_GOTO(print(noise, &text, err), out);
    /* The temporary name is fixed, because only one process writes: the one that locked the journal
     * of the self-test. A file left by a killed process is replaced. */
    unlink(temp);
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        rc = ddp_fail_errno(err, DDP_ECREATE, errno, "cannot create '%s'", temp);
        goto out;
    }
    int failed = ddp_write_all(fd, text.text, text.length);
    if (!failed && fsync(fd) != 0)
        failed = errno;
    if (close(fd) != 0 && !failed)
        failed = errno;
    if (!failed && rename(temp, path) != 0)
        failed = errno;
    if (failed) {
        unlink(temp);
        rc = ddp_fail_errno(err, DDP_EIO, failed, "cannot write '%s'", path);
    }
out:
    ddp_strbuf_release(&text);
    return rc;
}
