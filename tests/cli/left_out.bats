#!/usr/bin/env bats
# Nothing is dropped in silence: sizes, algorithms and repeated options. A dry run lists everything.
# shellcheck disable=SC2154 # output, stderr: bats

bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
}

@test "a listed size that holds no element: 64; 0 stays legal" {
    refused 64 --size 3 f32 -- allreduce --size 64,3 --ranks 2
    refused 64 "--size 4" -- all-gather --size 4 --ranks 4
    refused 64 --size 4 f64 -- allreduce --size 4 -d f32,f64 --ranks 2
    ok allreduce --size 0,4 --ranks 2 -n 3 --placement in --json out.json -q
    holds out.json '[q["size_bytes"] for q in p] == [0, 4] and d["left_out"] == []'
}

@test "too small sizes of a range, of several rank counts and of all types are left out and named" {
    ok allreduce -b 1 -e 16 -f 4 --ranks 2 -n 3 --placement in --json range.json
    [[ $output == *"left out"*"f32 of 1 bytes"* && $stderr == *"f32 of 1 bytes"* ]]
    holds range.json '[q["size_bytes"] for q in p] == [4, 16]'
    holds range.json 'd["left_out"][0]["points"] == 1 and "f32 of 1 bytes" in d["left_out"][0]["what"]'
    valid range.json
    ok all-gather --size 8 --ranks 2,4 -n 3 --placement out --json counts.json -q
    holds counts.json '[q["ranks"] for q in p] == [2] and [l["ranks"] for l in d["left_out"]] == [4]'
    ok allreduce --size 4 -d all --ranks 2 -n 3 --placement in --json types.json -q
    holds types.json 'any(l["what"] == "allreduce: f64 of 4 bytes" for l in d["left_out"])'
    refused 64 "1, 2 bytes" -- allreduce -b 1 -e 2 -f 2 --ranks 2
}

@test "too small sizes of a sweep are left out, named, and kept by a resumed sweep" {
    cat >small.json <<'J'
{"runs": [{"command": "all-gather", "ranks": [2, 4], "size": [8, 64], "placement": "out", "iters": 3},
          {"command": "broadcast", "ranks": 2, "size": 64, "algorithm": "all", "placement": "out", "iters": 3},
          {"command": "scatter", "ranks": 2, "size": 2, "placement": "out", "iters": 3}]}
J
    ok sweep small.json --json out.json --journal j -q
    holds out.json 'len([q for q in p if q["collective"] == "all-gather"]) == 3'
    holds out.json '{(l["what"], l["ranks"]) for l in d["left_out"]} >= {("all-gather: f32 of 8 bytes", 4), ("scatter: f32 of 2 bytes", 2)}'
    holds out.json 'any("broadcast: algorithm" in l["what"] and "native" in l["what"] for l in d["left_out"])'
    valid out.json
    ok sweep small.json --json again.json --journal j -q
    json out.json 'sorted(map(str, d["left_out"]))' >out.txt
    json again.json 'sorted(map(str, d["left_out"]))' >again.txt
    cmp out.txt again.txt
}

@test "--algorithm all names each algorithm that is left out, the number of points and the reason" {
    ok allreduce --algorithm all --size 1K,64K --ranks 2 -n 3 --placement in --json out.json
    says "algorithm 'flat'" "algorithm 'native'" "algorithm 'self'"
    file_says out.json "algorithm 'flat'"
    holds out.json '{l["what"].split("'"'"'")[1]: l["points"] for l in d["left_out"]} == {"flat": 1, "hier": 2, "native": 2, "self": 2}'
    holds out.json 'all(l["reason"] for l in d["left_out"])'
    [ "$(grep -c '^# left out' <<<"$output")" = 4 ]
}

@test "repeated lists add up; a repeated option with one value is an error" {
    ok allreduce --size 1K --size 2K,4K -d f32 -d f16 --ranks 2 --dry-run
    [ "$(grep -c '^allreduce/.*/in/' <<<"$output")" = 6 ]
    refused 64 --json -- allreduce --size 4 --ranks 2 --json a --json=b
    refused 64 --iters -- allreduce --size 4 --ranks 2 -n 3 --iters 4
    refused 64 --max-steps -- train --max-steps 1 --max-steps 1 --dataset synthetic
    refused 64 --dtype f32 -- allreduce --size 4 --ranks 2 -d f32 -d float
    refused 64 --dtype all -- allreduce --size 4 --ranks 2 -d f32 -d all
    ok allreduce --size 4 --ranks 1 -n 3 -q -q
    [ ! -e a ] && [ ! -e b ]
}

@test "--partial is a list; each number of chunks has its points" {
    ok allreduce --size 4K --partial 2,4 --partial 8 --compress none,fp16 --ranks 2 -n 3 --json out.json -q
    holds out.json 'sorted((q["partial"], q["compress"]["method"]) for q in p) == [(k, c) for k in (2, 4, 8) for c in ("fp16", "none")]'
    holds out.json 'len({q["id"] for q in p}) == 6 and all(q["check"]["wrong"] == 0 for q in p)'
    refused 64 --partial -- allreduce --size 4K --partial 2,2 --ranks 2
}

@test "--dry-run lists every rank count and estimates the time" {
    ok allreduce --ranks 1,2,4 --size 64 --placement in --max-time 2 --dry-run
    for n in 1 2 4; do
        [ "$(grep -c "/n$n/64/" <<<"$output")" = 1 ]
    done
    [ "$(grep -c '^# time: ' <<<"$output")" = 3 ]
}

@test "train --dry-run lists every run and estimates the time and the memory" {
    ok train --ranks 1,2 --dataset synthetic --images 64 --compare dense,fp16 --seeds 1,2 --dry-run --json out.json
    [ "$(grep -c '^train ' <<<"$output")" = 8 ]
    [ "$(grep -c '^# time: ' <<<"$output")" = 2 ]
    [ "$(grep -c '^# memory' <<<"$output")" = 2 ]
    [ ! -e out.json ]
    failed 64 nothing -- train --sync nothing --dataset synthetic --dry-run
}
