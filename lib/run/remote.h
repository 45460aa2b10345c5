/* Starts the ranks of a command on several hosts over ssh (--hosts). This process is the *head*. It
 * starts one ssh per host, which starts the *agent* there: the same binary, at the same path, with
 * the argument DDP_REMOTE_AGENT. The agent reads the job from its stdin, starts the ranks of its
 * host and waits for them. The ranks meet over TCP (launch/rendezvous.h) and have a random secret,
 * which the agent receives on its stdin, too, because other users can read command lines. Rank 0 is
 * on the first host and is the collector. The ranks write to the stdout and stderr of their agent,
 * and ssh forwards both. The head starts the agent of its own host without ssh.
 *
 * The head keeps the agents' stdins open. To pass a signal on to the ranks, the head writes the
 * signal's number as one byte. If the head or a connection ends, stdin ends, and the agent ends its
 * ranks. If a rank fails, its agent ends the other ranks of the host, unless they end by themselves
 * within 5 s. If an agent fails, the head ends the other agents in the same way. If ssh could not
 * connect, lost the connection, or could not run ddpbench on a host, the head ends the other agents
 * after 1 s. */
#ifndef DDP_RUN_REMOTE_H
#define DDP_RUN_REMOTE_H

#include "run/command.h"

#define DDP_REMOTE_AGENT "host-agent"

/* After a rank has failed, the other ranks get SIGTERM after this time. They get
 * SIGKILL when this time has passed since SIGTERM, or since a signal that was passed on. A head
 * that has received a signal waits twice as long before it ends the agents. */
#define DDP_REMOTE_GRACE_NS INT64_C(5000000000)

/* Limits of --hosts. */
#define DDP_REMOTE_RANKS_MAX      4096
#define DDP_REMOTE_HOST_RANKS_MAX 256

/* The job that the head sends to an agent is a line of numbers, then strings that end in '\0'. The
 * strings are the folder, the environment entries and the command line. The line holds these
 * numbers: the first rank of the host, the number of ranks of the host, the size of the world, the
 * numbers of environment entries and arguments, and the bytes of all strings. */
#define DDP_REMOTE_FORMAT "ddpbench-job 1 %d %d %d %d %d %u"
/* Maximum number of bytes of the strings. A pipe holds 64 KiB, so the head can write the job
 * without waiting for the agent. */
#define DDP_REMOTE_JOB_MAX 60000

struct ddp_remote_host {
    char name[256]; /* a host name or address, possibly USER@HOST */
    int ranks;
};

struct ddp_remote_hosts {
    struct ddp_remote_host *host; /* [count] */
    int count, ranks;             /* ranks: on all hosts */
};

/* Reads a list of hosts "a:2,b,[::1]:4", or the lines of a hostfile "a:2", "a slots=2" or "a", with
 * comments after "#". Without a number, a host has one rank. Release *out with free(out->host).
 * Returns DDP_EUSAGE for an illegal list, and DDP_ECONFIG for an illegal file. */
int ddp_remote_parse(const char *text, bool is_file, struct ddp_remote_hosts *out,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Starts the ranks on the hosts of --hosts or --hostfile, and waits for their end. Sets *done to
 * true if this call has run the job or has failed. Sets *done to false, starts nothing and returns
 * 0 if both texts are NULL, or if this process is a rank of a job of --hosts. Returns the first
 * failure of the job (ddp_remote_add_code) or, if there is none, the verdict of the command. After
 * a signal to this process, returns the code of the signal. Returns an error if the job could not
 * be started. */
int ddp_remote_run(struct ddp_app *app, const char *hosts, const char *hostfile, bool *done,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Runs the agent of a host. Returns the first failure of its ranks (ddp_remote_add_code), or the
 * error of a job that could not be started. */
int ddp_remote_agent(struct ddp_app *app, struct ddp_err *err) DDP_MUST_CHECK;

/* Adds a failure to *code, the code of the job (0: none). The first failure is kept, but a later
 * code replaces DDP_ELOST. DDP_ELOST says only that a rank has lost another rank, and the later
 * code may be that of the lost rank. The code of a signal replaces no other code, because the
 * signal may have come after another rank failed. */
void ddp_remote_add_code(int *code, int failure);

/* The next signal with which the head or an agent ends other processes. */
struct ddp_remote_end {
    int signal;    /* 0: no signal is planned */
    int64_t at_ns; /* the time to send the signal */
};
/* Plans `signal`, to be sent after delay_ns, unless a signal is planned already. */
void ddp_remote_plan(struct ddp_remote_end *end, int signal, int64_t delay_ns);
/* Returns the signal to send now, or 0. If there is one, plans SIGKILL, to be sent after
 * DDP_REMOTE_GRACE_NS. */
int ddp_remote_due(struct ddp_remote_end *end);
/* Returns the timeout for poll(2) until the next signal, at most 1 s. */
int ddp_remote_poll_ms(const struct ddp_remote_end *end);

#endif
