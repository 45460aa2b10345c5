#!/usr/bin/env bats
# A minute's worth of the command line, for `make quick`: one short run of each kind of command.
# shellcheck disable=SC2154 # ddpbench, output, status: set by helpers.bash and bats
bats_require_minimum_version 1.5.0

load ../helpers

setup() {
    bench_setup
}

@test "an all-reduce of two ranks verifies its results and writes a valid document" {
    ok allreduce --ranks 2 --size 4,64K -n 5 --json out.json
    [ "$(json out.json 'd["status"], len(d["points"])')" = "('complete', 4)" ]
}

@test "every algorithm of every collective that runs here gives right results" {
    for coll in reduce-scatter all-gather broadcast reduce all-to-all all-to-all-v all-gather-v reduce-scatter-v gather scatter send-recv; do
        ok "$coll" --ranks 2 --size 4K -n 3 --algorithm all
    done
    ok barrier --ranks 2 -n 3
}

@test "a compressed all-reduce runs" {
    ok allreduce --ranks 2 --size 64K -n 3 --compress topk:0.01
}

@test "an epoch of training runs on made-up data" {
    ok train --ranks 2 --dataset synthetic --model lenet --epochs 1 --max-steps 3
}

@test "a gate of a command against itself ends with a verdict" {
    run "$ddpbench" gate --pairs 8 --runs 1 --base "$ddpbench allreduce --ranks 2 --size 4K -n 50" --new-env X=1
    [ "$status" = 0 ] || [ "$status" = 10 ] || [ "$status" = 12 ]
}

@test "list, explain, doctor and help answer" {
    ok list
    ok explain busbw
    ok help
    run "$ddpbench" doctor
    [ "$status" = 0 ] || [ "$status" = 69 ]
}

@test "an unknown option is refused with 64 and names the nearest" {
    refused 64 "'--chekc'" -- allreduce --chekc
    [[ "$stderr" == *--check* ]]
}
