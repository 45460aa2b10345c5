#!/usr/bin/env bats
# The shipped binary without a GPU starts, reports why there is no GPU, and needs no library of CUDA or NCCL.
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    "$ddpbench" list --json backend >list.json
    why=$("$PYTHON" -c '
import json
print(next(b["reason"] or "" for b in json.load(open("list.json")) if b["name"] == "nccl"))')
    [ -n "$why" ] || skip "there is a GPU"
}

@test "the reason names what is missing" {
    [[ $why == *GPU* || $why == *NCCL* || $why == *CUDA* ]]
}

@test "--backend nccl exits with 69 and that reason, before anything is started" {
    run "$ddpbench" allreduce --backend nccl --size 4 --json out.json
    [ "$status" = 69 ]
    [[ $output == *"$why"* ]]
    [ ! -e out.json ]
    run "$ddpbench" allreduce --share-gpu --size 4
    [ "$status" = 69 ]
}

@test "train --device cuda fails with that reason before anything is started; on several ranks, too" {
    for ranks in 1 2; do
        run "$ddpbench" train --device cuda --ranks $ranks --dataset synthetic --max-steps 1 --json out.json
        [ "$status" = 69 ]
        [[ $output == "ddpbench: error: "*GPU* || $output == "ddpbench: error: "*CUDA* ]]
        [ ! -e out.json ]
    done
}

@test "auto uses shared memory" {
    "$ddpbench" allreduce --size 4 -n 3 -q --json out.json >out
    grep -q '"backend": *"shm"' out.json
    [ "$(grep -c '"cuda": *null' out.json)" = 1 ]
}

@test "the doctor does not report a missing GPU as a failure" {
    run "$ddpbench" doctor
    [[ $output == *"NOTE "*" nccl: "*"$why"* ]]
}

@test "a named file that is not a library: the doctor says what is wrong with it" {
    DDPBENCH_NCCL_LIB=$PWD/none.so run "$ddpbench" doctor
    [[ $why == *make*CUDA* || $why == *"without CUDA"* ]] ||
        [[ $output == *"WARN "*" nccl: "*"$why"*"$PWD/none.so"*DDPBENCH_NCCL_LIB* ]]
}

@test "the binary and libddp contain no CUDA runtime, and need no library of CUDA, NCCL or MPI" {
    for file in "$ddpbench" "$(dirname "$(realpath "$ddpbench")")/libddp.so"; do
        [ -e "$file" ] || continue # builds for sanitizers have no libddp
        run ldd "$file"
        [ "$status" = 0 ]
        [[ $output != *libnccl* && $output != *libcuda* && $output != *libcudart* && $output != *libmpi* ]]
        run nm "$file"
        [ "$status" = 0 ]
        [[ $output == *ddp_device_cuda* ]]
        ! grep -E ' (cuda[A-Z]|__cuda|_?_?cudart)' <<<"$output"
    done
}

@test "without the CUDA module, list and doctor name the missing file, and a run exits with 69" {
    mkdir empty other
    export DDPBENCH_MODULE_DIR=$PWD/empty
    run "$ddpbench" list device
    [ "$status" = 0 ]
    [[ $output == *ddpbench-cuda.so*"$PWD/empty"* ]]
    run "$ddpbench" doctor
    [[ $output == *" gpu: "*ddpbench-cuda.so*"$PWD/empty"* ]]
    run "$ddpbench" train --device cuda --dataset synthetic --max-steps 1
    [ "$status" = 69 ]
    [[ $output == *ddpbench-cuda.so* ]]

    printf 'int nothing;\n' | cc -shared -x c -o other/ddpbench-cuda.so -
    export DDPBENCH_MODULE_DIR=$PWD/other
    run "$ddpbench" train --device cuda --dataset synthetic --max-steps 1
    [ "$status" = 76 ]
    [[ $output == *other/ddpbench-cuda.so* ]]
    printf 'const struct { int abi; const char *commit; } ddp_cuda_module = {1, "other"};\n' |
        cc -shared -x c -o other/ddpbench-cuda.so -
    run "$ddpbench" train --device cuda --dataset synthetic --max-steps 1
    [ "$status" = 76 ]
    [[ $output == *"'other'"*make*CUDA=1* ]]
    echo text >other/ddpbench-cuda.so
    run "$ddpbench" list device
    [[ $output == *"cannot open the CUDA module"* ]]
}

@test "with torchrun's variables and no GPU, rank 0 reports the reason" {
    RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29400 \
        run "$ddpbench" allreduce --backend nccl --size 4
    [ "$status" = 69 ]
    [[ $output == *"$why"* ]]
}

@test "with torchrun's variables --backend is not needed; the doctor fails" {
    export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29400
    export DDPBENCH_MODULE_DIR=$BATS_TEST_TMPDIR # without the module of backend ucx
    ! [ -e "${ddpbench%/*}/ddpbench-cuda.so" ] || ln -s "$(realpath "${ddpbench%/*}/ddpbench-cuda.so")" .
    run "$ddpbench" allreduce --size 4
    [ "$status" = 69 ]
    [[ $output == *"$why"* ]]
    run "$ddpbench" doctor
    [ "$status" = 69 ]
    [[ $output == *"FAIL "*" nccl: "*"$why"* ]]
}
