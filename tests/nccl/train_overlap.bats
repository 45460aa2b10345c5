#!/usr/bin/env bats
# `ddpbench train --overlap on` on fake GPUs: buckets of gradients are exchanged during the backward
# pass, and the result has the same bits as after an exchange behind the backward pass. Streams and
# events order exchanges of equal length; another thread exchanges sparse lists. When a rank is lost
# meanwhile, all ranks end and name it.
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
    data=(train --backend nccl --dataset synthetic --images 200 --batch 10 -q)
    job=("${data[@]}" --model lenet --bucket-bytes 8K)
}

# beside RANKS SYNC OPTION...: gives the same bits with overlap and without.
beside() {
    local ranks=$1 sync=$2 overlap
    shift 2
    for overlap in on off; do
        fake "${job[@]}" --ranks "$ranks" --sync "$sync" --max-steps 6 --check-replicas step --overlap $overlap "$@" \
            --json $overlap.json
    done
    [ "$(json on.json 'd["train"][0]["sync"]["overlap"], d["train"][0]["compute"]["graph"]')" = "(True, ${graph:-True})" ]
    [ "$(json on.json '[(e["train_loss"], e["eval_loss"]) for e in d["train"][0]["epochs"]]')" = \
        "$(json off.json '[(e["train_loss"], e["eval_loss"]) for e in d["train"][0]["epochs"]]')" ]
}

@test "one graph per bucket gives the same bits" {
    beside 3 dense
    beside 2 bf16 --feedback on
    beside 3 topk:0.05
    beside 2 threshold:0.3
    beside 2 oktopk:0.05
}

@test "without graphs, in one bucket, and with recorded gradients" {
    graph=False beside 2 fp16 --cuda-graph off
    job=("${data[@]}" --model lenet --bucket-bytes 0)
    beside 2 topk:0.05
    job=("${data[@]}" --model lenet --bucket-bytes 8K)
    beside 2 dense --dump-gradients grads --dump-every 4
    [ -s grads/rank1.npy ]
}

@test "layers without parameters between buckets; one rank; a strategy without overlap" {
    fake "${data[@]}" --ranks 2 --model resnet9 --bucket-bytes 1M --overlap on --max-steps 3 --check-replicas step
    fake "${job[@]}" --ranks 1 --overlap on --max-steps 3
    fake "${job[@]}" --ranks 2 --overlap on --max-steps 4 --compare dense,local:2 --json out.json
    [ "$(json out.json '[t["sync"]["overlap"] for t in d["train"]]')" = "[False, True, False]" ]
}

@test "the host puts all buckets of a step on the stream and waits once; times come from the GPU" {
    for sync in dense fp16; do
        rm -f log
        FAKE_NCCL_LOG=$PWD/log FAKE_NCCL_GPU_US=10000 fake "${job[@]}" --ranks 2 --sync $sync --max-steps 3 --overlap on --json out.json
        # Only the first exchange of a step finds an idle communicator. A step has at least 4 exchanges.
        operations=$(wc -l <log)
        [ "$operations" -ge 24 ]
        [ "$(grep -cw queued log)" -ge $((operations / 2)) ]
        [ "$(json out.json "d['train'][0]['epochs'][0]['exchange_seconds'] >= $operations / 4 * 0.01")" = True ]
        [ "$(json out.json '0 < d["train"][0]["epochs"][0]["exposed_seconds"]')" = True ]
    done
}

# broken FAULT OPTION...: rank 1 of 3 has the fault in the middle of a step.
broken() {
    local fault=$1
    shift
    FAKE_NCCL_AT=30 FAKE_NCCL_FAULT=$fault run fake "${job[@]}" --ranks 3 --overlap on --epochs 2 --json out.json "$@"
    [ "$status" = 13 ]
    [ "$(json out.json 'd["status"]')" = partial ]
}

@test "a rank dies, and is named at once" {
    for sync in dense topk:0.05; do
        broken dies -T 60 --sync $sync
        says "rank 1 (pid"
        says "signal 9"
    done
}

@test "a collective that hangs is ended by the deadline; one that fails ends the run" {
    broken op-hangs -T 2
    says "2 s"
    says "allreduce"
    broken op-fails -T 60
    says "rank"
}

@test "under torchrun: a rank dies, the others say which" {
    codes=$(FAKE_NCCL_AT=30 FAKE_NCCL_FAULT=dies torchrun 3 "${job[@]}" --overlap on --epochs 2 -T 20)
    [ "$codes" = "13 137 13 " ]
    file_says 0.out "rank 1"
}
