#!/usr/bin/env bats
# `ddpbench allreduce` as a user runs it: the points that are measured, the outputs, and that stdout
# contains only data. errors.bats tests mistakes, schema.bats the document.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    few=(-n 6 -w 1)
}

# rows: prints the lines of the table that are not comments.
rows() {
    grep -vc '^#' <<<"$output"
}

@test "the default range: 8 B by 4 to 64 MiB, which is measured, in and out of place" {
    ok allreduce --ranks 1 --backend self -n 1 -w 0 --check off
    [ "$(rows)" = 26 ]
    [[ $output == *" 67108864 "* ]]
    ok allreduce --ranks 1 --backend self -n 1 -w 0 -e 100 -f 2 --placement in
    [ "$(rows)" = 5 ]
    ok allreduce --ranks 1 --backend self -n 1 -w 0 -b 0 -e 100 -i 40 --placement out
    [ "$(rows)" = 4 ]
}

@test "every rank count from 1 to 4 delivers verified data at sizes without common divisors" {
    ok allreduce --ranks 1,2,3,4 "${few[@]}" --size 0,4,1004,99996,1000004 --json r.json
    [ "$(json r.json 'len(p)')" = 40 ]
    [ "$(json r.json 'sorted({q["ranks"] for q in p})')" = "[1, 2, 3, 4]" ]
    [ "$(json r.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
    [ "$(json r.json 'all((q["busbw_GBps"] is None) == (q["ranks"] == 1 or q["size_bytes"] == 0) for q in p)')" = True ]
}

@test "every algorithm, type and operation, verified in every iteration" {
    local case
    for case in "-d all -o sum" "-d f32,u8,u32,fp8-e4m3 -o avg,prod,min,max"; do
        # shellcheck disable=SC2086 # a list of options
        ok allreduce --ranks 2 -n 2 -w 0 --size 4,20000 --algorithm all --check all $case --json r.json
        [ "$(json r.json 'len({q["algorithm_used"] for q in p}) >= 3')" = True ]
        [ "$(json r.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
        [ "$(json r.json 'p[0]["check"]["mode"]')" = all ]
        # The first operation, two timed ones and a burst. Each changes and verifies every element.
        [ "$(json r.json 'min(q["check"]["operations"] for q in p) > 3')" = True ]
        [ "$(json r.json 'all(q["check"]["elements"] == q["check"]["operations"] * q["count"] * 2 for q in p)')" = True ]
        # 'self', which needs a single rank and comes from `all`, is named once
        [ "$(grep -c "'self'" <<<"$stderr")" = 1 ]
    done
}

@test "aliases of nccl-tests and PyTorch" {
    ok all_reduce --ranks 1 -n 1 --size 4 -d half,float -o mean -c 1 --json r.json
    [ "$(json r.json '[q["dtype"] for q in p]')" = "['f16', 'f16', 'f32', 'f32']" ]
    [ "$(json r.json 'p[0]["op"], p[0]["collective"]')" = "('avg', 'allreduce')" ]
}

@test "registered and private memory" {
    ok allreduce --ranks 2 "${few[@]}" --size 64K --memory registered --json r.json
    ok allreduce --ranks 2 "${few[@]}" --size 64K --memory private --json s.json
    [ "$(json r.json 'p[0]["memory"]')" = registered ]
    [ "$(json s.json 'p[0]["memory"]')" = private ]
    [ "$(json r.json 'p[0]["page_bytes"] >= 4096')" = True ]
}

@test "exactly -n iterations after -w; samples only on request" {
    ok allreduce --ranks 2 -n 37 -w 3 --size 4 --samples --json r.json
    [ "$(json r.json 'p[0]["iterations"], p[0]["warmup"], len(p[0]["samples_us"])')" = "(37, 3, 37)" ]
    ok allreduce --ranks 2 -n 5 --size 4 --json r.json
    [ "$(json r.json 'p[0]["samples_us"], p[0]["time_us"]["ci95"]')" = "(None, None)" ]
}

@test "a size that is not a multiple of the element is rounded down and reported" {
    ok allreduce --ranks 1 -n 1 --size 1003 --placement in --json r.json
    [ "$(json r.json 'p[0]["requested_bytes"], p[0]["size_bytes"], p[0]["count"]')" = "(1003, 1000, 250)" ]
    [[ $stderr == *1003* ]]
}

@test "a dry run prints the plan and the memory, and touches no file" {
    ok allreduce --ranks 3 -b 8 -e 32 --dry-run --json r.json
    [ ! -e r.json ]
    [ "$(rows)" = 4 ]
    says "3 ranks" "32 B" "192 B"
    [[ $output == *"allreduce/shm/auto/f32/sum/r0/in/registered/n3/8/none/0"* ]]
}

@test "--help runs nothing" {
    ok allreduce --help --size 64M --json r.json
    [ ! -e r.json ]
    [[ $output == *--placement*in,\ out,\ both* ]]
}

@test "--json - replaces the table, --json FILE stands beside it" {
    ok allreduce --ranks 1 -n 1 --size 4 --json -
    [ "${output:0:1}" = "{" ]
    [[ $output != *"# "* ]]
    ok allreduce --ranks 1 -n 1 --size 4 --json /dev/stdout
    [ "${output:0:1}" = "{" ]
    ok allreduce --ranks 1 -n 1 --size 4 --json r.json
    [ "$(rows)" = 2 ]
    ok allreduce --ranks 1 -n 1 --size 4 --json - --format table=t.txt
    [ "${output:0:1}" = "{" ]
    [ "$(grep -vc '^#' t.txt)" = 2 ]
}

@test "stdout that is appended to a file keeps the earlier content" {
    { echo before; "$ddpbench" allreduce --ranks 1 -n 1 --size 4 --json /dev/stdout 2>err; } >out
    [ "$(head -n 1 out)" = before ]
    [ "$(sed -n 2p out)" = "{" ]
}

@test "two outputs to one file, and an unwritable output, are refused before anything is measured" {
    refused 64 -- allreduce --ranks 1 --json - --format table
    refused 64 "'r.json'" -- allreduce --ranks 1 --json r.json --format table=r.json
    refused 73 "'missing/r.json'" -- allreduce --ranks 1 --json missing/r.json
    failed 74 "'/dev/full'" -- allreduce --ranks 1 -n 1 --size 4 --json /dev/full
}

@test "a full stdout is an error, not silence" {
    run bash -c '"$1" allreduce --ranks 1 -n 1 --size 4 2>err >/dev/full' - "$ddpbench"
    [ "$status" = 74 ]
}

@test "figures: median within its interval, busbw = algbw x 2(n-1)/n" {
    ok allreduce --ranks 4 "${few[@]}" --size 256K --placement in --json r.json
    [ "$(json r.json 'abs(p[0]["busbw_GBps"] / p[0]["algbw_GBps"] - 1.5) < 1e-9')" = True ]
    [ "$(json r.json 'p[0]["time_us"]["ci95"][0] <= p[0]["time_us"]["median"] <= p[0]["time_us"]["ci95"][1]')" = True ]
    [ "$(json r.json 'p[0]["pingpong_ns"]["before"] > 10')" = True ]
}

@test "ranks as threads of one process" {
    ok allreduce --ranks 3 --launch threads "${few[@]}" --size 4,100K --check all
    [ "$(rows)" = 4 ]
}

@test "buffers that do not fit in memory are refused, with the computation, before they are allocated" {
    refused 71 "4 ranks" "64 TiB" "512 TiB" -- allreduce --ranks 4 --size 64T
}
