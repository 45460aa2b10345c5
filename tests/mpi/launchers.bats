#!/usr/bin/env bats
# Runs under the mpiexec of each MPI give right results and never become N separate worlds of one rank.
# jobs: 3
# shellcheck disable=SC2154 # root, ddpbench, modules: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# correct FLAVOUR RANKS LIBRARY LAUNCHER: results are right; the document names library and launcher.
correct() {
    needs "$1"
    mpi "$1" "$2" "$ddpbench" allreduce --algorithm native --size 0,4,10000,1M -o sum,avg -n 3 -w 1 \
        --json out.json
    [ "$(json out.json 'd["status"]')" = complete ]
    [ "$(json out.json 'd["world"]["ranks"]')" = "$2" ]
    [ "$(json out.json 'd["world"]["launcher"]')" = "$4" ]
    [[ $(json out.json 'd["tool"]["features"]["mpi"]') == "$3 "[0-9]* ]]
    [ "$(json out.json 'len(d["points"])')" = 16 ]
    [ "$(json out.json 'sum(p["check"]["wrong"] for p in d["points"])')" = 0 ]
    [ "$(json out.json 'all(p["algorithm_used"] == "native" for p in d["points"])')" = True ]
    [ "$(json out.json 'all(p["busbw_GBps"] > 0 for p in d["points"] if p["size_bytes"])')" = True ]
}

@test "the binary itself needs no MPI" {
    run ldd "$ddpbench"
    [[ $output == *libc.so* && $output != *libmpi* && $output != *libmpich* ]]
}

@test "Open MPI, 2 ranks: correct, busbw in the document" {
    correct openmpi 2 "Open MPI" "mpiexec (Open MPI)"
}

@test "Open MPI, 4 ranks: correct, busbw in the document" {
    correct openmpi 4 "Open MPI" "mpiexec (Open MPI)"
}

@test "MPICH, 2 ranks: correct, busbw in the document" {
    correct mpich 2 MPICH "mpiexec (Hydra)"
}

@test "MPICH, 4 ranks: correct, busbw in the document" {
    correct mpich 4 MPICH "mpiexec (Hydra)"
}

# refused_without_module INSTALLED WANTED: only the module of INSTALLED exists; WANTED's mpiexec starts us.
refused_without_module() {
    needs "$1"
    needs "$2"
    mkdir only
    cp "$modules/ddpbench-mpi-$1.so" only
    DDPBENCH_MODULE_DIR=$PWD/only run mpi "$2" 2 "$ddpbench" allreduce --size 4 --json out.json
    [ "$status" = 69 ]
    error_names "'ddpbench-mpi-$2.so'" "'$PWD/only'" " $1"
    [ ! -e out.json ]
}

@test "with Open MPI's module alone, MPICH's mpiexec is refused" {
    refused_without_module openmpi mpich
}

@test "with MPICH's module alone, Open MPI's mpiexec is refused" {
    refused_without_module mpich openmpi
}

@test "a module of another MPI under a wrong name is refused" {
    needs openmpi
    needs mpich
    mkdir false
    cp "$modules/ddpbench-mpi-openmpi.so" false/ddpbench-mpi-mpich.so
    DDPBENCH_MODULE_DIR=$PWD/false run mpi mpich 2 "$ddpbench" allreduce --size 4
    [ "$status" = 76 ]
    error_names "'openmpi'" "'mpich'"
}

@test "a module of another build is refused" {
    needs mpich
    mkdir other
    commit=$("$ddpbench" --version | sed 's/.*(\(.*\))/\1/')
    LC_ALL=C sed "s/$commit/${commit//?/x}/" "$modules/ddpbench-mpi-mpich.so" >other/ddpbench-mpi-mpich.so
    DDPBENCH_MODULE_DIR=$PWD/other run mpi mpich 2 "$ddpbench" allreduce --size 4
    [ "$status" = 76 ]
    error_names "'${commit//?/x}'" "'$commit'"
}

# refused_as_worlds_of_one FLAVOUR VARIABLE=VALUE...: the launcher's variables say 2 ranks, MPI says 1.
refused_as_worlds_of_one() {
    needs "$1"
    shift
    run env "$@" timeout 30 "$ddpbench" allreduce --size 4 --json out.json
    [ "$status" = 76 ]
    error_names "rank 0 of 2" "rank 0 of 1"
    hint_names mpiexec
    [ ! -e out.json ]
}

@test "Open MPI: N worlds of one rank are refused" {
    refused_as_worlds_of_one openmpi OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 \
        OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2
}

@test "MPICH: N worlds of one rank are refused" {
    refused_as_worlds_of_one mpich PMI_RANK=0 PMI_SIZE=2
}
