#!/usr/bin/env bats
# A normal build has no fault points. A build with FAULTS=1 (FAULTY, made by `make faults`) names every
# mistake in DDPBENCH_FAULT. walk.py tests the effects of faults.
# shellcheck disable=SC2154 # status, stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    faulty=$(realpath -m "${FAULTY:-$(dirname "$ddpbench")-faults/ddpbench}")
}

needs_faulty() {
    [ -x "$faulty" ] || skip "no build with FAULTS=1 (\`make faults\`)"
}

# bad FAULT SUBJECT...: refused with 64; the error or its hint names every SUBJECT.
bad() {
    DDPBENCH_FAULT=$1 run --separate-stderr "$faulty" list
    [ "$status" = 64 ] || { echo "$1: exit $status"; return 1; }
    message_names "${@:2}"
}

@test "a normal build has no fault point, and says so" {
    run nm "$ddpbench"
    [ "$status" = 0 ]
    [[ $output == *ddp_comm_barrier* ]]
    [[ $output != *ddp_fault_* ]]
    DDPBENCH_FAULT=wait:1:kill9 run --separate-stderr "$ddpbench" list
    [ "$status" = 64 ]
    error_names DDPBENCH_FAULT
    hint_names "make FAULTS=1"
    run "$ddpbench" list fault
    [ "$status" = 64 ]
}

@test "mistakes are named, with the nearest or all legal values" {
    needs_faulty
    bad coll-entr:1:kill9 "'coll-entr'" "'coll-enter'"
    bad zzzzzz:1:kill9 "'zzzzzz'" coll-enter data-load
    bad wait:1:kil9 "'kil9'" "'kill9'"
    bad wait:1:zzzzzz "'zzzzzz'" "kill9, segv, stop, abort, sleep, flip, errno"
    bad wait:1:errno=EEIO "'EEIO'" "'EIO'"
    bad , "''"
    for fault in wait wait:1 kill9; do
        bad "$fault" "'$fault'"
    done
    bad :: "''"
    for fault in wait:0:kill9 wait:-1:kill9 wait:x:kill9 wait::kill9 wait:1:kill9@ wait:1:kill9@-1 \
        wait:1:kill9@x wait:1:sleep=0 wait:1:sleep=x; do
        bad "$fault" "'$fault'"
    done
    bad wait:1:kill9=3 "'wait:1:kill9=3'" "'kill9'"
    bad wait:1:flip "'wait:1:flip'" "'wait'"
    bad fork:1:kill9@0 "'fork:1:kill9@0'" "'fork'"
    bad wait:1:stop,wait:1:nap "'nap'"
    bad "$(printf 'wait:1:stop,%.0s' {1..9})" DDPBENCH_FAULT 8
    bad "wait:1:kill9$(printf '0%.0s' {1..100})" DDPBENCH_FAULT
}

@test "several faults; one that is not reached is reported" {
    needs_faulty
    DDPBENCH_FAULT=coll-enter:2:sleep=5@0,exit:1:sleep=5,recv:1:segv run --separate-stderr "$faulty" \
        allreduce --size 4K --ranks 2 -n 3 --algorithm direct
    [ "$status" = 0 ]
    says "'recv:1:segv'"
    [[ $stderr != *sleep* ]]
}

@test "the points are listed, in text and as JSON" {
    needs_faulty
    run "$faulty" list fault
    [ "$status" = 0 ]
    grep -q 'coll-leave.* 70.*flip' <<<"$output"
    "$faulty" list faults --json | "$PYTHON" -c 'import json, sys; assert len(json.load(sys.stdin)) > 10'
}

@test "ranks that are threads: an error is reported, a flipped bit is found" {
    needs_faulty
    DDPBENCH_FAULT=coll-enter:2:errno=ENOSPC@1 run --separate-stderr "$faulty" \
        allreduce --size 4K --ranks 3 -n 3 --launch threads
    [ "$status" = 70 ]
    error_names "'coll-enter:2:errno=ENOSPC@1'" "No space left on device"
    DDPBENCH_FAULT=coll-leave:1:flip@2 run --separate-stderr "$faulty" \
        allreduce --size 4K --ranks 3 -n 3 --launch threads
    [ "$status" = 11 ]
    error_names "rank 2" element
}

@test "the last timed operation and every operation of the burst are verified" {
    needs_faulty
    # Calls: 1 is verified first, 2 and 3 warm up, 4 to 6 are timed, and 7 to 18 are the burst.
    for call in 6 7 12 18; do
        DDPBENCH_FAULT=coll-leave:$call:flip@1 run --separate-stderr "$faulty" \
            allreduce --size 4K --ranks 2 -w 2 -n 3 --placement out --algorithm direct
        [ "$status" = 11 ]
        error_names "rank 1" element
    done
    DDPBENCH_FAULT=coll-leave:5:flip@1 run --separate-stderr "$faulty" \
        allreduce --size 4K --ranks 2 -w 2 -n 3 --placement out --algorithm direct
    [ "$status" = 0 ]
}

@test "when a deadline passes, the error names the waiting and the missing ranks: processes and threads" {
    needs_faulty
    for mode in processes threads; do
        DDPBENCH_FAULT=coll-enter:3:sleep=1200@2 run --separate-stderr "$faulty" \
            allreduce --size 64M --ranks 4 -n 5 -T 0.5 --placement in --launch "$mode"
        echo "$mode: exit $status: $stderr"
        [ "$status" = 13 ]
        # earlier operations: an all-reduce and a barrier per iteration, and the ping-pong's barrier
        [[ $stderr =~ "rank 2 ".*"allreduce seq "[0-9]+.*"0, 1, 3".*"64 MiB, f32" ]]
    done
}
