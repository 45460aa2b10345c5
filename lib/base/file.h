/* Files, where write(2) alone does not do. */
#ifndef DDP_BASE_FILE_H
#define DDP_BASE_FILE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes all of bytes [n] to fd, in as many calls as it takes: 0, or the errno of the one that
 * failed; what was written before that stays. */
int ddp_write_all(int fd, const void *bytes, size_t n);

#ifdef __cplusplus
}
#endif
#endif
