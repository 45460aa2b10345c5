/* Ranks that meet over TCP with a secret: unknown peers, wrong secrets and replayed messages are
 * not admitted, and the job runs on. `make e2e` sets RENDEZVOUS_TRIES and RENDEZVOUS_CLIENTS to
 * 1,000 attempts to be admitted and 4,096 clients. */
#include "unit/rendezvous_ranks.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/mem.h"

#define SECRET "correct horse battery staple"
#define OTHER  "another secret of the same length"

static int number_from(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : otherwise;
}

static int allgather_ranks(struct ddp_comm *comm, struct ddp_err *err)
{
    int all[RANKS_MAX];
    DDP_TRY(ddp_comm_allgather_bytes(comm, &comm->rank, all, sizeof comm->rank, err));
    for (int r = 0; r < comm->size; r++) {
        if (all[r] != r)
            return ddp_fail(err, DDP_EDATA, "rank %d sent %d", r, all[r]);
    }
    return ddp_comm_agree(comm, 0, err);
}

/* Also meets in a group, whose first rank is not rank 0. */
static int use_group(struct ddp_comm *comm, struct ddp_err *err)
{
    const int ranks[] = {1, 2};
    struct ddp_comm *group;
    DDP_TRY(allgather_ranks(comm, err));
    if (comm->rank == 0)
        return ddp_comm_agree(comm, 0, err);
    DDP_TRY(ddp_comm_group(comm, ranks, 2, &group, err));
    DDP_TRY(allgather_ranks(group, err));
    ddp_comm_destroy(group);
    return ddp_comm_agree(comm, 0, err);
}

static void test_meet(void **state)
{
    (void)state;
    const int port = free_port();
    for (int r = 2; r >= 0; r--)
        start(r, (struct process){
                     .secret = SECRET, .port = port, .rank = r, .size = 3, .body = use_group});
    for (int r = 0; r < 3; r++)
        finish(r);
    for (int r = 0; r < 3; r++)
        assert_says(r, 0, "");
}

/* The messages of one client, which an attacker may have recorded. */
struct recording {
    struct ddp_hello hello;
    struct ddp_challenge challenge;
    unsigned char proof[DDP_SHA256_BYTES];
};

/* Joins the job on `port` as rank 1 of 2 with the right secret, and records the messages. Returns
 * the connection. */
static int join_and_record(int port, struct recording *r)
{
    const struct ddp_job_key key = key_of(port, SECRET);
    r->hello = hello_of(1, 2, key.token);
    r->hello.has_secret = 1;
    memset(r->hello.nonce, 0x5a, sizeof r->hello.nonce);
    const int fd = speak(port, &r->hello, sizeof r->hello);
    assert_int_equal(
        ddp_tcp_receive(fd, &r->challenge, sizeof r->challenge, ddp_now_ns() + 10 * SECOND), 0);
    ddp_rendezvous_prove(&key, true, &r->hello, r->challenge.nonce, r->proof);
    assert_memory_equal(r->proof, r->challenge.proof, sizeof r->proof);
    ddp_rendezvous_prove(&key, false, &r->hello, r->challenge.nonce, r->proof);
    assert_int_equal(ddp_tcp_send(fd, r->proof, sizeof r->proof, ddp_now_ns() + SECOND), 0);
    return fd;
}

/* Sends a hello and a proof of the server's challenge. Returns the server's answer, or 0 if it
 * closes the connection. */
static uint32_t attack(int port, const struct ddp_hello *hello, const struct ddp_job_key *key,
                       const unsigned char *replayed)
{
    struct ddp_challenge c;
    unsigned char proof[DDP_SHA256_BYTES];
    const int fd = speak(port, hello, sizeof *hello);
    uint32_t verdict = 0;
    if (ddp_tcp_receive(fd, &c, sizeof c, ddp_now_ns() + 10 * SECOND) == 0 &&
        c.magic == DDP_CHALLENGE_MAGIC) {
        ddp_rendezvous_prove(key, false, hello, c.nonce, proof);
        /* The server's own proof is no proof of the client. */
        const unsigned char *sent = replayed != NULL ? replayed : key->has_secret ? proof : c.proof;
        (void)!ddp_tcp_send(fd, sent, sizeof proof, ddp_now_ns() + SECOND);
        verdict = heard(fd);
    }
    close(fd);
    return verdict;
}

/* Attacks the job on `port` once, in a way that depends on `i`. Returns whether an attacker was
 * admitted. *open becomes a connection that stays open, or -1. */
