#!/usr/bin/env bats
# Two network namespaces as hosts, with a link of chosen speed between them, under Open MPI over
# TCP: compression pays there and not on shared memory, by the same command; overlap hides exchange.
# Needs root and a kernel that gives namespaces; skipped elsewhere.
# shellcheck disable=SC2154 # ddpbench: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
    needs openmpi
    a=ddp1-$$ b=ddp2-$$
    [ "$(id -u)" = 0 ] || skip "needs root"
    command -v ip tc >/dev/null || skip "needs ip and tc"
    ip netns add "$a" 2>/dev/null || skip "no network namespaces here"
    ip netns add "$b"
    ip link add v1 netns "$a" type veth peer name v2 netns "$b" || skip "no virtual links here"
    for h in "$a v1 1" "$b v2 2"; do
        read -r name link number <<<"$h"
        ip -n "$name" addr add "10.77.9.$number/24" dev "$link"
        ip -n "$name" link set lo up
        ip -n "$name" link set "$link" up
    done
    # What mpirun starts instead of ssh: HOST COMMAND.
    cat >agent <<'END'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
END
    chmod +x agent
}

teardown() {
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
}

# RATE: of the link, both ways.
link() {
    tc -n "$a" qdisc replace dev v1 root tbf rate "$1" burst 1mb latency 50ms || skip "no tbf here"
    tc -n "$b" qdisc replace dev v2 root tbf rate "$1" burst 1mb latency 50ms
}

# shellcheck disable=SC2016 # "$0" and "$@" are the inner shell's
# OPTION...: a training run, a rank a host. The ranks share cores with their progress threads.
train() {
    timeout 100 ip netns exec "$a" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$a" \
        mpirun.openmpi -np 2 -host "$a:1,$b:1" --mca plm_rsh_agent "$PWD/agent" \
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.77.9.0/24 \
        --mca oob_tcp_if_include 10.77.9.0/24 --mca mpi_yield_when_idle 1 --bind-to none \
        "$ddpbench" train "$@" </dev/null
}

@test "100 Mb/s: topk:0.01 makes a step 5 times faster, and the tool says so; not on shared memory" {
    link 100mbit
    options=(--dataset synthetic --images 2600 --epochs 1 --compare "dense,topk:0.01")
    for try in 1 2 3; do # something else may be running here
        train "${options[@]}" --json tcp.json >tcp.txt
        ratio=$(json tcp.json 'd["comparison"][1]["reference_speedup"]')
        echo "try $try: a step is $ratio times as fast"
        [ "${ratio%.*}" -lt 5 ] || break
    done
    [ "${ratio%.*}" -ge 5 ]
    [ "$(json tcp.json 'd["comparison"][1]["pays"]')" = True ]
    grep '^# topk:0.01 pays here: a step is' tcp.txt
    for try in 1 2 3; do
        "$ddpbench" train --ranks 2 "${options[@]}" --json shm.json >shm.txt
        ! grep '^# topk:0.01 does not pay here' shm.txt || break
    done
    [ "$(json shm.json 'd["comparison"][1]["pays"]')" = False ] || { cat shm.txt; false; }
}

@test "exchange as long as backward: overlap leaves less than half of it exposed" {
    link 1600mbit
    for try in 1 2 3; do
        for overlap in off on; do
            train --dataset synthetic --images 7700 --epochs 1 --bucket-bytes 64K --algorithm ring \
                --overlap $overlap --json $overlap.json >$overlap.txt
        done
        exposed='d["train"][0]["epochs"][0]["exposed_seconds"]'
        ratio=$("${PYTHON:-python3}" -c "print($(json on.json "$exposed") / $(json off.json "$exposed"))")
        echo "try $try: exposed with overlap / without: $ratio"
        [ "$("${PYTHON:-python3}" -c "print($ratio < 0.5)")" = True ] && return
    done
    cat off.txt on.txt
    false
}
