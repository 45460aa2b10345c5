/* Findings about the launcher and the ways in which ranks can reach each other. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "device/cuda/nvml.h"
#include "device/device.h"
#include "doctor.h"
#include "kernels.h"
#include "plain.h"

void ddp_doctor_launcher(struct ddp_doctor *d)
{
    const struct ddp_launcher *l = &d->app->launcher;
    char seen[320] = "";
    size_t used = 0;
    for (const char *const *v = ddp_launcher_variables(); *v && used < sizeof seen; v++)
        if (getenv(*v))
            used += (size_t)snprintf(seen + used, sizeof seen - used, "%s%s=%.24s", used ? " " : "",
                                     *v, getenv(*v));
    if (d->app->launcher_error.code != 0)
        ddp_doctor_find(d, DDP_FAIL, "launcher", d->app->launcher_error.hint, "%s",
                        d->app->launcher_error.text);
    else if (l->kind != DDP_LAUNCHER_NONE)
        ddp_doctor_find(d, DDP_FINE, "launcher", "", "%s: rank %d of %d (%s)", l->name,
                        l->rank_info.rank, l->rank_info.size, seen);
    else if (seen[0])
        ddp_doctor_find(d, DDP_WARN, "launcher", "unset them if they are left over",
                        "none, though a launcher's variables are set: %s", seen);
    else
        ddp_doctor_find(d, DDP_FINE, "launcher", "", "none: ddpbench starts its own ranks");
}

/* Reports a GPU backend that cannot be used. This is a failure only if no other backend can be used
 * (`needed`). If DDPBENCH_NCCL_LIB names a library that does not load, it is a warning. */
static void find_no_device(struct ddp_doctor *d, const struct ddp_backend *b, const char *subject,
                           const struct ddp_err *why, bool needed)
{
    struct ddp_err absent = DDP_ERR_INIT;
    const char *library = b->library ? b->library() : NULL;
    const char *advice = needed ? why->hint : "";
    enum ddp_severity verdict = needed ? DDP_FAIL : DDP_FINE;
    if (!library && b->load && b->load(&absent) != 0 && ddp_conf_get(DDP_CONF_NCCL_LIB)) {
        advice = "correct DDPBENCH_NCCL_LIB, or unset it";
        verdict = needed ? DDP_FAIL : DDP_WARN;
    }
    const char *about = library ? library : absent.text[0] ? absent.text : "no library";
    const bool same = strcmp(about, why->text) == 0;
    ddp_doctor_find(d, verdict, subject, advice, "not usable: %s%s%s", why->text, same ? "" : "; ",
                    same ? "" : about);
}

void ddp_doctor_backends(struct ddp_doctor *d)
{
    bool launched = d->app->launcher.kind != DDP_LAUNCHER_NONE;
    bool torchrun =
        d->app->launcher.kind == DDP_LAUNCHER_TORCHRUN; /* ranks of torchrun can use only GPUs */
    char dir[4200];
    ddp_conf_module_dir(d->app->binary_dir, dir, sizeof dir);
    for (const struct ddp_backend *const *b = ddp_backend_all(); *b; b++) {
        struct ddp_err why = DDP_ERR_INIT;
        char subject[32];
        bool needs_launcher = (*b)->caps & DDP_CAP_LAUNCHED;
        /* Skip backend mpi unless mpiexec or srun started this process. ddp_doctor_mpi reports
         * whether its modules exist. */
        if (needs_launcher && (!launched || torchrun))
            continue;
        snprintf(subject, sizeof subject, "backend %s", (*b)->name);
        const char *library = (*b)->library ? (*b)->library() : NULL;
        if ((*b)->probe(dir, &why) == 0)
            ddp_doctor_find(d, DDP_FINE, subject, "", "usable: %s%s%s%s", (*b)->summary,
                            library ? " (" : "", library ? library : "", library ? ")" : "");
        else if ((*b)->caps & DDP_CAP_DEVICE)
            find_no_device(d, *b, subject, &why, torchrun);
        else if (needs_launcher || !launched)
            ddp_doctor_find(d, DDP_FAIL, subject, why.hint, "%s", why.text);
    }
}

