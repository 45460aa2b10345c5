#include "gate_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME     "ddpbench-gate-"
#define RESULT   "launch.json" /* the result file of a child process */
#define ATTEMPTS 10

static const char *temp_folder(void)
{
    const char *parent = getenv("TMPDIR");
    return parent && parent[0] == '/' ? parent : "/tmp";
}

/* Deletes the results in the folder and their temporary files, whose names begin with a dot. Then
 * deletes the folder unless other files remain. */
static void clear(int fd, const char *path)
{
    const int again = dup(fd);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name + (entry->d_name[0] == '.'), RESULT, strlen(RESULT)) == 0)
            (void)unlinkat(fd, entry->d_name, 0);
    if (dir)
        closedir(dir);
    else if (again >= 0)
        close(again);
    (void)rmdir(path);
}

/* Opens and locks a folder. Returns its descriptor, or -1 if another gate holds the lock or another
 * user owns the folder. `made` says that this gate has just created the folder. If the file system
 * cannot lock folders (such as NFS), a new folder is used without a lock. No other gate removes it,
 * because it cannot lock it either. */
static int lock(const char *path, bool made)
{
    struct stat held, current;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    /* Compare the inodes, because another gate may have removed the folder before it was locked. */
    if (fstat(fd, &held) == 0 && held.st_uid == geteuid() &&
        (flock(fd, LOCK_EX | LOCK_NB) == 0 || (made && errno != EWOULDBLOCK)) &&
        lstat(path, &current) == 0 && held.st_ino == current.st_ino &&
        held.st_dev == current.st_dev)
        return fd;
    close(fd);
    return -1;
}

/* Removes the folders of killed gates, which are those that no process has locked. */
static void clear_abandoned(const char *parent)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    DIR *dir = opendir(parent);
    while (dir && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, NAME, strlen(NAME)) != 0 ||
            (size_t)snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) >= sizeof path)
            continue;
        const int fd = lock(path, false);
        if (fd < 0)
            continue;
        clear(fd, path);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

int ddp_gate_folder_make(struct ddp_gate_folder *out, struct ddp_err *err)
{
    const char *parent = temp_folder();
    clear_abandoned(parent);
    /* Between mkdtemp and lock another gate may remove the folder, because it looks abandoned. Try
     * several times. */
    for (int i = 0; i < ATTEMPTS; i++) {
        if ((size_t)snprintf(out->path, sizeof out->path, "%s/" NAME "XXXXXX", parent) >=
            sizeof out->path)
            return ddp_fail(err, DDP_ECREATE, "TMPDIR is too long for a path: '%.200s...'", parent);
        if (!mkdtemp(out->path))
            return ddp_fail_errno(err, DDP_ECREATE, errno,
                                  "cannot create a folder for results in '%s'", parent);
        out->fd = lock(out->path, true);
        if (out->fd >= 0)
            return 0;
        (void)rmdir(out->path);
    }
    return ddp_fail(err, DDP_ECREATE, "cannot lock a folder for results in '%s'", parent);
}

void ddp_gate_folder_remove(struct ddp_gate_folder *f)
{
    clear(f->fd, f->path);
    close(f->fd);
}
