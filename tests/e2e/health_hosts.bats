#!/usr/bin/env bats
# `ddpbench health` and `ddpbench isolate` on 4 hosts (network namespaces) with one or two faults: the
# verdict names them. RUNS is the number of runs of each fault (`make bench-health`: 20), and TABLE a file
# that gets a row for each.
# Needs root. All links have 200 Mbit/s, so that two cores suffice for 4 hosts.
# shellcheck disable=SC2154,SC2034 # ddpbench, hosts, switch, pids: ucx.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/netns.bash # first, because teardown needs it even if the test is skipped
    load ../ucx/ucx.bash
    ucx_setup
    unshare --uts true 2>err.txt || skip "no namespaces here"
    export UCX_NET_DEVICES=eth0
    master=10.77.9.1 port=29400 limit=60 helpers=()
    hosts_up 4
    links 200mbit 64kb
}

teardown() {
    local pid
    for pid in "${helpers[@]}"; do
        kill -s KILL "$pid" 2>/dev/null || true
    done
    hosts_down
}

# slow HOST WHERE RATE: the link of the host has this rate when it sends, receives, or both.
slow() {
    [ "$2" = receiving ] || tc -n "${hosts[$1]}" qdisc replace dev eth0 root tbf rate "$3" burst 64kb latency 50ms
    [ "$2" = sending ] || tc -n "$switch" qdisc replace dev "port$(($1 + 1))" root tbf rate "$3" burst 64kb latency 50ms
}

# slow_link HOST OTHER RATE: the link between two hosts has this rate in both directions.
slow_link() {
    local from to
    for from in "$1" "$2"; do
        to=$(($1 + $2 - from + 1))
        tc -n "${hosts[$from]}" qdisc replace dev eth0 root handle 1: htb default 1 2>err.txt || skip "no htb here"
        tc -n "${hosts[$from]}" class add dev eth0 parent 1: classid 1:1 htb rate 200mbit burst 64kb
        tc -n "${hosts[$from]}" class add dev eth0 parent 1: classid 1:2 htb rate "$3" burst 64kb
        tc -n "${hosts[$from]}" filter add dev eth0 protocol ip parent 1: u32 match ip dst "10.77.9.$to" flowid 1:2 2>err.txt || skip "no u32 here"
    done
}

# worsen HOST OPTION...: the link of the host goes through forward.py with these options.
worsen() {
    local name=${hosts[$1]} port=port$(($1 + 1)) address=10.77.9.$(($1 + 1))
    ip -n "$name" link del eth0
    "$PYTHON" "$root/tests/e2e/forward.py" "$name" eth0 "$switch" "$port" "${@:2}" >forward.out 2>&1 3>&- &
    helpers+=($!)
    for _ in {1..50}; do
        ! grep -q ready forward.out || break
        sleep 0.1
    done
    ip -n "$switch" link set "$port" master br0 up
    ip -n "$name" addr add "$address/24" dev eth0
    ip -n "$name" link set eth0 up
    links 200mbit 64kb
}

# throttle HOST: the rank on this host runs for half of the time, as with a CPU quota of 50 %.
throttle() {
    local pid
    for _ in {1..50}; do
        [ ! -s "$1.pid" ] || break
        sleep 0.1
    done
    pid=$(cat "$1.pid")
    while kill -s STOP "$pid" 2>/dev/null; do
        sleep 0.05
        kill -s CONT "$pid" 2>/dev/null
        sleep 0.05
    done
}

# judged NAME EXPRESSION [THROTTLED_HOST]: runs health, or the command in $command. The expression is true
# for the findings f of every run. A run of health takes at most 8 s, apart from the time on a busy machine.
judged() {
    local run right=0 began spent=0 verdicts=
    for ((run = 0; run < ${RUNS:-1}; run++)); do
        rm -f ./*.pid out.json
        began=$(date +%s%N)
        on_hosts 1 "$ddpbench" "${command:-health}" --backend ucx -T 20 -q --json out.json
        [ -z "${3:-}" ] || throttle "$3" 3>&- &
        finish >codes
        spent=$((spent + ($(date +%s%N) - began) / 1000000))
        verdicts+="$(json out.json "d['health']['verdict'][0]")"
        if [ "$(json out.json "(lambda f, verdict: $2)([(q['figure'], q['place'], q['host'] or '', q['to_host'] or '') for q in d['health']['findings']], d['health']['verdict'])")" = True ]; then
            right=$((right + 1))
        else
            grep -a '^# ' 0.out | tail -n 12 >&3
        fi
    done
    echo "| $1 | $right of $run | $verdicts | $((spent / run)) ms |" | tee -a "${TABLE:-/dev/null}" >&3
    [ "$right" -ge $(((run * 9 + 9) / 10)) ]
}

@test "four healthy hosts: no finding" {
    judged healthy "not f"
}

@test "a host sends slowly" {
    slow 2 sending 50mbit
    judged "sending 4 times slower" "[q for q in f if q[0] == 'bandwidth'] == [('bandwidth', 'sending', '${hosts[2]}', '')]"
}

@test "a host receives slowly" {
    slow 1 receiving 100mbit
    judged "receiving 2 times slower" "[q for q in f if q[0] == 'bandwidth'] == [('bandwidth', 'receiving', '${hosts[1]}', '')]"
}

@test "a host sends and receives slowly" {
    slow 3 both 100mbit
    judged "both 2 times slower" "[q for q in f if q[0] == 'bandwidth'] == [('bandwidth', 'unit', '${hosts[3]}', '')]"
}

@test "two hosts are slow" {
    slow 0 sending 50mbit
    slow 3 both 70mbit
    judged "two hosts" "sorted(q for q in f if q[0] == 'bandwidth') == [('bandwidth', 'sending', '${hosts[0]}', ''), ('bandwidth', 'unit', '${hosts[3]}', '')]"
}

@test "the latency of a host is 1 ms higher" {
    [ "$(nproc)" -ge 4 ] || skip "needs 4 cores: without a core of its own, a rank's latency is not judged"
    worsen 2 --delay-us 1000
    judged "latency" "('latency', 'unit', '${hosts[2]}', '') in f and {q[2] for q in f} == {'${hosts[2]}'}"
}

@test "a host loses 2 % of the packets" {
    worsen 1 --loss 0.02
    judged "loss" "'${hosts[1]}' in {q[2] for q in f if q[0] in ('bandwidth', 'resent')} and {q[2] for q in f} == {'${hosts[1]}'}"
}

@test "the processor of a host is throttled to a half" {
    judged "processor" "('compute', 'unit', '${hosts[2]}', '') in f and {q[2] for q in f} == {'${hosts[2]}'}" 2
}

# The bandwidth of a link is 4 times lower, so a group with it is about 4 times slower.
@test "isolate: four healthy hosts: no finding" {
    command=isolate judged "isolate: healthy" "not f"
}

@test "isolate: a host sends and receives slowly" {
    slow 3 both 50mbit
    command=isolate judged "isolate: both 4 times slower" "f == [('collective', 'unit', '${hosts[3]}', '')]"
}

@test "isolate: the link between two hosts is slow" {
    slow_link 1 2 50mbit
    command=isolate judged "isolate: a link 4 times slower" "[(p, {a, b}) for _, p, a, b in f] == [('link', {'${hosts[1]}', '${hosts[2]}'})]"
}
