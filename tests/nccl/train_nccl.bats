#!/usr/bin/env bats
# `ddpbench train` on fake GPUs with a fake NCCL: every strategy that runs on a device gives the same
# losses as on the processor, and the host does not access the GPU's memory (a program that tries is
# killed).
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
    data=(--dataset synthetic --images 400 --batch 25 --epochs 2 -q)
}

# same RANKS SYNC OPTION...: GPU and processor give the same losses and accuracies in all epochs.
same() {
    local ranks=$1 sync=$2
    shift 2
    fake train --backend nccl --ranks "$ranks" --sync "$sync" "${data[@]}" "$@" --json gpu.json >/dev/null
    fake train --backend shm --device cpu --ranks "$ranks" --sync "$sync" "${data[@]}" "$@" --json cpu.json >/dev/null
    "${PYTHON:-python3}" - <<'END'
import json
there, here = (json.load(open(f))["train"][0] for f in ("gpu.json", "cpu.json"))
assert there["compute"] == {"device": "cuda", "library": "cuBLAS 13.1.2, cuDNN 9.2.0", "graph": True, "tf32": False}, there["compute"]
assert here["compute"]["device"] == "cpu" and len(there["epochs"]) == 2
for a, b in zip(there["epochs"], here["epochs"]):
    assert abs(a["train_loss"] - b["train_loss"]) <= 2e-3 * b["train_loss"], (a["train_loss"], b["train_loss"])
    assert abs(a["eval_accuracy"] - b["eval_accuracy"]) <= 0.03
    assert a["achieved_density"] == b["achieved_density"] or abs(a["achieved_density"] - b["achieved_density"]) < 1e-3
END
}

@test "dense, in one piece and in buckets; one rank; Adam" {
    same 2 dense
    same 3 dense --model lenet --bucket-bytes 4K --check-replicas step
    same 1 dense
    same 2 dense --model lenet --optimizer adam --lr 0.001 --init-sync average
}

@test "16-bit strategies, and strategies that step locally" {
    same 2 fp16 --model lenet
    same 2 bf16 --model lenet
    same 3 partial:3 --model lenet
    same 2 local:4 --model lenet
    same 2 none --model lenet
}

@test "sparse strategies, gathered in lists of fixed capacity" {
    same 3 topk:0.05 --model lenet --check-replicas step
    same 2 threshold:0.3 --model lenet --check-replicas step
    same 2 oktopk:0.05 --model lenet --check-replicas step
}

@test "statistics of batch normalisation are averaged; gradients are recorded" {
    same 2 dense --model resnet9 --max-steps 12
    fake train --backend nccl --ranks 2 --model lenet "${data[@]}" --max-steps 2 --dump-gradients grads --dump-every 1
    [ -s grads/rank1.npy ]
}

@test "without graphs; several runs, with a baseline of one rank" {
    fake train --backend nccl --ranks 2 --model lenet "${data[@]}" --cuda-graph off --json off.json
    fake train --backend nccl --ranks 2 --model lenet "${data[@]}" --json on.json
    [ "$(json off.json '[e["train_loss"] for e in d["train"][0]["epochs"]]')" = \
        "$(json on.json '[e["train_loss"] for e in d["train"][0]["epochs"]]')" ]
    fake train --backend nccl --ranks 2 --model lenet "${data[@]}" --compare dense,fp16 --json both.json
    [ "$(json both.json '[t["baseline"] for t in d["train"]]')" = "[True, False, False]" ]
}

@test "options that do not run on a GPU are refused before ranks start" {
    run fake train --backend nccl --ranks 2 --device cpu "${data[@]}"
    [ "$status" = 69 ]
    error_names "'nccl'" GPU
    run fake train --backend shm --ranks 2 --device cuda "${data[@]}"
    [ "$status" = 69 ]
    error_names "'shm'" "'cuda'"
    run fake train --backend nccl --ranks 2 --overlap on --sync local:4 "${data[@]}"
    [ "$status" = 64 ]
    error_names --overlap "'local:4'"
}

@test "auto uses GPUs if there are enough and the strategy runs on them" {
    FAKE_GPUS=2 fake train --model lenet "${data[@]}" --json out.json
    [ "$(json out.json 'd["world"]["backend"], d["train"][0]["compute"]["device"]')" = "('nccl', 'cuda')" ]
    FAKE_GPUS=2 fake train --model lenet --overlap on "${data[@]}" --json out.json
    [ "$(json out.json 'd["world"]["backend"], d["train"][0]["compute"]["device"]')" = "('nccl', 'cuda')" ]
    FAKE_GPUS=2 fake train --model lenet --device cpu "${data[@]}" --json out.json
    [ "$(json out.json 'd["world"]["backend"], d["train"][0]["compute"]["device"]')" = "('shm', 'cpu')" ]
}
