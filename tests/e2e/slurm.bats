#!/usr/bin/env bats
# Real Slurm: one slurmctld and two slurmd on hosts that are network namespaces. Needs root, slurm-wlm and munge.
# shellcheck disable=SC2154,SC2034 # ddpbench, hosts: ucx.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/netns.bash # first, because teardown needs it even if the test is skipped
    load ../ucx/ucx.bash
    ucx_setup
    for program in slurmctld slurmd munged srun; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "needs slurm-wlm and munge"
    done
    unshare --uts true 2>err.txt || skip "no namespaces here"
    daemons=()
}

teardown() {
    local pid
    for pid in "${daemons[@]}" $(cat "${work:-.}"/*.pid 2>/dev/null); do # on() leaves its children
        kill "$pid" 2>/dev/null || true
    done
    hosts_down
    sleep 0.2 # the daemons write their last files
    [ -z "${work:-}" ] || rm -rf "$work"
}

# slurm_up: starts a cluster of two nodes with 2 CPUs each.
slurm_up() {
    local h i
    hosts_up 2
    names_up
    work=$(mktemp -d) # the paths of sockets must be short
    dd if=/dev/urandom of="$work/key" bs=64 count=1 2>/dev/null
    chmod 400 "$work/key"
    /usr/sbin/munged --foreground --force --key-file="$work/key" --socket="$work/munge" --pid-file="$work/munge.pid" \
        --log-file="$work/munge.log" --seed-file="$work/seed" 3>&- &
    daemons+=($!)
    cat >"$work/slurm.conf" <<END
ClusterName=ddp
SlurmctldHost=${hosts[0]}(10.77.9.1)
AuthInfo=socket=$work/munge
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=${hosts[0]} NodeAddr=10.77.9.1 CPUs=2
NodeName=${hosts[1]} NodeAddr=10.77.9.2 CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
END
    echo "CgroupPlugin=cgroup/v1" >"$work/cgroup.conf" # nothing here needs control groups
    mkdir "$work/state"
    for h in "${hosts[@]}"; do mkdir "$work/spool.$h"; done
    export SLURM_CONF=$work/slurm.conf
    on "${hosts[0]}" /usr/sbin/slurmctld -D >"$work/ctld.out" 2>&1 3>&- &
    daemons+=($!)
    for h in "${hosts[@]}"; do
        on "$h" /usr/sbin/slurmd -D -N "$h" >"$work/$h.out" 2>&1 3>&- &
        daemons+=($!)
    done
    for i in {1..100}; do
        [ "$(on "${hosts[0]}" sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && return
        sleep 0.2
    done
    on "${hosts[0]}" sinfo -N || true
    tail -n 20 "$work"/*.log "$work"/*.out
    false
}

# srun_on OPTION... -- ARGUMENT...: runs ddpbench as a job step, submitted on the first host.
srun_on() {
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    run --separate-stderr on "${hosts[0]}" timeout --kill-after=5 60 srun "${options[@]}" "$ddpbench" "$@"
    [ "$status" = 0 ] || {
        echo "srun ${options[*]} $*: exit $status; $output; $stderr"
        return 1
    }
}

# correct RANKS HOSTS BACKEND: the document is complete and right.
correct() {
    holds out.json "d['status'] == 'complete' and sum(q['check']['wrong'] for q in p) == 0 and len(p) > 0"
    [ "$(json out.json "d['world']['ranks'], len(d['world']['hosts']), d['world']['backend']")" = "($1, $2, '$3')" ]
}

@test "srun without PMI on two nodes: the ranks meet over UCX, with and without --mpi" {
    slurm_up
    export UCX_NET_DEVICES=eth0
    srun_on -N 2 -n 4 --mpi=none -- allreduce --size 4,64K -n 3 -w 1 -q -T 20 --json out.json
    correct 4 2 ucx
    srun_on -N 2 --ntasks-per-node 1 -- train --dataset synthetic --max-steps 4 -q -T 20 --json out.json
    holds out.json "d['status'] == 'complete' and d['world']['ranks'] == 2 and len(t) == 1"
    srun_on -N 2 -n 3 -- matrix --size 4K -n 3 -q -T 20 --json out.json
    holds out.json "len(d['matrix']['ends']) == 3"
}

@test "srun with PMI-2 on two nodes runs over MPICH" {
    [ -e "$modules/ddpbench-mpi-mpich.so" ] || skip "no module for MPICH"
    slurm_up
    export UCX_NET_DEVICES=eth0 UCX_TLS=tcp,self FI_TCP_IFACE=eth0
    srun_on -N 2 -n 2 --mpi=pmi2 -- allreduce --size 4,64K -n 3 -w 1 -q -T 20 --json out.json
    correct 2 2 mpi
    holds out.json "'MPICH' in d['tool']['features']['mpi']"
}

@test "srun with PMIx on one node runs over Open MPI" {
    [ -e "$modules/ddpbench-mpi-openmpi.so" ] || skip "no module for Open MPI"
    slurm_up
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    srun_on -N 1 -n 2 --mpi=pmix -- allreduce --size 4,64K -n 3 -w 1 -q -T 20 --json out.json
    correct 2 1 mpi
    holds out.json "'Open MPI' in d['tool']['features']['mpi']"
}

@test "salloc without srun says that one node of two is measured; sbatch with mpiexec uses both" {
    slurm_up
    run on "${hosts[0]}" timeout --kill-after=5 60 salloc -N 2 -n 2 "$ddpbench" allreduce --size 4 -n 3 -w 1 --json out.json
    [ "$status" = 0 ]
    says srun
    holds out.json "len(d['world']['hosts']) == 1"
    command -v mpiexec.openmpi >/dev/null || skip "no mpiexec of Open MPI"
    printf '#!/bin/sh\nexec mpiexec.openmpi --mca btl_tcp_if_include eth0 -n 2 "%s" allreduce --size 4,64K -n 3 -w 1 -q -T 20 --json "%s"\n' \
        "$ddpbench" "$PWD/batch.json" >job.sh
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    on "${hosts[0]}" timeout --kill-after=5 60 sbatch -W -N 2 --ntasks-per-node 1 -o "$PWD/job.out" job.sh || { cat job.out && false; }
    cp batch.json out.json
    correct 2 2 mpi
}
