/* doctor: what is wrong with this machine or job: one line a finding, worst first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "cmd.h"
#include "model/blas.h"
#include "model/dataset.h"

#define FINDINGS_MAX     48
#define MEMORY_LOW_BYTES (1ll << 30)
#define SHM_LOW_BYTES    (64ll << 20) /* container engines give /dev/shm 64 MiB, too little for MPI \
                                       */

struct doctor_values {
    bool json, help;
};

static const struct ddp_opt rows[] = {
    {"json", 0, DDP_OPT_FLAG, offsetof(struct doctor_values, json), NULL, NULL, "Output", "as JSON",
     0, 0, NULL, NULL, NULL},
    {"help", 'h', DDP_OPT_FLAG, offsetof(struct doctor_values, help), NULL, NULL, "Output",
     "this text", 0, 0, NULL, NULL, NULL},
    DDP_OPT_END};

enum verdict { FAIL, WARN, OK };
static const char *const verdict_words[] = {"FAIL", "WARN", "OK"};

struct finding {
    enum verdict verdict;
    char subject[32], fact[320], advice[200];
};

struct doctor {
    struct ddp_app *app;
    struct ddp_sysinfo info;
    struct finding findings[FINDINGS_MAX];
    int count;
};

/* Adds a finding; advice "" when there is nothing to do. */
static void find(struct doctor *d, enum verdict verdict, const char *subject, const char *advice,
                 const char *fmt, ...) DDP_PRINTF(5, 6);
static void find(struct doctor *d, enum verdict verdict, const char *subject, const char *advice,
                 const char *fmt, ...)
{
    va_list args;
    if (d->count == FINDINGS_MAX)
        return;
    struct finding *f = &d->findings[d->count++];
    f->verdict = verdict;
    snprintf(f->subject, sizeof f->subject, "%s", subject);
    snprintf(f->advice, sizeof f->advice, "%s", advice);
    va_start(args, fmt);
    vsnprintf(f->fact, sizeof f->fact, fmt, args);
    va_end(args);
}

static void check_launcher(struct doctor *d)
{
    const struct ddp_launcher *l = &d->app->launcher;
    char seen[256] = "";
    for (const char *const *v = ddp_launcher_variables(); *v; v++) {
        size_t n = strlen(seen);
        if (getenv(*v) && n < sizeof seen - 80)
            snprintf(seen + n, sizeof seen - n, "%s%s=%.24s", n ? " " : "", *v, getenv(*v));
    }
    if (l->kind == DDP_LAUNCHER_NONE)
        find(d, seen[0] ? WARN : OK, "launcher",
             seen[0] ? "a lone variable of a launcher: unset it if it is stale" : "",
             "none: ddpbench starts its own ranks%s%s", seen[0] ? "; yet set: " : "", seen);
    else
        find(d, OK, "launcher", "", "%s: rank %d of %d (%s)", l->name, l->place.rank, l->place.size,
             seen);
}

static void check_backends(struct doctor *d)
{
    bool launched = d->app->launcher.kind != DDP_LAUNCHER_NONE;
    for (const struct ddp_backend *const *b = ddp_backend_all(); *b; b++) {
        struct ddp_err why = DDP_ERR_INIT;
        char subject[32];
        snprintf(subject, sizeof subject, "backend %s", (*b)->name);
        if ((*b)->probe(d->app->binary_dir, &why) == 0)
            find(d, OK, subject, "", "usable");
        else
            find(d, launched && (*b)->caps & DDP_CAP_LAUNCHED ? FAIL : WARN, subject, why.hint,
                 "not usable here: %s", why.text);
    }
}

