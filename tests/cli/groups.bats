#!/usr/bin/env bats
# --groups: equal groups, and groups of listed ranks, which may have different sizes.
# shellcheck disable=SC2154 # output, stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

@test "every collective runs in listed groups of different sizes, and is verified" {
    for command in allreduce reduce-scatter all-gather broadcast reduce all-to-all gather scatter send-recv; do
        ok $command --ranks 5 --groups 0,1:2,3,4 --size 100,64K -n 3 --check all --json out.json -q
        holds out.json 'all(q["group_list"] == "0,1:2,3,4" and (q["groups"], q["ranks"]) == (2, 3) for q in p)'
        holds out.json 'all(q["check"]["wrong"] == 0 and q["check"]["elements"] > 0 for q in p)'
        holds out.json 'all(q["id"].endswith("/g0,1:2,3,4") for q in p)'
    done
    keep out.json
    holds out.json 'len({q["size_bytes"] for q in p}) == 2'
    ok all-to-all --ranks 5 --groups 0,1:2,3,4 --size 100 -n 3 --json out.json --format table
    holds out.json '{q["size_bytes"] for q in p} == {96}' # 24 elements, for 2 and for 3 ranks
    says 0,1:2,3,4
    ok barrier --ranks 3 --groups 2,0:1 -n 3 -q --json out.json
    holds out.json 'p[0]["group_list"] == "2,0:1"'
}

@test "a point that one of the groups cannot run is left out in all" {
    ok allreduce --ranks 3 --groups 0:1,2 --algorithm all --size 4K -n 3 --placement in --json out.json -q
    holds out.json '"self" not in {q["algorithm"] for q in p} and len(p) > 0'
    holds out.json 'any("self" in l["what"] for l in d["left_out"])'
    keep out.json
}

@test "groups that are not legal are refused" {
    for groups in 0,1:1,2 0,2 0,1: :0 0,x 0,256 0 129; do
        refused 64 --groups -- allreduce --ranks 3 --groups "$groups" --size 64
    done
    refused 64 --groups 3 -- allreduce --ranks 2 --groups 0,1:2 --size 64
    refused 64 --groups 2 -- allreduce --ranks 3 --groups 2 --size 64
    refused 64 --groups compress -- allreduce --ranks 3 --groups 0,1:2 --size 64 --compress fp16
    refused 64 --root 2 -- broadcast --ranks 5 --groups 0,1:2,3,4 --root 2 --size 64
}

@test "groups are an axis of a sweep" {
    echo '{"runs": [{"command": "allreduce", "ranks": 4, "groups": [1, 2, "0:1,2,3"], "size": 64, "placement": "in", "iters": 3}]}' >c.json
    ok sweep c.json --json out.json -q
    holds out.json '[(q["groups"], q["group_list"]) for q in p] == [(1, None), (2, None), (2, "0:1,2,3")]'
    keep out.json
}
