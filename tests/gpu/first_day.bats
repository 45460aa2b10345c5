#!/usr/bin/env bats
# tests/gpu/first_day.sh on fake GPUs (tests/nccl): some steps of each of its calls, and its summary.
# shellcheck disable=SC2154 # ddpbench, root: helpers.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../nccl/nccl.bash
    nccl_setup
    mkdir day
    ln -s "$ddpbench" day/ddpbench
    for name in test_gpu_kernels test_gpu_layers bench_gpu; do
        printf '#!/bin/sh\necho "ok 1 - %s"\n' $name >day/$name
        chmod +x day/$name
    done
    export GPUS=1 GPU_PYTHON=$PYTHON LOSE_AFTER=1 SUMMARY=$PWD/summary.md COMPUTE_SANITIZER=none
    unset VIRTUAL_ENV
}

# day CALL STEPS: runs the steps of a call whose names match STEPS.
day() {
    STEPS=$2 run "$root/tests/gpu/first_day.sh" "$1" day
}

# result STEP RESULT: the summary has this row.
result() {
    grep -F "| $1 | $2 |" summary.md || {
        cat summary.md
        return 1
    }
}

@test "call 1: both kinds of communicator call NCCL, and steps for several GPUs are skipped" {
    export FAKE_NCCL_LOG=$PWD/log
    day 1 '^(0 dev|1 |3 one rank (--nccl|, --graph)|3 one rank, all-to-all|3 2 GPUs)'
    [ "$status" = 0 ]
    result "1 kernels, small cases" ok
    result "1 initcheck of test_gpu_layers" skipped
    result "3 one rank, all-to-all" ok
    result "3 2 GPUs" skipped
    for kind in on off; do
        result "3 one rank --nccl-blocking $kind" ok
        [ "$(grep -c "^| 3 one rank --nccl-blocking $kind | 1 | .* | [0-9.]* | [0-9.]* |$" summary.md)" = 4 ] || { cat summary.md; false; }
    done
    grep -qw blocking log
    grep -qw nonblocking log
}

@test "call 1 ends if a kernel is wrong" {
    printf '#!/bin/sh\necho "not ok 1 - sum of f32"; exit 1\n' >day/test_gpu_kernels
    day 1 ''
    [ "$status" = 1 ]
    result "1 kernels, small cases" "**failed**"
    grep -q "not ok 1 - sum of f32" summary.md
    [ "$(grep -c '^| 2 ' summary.md)" = 0 ]
}

@test "call 2: several ranks on one GPU, a killed rank, training" {
    export FAKE_GPUS=1
    day 2 '^(4 one GPU, --ranks 2( --graph)?$|4 two|5 rank 1 of 4 gets KILL$|6 lenet, --conv auto)'
    [ "$status" = 0 ]
    result "4 one GPU, --ranks 2" ok
    result "4 one GPU, --ranks 2 --graph" ok
    result "4 two GPUs, --memory window --graph" skipped
    result "5 rank 1 of 4 gets KILL" ok
    result "6 lenet, --conv auto" ok
}

@test "call 3: beside nccl-tests, and the last step gets the time that is left" {
    printf '#!/bin/sh\necho "%s"\n' "4 1 float sum -1 5.0 0.1 0.1 0 6.0 0.1 0.1 0" >day/all_reduce_perf
    mkdir -p day/bats/bin
    printf '#!/bin/sh\necho "ok 1 - $2"\n' >day/bats/bin/bats
    chmod +x day/all_reduce_perf day/bats/bin/bats
    day 3 '^(8 beside|10|9 two GPUs)'
    [ "$status" = 0 ]
    result "8 beside nccl-tests" ok
    [ "$(json gpu-nccl.json 'sorted({(r["memory"], r["nccl_blocking"], r["placement"]) for r in d["rows"]})[0], len(d["rows"])')" = \
        "(('private', 'off', 'in'), 12)" ] || { cat gpu-nccl.json; false; }
    result "9 two GPUs" skipped
    result "10 make test-gpu" ok
    [ "$(json gpu-tests.json 'd["count"]["failed"], d["count"]["passed"]')" = "(0, 5)" ]
}

@test "without a GPU, and with wrong arguments" {
    GPUS=0 run "$root/tests/gpu/first_day.sh" 1 day
    [ "$status" = 69 ]
    run "$root/tests/gpu/first_day.sh" 4 day
    [ "$status" = 64 ]
}
