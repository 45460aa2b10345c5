#include "run/doctor_checks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/cpuinfo.h"
#include "base/mem.h"
#include "base/network.h"
#include "base/unit.h"
#include "device/cuda/nvml.h"
#include "device/device.h"
#include "model/dataset.h"
#include "record/quality.h"
#include "run/kernels_run.h"
#include "run/training.h"

#define MEMORY_LOW_BYTES ((int64_t)1 << 30)
/* By default, container engines limit /dev/shm to 64 MiB, which may be too little for MPI
 * libraries, because they put their segments into /dev/shm. */
#define DEV_SHM_LOW_BYTES ((uint64_t)128 << 20)

/* Adds a finding, unless there are DDP_DOCTOR_FINDINGS_MAX already. `advice` says what to do, or is
 * "" if nothing needs to be done. */
static void DDP_PRINTF(5, 6) find(struct ddp_doctor *d, enum ddp_doctor_verdict verdict,
                                  const char *subject, const char *advice, const char *fmt, ...)
{
    struct ddp_finding f = {.verdict = verdict};
    char fact[sizeof f.fact];
    va_list args;
    if (d->count == DDP_DOCTOR_FINDINGS_MAX)
        return;
    va_start(args, fmt);
    vsnprintf(fact, sizeof fact, fmt, args);
    va_end(args);
    /* Facts quote environment variables. Control characters become '?', because a terminal would
     * execute them. */
    ddp_printable(subject, f.subject, sizeof f.subject);
    ddp_printable(fact, f.fact, sizeof f.fact);
    ddp_printable(advice, f.advice, sizeof f.advice);
    d->findings[d->count++] = f;
}

/* The functions that follow check the launcher, the backends, the MPI modules, the GPUs and the
 * helper of `ddpbench kernels`. */

static void check_launcher(struct ddp_doctor *d)
{
    const struct ddp_launcher *l = &d->app->launcher;
    char seen[320] = "";
    size_t used = 0;
    for (const char *const *v = ddp_launcher_variables(); *v && used < sizeof seen; v++)
        if (getenv(*v))
            used += (size_t)snprintf(seen + used, sizeof seen - used, "%s%s=%.24s", used ? " " : "",
                                     *v, getenv(*v));
    if (d->app->launcher_error.code != 0)
        find(d, DDP_DOCTOR_FAIL, "launcher", d->app->launcher_error.hint, "%s",
             d->app->launcher_error.text);
    else if (l->kind != DDP_LAUNCHER_NONE)
        find(d, DDP_DOCTOR_FINE, "launcher", "", "%s: rank %d of %d (%s)", l->name,
             l->rank_info.rank, l->rank_info.size, seen);
    else if (seen[0])
        find(d, DDP_DOCTOR_WARN, "launcher", "unset these variables unless a launcher needs them",
             "no launcher was recognised, but variables of a launcher are set: %s", seen);
    else
        find(d, DDP_DOCTOR_FINE, "launcher", "", "none, so ddpbench starts its own ranks");
}

/* Reports a GPU backend that cannot be used. The finding is a FAIL only if `needed` is true, which
 * means that no other backend can be used. If DDPBENCH_NCCL_LIB names a library that does not load,
 * the finding is at least a warning. */
static void find_no_device(struct ddp_doctor *d, const struct ddp_backend *b, const char *subject,
                           const struct ddp_err *why, bool needed)
{
    struct ddp_err absent = DDP_ERR_INIT;
    const char *library = b->library ? b->library() : NULL;
    const char *advice = needed ? why->hint : "";
    enum ddp_doctor_verdict verdict = needed ? DDP_DOCTOR_FAIL : DDP_DOCTOR_NOTE;
    if (!library && b->load && b->load(&absent) != 0 && ddp_conf_get(DDP_CONF_NCCL_LIB)) {
        advice = "correct DDPBENCH_NCCL_LIB, or unset it";
        verdict = needed ? DDP_DOCTOR_FAIL : DDP_DOCTOR_WARN;
    }
    const char *about = library ? library : absent.text[0] ? absent.text : "no library";
    const bool same = strcmp(about, why->text) == 0;
    find(d, verdict, subject, advice, "not usable: %s%s%s", why->text, same ? "" : "; ",
         same ? "" : about);
}