/* Is a program of that name on the PATH? */
static bool on_path(const char *name)
{
    const char *path = getenv("PATH");
    char file[1024];
    while (path && *path) {
        size_t n = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)n, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

static bool module_exists(const struct doctor *d, const char *flavour)
{
    static const char *const places[] = {"", "/../lib/ddpbench"};
    char file[4300];
    for (size_t i = 0; i < DDP_COUNT_OF(places); i++) {
        snprintf(file, sizeof file, "%s%s/ddpbench-mpi-%s.so", d->app->binary_dir, places[i],
                 flavour);
        if (access(file, R_OK) == 0)
            return true;
    }
    return false;
}

static void check_mpi(struct doctor *d)
{
    static const char *const flavours[] = {"openmpi", "mpich"};
    for (size_t i = 0; i < DDP_COUNT_OF(flavours); i++) {
        char program[32], subject[32];
        snprintf(program, sizeof program, "mpiexec.%s", flavours[i]);
        snprintf(subject, sizeof subject, "MPI %s", flavours[i]);
        bool launcher = on_path(program), module = module_exists(d, flavours[i]);
        if (launcher && !module)
            find(d, WARN, subject, "`make MPI=1` with its development package builds it",
                 "%s is installed but the module ddpbench-mpi-%s.so is not: it will be refused",
                 program, flavours[i]);
        else
            find(d, OK, subject, "", "module %s, %s %s", module ? "present" : "absent", program,
                 launcher ? "present" : "absent");
    }
}

static void check_cores(struct doctor *d)
{
    const struct ddp_launcher *l = &d->app->launcher;
    int ranks = l->kind == DDP_LAUNCHER_NONE ? d->info.cores : l->place.local_size;
    if (ranks > d->info.cores)
        find(d, WARN, "cores", "times then measure the scheduler: use as many ranks as cores",
             "%d ranks on %d usable cores", ranks, d->info.cores);
    else if (d->info.cores < 2)
        find(d, WARN, "cores", "give the container or job more cores",
             "only one usable core: ranks take turns");
    else
        find(d, OK, "cores", "", "%d usable cores (%s)", d->info.cores,
             d->info.cpu[0] ? d->info.cpu : "unknown processor");
    if (d->info.load > d->info.cores * 0.5)
        find(d, WARN, "load", "wait, or end what else runs",
             "load average %.2f on %d cores: figures will be noisy", d->info.load, d->info.cores);
    else
        find(d, OK, "load", "", "load average %.2f", d->info.load);
    if (d->info.governor[0] && strcmp(d->info.governor, "performance") != 0)
        find(d, WARN, "governor", "cpupower frequency-set -g performance",
             "frequency governor is '%s'", d->info.governor);
}

static void check_shared_memory(struct doctor *d)
{
    int fd = memfd_create("ddpbench-doctor", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 1 << 20) != 0)
        find(d, FAIL, "shared memory", "a seccomp filter may forbid memfd_create",
             "memfd_create: %s", strerror(errno));
    else
        find(d, OK, "shared memory", "", "memfd works; huge pages for shared memory: %s",
             d->info.shmem_thp[0] ? d->info.shmem_thp : "unknown");
    if (fd >= 0)
        close(fd);
    if (strcmp(d->info.shmem_thp, "never") == 0 || strcmp(d->info.shmem_thp, "deny") == 0)
        find(d, WARN, "huge pages",
             "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
             "off for shared memory: large messages are up to 2 times slower");
    struct statvfs fs;
    if (statvfs("/dev/shm", &fs) != 0)
        find(d, WARN, "/dev/shm", "MPI libraries need it; ddpbench's own ranks do not",
             "not mounted");
    else if ((int64_t)fs.f_bavail * (int64_t)fs.f_frsize < SHM_LOW_BYTES * 2)
        find(d, WARN, "/dev/shm", "docker run --shm-size=1g; MPI libraries need it",
             "only %lld MiB free", (long long)fs.f_bavail * (long long)fs.f_frsize >> 20);
    else
        find(d, OK, "/dev/shm", "", "%lld MiB free",
             (long long)fs.f_bavail * (long long)fs.f_frsize >> 20);
}

