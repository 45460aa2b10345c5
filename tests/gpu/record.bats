#!/usr/bin/env bats
# GPUs in records, in the list and in the doctor's findings, with and without a driver. The tests use
# a fake NVML and need no GPU.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    here=$BATS_TEST_DIRNAME
    python=${PYTHON:-/usr/bin/python3}
}

fake_nvml() { # INIT [COUNT]: builds a fake NVML; what its functions for the start and the count return
    "${CC:-cc}" -shared -fPIC -DFAKE_INIT="$1" -DFAKE_COUNT="${2:-0}" -o libnvidia-ml.so.1 "$here/fake_nvml.c"
}

facts() { # FILE: prints the first host's GPUs
    "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["world"]["hosts"][0]["gpus"])' "$1"
}

@test "list and doctor say whether there is a usable GPU, and why not" {
    run "$DDPBENCH" list device
    [ "$status" = 0 ]
    grep -qE '^device +cuda +(yes|no +.*(GPU|CUDA))' <<<"$output"
    run "$DDPBENCH" doctor
    [[ $output == *gpu* ]]
}

@test "the binary loads nothing of CUDA, NCCL or MPI" {
    run ldd "$DDPBENCH"
    [ "$status" = 0 ]
    [[ $output != *libcuda* && $output != *libcudart* && $output != *libnccl* && $output != *libmpi* ]]
    [[ $output == *san.so* || $output != *libstdc++* ]] # the sanitizers' own libraries need it
}

@test "a record holds the facts that NVML knows; the others are null" {
    fake_nvml 0
    LD_LIBRARY_PATH=$PWD "$DDPBENCH" allreduce --ranks 2 --size 64 -n 1 -w 0 --json r.json >out
    [ "$(facts r.json)" = "[{'name': 'NVIDIA H200', 'bus': '00000000:1B:00.0', 'driver': '580.1?[31m', \
'memory_bytes': 150754820096, 'sm_clock_MHz': 345, 'sm_clock_max_MHz': 1980, 'memory_clock_MHz': 3201, \
'temperature_C': None, 'power_limit_W': 700, 'throttle': 'idle+thermal'}, \
{'name': None, 'bus': None, 'driver': '580.1?[31m', 'memory_bytes': None, 'sm_clock_MHz': None, \
'sm_clock_max_MHz': None, 'memory_clock_MHz': None, 'temperature_C': None, 'power_limit_W': None, 'throttle': None}]" ]
    grep -q '^# .* 2 GPUs (NVIDIA H200)' out
    "$python" "$here/../../ci/validate_json.py" r.json
    LD_LIBRARY_PATH=$PWD run "$DDPBENCH" doctor
    [[ $output == *"WARN"*"NVIDIA H200"*"idle+thermal"* ]]
}

@test "an NVML that fails, or is not a library, leaves no GPUs and no error" {
    fake_nvml 9
    LD_LIBRARY_PATH=$PWD "$DDPBENCH" allreduce --ranks 2 --size 64 -n 1 -w 0 --json r.json
    [ "$(facts r.json)" = "[]" ]
    LD_LIBRARY_PATH=$PWD run "$DDPBENCH" doctor
    grep -q 'NVML.* 9' <<<"$output"
    fake_nvml 0 15
    LD_LIBRARY_PATH=$PWD run "$DDPBENCH" doctor
    grep -q 'NVML.* 15' <<<"$output"
    "${CC:-cc}" -shared -fPIC -o libnvidia-ml.so.1 -x c /dev/null
    LD_LIBRARY_PATH=$PWD "$DDPBENCH" allreduce --ranks 2 --size 64 -n 1 -w 0 --json r.json
    [ "$(facts r.json)" = "[]" ]
}
