#!/usr/bin/env bats
# Uses network namespaces as hosts under the real mpiexec of each MPI, to test runs on several machines.
# slow_link.bats (`make bench-link`) tests their speed. Needs root, otherwise skipped.
# jobs: 3
# shellcheck disable=SC2034,SC2154 # ddpbench, output, status, hosts, limit, hostfile: mpi.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
    load netns.bash
}

teardown() {
    hosts_down
}

# ends FLAVOUR WANTED RANKS COMMAND...: the run exits with the code WANTED. MPICH 4.0.2 over UCX and TCP
# sometimes hangs in MPI_Finalize, even in a program that only calls MPI_Barrier. Then our watchdog ends
# the run, and the test tries again.
deadline_s=3
ends() {
    local flavour=$1 wanted=$2 ranks=$3 try tries=1
    shift 3
    [ "$flavour" = openmpi ] || tries=6
    for ((try = 1; try <= tries; try++)); do
        run mpi "$flavour" "$ranks" "$@"
        [ "$status" != "$wanted" ] || return 0
        echo "try $try: $* gives $status instead of $wanted: $output"
    done
    return 1
}

# correct FLAVOUR HOSTS RANKS ALGORITHMS: results are right, and the document names each rank's host.
correct() {
    needs "$1"
    hosts_up "$2"
    # The document is checked, not the exit code, because MPICH may hang at the end (see above).
    mpi "$1" "$3" "$ddpbench" allreduce --algorithm "$4" --size 8,40K --placement in --check all -n 1 -w 0 \
        -T 5 --json out.json || [ "$1" = mpich ]
    [ "$(json out.json 'd["status"], sum(p["check"]["wrong"] for p in d["points"])')" = "('complete', 0)" ]
    [ "$(json out.json 'min(p["check"]["elements"] for p in d["points"]) > 0')" = True ]
    [ "$(json out.json '",".join(p["algorithm_used"] for p in d["points"][::2])')" = "$4" ]
    [ "$(json out.json '[h["name"] for h in d["world"]["hosts"]]')" = "$(printf "'%s', " "${hosts[@]}" | sed 's/^/[/; s/, $/]/')" ]
    [ "$(json out.json '{len(h["ranks"]) if isinstance(h["ranks"], list) else h["ranks"] for h in d["world"]["hosts"]}')" = "{$(($3 / $2))}" ]
}

@test "Open MPI, 2 hosts of 2 ranks: right results, and each rank's host" {
    correct openmpi 2 4 hier,ring,native
}

@test "MPICH, 2 hosts of 2 ranks: right results, and each rank's host" {
    correct mpich 2 4 hier,ring,native
}

@test "Open MPI, 4 hosts from a hostfile: right results, and each rank's host" {
    hostfile=yes
    correct openmpi 4 4 rhd,rd,tree,native
}

@test "MPICH, 4 hosts from a hostfile: right results, and each rank's host" {
    hostfile=yes
    correct mpich 4 4 rhd,rd,tree,native
}

# exits FLAVOUR WANTED ARGUMENT...: mpiexec returns our exit code.
exits() {
    local flavour=$1 wanted=$2
    shift 2
    ends "$flavour" "$wanted" 2 "$ddpbench" "$@" -T "$deadline_s"
}

# codes FLAVOUR: checks the exit codes of success and of errors.
codes() {
    needs "$1"
    hosts_up 2
    exits "$1" 0 allreduce --compress topk:0.01 --size 64K -n 2 -w 0
    exits "$1" 64 allreduce --no-such-option
    exits "$1" 69 allreduce --algorithm direct --size 8
    exits "$1" 73 allreduce --size 8 -n 1 --json no/such/folder/out.json
    # shellcheck disable=SC2016 # the inner shell's
    ends "$1" 76 2 sh -c 'eval "rank=\$$1"; exec "$2" allreduce --size $((8 + 8 * rank)) -n 1 -T "$3"' \
        sh "$(rank_variable "$1")" "$ddpbench" "$deadline_s"
}

@test "Open MPI, 2 hosts: exit codes" {
    codes openmpi
}

@test "MPICH, 2 hosts: exit codes" {
    codes mpich
}

# counted HOST FILE LINE COLUMN: prints a counter of TCP of a host, for example snmp Tcp RetransSegs.
counted() {
    ip netns exec "$1" cat "/proc/net/$2" | awk -v line="$3:" -v column="$4" \
        '$1 == line && !at { for (i = 2; i <= NF; i++) if ($i == column) at = i; next } $1 == line { print $at }'
}

# total LINE...: prints the sum of a counter over the hosts.
total() {
    local h sum=0
    for h in "${hosts[@]}"; do
        sum=$((sum + $(counted "$h" "$@")))
    done
    echo "$sum"
}

@test "Open MPI: a link that loses packets makes its points doubtful, and each host is counted once" {
    needs openmpi
    hosts_up 2
    for h in "${hosts[@]}"; do # a queue of 12 kB, which the sender overruns
        tc -n "$h" qdisc replace dev eth0 root tbf rate 50mbit burst 10kb limit 12kb || skip "no tbf here"
    done
    mpi openmpi 4 "$ddpbench" allreduce --size 4,256K --algorithm native --placement in -n 5 -w 1 --order given --json out.json
    holds out.json '[q["conditions"]["retransmits"] is not None for q in p] == [True, True]'
    holds out.json '"retransmits" in p[1]["quality"] and p[1]["conditions"]["retransmits"] > 0'
    holds out.json "all(0 < sum(q['conditions'][k] for q in p) <= n for k, n in {'retransmits': $(total snmp Tcp RetransSegs),
        'tcp_segments': $(total snmp Tcp OutSegs)}.items())"
    holds out.json "sum(q['conditions']['tcp_timeouts'] for q in p) <= $(total netstat TcpExt TCPTimeouts)"
    holds out.json 'all(q["conditions"]["tcp_drops"] is not None and q["conditions"]["nic_errors"] == 0 for q in p)'
    # The interface is the one that leads to the other host, though there is no default route.
    holds out.json '[(h["nic"]["name"], h["nic"]["mtu"]) for h in d["world"]["hosts"]] == [("eth0", 1500)] * 2'
    [ "$(json out.json 'd["world"]["hosts"][0]["congestion_control"]')" = "$(ip netns exec "${hosts[0]}" cat /proc/sys/net/ipv4/tcp_congestion_control)" ]
    valid out.json
}

# killed FLAVOUR: rank 1, on the other host, is killed: the run fails before the test's time limit.
killed() {
    hosts_up 2
    iterations=500 # short messages over TCP take as long as 20000 inside a host
    lose "$1" 1 KILL
    [ "$status" != 0 ]
    [ "$status" != 124 ]
    [ "$ended_ms" -lt 7000 ]
    ! kill -0 "$(cat victim)" 2>/dev/null
}

@test "Open MPI: a rank on another host is killed: all ends" {
    killed openmpi
}

@test "MPICH: a rank on another host is killed: all ends" {
    killed mpich
}
