/* Loaded into smpirun's processes (LD_PRELOAD; simulate.py), that many ranks take less time.
 * Changes no simulated time, in which computation is nothing.
 *
 * SimGrid reads its thread's processor time twice in each MPI call, a system call that takes a
 * lock, and throws the difference away: here the processor's clocks stand still. And ranks touch
 * little of much scratch, which in pages of 2 MiB would become memory all the same. */
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Instead of libc's. */
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
