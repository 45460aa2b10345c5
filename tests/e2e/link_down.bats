#!/usr/bin/env bats
# The link of a host goes down during a run: the document names the host that no longer answers, and the
# job ends within its deadline plus 5 s. The hosts are network namespaces. Needs root.
# shellcheck disable=SC2154,SC2034,SC2054 # ddpbench, hosts, pids: ucx.bash, netns.bash; 4,64K: one word
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/mpi.bash
    load ../mpi/netns.bash # after mpi.bash, whose function mpi it replaces
    load ../ucx/ucx.bash
    mpi_setup
    unshare --uts true 2>err.txt || skip "no namespaces here"
    deadline_s=3 limit=90
    job=(allreduce --size 4,64K,4M --order given --placement in -n 200 -w 1 -T "$deadline_s" --json out.json)
}

# mpiexec cannot end its agent on a host whose link is down.
teardown() {
    local h pid
    for h in "${hosts[@]}"; do
        for pid in $(ip netns pids "$h"); do
            kill -s KILL "$pid" 2>/dev/null || true
        done
    done
    hosts_down
}

# gone: no rank is left on any host within 10 s. An agent of mpiexec may be left on a host that mpiexec
# does not reach.
gone() {
    local h pid left
    for _ in {1..100}; do
        left=
        for h in "${hosts[@]}"; do
            for pid in $(ip netns pids "$h"); do
                ! grep -qa "^$ddpbench" "/proc/$pid/cmdline" || left+=" $h: $pid"
            done
        done
        [ -n "$left" ] || return 0
        sleep 0.1
    done
    echo "left:$left"
    false
}

# cut VICTIM PID...: takes the link of host VICTIM down once rank 0 has printed its second point into
# 0.out. Waits for the processes, which must end in time.
cut() {
    local began victim=$1
    shift
    await_second_point
    began=$(date +%s%N)
    ip -n "${hosts[victim]}" link set eth0 down
    wait "$1" || true
    for pid in "${@:2}"; do
        wait "$pid" || true
    done
    ended_ms=$((($(date +%s%N) - began) / 1000000))
    echo "# host $victim: ended after $ended_ms ms: $(json out.json 'd["reason"]')" >&3
    tail ./*.out
    [ "$ended_ms" -lt $(((deadline_s + 5) * 1000)) ]
    holds out.json "d['status'] == 'partial' and len(p) >= 2"
    [ "$victim" = 0 ] || holds out.json "'host ${hosts[victim]} (rank $victim) no longer answers' in d['reason']"
    [ "$victim" != 0 ] || holds out.json "'link of this host, ${hosts[0]}, is down' in d['reason']"
}

# Each rank ends by itself, also the one on the host without a link.
for_ucx() {
    ucx_setup
    export UCX_NET_DEVICES=eth0
    master=10.77.9.1 port=29400
    hosts_up 3
    on_hosts 1 "$ddpbench" "${job[@]}" --backend ucx --algorithm ring
    cut "$1" "${pids[@]}"
    gone
}

@test "ucx: the link of another host goes down" {
    for_ucx 2
}

@test "ucx: the link of rank 0's host goes down" {
    for_ucx 0
}

# for_mpi FLAVOUR VICTIM ALGORITHM
for_mpi() {
    needs "$1"
    hosts_up 3
    mpi "$1" 3 "$ddpbench" "${job[@]}" --algorithm "$3" >0.out 2>err.out 3>&- &
    cut "$2" $!
    gone
}

@test "Open MPI: the link of another host goes down during messages" {
    for_mpi openmpi 2 ring
}

@test "Open MPI: the link of another host goes down during MPI_Allreduce" {
    for_mpi openmpi 2 native
}

@test "Open MPI: the link of rank 0's host goes down" {
    for_mpi openmpi 0 ring
}

@test "MPICH: the link of another host goes down during messages" {
    for_mpi mpich 2 ring
}

@test "MPICH: the link of another host goes down during MPI_Allreduce" {
    for_mpi mpich 2 native
}

@test "MPICH: the link of rank 0's host goes down" {
    for_mpi mpich 0 ring
}
