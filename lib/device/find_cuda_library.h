/* Finds NVIDIA's libraries. They are opened when first needed, so that the binary also starts on
 * machines where they are not installed. */
#ifndef DDP_DEVICE_FIND_CUDA_LIBRARY_H
#define DDP_DEVICE_FIND_CUDA_LIBRARY_H

#include <stddef.h>

#include "base/conf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the library that the setting `key` names. If `key` is not set, opens `soname` as the
 * dynamic linker finds it, else from the places where toolkits and Python packages
 * (nvidia/`package`) install it. Returns the handle, which the caller owns, or NULL with the
 * printable reason in why [why_bytes]. */
void *ddp_cuda_library_find(const char *soname, const char *package, enum ddp_conf_key key,
                            char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif
