/* Ranks that meet over TCP: 2 to 8 ranks over IPv4 and IPv6, a missing rank, unknown peers, two
 * jobs on one port, a rank that connects twice, and ranks that disagree on the size.
 * test_rendezvous_secret.c tests jobs with a secret. */
#include "unit/rendezvous_ranks.h"

#include "comm/control_tcp.h"
#include "names.h"

/* Runs barriers, exchanges of several sizes, and groups: the odd and the even ranks, then the
 * last two. */
static int allgather_some(struct ddp_comm *comm, struct ddp_err *err)
{
    static unsigned char mine[100000], all[RANKS_MAX * sizeof mine];
    for (size_t bytes = 0; bytes <= sizeof mine; bytes = bytes * 10 + 1) {
        memset(mine, comm->world_rank[comm->rank] + 1, bytes);
        DDP_TRY(ddp_comm_allgather_bytes(comm, mine, all, bytes, err));
        DDP_TRY(ddp_comm_barrier(comm, err));
        for (size_t i = 0; i < bytes * (size_t)comm->size; i++) {
            if (all[i] != comm->world_rank[i / bytes] + 1)
                return ddp_fail(err, DDP_EDATA, "byte %zu of %zu is %d", i, bytes, all[i]);
        }
    }
    return ddp_comm_agree(comm, 0, err);
}

static int use_groups(struct ddp_comm *comm, struct ddp_err *err)
{
    int odd[RANKS_MAX], n = 0;
    struct ddp_comm *group;
    DDP_TRY(allgather_some(comm, err));
    for (int round = 0; round < 2; round++) {
        n = 0;
        for (int r = comm->rank % 2; r < comm->size; r += 2)
            odd[n++] = r;
        DDP_TRY(ddp_comm_group(comm, odd, n, &group, err));
        DDP_TRY(allgather_some(group, err));
        if (round == 0)
            ddp_comm_destroy(group); /* the other group stays open with the next one */
    }
    if (comm->rank >= comm->size - 2) {
        struct ddp_comm *last;
        const int ranks[] = {comm->size - 2, comm->size - 1};
        DDP_TRY(ddp_comm_group(comm, ranks, 2, &last, err));
        DDP_TRY(allgather_some(last, err));
        ddp_comm_destroy(last);
    }
    ddp_comm_destroy(group);
    return allgather_some(comm, err);
}

static void meet(const char *host, int size, bool row)
{
    const int port = free_port();
    for (int r = size - 1; r >= 0; r--) /* rank 0 starts last, so the others must try again */
        start(r, (struct process){.host = host,
                                  .port = port,
                                  .rank = r,
                                  .size = size,
                                  .row = row,
                                  .body = use_groups});
    for (int r = 0; r < size; r++)
        finish(r);
    for (int r = 0; r < size; r++)
        assert_says(r, 0, "");
}

static void test_meet(void **state)
{
    (void)state;
    for (int size = 2; size <= 8; size += size == 2 ? 1 : 5)
        meet("127.0.0.1", size, size != 3);
    meet("localhost", 4, true);
}

static void test_meet_ipv6(void **state)
{
    (void)state;
    struct ddp_tcp_address six;
    int count, fd, port;
    assert_int_equal(ddp_tcp_resolve("::1", INT64_MAX, &six, &count, NULL), 0);
    if (ddp_tcp_listen(&six, 0, &fd, &port) != 0) {
        skip();
        return;
    }
    close(fd);
    meet("::1", 3, true);
}

/* Returns true if the rank listens for later groups on an address of its own host only. */
static bool listens_inside(const struct ddp_comm *comm)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof at;
    const int fd = ddp_control_tcp_listener(comm)->fd;
    return getsockname(fd, (struct sockaddr *)&at, &bytes) == 0 && ddp_tcp_address_is_loopback(&at);
}

static int is_inside(struct ddp_comm *comm, struct ddp_err *err)
{
    return listens_inside(comm) ? 0 : ddp_fail(err, DDP_EINTERNAL, "listens to all hosts");
}

static int is_open(struct ddp_comm *comm, struct ddp_err *err)
{
    return listens_inside(comm) ? ddp_fail(err, DDP_EINTERNAL, "listens to its own host alone") : 0;
}

/* 127.1 stands for a host's own name, which often means a loopback address on that host. Ranks
 * of other hosts reach the host under another address, so a group's leader listens on all
 * addresses, with and without a secret. For 127.0.0.1 it listens only on this address. */
static void test_listeners(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        const int port = free_port();
        const bool open = i > 0;
        for (int r = 0; r < 2; r++)
            start(r, (struct process){.host = i > 0 ? "127.1" : "127.0.0.1",
                                      .port = port,
                                      .rank = r,
                                      .size = 2,
                                      .secret = i == 2 ? "0123456789abcdef" : NULL,
                                      .body = open ? is_open : is_inside});
        for (int r = 0; r < 2; r++)
            finish(r);
        for (int r = 0; r < 2; r++)
            assert_says(r, 0, "");
    }
}

static void test_missing(void **state)
{
    (void)state;
    const int port = free_port();
    for (int r = 0; r < 5; r++) {
        if (r != 2 && r != 4)
            start(r, (struct process){.port = port, .rank = r, .size = 5, .timeout_ns = SECOND});
    }
    for (int r = 0; r < 5; r++) {
        if (r == 2 || r == 4)
            continue;
        finish(r);
        assert_says(r, DDP_ELOST, "ranks 2, 4|5|127.0.0.1");
    }
    assert_true(text_names(outcomes[0].hint, "loopback|MASTER_ADDR"));
    /* No process listens on the port. */
    start(1, (struct process){.port = port, .rank = 1, .size = 2, .timeout_ns = SECOND});
    finish(1);
    assert_says(1, DDP_ELOST, "rank 1|rank 0|127.0.0.1");
}

static void test_unknown_peers(void **state)
{
    (void)state;
    static const char garbage[] = "GET / HTTP/1.1\r\nHost: example\r\n\r\n";
    static char much[1 << 20];
    const int port = free_port();
    const uint64_t token = key_of(port, NULL).token;
    start(0, (struct process){.port = port, .rank = 0, .size = 2, .body = allgather_some});
    int silent = speak(port, "", 0);
    int half = speak(port, &(struct ddp_hello){.magic = DDP_HELLO_MAGIC}, 12);
    int http = speak(port, garbage, sizeof garbage - 1);
    int flood = speak(port, much, sizeof much);
    struct ddp_hello hello = hello_of(1, 2, token + 1);
    int other = speak(port, &hello, sizeof hello);
    hello = hello_of(1, 2, token);
    hello.version = 99;
    int version = speak(port, &hello, sizeof hello);
    hello = hello_of(7, 2, token);
    int beyond = speak(port, &hello, sizeof hello);
    hello = hello_of(0, 2, token);
    int second_server = speak(port, &hello, sizeof hello);
    hello = hello_of(1, 2, token);
    hello.port = 65536;
    int no_port = speak(port, &hello, sizeof hello);
    assert_int_equal(heard(http), 0);
    assert_int_equal(heard(flood), 0);
    assert_int_equal(heard(other), DDP_ANSWER_OTHER_JOB);
    assert_int_equal(heard(version), DDP_ANSWER_REFUSED);
    assert_int_equal(heard(beyond), DDP_ANSWER_REFUSED);
    assert_int_equal(heard(second_server), DDP_ANSWER_REFUSED);
    assert_int_equal(heard(no_port), DDP_ANSWER_REFUSED);
    start(1, (struct process){.port = port, .rank = 1, .size = 2, .body = allgather_some});
    finish(0);
    finish(1);
    assert_says(0, 0, "");
    assert_says(1, 0, "");
    const int fds[] = {silent, half, http, flood, other, version, beyond, second_server, no_port};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close(fds[i]);
}

/* More unknown peers than the server accepts at a time. They send nothing. */
static void test_crowd(void **state)
{
    (void)state;
    int fd[700];
    const int port = free_port();
    start(0, (struct process){.port = port, .rank = 0, .size = 2, .body = allgather_some});
    for (int i = 0; i < 700; i++)
        fd[i] = speak(port, "", 0);
    start(1, (struct process){.port = port, .rank = 1, .size = 2, .body = allgather_some});
    finish(0);
    finish(1);
    assert_says(0, 0, "");
    assert_says(1, 0, "");
    for (int i = 0; i < 700; i++)
        close(fd[i]);
}

static void test_two_jobs(void **state)
{
    (void)state;
    const int port = free_port();
    /* With several ports each job finds its own. */
    for (int job = 0; job < 2; job++) {
        for (int r = 0; r < 3; r++)
            start(3 * job + r, (struct process){.run_id = job == 0 ? "a" : "b",
                                                .port = port,
                                                .rank = r,
                                                .size = 3,
                                                .row = true,
                                                .body = use_groups});
    }
    for (int i = 0; i < 6; i++) {
        finish(i);
        assert_says(i, 0, "");
    }
}

