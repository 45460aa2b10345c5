/* Where a reporter's text goes: a file that is replaced as a whole, a stream that grows, or
 * something that can only be written in place. Private to report.c and its test.
 *
 * - absent or regular file, whole documents: written beside the target, fsynced, renamed over it;
 *   a reader sees the old document or the new one, and a failure leaves nothing behind. Symbolic
 *   links are followed, never replaced. The file beside has one name a target, so that what a kill
 *   leaves there is taken over by the next run.
 * - regular file, stream: truncated at the first write, then appended to.
 * - "-", /dev/stdout, /dev/stderr, /dev/fd/N: that descriptor, which stays open. So does stdout
 *   when a path names the very file it goes to.
 * - pipes and character devices: in place; a whole document only once, at the end (once).
 * Block devices and folders are refused. What it does not do: format anything, or print. */
#ifndef DDP_REPORT_REPORT_SINK_H
#define DDP_REPORT_REPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "report/patience.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_sink_kind { DDP_SINK_REPLACE, DDP_SINK_STREAM, DDP_SINK_FD, DDP_SINK_FIFO };

/* path: as the user wrote it, for messages. fd: -1 until open; owned unless kind is FD. dir, base:
 * of a target that is a file or absent. device, inode: of an existing target, 0 when absent or of
 * no matter. broken: a write in place failed, and what is there may end anywhere: it is left alone.
 * patience: borrowed. */
struct ddp_sink {
    enum ddp_sink_kind kind;
    char *path;
    char *target;
    int fd, dir;
    char base[256];
    dev_t device, dir_device;
    ino_t inode, dir_inode;
    bool once, truncate, broken;
    const struct ddp_patience *patience;
};

/* Checks that the target can be written, before anything is measured; changes nothing and leaves
 * nothing behind. DDP_ECREATE, or DDP_EUSAGE for an empty path. */
int ddp_sink_init(struct ddp_sink *sink, const char *path, bool document,
                  const struct ddp_patience *patience, struct ddp_err *err) DDP_MUST_CHECK;
/* Opens it for the first write: from here on the target may change. DDP_ECREATE. */
int ddp_sink_open(struct ddp_sink *sink, struct ddp_err *err) DDP_MUST_CHECK;
/* Would both write to the same file or descriptor? */
bool ddp_sink_same(const struct ddp_sink *a, const struct ddp_sink *b);
/* Would it write to what `path` names: a file that is there, or one that will be? */
bool ddp_sink_hits(const struct ddp_sink *sink, const char *path);
/* Frees without a check; fine after finish. */
void ddp_sink_release(struct ddp_sink *sink);

/* sink_write.c: after open. Appends text[n]. DDP_EIO. */
int ddp_sink_write(struct ddp_sink *sink, const char *text, size_t n,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Makes the target hold text[n] and nothing else; for a once sink: writes it. DDP_EIO. */
int ddp_sink_replace(struct ddp_sink *sink, const char *text, size_t n,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* fsync and close of what is ours, checked. DDP_EIO. */
int ddp_sink_finish(struct ddp_sink *sink, struct ddp_err *err) DDP_MUST_CHECK;

/* Makes an empty file beside the target and holds it (flock) as long as it is open; its name into
 * temp[NAME_MAX + 1]. Returns its descriptor, or -1 with errno. */
int ddp_sink_create_beside(const struct ddp_sink *sink, char *temp);

#ifdef __cplusplus
}
#endif
#endif
