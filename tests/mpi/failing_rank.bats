#!/usr/bin/env bats
# A single rank of a job fails before the ranks are connected: it reports its number, its host and the
# reason. An error that all ranks of a host have is reported once.
# jobs: 4
# shellcheck disable=SC2154 # ddpbench, output, stderr, status, hosts: mpi.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

teardown() {
    [ -z "${hosts[*]:-}" ] || hosts_down
}

# with_other_rank FLAVOUR VARIABLE=VALUE ARGUMENT...: runs three ranks; only rank 1 has the variable.
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

# no_module FLAVOUR: rank 1 does not find the module.
no_module() {
    with_other_rank "$1" DDPBENCH_MODULE_DIR=/nonexist allreduce --size 1K -T 3
    says "error: rank 1 on $host: "
    says "ddpbench-mpi-$1.so"
}

@test "Open MPI: a rank without the module says so" { no_module openmpi; }
@test "MPICH: a rank without the module says so" { no_module mpich; }

# unknown_variable FLAVOUR: rank 1 has an unknown variable.
unknown_variable() {
    with_other_rank "$1" DDPBENCH_SIMDX=1 allreduce --size 1K -T 3
    says "error: rank 1 on $host: unknown environment variable 'DDPBENCH_SIMDX'"
}

@test "Open MPI: a rank with an unknown variable says so" { unknown_variable openmpi; }
@test "MPICH: a rank with an unknown variable says so" { unknown_variable mpich; }

# doctor_fails FLAVOUR: the doctor fails, as text and as JSON.
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

# wrong_launcher FLAVOUR: a rank with a wrong launcher variable is named with its host.
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

# without_module FLAVOUR RANKS FAILING COMMAND...: the ranks listed in FAILING have no module.
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

# two_fail FLAVOUR: two ranks fail alike, and both are named. Under MPICH only the doctor is tested,
# because Hydra does not end the ranks that wait in MPI_Init after two others have failed.
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

# late_rank FLAVOUR: rank 0 starts 2 s later than rank 1, which fails.
late_rank() {
    needs "$1"
    # shellcheck disable=SC2016 # the inner shell's
    run mpi "$1" 2 sh -c '
        eval "rank=\$$1"
        if [ "$rank" = 0 ]; then sleep 2; else export DDPBENCH_MODULE_DIR=/nonexist; fi
        exec "$2" doctor' sh "$(rank_variable "$1")" "$ddpbench"
    [ "$status" = 69 ]
    grep "^FAIL  rank 1 on $host: backend mpi: " <<<"$output"
    says "OK    backend mpi: "
}

@test "Open MPI: the doctor waits for a late rank" { late_rank openmpi; }
@test "MPICH: the doctor waits for a late rank" { late_rank mpich; }

# once FLAVOUR CODE TEXT COMMAND...: three ranks, all without the module, print the text once.
once() {
    local flavour=$1 code=$2 text=$3
    needs "$flavour"
    shift 3
    DDPBENCH_MODULE_DIR=$BATS_TEST_TMPDIR run mpi "$flavour" 3 "$ddpbench" "$@"
    [ "$status" = "$code" ] || { echo "$status: $output"; false; }
    [ "$(grep -c -- "$text" <<<"$output")" = 1 ] || { echo "$output"; false; }
}

# alike FLAVOUR: errors that all ranks of a host have are reported once.
alike() {
    once "$1" 64 "'--bogus'" allreduce --bogus
    once "$1" 69 "rank . on $host: .*ddpbench-mpi-$1.so" allreduce --size 1K
    once "$1" 69 "^FAIL .*ddpbench-mpi-$1.so" doctor
}

@test "Open MPI: an error that all ranks of a host have is reported once" { alike openmpi; }
@test "MPICH: an error that all ranks of a host have is reported once" { alike mpich; }

# doctor_of_hosts FLAVOUR: the second of two hosts has no module. The doctor reports for each host.
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
    run env RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "$ddpbench" allreduce --backend nccl --size 1K -T 2
    [ "$status" = 69 ]
    says "error: rank 1 on $host: "
}
