/* For tests of ranks that meet over TCP: starts processes with torchrun's variables and records
 * how each ended. */
#ifndef DDP_TESTS_MEETING_RANKS_H
#define DDP_TESTS_MEETING_RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/control_tcp.h"
#include "launch/launcher.h"
#include "launch/rendezvous_impl.h"
#include "names.h"

#define RANKS_MAX 16
#define SECOND    INT64_C(1000000000)

/* How one process ended. */
struct outcome {
    int code;
    int64_t took_ns;
    char text[512], hint[768];
};

/* The environment that a launcher gives to one process, and the body that it runs in the world. */
struct process {
    const char *host, *run_id, *secret;
    int port, rank, size;
    bool row; /* meet on the ports after MASTER_PORT, not on `port` alone */
    int64_t timeout_ns;
    int (*body)(struct ddp_comm *comm, struct ddp_err *err);
};

static struct outcome *outcomes; /* shared with the children */
static pid_t children[RANKS_MAX];

static inline void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static inline int run(const struct process *p, struct ddp_err *err)
{
    const struct ddp_comm_options options = {.timeout_ns = p->timeout_ns};
    struct ddp_launcher launcher;
    struct ddp_comm *comm;
    setenv("MASTER_ADDR", p->host, 1);
    set_number("RANK", p->rank);
    set_number("WORLD_SIZE", p->size);
    set_number("LOCAL_RANK", p->rank);
    set_number("LOCAL_WORLD_SIZE", p->size);
    set_number("MASTER_PORT", p->row ? p->port - 1 : 1);
    if (!p->row)
        set_number("DDPBENCH_PORT", p->port);
    if (p->run_id != NULL)
        setenv("TORCHELASTIC_RUN_ID", p->run_id, 1);
    if (p->secret != NULL)
        setenv("DDPBENCH_SECRET", p->secret, 1);
    DDP_TRY(ddp_launcher_detect(&launcher, err));
    DDP_TRY(ddp_comm_create(&ddp_control_tcp, &launcher.rank_info, &options, &comm, err));
    const int rc = p->body != NULL ? p->body(comm, err) : 0;
    ddp_comm_destroy(comm);
    return rc;
}

static inline void start(int i, struct process p)
{
    if (p.host == NULL)
        p.host = "127.0.0.1";
    if (p.timeout_ns == 0)
        p.timeout_ns = 30 * SECOND;
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] > 0)
        return;
    struct ddp_err err = DDP_ERR_INIT;
    const int64_t begin = ddp_now_ns();
    const int rc = run(&p, &err);
    outcomes[i].took_ns = ddp_now_ns() - begin;
    memcpy(outcomes[i].text, err.text, sizeof err.text);
    memcpy(outcomes[i].hint, err.hint, sizeof err.hint);
    outcomes[i].code = rc;
    _exit(0);
}

static inline void finish(int i)
{
    assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
}

static inline void assert_says(int i, int code, const char *part)
{
    if (outcomes[i].code != code || !text_names(outcomes[i].text, part))
        fail_msg("process %d: code %d, '%s'; expected %d, '%s'", i, outcomes[i].code,
                 outcomes[i].text, code, part);
}

/* Returns a port on which nobody listens; the seven ports after it are free as well. */
static inline int free_port(void)
{
    for (;;) {
        int fd[DDP_RENDEZVOUS_PORTS], port = 0, n = 0, next;
        if (ddp_tcp_listen(NULL, 0, &fd[n], &port) == 0)
            n++;
        while (n > 0 && n < DDP_RENDEZVOUS_PORTS && port + n < 65536 &&
               ddp_tcp_listen(NULL, port + n, &fd[n], &next) == 0)
            n++;
        for (int i = 0; i < n; i++)
            close(fd[i]);
        if (n == DDP_RENDEZVOUS_PORTS)
            return port;
    }
}

/* Connects to the server, which may not listen yet, and sends some bytes. */
static inline int speak(int port, const void *data, size_t bytes)
{
    struct ddp_tcp_address address;
    int count, fd, rc;
    assert_int_equal(ddp_tcp_resolve("127.0.0.1", INT64_MAX, &address, &count, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        rc = ddp_tcp_connect(&address, port, ddp_now_ns() + SECOND, &fd);
        if (rc == 0)
            break;
        ddp_sleep_ns(SECOND / 100);
    }
    assert_int_equal(rc, 0);
    (void)!ddp_tcp_send(fd, data, bytes, ddp_now_ns() + SECOND);
    return fd;
}

static inline struct ddp_hello hello_of(int rank, int size, uint64_t token)
{
    return (struct ddp_hello){.magic = DDP_HELLO_MAGIC,
                              .version = DDP_HELLO_VERSION,
                              .rank = (uint32_t)rank,
                              .size = (uint32_t)size,
                              .port = 1,
                              .token = token};
}

/* Returns the key of the job that meets on `port` of 127.0.0.1. */
static inline struct ddp_job_key key_of(int port, const char *secret)
{
    struct ddp_rendezvous_config config;
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "1", 1);
    assert_int_equal(ddp_launcher_rendezvous(text, secret, &config, NULL), 0);
    return config.key;
}

/* Returns the server's answer, or 0 if it closes the connection. */
static inline uint32_t heard(int fd)
{
    struct ddp_answer a;
    return ddp_tcp_receive(fd, &a, sizeof a, ddp_now_ns() + 10 * SECOND) == 0 ? a.verdict : 0;
}

static inline int setup(void **state)
{
    (void)state;
    outcomes = mmap(NULL, RANKS_MAX * sizeof *outcomes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; outcomes != MAP_FAILED && i < RANKS_MAX; i++)
        outcomes[i].code = 1; /* in case the process never ends */
    return outcomes == MAP_FAILED;
}

static inline int teardown(void **state)
{
    (void)state;
    return munmap(outcomes, RANKS_MAX * sizeof *outcomes);
}

#endif
