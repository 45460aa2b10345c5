/* The handshake finds ranks that have another build or other arguments. All ranks get the same
 * error, which names these ranks and the first difference. Ranks are threads
 * (DDP_LAUNCH_THREADS). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "comm/handshake.h"
#include "comm_ranks.h"
#include "names.h"

#define ARGS_MAX 6

/* The ranks that differ from the others, and their values. NULL: no difference. */
struct odd {
    uint64_t who; /* bit r is set if rank r differs */
    const char *version, *commit, *flags;
    const char *args[ARGS_MAX];
};

static int count_args(const char *const *args)
{
    int n = 0;
    while (n < ARGS_MAX && args[n] != NULL)
        n++;
    return n;
}

static int body(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg, struct ddp_err *err)
{
    static const char *const usual[] = {"allreduce", "--size", "1M", "-n", "5", NULL};
    const struct odd *odd = arg;
    const bool is_odd = odd->who >> comm->rank & 1;
    const char *const *args = is_odd && odd->args[0] != NULL ? odd->args : usual;
    const char *flags = is_odd && odd->flags != NULL ? odd->flags : "cc -O3";
    struct ddp_handshake_card card;
    (void)rank;
    ddp_handshake_fill(count_args(args), (char *const *)args, &card);
    card.flags_hash = strlen(flags);
    if (is_odd && odd->version != NULL)
        snprintf(card.version, sizeof card.version, "%s", odd->version);
    if (is_odd && odd->commit != NULL)
        snprintf(card.commit, sizeof card.commit, "%s", odd->commit);

    struct ddp_err said = DDP_ERR_INIT;
    int rc = ddp_handshake_card(comm, &card, flags, (char *const *)args, &said);
    CHECK(rc == (odd->who != 0 ? DDP_EMISMATCH : 0));
    CHECK(said.agreed == (rc != 0));
    /* All ranks get the same message. */
    struct ddp_err all[8];
    DDP_TRY(ddp_comm_allgather_bytes(comm, &said, all, sizeof said, err));
    for (int r = 0; r < comm->size; r++)
        CHECK(strcmp(all[r].text, said.text) == 0 && strcmp(all[r].hint, said.hint) == 0);
    *err = said;
    return rc;
}

static void assert_said(struct odd odd, const char *expected)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ranks_job job = {.body = body, .arg = &odd};
    assert_int_equal(ranks_run(4, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
    if (!text_names(err.text, expected) || (expected[0] == '\0' && err.text[0] != '\0'))
        fail_msg("'%s' does not name %s", err.text, expected);
    assert_int_equal(outcome.code, expected[0] != '\0' ? DDP_EMISMATCH : 0);
}

static void test_agree(void **state)
{
    (void)state;
    assert_said((struct odd){.who = 0}, "");
}

static void test_args(void **state)
{
    (void)state;
    assert_said((struct odd){.who = 2, .args = {"allreduce", "--size", "2M", "-n", "5"}},
                "rank 1|'--size 2M'|rank 0|'--size 1M'");
    assert_said((struct odd){.who = 12, .args = {"allreduce", "--size", "1M", "-n", "6"}},
                "ranks 2, 3|rank 2|'-n 6'|rank 0|'-n 5'");
    assert_said((struct odd){.who = 8, .args = {"train"}}, "rank 3|'train'|rank 0|'allreduce'");
    assert_said((struct odd){.who = 4, .args = {"allreduce", "--size", "1M", "-n", "5", "-v"}},
                "rank 2|'-v'|rank 0");
    assert_said((struct odd){.who = 4, .args = {"allreduce", "--size", "1M"}},
                "rank 2|rank 0|'-n'");
    assert_said((struct odd){.who = 2, .args = {"allreduce", "--size", "", "-n", "5"}},
                "rank 1|'--size ''|rank 0|'--size 1M'");
    /* Arguments are compared one by one and not as one joined string. */
    assert_said((struct odd){.who = 2, .args = {"allreduce", "--size", "1M-n", "5"}},
                "rank 1|'--size 1M-n'|rank 0|'--size 1M'");
    /* Control characters in an argument are made printable. */
    assert_said((struct odd){.who = 2, .args = {"allreduce", "\033[2J"}},
                "rank 1|'?[2J'|rank 0|'--size'");
}

/* An argument of one megabyte, and a difference behind it, are reported in shortened form. */
static void test_long_args(void **state)
{
    (void)state;
    char *big = malloc(1 << 20);
    assert_non_null(big);
    memset(big, 'x', (1 << 20) - 1);
    big[(1 << 20) - 1] = '\0';
    assert_said((struct odd){.who = 2, .args = {"allreduce", big}}, "rank 1|rank 0|'--size'");
    free(big);
}

static void test_builds(void **state)
{
    char expected[512];
    const char *version = ddp_build_version(), *commit = ddp_build_commit();
    (void)state;
    snprintf(expected, sizeof expected, "rank 3|%s (0123abc)|rank 0|%s (%s)", version, version,
             commit);
    assert_said((struct odd){.who = 8, .commit = "0123abc", .flags = "cc -O0"}, expected);
    snprintf(expected, sizeof expected, "ranks 1, 2|9.9.9 (%s)|rank 0|%s (%s)", commit, version,
             commit);
    assert_said((struct odd){.who = 6, .version = "9.9.9"}, expected);
    assert_said((struct odd){.who = 2, .flags = "cc -O2 -g", .args = {"train"}},
                "rank 1|'cc -O2 -g'|rank 0|'cc -O3'");
}

/* The complete handshake, with the facts of this build. */
static int body_real(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                     struct ddp_err *err)
{
    const char *const words[] = {"allreduce", comm->rank == 2 ? "-v" : "-q"};
    char *const *args = (char *const *)words;
    (void)rank;
    (void)arg;
    DDP_TRY(ddp_handshake(comm, 0, NULL, err));
    DDP_TRY(ddp_handshake(comm, 1, args, err));
    return ddp_handshake(comm, 2, args, err);
}

static void test_real(void **state)
{
    (void)state;
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ranks_job job = {.body = body_real};
    assert_int_equal(ranks_run(3, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
    assert_int_equal(outcome.code, DDP_EMISMATCH);
    assert_true(text_names(err.text, "rank 2|'-v'|rank 0|'-q'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agree),  cmocka_unit_test(test_args),
        cmocka_unit_test(test_builds), cmocka_unit_test(test_long_args),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
