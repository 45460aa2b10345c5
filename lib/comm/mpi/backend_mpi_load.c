/* The part of backend mpi that is linked into the binary. It selects and loads the module for the
 * MPI that started this process, and forwards calls to the module.
 *
 * The binary itself does not link MPI. The launcher's environment variables show which module fits.
 * A process loads at most one module, because the libraries of two MPIs define the same names. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "comm/backend.h"
#include "comm/hosts.h"
#include "comm/waiter.h"
#include "launch/launcher.h"
#include "launch/watchdog.h"

#define PATH_BYTES 4400
/* The text suits users who built ddpbench and users who only installed a build. */
#define BUILD_AGAIN                                                                                \
    "build ddpbench again from its sources (`make MPI=1`, and `make install` if it was "           \
    "installed that way)"

/* The module of this process. It is loaded once and never unloaded. */
static _Atomic(const struct ddp_backend_module *) loaded;

static const struct ddp_backend *module_backend(void)
{
    return atomic_load_explicit(&loaded, memory_order_acquire)->backend;
}

/* Writes the modules in `dir` as "openmpi, mpich", or "none". */
static void list_modules(const char *dir, char *out, size_t out_bytes)
{
    char path[PATH_BYTES];
    out[0] = '\0';
    for (const struct ddp_mpi_flavour *f = ddp_mpi_flavours(); f->name != NULL; f++) {
        if (ddp_mpi_module_find(dir, f, path, sizeof path))
            ddp_text_list_add(out, out_bytes, f->name);
    }
    if (out[0] == '\0')
        snprintf(out, out_bytes, "none");
}

static int no_launcher(const struct ddp_launcher *launcher, const char *dir, struct ddp_err *err)
{
    char modules[64];
    list_modules(dir, modules, sizeof modules);
    if (launcher->kind == DDP_LAUNCHER_SLURM) {
        ddp_fail(err, DDP_EUNAVAIL, "srun gave the ranks no PMI, so they cannot start an MPI");
        return ddp_hint(err, "use `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH); `srun "
                             "--mpi=list` lists the choices. Without MPI, use --backend ucx");
    }
    if (launcher->over_tcp)
        ddp_fail(err, DDP_EUNAVAIL, "%s does not start MPI (modules here: %s)", launcher->name,
                 modules);
    else
        ddp_fail(err, DDP_EUNAVAIL,
                 "needs mpiexec, but no mpiexec started this process (modules here: %s)", modules);
    return ddp_hint(err, "use mpiexec -n 2 ddpbench ..., or --backend shm");
}

static int no_module(const struct ddp_launcher *launcher, const char *dir, struct ddp_err *err)
{
    char modules[64], own_dir[PATH_BYTES - 64];
    const struct ddp_mpi_flavour *missing = NULL;
    /* If the binary's own folder was searched before `dir`, the message mentions that folder,
     * too. */
    const bool two = ddp_conf_get(DDP_CONF_MODULE_DIR) == NULL &&
                     ddp_backend_module_dir(NULL, own_dir, sizeof own_dir) == 0 &&
                     strcmp(own_dir, dir) != 0;
    const char *also = two ? ", nor beside the binary" : "";
    for (const struct ddp_mpi_flavour *f = ddp_mpi_flavours(); f->name != NULL; f++) {
        if (launcher->flavour != NULL && strcmp(f->name, launcher->flavour) == 0)
            missing = f;
    }
    list_modules(dir, modules, sizeof modules);
    if (missing == NULL) {
        ddp_fail(err, DDP_EUNAVAIL, "%s: no MPI module is in '%.200s'%s", launcher->name, dir,
                 also);
        return ddp_hint(err, "install an MPI with its development package (Debian: libopenmpi-dev "
                             "or libmpich-dev), then " BUILD_AGAIN);
    }
    ddp_fail(err, DDP_EUNAVAIL,
             "%s needs the module '" DDP_MPI_MODULE(
                 "%s") "', which is not in '%.200s'%s (modules there: "
                       "%s)",
             launcher->name, missing->name, dir, also, modules);
    return ddp_hint(err,
                    "install %s with its development package (Debian: %s), then " BUILD_AGAIN
                    "; or use the mpiexec of an existing module",
                    missing->library, missing->package);
}

