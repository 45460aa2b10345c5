# Functions that make network namespaces, use them as hosts connected by a switch, and run mpiexec
# across them. Sourced by bats after mpi.bash. Needs root and a kernel with network namespaces.
# shellcheck shell=bash disable=SC2034,SC2054,SC2154 # hosts: the scripts; ddpbench: mpi.bash

# hosts_up N: makes hosts[0..N-1], each with an interface eth0, in one network, or skips the test.
hosts_up() {
    [ "$(id -u)" = 0 ] || skip "needs root"
    command -v ip tc >/dev/null || skip "needs ip and tc"
    local n=$1 i
    switch=ddp$$-s hosts=()
    ip netns add "$switch" 2>/dev/null || skip "no network namespaces here"
    ip -n "$switch" link add br0 type bridge 2>/dev/null || skip "no bridge here"
    ip -n "$switch" link set br0 up
    for ((i = 1; i <= n; i++)); do
        hosts+=("ddp$$-$i")
        ip netns add "ddp$$-$i"
        ip link add eth0 netns "ddp$$-$i" type veth peer name "port$i" netns "$switch" || skip "no virtual links here"
        ip -n "$switch" link set "port$i" master br0 up
        ip -n "ddp$$-$i" addr add "10.77.9.$i/24" dev eth0
        ip -n "ddp$$-$i" link set lo up
        ip -n "ddp$$-$i" link set eth0 up
    done
    # mpiexec starts this agent instead of ssh: agent [OPTION...] HOST COMMAND.
    cat >agent <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
END
    chmod +x agent
}

# names_up: the hosts of hosts_up find each other by name.
names_up() {
    local h i
    for h in "${hosts[@]}"; do
        mkdir -p "/etc/netns/$h" # ip netns exec shows these files in /etc
        {
            echo "127.0.0.1 localhost"
            for i in "${!hosts[@]}"; do echo "10.77.9.$((i + 1)) ${hosts[i]}"; done
        } >"/etc/netns/$h/hosts"
    done
}

# on HOST COMMAND...: runs the command on a host, which then has its name.
# shellcheck disable=SC2016 # the inner shell's
on() {
    ip netns exec "$1" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$@"
}

hosts_down() {
    local h
    for h in "${hosts[@]}" $switch; do
        ip netns del "$h" 2>/dev/null || true
        rm -rf "/etc/netns/$h"
    done
}

# links RATE [BURST]: limits every host's link in both directions. After a pause a link may send up to
# BURST at once. The default is the burst that a tbf of 1 Gb/s needs; with a smaller one the rate varies.
links() {
    local i
    for i in "${!hosts[@]}"; do
        tc -n "${hosts[i]}" qdisc replace dev eth0 root tbf rate "$1" burst "${2:-1mb}" latency 50ms || skip "no tbf here"
        tc -n "$switch" qdisc replace dev "port$((i + 1))" root tbf rate "$1" burst "${2:-1mb}" latency 50ms
    done
}

# mpi FLAVOUR RANKS COMMAND...: runs RANKS ranks, the same number on each host, in order, for at most
# `limit` seconds. If `hostfile` is set, a hostfile lists the hosts. yields: whether waiting ranks of
# Open MPI yield. Replaces the function of mpi.bash, so that the other functions use these hosts.
mpi() {
    local flavour=$1 each=$(($2 / ${#hosts[@]})) list more
    shift 2
    local open=(mpirun.openmpi --mca plm_rsh_agent "$PWD/agent" --mca pml ob1 --mca btl tcp,vader,self
        --mca btl_tcp_if_include 10.77.9.0/24 --mca oob_tcp_if_include 10.77.9.0/24
        --mca mpi_yield_when_idle "${yields:-1}" --mca odls_base_sigkill_timeout 0 --bind-to none)
    local hydra=(env UCX_TLS=tcp,self mpiexec.mpich -launcher ssh -launcher-exec "$PWD/agent" -iface eth0)
    [ $((each * ${#hosts[@]})) -le "$(nproc)" ] || hydra+=(-genv LD_PRELOAD "$yield")
    if [ "$flavour" = openmpi ]; then
        printf "%s slots=$each\n" "${hosts[@]}" >hostfile.txt
        printf -v list ",%s:$each" "${hosts[@]}"
        more=(-host "${list#,}")
        [ -z "${hostfile:-}" ] || more=(--hostfile hostfile.txt)
        more=("${open[@]}" -np $((each * ${#hosts[@]})) "${more[@]}")
    else
        printf "%s:$each\n" "${hosts[@]}" >hostfile.txt
        printf -v list ",%s:$each" "${hosts[@]}"
        more=(-hosts "${list#,}")
        [ -z "${hostfile:-}" ] || more=(-f hostfile.txt)
        more=("${hydra[@]}" -n $((each * ${#hosts[@]})) "${more[@]}")
    fi
    # shellcheck disable=SC2016 # "$0" and "$@" are the inner shell's
    timeout --kill-after=5 "${limit:-60}" ip netns exec "${hosts[0]}" unshare --uts \
        sh -c 'hostname "$0"; exec "$@"' "${hosts[0]}" "${more[@]}" "$@" </dev/null
}
