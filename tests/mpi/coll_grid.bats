#!/usr/bin/env bats
# Under the mpiexec of each MPI: the grid of all collectives and algorithms (tests/grid), and groups
# that run different ones at the same time.
# shellcheck disable=SC2154 # modules: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# FLAVOUR RANKS TEST
grid() {
    needs "$1"
    [ -x "$modules/tests/grid/$3" ] || skip "tests/grid/$3 was not built"
    mpi "$1" "$2" "$modules/tests/grid/$3" --mpi "$modules"
}

@test "Open MPI: every collective and algorithm, 3 ranks" {
    grid openmpi 3 test_coll_grid
}

@test "MPICH: every collective and algorithm, 3 ranks" {
    grid mpich 3 test_coll_grid
}

@test "Open MPI: different collectives in disjoint groups, 5 ranks" {
    grid openmpi 5 test_coll_groups
}

@test "MPICH: different collectives in disjoint groups, 5 ranks" {
    grid mpich 5 test_coll_groups
}
