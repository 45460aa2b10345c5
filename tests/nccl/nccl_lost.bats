#!/usr/bin/env bats
# Backend nccl when the library hangs or fails, or a rank dies or stops. Every rank must end with the
# exit code and the reason, and leave a partial document.
# jobs: 3
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
}

# broken FAULT CODE TEXT [OPTION...]: rank 1 of 3 has the fault; the error names TEXT. Writes out.json.
# The deadline is 2 s, or `deadline`.
broken() {
    local fault=$1 code=$2 text=$3
    shift 3
    FAKE_NCCL_AT=20 FAKE_NCCL_FAULT=$fault run fake allreduce --backend nccl --ranks 3 --size 4,1K --order given \
        -n 20 -T "${deadline:-2}" -q --json out.json "$@"
    [ "$status" = "$code" ]
    says "$text"
    [ "$(json out.json 'd["status"] != "complete"')" = True ]
}

@test "the start hangs: the deadline ends it" {
    broken init-hangs 13 "ncclCommInitRankConfig"
    says "2 s"
}

@test "the start fails on one rank" {
    broken init-fails 69 ncclCommInitRankConfig
}

@test "a split hangs: the deadline ends it" {
    broken split-hangs 13 "ncclCommSplit"
    says "2 s"
}

@test "the start, a split and a window of a non-blocking communicator hang or fail" {
    broken init-hangs 13 "2 s" --nccl-blocking off
    broken split-hangs 13 "2 s" --nccl-blocking off
    broken window-hangs 13 "2 s" --nccl-blocking off --memory window
    broken init-fails 69 ncclCommInitRankConfig --nccl-blocking off
    broken split-fails 69 ncclCommSplit --nccl-blocking off
    broken window-fails 69 ncclCommWindowRegister --nccl-blocking off --memory window
}

@test "a split fails on one rank" {
    broken split-fails 69 "ncclCommSplit failed"
}

@test "the registration of a window hangs: the deadline ends it" {
    broken window-hangs 13 "waited 2 s" --memory window
}

@test "the registration of a window fails on one rank" {
    broken window-fails 69 "ncclCommWindowRegister failed" --memory window
}

@test "the first operation hangs inside NCCL: the deadline ends it" {
    for kind in on off; do
        broken connect-hangs 13 "allreduce seq" --nccl-blocking $kind
        says "2 s"
    done
}

@test "a collective hangs: the deadline ends it, and names the operation" {
    broken op-hangs 13 "allreduce seq"
    says "2 s"
    broken op-hangs 13 "allreduce seq" --nccl-blocking off
}

@test "with a graph an abort does not wait for the graph" {
    for fault in op-hangs op-fails dies; do
        broken $fault 13 rank --graph
        [[ $output != *"captured operations"* ]]
        broken $fault 13 rank --graph --nccl-blocking off
        [[ $output != *"captured operations"* ]]
    done
}

@test "the library reports a lost peer" {
    broken op-fails 13 "rank"
}

@test "wrong data is never a result" {
    broken wrong 11 "rank 1"
}

@test "a rank dies: noticed at once, not at the deadline" {
    deadline=60 broken dies 13 "rank 1 (pid"
    says "signal 9"
}

@test "points that were finished before are in the document" {
    FAKE_NCCL_AT=100 FAKE_NCCL_FAULT=dies run fake allreduce --backend nccl --ranks 2 --size 4,1K --order given \
        -n 30 -w 1 --placement in -q --json out.json
    [ "$status" = 13 ]
    [ "$(json out.json 'len(p)')" = 1 ]
}

@test "a stopped rank is ended at the timeout" {
    local run ranks
    "$ddpbench" allreduce --backend nccl --ranks 2 --size 4 -n 10000000 -T 1 -q --json out.json >out 2>err 3>&- &
    run=$!
    for _ in $(seq 1000); do
        mapfile -t ranks < <(pgrep -P "$run")
        [ "${#ranks[@]}" -lt 2 ] || break
        sleep 0.01
    done
    kill -STOP "${ranks[1]}"
    wait "$run" && status=0 || status=$?
    [ "$status" = 13 ]
    file_says err "rank 1"
    [ "$(json out.json 'd["status"]')" = partial ]
}

# lose SIGNAL DELAY OPTION...: sends the signal to a random rank of 3, DELAY s after the ranks exist.
# Every rank ends with the right exit code soon after the deadline.
lose() {
    local signal=$1 delay=$2 run ranks=() began
    shift 2
    timeout --kill-after=1 20 "$ddpbench" allreduce --backend nccl --ranks 3 --size 4,4K -n 10000000 -T 2 -q --json out.json \
        "$@" >out 2>err 3>&- &
    run=$!
    for _ in $(seq 1000); do
        mapfile -t ranks < <(pgrep -P "$(pgrep -P "$run" -f allreduce)" 2>/dev/null)
        [ "${#ranks[@]}" -lt 3 ] || break
        sleep 0.01
    done
    [ "${#ranks[@]}" = 3 ]
    sleep "$delay"
    began=$EPOCHSECONDS
    kill "-$signal" "${ranks[$((RANDOM % 3))]}"
    wait "$run" && status=0 || status=$?
    [ "$status" = 13 ] || { echo "$signal after $delay s, $*: exit code $status"; cat err; return 1; }
    [ $((EPOCHSECONDS - began)) -lt 10 ]
    grep -q "rank [012]" err
    [ "$(json out.json 'd["status"]')" = partial ]
}

# `make torture` sets MOMENTS=40.
@test "ranks that are killed or stopped at random moments end the run within the deadline" {
    local i options=("" "--nccl-blocking off" "--graph" "--memory window")
    RANDOM=${SEED:-$$}
    echo "SEED=${SEED:-$$}"
    for ((i = 0; i < ${MOMENTS:-4}; i++)); do
        # shellcheck disable=SC2086 # words
        lose "$([ $((i % 2)) = 0 ] && echo KILL || echo STOP)" "0.$(printf %03d $((RANDOM % 700)))" ${options[$((i / 2 % 4))]}
    done
}
