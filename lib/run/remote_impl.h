/* The job that the head of --hosts sends to an agent (remote.h): a line of numbers, then strings
 * that end in '\0'. The strings are the folder, the environment entries and the command line. */
#ifndef DDP_RUN_REMOTE_IMPL_H
#define DDP_RUN_REMOTE_IMPL_H

/* The line of numbers: the first rank of the host, the number of ranks of the host, the size of the
 * world, the numbers of environment entries and arguments, and the bytes of all strings. */
#define DDP_REMOTE_FORMAT "ddpbench-job 1 %d %d %d %d %d %u"
/* Maximum number of bytes of the strings. A pipe holds 64 KiB, so the head can write the job
 * without waiting for the agent. */
#define DDP_REMOTE_JOB_MAX 60000

#endif
