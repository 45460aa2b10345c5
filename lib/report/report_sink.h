/* A sink is the target of a reporter: a file that is replaced as a whole, a stream that grows, or
 * an output that can only be written in place. Only report.c and page.c use this header. A sink
 * distinguishes these cases:
 *
 *   - The path names a regular file or no file, and the sink gets a document. The document is
 *     written to a temporary file beside the target. The temporary file is fsynced and then renamed
 *     to the target, so readers see the whole old document or the whole new one. After a failed
 *     write, the temporary file is removed. If a run was killed, the next run with this target
 *     removes the temporary file, unless several runs wrote to the target at the same time.
 *     Symbolic links are followed and never replaced.
 *   - The path names a regular file or no file, and the sink gets a stream. The file is truncated
 *     at the first write, and later writes append to the file. If nothing is written,
 *     ddp_sink_finish truncates the file.
 *   - The path is "-", /dev/stdout, /dev/stderr or /dev/fd/N. The sink writes to this descriptor
 *     and leaves the descriptor open. A path to the file to which stdout goes also stands for
 *     stdout.
 *   - The path names a pipe or a character device. The sink writes in place.
 *
 * A sink that writes to a descriptor or in place gets a document only once, at the end. Block
 * devices and folders are rejected. */
#ifndef DDP_REPORT_REPORT_SINK_H
#define DDP_REPORT_REPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "report/write_deadline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* REPLACE: a file for a document. STREAM: a file for a stream, or a device. FD: a descriptor that
 * the sink did not open. FIFO: a named pipe. */
enum ddp_sink_kind { DDP_SINK_REPLACE, DDP_SINK_STREAM, DDP_SINK_FD, DDP_SINK_FIFO };

/* A sink. The deadline settings must live as long as the sink. */
struct ddp_sink {
    enum ddp_sink_kind kind;
    char *path;   /* The path as the user wrote it, for messages. */
    char *target; /* The path with symbolic links followed. NULL if the path names a descriptor. */
    int fd;       /* -1 until opened. The sink closes it unless kind is FD. */
    /* Descriptor of the target's folder if the target is a regular file or does not exist.
     * Otherwise -1. */
    int dir;
    char base[256]; /* Last component of the target, if `dir` is not -1. */
    /* st_dev and st_ino of the target. Both are 0 for /dev/null, for a descriptor, and if the
     * target does not exist. */
    dev_t device;
    ino_t inode;
    /* st_dev and st_ino of the folder `dir`. */
    dev_t dir_device;
    ino_t dir_inode;
    bool once;     /* A document is written only at the end. */
    bool truncate; /* The file is truncated before the first write. */
    bool broken;   /* A write in place failed, so nothing more is written. */
    const struct ddp_write_deadline *deadline_policy;
};

/* Checks before the measurement that the target can be written, without changing it. Returns 0,
 * DDP_ECREATE, DDP_ENOMEM, or DDP_EUSAGE for an empty path. */
int ddp_sink_init(struct ddp_sink *sink, const char *path, bool document,
                  const struct ddp_write_deadline *deadline_policy,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Opens the file of a stream, and creates the file if necessary. Does nothing for other sinks. The
 * target may change from this call on. Returns 0 or DDP_ECREATE. */
int ddp_sink_open(struct ddp_sink *sink, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns true if both sinks would write to the same file, pipe, device or descriptor. Returns
 * false for two sinks that write to /dev/null. */
bool ddp_sink_same(const struct ddp_sink *a, const struct ddp_sink *b);
/* Returns true if the sink would write to the file `path`. This file does not need to exist. */
bool ddp_sink_hits(const struct ddp_sink *sink, const char *path);
/* Releases the sink and ignores errors. May be called after ddp_sink_finish. */
void ddp_sink_release(struct ddp_sink *sink);

/* Appends text[n] to a sink that ddp_sink_open has opened. Returns 0, DDP_EIO, or DDP_ECLOSED if
 * stdout is a pipe whose reader has closed it. */
int ddp_sink_write(struct ddp_sink *sink, const char *text, size_t n,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Replaces the contents of the target by text[n]. A sink that writes to a descriptor or in place
 * appends text[n]. Returns 0 or the errors of ddp_sink_write. */
int ddp_sink_replace(struct ddp_sink *sink, const char *text, size_t n,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Truncates the file of a stream to which nothing was written. Then syncs the descriptor of the
 * sink, and closes the descriptor unless the kind is FD. Does nothing if no descriptor is open.
 * Returns 0 or DDP_EIO. */
int ddp_sink_finish(struct ddp_sink *sink, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
