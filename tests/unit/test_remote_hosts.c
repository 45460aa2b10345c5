/* The hosts of --hosts and --hostfile, and the code of a job whose ranks fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "names.h"
#include "run/remote.h"

/* Checks that the text is read as `expected`, "NAME/RANKS NAME/RANKS". */
static void reads(const char *text, bool is_file, const char *expected)
{
    struct ddp_remote_hosts hosts;
    struct ddp_err err = DDP_ERR_INIT;
    char found[1024] = "";
    size_t n = 0;
    int ranks = 0;
    assert_int_equal(ddp_remote_parse(text, is_file, &hosts, &err), 0);
    for (int i = 0; i < hosts.count; i++) {
        n += (size_t)snprintf(found + n, sizeof found - n, "%s%s/%d", i > 0 ? " " : "",
                              hosts.host[i].name, hosts.host[i].ranks);
        ranks += hosts.host[i].ranks;
    }
    assert_string_equal(found, expected);
    assert_int_equal(hosts.ranks, ranks);
    free(hosts.host);
}

static void refuses(const char *text, const char *subjects)
{
    struct ddp_remote_hosts hosts;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_remote_parse(text, false, &hosts, &err), DDP_EUSAGE);
    if (!text_names(err.text, subjects))
        fail_msg("'%s': %s", text, err.text);
    assert_null(hosts.host);
}

static void test_list(void **state)
{
    (void)state;
    char many[32 * 20] = "";
    reads("a:2,b:3", false, "a/2 b/3");
    reads("a", false, "a/1");
    reads("u@a.b-c:12,d", false, "u@a.b-c/12 d/1");
    reads("[fe80::1]:4,::2,[::3]", false, "fe80::1/4 ::2/1 ::3/1");
    reads("localhost:4", false, "localhost/4");
    refuses("", "''");
    refuses("a,,b", "''");
    refuses("a:", "'a:'");
    refuses("a:x", "'a:x'");
    refuses(":3", "':3'");
    refuses("a:99999999999999999999", "'a:99999999999999999999'");
    refuses("[]:3", "'[]:3'");
    refuses("a,a:2", "'a'");
    refuses("a,127.0.0.1", "'127.0.0.1'");
    for (int i = 0; i < 17; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sh%d:256", i > 0 ? "," : "", i);
    refuses(many, "4096");
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/ddp-hosts-XXXXXX";
    const int fd = mkstemp(path);
    static const char text[] = "# nodes\na slots=2\r\n\n  b:3 # comment\n\tc\n";
    assert_true(fd >= 0);
    assert_true(write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    reads(path, true, "a/2 b/3 c/1");
    static const char *const illegal[] = {"a b\n", "a slots=0\n", "a slots=2 x\n", "# nothing\n",
                                          "a:2 slots=3x\n"};
    for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++) {
        struct ddp_remote_hosts hosts;
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_true(pwrite(fd, illegal[i], strlen(illegal[i]), 0) > 0);
        assert_int_equal(ddp_remote_parse(path, true, &hosts, &err), DDP_ECONFIG);
    }
    close(fd);
    unlink(path);
}

static void test_code(void **state)
{
    (void)state;
    int code = 0;
    ddp_remote_add_code(&code, 0);
    assert_int_equal(code, 0);
    ddp_remote_add_code(&code, DDP_ELOST);
    assert_int_equal(code, DDP_ELOST);
    ddp_remote_add_code(&code, 0);
    assert_int_equal(code, DDP_ELOST);
    ddp_remote_add_code(&code, -(128 + 15)); /* the others were ended */
    assert_int_equal(code, DDP_ELOST);
    ddp_remote_add_code(&code, DDP_EDATA); /* the cause, of which the lost rank is a consequence */
    assert_int_equal(code, DDP_EDATA);
    ddp_remote_add_code(&code, DDP_EUNAVAIL);
    assert_int_equal(code, DDP_EDATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
