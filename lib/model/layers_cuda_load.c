/* NVIDIA's libraries of the layers: opened when first needed, so that the binary starts where they
 * are not installed. Their functions have the types of the headers this was built with; the soname
 * carries the major version. */
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"
#include "model/layers_cuda_impl.inc.h"

/* Where Python packages and toolkits put them: $variable, then the pattern with the package's
 * folder; both end with the soname. */
static const struct {
    const char *variable, *before, *after;
} places[] = {
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/", "/lib/"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/", "/lib/"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/", "/lib/"},
    {NULL, "/usr/local/lib/python3*/dist-packages/nvidia/", "/lib/"},
    {NULL, "/usr/local/lib/python3*/site-packages/nvidia/", "/lib/"},
    {NULL, "/usr/lib/python3*/site-packages/nvidia/", "/lib/"},
    {"CONDA_PREFIX", "/lib/", NULL},
    {"CUDA_HOME", "/lib64/", NULL},
    {NULL, "/usr/local/cuda/lib64/", NULL},
};

/* Lazily filled, once a process: a shared library is process-wide by nature. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[96];

static const char *variable(const char *name)
{
    const size_t n = strlen(name);
    const char *line;
    for (size_t i = 0; (line = ddp_sysinfo_environment(i)) != NULL; i++)
        if (strncmp(line, name, n) == 0 && line[n] == '=')
            return line + n + 1;
    return NULL;
}

/* The first file of a place that can be opened. */
static void *open_place(const struct ddp_cuda_library *l, size_t i)
{
    char pattern[1024];
    const char *value = places[i].variable != NULL ? variable(places[i].variable) : "";
    glob_t found;
    void *handle = NULL;
    if (value == NULL || (places[i].variable != NULL && value[0] != '/'))
        return NULL;
    snprintf(pattern, sizeof pattern, "%s%s%s%s%s", value, places[i].before,
             places[i].after != NULL ? l->package : "",
             places[i].after != NULL ? places[i].after : "", l->soname);
    if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
        return NULL;
    for (size_t k = found.gl_pathc; k-- > 0 && handle == NULL;)
        handle = dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return handle;
}

static void *open_library(const struct ddp_cuda_library *l, struct ddp_err *err)
{
    const char *given = ddp_conf_get((enum ddp_conf_key)l->key);
    char why[300];
    void *handle = dlopen(given != NULL ? given : l->soname, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL)
        return handle;
    const char *said = dlerror();
    ddp_printable(said != NULL ? said : "", why, sizeof why);
    for (size_t i = 0; given == NULL && handle == NULL && i < DDP_COUNT_OF(places); i++)
        handle = open_place(l, i);
    if (handle == NULL) {
        ddp_fail(err, DDP_EUNAVAIL, "no %s: %s", l->what, why);
        ddp_hint(err, "%s=FILE names the library", ddp_conf_rows()[l->key].variable);
    }
    return handle;
}

int ddp_cuda_library_open(const struct ddp_cuda_library *l, void **functions, struct ddp_err *err)
{
    void *handle = open_library(l, err);
    if (handle == NULL)
        return DDP_EUNAVAIL;
    for (size_t i = 0; i < l->count; i++) {
        functions[i] = dlsym(handle, l->names[i]);
        if (functions[i] == NULL) {
            dlclose(handle);
            return ddp_fail(err, DDP_EUNAVAIL, "the %s that was found has no %s", l->what,
                            l->names[i]);
        }
    }
    return 0;
}

void ddp_cuda_library_note(const char *name, int major, int minor, int patch)
{
    pthread_mutex_lock(&lock);
    const size_t n = strlen(text);
    if (strstr(text, name) == NULL)
        snprintf(text + n, sizeof text - n, "%s%s %d.%d.%d", n > 0 ? ", " : "", name, major, minor,
                 patch);
    pthread_mutex_unlock(&lock);
}

const char *ddp_cuda_library_text(void)
{
    return text;
}
