/* disk.bats preloads this library. The SHIM_NTH-th call of SHIM_CALL (write, fsync, fdatasync,
 * rename or flock) that the first process makes on a file, and the SHIM_MORE calls after it, fail
 * with ENOSPC (flock: ENOLCK). Each failure is recorded in the file SHIM_MARK. A write that fails
 * has written half of its data, as on a full disk. Calls on pipes, sockets and memory, and those of
 * ranks, do not fail. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t first;
static long calls;

__attribute__((constructor)) static void begin(void)
{
    first = getpid();
}

static long number(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atol(text) : 0;
}

static bool fails(const char *call)
{
    const char *which = getenv("SHIM_CALL"), *mark = getenv("SHIM_MARK");
    if (!which || strcmp(which, call) != 0 || getpid() != first)
        return false;
    const long n = ++calls, nth = number("SHIM_NTH");
    if (n < nth || n > nth + number("SHIM_MORE"))
        return false;
    int fd =
        mark ? (int)syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    if (fd >= 0) {
        syscall(SYS_write, fd, "x", 1);
        syscall(SYS_close, fd);
    }
    return true;
}

static bool is_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

static long full(void)
{
    errno = ENOSPC;
    return -1;
}

ssize_t write(int fd, const void *data, size_t n)
{
    if (is_file(fd) && fails("write")) {
        if (n > 1)
            return syscall(SYS_write, fd, data, n / 2) < 0 ? -1 : full();
        return full();
    }
    return syscall(SYS_write, fd, data, n);
}

int fsync(int fd)
{
    return is_file(fd) && fails("fsync") ? (int)full() : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return is_file(fd) && fails("fdatasync") ? (int)full() : (int)syscall(SYS_fdatasync, fd);
}

int flock(int fd, int how)
{
    if (!is_file(fd) || !fails("flock"))
        return (int)syscall(SYS_flock, fd, how);
    errno = ENOLCK;
    return -1;
}

int renameat(int from, const char *old, int to, const char *new)
{
    return fails("rename") ? (int)full() : (int)syscall(SYS_renameat2, from, old, to, new, 0);
}
