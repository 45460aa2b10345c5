#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/coll_kind.h"
#include "base/dtype.h"
#include "diag/flight.h"
#include "names.h"

static struct ddp_flight *new_flight(void)
{
    struct ddp_flight *f = calloc(1, sizeof *f);
    assert_non_null(f);
    return f;
}

/* Enters an operation of the world (group 0) or of a group of 3 ranks. */
static uint64_t enter(struct ddp_flight *f, unsigned what, unsigned dtype, uint64_t bytes,
                      uint64_t group, uint64_t seq)
{
    const struct ddp_flight_op op = {
        .what = what, .dtype = dtype, .bytes = bytes, .group = group, .seq = seq, .ranks = 3};
    return ddp_flight_enter_op(f, &op);
}

static void assert_describes(const struct ddp_flight *f, const char *expected)
{
    char text[512];
    ddp_flight_describe(f, text, sizeof text);
    if (!text_names(text, expected))
        fail_msg("'%s' does not name %s", text, expected);
}

static void test_describe(void **state)
{
    struct ddp_flight *f = new_flight();
    assert_describes(f, "'start'");
    ddp_flight_phase(f, "init");
    assert_describes(f, "'init'");

    for (uint64_t i = 0; i < 41; i++)
        ddp_flight_leave(f, enter(f, DDP_BARRIER, 0, 0, 0, i), 0);
    ddp_flight_phase(f, "epoch %d step %d", 3, 41);
    assert_describes(f, "'epoch 3 step 41'|barrier seq 40");
    uint64_t index = enter(f, DDP_ALLREDUCE, DDP_F32, 64u << 20, 0, 7);
    assert_describes(f, "allreduce seq 7|64 MiB, f32|'epoch 3 step 41'");
    uint64_t busy = 0;
    assert_true(ddp_flight_busy(f, &busy));
    assert_int_equal(busy, 41);
    assert_int_equal(index, 41);
    ddp_flight_leave(f, index, 1);
    assert_false(ddp_flight_busy(f, &busy));
    assert_describes(f, "allreduce seq 7|64 MiB, f32|'epoch 3 step 41'");
    enter(f, DDP_FLIGHT_EXCHANGE, 0, 16, 99, 5);
    assert_describes(f, "exchange seq 5|3|16 B|'epoch 3 step 41'");
    /* An operation of one rank alone has no number. */
    ddp_flight_enter(f, DDP_FLIGHT_RECV, 0, 16);
    assert_describes(f, "receive|16 B|'epoch 3 step 41'");
    free(f);
}

static void test_wraps(void **state)
{
    struct ddp_flight *f = new_flight();
    struct ddp_flight_op op;
    enum ddp_flight_state how;
    for (uint64_t i = 0; i < 3 * DDP_FLIGHT_DEPTH + 5; i++)
        ddp_flight_leave(f, enter(f, DDP_BROADCAST, DDP_F16, 2, 0, i), 0);
    ddp_flight_phase(f, "p");
    assert_describes(f, "'p'|broadcast seq 3076|2 B, f16");
    assert_true(ddp_flight_at(f, 3076, &op, &how));
    assert_true(ddp_flight_at(f, 3077 - (DDP_FLIGHT_DEPTH - 1), &op, &how));
    assert_int_equal(op.seq, 3077 - (DDP_FLIGHT_DEPTH - 1));
    assert_int_equal(how, DDP_FLIGHT_DONE);
    assert_false(ddp_flight_at(f, 3077, &op, &how));
    assert_false(ddp_flight_at(f, 3077 - DDP_FLIGHT_DEPTH, &op, &how));
    free(f);
}

/* A phase text that is long or hostile is cut and made printable. */
static void test_phase_text(void **state)
{
    struct ddp_flight *f = new_flight();
    char longest[400], text[512];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ddp_flight_phase(f, "%s", longest);
    ddp_flight_describe(f, text, sizeof text);
    assert_int_equal(strspn(strchr(text, '\'') + 1, "x"), DDP_FLIGHT_PHASE_BYTES - 1);
    ddp_flight_phase(f, "a\033[31mb");
    assert_describes(f, "'a?[31mb'");
    /* A small buffer is not overrun. */
    char small[8] = "";
    ddp_flight_describe(f, small, sizeof small);
    assert_int_equal(strlen(small), sizeof small - 1);
    free(f);
}

static void test_names(void **state)
{
    assert_string_equal(ddp_flight_what(DDP_ALLREDUCE), "allreduce");
    assert_string_equal(ddp_flight_what(DDP_FLIGHT_SEND), "send");
    assert_string_equal(ddp_flight_what(DDP_FLIGHT_ALLOC), "alloc");
    assert_non_null(ddp_flight_what(200));
}

/* A reader never sees half of one phase and half of another. (A writer without pauses could
 * starve the reader, but phases are rare among operations.) */
static void *writer(void *arg)
{
    struct ddp_flight *f = arg;
    for (int i = 0; i < 5000; i++) {
        char letter = (char)('a' + i % 26);
        char text[101];
        memset(text, letter, 100);
        text[100] = '\0';
        ddp_flight_phase(f, "%s", text);
        for (int k = 0; k < 100; k++)
            ddp_flight_leave(f, ddp_flight_enter(f, DDP_BARRIER, 0, 0), 0);
    }
    return NULL;
}

static void test_torn_phase(void **state)
{
    struct ddp_flight *f = new_flight();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, writer, f), 0);
    for (int i = 0; i < 5000; i++) {
        char text[512];
        ddp_flight_describe(f, text, sizeof text);
        const char *quote = strchr(text, '\'');
        assert_non_null(quote);
        if (strncmp(quote + 1, "start", 5) == 0)
            continue;
        char only[2] = {quote[1], '\0'};
        assert_int_equal(strspn(quote + 1, only), 100);
    }
    pthread_join(thread, NULL);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe),   cmocka_unit_test(test_wraps),
        cmocka_unit_test(test_phase_text), cmocka_unit_test(test_names),
        cmocka_unit_test(test_torn_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
