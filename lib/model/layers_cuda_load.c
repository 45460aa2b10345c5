/* Opens NVIDIA's libraries for the layers on first use, so that the program starts without them.
 * The functions have the types of the headers at build time. The soname contains the major version
 * of these headers, so the types fit. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "device/cuda/find_cuda_library.h"
#include "model/layers_cuda_impl.inc.h"

/* Names and versions of the opened libraries. They are filled once per process, because a shared
 * library belongs to the whole process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[96];

static void *open_library(const struct ddp_cuda_library *l, struct ddp_err *err)
{
    const enum ddp_conf_key key = (enum ddp_conf_key)l->key;
    char why[300];
    void *handle = ddp_cuda_library_find(l->soname, l->package, key, why, sizeof why);
    if (handle == NULL) {
        ddp_fail(err, DDP_EUNAVAIL, "cannot load %s: %s", l->what, why);
        ddp_hint(err, "set %s=FILE to name the library", ddp_conf_rows()[l->key].variable);
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
            return ddp_fail(err, DDP_EUNAVAIL, "the %s library has no function %s", l->what,
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
