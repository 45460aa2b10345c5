#!/usr/bin/env bats
# Outputs under the mpiexec of each MPI: if rank 0 cannot write one, all ranks end with its exit code.
# Also the command matrix, which has no other test under mpiexec.
# shellcheck disable=SC2154 # status: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# full_at_the_end FLAVOUR: only ddpbench reports a document that cannot be written; MPI is not aborted.
full_at_the_end() {
    needs "$1"
    run mpi "$1" 2 "$ddpbench" allreduce --size 4 -n 1 -w 0 --json /dev/full
    [ "$status" = 74 ]
    error_names "'/dev/full'" "No space left on device"
    [[ $output != *ORTE_ERROR_LOG* && $output != *MPI_ABORT* && $output != *application\ called* ]]
}

@test "Open MPI: a document that cannot be written: 74, without a word of mpiexec's" {
    full_at_the_end openmpi
}

@test "MPICH: a document that cannot be written: 74, without a word of mpiexec's" {
    full_at_the_end mpich
}

# mistakes FLAVOUR: makes usage errors that only rank 0 checks, and writes to a pipe without a reader.
mistakes() {
    needs "$1"
    echo good >good.json
    run mpi "$1" 2 "$ddpbench" allreduce --size 4 --json good.json --format table,table
    [ "$status" = 64 ]
    [ "$(cat good.json)" = good ]
    run mpi "$1" 2 "$ddpbench" allreduce --size 4 --json good.json --algorithm direct --memory private
    [ "$status" = 64 ]
    [ "$(cat good.json)" = good ]
    run mpi "$1" 2 "$ddpbench" allreduce --size 4 --json good.json --launch threads
    [ "$status" = 64 ]
    mkfifo pipe
    run mpi "$1" 2 "$ddpbench" allreduce --size 4 -n 1 -T 2 --json pipe
    [ "$status" = 74 ]
    error_names "'pipe'"
}

@test "Open MPI: mistakes change no file; a pipe that nobody reads is 74, no rank's fault" {
    mistakes openmpi
}

@test "MPICH: mistakes change no file; a pipe that nobody reads is 74, no rank's fault" {
    mistakes mpich
}

# every_pair FLAVOUR: matrix measures all pairs of three ranks.
every_pair() {
    needs "$1"
    mpi "$1" 3 "$ddpbench" matrix --size 4K -n 3 --max-time 0.01 -q --json m.json
    keep m.json
    holds m.json "[sum(v is None for v in row) for row in d['matrix']['both_GBps']] == [1, 1, 1]"
}

@test "Open MPI: matrix" { every_pair openmpi; }
@test "MPICH: matrix" { every_pair mpich; }

# judged FLAVOUR: mpiexec ends with the code of the verdict of health.
judged() {
    needs "$1"
    DDPBENCH_SIMULATE_HOSTS=2 run mpi "$1" 2 "$ddpbench" health --max-time 0.1 -q --json h.json
    [ "$status" = "$(json h.json "{'HEALTHY': 0, 'DEGRADED': 10, 'CANNOT TELL': 12}[d['health']['verdict']]")" ]
    holds h.json "d['health']['verdict'] != 'HEALTHY'" # two hosts have no third one to compare with
    run mpi "$1" 3 "$ddpbench" health --ranks 2
    [ "$status" = 64 ]
}

# isolated FLAVOUR: mpiexec ends with the code of the verdict of isolate, whose ends are hosts here.
isolated() {
    needs "$1"
    DDPBENCH_SIMULATE_HOSTS=4 run mpi "$1" 4 "$ddpbench" isolate --max-time 1 --size 4K -q --json i.json
    [ "$status" = "$(json i.json "{'HEALTHY': 0, 'DEGRADED': 10, 'CANNOT TELL': 12}[d['health']['verdict']]")" ]
    holds i.json "d['health']['rounds'] >= 1 and d['health']['group_ends'] == 2 and d['health']['findings'] == []"
}

@test "Open MPI: isolate" { isolated openmpi; }
@test "MPICH: isolate" { isolated mpich; }
@test "Open MPI: health" { judged openmpi; }
@test "MPICH: health" { judged mpich; }