static void check_backends(struct ddp_doctor *d)
{
    bool launched = d->app->launcher.kind != DDP_LAUNCHER_NONE;
    bool over_tcp = d->app->launcher.over_tcp;
    const struct ddp_backend *ucx = ddp_backend_find("ucx");
    struct ddp_err no_ucx = DDP_ERR_INIT;
    char dir[4200];
    ddp_conf_module_dir(d->app->binary_dir, dir, sizeof dir);
    const bool has_ucx = ucx->probe(dir, &no_ucx) == 0;
    for (const struct ddp_backend *const *b = ddp_backend_all(); *b; b++) {
        struct ddp_err why = DDP_ERR_INIT;
        char subject[32];
        bool needs_launcher = (*b)->caps & DDP_CAP_LAUNCHED;
        /* Skip backend mpi unless mpiexec or srun started this process. check_mpi reports
         * whether its modules exist. */
        if (needs_launcher && (!launched || over_tcp))
            continue;
        snprintf(subject, sizeof subject, "backend %s", (*b)->name);
        const char *library = (*b)->library ? (*b)->library() : NULL;
        if ((*b)->probe(dir, &why) == 0)
            find(d, DDP_DOCTOR_FINE, subject, "", "usable: %s%s%s%s", (*b)->summary,
                 library ? " (" : "", library ? library : "", library ? ")" : "");
        else if ((*b)->caps & DDP_CAP_DEVICE)
            find_no_device(d, *b, subject, &why, over_tcp && !has_ucx);
        else if (*b == ucx) /* not a failure, because other backends can do the same */
            find(d, DDP_DOCTOR_NOTE, subject, "", "not usable: %s", why.text);
        else if (needs_launcher || !launched)
            find(d, DDP_DOCTOR_FAIL, subject, why.hint, "%s", why.text);
    }
}

static bool on_path(const char *name)
{
    char file[4096];
    return ddp_find_program(name, file, sizeof file);
}

static void check_mpi(struct ddp_doctor *d)
{
    char dir[4200], path[4300], advice[200];
    bool any = false;
    ddp_conf_module_dir(d->app->binary_dir, dir, sizeof dir);
    for (const struct ddp_mpi_flavour *f = ddp_mpi_flavours(); f->name; f++) {
        bool installed = on_path(f->programs[0]) || on_path(f->programs[1]);
        bool module = ddp_mpi_module_find(dir, f, path, sizeof path);
        any |= installed || module;
        snprintf(advice, sizeof advice,
                 "install %s, then `make MPI=1` (and `make install`) in ddpbench's sources",
                 f->package);
        if (installed && !module)
            find(d, DDP_DOCTOR_WARN, f->library, advice,
                 "%s is installed, but ddpbench has no module for it and refuses to run under "
                 "its mpiexec",
                 f->library);
        else if (module && !installed)
            find(d, DDP_DOCTOR_WARN, f->library, "install the library if you want to use it",
                 "ddpbench has a module for it, but its mpiexec is not on the PATH");
        else if (module)
            find(d, DDP_DOCTOR_FINE, f->library, "",
                 "mpiexec and ddpbench's module " DDP_MPI_MODULE("%s") " are installed", f->name);
    }
    if (!any)
        find(d, DDP_DOCTOR_NOTE, "MPI", "",
             "neither Open MPI nor MPICH is on the PATH; ranks on one host need no MPI");
}