/* Finds the module that fits the launcher and writes its path to path [PATH_BYTES]. If the launcher
 * does not identify its MPI (srun, PMIx), the first module that exists is taken. The wrong module
 * (MPICH under PMIx, or Open MPI under PMI-2) would make every process a world of one rank. The
 * init function of the module detects this, because it compares MPI's rank and size with those of
 * the launcher. */
static int find_module(const char *given_dir, const struct ddp_mpi_flavour **flavour, char *path,
                       struct ddp_err *err)
{
    struct ddp_launcher launcher;
    char dir[PATH_BYTES - 64];
    DDP_TRY(ddp_launcher_detect(&launcher, err));
    if (ddp_backend_module_dir(given_dir, dir, sizeof dir) != 0)
        return ddp_fail(err, DDP_EUNAVAIL, "cannot find the folder of this binary and its modules");
    if (launcher.kind == DDP_LAUNCHER_NONE || launcher.over_tcp)
        return no_launcher(&launcher, dir, err);
    for (const struct ddp_mpi_flavour *f = ddp_mpi_flavours(); f->name != NULL; f++) {
        if (launcher.flavour != NULL && strcmp(launcher.flavour, f->name) != 0)
            continue;
        if (ddp_mpi_module_find(dir, f, path, PATH_BYTES)) {
            *flavour = f;
            return 0;
        }
    }
    return no_module(&launcher, dir, err);
}

/* Fails with DDP_EMISMATCH unless `module` is a module of ddpbench, of this build, and for the MPI
 * in its file name. */
static int check_module(const struct ddp_backend_module *module,
                        const struct ddp_mpi_flavour *flavour, const char *path,
                        struct ddp_err *err)
{
    DDP_TRY(ddp_conf_module_check(path, DDP_MODULE_ABI, module != NULL ? module->abi : 0,
                                  module != NULL ? module->commit : NULL, err));
    if (strcmp(module->flavour, flavour->name) != 0)
        return ddp_fail(err, DDP_EMISMATCH, "module '%.300s' was built for '%.20s', not for '%s'",
                        path, module->flavour, flavour->name);
    return 0;
}

