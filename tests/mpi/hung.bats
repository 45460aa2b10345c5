#!/usr/bin/env bats
# Under the mpiexec of each MPI, a rank is stopped or never starts: the other rank ends the run at the
# timeout and reports the operation; the document says partial.
# jobs: 2
# shellcheck disable=SC2154 # ddpbench, status, ended_ms: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

teardown() {
    # A stopped rank does not react to the signal of its mpiexec.
    [ ! -e victim ] || ! grep -q ddpbench "/proc/$(cat victim)/cmdline" 2>/dev/null ||
        kill -KILL "$(cat victim)"
}

# exit_is_13 FLAVOUR: checks mpiexec's exit code when a rank exited with 13. If Hydra notices the end of
# the rank before that of its connection, it exits with 1, or with 9 from the ranks that it killed.
exit_is_13() {
    [ "$status" = 13 ] || { [ "$1" = mpich ] && [[ $status == [19] ]]; }
}

# stopped FLAVOUR: the other rank ends the run at the timeout and reports the operation. Its watchdog
# does so if the rank is inside MPI, otherwise the rank itself.
stopped() {
    lose "$1" 1 STOP
    exit_is_13 "$1"
    [ "$ended_ms" -lt 6000 ]
    grep -E 'rank 0.* 1 s' err.txt
    [[ $(json out.json 'd["reason"]') =~ " 1 s "|"rank 1 " ]]
}

@test "Open MPI: a stopped rank ends the run at the timeout" {
    stopped openmpi
}

@test "MPICH: a stopped rank ends the run at the timeout" {
    stopped mpich
}

# missing FLAVOUR: rank 1 never calls MPI_Init.
missing() {
    needs "$1"
    # shellcheck disable=SC2016 # $1 and so on are the inner shell's
    run mpi "$1" 2 sh -c '
        eval "rank=\$$1"
        [ "$rank" = 0 ] || { echo $$ >victim; exec sleep 30; }
        exec "$2" allreduce --size 4 -T 1' \
        sh "$(rank_variable "$1")" "$ddpbench"
    exit_is_13 "$1"
    error_names "rank 0" "1 s" "'MPI_Init'"
}

@test "Open MPI: a rank that never starts MPI is waited for until the timeout" {
    missing openmpi
}

@test "MPICH: a rank that never starts MPI is waited for until the timeout" {
    missing mpich
}

@test "MPICH: ranks that compute for ever end the run, with their phase" {
    needs mpich
    "${CC:-cc}" -shared -fPIC -O1 -o stuck.so "$root/tests/fault/stuck_blas.c"
    run --separate-stderr mpi mpich 2 "$ddpbench" train --dataset synthetic --images 256 --epochs 1 -T 1 --blas ./stuck.so \
        --json out.json
    exit_is_13 mpich
    error_names rank "epoch 1 step 1"
    [[ $(json out.json 'd["status"], d["reason"]') == *partial*"epoch 1 step 1"* ]]
}
