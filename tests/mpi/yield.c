/* mpi.bash preloads this library into MPICH's ranks if there are more of them than cores. A rank of
 * MPICH that waits never yields, so each message would take a time slice. With this library it
 * yields when UCX, with which MPICH moves its messages, has nothing to do. Every eighth yield of a
 * thread becomes a short sleep, so that ranks that wait cost little. */
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef unsigned progress_fn(void *worker);

unsigned ucp_worker_progress(void *worker);

int sched_yield(void)
{
    static _Thread_local unsigned calls;
    return ++calls % 8 ? (int)syscall(SYS_sched_yield) : usleep(1);
}

static progress_fn *find(void)
{
    progress_fn *found = (progress_fn *)dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (found)
        return found;
    // MPICH was loaded at run time, and its libraries are visible to nobody else.
    void *library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    found = library ? (progress_fn *)dlsym(library, "ucp_worker_progress") : NULL;
    if (!found)
        abort();
    return found;
}

unsigned ucp_worker_progress(void *worker)
{
    static progress_fn *_Atomic real;
    if (!real)
        real = find();
    const unsigned done = real(worker);
    if (!done)
        sched_yield();
    return done;
}
