#!/usr/bin/env bats
# `ddpbench train` on a real GPU, by `make test-gpu`: what it learns is what it learns on the processor.
# EPOCHS: of Fashion-MNIST (default 3; the goal is stated for 10).
bats_require_minimum_version 1.5.0

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    ddpbench=${DDPBENCH:-$root/build/ddpbench}
    cd "$BATS_TEST_TMPDIR" || return
    run "$ddpbench" train --device cuda --ranks 1 --dataset synthetic --images 64 --max-steps 1 -q
    [ "$status" != 69 ] || skip "$(grep -m 1 error <<<"$output")"
    [ "$status" = 0 ]
}

# FILE EXPRESSION: what a Python expression on the first run t gives.
json() {
    "${PYTHON:-python3}" -c '
import json, sys
t = json.load(open(sys.argv[1]))["train"][0]
print(eval(sys.argv[2]))' "$@"
}

@test "Fashion-MNIST on the GPU reaches the processor's accuracy within 0.01" {
    "$ddpbench" list dataset | grep -E '^dataset +fashion-mnist +yes' ||
        skip "no Fashion-MNIST here"
    epochs=${EPOCHS:-3}
    timeout 400 "$ddpbench" train --device cuda --ranks 1 --epochs "$epochs" -q --json gpu.json
    timeout 400 "$ddpbench" train --device cpu --ranks 1 --epochs "$epochs" -q --json cpu.json
    gpu=$(json gpu.json 't["final"]["eval_accuracy"]')
    cpu=$(json cpu.json 't["final"]["eval_accuracy"]')
    echo "GPU $gpu, processor $cpu after $epochs epochs; $(json gpu.json 't["compute"]')"
    "${PYTHON:-python3}" -c "import sys; sys.exit(abs($gpu - $cpu) > ($epochs >= 10 and 0.005 or 0.01))"
}

@test "graphs, without them, and im2col all learn" {
    for more in "--cuda-graph on" "--cuda-graph off" "--conv im2col" "--tf32 on"; do
        # shellcheck disable=SC2086 # words
        timeout 120 "$ddpbench" train --device cuda --ranks 1 --model resnet9 --dataset synthetic \
            --images 2000 --epochs 3 $more -q --json r.json
        [ "$(json r.json 't["epochs"][-1]["train_loss"] < t["epochs"][0]["train_loss"]')" = True ]
        [ "$(json r.json 't["compute"]["device"]')" = cuda ]
    done
}

@test "two GPUs: overlap changes no bit" {
    for overlap in off on; do
        run timeout 120 "$ddpbench" train --backend nccl --ranks 2 --model resnet9 --dataset synthetic --images 2000 \
            --epochs 2 --conv im2col --bucket-bytes 1M --overlap $overlap -q --json $overlap.json
        [ "$status" != 69 ] || skip "$(grep -m 1 error <<<"$output")"
        [ "$status" = 0 ]
    done
    echo "of the exchange exposed: $(json on.json '[(e["exposed_seconds"], e["exchange_seconds"]) for e in t["epochs"]]')"
    [ "$(json on.json '[e["train_loss"] for e in t["epochs"]]')" = "$(json off.json '[e["train_loss"] for e in t["epochs"]]')" ]
}
