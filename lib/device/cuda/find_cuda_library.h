/* Finds NVIDIA's libraries. The program opens a library when it first needs the library, so that
 * the program also starts on machines without these libraries. */
#ifndef DDP_DEVICE_CUDA_FIND_CUDA_LIBRARY_H
#define DDP_DEVICE_CUDA_FIND_CUDA_LIBRARY_H

#include <stddef.h>

#include "base/conf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a library. If the setting `key` is present, opens only the library that the setting names.
 * Otherwise the dynamic linker searches for `soname`. If the linker cannot open the library, the
 * function searches the places where toolkits and Python packages (nvidia/`package`) install
 * libraries. Returns the handle, which the caller owns. On failure returns NULL and stores the
 * reason as printable text in why [why_bytes]. */
void *ddp_cuda_library_find(const char *soname, const char *package, enum ddp_conf_key key,
                            char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif
