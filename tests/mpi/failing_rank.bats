#!/usr/bin/env bats
# One rank of a job fails where the others do not, before they have met: it says its number, its host and
# the reason. What all ranks of a host see alike is said once.
# shellcheck disable=SC2154 # ddpbench, output, stderr, status, hosts: mpi.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
    host=$(hostname)
}

teardown() {
    [ -z "${hosts[*]:-}" ] || hosts_down
}

# FLAVOUR VARIABLE=VALUE ARGUMENTS...: a job of three ranks, of which rank 1 alone has the variable.
with_other_rank() {
    local flavour=$1 setting=$2
    needs "$flavour"
    shift 2
    # shellcheck disable=SC2016 # the inner shell's
    run mpi "$flavour" 3 sh -c '
        eval "rank=\$$1"
        [ "$rank" != 1 ] || export "$2"
        shift 2
        exec "$@"' sh "$(rank_variable "$flavour")" "$setting" "$ddpbench" "$@"
    [ "$status" != 0 ] || { echo "$output"; false; }
    [ "$status" != 124 ]
}

# FLAVOUR
no_module() {
    with_other_rank "$1" DDPBENCH_MODULE_DIR=/nonexist allreduce --size 1K -T 3
    says "error: rank 1 on $host: "
    says "ddpbench-mpi-$1.so"
}

@test "Open MPI: a rank without the module says so" { no_module openmpi; }
@test "MPICH: a rank without the module says so" { no_module mpich; }

# FLAVOUR
unknown_variable() {
    with_other_rank "$1" DDPBENCH_SIMDX=1 allreduce --size 1K -T 3
    says "error: rank 1 on $host: unknown environment variable 'DDPBENCH_SIMDX'"
}

@test "Open MPI: a rank with an unknown variable says so" { unknown_variable openmpi; }
@test "MPICH: a rank with an unknown variable says so" { unknown_variable mpich; }

# FLAVOUR: the doctor, as lines and as JSON.
doctor_fails() {
    with_other_rank "$1" DDPBENCH_MODULE_DIR=/nonexist doctor
    [ "$status" = 69 ]
    grep "^FAIL  rank 1 on $host: backend mpi: .*ddpbench-mpi-$1.so" <<<"$output"
    [ "$(grep -c ^FAIL <<<"$output")" = 1 ]
    [ "$(grep -c '  cores: ' <<<"$output")" = 1 ]
    with_other_rank "$1" DDPBENCH_MODULE_DIR=/nonexist doctor --json
    [ "$status" = 69 ]
    says "FAIL  rank 1 on $host: backend mpi: "
}

@test "Open MPI: the doctor finds the rank without the module" { doctor_fails openmpi; }
@test "MPICH: the doctor finds the rank without the module" { doctor_fails mpich; }

# FLAVOUR: a rank whose launcher variables are wrong.
wrong_launcher() {
    local variable=OMPI_COMM_WORLD_LOCAL_RANK
    [ "$1" = openmpi ] || variable=MPI_LOCALRANKID
    with_other_rank "$1" $variable=99 allreduce --size 1K -T 3
    says "error: rank 1 on $host: local rank 99 ($variable)"
    with_other_rank "$1" $variable=99 doctor
    [ "$status" = 69 ]
    grep "^FAIL  rank 1 on $host: launcher: .*$variable" <<<"$output"
    [ "$(grep -c '  cores: ' <<<"$output")" = 1 ] || { echo "$output"; false; }
}

@test "Open MPI: a rank with a wrong launcher variable is named" { wrong_launcher openmpi; }
@test "MPICH: a rank with a wrong launcher variable is named" { wrong_launcher mpich; }

@test "a process whose rank is unknown names its host" {
    FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 failed 76 "a rank on $host: " FLUX_TASK_RANK -- allreduce --size 1K
}

# FLAVOUR RANKS FAILING COMMAND...: the ranks in FAILING (a pattern of case) have no module.
without_module() {
    local flavour=$1 ranks=$2 failing=$3
    needs "$flavour"
    shift 3
    # shellcheck disable=SC2016 # the inner shell's
    run mpi "$flavour" "$ranks" sh -c '
        eval "rank=\$$1"
        case " $2 " in *" $rank "* | " all ") export DDPBENCH_MODULE_DIR=/nonexist ;; esac
        shift 2
        exec "$@"' sh "$(rank_variable "$flavour")" "$failing" "$ddpbench" "$@"
    [ "$status" = 69 ] || { echo "$status: $output"; false; }
}

