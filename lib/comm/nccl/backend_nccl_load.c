/* Loads NCCL at its first use, so that the binary also starts on machines without NCCL. The
 * function pointers have the types that nccl.h declared when this binary was built. Therefore a
 * library of another major version is refused. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "base/conf.h"
#include "comm/nccl/backend_nccl_impl.inc.h"
#include "device/cuda/find_cuda_library.h"

#define SONAME "libnccl.so.2"
/* NCCL 2.19 introduced ncclMemAlloc and ncclCommRegister. */
#define VERSION_LEAST NCCL_VERSION(2, 19, 0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ddp_nccl loaded; /* filled once, under the lock; version 0 until then */

static void *open_library(struct ddp_err *err)
{
    char why[300];
    void *handle = ddp_cuda_library_find(SONAME, "nccl", DDP_CONF_NCCL_LIB, why, sizeof why);
    if (handle != NULL)
        return handle;
    ddp_fail(err, DDP_EUNAVAIL, "cannot load NCCL: %s", why);
    if (ddp_conf_get(DDP_CONF_NCCL_LIB) == NULL)
        ddp_hint(err, "install it (Debian: libnccl2; Python: nvidia-nccl-cu13), or set its path: "
                      "DDPBENCH_NCCL_LIB=.../" SONAME);
    return NULL;
}

static int find_functions(void *handle, struct ddp_nccl *api, struct ddp_err *err)
{
    const char *missing = NULL;
#define FIND(name)                                                                                 \
    api->name = (__typeof__(api->name))dlsym(handle, "nccl" #name);                                \
    if (api->name == NULL)                                                                         \
        missing = "nccl" #name;
    DDP_NCCL_LATER_FUNCTIONS(FIND)
    missing = NULL;
    DDP_NCCL_FUNCTIONS(FIND)
#undef FIND
    if (missing != NULL)
        return ddp_fail(err, DDP_EUNAVAIL, "the installed NCCL library has no '%s'", missing);
    return 0;
}

static int check_version(struct ddp_nccl *api, struct ddp_err *err)
{
    int v = 0;
    const ncclResult_t rc = api->GetVersion(&v);
    if (rc != ncclSuccess)
        return ddp_fail(err, DDP_EUNAVAIL, "ncclGetVersion: %s", api->GetErrorString(rc));
    /* Since NCCL 2.9, version codes have this form (NCCL_VERSION). Older codes are smaller numbers,
     * so the check refuses them. */
    snprintf(api->text, sizeof api->text, "NCCL %d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
    if (v / 10000 != NCCL_MAJOR || v < VERSION_LEAST) {
        ddp_fail(err, DDP_EUNAVAIL, "the library is %s (code %d); 2.19 or a later 2.x is needed",
                 api->text, v);
        return ddp_hint(err, "set DDPBENCH_NCCL_LIB to load another library");
    }
    api->version = v;
    return 0;
}

/* Call this function under the lock. The library is never closed, because it may have started
 * threads. */
static int load(struct ddp_err *err)
{
    struct ddp_nccl api = {0};
    if (loaded.version != 0)
        return 0;
    void *handle = open_library(err);
    if (handle == NULL)
        return DDP_EUNAVAIL;
    DDP_TRY(find_functions(handle, &api, err));
    DDP_TRY(check_version(&api, err));
    loaded = api;
    return 0;
}

int ddp_nccl_load(const struct ddp_nccl **out, struct ddp_err *err)
{
    pthread_mutex_lock(&lock);
    const int rc = load(err);
    pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = &loaded;
    return rc;
}

const char *ddp_nccl_text(void)
{
    pthread_mutex_lock(&lock);
    const char *text = loaded.version != 0 ? loaded.text : NULL;
    pthread_mutex_unlock(&lock);
    return text;
}
