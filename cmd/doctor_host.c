/* Findings about the machine and the requirements of training. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/unit.h"
#include "doctor.h"
#include "model/blas.h"
#include "model/dataset.h"

#define MEMORY_LOW_BYTES ((int64_t)1 << 30)
/* By default container engines give /dev/shm 64 MiB. MPI libraries put their segments there. */
#define DEV_SHM_LOW_BYTES ((uint64_t)128 << 20)

void ddp_doctor_cores(struct ddp_doctor *d)
{
    const struct ddp_launcher *l = &d->app->launcher;
    int cores = d->info.cores;
    const char *cpu = d->info.cpu[0] ? d->info.cpu : "unknown processor";
    if (l->kind != DDP_LAUNCHER_NONE && l->rank_info.oversubscribed)
        ddp_doctor_find(d, DDP_WARN, "cores", "use as many ranks as cores, or check the binding",
                        "%d ranks on this host, %d usable cores: ranks take turns, so times "
                        "include the scheduler",
                        l->rank_info.local_size, cores);
    else if (cores < 2)
        ddp_doctor_find(d, DDP_WARN, "cores", "give the container or job a second core",
                        "one usable core (%s): ranks take turns, so times include the scheduler",
                        cpu);
    else
        ddp_doctor_find(d, DDP_FINE, "cores", "", "%d usable (%s)", cores, cpu);
    if (d->info.cpu_quota < cores)
        ddp_doctor_find(d, DDP_WARN, "cpu limit", "raise the limit, or use fewer ranks",
                        "the control group allows the time of %.3g cores, but %d can be used: "
                        "busy ranks are throttled",
                        d->info.cpu_quota, cores);
}

void ddp_doctor_noise(struct ddp_doctor *d)
{
    double load = d->info.load;
    if (isnan(load))
        ddp_doctor_find(d, DDP_FINE, "load", "", "unknown");
    else if (load > d->info.cores * 0.5)
        ddp_doctor_find(d, DDP_WARN, "load", "wait, or stop other programs",
                        "load average %.2f on %d cores: times will be noisy", load, d->info.cores);
    else
        ddp_doctor_find(d, DDP_FINE, "load", "", "load average %.2f", load);
    if (!d->info.governor[0])
        ddp_doctor_find(d, DDP_FINE, "governor", "",
                        "not visible; in a virtual machine the host sets the clock");
    else if (strcmp(d->info.governor, "performance") != 0)
        ddp_doctor_find(d, DDP_WARN, "governor", "cpupower frequency-set -g performance",
                        "'%s': the processor's clock may change during a measurement",
                        d->info.governor);
    else
        ddp_doctor_find(d, DDP_FINE, "governor", "", "performance");
}

static void check_memfd(struct ddp_doctor *d)
{
    int fd = memfd_create("ddpbench-doctor", MFD_CLOEXEC);
    char *page = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, 4096) == 0)
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        ddp_doctor_find(d, DDP_FAIL, "shared memory",
                        "a seccomp filter may forbid it: ddpbench cannot start ranks of its own",
                        "memfd_create or mmap: %s", strerror(errno));
    } else {
        page[0] = 1;
        munmap(page, 4096);
        ddp_doctor_find(d, DDP_FINE, "shared memory", "", "memfd works");
    }
    if (fd >= 0)
        close(fd);
}

static void check_huge_pages(struct ddp_doctor *d)
{
    const char *thp = d->info.thp, *shmem = d->info.shmem_thp;
    if (!thp[0] && !shmem[0]) {
        ddp_doctor_find(d, DDP_FINE, "huge pages", "", "this kernel shows none");
        return;
    }
    bool shmem_off = strcmp(shmem, "never") == 0 || strcmp(shmem, "deny") == 0;
    bool thp_off = strcmp(thp, "never") == 0;
    if (shmem_off)
        ddp_doctor_find(d, DDP_WARN, "huge pages",
                        "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled (root)",
                        "'%s' for shared memory: large messages in registered memory use small "
                        "pages",
                        shmem);
    if (thp_off)
        ddp_doctor_find(d, DDP_WARN, "huge pages",
                        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (root)",
                        "'never' for private memory: large messages use small pages");
    if (!shmem_off && !thp_off)
        ddp_doctor_find(d, DDP_FINE, "huge pages", "", "'%s' for shared, '%s' for private memory",
                        shmem, thp);
}

static void check_dev_shm(struct ddp_doctor *d)
{
    struct statvfs fs;
    char size[24];
    if (statvfs("/dev/shm", &fs) != 0) {
        ddp_doctor_find(d, DDP_WARN, "/dev/shm",
                        "mount it if MPI is used; ddpbench alone does not need it",
                        "cannot be used: %s", strerror(errno));
        return;
    }
    uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    ddp_format_size(bytes >> 20 << 20, size, sizeof size);
    if (bytes < DEV_SHM_LOW_BYTES)
        ddp_doctor_find(d, DDP_WARN, "/dev/shm",
                        "docker run --shm-size=1g if MPI is used; ddpbench alone does not need it",
                        "only %s free", size);
    else
        ddp_doctor_find(d, DDP_FINE, "/dev/shm", "", "%s free", size);
}

void ddp_doctor_shared_memory(struct ddp_doctor *d)
{
    check_memfd(d);
    check_huge_pages(d);
    check_dev_shm(d);
}

void ddp_doctor_memory(struct ddp_doctor *d)
{
    char total[24], available[24];
    if (d->info.memory_bytes < 0 || d->info.available_bytes < 0) {
        ddp_doctor_find(d, DDP_WARN, "memory", "check that /proc is mounted",
                        "unknown: ddpbench cannot refuse runs that do not fit");
        return;
    }
    ddp_format_size((uint64_t)d->info.memory_bytes >> 20 << 20, total, sizeof total);
    ddp_format_size((uint64_t)d->info.available_bytes >> 20 << 20, available, sizeof available);
    bool low = d->info.available_bytes < MEMORY_LOW_BYTES;
    ddp_doctor_find(d, low ? DDP_WARN : DDP_FINE, "memory",
                    low ? "stop other programs, or raise the limit: large messages are refused"
                        : "",
                    "%s available of %s", available, total);
}

void ddp_doctor_training(struct ddp_doctor *d)
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
            ddp_doctor_find(d, DDP_FINE, subject, "", "in %s", dir);
        else
            ddp_doctor_find(d, any || !(*r)->package ? DDP_FINE : DDP_WARN, subject, advice,
                            "not found");
    }
    if (given)
        ddp_doctor_find(d, access(given, R_OK | X_OK) == 0 ? DDP_FINE : DDP_WARN, "data folder",
                        access(given, R_OK | X_OK) == 0 ? "" : "correct DDPBENCH_DATA_DIR",
                        "DDPBENCH_DATA_DIR is %.200s%s", given,
                        access(given, R_OK | X_OK) == 0 ? "" : ", which cannot be read");
    struct ddp_err why = DDP_ERR_INIT;
    if (ddp_blas_load(NULL, &why) == 0)
        ddp_doctor_find(d, DDP_FINE, "BLAS", "", "%s", ddp_blas_name());
    else
        ddp_doctor_find(d, DDP_WARN, "BLAS", why.hint, "`train` will not run: %s", why.text);
}
