#include "record/noise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sysinfo.h"
#include "record/provenance.h"
#include "stats/signflip.h"

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

#define MEMBER(member) DDP_FIELD_AT(ddp_noise, member)

/* The members of the file. An effect is a fraction. */
static const struct ddp_field machine_rows[] = {
    {DDP_FIELD_AT(ddp_noise_machine, cpu), DDP_FIELD_PATH, "cpu"},
    {DDP_FIELD_AT(ddp_noise_machine, cores), DDP_FIELD_COUNT, "cores"},
    {DDP_FIELD_AT(ddp_noise_machine, kernel), DDP_FIELD_PATH, "kernel"},
    {DDP_FIELD_AT(ddp_noise_machine, build), DDP_FIELD_PATH, "build"},
};
static const struct ddp_field noise_rows[] = {
    {MEMBER(measured), DDP_FIELD_PATH, "measured"},
    {MEMBER(command), DDP_FIELD_PATH, "command"},
    {MEMBER(pairs), DDP_FIELD_COUNT, "pairs"},
    {MEMBER(cells), DDP_FIELD_COUNT, "cells"},
    {MEMBER(same), DDP_FIELD_COUNT, "same_gates"},
    {MEMBER(false_alarms), DDP_FIELD_COUNT, "false_alarms"},
    {MEMBER(inconclusive), DDP_FIELD_COUNT, "inconclusive"},
    {MEMBER(injected), DDP_FIELD_COUNT, "injected_gates"},
    {MEMBER(found), DDP_FIELD_COUNT, "found"},
    {MEMBER(elsewhere), DDP_FIELD_COUNT, "elsewhere"},
    {MEMBER(injected_effect), DDP_FIELD_NUMBER, "injected_effect"},
    {MEMBER(min_effect), DDP_FIELD_NUMBER, "min_effect"},
    {MEMBER(noise_floor), DDP_FIELD_NUMBER, "noise_floor"},
    {MEMBER(detectable), DDP_FIELD_NUMBER, "detectable"},
    {MEMBER(median_pairs), DDP_FIELD_NUMBER, "median_pairs"},
    {MEMBER(median_seconds), DDP_FIELD_NUMBER, "median_seconds"},
};
/* Number of members at the end of noise_rows that the file of an older version lacks. */
#define LATE_MEMBERS 2
static const struct ddp_fields machine_fields = {machine_rows, DDP_COUNT_OF(machine_rows)};
const struct ddp_fields ddp_noise_fields = {noise_rows, DDP_COUNT_OF(noise_rows)};

#define GATE(member) DDP_FIELD_AT(ddp_noise_gate, member), DDP_FIELD_COUNT
static const struct ddp_field gate_rows[] = {
    {GATE(index)},
    {GATE(injected), .least = -1},
    {GATE(pairs), .least = 1, .most = DDP_SIGNFLIP_MAX},
    {GATE(cells), .least = 1, .most = DDP_NOISE_CELLS_MAX},
    {GATE(rerun)},
    {GATE(mixed)},
    {GATE(took_ms)},
};
const struct ddp_fields ddp_noise_gate_fields = {gate_rows, DDP_COUNT_OF(gate_rows)};

static int print(const struct ddp_noise *noise, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the noise floor");
    ddp_json_str(doc, "schema", SCHEMA);
    ddp_fields_show(&machine_fields, &noise->machine, ddp_json_obj(doc, "machine"));
    ddp_fields_show(&ddp_noise_fields, noise, doc);
    int rc = ddp_json_print_digest(doc, out, err);
    cJSON_Delete(doc);
    return rc;
}

static int refuse(const char *name, const char *key, struct ddp_err *err)
{
    ddp_fail(err, DDP_EINPUT, "'%s': '%s' is missing or not valid in a noise floor", name, key);
    return ddp_hint(err, "remove the file and measure again: `ddpbench gate --selftest`");
}

/* Reads the members in the first `count` rows of a table. */
static int read_members(const struct ddp_fields *fields, size_t count, const cJSON *doc,
                        const char *name, void *out, struct ddp_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (ddp_fields_read(fields, doc, fields->field[i].path, out) != NULL)
            return refuse(name, fields->field[i].path, err);
    return 0;
}

/* Checks that effects lie between 0 and 1000. All except noise_floor may be unknown. */
static int check_effects(const struct ddp_noise *n, const char *name, struct ddp_err *err)
{
    const double effects[] = {n->injected_effect, n->min_effect, n->noise_floor, n->detectable};
    for (size_t i = 0; i < DDP_COUNT_OF(effects); i++)
        if (effects[i] < 0 || effects[i] > 1000)
            return refuse(name, noise_rows[DDP_COUNT_OF(noise_rows) - LATE_MEMBERS - 4 + i].path,
                          err);
    return isnan(n->noise_floor) ? refuse(name, "noise_floor", err) : 0;
}

static int read_document(const cJSON *doc, const char *name, struct ddp_noise *n,
                         struct ddp_err *err)
{
    const cJSON *machine = cJSON_GetObjectItemCaseSensitive(doc, "machine");
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(doc, "schema");
    if (!cJSON_IsString(schema) || strcmp(schema->valuestring, SCHEMA) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' does not have the schema '" SCHEMA "'", name);
    if (!cJSON_IsObject(machine) ||
        (size_t)cJSON_GetArraySize(machine) != DDP_COUNT_OF(machine_rows))
        return refuse(name, "machine", err);
    const size_t count = (size_t)cJSON_GetArraySize(doc) - 3;
    if (count != DDP_COUNT_OF(noise_rows) && count != DDP_COUNT_OF(noise_rows) - LATE_MEMBERS)
        return ddp_fail(err, DDP_EINPUT, "'%s' must have exactly the keys of a noise floor", name);
    DDP_TRY(read_members(&machine_fields, machine_fields.count, machine, name, &n->machine, err));
    DDP_TRY(read_members(&ddp_noise_fields, count, doc, name, n, err));
    return check_effects(n, name, err);
}

int ddp_noise_parse(const char *text, size_t bytes, const char *name, struct ddp_noise *out,
                    struct ddp_err *err)
{
    struct ddp_noise n = {.median_pairs = NAN, .median_seconds = NAN};
    cJSON *doc = NULL;
    DDP_TRY(ddp_json_parse_digest(text, bytes, name, NULL, &doc, err));
    int rc = read_document(doc, name, &n, err);
    cJSON_Delete(doc);
    if (rc == 0)
        *out = n;
    return rc;
}

int ddp_noise_read(const char *path, struct ddp_noise *out, struct ddp_err *err)
{
    struct ddp_noise_machine here;
    char *text;
    size_t bytes;
    DDP_TRY(ddp_file_read(path, MAX_BYTES, &text, &bytes, err));
    const int rc = ddp_noise_parse(text, bytes, path, out, err);
    free(text);
    DDP_TRY(rc);
    ddp_noise_machine_read(&here);
    if (ddp_noise_machine_key(&here) == ddp_noise_machine_key(&out->machine))
        return 0;
    ddp_fail(err, DDP_EMISMATCH,
             "'%s' was measured on another machine or build: %s, %d cores, Linux %s", path,
             out->machine.cpu, out->machine.cores, out->machine.kernel);
    return ddp_hint(err,
                    "run `ddpbench gate --selftest` to measure the noise floor of this machine");
}

int ddp_noise_write(const char *path, const struct ddp_noise *noise, struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    char temp[PATH_MAX];
    int rc, fd = -1;
    if ((size_t)snprintf(temp, sizeof temp, "%s.tmp", path) >= sizeof temp)
        return ddp_fail(err, DDP_ECREATE, "the path '%.200s...' is too long", path);
    DDP_TRY_GOTO(print(noise, &text, err), out);
    /* The temporary name is fixed, because only the process that has locked the journal of the
     * self-test writes the file. A temporary file of a killed process is replaced. */
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
