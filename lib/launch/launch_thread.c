/* Starts ranks as threads of this process, for ThreadSanitizer and debuggers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/launch_impl.h"

static void *thread_main(void *arg)
{
    struct ddp_rank_start *start = arg;
    ddp_launch_run_rank(start);
    /* The closed channel tells the parent that the thread has ended, as a pidfd does for a
     * process. */
    close(start->rank.channel_fd);
    return NULL;
}

int ddp_launch_start_thread(struct ddp_launch_run *run, int rank, int channel_fd,
                            struct ddp_err *err)
{
    struct ddp_rank_start *start = &run->start[rank];
    ddp_launch_fill(run, rank, channel_fd, start);
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return ddp_fail_errno(err, DDP_ENOMEM, rc, "cannot start rank %d", rank);
    cpu_set_t core;
    if (ddp_launch_core(run, rank, &core))
        (void)pthread_attr_setaffinity_np(&attr, sizeof core, &core);
    rc = pthread_create(&run->child[rank].thread, &attr, thread_main, start);
    pthread_attr_destroy(&attr);
    if (rc != 0)
        return ddp_fail_errno(err, DDP_ENOMEM, rc, "cannot start a thread for rank %d", rank);
    char name[16];
    snprintf(name, sizeof name, "ddp rank %u", (unsigned)rank % 1000);
    pthread_setname_np(run->child[rank].thread, name);
    return 0;
}
