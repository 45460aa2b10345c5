/* The environment and the host: ddpbench's variables, and control groups of both versions. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "names.h"
#include "temp_files.h"

static void test_conf(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    for (int i = 0; i < DDP_CONF_COUNT; i++) {
        assert_int_equal(strncmp(ddp_conf_rows()[i].variable, "DDPBENCH_", 9), 0);
        assert_true(strlen(ddp_conf_rows()[i].help) > 10);
        unsetenv(ddp_conf_rows()[i].variable);
    }
    /* the tests use this name; without an underscore it is not a variable of ddpbench */
    unsetenv("DDPBENCH");
    assert_int_equal(ddp_conf_check(&err), 0);
    assert_null(ddp_conf_get(DDP_CONF_DATA_DIR));
    setenv("DDPBENCH_DATA_DIR", "", 1);
    assert_null(ddp_conf_get(DDP_CONF_DATA_DIR));
    setenv("DDPBENCH_DATA_DIR", "/somewhere", 1);
    assert_string_equal(ddp_conf_get(DDP_CONF_DATA_DIR), "/somewhere");
    assert_int_equal(ddp_conf_check(&err), 0);
}

static void test_conf_mistakes(void **state)
{
    static const struct {
        const char *variable, *value, *text, *hint;
    } cases[] = {
        {"DDPBENCH_SIND", "avx2", "'DDPBENCH_SIND'", "'DDPBENCH_SIMD'"},
        {"DDPBENCH_DATADIR", "x", "'DDPBENCH_DATADIR'", "'DDPBENCH_DATA_DIR'"},
        {"DDPBENCH_SOMETHING_ELSE_ALTOGETHER", "", "ALTOGETHER'", "help environment"},
        {"DDPBENCH_", "", "'DDPBENCH_'", ""},
        {"DDPBENCH_SIMD", "sse9", "'sse9'", "scalar|avx2|avx512"},
        {"DDPBENCH_SIMD", "AVX2", "'AVX2'", "avx2"},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        setenv(cases[i].variable, cases[i].value, 1);
        int rc = ddp_conf_check(&err);
        unsetenv(cases[i].variable);
        if (rc != DDP_EUSAGE || !text_names(err.text, cases[i].text) ||
            !text_names(err.hint, cases[i].hint))
            fail_msg("%s: %d %s; %s", cases[i].variable, rc, err.text, err.hint);
    }
    struct ddp_err err = DDP_ERR_INIT;
    setenv("DDPBENCH_FAULT", "send:1:kill", 1);
    assert_int_equal(ddp_conf_check(&err), DDP_EUSAGE);
    unsetenv("DDPBENCH_FAULT");
}

static struct ddp_cgroup read_groups(void)
{
    char membership[128], mount[128];
    struct ddp_cgroup group;
    snprintf(membership, sizeof membership, "%s/membership", root);
    snprintf(mount, sizeof mount, "%s/mount", root);
    ddp_cgroup_read(membership, mount, &group);
    return group;
}

static void test_cgroup_v2(void **state)
{
    write_file("membership", "0::/job/step\n");
    write_file("mount/memory.max", "max\n");
    write_file("mount/job/memory.max", "1000000\n");
    write_file("mount/job/memory.current", "700000\n");
    write_file("mount/job/memory.stat", "anon 5\nfile 300000\ninactive_file 200000\nslab 3\n");
    write_file("mount/job/step/memory.max", "max\n");
    write_file("mount/job/step/cpu.max", "max 100000\n");
    write_file("mount/job/cpu.max", "150000 100000\n");
    struct ddp_cgroup g = read_groups();
    assert_int_equal(g.memory_bytes, 1000000);
    assert_int_equal(g.available_bytes, 500000); /* 1000000 - (700000 - 200000) */
    assert_true(g.cpu_quota == 1.5);
    write_file("mount/job/step/memory.max", "400000\n");
    write_file("mount/job/step/memory.current", "500000\n");
    g = read_groups();
    assert_int_equal(g.memory_bytes, 400000);
    assert_int_equal(g.available_bytes, 0);
}

