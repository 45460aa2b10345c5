/* Facts and counters of the network, from files as Linux shows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/network.h"
#include "temp_files.h"

static void test_facts(void **state)
{
    struct ddp_network_facts facts;
    char text[96], driver[128];
    (void)state;
    ddp_network_facts_read(root, "eth7", &facts);
    assert_string_equal(facts.congestion_control, "");
    assert_true(facts.nic.speed_Mbps == -1 && facts.nic.mtu == -1);

    write_file("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
    write_file("sys/class/net/eth7/speed", "25000\n");
    write_file("sys/class/net/eth7/mtu", "9000\n");
    write_file("sys/class/net/eth7/device/other", "");
    snprintf(driver, sizeof driver, "%s/sys/class/net/eth7/device/driver", root);
    assert_int_equal(symlink("../../../bus/pci/drivers/mlx5_core", driver), 0);
    ddp_network_facts_read(root, "eth7", &facts);
    assert_string_equal(facts.congestion_control, "cubic");
    assert_string_equal(facts.nic.name, "eth7");
    assert_string_equal(facts.nic.driver, "mlx5_core");
    assert_true(facts.nic.speed_Mbps == 25000 && facts.nic.mtu == 9000);
    ddp_nic_text(&facts.nic, text, sizeof text);
    assert_string_equal(text, "eth7 (mlx5_core), 25 Gbit/s, MTU 9000");

    /* A virtual interface has no driver, and its speed is -1 or cannot be read. */
    write_file("sys/class/net/veth0/speed", "-1\n");
    write_file("sys/class/net/veth0/mtu", "1500\n");
    ddp_network_facts_read(root, "veth0", &facts);
    assert_true(facts.nic.speed_Mbps == -1 && facts.nic.driver[0] == '\0');
    ddp_nic_text(&facts.nic, text, sizeof text);
    assert_string_equal(text, "veth0, MTU 1500");

    ddp_network_facts_read(root, "", &facts);
    assert_true(facts.nic.name[0] == '\0' && facts.nic.mtu == -1);
    assert_string_equal(facts.congestion_control, "cubic");
    ddp_nic_text(&facts.nic, text, sizeof text);
    assert_string_equal(text, "");
}

static void put_counters(const char *retransmits, const char *timeouts, const char *errors)
{
    char text[256];
    snprintf(text, sizeof text,
             "Ip: A\nIp: 1\nTcp: InSegs OutSegs RetransSegs\nTcp: 7 1000 %s\nUdp: B\nUdp: 2\n",
             retransmits);
    write_file("proc/net/snmp", text);
    snprintf(text, sizeof text,
             "TcpExt: ListenDrops TCPTimeouts TCPBacklogDrop RcvPruned TCPRcvQDrop\n"
             "TcpExt: 50 %s 1 2 3\nIpExt: X\nIpExt: 0\n",
             timeouts);
    write_file("proc/net/netstat", text);
    write_file("sys/class/net/eth7/statistics/rx_errors", errors);
    write_file("sys/class/net/eth7/statistics/tx_errors", "4\n");
    write_file("sys/class/net/eth7/statistics/rx_dropped", "5\n");
    write_file("sys/class/net/eth7/statistics/rx_missed_errors", "6\n");
    write_file("sys/class/net/eth7/statistics/tx_dropped", "7\n");
}

static void test_counters(void **state)
{
    int64_t before[DDP_NET_COUNTERS], after[DDP_NET_COUNTERS];
    (void)state;
    ddp_network_count(root, "eth7", before);
    for (int i = 0; i < DDP_NET_COUNTERS; i++)
        assert_int_equal(before[i], -1);

    put_counters("9", "20", "10\n");
    ddp_network_count(root, "eth7", before);
    assert_int_equal(before[DDP_NET_SEGMENTS], 1000);
    assert_int_equal(before[DDP_NET_RETRANSMITS], 9);
    assert_int_equal(before[DDP_NET_TIMEOUTS], 20);
    assert_int_equal(before[DDP_NET_TCP_DROPS], 6); /* without ListenDrops */
    assert_int_equal(before[DDP_NET_NIC_ERRORS], 14);
    assert_int_equal(before[DDP_NET_NIC_DROPS], 18);

    put_counters("12", "21", "110\n");
    ddp_network_count(root, "eth7", after);
    ddp_network_count_since(before, after);
    assert_int_equal(after[DDP_NET_SEGMENTS], 0);
    assert_int_equal(after[DDP_NET_RETRANSMITS], 3);
    assert_int_equal(after[DDP_NET_TIMEOUTS], 1);
    assert_int_equal(after[DDP_NET_TCP_DROPS], 0);
    assert_int_equal(after[DDP_NET_NIC_ERRORS], 100);
    assert_int_equal(after[DDP_NET_NIC_DROPS], 0);

    /* Without an interface only TCP is known. A counter that is unknown once is unknown. */
    ddp_network_count(root, "", after);
    assert_int_equal(after[DDP_NET_RETRANSMITS], 12);
    assert_int_equal(after[DDP_NET_NIC_ERRORS], -1);
    ddp_network_count_since(before, after);
    assert_int_equal(after[DDP_NET_NIC_ERRORS], -1);
}

/* The loopback interface belongs to this host, so its addresses have no route to another host. */
static void test_route(void **state)
{
    struct ddp_nic_address own[8];
    const int n = ddp_nic_addresses(own, 8);
    (void)state;
    for (int i = 0; i < n; i++) {
        assert_true(own[i].name[0] != '\0' && strcmp(own[i].name, "lo") != 0);
        assert_int_equal(ddp_nic_route(&own[i], own, n), -1);
    }
}

/* 127.0.0.1 refuses a connection at once. Nothing answers at the address of an unknown family. */
static void test_answers(void **state)
{
    const struct ddp_nic_address to[] = {{.family = AF_INET, .bytes = {127, 0, 0, 1}},
                                         {.family = 0}};
    bool answers[2] = {false, true};
    (void)state;
    ddp_nic_answers(to, 2, 5000000000, answers);
    assert_true(answers[0]);
    assert_false(answers[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_facts, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_counters, make_root, remove_root),
        cmocka_unit_test(test_route),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
