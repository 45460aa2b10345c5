/* Finds the folder of the backend modules. In a build tree they lie beside the library, or beside
 * the program that contains the library. `make install` puts them in ddpbench/ or ../lib/ddpbench/
 * relative to the folder of the library or program. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "exchange/ddp_impl.h"

static bool has_module(const char *dir)
{
    bool found = false;
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;)
        found = strncmp(e->d_name, "ddpbench-mpi-", 13) == 0;
    if (d != NULL)
        closedir(d);
    return found;
}

void ddp_modules_find(const char *given, char *out, size_t out_bytes)
{
    static const char *const below[] = {"", "/ddpbench", "/../lib/ddpbench"};
    Dl_info self = {0};
    char dir[4200];
    if (dladdr((const void *)(uintptr_t)ddp_modules_find, &self) == 0 || self.dli_fname == NULL)
        self.dli_fname = "./libddp.so";
    if (given == NULL)
        given = ddp_conf_get(DDP_CONF_MODULE_DIR);
    if (given != NULL) {
        snprintf(out, out_bytes, "%s", given);
        return;
    }
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - self.dli_fname) : 1,
             slash != NULL ? self.dli_fname : ".");
    for (size_t i = 0; i < DDP_COUNT_OF(below); i++) {
        snprintf(out, out_bytes, "%s%s", dir, below[i]);
        if (has_module(out))
            return;
    }
    snprintf(out, out_bytes, "%s", dir);
}
