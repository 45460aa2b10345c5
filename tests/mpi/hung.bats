#!/usr/bin/env bats
# Under the mpiexec of each MPI, a rank is stopped, or never comes: the other ends the run at the
# timeout and says where it stood; the document says partial.
# shellcheck disable=SC2154 # ddpbench, status, ended_ms: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

teardown() {
    # A stopped rank cannot follow its mpiexec's last word.
    [ ! -e victim ] || ! grep -q ddpbench "/proc/$(cat victim)/cmdline" 2>/dev/null ||
        kill -KILL "$(cat victim)"
}

# FLAVOUR: what mpiexec ends with when a rank ended with 13. Hydra that notices the end of the rank
# before that of its connection says 1, or the 9 of those it then killed.
exit_is_13() {
    [ "$status" = 13 ] || { [ "$1" = mpich ] && [[ $status == [19] ]]; }
}

# FLAVOUR: the other rank ends it at the timeout, and says where: the watchdog, when it was inside MPI,
# else itself.
stopped() {
    lose "$1" 1 STOP
    exit_is_13 "$1"
    [ "$ended_ms" -lt 6000 ]
    grep -E 'rank 0 on [^:]+: (no progress for 1 s in|rank 0 waited 1 s for rank 1)' err.txt
    [[ $(json out.json 'd["reason"]') =~ "no progress for 1 s in"|"rank 1 never entered" ]]
}

@test "Open MPI: a stopped rank ends the run at the timeout" {
    stopped openmpi
}

@test "MPICH: a stopped rank ends the run at the timeout" {
    stopped mpich
}

# FLAVOUR: rank 1 never comes to MPI_Init.
missing() {
    needs "$1"
    # shellcheck disable=SC2016 # $1 and so on are the inner shell's
    run mpi "$1" 2 sh -c '
        eval "rank=\$$1"
        [ "$rank" = 0 ] || { echo $$ >victim; exec sleep 30; }
        exec "$2" allreduce --size 4 -T 1' \
        sh "$(rank_variable "$1")" "$ddpbench"
    exit_is_13 "$1"
    says "rank 0 on $(hostname): no progress for 1 s in"
    says "phase 'MPI_Init'"
}

@test "Open MPI: a rank that never starts MPI is waited for until the timeout" {
    missing openmpi
}

@test "MPICH: a rank that never starts MPI is waited for until the timeout" {
    missing mpich
}
