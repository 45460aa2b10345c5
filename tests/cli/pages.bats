#!/usr/bin/env bats
# Every command that a page shows can be run. tests/page_commands.py says how the commands are shortened.
# jobs: 2
# shellcheck disable=SC2154 # root, ddpbench, status, output: helpers.bash, bats

# The folder in which the commands are run.
setup_file() {
    local top=$BATS_TEST_DIRNAME/../.. name
    cd "$BATS_FILE_TMPDIR" || return
    mkdir build
    ln -s "$(realpath "$top/configs")" configs
    cp -r "$top/results" . # commands write there
    ln -s "$(realpath -s "${DDPBENCH:-$top/build/ddpbench}")" build/ddpbench
    for name in old new; do
        build/ddpbench allreduce --ranks 2 --size 64K -n 9 -q --json $name.json >/dev/null
    done
    # A small data set takes the place of fashion-mnist.
    "${PYTHON:-/usr/bin/python3}" - <<'PY'
import os, struct
os.mkdir("images")
for name, n in ("train", 128), ("t10k", 64):
    with open(f"images/{name}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 2051, n, 28, 28) + os.urandom(n * 784))
    with open(f"images/{name}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 2049, n) + bytes(i % 10 for i in range(n)))
PY
    export DDPBENCH_DATA_DIR=$PWD/images
}

setup() {
    load ../helpers.bash
    bench_setup
    export XDG_STATE_HOME=$BATS_FILE_TMPDIR/state OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

page() {
    run "$PYTHON" "$root/tests/page_commands.py" "$root/$1" "$BATS_FILE_TMPDIR"
    echo "$output"
    [ "$status" = 0 ]
}

@test "README.md shows commands that run" { page README.md; }
@test "cmd/README.md shows commands that run" { page cmd/README.md; }
@test "ci/README.md shows commands that run" { page ci/README.md; }
@test "lib/exchange/README.md shows commands that run" { page lib/exchange/README.md; }