static bool attack_once(int i, int port, const struct recording *recording, int *open)
{
    const struct ddp_job_key key = key_of(port, OTHER), none = {0};
    struct ddp_hello hello = hello_of(1, 2, key.token);
    unsigned char noise[200];
    *open = -1;
    hello.has_secret = 1;
    for (size_t b = 0; b < sizeof noise; b++)
        noise[b] = (unsigned char)((size_t)i * 31 + b * 7);
    switch (i % 8) {
    case 0:
        *open = speak(port, noise, sizeof noise);
        return false;
    case 1: /* half-open: nothing, or a part of a hello */
        *open = speak(port, &hello, (size_t)i % sizeof hello);
        return false;
    case 2: /* slow: the challenge is never answered completely */
        *open = speak(port, &hello, sizeof hello);
        (void)!ddp_tcp_send(*open, noise, (size_t)i % DDP_SHA256_BYTES, ddp_now_ns() + SECOND);
        return false;
    case 3:
        return attack(port, &hello, &key, NULL) != 0;
    case 4:
        return attack(port, &recording->hello, &key, recording->proof) != 0;
    case 5:
        return attack(port, &hello, &none, NULL) != 0;
    case 6: /* the numbers contradict the job's, but nothing proves that they are a rank's */
        hello.size = 7;
        return attack(port, &hello, &key, NULL) != 0;
    default: /* without a secret */
        hello.has_secret = 0;
        *open = speak(port, &hello, sizeof hello);
        return heard(*open) != DDP_ANSWER_REFUSED;
    }
}

static void test_attacks(void **state)
{
    (void)state;
    const int port = free_port(), tries = number_from("RENDEZVOUS_TRIES", 200);
    struct recording recording;
    int *open = calloc((size_t)tries, sizeof *open), admitted = 0;
    /* The attacker has recorded an earlier job with the same secret. */
    start(0, (struct process){.secret = SECRET, .port = port, .rank = 0, .size = 2});
    const int recorded = join_and_record(port, &recording);
    assert_int_equal(heard(recorded), DDP_ANSWER_ACCEPTED);
    assert_int_equal(heard(recorded), DDP_ANSWER_READY);
    close(recorded);
    finish(0);
    start(0, (struct process){
                 .secret = SECRET, .port = port, .rank = 0, .size = 2, .body = allgather_ranks});
    for (int i = 0; i < tries; i++)
        admitted += attack_once(i, port, &recording, &open[i]);
    assert_int_equal(admitted, 0);
    start(1, (struct process){
                 .secret = SECRET, .port = port, .rank = 1, .size = 2, .body = allgather_ranks});
    for (int r = 0; r < 2; r++)
        finish(r);
    for (int r = 0; r < 2; r++)
        assert_says(r, 0, "");
    for (int i = 0; i < tries; i++) {
        if (open[i] >= 0)
            close(open[i]);
    }
    free(open);
}

static void test_wrong_secret(void **state)
{
    (void)state;
    const int port = free_port();
    start(0, (struct process){
                 .secret = SECRET, .port = port, .rank = 0, .size = 2, .body = allgather_ranks});
    start(2, (struct process){
                 .secret = OTHER, .port = port, .rank = 1, .size = 2, .timeout_ns = SECOND});
    start(3, (struct process){.port = port, .rank = 1, .size = 2, .timeout_ns = SECOND});
    finish(2);
    finish(3);
    assert_says(2, DDP_EMISMATCH, "rank 1|127.0.0.1|DDPBENCH_SECRET");
    assert_says(3, DDP_EMISMATCH, "rank 1|DDPBENCH_SECRET");
    start(1, (struct process){
                 .secret = SECRET, .port = port, .rank = 1, .size = 2, .body = allgather_ranks});
    finish(0);
    finish(1);
    assert_says(0, 0, "");
    assert_says(1, 0, "");
}

/* If all the other ranks have another secret, the hint of rank 0 says so. */
static void test_no_right_secret(void **state)
{
    (void)state;
    const int port = free_port();
    for (int r = 0; r < 2; r++)
        start(r, (struct process){.secret = r == 0 ? SECRET : OTHER,
                                  .port = port,
                                  .rank = r,
                                  .size = 2,
                                  .timeout_ns = SECOND});
    for (int r = 0; r < 2; r++)
        finish(r);
    assert_says(0, DDP_ELOST, "rank 1|2");
    assert_true(text_names(outcomes[0].hint, "DDPBENCH_SECRET"));
    assert_int_not_equal(outcomes[1].code, 0);
}

/* A process that listens on the job's port, but does not know the secret, cannot end a rank: it
 * replays a recorded challenge, or refuses the rank with a text of its own. */
