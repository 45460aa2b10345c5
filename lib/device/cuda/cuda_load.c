/* Device cuda in the program: finds and opens the module ddpbench-cuda.so, and forwards calls to
 * the module. Until the module is open, the members of the device after `info` are NULL. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"
#include "device/cuda/cuda_module.h"

#define PATH_BYTES 4400

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct ddp_cuda_module *loaded; /* set once, under the lock; never unloaded */

/* Stores the path of the module in `path`, and the module's folder in `dir`. */
static void find_module(char *path, size_t path_bytes, char *dir, size_t dir_bytes)
{
    char own[4096];
    (void)ddp_own_folder(own, sizeof own);
    ddp_conf_module_dir(own, dir, dir_bytes);
    snprintf(path, path_bytes, "%s/" DDP_CUDA_MODULE_NAME, dir);
}

static int cannot_open(const char *reason, struct ddp_err *err)
{
    char text[300];
    ddp_printable(reason != NULL ? reason : "", text, sizeof text);
    if (strstr(text, "libcuda.so") == NULL) {
        ddp_fail(err, DDP_EUNAVAIL, "cannot open the CUDA module: %s", text);
        return ddp_hint(err, "build ddpbench again from its sources (`make CUDA=1`)");
    }
    ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: cannot open NVIDIA's driver, libcuda.so.1");
    return ddp_hint(err, "%s; run nvidia-smi to see the GPUs of this machine", text);
}

static int open_module(struct ddp_err *err)
{
    char path[PATH_BYTES], dir[PATH_BYTES - 64];
    find_module(path, sizeof path, dir, sizeof dir);
    if (access(path, R_OK) != 0) {
        ddp_fail(err, DDP_EUNAVAIL, "the CUDA module " DDP_CUDA_MODULE_NAME " is not in '%.200s'",
                 dir);
        return ddp_hint(err, "install the CUDA toolkit, then build ddpbench again from its sources "
                             "(`make CUDA=1`, and `make install` if it was installed that way)");
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return cannot_open(dlerror(), err);
    const struct ddp_cuda_module *module = dlsym(handle, "ddp_cuda_module");
    const int rc =
        ddp_conf_module_check(path, DDP_CUDA_MODULE_ABI, module != NULL ? module->abi : 0,
                              module != NULL ? module->commit : NULL, err);
    if (rc != 0) {
        dlclose(handle);
        return ddp_hint(err, "build binary and modules together: `make CUDA=1`");
    }
    loaded = module;
    return 0;
}

static int cuda_probe(struct ddp_err *err);
static int cuda_count(void);
static int cuda_select(int index, struct ddp_err *err);
static int cuda_info(int index, struct ddp_device_info *out, struct ddp_err *err);

struct ddp_device ddp_device_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs",
#ifdef DDP_CUDA_VERSION
    .library = "CUDA " DDP_CUDA_VERSION,
#endif
    .probe = cuda_probe,
    .count = cuda_count,
    .select = cuda_select,
    .info = cuda_info,
};

/* Adds the functions of the module to the device. The device keeps its own probe, count, select and
 * info, because another thread may be calling them. */
static void fill_device(void)
{
    struct ddp_device all = *loaded->device;
    all.name = ddp_device_cuda.name;
    all.summary = ddp_device_cuda.summary;
    all.library = ddp_device_cuda.library;
    all.probe = ddp_device_cuda.probe;
    all.count = ddp_device_cuda.count;
    all.select = ddp_device_cuda.select;
    all.info = ddp_device_cuda.info;
    ddp_device_cuda = all;
}

int ddp_cuda_module_load(const struct ddp_cuda_module **out, struct ddp_err *err)
{
    pthread_mutex_lock(&lock);
    int rc = 0;
    if (loaded == NULL) {
        rc = open_module(err);
        if (rc == 0)
            fill_device();
    }
    *out = loaded;
    pthread_mutex_unlock(&lock);
    return rc;
}

static int cuda_probe(struct ddp_err *err)
{
    const struct ddp_cuda_module *m;
    DDP_TRY(ddp_cuda_module_load(&m, err));
    return m->device->probe(err);
}

static int cuda_count(void)
{
    const struct ddp_cuda_module *m;
    return ddp_cuda_module_load(&m, NULL) == 0 ? m->device->count() : 0;
}

static int cuda_select(int index, struct ddp_err *err)
{
    const struct ddp_cuda_module *m;
    DDP_TRY(ddp_cuda_module_load(&m, err));
    return m->device->select(index, err);
}

static int cuda_info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    const struct ddp_cuda_module *m;
    DDP_TRY(ddp_cuda_module_load(&m, err));
    return m->device->info(index, out, err);
}
