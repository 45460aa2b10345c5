#!/usr/bin/env bats
# Backend ucx on 4 hosts (network namespaces) with torchrun's variables and no MPI. Needs root, otherwise
# skipped.
# shellcheck disable=SC2154,SC2034 # ddpbench, hosts, codes, ended_ms, pids: ucx.bash, netns.bash
# jobs: 2
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/netns.bash # first, because teardown needs it even if the test is skipped
    load ucx.bash
    ucx_setup
    unshare --uts true 2>err.txt || skip "no namespaces here"
    export UCX_NET_DEVICES=eth0
    master=10.77.9.1 port=29400 limit=150
}

teardown() {
    hosts_down
}

# correct EACH ARGUMENT...: all ranks succeed with right results, and the document names hosts and devices.
correct() {
    local zeros
    zeros=$(printf '0 %.0s' $(seq $(($1 * ${#hosts[@]}))))
    on_hosts "$1" "$ddpbench" "${@:2}" -T 20 -q --json out.json
    finish >codes
    [ "$(cat codes)" = "$zeros" ] || { tail ./*.out && false; }
    holds out.json "d['status'] == 'complete' and sum(q['check']['wrong'] for q in p) == 0"
    [ "$(json out.json '[h["name"] for h in d["world"]["hosts"]]')" = "$(printf "'%s', " "${hosts[@]}" | sed 's/^/[/; s/, $/]/')" ]
    holds out.json "'tcp/eth0' in d['world']['transports'].split(', ')"
}

@test "4 hosts of one rank: all algorithms, in and out of place" {
    hosts_up 4
    correct 1 allreduce --backend ucx --size 40K -d bf16 --algorithm ring,rhd,rd,tree --placement both -n 1 -w 0
    holds out.json "len(p) == 8"
}

@test "2 hosts of 2 ranks: hier uses shared memory inside each host, and auto takes ucx without a GPU" {
    hosts_up 2
    correct 2 allreduce --size 40K --algorithm hier,ring -n 1 -w 0
    holds out.json "d['world']['backend'] == 'ucx' and 'hier' in {q['algorithm_used'] for q in p}"
    holds out.json "d['world']['transports'] != 'tcp/eth0'" # shared memory inside the hosts
}

# loses VICTIM SIGNAL DEADLINE: the other ranks of the long job end with 13.
loses() {
    hosts_up 4
    on_hosts 1 "$ddpbench" "${long[@]}" -n 100 -T "$3"
    lose "$1" "$2"
    [ "$codes" = "13 13 13 " ]
}

@test "a killed rank is named within 2 s, with its host, and the results are saved" {
    loses 2 KILL 20
    [ "$ended_ms" -lt 2000 ]
    for r in 0 1 3; do
        file_says $r.out "rank 2" "${hosts[2]}"
    done
    holds out.json "d['status'] == 'partial' and len(p) >= 2"
}

@test "rank 0 is killed: the others name it and its host" {
    loses 0 KILL 20
    [ "$ended_ms" -lt 2000 ]
    for r in 1 2 3; do
        file_says $r.out "rank 0" "${hosts[0]}"
    done
}

@test "a stopped rank ends the run at the deadline" {
    loses 1 STOP 2
    [ "$ended_ms" -lt 4500 ]
    file_says 2.out "rank 2" " 2 s "
}

@test "matrix: the directions from a host whose link is slow are the slowest, those to it are not" {
    hosts_up 3
    tc -n "${hosts[1]}" qdisc replace dev eth0 root tbf rate 4mbit burst 16kb latency 500ms || skip "no tbf here"
    on_hosts 1 "$ddpbench" matrix --backend ucx --size 16K -n 9 --max-time 0.2 -T 20 -q --json out.json
    finish >codes
    [ "$(cat codes)" = "0 0 0 " ] || { tail ./*.out && false; }
    holds out.json "[e['host'] for e in d['matrix']['ends']] == [h['name'] for h in d['world']['hosts']]"
    holds out.json "max(d['matrix']['GBps'][1][::2]) < 0.5 * min(v for i in (0, 2) for v in d['matrix']['GBps'][i] if v)"
    grep -E "^# slowest: rank 1 \(host ${hosts[1]}\) to rank" 0.out
}
