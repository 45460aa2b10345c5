/* Helpers for writing files. */
#ifndef DDP_BASE_FILE_H
#define DDP_BASE_FILE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes bytes [n] to fd, with as many calls of write(2) as needed. Returns 0, or the errno value
 * of the call that failed. Bytes that were written before stay written. */
int ddp_write_all(int fd, const void *bytes, size_t n);

#ifdef __cplusplus
}
#endif
#endif
