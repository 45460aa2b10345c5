#include "device/cuda/find_cuda_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"

/* The places to search after those of the dynamic linker. Each place is a glob pattern: the value
 * of $variable, `before`, the folder of the Python package, `after` and the soname. If `after` is
 * NULL, the pattern has neither `after` nor the folder of the package. */
static const struct {
    const char *variable, *before, *after;
} places[] = {
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/", "/lib/"},
    {"CONDA_PREFIX", "/lib/", NULL},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/", "/lib/"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/", "/lib/"},
    {NULL, "/usr/local/lib/python3*/dist-packages/nvidia/", "/lib/"},
    {NULL, "/usr/local/lib/python3*/site-packages/nvidia/", "/lib/"},
    {NULL, "/usr/lib/python3*/site-packages/nvidia/", "/lib/"},
    {"CUDA_HOME", "/lib64/", NULL},
    {"CUDA_HOME", "/lib/", NULL},
    {NULL, "/usr/local/cuda/lib64/", NULL},
    {NULL, "/usr/local/cuda/lib/", NULL},
};

static const char *variable(const char *name)
{
    const size_t n = strlen(name);
    const char *line;
    for (size_t i = 0; (line = ddp_sysinfo_environment(i)) != NULL; i++)
        if (strncmp(line, name, n) == 0 && line[n] == '=')
            return line + n + 1;
    return NULL;
}

/* Opens the last file that matches the pattern of place i and that dlopen accepts. Returns NULL if
 * there is none. */
static void *open_place(size_t i, const char *soname, const char *package)
{
    char pattern[1024];
    const char *value = places[i].variable != NULL ? variable(places[i].variable) : "";
    glob_t found;
    void *handle = NULL;
    if (value == NULL || (places[i].variable != NULL && value[0] != '/'))
        return NULL;
    snprintf(pattern, sizeof pattern, "%s%s%s%s%s", value, places[i].before,
             places[i].after != NULL ? package : "", places[i].after != NULL ? places[i].after : "",
             soname);
    if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
        return NULL;
    for (size_t k = found.gl_pathc; k-- > 0 && handle == NULL;)
        handle = dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return handle;
}

void *ddp_cuda_library_find(const char *soname, const char *package, enum ddp_conf_key key,
                            char *why, size_t why_bytes)
{
    const char *given = ddp_conf_get(key);
    void *handle = dlopen(given != NULL ? given : soname, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL)
        return handle;
    const char *reason = dlerror();
    ddp_printable(reason != NULL ? reason : "", why, why_bytes);
    for (size_t i = 0; given == NULL && handle == NULL && i < DDP_COUNT_OF(places); i++)
        handle = open_place(i, soname, package);
    return handle;
}
