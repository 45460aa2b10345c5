#!/usr/bin/env bats
# Under the mpiexec of each MPI, a rank is killed: the run ends by itself with a failure, and the
# document says partial and contains every point that was printed.
# jobs: 3
# shellcheck disable=SC2154 # status, ended_ms: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# killed FLAVOUR RANK: the run does not succeed, and does not last until the test's time limit (124).
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

# told_to_end FLAVOUR: sends rank 0 the signal that mpiexec sends to all ranks when it ends the job. The
# signal goes to rank 0 directly, so that the test does not depend on when mpiexec kills the ranks.
told_to_end() {
    needs "$1"
    local job
    # shellcheck disable=SC2016 # $0 and so on are the inner shell's
    mpi "$1" 2 sh -c '
        eval "rank=\$$0"
        [ "$rank" != 0 ] || echo $$ >victim
        exec "$1" allreduce --size 4,64M --placement in --order given -n 1000 -w 1 --json out.json' \
        "$(rank_variable "$1")" "$ddpbench" >out.txt 2>err.txt 3>&- &
    job=$!
    for _ in {1..300}; do
        ! grep -qs '"id"' out.json || break
        sleep 0.1
    done
    kill -TERM "$(cat victim)"
    wait "$job" && return 1
    [ "$(json out.json 'd["status"], "Terminated" in d["reason"], len(d["points"])')" = "('partial', True, 1)" ]
}

@test "Open MPI: rank 0 is told to end: the document says so" {
    told_to_end openmpi
}

@test "MPICH: rank 0 is told to end: the document says so" {
    told_to_end mpich
}
