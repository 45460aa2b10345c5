#!/usr/bin/env bats
# `ddpbench train` on a real GPU (`make test-gpu`) reaches the same accuracy as on the processor.
# EPOCHS: the epochs of Fashion-MNIST (default 3; the goal is stated for 10).
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    run "$ddpbench" train --device cuda --ranks 1 --dataset synthetic --images 64 --max-steps 1 -q
    [ "$status" != 69 ] || skip "$(grep -m 1 error <<<"$output")"
    [ "$status" = 0 ]
}

@test "Fashion-MNIST on the GPU reaches the processor's accuracy within 0.01" {
    "$ddpbench" list dataset | grep -E '^dataset +fashion-mnist +yes' ||
        skip "no Fashion-MNIST here"
    epochs=${EPOCHS:-3}
    timeout 400 "$ddpbench" train --device cuda --ranks 1 --epochs "$epochs" -q --json gpu.json
    timeout 400 "$ddpbench" train --device cpu --ranks 1 --epochs "$epochs" -q --json cpu.json
    gpu=$(json gpu.json 't[0]["final"]["eval_accuracy"]')
    cpu=$(json cpu.json 't[0]["final"]["eval_accuracy"]')
    echo "GPU $gpu, processor $cpu after $epochs epochs; $(json gpu.json 't[0]["compute"]')"
    "$PYTHON" -c "import sys; sys.exit(abs($gpu - $cpu) > ($epochs >= 10 and 0.005 or 0.01))"
}

@test "training learns with graphs, without them, and with im2col" {
    for more in "--cuda-graph on" "--cuda-graph off" "--conv im2col" "--tf32 on"; do
        # shellcheck disable=SC2086 # words
        timeout 120 "$ddpbench" train --device cuda --ranks 1 --model resnet9 --dataset synthetic \
            --images 2000 --epochs 3 $more -q --json r.json
        [ "$(json r.json 't[0]["epochs"][-1]["train_loss"] < t[0]["epochs"][0]["train_loss"]')" = True ]
        [ "$(json r.json 't[0]["compute"]["device"]')" = cuda ]
    done
}

@test "two GPUs: overlap changes no bit" {
    for overlap in off on; do
        run timeout 120 "$ddpbench" train --backend nccl --ranks 2 --model resnet9 --dataset synthetic --images 2000 \
            --epochs 2 --conv im2col --bucket-bytes 1M --overlap $overlap -q --json $overlap.json
        [ "$status" != 69 ] || skip "$(grep -m 1 error <<<"$output")"
        [ "$status" = 0 ]
    done
    echo "of the exchange exposed: $(json on.json '[(e["exposed_seconds"], e["exchange_seconds"]) for e in t[0]["epochs"]]')"
    [ "$(json on.json '[e["train_loss"] for e in t[0]["epochs"]]')" = "$(json off.json '[e["train_loss"] for e in t[0]["epochs"]]')" ]
}