/* Reports the GPU clocks, because times of a GPU with reduced clocks cannot be compared. */
static void find_throttled(struct ddp_doctor *d)
{
    struct ddp_gpu_facts gpus[DDP_GPU_FACTS_MAX];
    struct ddp_err why = DDP_ERR_INIT;
    int count = 0;
    if (ddp_nvml_read(gpus, DDP_GPU_FACTS_MAX, &count, &why) != 0)
        find(d, DDP_DOCTOR_WARN, "nvml", "", "%s, so results have no facts about the GPUs",
             why.text);
    for (int i = 0; i < count; i++) {
        const struct ddp_gpu_facts *g = &gpus[i];
        const bool slowed = ddp_gpu_facts_slowed(g);
        find(d, slowed ? DDP_DOCTOR_WARN : DDP_DOCTOR_FINE, "gpu clocks",
             slowed ? "check its cooling and power" : "",
             "%s %s: SM %d of %d MHz, memory %d MHz, %d C, power limit %.0f W, throttled by: %s",
             g->name, g->bus, g->sm_clock_MHz, g->sm_clock_max_MHz, g->memory_clock_MHz,
             g->temperature_C, g->power_limit_W, g->throttle[0] ? g->throttle : "unknown");
    }
}

/* A missing GPU is only a NOTE here, because check_backends checks whether GPUs are needed. */
static void check_gpus(struct ddp_doctor *d)
{
    for (const struct ddp_device *const *device = ddp_device_all(); *device; device++) {
        struct ddp_err why = DDP_ERR_INIT;
        struct ddp_device_info info;
        if (ddp_device_is_cpu(*device))
            continue;
        if ((*device)->probe(&why) != 0) {
            find(d, DDP_DOCTOR_NOTE, "gpu", why.hint, "%s", why.text);
            continue;
        }
        for (int i = 0; i < (*device)->count(); i++) {
            if ((*device)->info(i, &info, &why) != 0)
                find(d, DDP_DOCTOR_WARN, "gpu", why.hint, "%s", why.text);
            else
                find(d, DDP_DOCTOR_FINE, "gpu", "", "%d: %s at %s, %.0f GiB, %d SMs, %s", i,
                     info.name, info.bus, (double)info.memory_bytes / (1 << 30),
                     info.multiprocessors, info.runtime);
        }
    }
    find_throttled(d);
}

static void check_kernels(struct ddp_doctor *d)
{
    char path[4300];
    struct ddp_err why = DDP_ERR_INIT;
    if (ddp_kernels_find(d->app, path, sizeof path, &why) == 0)
        find(d, DDP_DOCTOR_FINE, "kernels", "", "`ddpbench kernels` can run: %s", path);
    else
        find(d, DDP_GBENCH ? DDP_DOCTOR_WARN : DDP_DOCTOR_NOTE, "kernels", why.hint, "%s",
             why.text);
}

/* The functions that follow check the machine and the requirements of training. */

static void check_cores(struct ddp_doctor *d)
{
    const struct ddp_launcher *l = &d->app->launcher;
    int cores = d->info.cores;
    const char *cpu = d->info.cpu[0] ? d->info.cpu : "unknown processor";
    if (l->kind != DDP_LAUNCHER_NONE && l->rank_info.oversubscribed)
        find(d, DDP_DOCTOR_WARN, "cores", "use as many ranks as cores, or check the binding",
             "%d ranks on this host share %d usable core%s, so times include waits for a core",
             l->rank_info.local_size, cores, cores == 1 ? "" : "s");
    else if (l->kind != DDP_LAUNCHER_NONE)
        find(d, DDP_DOCTOR_FINE, "cores", "", "%d usable by each of %d ranks (%s)", cores,
             l->rank_info.local_size, cpu);
    else if (cores < 2)
        find(d, DDP_DOCTOR_WARN, "cores", "give the container or job a second core",
             "one usable core (%s): several ranks share it, so times include waits for it", cpu);
    else
        find(d, DDP_DOCTOR_FINE, "cores", "", "%d usable (%s)", cores, cpu);
    if (d->info.cpu_quota < cores)
        find(d, DDP_DOCTOR_WARN, "cpu limit", "raise the limit, or use fewer ranks",
             "the control group grants the time of %.3g cores, and the ranks may run on %d "
             "cores, so the kernel suspends busy ranks",
             d->info.cpu_quota, cores);
}

