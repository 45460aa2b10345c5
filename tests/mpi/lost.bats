#!/usr/bin/env bats
# Under the mpiexec of each MPI, a rank is killed: the run ends by itself, not with success, and
# every point that was printed is in the document, which says partial.
# shellcheck disable=SC2154 # status, ended_ms: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# FLAVOUR RANK: neither success, nor our own patience (124).
killed() {
    lose "$1" "$2" KILL
    [ "$status" != 0 ]
    [ "$status" != 124 ]
    [ "$ended_ms" -lt 7000 ]
}

@test "Open MPI: rank 0 is killed" {
    killed openmpi 0
}

@test "Open MPI: rank 1 is killed" {
    killed openmpi 1
}

@test "MPICH: rank 0 is killed" {
    killed mpich 0
}

@test "MPICH: rank 1 is killed" {
    killed mpich 1
}
