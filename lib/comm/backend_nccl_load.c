/* NCCL itself: opened when first needed, so that the binary starts where it is not installed. The
 * types of its functions are those of the header this was built with; a library of another major
 * version, or older than what is used of it, is refused. */
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"
#include "comm/backend_nccl_impl.inc.h"

#define SONAME "libnccl.so.2"
/* 2.19 brought ncclMemAlloc and ncclCommRegister. */
#define VERSION_LEAST NCCL_VERSION(2, 19, 0)

/* Where Python packages and toolkits put it. %s: the value of the variable, where there is one. */
static const struct {
    const char *variable, *pattern;
} places[] = {
    {"VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {"CONDA_PREFIX", "%s/lib/" SONAME},
    {"CONDA_PREFIX", "%s/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {"HOME", "%s/.local/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/local/lib/python3*/dist-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/local/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {"CUDA_HOME", "%s/lib64/" SONAME},
    {"CUDA_HOME", "%s/lib/" SONAME},
    {NULL, "/usr/local/cuda/lib64/" SONAME},
    {NULL, "/usr/local/cuda/lib/" SONAME},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ddp_nccl loaded; /* filled once, under the lock; version 0: not yet */

static const char *variable(const char *name)
{
    const size_t n = strlen(name);
    const char *line;
    for (size_t i = 0; (line = ddp_sysinfo_environment(i)) != NULL; i++) {
        if (strncmp(line, name, n) == 0 && line[n] == '=')
            return line + n + 1;
    }
    return NULL;
}

/* The first file of a place that can be opened. */
static void *open_place(size_t i)
{
    char pattern[1024];
    const char *value = places[i].variable != NULL ? variable(places[i].variable) : "";
    glob_t found;
    void *handle = NULL;
    if (value == NULL || (places[i].variable != NULL && value[0] != '/'))
        return NULL;
    const char *rest = strstr(places[i].pattern, "%s");
    snprintf(pattern, sizeof pattern, "%s%s", rest != NULL ? value : "",
             rest != NULL ? rest + 2 : places[i].pattern);
    if (glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t k = found.gl_pathc; k-- > 0 && handle == NULL;)
        handle = dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return handle;
}

static void *open_library(struct ddp_err *err)
{
    const char *given = ddp_conf_get(DDP_CONF_NCCL_LIB);
    char why[300];
    void *handle = dlopen(given != NULL ? given : SONAME, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL)
        return handle;
    ddp_printable(dlerror(), why, sizeof why);
    for (size_t i = 0; given == NULL && handle == NULL && i < DDP_COUNT_OF(places); i++)
        handle = open_place(i);
    if (handle != NULL)
        return handle;
    ddp_fail(err, DDP_EUNAVAIL, "cannot load NCCL: %s", why);
    if (given == NULL)
        ddp_hint(err, "install it (Debian: libnccl2; Python: nvidia-nccl-cu13), or say where it "
                      "lies: DDPBENCH_NCCL_LIB=.../" SONAME);
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
        return ddp_fail(err, DDP_EUNAVAIL, "the NCCL library here has no '%s'", missing);
    return 0;
}

static int check_version(struct ddp_nccl *api, struct ddp_err *err)
{
    int v = 0;
    const ncclResult_t rc = api->GetVersion(&v);
    if (rc != ncclSuccess)
        return ddp_fail(err, DDP_EUNAVAIL, "ncclGetVersion: %s", api->GetErrorString(rc));
    /* Since 2.9 as NCCL_VERSION makes it; before, another way that is smaller. */
    snprintf(api->text, sizeof api->text, "NCCL %d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
    if (v / 10000 != NCCL_MAJOR || v < VERSION_LEAST) {
        ddp_fail(err, DDP_EUNAVAIL, "the library is %s (code %d); 2.19 or a later 2.x is needed",
                 api->text, v);
        return ddp_hint(err, "DDPBENCH_NCCL_LIB says which library is loaded");
    }
    api->version = v;
    return 0;
}

/* Under the lock. The library stays open for the life of the process: it may have threads. */
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