static bool on_path(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];
    while (path && *path) {
        size_t n = strcspn(path, ":");
        int length = snprintf(file, sizeof file, "%.*s/%s", (int)n, path, name);
        if (length > 0 && (size_t)length < sizeof file && access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

static bool module_exists(const char *dir, const char *flavour)
{
    char file[4300];
    snprintf(file, sizeof file, "%s/ddpbench-mpi-%s.so", dir, flavour);
    return access(file, R_OK) == 0;
}

void ddp_doctor_mpi(struct ddp_doctor *d)
{
    static const struct {
        const char *flavour, *name, *package, *programs[2];
    } known[] = {
        {"openmpi", "Open MPI", "libopenmpi-dev", {"mpiexec.openmpi", "ompi_info"}},
        {"mpich", "MPICH", "libmpich-dev", {"mpiexec.mpich", "mpichversion"}},
    };
    char dir[4200], advice[200];
    bool any = false;
    ddp_conf_module_dir(d->app->binary_dir, dir, sizeof dir);
    for (size_t i = 0; i < DDP_COUNT_OF(known); i++) {
        bool installed = on_path(known[i].programs[0]) || on_path(known[i].programs[1]);
        bool module = module_exists(dir, known[i].flavour);
        any |= installed || module;
        snprintf(advice, sizeof advice,
                 "install %s, then `make MPI=1` (and `make install`) in ddpbench's sources",
                 known[i].package);
        if (installed && !module)
            ddp_doctor_find(d, DDP_WARN, known[i].name, advice,
                            "installed, but its module is not: its mpiexec will be refused");
        else if (module && !installed)
            ddp_doctor_find(d, DDP_WARN, known[i].name, "install it, or ignore this",
                            "its module is installed, but its mpiexec is not on the PATH");
        else if (module)
            ddp_doctor_find(d, DDP_FINE, known[i].name, "",
                            "module ddpbench-mpi-%s.so and its mpiexec are installed",
                            known[i].flavour);
    }
    if (!any)
        ddp_doctor_find(d, DDP_FINE, "MPI", "",
                        "no MPI is installed; ranks of one host do not "
                        "need it");
}

/* Reports the GPU clocks, because times of a GPU with reduced clocks cannot be compared. */
static void find_throttled(struct ddp_doctor *d)
{
    struct ddp_gpu_facts gpus[DDP_GPU_FACTS_MAX];
    struct ddp_err why = DDP_ERR_INIT;
    int count = 0;
    if (ddp_nvml_read(gpus, DDP_GPU_FACTS_MAX, &count, &why) != 0)
        ddp_doctor_find(d, DDP_WARN, "nvml", "results will have no facts about the GPUs", "%s",
                        why.text);
    for (int i = 0; i < count; i++) {
        const struct ddp_gpu_facts *g = &gpus[i];
        const bool slowed = strstr(g->throttle, "thermal") || strstr(g->throttle, "brake") ||
                            strstr(g->throttle, "slowdown");
        ddp_doctor_find(
            d, slowed ? DDP_WARN : DDP_FINE, "gpu clocks",
            slowed ? "check its cooling and power" : "",
            "%s %s: SM %d of %d MHz, memory %d MHz, %d C, limit %.0f W, throttled by: %s", g->name,
            g->bus, g->sm_clock_MHz, g->sm_clock_max_MHz, g->memory_clock_MHz, g->temperature_C,
            g->power_limit_W, g->throttle[0] ? g->throttle : "unknown");
    }
}

/* A missing GPU is no problem here. ddp_doctor_backends checks whether GPUs are needed. */
void ddp_doctor_gpus(struct ddp_doctor *d)
{
    for (const struct ddp_device *const *device = ddp_device_all(); *device; device++) {
        struct ddp_err why = DDP_ERR_INIT;
        struct ddp_device_info info;
        if (strcmp((*device)->name, "cuda") != 0)
            continue;
        if ((*device)->probe(&why) != 0) {
            ddp_doctor_find(d, DDP_FINE, "gpu", why.hint, "%s", why.text);
            continue;
        }
        for (int i = 0; i < (*device)->count(); i++) {
            if ((*device)->info(i, &info, &why) != 0)
                ddp_doctor_find(d, DDP_WARN, "gpu", why.hint, "%s", why.text);
            else
                ddp_doctor_find(d, DDP_FINE, "gpu", "", "%d: %s at %s, %.0f GiB, %d processors, %s",
                                i, info.name, info.bus, (double)info.memory_bytes / (1 << 30),
                                info.multiprocessors, info.runtime);
        }
    }
    find_throttled(d);
}

void ddp_doctor_kernels(struct ddp_doctor *d)
{
    char path[4300];
    struct ddp_err why = DDP_ERR_INIT;
    if (ddp_kernels_find(d->app, path, sizeof path, &why) == 0)
        ddp_doctor_find(d, DDP_FINE, "kernels", "", "`ddpbench kernels` can run: %s", path);
    else
        ddp_doctor_find(d, DDP_GBENCH ? DDP_WARN : DDP_FINE, "kernels", why.hint, "%s", why.text);
}
