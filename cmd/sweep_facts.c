/* Collects the facts that must be equal for a sweep to continue the journal of an earlier run. */
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/json.h"
#include "base/mem.h"
#include "record/provenance.h"
#include "sweep_collector.h"

/* Hashes the running binary, because the commit does not identify a build with uncommitted changes.
 */
static uint64_t hash_program(void)
{
    uint64_t hash = DDP_FNV_INIT;
    char block[16384];
    size_t n;
    FILE *file = fopen("/proc/self/exe", "rb");
    if (!file)
        return 0;
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        hash = ddp_fnv1a(hash, block, n);
    fclose(file);
    return hash;
}

static void add_build(const struct ddp_record *r, struct ddp_journal_facts *facts)
{
    const struct ddp_build *build = ddp_build_info();
    ddp_journal_fact(facts, "version", "%s", build->version);
    ddp_journal_fact(facts, "commit", "%s", build->commit);
    ddp_journal_fact(facts, "compiler", "%s %s", build->compiler, build->cflags);
    ddp_journal_fact(facts, "simd", "%s", r->simd);
    ddp_journal_fact(facts, "mpi", "%s", r->feature_mpi);
    if (build->dirty)
        ddp_journal_fact(facts, "program", "%016llx", (unsigned long long)hash_program());
}

/* Adds the properties of each host that affect times, such as its usable cores and its kernel. The
 * text is truncated if there are many hosts. The hash covers all hosts. */
static void add_hosts(const struct ddp_record *r, struct ddp_journal_facts *facts)
{
    char text[480] = "", host[320];
    uint64_t hash = DDP_FNV_INIT;
    size_t n = 0;
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        snprintf(host, sizeof host, "%s%s: %s, %d of %d cores, %s, %d ranks", i ? "; " : "",
                 h->name, h->cpu, h->usable_cores, h->cores, h->kernel, h->ranks);
        hash = ddp_fnv1a(hash, host, strlen(host));
        if (n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", host);
    }
    ddp_journal_fact(facts, "hosts", "%s", text);
    ddp_journal_fact(facts, "hosts and ranks", "%d %d %016llx", r->host_count, r->world_ranks,
                     (unsigned long long)hash);
}

void ddp_sweep_facts(const struct ddp_sweep_values *v, const struct ddp_record *r,
                     struct ddp_journal_facts *facts)
{
    char ranks[400] = "";
    const char *simulated = ddp_conf_get(DDP_CONF_HOSTS);
    size_t n = 0;
    facts->count = 0;
    for (int i = 0; i < v->world.ranks.n && n < sizeof ranks; i++)
        n += (size_t)snprintf(ranks + n, sizeof ranks - n, "%s%lld", i ? "," : "",
                              (long long)v->world.ranks.v[i]);
    ddp_journal_fact(facts, "configuration", "%016llx", (unsigned long long)v->plan.hash);
    ddp_journal_fact(facts, "--seed", "%lld", (long long)v->world.seed);
    ddp_journal_fact(facts, "--launches", "%lld", (long long)v->launches);
    ddp_journal_fact(facts, "numbers of ranks", "%s", ranks);
    ddp_journal_fact(facts, "runs and points", "%d %d", v->count, v->points);
    ddp_journal_fact(facts, "backend", "%s", r->world_backend);
    ddp_journal_fact(facts, "launcher", "%s%s%s", r->launcher, r->launch[0] ? ", " : "", r->launch);
    ddp_journal_fact(facts, "--share-gpu", "%s", v->world.share_gpu ? "yes" : "no");
    ddp_journal_fact(facts, "DDPBENCH_HOSTS", "%s", simulated ? simulated : "");
    add_hosts(r, facts);
    add_build(r, facts);
}