static void test_cgroup_v1(void **state)
{
    write_file("membership", "5:cpuset:/x\n4:cpu,cpuacct:/job\n3:memory:/job\n1:name=systemd:/\n");
    write_file("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("mount/memory/job/memory.limit_in_bytes", "2000000\n");
    write_file("mount/memory/job/memory.usage_in_bytes", "500000\n");
    write_file("mount/cpu/job/cpu.cfs_quota_us", "50000\n");
    write_file("mount/cpu/job/cpu.cfs_period_us", "100000\n");
    write_file("mount/cpu/cpu.cfs_quota_us", "-1\n");
    write_file("mount/cpu/cpu.cfs_period_us", "100000\n");
    struct ddp_cgroup g = read_groups();
    assert_int_equal(g.memory_bytes, 2000000);
    assert_int_equal(g.available_bytes, 1500000);
    assert_true(g.cpu_quota == 0.5);
}

static void test_cgroup_of_a_container(void **state)
{
    /* The path is that of the host. Inside the container only the mount exists, and it is the
     * process's group. */
    write_file("membership", "0::/system.slice/docker-0123.scope\n");
    write_file("mount/memory.max", "3000000\n");
    write_file("mount/memory.current", "1000000\n");
    struct ddp_cgroup g = read_groups();
    assert_int_equal(g.memory_bytes, 3000000);
    assert_int_equal(g.available_bytes, 2000000);
}

static int64_t oom_kills(void)
{
    char membership[128], mount[128];
    snprintf(membership, sizeof membership, "%s/membership", root);
    snprintf(mount, sizeof mount, "%s/mount", root);
    return ddp_cgroup_oom_kills(membership, mount);
}

static void test_oom_kills(void **state)
{
    assert_int_equal(oom_kills(), -1);
    write_file("membership", "4:cpu:/job\n3:memory:/job\n0::/\n");
    write_file("mount/memory/job/memory.oom_control", "oom_kill_disable 0\noom_kill 3\n");
    assert_int_equal(oom_kills(), 3);
    /* The path of the group may be missing in a container. */
    write_file("membership", "3:memory:/docker/0123\n");
    write_file("mount/memory/memory.oom_control", "under_oom 0\noom_kill 4\n");
    assert_int_equal(oom_kills(), 4);
    write_file("membership", "0::/job\n");
    assert_int_equal(oom_kills(), -1);
    write_file("mount/job/memory.events", "max 9\noom 5\noom_kill 2\noom_group_kill 7\n");
    assert_int_equal(oom_kills(), 2);
}

static void test_no_cgroup(void **state)
{
    struct ddp_cgroup g = read_groups();
    assert_int_equal(g.memory_bytes, -1);
    assert_int_equal(g.available_bytes, -1);
    assert_true(isnan(g.cpu_quota));
    write_file("membership", "nonsense\n0::\n0:\n:::\n\n0::/\n");
    g = read_groups();
    assert_int_equal(g.memory_bytes, -1);
}

static void test_sysinfo(void **state)
{
    struct ddp_sysinfo info;
    ddp_sysinfo_read(&info);
    assert_true(info.cores >= 1);
    assert_true(info.memory_bytes > 1 << 20);
    assert_true(info.available_bytes > 0 && info.available_bytes <= info.memory_bytes);
    assert_true(strlen(info.kernel) > 0);
    assert_true(strlen(info.host) > 0);
    assert_true(isnan(info.load) || info.load >= 0);
    assert_null(strpbrk(info.thp, "[] \n"));
    assert_null(strpbrk(info.shmem_thp, "[] \n"));
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

/* A name that does not fit is skipped, and an empty folder is the current one. */
static void test_search_path(void **state)
{
    (void)state;
    const char *path = "/first::/much-too-long-a-folder:/b";
    char file[16], found[4096];
    assert_true(ddp_search_next(&path, "name", file, sizeof file));
    assert_string_equal(file, "/first/name");
    assert_true(ddp_search_next(&path, "name", file, sizeof file));
    assert_string_equal(file, "name");
    assert_true(ddp_search_next(&path, "name", file, sizeof file));
    assert_string_equal(file, "/b/name");
    assert_false(ddp_search_next(&path, "name", file, sizeof file));
    assert_true(ddp_find_program("sh", found, sizeof found));
    assert_int_equal(access(found, X_OK), 0);
    assert_false(ddp_find_program("no-such-program", found, sizeof found));
}

static void test_memory_check(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    char text[24];
    assert_int_equal(ddp_memory_check(UINT64_MAX, -1, &err, "x"), 0);
    assert_int_equal(ddp_memory_check(1024, 1024, &err, "x"), 0);
    assert_int_equal(ddp_memory_check(1025, 1024, &err, "%s needs more", "this"), DDP_ENOMEM);
    assert_true(text_names(err.text, "this needs more|1"));
    ddp_memory_text(-1, text, sizeof text);
    assert_string_equal(text, "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conf),
        cmocka_unit_test(test_conf_mistakes),
        WITH_ROOT(test_cgroup_v2),
        WITH_ROOT(test_cgroup_v1),
        WITH_ROOT(test_cgroup_of_a_container),
        WITH_ROOT(test_oom_kills),
        WITH_ROOT(test_no_cgroup),
        cmocka_unit_test(test_sysinfo),
        cmocka_unit_test(test_search_path),
        cmocka_unit_test(test_memory_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
