#!/usr/bin/env bash
# Prints one line that says why a part of the GPU half cannot be built, or nothing if it can.
# Usage: ci/probe_cuda.sh nvcc NVCC OPTION...    the CUDA compiler, with the options of the build
#        ci/probe_cuda.sh nccl|cudnn CC HEADER OPTION...   the header of a library
# ci/cuda.mk calls this script. README.md states the versions below.
set -u
export LC_ALL=C
kind=$1 tool=$2
shift 2

# at_least LEAST VERSION: compares versions such as 12.1.
at_least() {
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

# version_of MACROS HEADER OPTION...: preprocesses the header and prints the values of the macros.
version_of() {
    local macros=$1 header=$2
    shift 2
    printf '#include "%s"\nversion %s\n' "$header" "$macros" |
        "$tool" -E -P -I"${header%/*}" "$@" - 2>/dev/null | sed -n 's/^version //p' | tail -n 1 | tr ' ' .
}

# probe_header NAME LEAST MACROS HEADER OPTION...
probe_header() {
    local name=$1 least=$2 version
    shift 2
    version=$(version_of "$@")
    if ! [[ $version =~ ^[0-9]+[.0-9]*$ ]]; then
        echo "$2 cannot be compiled"
    elif ! at_least "$least" "$version"; then
        echo "$2 is of $name $version, but $least is needed"
    fi
}

# Kernel parameters of more than 4 KiB need nvcc 12.1.
probe_nvcc() {
    local version problem
    version=$("$tool" --version 2>/dev/null | sed -n 's/^Cuda.*V\([0-9.]*\).*/\1/p')
    if ! at_least 12.1 "${version:-0}"; then
        echo "$tool has version ${version:-unknown}, but 12.1 is needed"
        return
    fi
    # The preprocessor runs the compiler that -ccbin names and checks its version.
    if ! problem=$(echo | "$tool" -E -x cu "$@" - 2>&1 >/dev/null); then
        problem=$(grep -m 1 -i -E 'error|fatal|unsupported' <<<"$problem" || head -n 1 <<<"$problem")
        echo "$tool cannot use the compiler or the options of this build: ${problem:-unknown error}"
    fi
}

# Windows, and the alignment of their memory, need NCCL 2.28.
probe_nccl() {
    probe_header NCCL 2.28 'NCCL_MAJOR NCCL_MINOR NCCL_PATCH' "$@"
}

probe_cudnn() {
    probe_header cuDNN 9 'CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL' "$@"
}

"probe_$kind" "$@"