static int load_module(const char *given_dir, struct ddp_err *err)
{
    char path[PATH_BYTES];
    const struct ddp_mpi_flavour *flavour = NULL;
    if (atomic_load_explicit(&loaded, memory_order_acquire) != NULL)
        return 0;
    DDP_TRY(find_module(given_dir, &flavour, path, err));
    /* Open MPI's plugins look up the library's symbols globally, so the module needs
     * RTLD_GLOBAL. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL) {
        ddp_fail(err, DDP_EUNAVAIL, "cannot load the module of %s: %.380s", flavour->library,
                 dlerror());
        return ddp_hint(err,
                        "install the %s that the module was built with, or run `make MPI=1` again",
                        flavour->library);
    }
    const struct ddp_backend_module *module = dlsym(handle, "ddp_backend_module");
    int rc = check_module(module, flavour, path, err);
    if (rc != 0) {
        dlclose(handle);
        return ddp_hint(err, "build binary and modules together: `make MPI=1`");
    }
    atomic_store_explicit(&loaded, module, memory_order_release);
    return 0;
}

static const char *mpi_library(void)
{
    return atomic_load_explicit(&loaded, memory_order_acquire) != NULL ? module_backend()->library()
                                                                       : NULL;
}

static int mpi_probe(const char *module_dir, struct ddp_err *err)
{
    char path[PATH_BYTES];
    const struct ddp_mpi_flavour *flavour;
    return find_module(module_dir, &flavour, path, err);
}

/* The watchdog that runs during MPI_Init and MPI_Finalize, which wait for all ranks without a
 * deadline. */
struct watch {
    struct ddp_watchdog *dog;
    /* The recorder that the watchdog reads. comm->flight may later point to another recorder, which
     * ddp_hosts_open has chosen. */
    struct ddp_flight *flight;
    /* Index of the recorded operation in `flight`. */
    uint64_t index;
};

static int watch_begin(struct ddp_comm *comm, const char *phase,
                       const struct ddp_comm_options *options, struct watch *w, struct ddp_err *err)
{
    w->flight = comm->flight;
    ddp_flight_phase(w->flight, "%s", phase);
    w->index = ddp_flight_enter(w->flight, DDP_BARRIER, 0, 0);
    int rc = ddp_watchdog_start(w->flight, NULL, comm->timeout_ns,
                                options != NULL ? options->on_expire : NULL,
                                options != NULL ? options->on_expire_arg : NULL, &w->dog, err);
    if (rc != 0)
        ddp_flight_leave(w->flight, w->index, 1);
    return rc;
}

static void watch_end(struct watch *w, int rc)
{
    ddp_watchdog_stop(w->dog);
    ddp_flight_leave(w->flight, w->index, rc != 0);
}

static int mpi_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                    struct ddp_err *err)
{
    struct watch watch;
    DDP_TRY(load_module(options->module_dir, err));
    DDP_TRY(watch_begin(comm, "MPI_Init", options, &watch, err));
    int rc = module_backend()->init(comm, options, err);
    if (rc == 0) {
        rc = ddp_hosts_open(comm, options, err);
        /* All ranks get DDP_EUSAGE together, so they can finalize together. After another error
         * this rank exits without MPI_Finalize, and mpiexec reports an abnormal exit. */
        if (rc == DDP_EUSAGE)
            module_backend()->finalize(comm);
    }
    watch_end(&watch, rc);
    return rc;
}

static void mpi_finalize(struct ddp_comm *comm)
{
    struct watch watch;
    struct ddp_err ignored = DDP_ERR_INIT;
    bool watched =
        comm->parent == NULL && watch_begin(comm, "MPI_Finalize", NULL, &watch, &ignored) == 0;
    module_backend()->finalize(comm);
    if (watched)
        watch_end(&watch, 0);
}

static void mpi_abort(struct ddp_comm *comm, int code)
{
    module_backend()->abort(comm, code);
}

static int mpi_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    return module_backend()->group(parent, child, err);
}

static int mpi_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    return module_backend()->barrier(comm, err);
}

static int mpi_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                               struct ddp_err *err)
{
    return module_backend()->exchange(comm, mine, all, bytes, err);
}

static int mpi_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    return module_backend()->isend(comm, dst, tag, buf, bytes, req, err);
}

static int mpi_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    return module_backend()->irecv(comm, src, tag, buf, bytes, req, err);
}

/* The MPI module cannot access the abort word of the host's shared segment, so this function checks
 * the word. */
static int mpi_test(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err)
{
    DDP_TRY(ddp_wait_check(comm, err));
    return module_backend()->test(comm, req, done, err);
}

static int mpi_native_supports(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                               struct ddp_err *err)
{
    return module_backend()->native_supports(comm, args, err);
}

static int mpi_native(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    return module_backend()->native(comm, args, err);
}

extern const struct ddp_backend ddp_backend_mpi; /* backend_list.h */
const struct ddp_backend ddp_backend_mpi = {
    .name = "mpi",
    .summary = "MPI under its own mpiexec: loads the module for Open MPI or MPICH",
    .caps = DDP_CAP_P2P | DDP_CAP_NATIVE | DDP_CAP_LAUNCHED | DDP_CAP_HOSTS,
    .library = mpi_library,
    .probe = mpi_probe,
    .init = mpi_init,
    .finalize = mpi_finalize,
    .abort = mpi_abort,
    .group = mpi_group,
    .barrier = mpi_barrier,
    .exchange = mpi_allgather_bytes,
    .isend = mpi_isend,
    .irecv = mpi_irecv,
    .test = mpi_test,
    .native_supports = mpi_native_supports,
    .native = mpi_native,
};
