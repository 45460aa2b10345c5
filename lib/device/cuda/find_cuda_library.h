/* Finds NVIDIA's libraries. They are opened when first needed, so that the binary also starts on
 * machines where they are not installed. */
#ifndef DDP_DEVICE_CUDA_FIND_CUDA_LIBRARY_H
#define DDP_DEVICE_CUDA_FIND_CUDA_LIBRARY_H

#include <stddef.h>

#include "base/conf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the library whose path is the setting `key`. If `key` is not set, the dynamic linker
 * searches `soname`. If that fails, the places where toolkits and Python packages
 * (nvidia/`package`) install libraries are searched. Returns the handle, which the caller owns. On
 * failure returns NULL and stores the reason as printable text in why [why_bytes]. */
void *ddp_cuda_library_find(const char *soname, const char *package, enum ddp_conf_key key,
                            char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif
