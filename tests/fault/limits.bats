#!/usr/bin/env bats
# Limits on memory, stack and processor time, and ranks that compute for ever: the run ends by itself
# with the right exit code and names the cause.
# shellcheck disable=SC2154 # ddpbench: helpers.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    train=(train --ranks 2 --dataset synthetic --images 256 --epochs 1 -T 2)
}

# limited OPTION VALUE ARGUMENT...: runs ddpbench with `ulimit OPTION VALUE`.
limited() {
    # shellcheck disable=SC2016 # $1 and so on are the inner shell's
    run --separate-stderr timeout 30 bash -c 'ulimit "$1" "$2" && shift 2 && exec "$@"' limited "$1" "$2" "$ddpbench" "${@:3}"
}

@test "an address space limit that denies OpenBLAS its buffer ends a training with 71" {
    ! is_sanitized || skip "a sanitizer needs more address space"
    limited -v 614400 "${train[@]}" --json out.json
    [ "$status" = 71 ]
    error_names "128 MiB"
    hint_names "ulimit -v" --blas
    file_says out.json '"partial"'
    limited -d 131072 "${train[@]}"
    [ "$status" = 71 ]
    # With its kernels for Haswell, OpenBLAS needs the buffer for small products, too.
    OPENBLAS_CORETYPE=Haswell limited -v 614400 "${train[@]}"
    [ "$status" = 71 ]
}

@test "ranks that compute for ever are ended after --timeout, with their phase" {
    "${CC:-cc}" -shared -fPIC -O1 -o stuck.so "$BATS_TEST_DIRNAME/stuck_blas.c"
    run --separate-stderr timeout 30 "$ddpbench" "${train[@]}" --blas ./stuck.so --json out.json
    [ "$status" = 13 ]
    error_names "rank 0" "2 s" "epoch 1 step 1"
    file_says out.json '"partial"' "epoch 1 step 1"
}

@test "a stack limit that is too small ends every command with 71" {
    for kib in 16 64 255; do
        # The environment lies in the stack as well. A long one leaves too little of 16 KiB for the loader.
        run --separate-stderr env -i "PATH=$PATH" bash -c "ulimit -s $kib; exec '$ddpbench' allreduce --size 4 --ranks 2"
        [ "$status" = 71 ] || { echo "$kib KiB: exit $status"; false; }
        error_names "stack limit" "256 KiB"
        hint_names "ulimit -s"
    done
    limited -s 256 allreduce --size 4 --ranks 2 -n 1
    [ "$status" = 0 ]
}

# memory_group BYTES: makes a control group with this memory limit and prints its folder, or skips.
memory_group() {
    local mount=/sys/fs/cgroup file=memory.max
    [ ! -d "$mount/memory" ] || mount=$mount/memory file=memory.limit_in_bytes
    group=$mount/ddpbench-$$
    { mkdir "$group" && echo "$1" >"$group/$file"; } 2>/dev/null || skip "no control group can be made here"
    [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
}

teardown() {
    [ -z "${group:-}" ] || rmdir "$group"
}

@test "a control group that runs out of memory ends the run with 71" {
    memory_group 40000000
    # The estimate of a point does not count the memory of the program itself. A build with a sanitizer
    # has less memory left, so it refuses the first sizes.
    for size in 6M 5500K 5M; do
        run --separate-stderr timeout 30 bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
            "$ddpbench" allreduce --ranks 2 --size $size --json out.json
        [ "$status" = 71 ]
        [[ "$stderr" == *available* ]] || break
    done
    error_names "memory ran out"
    hint_names "MiB"
    file_says out.json '"partial"'
}

@test "ranks that use up their processor time are named" {
    limited -t 1 train --ranks 2 --dataset synthetic --epochs 1000 -q --json out.json
    [ "$status" = 13 ]
    error_names "processor time" "1 s"
    hint_names "ulimit -t"
}
