/* Helpers for reading and writing files. */
#ifndef DDP_BASE_FILE_H
#define DDP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes bytes [n] to fd, with as many calls of write(2) as needed. Returns 0, or the errno value
 * of the call that failed. In case of an error, a part of the bytes may have been written. */
int ddp_write_all(int fd, const void *bytes, size_t n);
/* Returns whether fd is a pipe or socket whose reader has closed the other end. */
bool ddp_file_is_unread(int fd);

/* Opens a regular file for reading. Stores its descriptor in *fd and its size in *bytes. Returns
 * DDP_EPERM if the file may not be read, and DDP_EINPUT if it is not a regular file. Returns
 * DDP_ENOMEM if memory is exhausted or too many files are open. Returns DDP_EIO if the size cannot
 * be read, and DDP_ENOINPUT if the file cannot be opened for another reason. */
int ddp_file_open(const char *path, int *fd, size_t *bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads `bytes` bytes from fd into new memory at *data, and appends a '\0'. `path` is used only in
 * messages. The caller frees *data. Returns DDP_EIO if reading fails, DDP_ENOMEM if memory is
 * exhausted, and DDP_EINPUT if the file has fewer bytes. */
int ddp_file_read_from(int fd, const char *path, size_t bytes, char **data,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Reads a whole file. Returns the errors of ddp_file_open and ddp_file_read_from, and DDP_EINPUT if
 * the file is larger than `most` bytes. */
int ddp_file_read(const char *path, size_t most, char **data, size_t *bytes,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
