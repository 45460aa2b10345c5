#!/usr/bin/env bats
# Under the mpiexec of each MPI, ranks with other arguments or of another build are named before
# anything is measured, and all ranks exit with 76.
# jobs: 3
# shellcheck disable=SC2154 # root, ddpbench, modules, status: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# differs FLAVOUR BINARY "ARGUMENTS" "ARGUMENTS OF RANK 1" SUBJECT...: rank 1 of 3 differs and is named
# once. All ranks exit with 76, unless Open MPI's mpiexec ends them first because one has exited.
differs() {
    needs "$1"
    local more=() one
    [ "$1" != openmpi ] || more=(--oversubscribe)
    # shellcheck disable=SC2016 # $1 and so on are the inner shell's
    one=(sh -c '"$@"; rc=$?; echo $rc >>codes; exit $rc' sh)
    # shellcheck disable=SC2086 # options
    run timeout --kill-after=5 60 "mpiexec.$1" "${more[@]}" \
        -n 1 "${one[@]}" "$ddpbench" $3 --json out.json : \
        -n 1 "${one[@]}" "$2" $4 --json out.json : \
        -n 1 "${one[@]}" "$ddpbench" $3 --json out.json
    echo "exit $status: $output"
    error_names "${@:5}"
    [ "$(grep -c "error: " <<<"$output")" = 1 ]
    [ "$(sort -u codes)" = 76 ]
    [ "$1" = openmpi ] || [ "$(wc -l <codes)" = 3 ]
    [ "$status" = 76 ]
    [ ! -e out.json ]
}

other_arguments() {
    differs "$1" "$ddpbench" "allreduce --size 1M" "allreduce --size 2M" \
        "rank 1" "'--size 2M'" "rank 0" "'--size 1M'"
}

@test "Open MPI: another argument" {
    other_arguments openmpi
}

@test "MPICH: another argument" {
    other_arguments mpich
}

@test "Open MPI: another command" {
    differs openmpi "$ddpbench" "allreduce --size 1M" "broadcast --size 1M" \
        "rank 1" "'broadcast'" "rank 0" "'allreduce'"
}

@test "MPICH: an argument too many" {
    differs mpich "$ddpbench" "allreduce -n 5 --size 4" "allreduce -n 5 --size 4 -q" \
        "rank 1" "'-q'"
}

# Makes a copy of this build with another build id.
other_build() {
    needs "$1"
    mkdir other
    commit=$("$ddpbench" --version | sed 's/.*(\(.*\))/\1/')
    LC_ALL=C sed "s/$commit/${commit//?/x}/g" "$ddpbench" >other/ddpbench
    LC_ALL=C sed "s/$commit/${commit//?/x}/g" "$modules/ddpbench-mpi-$1.so" >"other/ddpbench-mpi-$1.so"
    chmod +x other/ddpbench
    differs "$1" "$PWD/other/ddpbench" "allreduce --size 1M" "allreduce --size 1M" \
        "rank 1" "(${commit//?/x})" "rank 0"
}

@test "Open MPI: another build" {
    other_build openmpi
}

@test "MPICH: another build" {
    other_build mpich
}

# files_differ FLAVOUR: the file of --split has another content where rank 2 runs.
# shellcheck disable=SC2016 # the inner shell's
files_differ() {
    needs "$1"
    local more=()
    [ "$1" != openmpi ] || more=(--oversubscribe)
    mkdir a b
    printf '1 2 3\n1 1 1\n0 1 2\n' >a/parts
    printf '1 2 3\n1 1 1\n0 1 3\n' >b/parts
    run timeout --kill-after=5 60 "mpiexec.$1" "${more[@]}" \
        -n 2 sh -c 'cd a && exec "$@"' sh "$ddpbench" all-to-all-v --split parts --size 4K : \
        -n 1 sh -c 'cd b && exec "$@"' sh "$ddpbench" all-to-all-v --split parts --size 4K
    echo "exit $status: $output"
    [ "$status" = 76 ]
    error_names --split "rank 0" "rank 2"
}

@test "Open MPI: another content of the file of --split" { files_differ openmpi; }
@test "MPICH: another content of the file of --split" { files_differ mpich; }
