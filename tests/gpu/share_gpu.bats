#!/usr/bin/env bats
# Backend nccl on a real GPU (`make test-gpu`): several ranks on one GPU, which give right results but no
# figures, and one rank alone. RUNS: the number of repetitions (default 3; `make test-gpu` sets 1).
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    runs=${RUNS:-3}
    "$ddpbench" list --json backend >list.json
    why=$("$PYTHON" -c '
import json
print(next(b["reason"] or "" for b in json.load(open("list.json")) if b["name"] == "nccl"))')
    [ -z "$why" ] || skip "$why"
}

# all_correct RANKS: runs every collective `runs` times.
all_correct() {
    local c i
    for ((i = 0; i < runs; i++)); do
        for c in allreduce reduce-scatter all-gather broadcast reduce all-to-all all-to-all-v all-gather-v reduce-scatter-v gather scatter send-recv; do
            timeout --kill-after=5 120 "$ddpbench" "$c" --share-gpu --ranks "$1" --size 4,64K,4M \
                -d f32,bf16 -n 3 -w 1 -T 60 -q --json out.json >/dev/null
            [ "$(json out.json 'd["status"], d["note"], sum(q["check"]["wrong"] for q in p)')" = \
                "('complete', 'correctness-only', 0)" ]
            [ "$(json out.json '{q["busbw_GBps"] for q in p}')" = "{None}" ]
        done
    done
}

@test "one rank: every collective, registered, private, window, as a graph" {
    for more in "" "--memory private" "--memory window" --graph; do
        for c in allreduce reduce-scatter all-gather broadcast all-to-all send-recv; do
            # shellcheck disable=SC2086 # words
            timeout --kill-after=5 120 "$ddpbench" $c --backend nccl --ranks 1 --algorithm native --size 4,1M -n 3 -q $more \
                --json out.json >/dev/null
            [ "$(json out.json 'd["status"], sum(q["check"]["wrong"] for q in p)')" = "('complete', 0)" ]
            [ "$(json out.json '{q["algorithm_used"] for q in p}')" = "{'native'}" ] # `auto` would not call NCCL
        done
    done
}

@test "two ranks on one GPU: every collective is right" {
    all_correct 2
}

@test "two ranks on one GPU: as a graph, from a window, from private memory" {
    for more in --graph "--memory window" "--memory private"; do
        for c in allreduce all-gather all-to-all; do
            # shellcheck disable=SC2086 # words
            timeout --kill-after=5 120 "$ddpbench" $c --share-gpu --ranks 2 --size 4,1M -n 3 -w 1 -T 60 -q $more --json out.json >/dev/null
            [ "$(json out.json 'd["status"], sum(q["check"]["wrong"] for q in p)')" = "('complete', 0)" ]
        done
    done
}

@test "four ranks on one GPU: every collective is right" {
    all_correct 4
}

@test "all operations and types, groups, barrier" {
    timeout 300 "$ddpbench" allreduce --share-gpu --ranks 2 --size 4K -d f32,f16,bf16,f64 -o sum,avg,prod,min,max \
        -n 2 -w 1 -q
    timeout 300 "$ddpbench" allreduce --share-gpu --ranks 2 --size 4K -d i32,u8 -o sum,max -n 2 -w 1 -q
    timeout 300 "$ddpbench" allreduce --share-gpu --ranks 4 --groups 2 --size 4K -n 2 -w 1 -q
    timeout 300 "$ddpbench" barrier --share-gpu --ranks 2 -n 3 -w 1 -q
}

@test "averages of three ranks, whose thirds are rounded before the sum" {
    timeout 300 "$ddpbench" allreduce --share-gpu --ranks 3 --size 64K -d f32,f16,bf16,f64 -o avg -n 2 -w 1 -q
    timeout 300 "$ddpbench" reduce-scatter --share-gpu --ranks 3 --size 96K -d f32,bf16 -o avg -n 2 -w 1 -q
}

@test "compressed and partial exchanges, with and without feedback" {
    for ranks in 2 3; do
        for feedback in on off; do
            timeout 300 "$ddpbench" allreduce --share-gpu --ranks $ranks --size 4K,4M -o sum,avg \
                --compress fp16,bf16,topk:0.01,threshold:2,oktopk:0.01 --feedback $feedback -n 3 -w 1 -c all -q --json out.json >/dev/null
            [ "$(json out.json 'd["status"], sum(q["check"]["wrong"] for q in p)')" = "('complete', 0)" ]
        done
    done
    timeout 300 "$ddpbench" allreduce --share-gpu --ranks 2 --size 4M -o avg --compress none,topk:0.01 --partial 4 -n 4 -w 1 -q
}

@test "training: dense and compressed, and overlap changes no bit" {
    for sync in dense topk:0.05; do
        for overlap in off on; do
            timeout --kill-after=5 300 "$ddpbench" train --share-gpu --ranks 2 --model lenet --dataset synthetic --images 200 \
                --batch 10 --max-steps 8 --conv im2col --sync $sync --bucket-bytes 8K --overlap $overlap \
                --check-replicas step -T 60 -q --json $overlap.json >/dev/null
        done
        [ "$(json on.json 'd["train"][0]["sync"]["overlap"], d["train"][0]["compute"]["graph"]')" = "(True, True)" ]
        [ "$(json on.json '[(e["train_loss"], e["eval_loss"]) for e in d["train"][0]["epochs"]]')" = \
            "$(json off.json '[(e["train_loss"], e["eval_loss"]) for e in d["train"][0]["epochs"]]')" ]
    done
}

# lose SIGNAL MILLISECONDS: sends the signal to rank 1 of 2; the run must end in that time.
lose() {
    local run ranks began took
    "$ddpbench" allreduce --share-gpu --ranks 2 --size 4 -n 10000000 -T 5 -q --json out.json >out 2>err 3>&- &
    run=$!
    for _ in $(seq 6000); do
        mapfile -t ranks < <(pgrep -P "$run")
        [ "${#ranks[@]}" -lt 2 ] || break
        sleep 0.01
    done
    sleep 10 # NCCL has started
    began=$(date +%s%N)
    kill "-$1" "${ranks[1]}"
    wait "$run" && status=0 || status=$?
    took=$((($(date +%s%N) - began) / 1000000))
    echo "exit $status after $took ms: $(cat err)"
    [ "$status" = 13 ]
    [ "$took" -lt "$2" ]
    [ "$(json out.json 'd["status"]')" = partial ]
}

@test "a killed rank ends the run within 2 s" {
    lose KILL 2000
}

@test "a stopped rank ends it within the timeout and 2 s" {
    lose STOP 7000
}
