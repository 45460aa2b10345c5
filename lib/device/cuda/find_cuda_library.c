#include "device/cuda/find_cuda_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"

/* The places to search after those of the dynamic linker. The glob pattern of a place consists of
 * the value of $variable, `before`, the folder of the Python package, `after` and the soname. If
 * `after` is NULL, the pattern contains neither the folder of the package nor `after`. For the
 * variable PATH, the pattern begins with the result of python_root instead of the value. */
static const struct {
    const char *variable, *before, *after;
} places[] = {
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/", "/lib/"},
    {"PATH", "/lib/python3*/site-packages/nvidia/", "/lib/"},
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

/* Returns the parent of the first folder of the search path that contains python3. This parent is
 * the root of the virtual environment if one is active. Returns NULL if no folder contains python3.
 */
static const char *python_root(char *out, size_t out_bytes)
{
    if (!ddp_find_program("python3", out, out_bytes))
        return NULL;
    char *name = strrchr(out, '/');
    if (name == NULL) /* the current folder */
        snprintf(out, out_bytes, "..");
    else
        snprintf(name, strlen(name) + 1, "/..");
    return out;
}

/* Opens a library. On failure returns NULL and stores the reason in why [why_bytes]. */
static void *open_library(const char *name, char *why, size_t why_bytes)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *reason = dlerror();
        ddp_printable(reason != NULL ? reason : "", why, why_bytes);
    }
    return handle;
}

/* Opens the last file that matches the pattern of place i and that dlopen accepts. Returns NULL if
 * there is no such file. If dlopen refuses a file that matches, stores the reason in why
 * [why_bytes]. */
static void *open_place(size_t i, const char *soname, const char *package, char *why,
                        size_t why_bytes)
{
    char pattern[1024], root[1024];
    const char *value = places[i].variable == NULL                ? ""
                        : strcmp(places[i].variable, "PATH") == 0 ? python_root(root, sizeof root)
                                                                  : variable(places[i].variable);
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
        handle = open_library(found.gl_pathv[k], why, why_bytes);
    globfree(&found);
    return handle;
}

void *ddp_cuda_library_find(const char *soname, const char *package, enum ddp_conf_key key,
                            char *why, size_t why_bytes)
{
    const char *given = ddp_conf_get(key);
    void *handle = open_library(given != NULL ? given : soname, why, why_bytes);
    for (size_t i = 0; given == NULL && handle == NULL && i < DDP_COUNT_OF(places); i++)
        handle = open_place(i, soname, package, why, why_bytes);
    return handle;
}
