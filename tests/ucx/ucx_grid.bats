#!/usr/bin/env bats
# Runs the grid of all collectives and algorithms (tests/grid) on backend ucx with torchrun's variables:
# on one host, on simulated hosts, in groups, and sparse.
# shellcheck disable=SC2154 # modules: ucx.bash
bats_require_minimum_version 1.5.0

setup() {
    load ucx.bash
    ucx_setup
}

# grid RANKS TEST [ALGORITHM]: runs a program of tests/grid.
grid() {
    local ranks=$1 test=$2
    shift 2
    [ -x "$modules/tests/grid/$test" ] || skip "tests/grid/$test was not built"
    limit=120 all_zero "$ranks" "$modules/tests/grid/$test" --mpi "$modules" "$@"
}

@test "every collective and algorithm, 3 ranks" {
    grid 3 test_coll_grid
    grid 3 test_split_grid
}

@test "every collective and algorithm, 3 ranks over TCP" {
    UCX_TLS=tcp,self grid 3 test_coll_grid
}

@test "different collectives in disjoint groups, 5 ranks" {
    grid 5 test_coll_groups
}

@test "sparse and compressed all-reduce, 3 ranks" {
    grid 3 test_sparse_grid
    grid 3 test_sparse_oktopk
    grid 3 test_compressed
}

@test "hosts of 2 ranks, of 1 and 3 ranks, and of alternate ranks" {
    DDPBENCH_SIMULATE_HOSTS=2 grid 4 test_coll_grid hier
    DDPBENCH_SIMULATE_HOSTS=1+3 grid 4 test_coll_grid hier
    DDPBENCH_SIMULATE_HOSTS='2*' grid 6 test_coll_grid hier
    DDPBENCH_SIMULATE_HOSTS=2 grid 4 test_coll_groups
}