# FLAVOUR: Hydra does not end the ranks that wait in MPI_Init when two others fail, so MPICH runs
# only the doctor, which does not start MPI.
two_fail() {
    if [ "$1" = openmpi ]; then
        without_module "$1" 4 "1 3" allreduce --size 1K
        says "error: rank 1 on $host: " "error: rank 3 on $host: " "ddpbench-mpi-$1.so"
    fi
    without_module "$1" 4 "1 3" doctor
    says "FAIL  rank 1 on $host: backend mpi: " "FAIL  rank 3 on $host: backend mpi: " "ddpbench-mpi-$1.so"
}

@test "Open MPI: two ranks that fail alike are both named" { two_fail openmpi; }
@test "MPICH: two ranks that fail alike are both named" { two_fail mpich; }

@test "of many ranks that fail alike, eight are named" {
    without_module openmpi 12 all allreduce --size 1K
    [ "$(grep -c "error: rank [0-9]* on $host: " <<<"$output")" = 8 ] || { echo "$output"; false; }
    [ "$(grep -c 'further ranks' <<<"$output")" = 1 ]
}

# FLAVOUR: rank 0 starts 4 s later than rank 1, which fails.
late_rank() {
    needs "$1"
    # shellcheck disable=SC2016 # the inner shell's
    run mpi "$1" 2 sh -c '
        eval "rank=\$$1"
        if [ "$rank" = 0 ]; then sleep 4; else export DDPBENCH_MODULE_DIR=/nonexist; fi
        exec "$2" doctor' sh "$(rank_variable "$1")" "$ddpbench"
    [ "$status" = 69 ]
    grep "^FAIL  rank 1 on $host: backend mpi: " <<<"$output"
    says "OK    backend mpi: "
}

@test "Open MPI: the doctor waits for a late rank" { late_rank openmpi; }
@test "MPICH: the doctor waits for a late rank" { late_rank mpich; }

# FLAVOUR CODE TEXT COMMAND...: a job of three ranks, all without the module, says the text once.
once() {
    local flavour=$1 code=$2 text=$3
    needs "$flavour"
    shift 3
    DDPBENCH_MODULE_DIR=$BATS_TEST_TMPDIR run mpi "$flavour" 3 "$ddpbench" "$@"
    [ "$status" = "$code" ] || { echo "$status: $output"; false; }
    [ "$(grep -c -- "$text" <<<"$output")" = 1 ] || { echo "$output"; false; }
}

# FLAVOUR
alike() {
    once "$1" 64 "'--bogus'" allreduce --bogus
    once "$1" 69 "rank . on $host: .*ddpbench-mpi-$1.so" allreduce --size 1K
    once "$1" 69 "^FAIL .*ddpbench-mpi-$1.so" doctor
}

@test "Open MPI: what all ranks of a host see alike is said once" { alike openmpi; }
@test "MPICH: what all ranks of a host see alike is said once" { alike mpich; }

# FLAVOUR: of two hosts, the second has no module. The doctor of each speaks for its host.
doctor_of_hosts() {
    needs "$1"
    load netns.bash
    hosts_up 2
    # shellcheck disable=SC2016 # the inner shell's
    run mpi "$1" 4 sh -c '[ "$(hostname)" != "$1" ] || export DDPBENCH_MODULE_DIR=/nonexist; exec "$2" doctor' \
        sh "${hosts[1]}" "$ddpbench"
    [ "$status" = 69 ] || { echo "$status: $output"; false; }
    grep "^FAIL  ${hosts[1]}: backend mpi: .*ddpbench-mpi-$1.so" <<<"$output"
    [ "$(grep -c ^FAIL <<<"$output")" = 1 ]
    grep "^OK    ${hosts[0]}: backend mpi: " <<<"$output"
    grep "^[A-Z]* *${hosts[1]}: cores: " <<<"$output"
}

@test "Open MPI: the doctor names the host without the module" { doctor_of_hosts openmpi; }
@test "MPICH: the doctor names the host without the module" { doctor_of_hosts mpich; }

@test "torchrun: a rank without a GPU says so" {
    [ -z "$(command -v nvidia-smi)" ] || skip "may have a GPU"
    run env RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "$ddpbench" allreduce --size 1K -T 2
    [ "$status" = 69 ]
    says "error: rank 1 on $host: "
}
