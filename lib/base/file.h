/* Helpers for reading and writing files. */
#ifndef DDP_BASE_FILE_H
#define DDP_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes bytes [n] to fd, with as many calls of write(2) as needed. Returns 0, or the errno value
 * of the call that failed. Bytes that were written before stay written. */
int ddp_write_all(int fd, const void *bytes, size_t n);

/* Opens a regular file to read it, and returns its descriptor and its size in *bytes. The file need
 * not be trusted. Errors: DDP_EPERM if it may not be read, DDP_EINPUT if it is not a regular file,
 * DDP_EIO if the system fails, and DDP_ENOINPUT if it cannot be opened for another reason. */
int ddp_open_file(const char *path, int *fd, size_t *bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads a whole file into *data [*bytes], which the caller frees with free(). Returns DDP_EINPUT if
 * the file is larger than `most` bytes, and the errors of ddp_open_file. */
int ddp_read_file(const char *path, size_t most, uint8_t **data, size_t *bytes,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