static void test_two_jobs_one_port(void **state)
{
    (void)state;
    const int port = free_port();
    for (int r = 0; r < 2; r++)
        start(r, (struct process){
                     .run_id = "a", .port = port, .rank = r, .size = 3, .timeout_ns = 60 * SECOND});
    ddp_sleep_ns(SECOND / 4);
    close(speak(port, "", 0)); /* the server listens */
    start(3, (struct process){.run_id = "b", .port = port, .rank = 0, .size = 3});
    finish(3);
    assert_says(3, DDP_EUNAVAIL, "rank 0");
    start(4, (struct process){
                 .run_id = "b", .port = port, .rank = 1, .size = 3, .timeout_ns = SECOND});
    finish(4);
    assert_says(4, DDP_EMISMATCH, "job");
    /* The first job continues. */
    start(2, (struct process){.run_id = "a", .port = port, .rank = 2, .size = 3});
    for (int r = 0; r < 3; r++) {
        finish(r);
        assert_says(r, 0, "");
    }
}

static void test_duplicate(void **state)
{
    (void)state;
    const int port = free_port();
    start(0, (struct process){.port = port, .rank = 0, .size = 3});
    start(1, (struct process){.port = port, .rank = 1, .size = 3, .timeout_ns = SECOND});
    start(2, (struct process){.port = port, .rank = 1, .size = 3, .timeout_ns = SECOND});
    /* One of the two gets the error. The other waits and meets the rank that was missing. */
    const pid_t first = waitpid(-1, NULL, 0);
    const int paired = first == children[1] ? 1 : 2;
    assert_true(first == children[1] || first == children[2]);
    assert_says(paired, DDP_EMISMATCH, "rank 1|3");
    start(3, (struct process){.port = port, .rank = 2, .size = 3});
    finish(3 - paired);
    finish(0);
    finish(3);
    assert_says(3 - paired, 0, "");
    assert_says(0, 0, "");
    assert_says(3, 0, "");
}

static void test_size(void **state)
{
    (void)state;
    const int port = free_port();
    for (int r = 0; r < 3; r++)
        start(r, (struct process){.port = port,
                                  .rank = r,
                                  .size = r == 2 ? 4 : 3,
                                  .timeout_ns = (r == 1 ? 1 : 30) * SECOND});
    for (int r = 0; r < 3; r++)
        finish(r);
    assert_says(0, DDP_EMISMATCH, "rank 2|4|rank 0|3");
    assert_says(2, DDP_EMISMATCH, "rank 2|4|rank 0|3");
    /* It gets the mismatch, or it came too late and found no server. */
    assert_true(outcomes[1].code == DDP_EMISMATCH || outcomes[1].code == DDP_ELOST);
}

static void test_variables(void **state)
{
    (void)state;
    struct ddp_rendezvous_config a, b;
    struct ddp_err err = DDP_ERR_INIT;
    setenv("MASTER_ADDR", "node1", 1);
    setenv("MASTER_PORT", "29500", 1);
    setenv("TORCHELASTIC_RUN_ID", "x", 1);
    assert_int_equal(ddp_launcher_rendezvous(NULL, NULL, &a, NULL), 0);
    assert_string_equal(a.host, "node1");
    assert_int_equal(a.port, 29501);
    assert_int_equal(a.ports, DDP_RENDEZVOUS_PORTS);
    setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
    assert_int_equal(ddp_launcher_rendezvous("17", NULL, &b, NULL), 0);
    assert_int_equal(b.port, 17);
    assert_int_equal(b.ports, 1);
    assert_true(a.key.token != b.key.token);
    setenv("MASTER_PORT", "65535", 1);
    assert_int_equal(ddp_launcher_rendezvous(NULL, NULL, &b, NULL), 0);
    assert_int_equal(b.port, 65535 - DDP_RENDEZVOUS_PORTS);
    setenv("MASTER_PORT", "0x10", 1);
    assert_int_equal(ddp_launcher_rendezvous(NULL, NULL, &b, &err), DDP_EMISMATCH);
    assert_true(text_names(err.text, "MASTER_PORT|'0x10'"));
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_launcher_rendezvous("http", NULL, &b, &err), DDP_EUSAGE);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_launcher_rendezvous("17", "too short", &b, &err), DDP_EUSAGE);
    assert_true(text_names(err.text, "DDPBENCH_SECRET|16") && !text_names(err.text, "too short"));
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
    unsetenv("TORCHELASTIC_RUN_ID");
    unsetenv("TORCHELASTIC_RESTART_COUNT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_meet_ipv6, setup, teardown),
        cmocka_unit_test_setup_teardown(test_listeners, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_peers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_jobs_one_port, setup, teardown),
        cmocka_unit_test_setup_teardown(test_duplicate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_size, setup, teardown),
    };
    return cmocka_run_group_tests_name("rendezvous", tests, NULL, NULL);
}
