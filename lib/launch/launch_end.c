/* Ends an mpiexec that has lost a host (ddp_launch_end_mpiexec in launch.h). */
#include "launch/launch.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"

#define ANCESTORS_MAX 16
#define SIGNALS       2 /* mpirun of Open MPI ends at once only at the second signal */
#define PAUSE_MS      500

/* Reads the name and the parent of a process. Returns false if there is no such process. */
static bool read_process(pid_t pid, char name[32], pid_t *parent)
{
    char path[48], line[256];
    int up = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    const bool read = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    /* The line is "PID (NAME) STATE PARENT ...". The name may contain blanks and parentheses. */
    char *begin = read ? strchr(line, '(') : NULL, *end = read ? strrchr(line, ')') : NULL;
    if (begin == NULL || end == NULL || sscanf(end, ") %*c %d", &up) != 1)
        return false;
    *end = '\0';
    snprintf(name, 32, "%s", begin + 1);
    *parent = up;
    return true;
}

/* Returns the nearest ancestor that is an mpiexec, or -1. */
static pid_t find_mpiexec(void)
{
    static const char *const names[] = {"mpiexec", "mpirun", "orterun", "prterun"};
    char name[32];
    pid_t pid = getppid();
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        pid_t parent;
        if (!read_process(pid, name, &parent))
            return -1;
        for (size_t k = 0; k < DDP_COUNT_OF(names); k++)
            if (strncmp(name, names[k], strlen(names[k])) == 0)
                return pid;
        pid = parent;
    }
    return -1;
}

/* Runs in the helper process, which may call only async-signal-safe functions. Closes the pipes to
 * mpiexec, because mpiexec would wait until they are closed. Leaves the process group, because
 * mpiexec kills this group. */
_Noreturn static void end_process(int target, int grace_ms)
{
    struct pollfd ended = {.fd = 3, .events = POLLIN};
    setsid();
    if (target != ended.fd)
        dup2(target, ended.fd);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    syscall(SYS_close_range, 4u, UINT_MAX, 0u);
    for (int i = 0; i < SIGNALS && poll(&ended, 1, i == 0 ? grace_ms : PAUSE_MS) == 0; i++)
        syscall(SYS_pidfd_send_signal, ended.fd, SIGTERM, NULL, 0u);
    _exit(0);
}

void ddp_launch_end_mpiexec(int64_t grace_ns)
{
    const pid_t pid = find_mpiexec();
    const int target = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0u) : -1;
    if (target < 0)
        return;
    if (fork() == 0)
        end_process(target, (int)(grace_ns / 1000000));
    close(target);
}
