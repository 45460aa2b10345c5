#include "launch/launch_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sysinfo.h"

/* Makes the descriptor `fd` refer to /dev/null. */
static bool close_to_null(int fd, int flags)
{
    const int null = open("/dev/null", flags | O_CLOEXEC);
    return null >= 0 && dup2(null, fd) == fd;
}

static bool set_files(const struct ddp_launch_program *p)
{
    const bool output = p->output > 0 ? dup2(p->output, STDOUT_FILENO) == STDOUT_FILENO
                                      : p->keep_stdout || close_to_null(STDOUT_FILENO, O_WRONLY);
    const bool input = p->input > 0 ? dup2(p->input, STDIN_FILENO) == STDIN_FILENO
                                    : close_to_null(STDIN_FILENO, O_RDONLY);
    return output && input && (p->errors < 0 || dup2(p->errors, STDERR_FILENO) == STDERR_FILENO);
}

/* Executes the file argv[0]. If this name contains no slash, executes the first executable file of
 * this name in the folders of `path`. Unlike execvpe, never starts a shell. Returns only on
 * failure, with errno set. */
static void execute(const struct ddp_launch_program *p, const char *path)
{
    const char *name = p->argv[0];
    char file[PATH_MAX];
    int error = ENOENT;
    if (strchr(name, '/') != NULL) {
        (void)execve(name, p->argv, p->env);
        return;
    }
    while (ddp_search_next(&path, name, file, sizeof file)) {
        (void)execve(file, p->argv, p->env);
        if (errno == EACCES)
            error = EACCES; /* a later folder may have an executable file */
        else if (errno != ENOENT && errno != ENOTDIR)
            return;
    }
    errno = error;
}

/* Runs in the child between fork and exec. Exits if the process `parent` has ended. On failure,
 * writes errno to the descriptor `report`. */
_Noreturn static void exec_child(const struct ddp_launch_program *p, const char *path, pid_t parent,
                                 int report)
{
    (void)setpgid(0, 0);
    for (int s = 1; s < NSIG; s++)
        (void)signal(s, SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* the parent ended before prctl */
        _exit(0);
    if (set_files(p) && sigprocmask(SIG_SETMASK, p->mask, NULL) == 0)
        execute(p, path);
    const int error = errno;
    (void)!write(report, &error, sizeof error);
    _exit(127);
}

int ddp_launch_program(const struct ddp_launch_program *program, pid_t *pid, struct ddp_err *err)
{
    const char *path = ddp_search_path();
    const pid_t me = getpid();
    int report[2], error = 0;
    ssize_t n;
    if (pipe2(report, O_CLOEXEC) != 0)
        return ddp_fail_errno(err, DDP_EUNAVAIL, errno, "cannot start '%s'", program->argv[0]);
    const pid_t child = fork();
    if (child == 0)
        exec_child(program, path, me, report[1]);
    const int no_process = errno;
    close(report[1]);
    if (child < 0) {
        close(report[0]);
        return ddp_fail_errno(err, DDP_EUNAVAIL, no_process, "cannot start '%s'", program->argv[0]);
    }
    do /* a successful exec closes the other end */
        n = read(report[0], &error, sizeof error);
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n == (ssize_t)sizeof error) {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
        return ddp_fail_errno(err, DDP_EUNAVAIL, error, "cannot start '%s'", program->argv[0]);
    }
    *pid = child;
    return 0;
}
