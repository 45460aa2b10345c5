#!/usr/bin/env bash
# `make trial`: adds a compressor and an all-reduce algorithm to a copy of the tree, each as
# lib/ARCHITECTURE.md says: one file and one line. The tests of every algorithm and compressor, help,
# `list` and a training run must then know them without another change. Prints TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
n=0
check() { # NAME COMMAND...
    local name=$1
    shift
    n=$((n + 1))
    if "$@" >"$tree/out" 2>&1 </dev/null; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        tail -n 20 "$tree/out" | sed 's/^/# /'
        failed=1
    fi
}
failed=0
cd "$root" && git ls-files -z | xargs -0 tar -c | tar -x -C "$tree" && cd "$tree" || exit 1
[ "$(wc -l <"$here/allreduce_chain.c")" -le 120 ] || { echo "Bail out! the algorithm has more than 120 lines"; exit 1; }

cp "$here/comp_randk.c" lib/compress/
echo 'DDP_COMPRESSOR(randk)' >>lib/compress/compress_list.h
cp "$here/allreduce_chain.c" lib/coll/allreduce/
sed -i 's/^DDP_COLL(allreduce_ring)$/&\nDDP_COLL(allreduce_chain)/' lib/coll/coll_list.h

make_() { make -s -j"${JOBS:-2}" MPI=0 CUDA=0 OPT=-O1 "$@"; }
check "the copy builds" make_ all
out=build/$(dirname "$(readlink build/ddpbench)")
check "the tests of all algorithms and compressors build" make_ "$out"/tests/grid/test_{coll_grid,coll_cost,coll_groups} "$out"/tests/unit/test_{compress,compressed_point}
for t in grid/test_coll_grid grid/test_coll_cost grid/test_coll_groups unit/test_compress unit/test_compressed_point; do
    check "$t" "$out/tests/$t"
done
check "list shows the algorithm" bash -c "build/ddpbench list algorithm | grep -w chain"
check "list shows the compressor, also as a strategy" bash -c "[ \$(build/ddpbench list | grep -cw randk) -ge 2 ]"
check "the algorithm runs and is verified" build/ddpbench allreduce --ranks 3 --algorithm chain --size 4,1K,1M --dtype f32,f16,i32 --op sum,avg -n 5
check "the compressor runs" build/ddpbench allreduce --ranks 2 --compress randk:0.01 --size 1M -n 5 --json "$tree/point.json"
check "the document is valid" "${PYTHON:-/usr/bin/python3}" ci/validate_json.py "$tree/point.json"
check "a training run uses the compressor" build/ddpbench train --dataset synthetic --images 500 --ranks 2 --epochs 1 --sync randk:0.1
echo "1..$n"
exit "$failed"
