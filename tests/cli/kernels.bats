#!/usr/bin/env bats
# `ddpbench kernels` has every kernel, passes Google Benchmark's flags on, and reports failures.

bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    binary=$(readlink -f "${DDPBENCH:-$root/build/ddpbench}")
    [ -x "$(dirname "$binary")/ddpbench-kernels" ] || skip "no Google Benchmark in this build"
    fast=(kernels --size 4K --benchmark_min_time=0.0001)
}

# Makes a helper in a folder of its own from the given lines of shell code.
fake_helper() {
    mkdir -p fake
    printf '#!/bin/sh\n%s\n' "$1" >fake/ddpbench-kernels
    chmod +x fake/ddpbench-kernels
}

@test "JSON holds every kernel, with a rate that fits its bytes, at each SIMD level" {
    for level in $("$binary" list simd | awk '$3 == "yes" { print $2 }'); do
        DDPBENCH_SIMD=$level "$binary" "${fast[@]}" --benchmark_format=json >"$level.json" 2>err
        "$PYTHON" - "$level" <<'END'
import json, sys
level = sys.argv[1]
doc = json.load(open(level + ".json"))
assert doc["context"]["ddpbench_simd"] == level, doc["context"]
rows = {b["name"].rsplit("/", 2)[0]: b for b in doc["benchmarks"]}
reduce = {"reduce/" + t for t in "f32/sum f32/avg f32/max f64/sum f16/sum bf16/sum i32/sum u8/sum f32/sum/4-sources".split()}
convert = {"convert/" + t for t in "f32-f16 f32-bf16 f16-f32 bf16-f32 f16-f32/add bf16-f32/add f32-f16/residual".split()}
select = {f"{k}/feedback/{d}" for k in ("threshold", "topk") for d in ("0.001", "0.01", "0.05")}
select |= {"topk/feedback/0.01/heavy-tailed", "topk/feedback/0.01/hint", "topk/alone/0.001", "topk/alone/0.01"}
quantize = {f"{k}/{t}" for k in ("quantize", "dequantize") for t in ("q8", "q4", "fp8-e4m3", "sign")} | {"dequantize/q8/add"}
rest = quantize | {"copy", "copy/nontemporal", "scatter-add/4-lists/0.01", "merge/2-lists/0.01", "sgd", "adam"}
assert set(rows) == reduce | convert | select | rest, set(rows) ^ (reduce | convert | select | rest)
# 4 KiB are 1024 floats. 1 % of them keeps 11. There are four lists of 11, and two lists with their union.
bytes_of = {"copy": 8 * 1024, "reduce/f32/sum": 12 * 1024, "reduce/u8/sum": 3 * 4096, "reduce/f64/sum": 24 * 512,
            "reduce/f32/sum/4-sources": 20 * 1024, "convert/f32-f16": 6 * 1024, "convert/f16-f32/add": 10 * 1024,
            "quantize/q8": 5 * 1024 + 32, "quantize/q4": 4.5 * 1024 + 32, "quantize/sign": 4.125 * 1024 + 32, "dequantize/q8/add": 9 * 1024 + 32,
            "threshold/feedback/0.01": 12 * 1024 + 88, "topk/feedback/0.01": 12 * 1024 + 88,
            "topk/feedback/0.01/hint": 12 * 1024 + 88, "topk/alone/0.01": 4 * 1024 + 88,
            "scatter-add/4-lists/0.01": 4 * 1024 + 8 * 44 + 128 * 44, "sgd": 20 * 1024, "adam": 28 * 1024}
for name, b in rows.items():
    assert b["label"] == level and b["iterations"] > 0 and b["real_time"] > 0, b
    if name in bytes_of:
        elements = 4096 / {"u8": 1, "f64": 8}.get(name.split("/")[1] if "/" in name else "", 4)
        each = b["bytes_per_second"] / b["items_per_second"] * elements
        assert abs(each - bytes_of[name]) < 1, (name, each, bytes_of[name])
assert rows["merge/2-lists/0.01"]["bytes_per_second"] > 0
END
    done
}

@test "Google Benchmark's flags pass: list, filter, csv, out" {
    run "$binary" kernels --size 4K,8K --benchmark_list_tests=true --benchmark_filter='^(sgd|adam)/'
    [ "$status" = 0 ]
    [ "$output" = "$(printf '%s\n' sgd/4096/real_time sgd/8192/real_time adam/4096/real_time adam/8192/real_time)" ]
    "$binary" "${fast[@]}" --benchmark_filter=sgd --benchmark_format=csv --benchmark_repetitions=2 \
        --benchmark_out=a.json --benchmark_out_format=json >a.csv 2>err
    "$PYTHON" - <<'END'
import csv, json
lines = open("a.csv").read().splitlines()
rows = list(csv.DictReader(lines[[l.startswith("name,") for l in lines].index(True):]))
assert rows[0]["name"].startswith("sgd/4096") and float(rows[0]["bytes_per_second"]) > 0, rows
assert [b["name"].split("/")[0] for b in json.load(open("a.json"))["benchmarks"]][:2] == ["sgd", "sgd"]
END
    grep -q 'Run on' err # the context is on stderr, stdout is data only
}

@test "mistakes on the command line: 64, and nothing on stdout" {
    for words in --benchmark_fliter=sgd --benchmark_min_time=x --benchmark_format=xml --benchmark_filter=nothing_of_ours \
        '--benchmark_filter=(' sgd '--size 4097' '--size 1' --sise=4K; do
        # shellcheck disable=SC2086 # some are two words
        run --separate-stderr "$binary" kernels --benchmark_min_time=0.0001 $words
        # shellcheck disable=SC2154 # set by run
        echo "$words: $status: $stderr"
        [ "$status" = 64 ]
        [ -z "$output" ]
        [[ $stderr == *error:* ]]
    done
    hint_names "'--size'"
    run "$binary" kernels --benchmark_fliter=sgd
    says "--benchmark_fliter=sgd"
    DDPBENCH_SIMD=sse run "$binary" kernels
    [ "$status" = 64 ]
}

@test "a helper that was not installed: 69 with the reason, by list and doctor too" {
    mkdir empty
    DDPBENCH_MODULE_DIR=$PWD/empty run "$binary" kernels
    [ "$status" = 69 ]
    error_names "'ddpbench-kernels'" "'$PWD/empty'"
    DDPBENCH_MODULE_DIR=$PWD/empty run "$binary" list helper
    [[ $output == *"ddpbench-kernels"*" no "*"'$PWD/empty'"* ]]
    DDPBENCH_MODULE_DIR=$PWD/empty run "$binary" doctor
    grep -q "^WARN .*'ddpbench-kernels' .*'$PWD/empty'" <<<"$output"
    run "$binary" list helper
    [[ $output == *"ddpbench-kernels"*" yes "* ]]
    "$binary" doctor | grep -q '^OK .*kernels'
}

@test "the helper is found beside the binary and in ../lib/ddpbench" {
    mkdir -p bin lib/ddpbench beside
    cp "$binary" bin/ddpbench
    cp "$binary" beside/ddpbench
    cp "$(dirname "$binary")/ddpbench-kernels" lib/ddpbench
    cp "$(dirname "$binary")/ddpbench-kernels" beside
    for copy in bin beside; do
        run "$copy/ddpbench" kernels --benchmark_list_tests=true --benchmark_filter=adam
        [ "$status" = 0 ]
        [[ $output == *adam/262144/real_time* ]]
    done
}

@test "a helper that is killed (128 + n), ends with 1, or cannot start is named" {
    export DDPBENCH_MODULE_DIR=$PWD/fake
    fake_helper 'kill -SEGV $$'
    run "$binary" kernels
    [ "$status" = 139 ]
    error_names "'ddpbench-kernels'" "signal 11"
    fake_helper 'exit 1'
    run "$binary" kernels
    [ "$status" = 70 ]
    error_names 1
    fake_helper 'exit 71'
    run "$binary" kernels
    [ "$status" = 71 ]
    printf 'no program' >fake/ddpbench-kernels
    run "$binary" kernels
    [ "$status" = 69 ]
    error_names "'$PWD/fake/ddpbench-kernels'"
}

@test "the helper of another build: 76" {
    run "$(dirname "$binary")/ddpbench-kernels" --build=0123456789ab --benchmark_list_tests=true
    [ "$status" = 76 ]
    says 0123456789ab
}

@test "a signal to ddpbench ends the helper, too" {
    export DDPBENCH_MODULE_DIR=$PWD/fake
    fake_helper 'echo $$ >helper.pid.new; mv helper.pid.new helper.pid; exec sleep 100'
    "$binary" kernels 2>err &
    local ours=$! status=0
    until [ -e helper.pid ]; do sleep 0.05; done
    kill -TERM "$ours"
    wait "$ours" || status=$?
    [ "$status" = 143 ]
    run ! kill -0 "$(cat helper.pid)"
}

@test "outputs that cannot be created or written: 73, 74" {
    run "$binary" "${fast[@]}" --benchmark_filter=sgd --benchmark_out=no/such/folder.json
    [ "$status" = 73 ]
    says no/such/folder.json
    run bash -c "'$binary' kernels --size 4K --benchmark_min_time=0.0001 --benchmark_filter=sgd >/dev/full"
    [ "$status" = 74 ]
    says stdout
    # wherever the file is cut, also behind a newline
    for pad in $(seq 60); do
        # shellcheck disable=SC2016 # the inner shell's
        run bash -c 'ulimit -f 1; exec "$@"' sh "$binary" "${fast[@]}" --benchmark_filter='sgd|adam' \
            --benchmark_out=cut.json --benchmark_context="pad=$(head -c "$pad" /dev/zero | tr '\0' x)"
        [ "$status" = 74 ] || { echo "pad $pad: $status" && false; }
        says cut.json
    done
}

@test "-h runs nothing and shows the flags; completion offers them" {
    run "$binary" kernels --help --benchmark_filter=.
    [ "$status" = 0 ]
    [[ $output == *--size* && $output == *--benchmark_filter=REGEX* && $output != *real_time* ]]
    "$binary" completion bash >completion
    run bash -c '. ./completion; COMP_WORDS=(ddpbench kernels --benchmark_fi); COMP_CWORD=2; _ddpbench; echo "${COMPREPLY[*]}"'
    [ "$output" = --benchmark_filter= ]
}

@test "16-bit operands of the default sizes come from arrays of as many bytes" {
    "$binary" kernels --benchmark_min_time=0.0001 --benchmark_filter='^reduce/b?f16' >out 2>err
    [ "$(grep -c real_time out)" = 4 ]
}
