/* A sink is the target of a reporter: a file that is replaced as a whole, a stream that grows, or
 * an output that can only be written in place. Only report.c and page.c use this header.
 *
 *   - Absent or regular file, document: the document is written to a temporary file beside the
 *     target, fsynced and renamed. Readers see the old or the new document. A failed write removes
 *     the temporary file. If a run was killed, the next run with this target removes the temporary
 *     file, unless several runs wrote to the target at the same time. Symbolic links are followed,
 *     never replaced.
 *   - Absent or regular file, stream: the file is truncated at the first write, then appended to.
 *     If nothing is written, ddp_sink_finish truncates the file.
 *   - "-", /dev/stdout, /dev/stderr, /dev/fd/N: the sink writes to the descriptor that the path
 *     names, and leaves it open. A path to the file to which stdout goes also stands for stdout.
 *   - Named pipes and character devices: the sink writes in place.
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

enum ddp_sink_kind { DDP_SINK_REPLACE, DDP_SINK_STREAM, DDP_SINK_FD, DDP_SINK_FIFO };

/* A sink. The deadline settings must live as long as the sink. */
struct ddp_sink {
    enum ddp_sink_kind kind;
    char *path;   /* The path as the user wrote it, for messages. */
    char *target; /* The path after symbolic links were followed. NULL for "-", /dev/fd/N, ... */
    int fd;       /* -1 until opened. The sink closes it unless kind is FD. */
    /* Descriptor of the folder that contains the target, if the target is a file or absent.
     * Otherwise -1. */
    int dir;
    char base[256]; /* Last component of the target, if it is a file or absent. */
    /* st_dev and st_ino of the target. 0 for /dev/null, for a descriptor, and if the target is
     * absent. */
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
/* Prepares the sink for the first write, and creates the file of a stream. From this call on the
 * target may change. Returns 0 or DDP_ECREATE. */
int ddp_sink_open(struct ddp_sink *sink, struct ddp_err *err) DDP_MUST_CHECK;
/* True if both sinks would write to the same file, pipe, device or descriptor. Two sinks for
 * /dev/null are not the same. */
bool ddp_sink_same(const struct ddp_sink *a, const struct ddp_sink *b);
/* True if the sink would write to the file that `path` names, which may not exist yet. */
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
/* Syncs the sink's descriptor, and closes it unless the kind is FD. Returns 0 or DDP_EIO. */
int ddp_sink_finish(struct ddp_sink *sink, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
