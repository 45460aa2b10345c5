#!/usr/bin/env bash
# Builds against old headers of NCCL, which pip downloads, and without cuDNN: the build leaves the part out,
# says why, and the rest works. Needs nvcc.
# Usage: tests/e2e/old_cuda.sh PYTHON
set -eu
cd "${BASH_SOURCE[0]%/*}/../.."
python=$1
headers=build/e2e-nccl
mkdir -p "$headers"
# One architecture and little optimisation, because only the build is tested.
knobs=(MPI=0 GBENCH=0 CUDA_ARCHS=90 OPT=-O1)

# build KNOB...: builds into a folder of its own. Sets output and binary.
build() {
    rm -rf build/e2e-cuda
    output=$(make -s -j"$(nproc)" "${knobs[@]}" O=build/e2e-cuda "$@" build/e2e-cuda/ddpbench build/e2e-cuda/ddpbench-cuda.so 2>&1) || {
        echo "$output" >&2
        exit 1
    }
    binary=build/e2e-cuda/ddpbench
}

# expect TEXT PATTERN: fails unless the text matches.
expect() {
    # shellcheck disable=SC2053 # a pattern
    [[ $1 == $2 ]] || { echo "old_cuda.sh: no '$2' in: $1" >&2; exit 1; }
}

for version in 2.18 2.23 2.27; do
    header=$headers/$version/nccl.h
    if [ ! -e "$header" ]; then
        "$python" -m pip download -q --no-deps --only-binary :all: -d "$headers/$version" "nvidia-nccl-cu12==$version.*"
        unzip -q -o -j "$headers/$version"/*.whl nvidia/nccl/include/nccl.h -d "$headers/$version"
        rm "$headers/$version"/*.whl
    fi
    reason=$(make -s "${knobs[@]}" NCCL_HEADER="$PWD/$header" print-NO_NCCL)
    expect "$reason" "*NCCL $version.*, but 2.28 is needed"
    echo "ok: nccl.h of $version: ${reason##*/}"
done

build NCCL_HEADER="$PWD/$headers/2.27/nccl.h"
expect "$output" "*note: backend nccl is left out: *2.27*"
expect "$($binary list backend)" "*nccl*not built*"
expect "$($binary list device)" "*cuda*"
echo "ok: builds with nccl.h of 2.27"

build CUDNN_HEADER=
expect "$output" "*note: cuDNN is left out: no cudnn.h was found*"
expect "$($binary list device)" "*cuda*"
echo "ok: builds without cuDNN"
rm -rf build/e2e-cuda
