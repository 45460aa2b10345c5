/* Where NVIDIA's libraries lie: opened when first needed, so that the binary starts where they are
 * not installed. */
#ifndef DDP_DEVICE_FIND_CUDA_LIBRARY_H
#define DDP_DEVICE_FIND_CUDA_LIBRARY_H

#include <stddef.h>

#include "base/conf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dlopen of what `key` names; when it names nothing of soname, as the linker finds it, then where
 * toolkits and Python packages (nvidia/`package`) put it. NULL: why [why_bytes], printable. The
 * handle is the caller's. */
void *ddp_cuda_library_find(const char *soname, const char *package, enum ddp_conf_key key,
                            char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif
