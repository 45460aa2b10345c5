#include "record/result_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "record/field.h"

/* A value that the document lacks. It equals only another unknown value. */
#define UNKNOWN   "unknown"
#define HOSTS_MAX 100000

/* The facts of one host. */
enum { CPU, CORES, KERNEL, HOST_FACTS };
struct host {
    char fact[HOST_FACTS][96];
    char name[64];
};

const char *ddp_fact_name(enum ddp_fact fact)
{
    static const char *const names[DDP_FACT_COUNT] = {"CPU",   "usable cores", "kernel",
                                                      "ranks", "backend",      "MPI library"};
    return names[fact];
}

bool ddp_fact_varies(unsigned vary, enum ddp_fact fact)
{
    switch (fact) {
    case DDP_FACT_RANKS:
        return ddp_vary_has(vary, DDP_VARY_RANKS);
    case DDP_FACT_BACKEND:
    case DDP_FACT_MPI:
        return ddp_vary_has(vary, DDP_VARY_BACKEND);
    default:
        return false;
    }
}

/* Writes a string or a number of the document; UNKNOWN if it is missing, null or of another
 * type. */
static void value_of(const cJSON *item, char *out, size_t bytes)
{
    if (cJSON_IsString(item))
        ddp_printable(item->valuestring, out, bytes);
    else if (cJSON_IsNumber(item))
        snprintf(out, bytes, "%.0f", item->valuedouble);
    else
        snprintf(out, bytes, UNKNOWN);
}

static int compare_hosts(const void *a, const void *b)
{
    const struct host *x = a, *y = b;
    int order = 0;
    for (int k = 0; k < HOST_FACTS && order == 0; k++)
        order = strcmp(x->fact[k], y->fact[k]);
    return order ? order : strcmp(x->name, y->name);
}

/* Copies the text to out. If the text does not fit, its end is replaced by a hash of the whole
 * text, so that different texts stay different. Always releases the text. Returns 0 or
 * DDP_ENOMEM. */
static int fit(struct ddp_strbuf *text, char *out, size_t bytes, struct ddp_err *err)
{
    const bool failed = text->failed;
    if (!failed && text->length < bytes)
        snprintf(out, bytes, "%s", text->text ? text->text : "");
    else if (!failed)
        snprintf(out, bytes, "%.*s... #%016llx", (int)bytes - 22, text->text,
                 (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text->text, text->length));
    ddp_strbuf_release(text);
    return failed ? ddp_fail(err, DDP_ENOMEM, "no memory for the machine of a result") : 0;
}

/* Writes a fact of all hosts, for example "2 x 64, 1 x 32". Adjacent hosts with the same value are
 * counted together. */
static int join_fact(const struct host *hosts, size_t count, int fact, char *out, size_t bytes,
                     struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && strcmp(hosts[i].fact[fact], hosts[i + n].fact[fact]) == 0;)
            n++;
        ddp_strbuf_add(&text, i ? ", " : "");
        if (count > 1)
            ddp_strbuf_addf(&text, "%zu x ", n);
        ddp_strbuf_add(&text, hosts[i].fact[fact]);
    }
    return fit(&text, out, bytes, err);
}

static int join_hosts(struct host *hosts, size_t count, struct ddp_result *out, struct ddp_err *err)
{
    static const enum ddp_fact facts[HOST_FACTS] = {DDP_FACT_CPU, DDP_FACT_CORES, DDP_FACT_KERNEL};
    struct ddp_strbuf names = DDP_STRBUF_INIT;
    if (count > 0)
        qsort(hosts, count, sizeof *hosts, compare_hosts);
    for (size_t i = 0; i < count; i++)
        ddp_strbuf_addf(&names, "%s%s", i ? ", " : "", hosts[i].name);
    DDP_TRY(fit(&names, out->hosts, sizeof out->hosts, err));
    for (int k = 0; k < HOST_FACTS; k++)
        DDP_TRY(join_fact(hosts, count, k, out->fact[facts[k]], sizeof out->fact[0], err));
    return 0;
}

/* Takes the processor and cores of the result from the first host. Clears both if a later host
 * differs. */
static void note_machine(const struct host *host, const cJSON *cores, bool first,
                         struct ddp_result *out)
{
    const double count = cJSON_IsNumber(cores) ? cores->valuedouble : -1;
    const int n = count >= 0 && count <= 1e6 ? (int)count : -1;
    const char *cpu = strcmp(host->fact[CPU], UNKNOWN) != 0 ? host->fact[CPU] : "";
    if (first) {
        snprintf(out->cpu, sizeof out->cpu, "%s", cpu);
        out->cores = n;
    } else if (strcmp(out->cpu, cpu) != 0 || out->cores != n) {
        out->cpu[0] = '\0';
        out->cores = -1;
    }
}

static int read_hosts(const cJSON *list, struct ddp_result *out, struct ddp_err *err)
{
    const size_t count = (size_t)cJSON_GetArraySize(list);
    const cJSON *item;
    struct host *hosts;
    size_t n = 0;
    DDP_TRY(DDP_NEW(&hosts, count, err));
    cJSON_ArrayForEach(item, list)
    {
        struct host *h = &hosts[n];
        value_of(ddp_field_item(item, "name"), h->name, sizeof h->name);
        value_of(ddp_field_item(item, "cpu"), h->fact[CPU], sizeof h->fact[CPU]);
        value_of(ddp_field_item(item, "usable_cores"), h->fact[CORES], sizeof h->fact[CORES]);
        value_of(ddp_field_item(item, "kernel"), h->fact[KERNEL], sizeof h->fact[KERNEL]);
        h->fact[KERNEL][strcspn(h->fact[KERNEL], ".")] = '\0'; /* the major version */
        note_machine(h, ddp_field_item(item, "cores"), n++ == 0, out);
    }
    int rc = join_hosts(hosts, count, out, err);
    free(hosts);
    return rc;
}

static int write_fingerprint(unsigned vary, struct ddp_result *out, struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    for (enum ddp_fact k = 0; k < DDP_FACT_COUNT; k++)
        if (!ddp_fact_varies(vary, k))
            ddp_strbuf_addf(&text, "%s%s %s", text.length ? "; " : "", ddp_fact_name(k),
                            out->fact[k]);
    return fit(&text, out->fingerprint, sizeof out->fingerprint, err);
}

int ddp_result_read_machine(const cJSON *doc, const char *name, unsigned vary,
                            struct ddp_result *out, struct ddp_err *err)
{
    const cJSON *hosts = ddp_field_item(doc, "world.hosts");
    const cJSON *ranks = ddp_field_item(doc, "world.ranks");
    const cJSON *backend = ddp_field_item(doc, "world.backend");
    const cJSON *mpi = ddp_field_item(doc, "tool.features.mpi");
    if (!cJSON_IsArray(hosts) || !cJSON_IsNumber(ranks) ||
        (!cJSON_IsString(backend) && !cJSON_IsNull(backend)))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'world' is missing or incomplete", name);
    if (cJSON_GetArraySize(hosts) > HOSTS_MAX)
        return ddp_fail(err, DDP_EINPUT, "'%s' has more than %d hosts", name, HOSTS_MAX);
    DDP_TRY(read_hosts(hosts, out, err));
    value_of(ranks, out->fact[DDP_FACT_RANKS], sizeof out->fact[0]);
    value_of(backend, out->fact[DDP_FACT_BACKEND], sizeof out->fact[0]);
    value_of(mpi, out->fact[DDP_FACT_MPI], sizeof out->fact[0]);
    if (cJSON_IsNull(mpi)) /* null: no MPI was in use; a missing key: unknown */
        snprintf(out->fact[DDP_FACT_MPI], sizeof out->fact[0], "none");
    return write_fingerprint(vary, out, err);
}

void ddp_result_name_differences(const struct ddp_result *base, const struct ddp_result *next,
                                 unsigned vary, char *out, size_t bytes)
{
    out[0] = '\0';
    for (enum ddp_fact k = 0; k < DDP_FACT_COUNT; k++)
        if (!ddp_fact_varies(vary, k) && strcmp(base->fact[k], next->fact[k]) != 0)
            ddp_text_append(out, bytes, "%s%s: '%.100s' and '%.100s'", out[0] ? "; " : "",
                            ddp_fact_name(k), base->fact[k], next->fact[k]);
}
