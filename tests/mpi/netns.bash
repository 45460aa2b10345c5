# For scripts of this folder: network namespaces as hosts, with a switch between them, and mpiexec
# across. Sourced by bats, after mpi.bash. Needs root and a kernel that gives namespaces.
# shellcheck shell=bash disable=SC2034,SC2054,SC2154 # hosts: the scripts; ddpbench: mpi.bash

# N: makes hosts[0..N-1], each with the interface eth0, all in one network. Skips with the reason.
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
    # What mpiexec starts instead of ssh: [OPTION...] HOST COMMAND.
    cat >agent <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
END
    chmod +x agent
}

hosts_down() {
    local h
    for h in "${hosts[@]}" $switch; do
        ip netns del "$h" 2>/dev/null || true
    done
}

# RATE [BURST]: of every host's link, in and out of the switch. The usual burst is what a tbf of 1 Gb/s
# needs; a small one is bimodal. What a link did not send it may send later, as much as the burst.
links() {
    local i
    for i in "${!hosts[@]}"; do
        tc -n "${hosts[i]}" qdisc replace dev eth0 root tbf rate "$1" burst "${2:-1mb}" latency 50ms || skip "no tbf here"
        tc -n "$switch" qdisc replace dev "port$((i + 1))" root tbf rate "$1" burst "${2:-1mb}" latency 50ms
    done
}

# FLAVOUR RANKS COMMAND...: RANKS ranks over all hosts, equally many on each, in order; named by a
# hostfile when `hostfile` is set; within `limit` seconds. yields: whether Open MPI's idle ranks do.
# In the place of mpi.bash's, so that its functions go over hosts.
mpi() {
    local flavour=$1 each=$(($2 / ${#hosts[@]})) list more
    shift 2
    local open=(mpirun.openmpi --mca plm_rsh_agent "$PWD/agent" --mca pml ob1 --mca btl tcp,vader,self
        --mca btl_tcp_if_include 10.77.9.0/24 --mca oob_tcp_if_include 10.77.9.0/24
        --mca mpi_yield_when_idle "${yields:-1}" --mca odls_base_sigkill_timeout 0 --bind-to none)
    local hydra=(env UCX_TLS=tcp,self mpiexec.mpich -launcher ssh -launcher-exec "$PWD/agent" -iface eth0)
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