static void check_noise(struct ddp_doctor *d)
{
    const double load = d->info.load;
    const int cores = d->info.machine_cores;
    if (isnan(load))
        find(d, DDP_DOCTOR_FINE, "load", "", "unknown");
    else if (load > DDP_QUALITY_LOAD_PER_CORE * cores)
        find(d, DDP_DOCTOR_WARN, "load", "stop other programs, or wait until they end",
             "the load average is %.2f on %d core%s, so every point will be marked as doubtful "
             "(%s)",
             load, cores, cores == 1 ? "" : "s", ddp_quality_names[DDP_QUALITY_BUSY]);
    else
        find(d, DDP_DOCTOR_FINE, "load", "", "load average %.2f", load);
    if (!d->info.governor[0])
        find(d, DDP_DOCTOR_FINE, "governor", "",
             "not visible, for example because this is a virtual machine");
    else if (strcmp(d->info.governor, "performance") != 0)
        find(d, DDP_DOCTOR_WARN, "governor", "cpupower frequency-set -g performance",
             "'%s': the processor's clock may change during a measurement", d->info.governor);
    else
        find(d, DDP_DOCTOR_FINE, "governor", "", "performance");
}

/* Examines the interface of the default route, because the doctor knows no other host of the job.
 */
static void check_network(struct ddp_doctor *d)
{
    char nic[DDP_NIC_NAME_BYTES];
    struct ddp_network_facts facts;
    struct ddp_finding findings[DDP_DOCTOR_NETWORK];
    ddp_nic_default(nic);
    ddp_network_facts_read("", nic, &facts);
    ddp_doctor_network(&facts, findings);
    for (int i = 0; i < DDP_DOCTOR_NETWORK; i++)
        find(d, findings[i].verdict, findings[i].subject, "", "%s", findings[i].fact);
}

static void check_memfd(struct ddp_doctor *d)
{
    int fd = memfd_create("ddpbench-doctor", MFD_CLOEXEC);
    char *page = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, 4096) == 0)
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        find(d, DDP_DOCTOR_FAIL, "shared memory",
             "check whether a seccomp filter forbids these calls",
             "memfd_create or mmap fails (%s), so ddpbench cannot start ranks of its own",
             strerror(errno));
    } else {
        page[0] = 1;
        munmap(page, 4096);
        find(d, DDP_DOCTOR_FINE, "shared memory", "", "memfd_create and mmap work");
    }
    if (fd >= 0)
        close(fd);
}

static void check_huge_pages(struct ddp_doctor *d)
{
    const char *thp = d->info.thp, *shmem = d->info.shmem_thp;
    if (!thp[0] && !shmem[0]) {
        find(d, DDP_DOCTOR_FINE, "huge pages", "",
             "this kernel does not show its huge page settings");
        return;
    }
    bool shmem_off = strcmp(shmem, "never") == 0 || strcmp(shmem, "deny") == 0;
    bool thp_off = strcmp(thp, "never") == 0;
    if (shmem_off)
        find(d, DDP_DOCTOR_WARN, "huge pages",
             "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled (root)",
             "'%s' for shared memory: large messages in registered memory use small "
             "pages",
             shmem);
    if (thp_off)
        find(d, DDP_DOCTOR_WARN, "huge pages",
             "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (root)",
             "'never' for private memory: large messages use small pages");
    if (!shmem_off && !thp_off)
        find(d, DDP_DOCTOR_FINE, "huge pages", "", "'%s' for shared, '%s' for private memory",
             shmem, thp);
}

static void check_dev_shm(struct ddp_doctor *d)
{
    struct statvfs fs;
    char size[24];
    if (statvfs("/dev/shm", &fs) != 0) {
        find(d, DDP_DOCTOR_WARN, "/dev/shm",
             "mount it if you use MPI; ddpbench itself does not need it", "cannot be used: %s",
             strerror(errno));
        return;
    }
    uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    ddp_format_size(bytes >> 20 << 20, size, sizeof size);
    if (bytes < DEV_SHM_LOW_BYTES)
        find(d, DDP_DOCTOR_WARN, "/dev/shm",
             "use docker run --shm-size=1g with MPI; ddpbench itself does not need it",
             "only %s are free", size);
    else
        find(d, DDP_DOCTOR_FINE, "/dev/shm", "", "%s are free", size);
}

