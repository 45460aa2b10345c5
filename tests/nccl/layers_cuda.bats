#!/usr/bin/env bats
# The layers of device cuda on a fake GPU, with fake libraries of cuBLAS and cuDNN that compute on the
# processor (fake_cublas.c, fake_cudnn.c): the same results as the layers of the processor, and what
# happens when cuDNN cannot be used.
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
    [ -e "$DDPBENCH_CUDNN_LIB" ] || skip "built without cuDNN's header"
    cd "$BATS_TEST_TMPDIR" || return
}

# train OPTION...: trains lenet for a few steps on a fake GPU. Sets loss and library.
train() {
    fake train --device cuda --ranks 1 --model lenet --dataset synthetic --images 100 --batch 24 --epochs 1 \
        -q --json out.json "$@" >/dev/null
    read -r loss library < <("${PYTHON:-python3}" -c '
import json
run = json.load(open("out.json"))["train"][0]
print(repr(run["epochs"][0]["train_loss"]), run["compute"]["library"])')
}

@test "kernels, gradients of every net and training agree with the processor; graphs give the same bits" {
    run env CMOCKA_MESSAGE_OUTPUT=TAP "$DDPBENCH_MODULE_DIR/../gpu/test_gpu_layers"
    [ "$status" = 0 ] || { echo "$output"; false; }
    [ "$(grep -c '^ok' <<<"$output")" = 5 ]
    [[ $output != *SKIP* && $output == *"# cuBLAS 13.1.2, cuDNN 9.2.0"* ]]
}

@test "--conv im2col does not open cuDNN; auto and cudnn give nearly the same loss" {
    train --conv im2col
    [ "$library" = "cuBLAS 13.1.2" ]
    unfolded=$loss
    for conv in auto cudnn; do
        train --conv $conv
        [ "$library" = "cuBLAS 13.1.2, cuDNN 9.2.0" ]
        "${PYTHON:-python3}" -c "assert abs($loss - $unfolded) < 1e-3 * $unfolded, ($loss, $unfolded)"
    done
}

@test "algorithms for which cuDNN names DEFAULT_MATH run with FMA_MATH, and give the same bits" {
    train --conv cudnn
    exact=$loss
    FAKE_CUDNN=default train --conv cudnn
    [ "$loss" = "$exact" ]
    [ "$library" = "cuBLAS 13.1.2, cuDNN 9.2.0" ]
    FAKE_CUDNN=tf32 train --conv cudnn --tf32 on
    [ "$loss" = "$exact" ]
}

@test "without a deterministic algorithm, auto unfolds and says so, and --conv cudnn fails" {
    train --conv im2col
    unfolded=$loss
    FAKE_CUDNN=none train --conv auto
    [ "$loss" = "$unfolded" ]
    [[ $library == *"some convolutions unfolded: CUDNN_STATUS_NOT_SUPPORTED" ]]
    FAKE_CUDNN=none run fake train --device cuda --ranks 1 --model lenet --dataset synthetic --images 100 --max-steps 1 --conv cudnn
    [ "$status" = 69 ]
    [[ $output == *NOT_SUPPORTED* ]]
}

@test "a cuDNN that does not start, or is for another CUDA: auto says why, and --conv cudnn fails" {
    FAKE_CUDNN=create train --conv auto
    [[ $library == *"no cuDNN: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED" ]]
    FAKE_CUDNN=cuda12 train --conv auto
    [[ $library == *"no cuDNN: cuDNN is for CUDA 12, this build for CUDA 1"[3-9] ]]
    for mode in create cuda12; do
        FAKE_CUDNN=$mode run fake train --device cuda --ranks 1 --model lenet --dataset synthetic --images 100 --max-steps 1 \
            --conv cudnn
        [ "$status" = 69 ]
    done
    [[ $output == *"CUDA 12"*DDPBENCH_CUDNN_LIB* ]]
}