static void test_false_server(void **state)
{
    (void)state;
    const int port = free_port();
    struct recording recording;
    struct ddp_tcp_address own;
    struct sockaddr_storage from;
    struct ddp_hello hello;
    struct ddp_answer refusal = {
        .magic = DDP_ANSWER_MAGIC, .verdict = DDP_ANSWER_REFUSED, .code = DDP_ENOMEM, .text = "no"};
    int count, fd, listener, bound;
    start(0, (struct process){.secret = SECRET, .port = port, .rank = 0, .size = 2});
    close(join_and_record(port, &recording));
    finish(0);
    /* The rank starts first, so that it does not inherit the listener. */
    start(1, (struct process){.secret = SECRET,
                              .port = port,
                              .rank = 1,
                              .size = 2,
                              .timeout_ns = 60 * SECOND,
                              .body = allgather_ranks});
    assert_int_equal(ddp_tcp_resolve("127.0.0.1", INT64_MAX, &own, &count, NULL), 0);
    assert_int_equal(ddp_tcp_listen(&own, port, &listener, &bound), 0);
    for (int i = 0; i < 4; i++) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 20000), 1);
        fd = ddp_tcp_accept(listener, &from);
        assert_int_equal(ddp_tcp_receive(fd, &hello, sizeof hello, ddp_now_ns() + 10 * SECOND), 0);
        const bool refuses = i % 2 == 1;
        assert_int_equal(ddp_tcp_send(fd, refuses ? (void *)&refusal : &recording.challenge,
                                      refuses ? sizeof refusal : sizeof recording.challenge,
                                      ddp_now_ns() + SECOND),
                         0);
        if (!refuses) /* the client sends no proof, which a false server could pass on */
            assert_int_equal(heard(fd), 0);
        close(fd);
    }
    close(listener);
    start(0, (struct process){
                 .secret = SECRET, .port = port, .rank = 0, .size = 2, .body = allgather_ranks});
    finish(0);
    finish(1);
    assert_says(0, 0, "");
    assert_says(1, 0, "");
}

/* Clients of one process, which are threads. */
#define CLIENTS_OF_PROCESS 128

struct client {
    const struct ddp_rendezvous_config *config;
    int rank, size, rc;
};

static void *client_main(void *arg)
{
    struct client *c = arg;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_connections connections;
    struct ddp_listener listener;
    struct ddp_endpoint *endpoint = calloc((size_t)c->size, sizeof *endpoint);
    c->rc = ddp_rendezvous_world(c->config, c->rank, c->size, 60 * SECOND, &connections, &listener,
                                 endpoint, &err);
    if (c->rc == 0) {
        ddp_connections_close(&connections);
        ddp_listener_close(&listener);
    }
    free(endpoint);
    return NULL;
}

/* Runs the clients [first, last) and returns the number of errors. */
static int run_clients(const struct ddp_rendezvous_config *config, int first, int last, int size)
{
    pthread_t threads[CLIENTS_OF_PROCESS];
    struct client clients[CLIENTS_OF_PROCESS];
    pthread_attr_t small;
    int errors = 0, n = last - first;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 262144);
    for (int i = 0; i < n; i++) {
        clients[i] = (struct client){.config = config, .rank = first + i, .size = size};
        if (pthread_create(&threads[i], &small, client_main, &clients[i]) != 0)
            return n;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        errors += clients[i].rc != 0;
    }
    return errors;
}

static void test_many(void **state)
{
    (void)state;
    const int size = number_from("RENDEZVOUS_CLIENTS", 200), most_s = 10;
    struct ddp_rendezvous_config config = {
        .host = "127.0.0.1", .port = free_port(), .ports = DDP_RENDEZVOUS_PORTS};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_connections connections;
    struct ddp_listener listener;
    struct ddp_endpoint *endpoint = calloc((size_t)size, sizeof *endpoint);
    struct rlimit limit;
    int children_count = 0, status;
    config.key = key_of(config.port, SECRET);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < (rlim_t)size + 100) {
        print_message("the limit on open files (ulimit -Hn) is too low\n");
        skip();
    }
    for (int first = 1; first < size; first += CLIENTS_OF_PROCESS, children_count++) {
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(run_clients(&config, first, DDP_MIN(first + CLIENTS_OF_PROCESS, size), size));
    }
    const int64_t began = ddp_now_ns();
    const int rc = ddp_rendezvous_world(&config, 0, size, 60 * SECOND, &connections, &listener,
                                        endpoint, &err);
    const double took_s = (double)(ddp_now_ns() - began) / 1e9;
    for (int i = 0; i < children_count; i++) {
        assert_true(waitpid(-1, &status, 0) > 0);
        assert_int_equal(status, 0);
    }
    if (rc != 0)
        fail_msg("%d clients: %s", size, err.text);
    print_message("# %d clients met in %.2f s\n", size, took_s);
    assert_true(took_s < most_s);
    ddp_connections_close(&connections);
    ddp_listener_close(&listener);
    free(endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_attacks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_secret, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_right_secret, setup, teardown),
        cmocka_unit_test_setup_teardown(test_false_server, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
    };
    return cmocka_run_group_tests_name("rendezvous_secret", tests, NULL, NULL);
}