static void check_memory(struct doctor *d)
{
    char total[32], available[32];
    ddp_format_size((uint64_t)DDP_MAX(d->info.memory_bytes, 0), total, sizeof total);
    ddp_format_size((uint64_t)DDP_MAX(d->info.available_bytes, 0), available, sizeof available);
    find(d, d->info.available_bytes < MEMORY_LOW_BYTES ? WARN : OK, "memory",
         d->info.available_bytes < MEMORY_LOW_BYTES ? "large messages will be refused" : "",
         "%s available of %s", available, total);
}

static void check_data(struct doctor *d)
{
    for (const struct ddp_dataset_reader *const *r = ddp_dataset_readers(); *r; r++) {
        char subject[32], advice[120] = "";
        const char *dir = ddp_dataset_default_dir(*r);
        snprintf(subject, sizeof subject, "data %s", (*r)->name);
        if (!dir && (*r)->package)
            snprintf(advice, sizeof advice, "apt-get install %s, or --data DIR", (*r)->package);
        if (dir)
            find(d, OK, subject, "", "found in %s", dir);
        else
            find(d, (*r)->package ? WARN : OK, subject, advice, "not found%s",
                 (*r)->package ? "" : " (no package brings it: --data DIR)");
    }
    struct ddp_err why = DDP_ERR_INIT;
    if (ddp_blas_load(NULL, &why) == 0)
        find(d, OK, "BLAS", "", "%s", ddp_blas_name());
    else
        find(d, WARN, "BLAS", why.hint, "%s: `train` will not run", why.text);
}

static void print_text(const struct doctor *d, FILE *out)
{
    for (int v = FAIL; v <= OK; v++) {
        for (int i = 0; i < d->count; i++) {
            const struct finding *f = &d->findings[i];
            if ((int)f->verdict == v)
                fprintf(out, "%-4s  %s: %s%s%s\n", verdict_words[v], f->subject, f->fact,
                        f->advice[0] ? "; " : "", f->advice);
        }
    }
}

static int print_json(const struct doctor *d, FILE *out, struct ddp_err *err)
{
    cJSON *list = cJSON_CreateArray();
    for (int v = FAIL; v <= OK; v++) {
        for (int i = 0; i < d->count; i++) {
            const struct finding *f = &d->findings[i];
            if ((int)f->verdict != v)
                continue;
            cJSON *item = cJSON_CreateObject();
            ddp_json_str(item, "verdict", verdict_words[v]);
            ddp_json_str(item, "subject", f->subject);
            ddp_json_str(item, "fact", f->fact);
            ddp_json_str(item, "advice", f->advice);
            cJSON_AddItemToArray(list, item);
        }
    }
    char *text = cJSON_Print(list);
    cJSON_Delete(list);
    if (!text)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the findings");
    fprintf(out, "%s\n", text);
    cJSON_free(text);
    return 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct doctor_values *v = values;
    if (parsed->operand_count)
        return ddp_fail(err, DDP_EUSAGE, "doctor takes no operand '%s'", parsed->operands[0]);
    struct doctor *d = ddp_calloc(1, sizeof *d);
    if (!d)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the findings");
    d->app = app;
    ddp_sysinfo_read(&d->info);
    check_launcher(d);
    check_backends(d);
    check_mpi(d);
    check_cores(d);
    check_shared_memory(d);
    check_memory(d);
    check_data(d);
    int rc = 0, failures = 0;
    if (v->json)
        rc = print_json(d, app->out, err);
    else
        print_text(d, app->out);
    for (int i = 0; i < d->count; i++)
        failures += d->findings[i].verdict == FAIL;
    free(d);
    return rc         ? rc
           : failures ? ddp_fail(err, DDP_EUNAVAIL, "%d finding%s above must be mended", failures,
                                 failures == 1 ? "" : "s")
                      : 0;
}

const struct ddp_cmd ddp_cmd_doctor = {
    .name = "doctor",
    .summary = "what is wrong with this machine or job, worst first",
    .operands = "",
    .rows = rows,
    .values_bytes = sizeof(struct doctor_values),
    .help_offset = offsetof(struct doctor_values, help),
    .run = run,
};
