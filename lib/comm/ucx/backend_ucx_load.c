/* Loads the module of backend ucx, and finds out in a child process whether it can be loaded. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "comm/backend.h"
#include "comm/ucx/ucx_impl.h"
#include "launch/launch_in_subprocess.h"

#define PATH_BYTES 4400
/* Time limit for the child process that loads the module for ddp_ucx_probe. */
#define PROBE_NS INT64_C(10000000000)

/* The module of this process, which is never unloaded. */
static _Atomic(const struct ddp_ucx_module *) loaded;
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static int hint_install(struct ddp_err *err)
{
    return ddp_hint(err, "install UCX (Debian: libucx-dev), then build ddpbench again from its "
                         "sources (`make UCX=1`, and `make install` if it was installed that way)");
}

/* Loads the module. UCX installs handlers of SIGSEGV and similar signals. This function restores
 * the previous handlers, because the launcher reports the signal that ended a rank. Call this
 * function under load_lock. */
static int load_locked(const char *given_dir, struct ddp_err *err)
{
    static const int signals[] = {SIGILL, SIGBUS, SIGFPE, SIGSEGV};
    struct sigaction before[DDP_COUNT_OF(signals)];
    char dir[PATH_BYTES - 64], path[PATH_BYTES];
    if (atomic_load(&loaded) != NULL)
        return 0;
    if (ddp_backend_module_dir(given_dir, dir, sizeof dir) != 0)
        return ddp_fail(err, DDP_EUNAVAIL, "cannot find the folder of this binary and its modules");
    snprintf(path, sizeof path, "%s/" DDP_UCX_MODULE_NAME, dir);
    if (access(path, R_OK) != 0) {
        ddp_fail(err, DDP_EUNAVAIL, "the UCX module " DDP_UCX_MODULE_NAME " is not in '%.200s'",
                 dir);
        return hint_install(err);
    }
    for (size_t i = 0; i < DDP_COUNT_OF(signals); i++)
        (void)sigaction(signals[i], NULL, &before[i]);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < DDP_COUNT_OF(signals); i++)
        (void)sigaction(signals[i], &before[i], NULL);
    if (handle == NULL) {
        ddp_fail(err, DDP_EUNAVAIL, "cannot load '%.160s': %.200s", path, dlerror());
        return hint_install(err);
    }
    const struct ddp_ucx_module *module = dlsym(handle, "ddp_backend_module");
    const int rc = ddp_conf_module_check(path, DDP_UCX_MODULE_ABI, module != NULL ? module->abi : 0,
                                         module != NULL ? module->commit : NULL, err);
    if (rc != 0) {
        dlclose(handle);
        return ddp_hint(err, "build binary and modules together: `make UCX=1`");
    }
    atomic_store(&loaded, module);
    return 0;
}

int ddp_ucx_load(const char *given_dir, struct ddp_err *err)
{
    pthread_mutex_lock(&load_lock);
    const int rc = load_locked(given_dir, err);
    pthread_mutex_unlock(&load_lock);
    return rc;
}

/* The result of loading the module in a child process. The parent of the ranks must not load UCX
 * itself, because UCX may start threads, and a process with threads cannot safely fork the
 * ranks. */
static struct {
    bool known;
    const char *dir;
    char library[48];
    struct ddp_err why;
} probed;

static int probe_child(void *answer, struct ddp_err *err)
{
    DDP_TRY(ddp_ucx_load(probed.dir, err));
    snprintf(answer, sizeof probed.library, "%s", atomic_load(&loaded)->library());
    return 0;
}

int ddp_ucx_probe(const char *module_dir, struct ddp_err *err)
{
    if (atomic_load(&loaded) != NULL)
        return 0;
    if (!probed.known) {
        probed.dir = module_dir;
        probed.why = DDP_ERR_INIT;
        (void)!ddp_launch_in_subprocess(probe_child, probed.library, sizeof probed.library,
                                        PROBE_NS, &probed.why);
        probed.known = true;
    }
    return ddp_fail_copy(err, &probed.why);
}

const char *ddp_ucx_library(void)
{
    const struct ddp_ucx_module *module = atomic_load(&loaded);
    if (module != NULL)
        return module->library();
    return probed.library[0] != '\0' ? probed.library : NULL;
}

const struct ddp_ucx_module *ddp_ucx_loaded(void)
{
    return atomic_load(&loaded);
}
