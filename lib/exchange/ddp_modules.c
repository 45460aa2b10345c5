/* Finds the folder of the backend modules, from the folder of the library or of the program that
 * contains the library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "exchange/ddp_impl.h"

void ddp_modules_find(const char *given, char *out, size_t out_bytes)
{
    Dl_info self = {0};
    char dir[4200];
    if (dladdr((const void *)(uintptr_t)ddp_modules_find, &self) == 0 || self.dli_fname == NULL)
        self.dli_fname = "./libddp.so";
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - self.dli_fname) : 1,
             slash != NULL ? self.dli_fname : ".");
    if (given != NULL)
        snprintf(out, out_bytes, "%s", given);
    else
        ddp_conf_module_dir(dir, out, out_bytes);
}
