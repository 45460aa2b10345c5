# Functions for the scripts of this folder, which test backend nccl on fake GPUs with a fake NCCL
# (fake_gpu.h). Sourced by bats.
# shellcheck shell=bash disable=SC2154 # output, status: bats; ddpbench: helpers.bash

load ../helpers.bash

# Called by setup(): sets the module with the fake GPU and the fake libraries, or skips the test.
nccl_setup() {
    bench_setup
    DDPBENCH_MODULE_DIR=$(dirname "$(realpath "$ddpbench")")/tests/nccl
    [ -e "$DDPBENCH_MODULE_DIR/ddpbench-cuda.so" ] || skip "built without CUDA and NCCL's header"
    export DDPBENCH_MODULE_DIR DDPBENCH_NCCL_LIB=$DDPBENCH_MODULE_DIR/libnccl.so.2
    export DDPBENCH_CUBLAS_LIB=$DDPBENCH_MODULE_DIR/libcublas.so DDPBENCH_CUDNN_LIB=$DDPBENCH_MODULE_DIR/libcudnn.so
    export TMPDIR=$BATS_TEST_TMPDIR
}

# fake ARGUMENT...: runs ddpbench with fake GPUs and a time limit.
fake() {
    timeout --kill-after=5 60 "$ddpbench" "$@"
}

# torchrun RANKS ARGUMENT...: runs ddpbench on fake GPUs with torchrun's variables. The output of rank R is
# in R.out. Prints the exit codes in the order of the ranks.
torchrun() {
    local ranks=$1 r pids=()
    shift
    for ((r = 0; r < ranks; r++)); do
        MASTER_ADDR=127.0.0.1 MASTER_PORT=${port:-$((20000 + $$ % 10000))} TORCHELASTIC_RUN_ID=$BATS_TEST_TMPDIR \
            RANK=$r WORLD_SIZE=$ranks LOCAL_RANK=$r LOCAL_WORLD_SIZE=$ranks \
            timeout --kill-after=5 60 "$ddpbench" "$@" >"$r.out" 2>&1 3>&- &
        pids+=($!)
    done
    for r in "${pids[@]}"; do
        wait "$r" && printf '0 ' || printf '%s ' $?
    done
}
