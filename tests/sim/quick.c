/* A library that simulate.py loads into smpirun's processes (LD_PRELOAD), so that many ranks take
 * less time. It changes no simulated time, in which computation takes no time.
 *
 * SimGrid reads the CPU time of its thread twice in each MPI call, with a system call that takes a
 * lock, and ignores the difference. Here the CPU clocks stand still. Ranks also touch little of
 * much scratch, which would become real memory with pages of 2 MiB. */
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Replaces the function of libc. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID) {
        *time = (struct timespec){0};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, time);
}

__attribute__((constructor)) static void small_pages(void)
{
    (void)prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL);
}
