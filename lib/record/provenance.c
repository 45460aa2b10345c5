/* The origin of a result. Only allow-listed environment variables are recorded, because results are
 * shared. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "build_facts.h"
#include "record/provenance.h"

/* Prefixes end in '_'. All other entries are complete names. */
static const char *const allowed[] = {
    "OMP_",
    "OMPI_MCA_",
    "MPICH_",
    "UCX_",
    "NCCL_",
    "DDPBENCH_",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    /* Threads of the BLAS libraries. */
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    /* The batch job. */
    "SLURM_JOB_ID",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NNODES",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "SLURM_JOB_PARTITION",
};

/* Variables that launchers set for each rank. */
static const struct {
    const char *name;
    bool recorded;
} launcher_variables[] = {
#define DDP_LAUNCHER_VARIABLE(symbol, name, recorded) {name, recorded},
#include "base/launcher_variable_list.h"
#undef DDP_LAUNCHER_VARIABLE
};

/* Variables that Open MPI's daemon or --hosts passes to the ranks. They are not recorded, because
 * they are not settings of the user, change with every run or contain addresses of the machine. */
static const char *const internal[] = {"OMPI_MCA_orte_", "OMPI_MCA_ess_", "OMPI_MCA_pmix",
                                       "OMPI_MCA_initial_wdir", "DDPBENCH_JOB"};

static const char *const secret[] = {"KEY", "TOKEN", "SECRET", "PASS", "CRED"};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns whether `text` contains `word`, which is in upper case. The case of `text` does not
 * matter. */
static bool holds_word(const char *text, const char *word)
{
    for (; *text; text++) {
        size_t i = 0;
        while (word[i] && toupper((unsigned char)text[i]) == word[i])
            i++;
        if (!word[i])
            return true;
    }
    return false;
}

bool ddp_provenance_env_allowed(const char *variable)
{
    for (size_t i = 0; i < DDP_COUNT_OF(secret); i++) {
        if (holds_word(variable, secret[i]))
            return false;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(internal); i++) {
        if (starts_with(variable, internal[i]))
            return false;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(allowed); i++) {
        const char *a = allowed[i];
        if (a[strlen(a) - 1] == '_' ? starts_with(variable, a) : strcmp(variable, a) == 0)
            return true;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(launcher_variables); i++) {
        if (launcher_variables[i].recorded && strcmp(variable, launcher_variables[i].name) == 0)
            return true;
    }
    return false;
}

const struct ddp_build *ddp_build_info(void)
{
    static const struct ddp_build clean = {DDP_VERSION, DDP_COMMIT, DDP_COMPILER, DDP_CFLAGS,
                                           false};
    static const struct ddp_build dirty = {DDP_VERSION, DDP_COMMIT, DDP_COMPILER, DDP_CFLAGS, true};
    return strstr(DDP_COMMIT, "-dirty") ? &dirty : &clean;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct ddp_env_entry *)a)->key, ((const struct ddp_env_entry *)b)->key);
}

/* Extracts the name from NAME=VALUE. Returns false if the name may not be recorded or does not
 * fit. */
static bool allowed_name(const char *line, char *name, size_t name_bytes)
{
    const char *equals = strchr(line, '=');
    if (!equals || (size_t)(equals - line) >= name_bytes)
        return false;
    memcpy(name, line, (size_t)(equals - line));
    name[equals - line] = '\0';
    return ddp_provenance_env_allowed(name);
}

static int fill_environment(struct ddp_record *record, struct ddp_err *err)
{
    struct ddp_env_entry *entries = NULL;
    int count = 0;
    const char *line;
    for (size_t i = 0; (line = ddp_sysinfo_environment(i)); i++) {
        char name[sizeof entries->key];
        if (!allowed_name(line, name, sizeof name))
            continue;
        const int rc = DDP_RESIZE(&entries, (size_t)count + 1, err);
        if (rc != 0) {
            free(entries);
            return rc;
        }
        snprintf(entries[count].key, sizeof entries[count].key, "%s", name);
        snprintf(entries[count].value, sizeof entries[count].value, "%s", line + strlen(name) + 1);
        count++;
    }
    if (count > 0)
        qsort(entries, (size_t)count, sizeof *entries, compare_entries);
    free(record->environment);
    record->environment = entries;
    record->environment_count = count;
    return 0;
}

void ddp_provenance_host(int ranks, const char *nic, struct ddp_host *out)
{
    struct ddp_sysinfo info;
    ddp_sysinfo_read(&info);
    memset(out, 0, sizeof *out);
    memcpy(out->name, info.host, sizeof out->name);
    memcpy(out->cpu, info.cpu, sizeof out->cpu);
    memcpy(out->kernel, info.kernel, sizeof out->kernel);
    memcpy(out->governor, info.governor, sizeof out->governor);
    out->ranks = ranks;
    out->cores = info.machine_cores;
    out->usable_cores = info.cores;
    out->memory_bytes = info.memory_bytes;
    out->load = info.load;
    ddp_network_facts_read("", nic, &out->network);
}

int ddp_provenance_fill(struct ddp_record *record, const char *command, int argc, char *const *argv,
                        int ranks, struct ddp_err *err)
{
    struct ddp_host host;
    char nic[DDP_NIC_NAME_BYTES];
    snprintf(record->command, sizeof record->command, "%s", command);
    snprintf(record->simd, sizeof record->simd, "%s", ddp_simd_name(ddp_conf_simd()));
    record->argc = argc;
    record->argv = argv;
    ddp_clock_iso8601(record->started, sizeof record->started);
    ddp_clock_measure(&record->timer_cost_ns, &record->timer_resolution_ns);
    ddp_nic_default(nic);
    ddp_provenance_host(ranks, nic, &host);
    DDP_TRY(ddp_record_add_host(record, &host, err));
    return fill_environment(record, err);
}
