#!/usr/bin/env bash
# `make trial`: adds a compressor, an all-reduce algorithm and an element type to a copy of the tree,
# as lib/ARCHITECTURE.md says: a file and a line each; for the type a row, kernels and `make schema`.
# The tests of all of them, help, `list`, the schema and a training run must then know them without
# another change. At last each addition gets a defect, which the program and the tests must find.
# Prints TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
n=0
failed=0
report() { # NAME STATUS: prints one result and, if STATUS is not 0, the end of the output
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        tail -n 20 "$tree/out" | sed 's/^/# /'
        failed=1
    fi
}
check() { # NAME COMMAND...
    local name=$1 rc=0
    shift
    "$@" >"$tree/out" 2>&1 </dev/null || rc=$?
    report "$name" "$rc"
}
finds() { # NAME STATUS TEXT COMMAND...: the command must fail with STATUS and print TEXT
    local name=$1 status=$2 text=$3 rc=0
    shift 3
    "$@" >"$tree/out" 2>&1 </dev/null || rc=$?
    echo "status $rc, expected $status and the text '$text'" >>"$tree/out"
    [ "$rc" -eq "$status" ] && head -n -1 "$tree/out" | grep -q -- "$text"
    report "$name" $?
}
change() { # FILE SED-SCRIPT: the script must change the file
    cp "$1" "$tree/before"
    sed -i "$2" "$1"
    ! cmp -s "$1" "$tree/before" || { echo "Bail out! '$2' does not change $1"; exit 1; }
}
cd "$root" && git ls-files -z | xargs -0 tar -c | tar -x -C "$tree" && cd "$tree" || exit 1
[ "$(wc -l <"$here/allreduce_chain.c")" -le 120 ] || { echo "Bail out! the algorithm has more than 120 lines"; exit 1; }

cp "$here/comp_randk.c" lib/compress/
echo 'DDP_COMPRESSOR(randk)' >>lib/compress/compress_list.h
cp "$here/allreduce_chain.c" lib/coll/allreduce/
change lib/coll/coll_list.h 's/^DDP_COLL(allreduce_ring)$/&\nDDP_COLL(allreduce_chain)/'
check "the row and the kernels of the type fit the tree" patch -p1 -i "$here/dtype_u16.patch"

make_() { make -s -j"${JOBS:-2}" MPI=0 CUDA=0 OPT=-O1 "$@"; }
schema=results/schema/ddpbench-1.schema.json
finds "the schema check misses the type" 1 "make schema" ci/schema_dtypes.sh
check "make schema" make_ schema
check "the schema has the type" grep -q '"dtype": .*"u16"' "$schema"
check "the copy builds" make_ all
out=build/$(dirname "$(readlink build/ddpbench)")
tests=(grid/test_coll_grid grid/test_coll_cost grid/test_coll_groups unit/test_compress unit/test_compressed_point
    unit/test_record_fields gpu/test_gpu_emulated)
check "the tests of all additions build" make_ "${tests[@]/#/$out/tests/}"
for t in "${tests[@]}"; do
    check "$t" "$out/tests/$t"
done
check "list shows the algorithm" bash -c "build/ddpbench list algorithm | grep -w chain"
check "list shows the compressor, also as a strategy" bash -c "[ \$(build/ddpbench list | grep -cw randk) -ge 2 ]"
check "help shows the type" bash -c "build/ddpbench help allreduce | grep -A 1 'element types' | grep -w u16"
algorithm=(build/ddpbench allreduce --ranks 3 --algorithm chain --size '4,1K,1M' --dtype 'f32,f16,i32,u16' --op 'sum,avg' -n 5)
compressor=(build/ddpbench allreduce --ranks 2 --compress randk:0.01 --size 1M -n 5)
type=(build/ddpbench allreduce --ranks 3 --dtype u16 --op 'sum,avg,prod,min,max' --size '2,1K,1M' -n 5)
check "the algorithm runs and is verified" "${algorithm[@]}"
check "the compressor runs and is verified" "${compressor[@]}" --json "$tree/compressor.json"
check "the type runs and is verified" "${type[@]}" --json "$tree/type.json"
for document in compressor type; do
    check "the document of the $document is valid" "${PYTHON:-/usr/bin/python3}" ci/validate_json.py "$tree/$document.json"
done
check "a training run uses the compressor" build/ddpbench train --dataset synthetic --images 500 --ranks 2 --epochs 1 --sync randk:0.1

change lib/compress/comp_randk.c 's/% (end - begin))/& * 0/'
change lib/coll/allreduce/allreduce_chain.c 's/args->recv, own, args->count/args->recv, args->send, args->count/'
change lib/device/cpu/kernels_cpu.inc.h 's/combine_u16(a.u16, b.u16, op)/combine_u16(a.u16, b.u16, DDP_SUM)/'
change lib/device/cuda/kernels_reduce.cu 's/type_small_mean<uint16_t>/type_wrapped_mean<uint16_t>/'
change "$schema" 's/"u16", //'
check "the copy with defects builds" make_ all "${tests[@]/#/$out/tests/}"
EDATA=11
finds "the defect of the algorithm is found" "$EDATA" "wrong" "${algorithm[@]}"
finds "the defect of the compressor is found" "$EDATA" "randk" "${compressor[@]}"
finds "the defect of the type is found" "$EDATA" "wrong" "${type[@]}"
finds "the grid finds a defect" 4 "chain\|u16" "$out/tests/grid/test_coll_grid"
finds "test_compress finds the defect" 1 "randk" "$out/tests/unit/test_compress"
finds "test_record_fields finds the missing type" 1 "dtype" "$out/tests/unit/test_record_fields"
finds "test_gpu_emulated finds the defect of the GPU kernel" 1 "u16\|reduce" "$out/tests/gpu/test_gpu_emulated"
echo "1..$n"
exit "$failed"
