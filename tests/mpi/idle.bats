#!/usr/bin/env bats
# Under the mpiexec of each MPI, a run uses fewer ranks than there are. The idle ranks wait for as long
# as the others work, and a working rank that hangs or dies still ends the job.
# shellcheck disable=SC2154 # ddpbench, output, status, ended_ms: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

teardown() {
    # A stopped rank does not react to the signal of its mpiexec.
    [ -e victim ] || return 0
    local pid
    while read -r pid; do
        ! grep -q ddpbench "/proc/$pid/cmdline" 2>/dev/null || kill -KILL "$pid"
    done <victim
}

# waits FLAVOUR HOSTS: the points of two ranks take longer than the deadline; points of three ranks follow.
waits() {
    needs "$1"
    export DDPBENCH_SIMULATE_HOSTS=$2
    run mpi "$1" 4 "$ddpbench" allreduce --ranks 2,3 --size 4M --placement in -T 1 --max-time 1.3 --precision 0.01 -w 1 --json out.json
    [ "$status" = 0 ] || { echo "$output"; false; }
    [ "$(json out.json '[p["ranks"] for p in d["points"]], d["status"]')" = "([2, 3], 'complete')" ]
}

@test "Open MPI: idle ranks of one host outwait the deadline" { waits openmpi 1; }
# Idle ranks of one host wait in our shared memory, whichever MPI started them.
@test "Open MPI: idle ranks of two hosts outwait the deadline" { waits openmpi 2+2; }
@test "MPICH: idle ranks of two hosts outwait the deadline" { waits mpich 2+2; }

# trains FLAVOUR: the last epoch of a training run of two ranks is written after the deadline.
trains() {
    needs "$1"
    run mpi "$1" 3 "$ddpbench" train --ranks 2 --dataset synthetic --images 2000 --epochs 4 -T 1 --json out.json
    [ "$status" = 0 ] || { echo "$output"; false; }
    [ "$(json out.json 'len(d["train"][0]["epochs"]), d["status"]')" = "(4, 'complete')" ]
}

@test "Open MPI: idle ranks outwait a training run" { trains openmpi; }
@test "MPICH: idle ranks outwait a training run" { trains mpich; }

# ends FLAVOUR HOSTS RANK SIGNAL: a working rank stops or dies; the job still ends.
ends() {
    export DDPBENCH_SIMULATE_HOSTS=$2 world=4 iterations=300
    lose "$1" "$3" "$4"
    [ "$status" != 0 ]
    [ "$status" != 124 ]
    [ "$ended_ms" -lt 15000 ]
}

# stopped FLAVOUR HOSTS RANK: the rank stops; rank 0, which works with it, reports this.
stopped() {
    ends "$1" "$2" "$3" STOP
    [ "$status" = 13 ] || { [ "$1" = mpich ] && [[ $status == [19] ]]; }
    grep -E 'rank 0 on [^:]+: (no progress for 1 s in|rank 0 waited 1 s for rank '"$3"')' err.txt
}

@test "Open MPI: a stopped rank beside idle ranks of one host" { stopped openmpi 1 1; }
@test "Open MPI: a stopped rank beside idle ranks of two hosts" { stopped openmpi 2+2 2; }
@test "MPICH: a stopped rank beside idle ranks of two hosts" { stopped mpich 2+2 2; }

# FLAVOUR WORLD WORKING: every working rank stops; an idle rank, the last of the world, says so.
all_stopped() {
    export world=$2 working=$3
    local rank
    lose "$1" "$(seq -s ' ' 0 $((working - 1)))" STOP
    [ "$status" = 13 ] || { [ "$1" = mpich ] && [[ $status == [19] ]]; }
    [ "$ended_ms" -lt 15000 ]
    for ((rank = 0; rank < working; rank++)); do
        grep -E "rank $((world - 1)) on .*rank $rank is in .*allreduce" err.txt
    done
}

@test "MPICH: the only working rank stops" { all_stopped mpich 2 1; }
@test "Open MPI: both working ranks stop" { iterations=300 all_stopped openmpi 3 2; }

@test "Open MPI: rank 0 is killed beside idle ranks" { ends openmpi 2+2 0 KILL; }
@test "MPICH: rank 0 is killed beside idle ranks" { ends mpich 2+2 0 KILL; }
