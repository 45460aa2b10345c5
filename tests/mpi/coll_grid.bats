#!/usr/bin/env bats
# Runs the grid of all collectives and algorithms (tests/grid) under the mpiexec of each MPI, and groups
# that run different collectives at the same time.
# shellcheck disable=SC2154 # modules: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# every FLAVOUR: runs the grid of the collectives. GRID_RANKS="1 2 8": with these numbers of ranks (`make grid`).
every() {
    local ranks
    for ranks in ${GRID_RANKS:-3}; do
        grid "$1" "$ranks" test_coll_grid
        grid "$1" "$ranks" test_split_grid ${GRID_RANKS:+--full}
    done
}

# grid FLAVOUR RANKS TEST [ALGORITHM]: runs a program of tests/grid under this MPI.
grid() {
    needs "$1"
    [ -x "$modules/tests/grid/$3" ] || skip "tests/grid/$3 was not built"
    mpi "$1" "$2" "$modules/tests/grid/$3" --mpi "$modules" "${@:4}"
}

# hosts FLAVOUR RANKS: simulates several hosts, with shared memory inside each and this MPI between
# them: 2 and 2 ranks, 1 and 3 ranks, and RANKS ranks assigned to two hosts alternately.
hosts() {
    DDPBENCH_SIMULATE_HOSTS=2 grid "$1" 4 test_coll_grid hier
    DDPBENCH_SIMULATE_HOSTS=1+3 grid "$1" 4 test_coll_grid hier
    DDPBENCH_SIMULATE_HOSTS='2*' grid "$1" "$2" test_coll_grid hier
    DDPBENCH_SIMULATE_HOSTS=2 grid "$1" 4 test_coll_groups
}

@test "Open MPI: every collective and algorithm, 3 ranks (1 to 8: make grid)" {
    every openmpi
}

@test "MPICH: every collective and algorithm, 3 ranks (1 to 8: make grid)" {
    every mpich
}

@test "Open MPI: different collectives in disjoint groups, 5 ranks" {
    grid openmpi 5 test_coll_groups
}

@test "MPICH: different collectives in disjoint groups, 5 ranks" {
    grid mpich 5 test_coll_groups
}

@test "Open MPI: sparse and compressed all-reduce, 3 ranks" {
    grid openmpi 3 test_sparse_grid
    grid openmpi 3 test_sparse_oktopk
    grid openmpi 3 test_compressed
}

@test "MPICH: sparse and compressed all-reduce, 3 ranks" {
    grid mpich 3 test_sparse_grid
    grid mpich 3 test_sparse_oktopk
    grid mpich 3 test_compressed
}

@test "Open MPI: hosts of 2 ranks, of 1 and 3 ranks, and of alternate ranks" {
    hosts openmpi 6
}

@test "MPICH: hosts of 2 ranks, of 1 and 3 ranks, and of alternate ranks" { # only 4: its ranks never yield
    hosts mpich 4
}

@test "both: messages in pieces (2^31 + 8 elements: make grid)" {
    grid openmpi 2 test_coll_huge
    grid mpich 2 test_coll_huge
}