static void check_shared_memory(struct ddp_doctor *d)
{
    check_memfd(d);
    check_huge_pages(d);
    check_dev_shm(d);
}

static void check_memory(struct ddp_doctor *d)
{
    char total[24], available[24];
    if (d->info.memory_bytes < 0 || d->info.available_bytes < 0) {
        find(d, DDP_DOCTOR_WARN, "memory", "check that /proc is mounted",
             "the memory of this host is unknown, so ddpbench cannot refuse runs that do not fit");
        return;
    }
    ddp_format_size((uint64_t)d->info.memory_bytes >> 20 << 20, total, sizeof total);
    ddp_format_size((uint64_t)d->info.available_bytes >> 20 << 20, available, sizeof available);
    bool low = d->info.available_bytes < MEMORY_LOW_BYTES;
    find(d, low ? DDP_DOCTOR_WARN : DDP_DOCTOR_FINE, "memory",
         low ? "stop other programs or raise the limit, because ddpbench refuses messages that do "
               "not fit"
             : "",
         "%s available of %s", available, total);
}

/* OpenBLAS may choose its Prescott kernels, which use only SSE. ddpbench replaces them by better
 * ones, unless the user has named kernels or the library cannot be unloaded (choose_kernels in
 * lib/model/blas.c). */
static void check_blas(struct ddp_doctor *d)
{
    struct ddp_err why = DDP_ERR_INIT;
    char blas[DDP_BLAS_NAME_BYTES];
    if (ddp_training_probe_blas(blas, &why) != 0)
        find(d, DDP_DOCTOR_WARN, "BLAS", why.hint, "`train` cannot run: %s", why.text);
    else if (strstr(blas, "Prescott") != NULL && ddp_cpu_best_simd() >= DDP_SIMD_AVX2)
        find(d, DDP_DOCTOR_WARN, "BLAS",
             "set OPENBLAS_CORETYPE=Haswell, or install a newer OpenBLAS",
             "%s does not use AVX2, so `train` is slow", blas);
    else
        find(d, DDP_DOCTOR_FINE, "BLAS", "", "%s", blas);
}

static void check_training(struct ddp_doctor *d)
{
    const char *given = ddp_conf_get(DDP_CONF_DATA_DIR);
    bool any = given != NULL;
    for (const struct ddp_dataset_reader *const *r = ddp_dataset_readers(); *r; r++)
        any |= ddp_dataset_default_dir(*r) != NULL;
    for (const struct ddp_dataset_reader *const *r = ddp_dataset_readers(); *r; r++) {
        char subject[32], advice[160];
        const char *dir = ddp_dataset_default_dir(*r);
        if (!(*r)->dirs)
            continue; /* generated, so always available */
        snprintf(subject, sizeof subject, "data %s", (*r)->name);
        snprintf(advice, sizeof advice, "%s%s%s", (*r)->package ? "apt-get install " : "",
                 (*r)->package ? (*r)->package : "",
                 (*r)->package ? ", or train --data DIR" : "train --data DIR, if you need it");
        if (dir)
            find(d, DDP_DOCTOR_FINE, subject, "", "in %s", dir);
        else
            find(d, any || !(*r)->package ? DDP_DOCTOR_NOTE : DDP_DOCTOR_WARN, subject, advice,
                 "not found");
    }
    const bool readable = given && access(given, R_OK | X_OK) == 0;
    if (given)
        find(d, readable ? DDP_DOCTOR_FINE : DDP_DOCTOR_WARN, "data folder",
             readable ? "" : "correct DDPBENCH_DATA_DIR", "DDPBENCH_DATA_DIR is %.200s%s", given,
             readable ? "" : ", which cannot be read");
    check_blas(d);
}

void ddp_doctor_examine(struct ddp_doctor *d)
{
    ddp_sysinfo_read(&d->info);
    check_launcher(d);
    check_backends(d);
    check_mpi(d);
    check_gpus(d);
    check_cores(d);
    check_noise(d);
    check_network(d);
    check_shared_memory(d);
    check_memory(d);
    check_training(d);
    check_kernels(d);
}
