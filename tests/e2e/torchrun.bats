#!/usr/bin/env bats
# torchrun of PyTorch on two hosts, which are network namespaces, without GPUs. Needs root. TORCHRUN names the program.
# shellcheck disable=SC2154,SC2034 # ddpbench, hosts, long, noted, pids: ucx.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/netns.bash # first, because teardown needs it even if the test is skipped
    load ../ucx/ucx.bash
    ucx_setup
    [ -x "${TORCHRUN:-}" ] || skip "needs PyTorch (make e2e installs it)"
    unshare --uts true 2>err.txt || skip "no namespaces here"
    export UCX_NET_DEVICES=eth0 GLOO_SOCKET_IFNAME=eth0 TORCHELASTIC_ERROR_FILE=/dev/null
    nodes=()
}

teardown() {
    local pid
    for pid in "${nodes[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    hosts_down
}

# A prefix of a command that writes the process id of rank R to R.pid. torchrun replaces $$.
# shellcheck disable=SC2016 # the inner shell's
pids_of=(sh -c 'cut -d" " -f4 /proc/self/stat >"$RANK.pid"; exec "$@"' sh)

# begin RENDEZVOUS... -- ARGUMENT...: starts torchrun on both hosts, with two ranks on each.
begin() {
    local h i=0 how=()
    while [ "$1" != -- ]; do
        how+=("$1")
        shift
    done
    shift
    for h in "${hosts[@]}"; do
        on "$h" timeout --kill-after=5 120 "$TORCHRUN" --no-python --nnodes 2 --nproc-per-node 2 "${how[@]//NODE/$i}" \
            "${pids_of[@]}" "$ddpbench" "$@" >"$i.out" 2>&1 3>&- &
        nodes+=($!)
        i=$((i + 1))
    done
}

# correct: both torchruns succeed, and the document is right.
correct() {
    local pid
    for pid in "${nodes[@]}"; do
        wait "$pid" || { tail ./*.out && false; }
    done
    nodes=()
    holds out.json "d['status'] == 'complete' and sum(q['check']['wrong'] for q in p) == 0 and len(p) == 4"
    [ "$(json out.json "d['world']['ranks'], len(d['world']['hosts']), d['world']['backend'], d['world']['launcher']")" = "(4, 2, 'ucx', 'torchrun')" ]
}

@test "two nodes of two ranks, rendezvous by c10d and by a fixed address" {
    hosts_up 2
    names_up
    begin --rdzv-backend c10d --rdzv-id ddp --rdzv-endpoint 10.77.9.1:29500 -- allreduce --size 4,64K -n 3 -w 1 -q -T 30 --json out.json
    correct
    begin --node-rank NODE --master-addr 10.77.9.1 --master-port 29600 -- allreduce --size 4,64K -n 3 -w 1 -q -T 30 --json out.json
    correct
}

@test "a lost host: both torchruns end, the ranks of the host are named, and the results are saved" {
    hosts_up 2
    names_up
    begin --rdzv-backend c10d --rdzv-id ddp --rdzv-endpoint 10.77.9.1:29500 -- "${long[@]}" -n 500 -T 20
    for _ in {1..600}; do
        ! grep -q ' 65536 ' 0.out || break
        sleep 0.1
    done
    kill -KILL "$(cat 2.pid)" "$(cat 3.pid)"
    for node in "${nodes[@]}"; do
        wait "$node" && return 1
    done
    nodes=()
    grep -E "rank [23] .*${hosts[1]}" 0.out
    holds out.json "d['status'] == 'partial' and len(p) >= 2"
}
